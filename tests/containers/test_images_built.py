"""The images of the project, built on stand-in bases, and their jobs from `cdk deploy` to the records of the report."""

import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hybridjobs.console import Progress
from hybridjobs.demo import wait_for_jobs
from hybridjobs.deployment import Deployment
from hybridjobs.images.build import build_command, build_image
from hybridjobs.images.checks import problems_of
from hybridjobs.images.probe import facts_of
from hybridjobs.local.cloud import LocalCloud
from hybridjobs.model.image_build import VARIABLE, load_image_build
from hybridjobs.report.rows import row
from hybridjobs.report.table import table
from qaoa_source.graph_files import read_graph
from tests.containers.conftest import FOLDERS
from tests.containers.container_output import output_of
from tests.containers.stand_ins import BRAKET, CERTIFICATES
from tests.jobs.qaoa import oracle

# Debian systems are installed and compilers run.
pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif("os.environ.get('HYBRIDJOBS_BUILD_IMAGES') is None", reason="`make test-images` builds images"),
]

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "container_assets"
BUILD_TOOLS = ("g++", "gcc", "cc", "make", "cmake", "ld")
# What an image may add to its base, in megabytes.
LARGEST = {"cpp": 250, "julia": 800, "pennylane": 1200}
PARAMETERS = [[0.5, 0.9], [0.4, 0.2]]
STAGE = f"""
launch = ["qaoa-18-cpu", "qaoa-18-cpu-auto", "maxcut-18-cpp", "maxcut-18-julia"]
removal = "destroy"
account = "000000000000"
region = "us-east-1"
max_spend_usd = 2.0
overrides.qaoa-18-cpu.image = "asset:pennylane:cpu"
overrides.qaoa-18-cpu-auto.image = "asset:pennylane:braket"
overrides.qaoa-18-cpu.hyperparameters.initial_parameters = "{PARAMETERS}"
overrides.qaoa-18-cpu-auto.hyperparameters.initial_parameters = "{PARAMETERS}"
overrides.maxcut-18-cpp.hyperparameters.initial_parameters = "{PARAMETERS}"
overrides.maxcut-18-julia.hyperparameters.initial_parameters = "{PARAMETERS}"
"""


@pytest.fixture(scope="module")
def braket_image(build_settings: Path, images: Mapping[str, str]) -> str:
    """The name of the image that adds this project's entry point to Braket's own, for which the target cpu stands."""
    assert images["pennylane"] == BRAKET
    name = "hybrid-jobs-test-braket:1"
    command = build_command("pennylane", target="braket", tag=name, settings=load_image_build(str(build_settings)))
    build_image(ASSETS, "pennylane", command)
    return name


@pytest.mark.parametrize("folder", FOLDERS)
def test_image_has_what_the_service_asks_for_and_no_build_tool(
    engine_client: Any, images: Mapping[str, str], folder: str
) -> None:
    image = images[folder]
    assert problems_of(facts_of(engine_client, image), 30) == []
    found = output_of(
        engine_client, image, ["sh", "-c", f"for n in {' '.join(BUILD_TOOLS)}; do command -v $n || true; done"]
    )
    assert found == ""
    assert output_of(engine_client, image, ["ls", "/opt/ml/code"]).split() == ["braket_entrypoint.py"]
    writable = "find / -xdev -type f -perm -0002 2>/dev/null"
    assert output_of(engine_client, image, ["sh", "-c", f"{writable} || true"]) == "", "files that anybody may change"


@pytest.mark.parametrize("folder", FOLDERS)
def test_structure_of_the_image(images: Mapping[str, str], folder: str) -> None:
    program = shutil.which("container-structure-test")
    if program is None:
        pytest.skip("container-structure-test is not installed: make test-images installs it")
    command = [program, "test", "--image", images[folder], "--config", ASSETS / folder / "structure.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", FOLDERS)
def test_image_is_small_and_lists_what_it_holds_with_licences(
    engine_client: Any, images: Mapping[str, str], folder: str
) -> None:
    image = engine_client.images.get(images[folder])
    base = engine_client.images.get(f"hybrid-jobs-stand-in-{'python' if folder == 'pennylane' else 'bookworm'}:1")
    assert image.attrs["Size"] - base.attrs["Size"] < LARGEST[folder] * 1e6
    bill = json.loads(output_of(engine_client, images[folder], ["cat", "/opt/licences/sbom.cdx.json"]))
    components = {each["name"]: each for each in bill["components"]}
    own = {"cpp": ["nlohmann-json", "libstdc++"], "julia": ["julia"], "pennylane": ["pennylane", "scipy"]}[folder]
    for name in ("sagemaker_training", "botocore", "libc6", *own):
        (text, *_) = components[name]["properties"]
        assert output_of(engine_client, images[folder], ["head", "-c", "200", text["value"]]).strip(), name
    assert not {"gcc", "g++", "numpy" if folder != "pennylane" else "gcc"} & components.keys()


