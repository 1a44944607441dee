"""The SDK's AwsQuantumJob, unmodified, against the endpoint with jobs as real processes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from braket.aws import AwsQuantumJob, AwsSession
from braket.jobs import hybrid_job
from braket.jobs.config import CheckpointConfig, InstanceConfig, StoppingCondition

from hybridjobs.local.braket.endpoint import EndpointSettings
from hybridjobs.local.runners.process import ProcessRunner
from tests.local.braket.fake_cloud import BUCKET, IMAGE, REGION, VALID_REQUEST, Cloud

DEVICE = "local:pennylane/lightning.qubit"
SV1 = "arn:aws:braket:::device/quantum-simulator/amazon/sv1"

ALGORITHM = """
import os, pathlib
from braket.jobs import get_hyperparameters, get_input_data_dir, save_job_checkpoint, save_job_result
from braket.jobs.metrics import log_metric

def main():
    checkpoints = list(pathlib.Path(os.environ["AMZN_BRAKET_CHECKPOINT_DIR"]).glob("*.json"))
    numbers = [int(line) for line in pathlib.Path(get_input_data_dir("numbers"), "numbers.txt").read_text().split()]
    log_metric(metric_name="Total", value=sum(numbers), iteration_number=0)
    save_job_checkpoint({"total": sum(numbers)})
    save_job_result({"total": sum(numbers), "p": get_hyperparameters()["p"], "restored": len(checkpoints)})

def fail():
    raise ValueError("the optimiser diverged")

def wait():
    import time
    time.sleep(600)

def hosts():
    import json
    name, number = os.environ["SM_CURRENT_HOST"], len(json.loads(os.environ["SM_HOSTS"]))
    pathlib.Path(os.environ["AMZN_BRAKET_JOB_RESULTS_DIR"], f"{name}.txt").write_text("done")
    print(f"{name} of {number}")
    if name == "algo-1":
        save_job_result({"hosts": number})

def tasks():
    from braket.aws import AwsDevice
    from braket.circuits import Circuit
    device = AwsDevice(os.environ["AMZN_BRAKET_DEVICE_ARN"])
    counts = device.run(Circuit().x(0), shots=10, poll_interval_seconds=0.1).result().measurement_counts
    save_job_result({"counts": dict(counts)})
