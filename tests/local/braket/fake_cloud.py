"""A Braket endpoint with a fake runner, and a boto3 client for it."""

import copy
import json
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from hybridjobs.local.braket.endpoint import BraketEndpoint, EndpointSettings
from hybridjobs.local.runners.base import Runner
from tests.local.braket.fake_runner import FakeJob, FakeRunner

if TYPE_CHECKING:
    from mypy_boto3_braket import BraketClient

ACCOUNT, REGION = "000000000000", "us-east-1"
BUCKET = "amazon-braket-test"
REPOSITORY = "amazon-braket-hybrid-jobs-test"
IMAGE = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/{REPOSITORY}:1"
ROLE_PATH, ROLE_NAME = "/service-role/", "AmazonBraketJobsExecutionRole-test"

# One session for all clients: it keeps what it has read of botocore's models.
_SESSION = boto3.Session()

VALID_REQUEST: dict[str, Any] = {
    "jobName": "qaoa-18",
    "roleArn": f"arn:aws:iam::{ACCOUNT}:role{ROLE_PATH}{ROLE_NAME}",
    "algorithmSpecification": {
        "scriptModeConfig": {
            "entryPoint": "qaoa_source.qaoa",
            "s3Uri": "s3://amazon-braket-test/sources/source.tar.gz",
            "compressionType": "GZIP",
        },
        "containerImage": {
            "uri": f"292282985366.dkr.ecr.{REGION}.amazonaws.com/amazon-braket-base-jobs:latest",
        },
    },
    "inputDataConfig": [
        {
            "channelName": "input-graph",
            "contentType": "text/plain",
            "dataSource": {"s3DataSource": {"s3Uri": "s3://amazon-braket-test/inputs/"}},
        }
    ],
    "outputDataConfig": {"s3Path": "s3://amazon-braket-test/jobs/qaoa-18/data"},
    "checkpointConfig": {"s3Uri": "s3://amazon-braket-test/checkpoints", "localPath": "/opt/jobs/checkpoints"},
    "instanceConfig": {"instanceType": "ml.m5.large", "volumeSizeInGb": 30, "instanceCount": 1},
    "deviceConfig": {"device": "local:pennylane/lightning.qubit"},
    "stoppingCondition": {"maxRuntimeInSeconds": 3600},
    "hyperParameters": {"p": "2", "seed": "1967"},
    "tags": {"team": "optimisation"},
}


def changed(path: str, value: Any, request: Mapping[str, Any] = VALID_REQUEST) -> dict[str, Any]:
    """Return a copy of `request` with `value` at the dotted `path`; None removes the member."""
    copied: dict[str, Any] = copy.deepcopy(dict(request))
    *parents, last = path.split(".")
    place: Any = copied
    for name in parents:
        place = place[int(name)] if name.isdecimal() else place.setdefault(name, {})
    if value is None:
        del place[last]
    else:
        place[int(last) if last.isdecimal() else last] = value
    return copied


class Cloud:
    """The endpoint under test; `restart` keeps its folder."""

    def __init__(
        self,
        folder: Path,
        runner: Runner | None = None,
        settings: EndpointSettings | None = None,
        aws_environment: Mapping[str, str] | None = None,
    ):
        self.folder = folder
        self.runner = runner or FakeRunner()
        self.settings = settings or EndpointSettings()
        self.aws_environment = dict(aws_environment or {})
        self.events: list[Mapping[str, Any]] = []
        self.refuse_events = threading.Event()
        self._start()

    def restart(self, settings: EndpointSettings | None = None) -> None:
        self._endpoint.stop()
        self.settings = settings or self.settings
        self._start()

    def _start(self) -> None:
        self._endpoint = BraketEndpoint(self.folder, self.runner, self.aws_environment, self._publish, self.settings)
        self.url = self._endpoint.start()
        self.braket = self.client()

    def stop(self) -> None:
        self._endpoint.stop()

    def client(self, *, checked: bool = True) -> "BraketClient":
        """Return a client; an unchecked one sends what botocore itself would refuse."""
        return _SESSION.client(
            "braket",
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=Config(parameter_validation=checked, retries={"total_max_attempts": 1}),
        )

    def create(self, request: Mapping[str, Any] = VALID_REQUEST, **members: Any) -> str:
        return self.braket.create_job(**{**request, **members})["jobArn"]

    def create_many(self, count: int) -> list[str]:
        return [self.create(jobName=f"job-{number}") for number in range(count)]

    def job(self, arn: str) -> FakeJob:
        assert isinstance(self.runner, FakeRunner)
        return self.runner.job(arn)

    def status(self, arn: str) -> str:
        return self.braket.get_job(jobArn=arn)["status"]

    def wait(self, arn: str, *statuses: str) -> Any:
        """Poll until the job has one of `statuses` and return its description."""
        pause = threading.Event()
        for _ in range(3000):
            described = self.braket.get_job(jobArn=arn)
            if described["status"] in statuses:
                return described
            pause.wait(0.01)
        raise AssertionError(f"{arn} stayed {described['status']}: {described}")

    def published(self, arn: str) -> list[str]:
        """Return the states of which events have told, after the outbox is empty."""
        pause = threading.Event()
        for _ in range(3000):
            if not self._endpoint._database.pending_events(1):
                break
            pause.wait(0.01)
        return [json.loads(event["Detail"])["status"] for event in self.events if event["Resources"] == [arn]]

    def _publish(self, event: Mapping[str, Any]) -> None:
        if self.refuse_events.is_set():
            raise ConnectionError("the bus is away")
        self.events.append(event)


def new_token() -> str:
    return str(uuid.uuid4())


def code_of(error: pytest.ExceptionInfo[ClientError]) -> tuple[str, int]:
    """The error code and the HTTP status of a refusal."""
    response = error.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]
