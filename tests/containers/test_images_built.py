"""The images of the project, built on stand-in bases, and the jobs that run in them from CreateJob to results."""

import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybridjobs.local.cloud import LocalCloud
from hybridjobs.model.catalogue import load_catalogue
from hybridjobs.model.source_archive import build_source_archive
from qaoa_source.graph_files import read_graph
from tests.containers.stand_ins import CERTIFICATES, NoStandInError, build, debian, julia
from tests.containers.test_embedded_cloud import REPOSITORY
from tests.jobs.qaoa import oracle
from tests.local.tiny_cloud import BUCKET, ROLE, TRUST, eventually

# Debian systems are installed and compilers run.
pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif("HYBRIDJOBS_BUILD_IMAGES" not in os.environ, reason="building images is `make test-images`"),
]

JOB_SOURCES = Path(__file__).parents[2] / "job_sources"
JOBS = {"cpp": "maxcut-18-cpp", "julia": "maxcut-18-julia"}
BUILD_TOOLS = ("g++", "gcc", "cc", "make", "cmake", "ld")


@pytest.fixture(scope="module")
def images(engine_client: Any) -> dict[str, str]:
    """Names of the built images by their folder."""
    try:
        base = debian(engine_client, "bookworm")
        bases = {"cpp": {"BASE_IMAGE": base}, "julia": {"BASE_IMAGE": base, "JULIA_IMAGE": julia(engine_client)}}
    except NoStandInError as error:
        pytest.skip(str(error))
    return {folder: build(folder, f"hybrid-jobs-test-{folder}:1", arguments) for folder, arguments in bases.items()}


def run(client: Any, image: str, *command: str) -> str:
    """What a command prints in a new container of an image."""
    output: bytes = client.containers.run(image, list(command), remove=True, network_mode="none")
    return output.decode()


@pytest.mark.parametrize("folder", JOBS)
def test_image_has_what_the_service_asks_for_and_no_build_tool(
    engine_client: Any, images: Mapping[str, str], folder: str
) -> None:
    image = images[folder]
    configuration = engine_client.images.get(image).attrs["Config"]
    assert "SAGEMAKER_PROGRAM=braket_entrypoint.py" in configuration["Env"]
    assert not configuration["Entrypoint"], "it would swallow the command train"
    names = " ".join(("train", "python", *BUILD_TOOLS))
    found = run(engine_client, image, "sh", "-c", f"for name in {names}; do command -v $name || true; done").split()
    assert [Path(program).name for program in found] == ["train", "python"]
    assert run(engine_client, image, "ls", "/opt/ml/code").split() == ["braket_entrypoint.py"]
    writable = "find / -xdev -type f -perm -0002 2>/dev/null"
    assert run(engine_client, image, "sh", "-c", f"{writable} || true") == "", "files that anybody may change"


@pytest.mark.parametrize("folder", JOBS)
def test_image_is_small_and_holds_the_licences_of_what_it_holds(
    engine_client: Any, images: Mapping[str, str], folder: str
) -> None:
    image = engine_client.images.get(images[folder])
    base = engine_client.images.get("hybrid-jobs-stand-in-bookworm:1")
    assert image.attrs["Size"] - base.attrs["Size"] < {"cpp": 250e6, "julia": 800e6}[folder]
    listed = run(engine_client, images[folder], "find", "/opt/licences", "-type", "f")
    for package in ("sagemaker_training", "botocore", *(["nlohmann-json", "libstdc++"] if folder == "cpp" else [])):
        assert package in listed


@pytest.mark.parametrize("folder", JOBS)
def test_build_secrets_are_in_no_layer(engine_client: Any, images: Mapping[str, str], folder: str) -> None:
    for layer in engine_client.images.get(images[folder]).history():
        assert str(CERTIFICATES) not in layer["CreatedBy"]
    show = "cat /etc/pip.conf /run/secrets/* 2>/dev/null | wc -c"
    assert run(engine_client, images[folder], "sh", "-c", show).strip() == "0"