def test_bill_of_materials_names_what_another_tool_finds(images: Mapping[str, str], engine_client: Any) -> None:
    program = shutil.which("syft")
    if program is None:
        pytest.skip("syft is not installed: make test-images installs it")
    command = [program, "scan", f"docker:{images['cpp']}", "--output", "cyclonedx-json", "--quiet"]
    scanned = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    packages = {
        re.sub(r"[-_.]+", "-", each["name"].lower())
        for each in scanned["components"]
        if each.get("purl", "").startswith(("pkg:pypi/", "pkg:deb/"))
    }
    bill = json.loads(output_of(engine_client, images["cpp"], ["cat", "/opt/licences/sbom.cdx.json"]))
    listed = {re.sub(r"[-_.]+", "-", each["name"].lower()) for each in bill["components"]}
    # Debian's Python keeps setuptools' own copies of packages, which no package manager knows.
    assert packages - listed <= {"setuptools", "wheel"}, packages - listed


@pytest.mark.parametrize("folder", FOLDERS)
def test_build_secrets_are_in_no_layer(engine_client: Any, images: Mapping[str, str], folder: str) -> None:
    assert_no_build_secrets(engine_client, images[folder])


def assert_no_build_secrets(client: Any, image: str) -> None:
    for layer in client.images.get(image).history():
        assert str(CERTIFICATES) not in layer["CreatedBy"]
    show = "cat /etc/pip.conf /run/secrets/* 2>/dev/null | wc -c"
    assert output_of(client, image, ["sh", "-c", show]).strip() == "0"


def test_image_on_brakets_own_runs_jobs_and_adds_next_to_nothing(engine_client: Any, braket_image: str) -> None:
    assert problems_of(facts_of(engine_client, braket_image), 30) == []
    image, base = (engine_client.images.get(name) for name in (braket_image, BRAKET))
    assert image.attrs["Size"] - base.attrs["Size"] < 2e6
    bill = json.loads(output_of(engine_client, braket_image, ["cat", "/opt/licences/sbom.cdx.json"]))
    assert bill["metadata"]["component"]["name"] == "hybrid-jobs-braket"
    assert {"sagemaker_training", "boto3", "pennylane", "libc6"} <= {each["name"] for each in bill["components"]}
    assert_no_build_secrets(engine_client, braket_image)


def test_julia_computes_the_same_in_arrays_of_another_kind(engine_client: Any, images: Mapping[str, str]) -> None:
    """No GPU is here: an array that only the methods for GPUs can serve stands for CUDA.jl's."""
    places = {ROOT / "job_sources" / "julia_source": "/source", Path(__file__).parent: "/tests"}
    output = output_of(
        engine_client,
        images["julia"],
        ["julia", "--startup-file=no", "/tests/other_arrays.jl", "/source/maxcut.jl"],
        volumes={str(folder): {"bind": place, "mode": "ro"} for folder, place in places.items()},
    )
    assert float(output) < 1e-12


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This project with one stage, whose jobs run in images and begin at the same parameters."""
    root = tmp_path_factory.mktemp("project")
    for name in ("app.py", "cdk.json"):
        shutil.copy(ROOT / name, root)
    for name in ("stacks", "lambdas", "container_assets", "job_sources", "node_modules"):
        (root / name).symlink_to(ROOT / name)
    (root / "stages").mkdir()
    (root / "stages" / "images.toml").write_text(STAGE)
    return root


@pytest.fixture(scope="module")
def records(project: Path, build_settings: Path, braket_image: str) -> Iterator[list[dict[str, Any]]]:
    """The records of the stage's jobs, deployed and run in containers of the images that the CDK CLI built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRIDJOBS_RUNNER", "docker")
        patch.setenv(VARIABLE, str(build_settings))
        cloud = LocalCloud(project)
        with cloud.session():
            cloud.deploy("images")
            deployment = Deployment.connect("images", cloud.environment())
            console = Console(file=io.StringIO())
            ended = wait_for_jobs(deployment, Progress(console), 900)
            assert {launch.state for launch in ended} == {"COMPLETED"}, [launch.reason for launch in ended]
            yield deployment.records()


def test_jobs_run_by_digest_in_the_images_of_the_deployment(records: list[dict[str, Any]]) -> None:
    assert len(records) == 4
    digests = {record["image_digest"] for record in records}
    assert len(digests) == 4
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in digests)


def test_julia_cpp_and_python_agree_with_each_other_and_with_brute_force(records: list[dict[str, Any]]) -> None:
    results = {record["spec"]["image"]: record["results"] for record in records}
    names = ("pennylane:cpu", "pennylane:braket", "cpp", "julia")
    python, braket, cpp, julia = (results[f"asset:{name}"] for name in names)
    for other in (braket, cpp, julia):
        for key in ("cost", "costs", "params"):
            assert np.array(other[key]) == pytest.approx(np.array(python[key]), abs=1e-9), key
    assert cpp.keys() == julia.keys()
    problem = read_graph(ROOT / "job_sources" / "qaoa_source" / "inputs" / "gnm_18_24.adjlist")
    assert python["costs"][0] == pytest.approx(oracle.cost(problem, np.array(PARAMETERS)), abs=1e-9)
    assert python["optimum"] == braket["optimum"] == cpp["optimum"] == julia["optimum"] == 21


def test_report_shows_the_jobs_side_by_side(records: list[dict[str, Any]]) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table([row(record) for record in records]))
    text = console.export_text()
    for name in ("qaoa-18-cpu", "qaoa-18-cpu-auto", "maxcut-18-cpp", "maxcut-18-julia"):
        assert name in text
    assert text.count("COMPLETED") == 4
