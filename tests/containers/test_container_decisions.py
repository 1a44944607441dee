"""What is decided before a container is made: the runner, the image, the limits, the mounts. No engine is needed."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridjobs.local.runners.base import JobRun
from hybridjobs.local.runners.choice import RunnerChoiceError, chosen_runner
from hybridjobs.local.runners.container_images import WantedImage, check_image_fits, local_name, wanted_image
from hybridjobs.local.runners.container_pip import NO_PIP_SETTINGS, pip_settings
from hybridjobs.local.runners.containers import container_mounts, container_options, container_variables, lines_of
from hybridjobs.local.runners.contract import HostLayout, HostResources
from hybridjobs.local.runners.docker import host_limits
from hybridjobs.local.runners.engine import EngineMachine, EngineUnavailableError
from hybridjobs.local.runners.failures import ClientFaultError
from hybridjobs.local.runners.job import HostPlan
from hybridjobs.local.runners.logs import LONGEST_EVENT_BYTES
from hybridjobs.local.runners.process import ProcessRunner

GIB = 1 << 30
LAPTOP = EngineMachine(cpus=4, memory_bytes=15 * GIB, gpus=0)
SERVER = EngineMachine(cpus=96, memory_bytes=700 * GIB, gpus=8)
REGISTRY = "000000000000.dkr.ecr.us-east-1.amazonaws.com"


def job(folder: Path, uri: str | None = None, **request: Any) -> JobRun:
    image = {"containerImage": {"uri": uri}} if uri else {}
    arn = "arn:aws:braket:us-east-1:000000000000:job/1"
    described: Mapping[str, Any] = {
        "deviceConfig": {"device": "local:none/none"},
        "instanceConfig": {"instanceType": "ml.m5.large", "volumeSizeInGb": 1},
        "outputDataConfig": {"s3Path": "s3://amazon-braket-test/jobs/one/data"},
        "algorithmSpecification": image,
        **request,
    }
    return JobRun("one", "1", arn, described, folder, {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "HOME": "/home/me"})


def test_processes_are_the_default_and_an_unknown_runner_is_refused_by_name() -> None:
    assert isinstance(chosen_runner({}), ProcessRunner)
    assert isinstance(chosen_runner({"HYBRIDJOBS_RUNNER": "process"}), ProcessRunner)
    with pytest.raises(RunnerChoiceError, match=r"HYBRIDJOBS_RUNNER = 'podman'.*Choose process or docker"):
        chosen_runner({"HYBRIDJOBS_RUNNER": "podman"})


def test_without_an_engine_the_error_names_the_address_and_the_remedies(tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/none.sock"
    with pytest.raises(EngineUnavailableError, match="no container engine answers at") as error:
        chosen_runner({"HYBRIDJOBS_RUNNER": "docker", "DOCKER_HOST": address})
    assert address in str(error.value)
    assert "leave HYBRIDJOBS_RUNNER unset" in str(error.value)


@pytest.mark.parametrize(
    ("uri", "emulated"),
    [
        (f"{REGISTRY}/mine:1", "127.0.0.1:4566/mine:1"),
        (f"{REGISTRY}/mine/deep@sha256:{'0' * 64}", f"127.0.0.1:4566/mine/deep@sha256:{'0' * 64}"),
        ("292282985366.dkr.ecr.us-east-1.amazonaws.com/amazon-braket-base-jobs:latest", None),
        ("111122223333.dkr.ecr.us-east-1.amazonaws.com/other:1", None),
    ],
)
def test_only_images_of_the_own_account_come_from_the_emulated_registry(
    tmp_path: Path, uri: str, emulated: str | None
) -> None:
    assert wanted_image(job(tmp_path, uri)) == WantedImage(uri, emulated)


@pytest.mark.parametrize(
    ("reference", "tag"),
    [
        (":1", "1"),
        ("", "latest"),
        (f"@sha256:{'0' * 64}", f"sha256-{'0' * 64}"),
        (f":1@sha256:{'0' * 64}", f"sha256-{'0' * 64}"),
    ],
)
def test_the_engine_keeps_an_image_under_a_tag_which_may_be_that_of_its_digest(reference: str, tag: str) -> None:
    assert local_name(f"{REGISTRY}/mine/deep{reference}") == f"{REGISTRY}/mine/deep:{tag}"
    assert local_name(f"127.0.0.1:5000/mine{reference}") == f"127.0.0.1:5000/mine:{tag}"


def test_a_job_without_an_image_runs_in_the_services_base_image(tmp_path: Path) -> None:
    assert wanted_image(job(tmp_path)).uri.endswith("us-east-1.amazonaws.com/amazon-braket-base-jobs:latest")


@pytest.mark.parametrize(
    ("instance_type", "hosts", "machine", "cpus", "gpus", "gib"),
    [
        ("ml.m5.large", 1, LAPTOP, 2, 0, 8),
        ("ml.m5.2xlarge", 1, LAPTOP, 4, 0, 15),
        ("ml.m5.2xlarge", 3, LAPTOP, 1, 0, 5),
        ("ml.g6.12xlarge", 1, SERVER, 48, 4, 192),
        ("ml.g6.48xlarge", 2, SERVER, 48, 4, 350),
    ],
)
def test_a_host_gets_what_its_instance_has_or_its_share_of_the_machine(
    instance_type: str, hosts: int, machine: EngineMachine, cpus: int, gpus: int, gib: int
) -> None:
    assert host_limits(instance_type, hosts, machine) == (HostResources(cpus, gpus, "lo"), gib * GIB)


def test_each_host_gets_its_own_gpus_and_a_host_without_any_asks_for_none(tmp_path: Path) -> None:
    two = {"instanceType": "ml.g6.12xlarge", "volumeSizeInGb": 1, "instanceCount": 2}
    run = job(tmp_path, instanceConfig=two)

    def devices(name: str, gpus: int) -> list[Any]:
        plan = HostPlan(name, HostLayout(tmp_path / name), HostResources(2, gpus, "lo"), {})
        plan.layout.create()
        requests: list[Any] = container_options(run, plan, GIB, {})["device_requests"]
        return [request["DeviceIDs"] for request in requests]

    assert devices("algo-2", 4) == [["4", "5", "6", "7"]]
    assert devices("algo-1", 0) == []


@pytest.mark.parametrize(
    ("local_path", "mounted"),
    [
        (None, "/opt/ml/checkpoints"),
        ("/opt/braket/checkpoints/", "/opt/ml/checkpoints"),
        ("/opt/jobs/c", "/opt/jobs/c"),
    ],
)
def test_the_programs_folder_and_the_services_link_stay_free_of_mounts(
    tmp_path: Path, local_path: str | None, mounted: str
) -> None:
    path = {"localPath": local_path} if local_path else {}
    run = job(tmp_path, checkpointConfig={"s3Uri": "s3://amazon-braket-test/c", **path})
    layout = HostLayout(tmp_path / "algo-1")
    layout.create()
    mounts = container_mounts(run, layout)
    assert mounted in mounts
    assert not {"/opt/ml", "/opt/ml/code", "/opt/braket"} & mounts.keys()
    assert not any(target.startswith("/opt/braket") for target in mounts)
    assert all(source.is_relative_to(tmp_path.resolve()) for source in mounts.values())


def test_a_container_gets_the_services_variables_and_nothing_of_the_machine(tmp_path: Path) -> None:
    plan = HostPlan("algo-1", HostLayout(tmp_path), HostResources(2, 0, "lo"), {"MASTER_PORT": "1"})
    variables = container_variables(job(tmp_path), plan)
    assert variables["AMZN_BRAKET_JOB_RESULTS_DIR"] == "/opt/ml/model"
    assert variables["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"
    assert variables["MASTER_PORT"] == "1"
    assert not {"HOME", "SAGEMAKER_PROGRAM", "BRAKET_ML_ROOT"} & variables.keys()
    assert not any(name.startswith("SM_") for name in variables)


def test_pip_in_a_container_reaches_the_index_that_this_machine_uses(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    (tmp_path / "wheels").mkdir()
    found = pip_settings(
        {
            "PIP_INDEX_URL": "https://index.example.invalid/simple",
            "PIP_FIND_LINKS": f"{tmp_path}/wheels https://links.example.invalid/",
            "PIP_CACHE_DIR": "/home/me/.cache/pip",
            "PIP_CONFIG_FILE": "/home/me/pip.conf",
            "SSL_CERT_FILE": f"{tmp_path}/ca.crt",
        }
    )
    assert found.variables == {
        "PIP_INDEX_URL": "https://index.example.invalid/simple",
        "PIP_FIND_LINKS": "/etc/hybrid-jobs/packages-0 https://links.example.invalid/",
        "PIP_CERT": "/etc/hybrid-jobs/certificates.crt",
    }
    plan = HostPlan("algo-1", HostLayout(tmp_path / "algo-1"), HostResources(2, 0, "lo"), {})
    plan.layout.create()
    options = container_options(job(tmp_path), plan, GIB, {}, found)
    mounted = {mount["Target"]: mount for mount in options["mounts"]}
    for target, source in (("certificates.crt", "ca.crt"), ("packages-0", "wheels")):
        mount = mounted[f"/etc/hybrid-jobs/{target}"]
        assert (mount["Source"], mount["ReadOnly"]) == (str(tmp_path.resolve() / source), True)
    assert options["environment"].items() >= found.variables.items()


def test_a_machine_without_settings_of_pip_gives_a_container_none(tmp_path: Path) -> None:
    assert pip_settings({"SSL_CERT_FILE": f"{tmp_path}/gone", "PIP_FIND_LINKS": f"{tmp_path}/gone"}) == NO_PIP_SETTINGS


def test_an_image_that_an_instance_could_not_hold_or_run_fails_the_job_with_the_remedy() -> None:
    check_image_fits("mine:1", {"Architecture": "amd64", "Size": GIB}, GIB)
    with pytest.raises(ClientFaultError, match=r"unpacks to 1.1 GB, more than .* 1 GiB. Raise volumeSizeInGb"):
        check_image_fits("mine:1", {"Architecture": "amd64", "Size": GIB + 1}, GIB)
    with pytest.raises(ClientFaultError, match=r"is for arm64.*--platform linux/amd64"):
        check_image_fits("mine:1", {"Architecture": "arm64", "Size": 1}, GIB)


@given(st.text(alphabet="ab\n\r\u00e9", max_size=40), st.lists(st.integers(0, 60), max_size=6))
def test_lines_do_not_depend_on_how_the_engine_cuts_them(text: str, cuts: list[int]) -> None:
    data = text.encode()
    borders = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [(data[start:end], None) for start, end in itertools.pairwise(borders)]
    *whole, rest = text.split("\n")
    assert list(lines_of(iter(pieces))) == [line.rstrip("\r") for line in whole] + [rest] * bool(rest)


def test_a_line_without_an_end_is_cut_so_that_memory_stays_bounded() -> None:
    pieces = [(bytes(LONGEST_EVENT_BYTES), b"other\n"), (b"rest", None)]
    assert [len(line) for line in lines_of(iter(pieces))] == [LONGEST_EVENT_BYTES, 5, 4]
