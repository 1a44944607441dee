"""An embedded cloud whose jobs run in containers: chosen by one variable, and gone with the cloud."""

from pathlib import Path
from typing import Any

import pytest

from hybridjobs.local.cloud import LocalCloud, LocalCloudError
from hybridjobs.local.runners.engine import JOB_LABEL, EngineUnavailableError
from tests.local.tiny_cloud import BUCKET, eventually, start_job

REPOSITORY = "amazon-braket-hybrid-jobs-embedded"
IMAGE = f"000000000000.dkr.ecr.us-east-1.amazonaws.com/{REPOSITORY}:1"
WHERE = "import os\nprint('in a container' if os.uname().nodename == 'algo-1' else 'on the machine')\n"
FAILING_DAEMON = """
from hybridjobs.local import daemon
def fail(*_): raise RuntimeError("broken on purpose")
daemon.main(fail)
"""
WAIT = "import time\nprint('waiting', flush=True)\ntime.sleep(600)\n"


def push(cloud: LocalCloud, client: Any, image: str) -> None:
    """Put a local image into the embedded cloud's registry as IMAGE."""
    cloud.client("ecr").create_repository(repositoryName=REPOSITORY)
    address = cloud.environment()["AWS_ENDPOINT_URL"].removeprefix("http://") + f"/{REPOSITORY}"
    client.images.get(image).tag(address, "1")
    for line in client.images.push(address, "1", stream=True, decode=True):
        assert "error" not in line, line
    client.images.remove(f"{address}:1", noprune=True)


def containers(client: Any, arn: str) -> list[Any]:
    found: list[Any] = client.containers.list(all=True, ignore_removed=True, filters={"label": f"{JOB_LABEL}={arn}"})
    return found


def test_jobs_run_in_containers_and_none_survives_the_cloud(
    tmp_path: Path, engine_client: Any, base_image_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRIDJOBS_RUNNER", "docker")
    cloud = LocalCloud(tmp_path)
    cloud.up()
    try:
        push(cloud, engine_client, base_image_name)
        braket, logs = cloud.client("braket"), cloud.client("logs")
        arn = start_job(cloud, "where", WHERE, image=IMAGE)
        assert eventually(lambda: braket.get_job(jobArn=arn)["status"] in {"COMPLETED", "FAILED"})
        described = braket.get_job(jobArn=arn)
        assert described["status"] == "COMPLETED", described.get("failureReason")
        lines = [event["message"] for event in logs.filter_log_events(logGroupName="/aws/braket/jobs")["events"]]
        assert "in a container" in lines
        assert cloud.client("s3").head_object(Bucket=BUCKET, Key="jobs/where/data/output/model.tar.gz")
        running = start_job(cloud, "wait", WAIT, image=IMAGE)
        assert eventually(lambda: len(containers(engine_client, running)) == 1)
    finally:
        cloud.down()
    assert containers(engine_client, running) == []
    assert not (tmp_path / ".hybridjobs").exists()


def test_without_an_engine_the_cloud_does_not_start_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRIDJOBS_RUNNER", "docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(
        EngineUnavailableError, match=r"no container engine answers at unix://.*leave HYBRIDJOBS_RUNNER unset"
    ):
        LocalCloud(tmp_path).up()
    assert not (tmp_path / ".hybridjobs").exists()


def test_a_bound_cloud_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(LocalCloudError, match=r"log ends:(?s:.*)broken on purpose"):
        LocalCloud(tmp_path, daemon=("-c", FAILING_DAEMON)).up(bound=True)
    assert not (tmp_path / ".hybridjobs").exists()
