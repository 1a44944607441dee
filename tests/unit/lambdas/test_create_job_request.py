"""What CreateJob is sent: accepted by botocore's own model of the API, complete, and the same for every retry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.validate import ParamValidator

from hybridjobs.model.catalogue import load_catalogue
from hybridjobs.model.inputs import input_files
from hybridjobs.model.job_spec import launch_document
from hybridjobs.model.source_archive import build_source_archive
from launch_job.image import STOCK_IMAGES, private_image, stock_image
from launch_job.request import create_job_request, worst_case_usd
from launches import Identity, Launch, State
from settings import Settings
from tests.unit.lambdas.stage import PRICE, STACK, document_of

CATALOGUE = load_catalogue(Path(__file__).parents[3] / "job_sources")
SETTINGS = Settings(
    stage="dev",
    job_bucket="amazon-braket-hybrid-jobs-dev-111122223333-us-west-2",
    job_role_arn="arn:aws:iam::111122223333:role/service-role/AmazonBraketJobsExecutionRole-HybridJobs-dev",
    ledger_table="ledger",
    max_concurrent_jobs=3,
    repository_name="amazon-braket-hybrid-jobs-dev",
    region="us-west-2",
)
IMAGE = f"111122223333.dkr.ecr.us-west-2.amazonaws.com/amazon-braket-hybrid-jobs-dev@sha256:{'a' * 64}"


def launch_of(document: dict[str, Any]) -> Launch:
    identity = Identity(document["name"], STACK, "JobA", "0" * 64, "1")
    return Launch(
        name=identity.name(), state=State.PENDING, identity=identity, requested_at="", updated_at="", spec=document
    )


def request_of(document: dict[str, Any], request_id: str = "r1") -> dict[str, Any]:
    return create_job_request(launch_of(document), request_id=request_id, image_uri=IMAGE, settings=SETTINGS)


def problems(request: dict[str, Any]) -> str:
    model = boto3.client(
        "braket", region_name="us-west-2", aws_access_key_id="test", aws_secret_access_key="test"
    ).meta.service_model
    shape = model.operation_model("CreateJob").input_shape
    assert shape is not None
    report = ParamValidator().validate(request, shape)
    return str(report.generate_report())


@pytest.mark.parametrize("job", sorted(CATALOGUE))
def test_every_job_of_the_catalogue_makes_a_request_that_the_api_accepts(job: str) -> None:
    entry = CATALOGUE[job]
    files = input_files(entry.source_folder, entry.spec.inputs)
    archive = build_source_archive(entry.source_folder, entry.libraries)
    request = request_of(launch_document(entry.spec, archive.sha256, files))
    assert problems(request) == ""
    assert entry.spec.hyperparameters.items() <= request["hyperParameters"].items()


def test_a_request_says_everything_that_the_spec_says() -> None:
    document = document_of(benchmark={"name": "qaoa-18", "baseline": True})
    request = request_of(document)
    name = request["jobName"]
    bucket = f"s3://{SETTINGS.job_bucket}"
    assert request == {
        "clientToken": request["clientToken"],
        "jobName": name,
        "roleArn": SETTINGS.job_role_arn,
        "deviceConfig": {"device": "local:pennylane/lightning.qubit"},
        "instanceConfig": {"instanceType": "ml.m5.2xlarge", "instanceCount": 1, "volumeSizeInGb": 30},
        "algorithmSpecification": {
            "scriptModeConfig": {
                "entryPoint": "qaoa_source.qaoa:main",
                "s3Uri": f"{bucket}/sources/{document['source']['sha256']}/source.tar.gz",
                "compressionType": "GZIP",
            },
            "containerImage": {"uri": IMAGE},
        },
        "inputDataConfig": [
            {
                "channelName": "input-graph",
                "dataSource": {
                    "s3DataSource": {"s3Uri": request["inputDataConfig"][0]["dataSource"]["s3DataSource"]["s3Uri"]}
                },
            }
        ],
        "outputDataConfig": {"s3Path": f"{bucket}/jobs/{name}/data"},
        "checkpointConfig": {"s3Uri": f"{bucket}/jobs/{name}/checkpoints", "localPath": "/opt/jobs/checkpoints"},
        "stoppingCondition": {"maxRuntimeInSeconds": 3600},
        "hyperParameters": {"p": "2", "parametrize_differentiable": "true"},
        "tags": {
            "hybrid-jobs:stage": "dev",
            "hybrid-jobs:stack-id": STACK,
            "hybrid-jobs:logical-id": "JobA",
            "hybrid-jobs:spec-hash": "0" * 64,
            "hybrid-jobs:benchmark": "qaoa-18",
        },
    }
    channel = request["inputDataConfig"][0]["dataSource"]["s3DataSource"]["s3Uri"]
    assert channel.startswith(f"{bucket}/inputs/")
    assert channel.endswith("/"), "a channel is the folder that holds exactly its files"


def test_a_job_without_inputs_checkpoints_and_hyperparameters_sends_none() -> None:
    request = request_of(document_of(inputs={}, checkpoints=False, hyperparameters={}))
    assert not {"inputDataConfig", "checkpointConfig", "hyperParameters"} & set(request)
    assert problems(request) == ""


def test_the_client_token_is_the_same_for_a_retry_and_another_for_a_new_request() -> None:
    document = document_of()
    assert request_of(document, "r1")["clientToken"] == request_of(document, "r1")["clientToken"]
    assert request_of(document, "r1")["clientToken"] != request_of(document, "r2")["clientToken"]
    assert len(request_of(document)["clientToken"]) <= 64


def test_a_file_that_changes_lies_under_another_prefix() -> None:
    one = request_of(document_of(inputs={"data": [{"path": "a", "sha256": "1" * 64}]}))
    other = request_of(document_of(inputs={"data": [{"path": "a", "sha256": "2" * 64}]}))
    assert one["inputDataConfig"] != other["inputDataConfig"]


@pytest.mark.parametrize("name", sorted(STOCK_IMAGES))
@pytest.mark.parametrize("region", ["us-east-1", "us-west-1", "us-west-2", "eu-west-2", "eu-north-1"])
def test_stock_images_are_named_by_a_full_tag_in_the_jobs_region(name: str, region: str) -> None:
    uri = stock_image(name, region)
    assert uri is not None
    assert uri.startswith(f"292282985366.dkr.ecr.{region}.amazonaws.com/amazon-braket-")
    assert not uri.endswith(":latest")
    document = document_of()
    request = create_job_request(launch_of(document), request_id="r", image_uri=uri, settings=SETTINGS)
    assert problems(request) == ""


def test_an_image_is_looked_up_by_its_digest_and_else_by_its_tag() -> None:
    registry = "111122223333.dkr.ecr.us-west-2.amazonaws.com"
    digest = "sha256:" + "b" * 64
    tagged = private_image(f"{registry}/amazon-braket-x/y:v1.2")
    assert tagged is not None
    assert (tagged.account, tagged.repository, tagged.reference) == ("111122223333", "amazon-braket-x/y", "v1.2")
    assert tagged.at(digest) == f"{registry}/amazon-braket-x/y@{digest}"
    for named in (f"{registry}/x@{digest}", f"{registry}/x:v1@{digest}"):
        found = private_image(named)
        assert found is not None
        assert (found.reference, found.at(digest)) == (digest, f"{registry}/x@{digest}")
    for other in (f"{registry}/x", "base", "docker.io/library/python:3"):
        assert private_image(other) is None


def test_the_record_learns_the_digest_from_the_request() -> None:
    launch = launch_of(document_of())
    assert launch.image_digest is None
    assert replace(launch, request=request_of(document_of())).image_digest == "sha256:" + "a" * 64


def test_the_worst_case_counts_every_instance_for_the_whole_time() -> None:
    document = document_of(instance={"type": "ml.m5.2xlarge", "count": 2, "volume_gb": 30})
    assert worst_case_usd(document, PRICE) == pytest.approx(0.00768 * 60 * 2)
    assert worst_case_usd(document, None) is None