@pytest.fixture(scope="module")
def cloud(
    images: Mapping[str, str], engine_client: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalCloud]:
    """An embedded cloud whose jobs run in containers, with the images in its registry."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRIDJOBS_RUNNER", "docker")
        running = LocalCloud(tmp_path_factory.mktemp("cloud"))
        running.up()
        try:
            running.client("ecr").create_repository(repositoryName=REPOSITORY)
            registry = running.environment()["AWS_ENDPOINT_URL"].removeprefix("http://") + f"/{REPOSITORY}"
            for folder, image in images.items():
                engine_client.images.get(image).tag(registry, folder)
                for line in engine_client.images.push(registry, folder, stream=True, decode=True):
                    assert "error" not in line, line
                engine_client.images.remove(f"{registry}:{folder}", noprune=True)
            running.client("s3").create_bucket(Bucket=BUCKET)
            running.client("iam").create_role(
                RoleName=ROLE, Path="/service-role/", AssumeRolePolicyDocument=json.dumps(TRUST)
            )
            yield running
        finally:
            running.down()


def result_of(cloud: LocalCloud, folder: str, parameters: str) -> dict[str, Any]:
    """Run the job that the catalogue declares, from its archive to the results that it leaves in S3."""
    entry = load_catalogue(JOB_SOURCES)[JOBS[folder]]
    spec, s3, braket = entry.spec, cloud.client("s3"), cloud.client("braket")
    archive = build_source_archive(entry.source_folder, entry.libraries)
    s3.put_object(Bucket=BUCKET, Key=f"{folder}/source.tar.gz", Body=archive.bytes)
    graph = entry.source_folder / spec.inputs["input-graph"]
    s3.put_object(Bucket=BUCKET, Key=f"{folder}/graph/{graph.name}", Body=graph.read_bytes())
    arn = braket.create_job(
        clientToken=folder,
        jobName=f"{spec.name}-1",
        roleArn=f"arn:aws:iam::000000000000:role/service-role/{ROLE}",
        algorithmSpecification={
            "scriptModeConfig": {
                "entryPoint": spec.entry_point,
                "s3Uri": f"s3://{BUCKET}/{folder}/source.tar.gz",
                "compressionType": "GZIP",
            },
            "containerImage": {"uri": f"000000000000.dkr.ecr.us-east-1.amazonaws.com/{REPOSITORY}:{folder}"},
        },
        inputDataConfig=[
            {
                "channelName": "input-graph",
                "dataSource": {"s3DataSource": {"s3Uri": f"s3://{BUCKET}/{folder}/graph/"}},
            }
        ],
        outputDataConfig={"s3Path": f"s3://{BUCKET}/jobs/{folder}/data"},
        checkpointConfig={"s3Uri": f"s3://{BUCKET}/jobs/{folder}/checkpoints"},
        instanceConfig={"instanceType": "ml.m5.large", "volumeSizeInGb": 1},
        deviceConfig={"device": spec.device},
        hyperParameters={**spec.hyperparameters, "initial_parameters": parameters},
        stoppingCondition={"maxRuntimeInSeconds": 600},
    )["jobArn"]
    assert eventually(lambda: braket.get_job(jobArn=arn)["status"] in {"COMPLETED", "FAILED"}, 300)
    described = braket.get_job(jobArn=arn)
    assert described["status"] == "COMPLETED", described.get("failureReason")
    packed = s3.get_object(Bucket=BUCKET, Key=f"jobs/{folder}/data/output/model.tar.gz")["Body"].read()
    with tarfile.open(fileobj=BytesIO(packed)) as model:
        member = model.extractfile("results.json")
        assert member is not None
        document = json.load(member)
    assert document["dataFormat"] == "plaintext"
    checkpoints = s3.list_objects_v2(Bucket=BUCKET, Prefix=f"jobs/{folder}/checkpoints/")
    assert checkpoints["KeyCount"] == 1
    return dict(document["dataDictionary"])


def test_jobs_in_containers_agree_with_each_other_and_with_brute_force(cloud: LocalCloud) -> None:
    parameters = [[0.5, 0.9], [0.4, 0.2]]
    results = {folder: result_of(cloud, folder, json.dumps(parameters)) for folder in JOBS}
    first, second = results.values()
    assert first.keys() == second.keys()
    assert first["settings"].keys() == second["settings"].keys()
    for key in ("cost", "costs", "params"):
        assert np.array(first[key]) == pytest.approx(np.array(second[key]), abs=1e-9)
    problem = read_graph(JOB_SOURCES / "qaoa_source" / "inputs" / "gnm_18_24.adjlist")
    assert first["costs"][0] == pytest.approx(oracle.cost(problem, np.array(parameters)), abs=1e-9)
    assert first["optimum"] == second["optimum"] == 21