"""


@pytest.fixture
def cloud(start_cloud: Callable[..., Cloud], aws: dict[str, str]) -> Cloud:
    return start_cloud(aws_environment=aws, runner=ProcessRunner(), settings=EndpointSettings(max_task_workers=1))


@pytest.fixture
def session(cloud: Cloud, aws: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AwsSession:
    for name, value in {**aws, "AWS_ENDPOINT_URL_BRAKET": cloud.url}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return AwsSession(boto_session=boto3.Session(region_name=REGION), default_bucket=BUCKET)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "toy_source"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "algorithm.py").write_text(ALGORITHM)
    (tmp_path / "numbers.txt").write_text("1\n2\n39\n")
    return folder


def submit(session: AwsSession, sources: Path, function: str, **options: Any) -> AwsQuantumJob:
    return AwsQuantumJob.create(
        **{
            "device": DEVICE,
            "source_module": str(sources),
            "entry_point": f"toy_source.algorithm:{function}",
            "job_name": f"toy-{function}",
            "role_arn": VALID_REQUEST["roleArn"],
            "aws_session": session,
            "quiet": True,
            **options,
        }
    )


def test_a_job_with_inputs_tags_and_checkpoints_runs_and_returns_its_result(
    session: AwsSession, sources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {
        "input_data": {"numbers": str(sources.parent / "numbers.txt")},
        "hyperparameters": {"p": 2},
        "instance_config": InstanceConfig(instanceType="ml.m5.2xlarge"),
        "stopping_condition": StoppingCondition(maxRuntimeInSeconds=300),
        "tags": {"team": "optimisation"},
    }
    job = submit(session, sources, "main", **options)
    assert job.result(poll_interval_seconds=0.2) == {"total": 42, "p": "2", "restored": 0}
    assert job.state() == "COMPLETED"
    assert job.metadata()["tags"] == {"team": "optimisation"}
    assert job.queue_position().queue_position is None
    job.logs(poll_interval_seconds=0)
    assert "Total=42" in capsys.readouterr().out
    assert job.metrics()["Total"] == [42.0]
    again = submit(session, sources, "main", copy_checkpoints_from_job=job.arn, **options)
    assert again.result(poll_interval_seconds=0.2)["restored"] == 1


def test_sources_in_s3_work_like_sources_in_a_folder(session: AwsSession, sources: Path) -> None:
    options: dict[str, Any] = {
        "input_data": {"numbers": str(sources.parent / "numbers.txt")},
        "hyperparameters": {"p": 2},
        "checkpoint_config": CheckpointConfig(s3Uri=f"s3://{BUCKET}/checkpoints/own"),
    }
    first = submit(session, sources, "main", **options)
    first.result(poll_interval_seconds=0.2)
    archive = first.metadata()["algorithmSpecification"]["scriptModeConfig"]["s3Uri"]
    job = AwsQuantumJob.create(
        device=DEVICE,
        source_module=archive,
        entry_point="toy_source.algorithm:main",
        role_arn=VALID_REQUEST["roleArn"],
        aws_session=session,
        distribution="data_parallel",
        **options,
    )
    assert job.result(poll_interval_seconds=0.2)["restored"] == 1
    assert job.metadata()["hyperParameters"]["sagemaker_distributed_dataparallel_enabled"] == "true"
    job.download_result(extract_to="downloaded")
    assert (sources.parent / "downloaded" / job.name / "results.json").is_file()


def test_a_job_on_several_instances_runs_on_each_and_has_one_result(
    session: AwsSession, sources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    three = InstanceConfig(instanceType="ml.m5.large", volumeSizeInGb=1, instanceCount=3)
    job = submit(session, sources, "hosts", instance_config=three)
    assert job.result(poll_interval_seconds=0.2) == {"hosts": 3}, job.metadata().get("failureReason")
    assert job.metadata()["instanceConfig"]["instanceCount"] == 3
    job.logs(poll_interval_seconds=0)
    shown = capsys.readouterr().out
    assert all(f"algo-{number} of 3" in shown for number in (1, 2, 3))
    job.download_result(extract_to="downloaded")
    files = {file.name for file in (sources.parent / "downloaded" / job.name).iterdir()}
    assert files == {"algo-1.txt", "algo-2.txt", "algo-3.txt", "results.json"}


def test_a_job_that_raises_fails_with_its_reason_and_has_no_result(session: AwsSession, sources: Path) -> None:
    job = submit(session, sources, "fail")
    assert job.result(poll_interval_seconds=0.2) == {}
    assert job.state() == "FAILED"
    assert "ValueError: the optimiser diverged" in job.metadata()["failureReason"]


def test_a_running_job_is_cancelled(cloud: Cloud, session: AwsSession, sources: Path) -> None:
    job = submit(session, sources, "wait")
    cloud.wait(job.arn, "RUNNING")
    assert job.cancel() == "CANCELLING"
    cloud.wait(job.arn, "CANCELLED")
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        AwsQuantumJob(f"{job.arn}0", aws_session=session).state()


def test_a_job_on_sv1_runs_its_quantum_tasks_there(session: AwsSession, sources: Path) -> None:
    job = submit(session, sources, "tasks", device=SV1)
    assert job.result(poll_interval_seconds=0.2) == {"counts": {"1": 10}}
    (task,) = job.get_tasks()
    metadata = task.metadata()
    assert metadata["jobArn"] == job.arn
    assert metadata["outputS3Directory"].startswith("jobs/toy-tasks/")
    assert "/tasks/" in metadata["outputS3Directory"]


def test_a_decorated_function_runs_as_a_job(session: AwsSession, cloud: Cloud) -> None:
    # An image of one's own: for a stock one the SDK compares its Python with this one, in which the jobs here run.
    @hybrid_job(device=DEVICE, image_uri=IMAGE, aws_session=session, role_arn=VALID_REQUEST["roleArn"])  # type: ignore[untyped-decorator]
    def square(number: int) -> dict[str, int]:
        return {"square": number * number}

    job: Any = square(7)
    described = cloud.wait(job.arn, "COMPLETED", "FAILED")
    assert described["status"] == "COMPLETED", described.get("failureReason")
    assert job.result(allow_pickle=True) == {"square": 49}
    assert os.environ["AWS_ENDPOINT_URL_BRAKET"] == cloud.url
