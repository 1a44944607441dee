"""A function with the SDK's `@hybrid_job`, as its documentation writes it, in a new embedded cloud."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from braket.jobs import hybrid_job, save_job_result

from hybridjobs.local.cloud import LocalCloud
from tests.local.tiny_cloud import ROLE, TRUST, eventually


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCloud]:
    with LocalCloud(tmp_path).session() as cloud:
        for name, value in cloud.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("AWS_PROFILE", raising=False)
        # The SDK leaves the archive of a job's results in the working folder.
        monkeypatch.chdir(tmp_path)
        yield cloud


def test_a_decorated_function_runs_and_returns_with_nothing_but_the_device_named(cloud: LocalCloud) -> None:
    # The console makes such a role in an account; a deployed stage brings one too.
    cloud.client("iam").create_role(RoleName=ROLE, Path="/service-role/", AssumeRolePolicyDocument=json.dumps(TRUST))

    @hybrid_job(device="local:pennylane/lightning.qubit")  # type: ignore[untyped-decorator]
    def square(number: int) -> dict[str, Any]:
        save_job_result({"device": os.environ["AMZN_BRAKET_DEVICE_ARN"]})
        return {"square": number * number}

    job: Any = square(7)
    assert eventually(lambda: job.state() in {"COMPLETED", "FAILED"})
    assert job.state() == "COMPLETED", job.metadata().get("failureReason")
    assert job.result(allow_pickle=True) == {"square": 49, "device": "local:pennylane/lightning.qubit"}
    assert cloud.client("s3").list_buckets()["Buckets"][0]["Name"] == "amazon-braket-us-east-1-000000000000"
