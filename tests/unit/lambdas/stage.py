"""One stage in memory: emulated S3, DynamoDB, ECR and Logs, the fake Braket, and the functions over them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import boto3
from botocore.config import Config

from clock import Deadline
from hybridjobs.schemas.documents import Record
from launches import Identity, Launch, canonical_json
from services import Services
from settings import Settings
from tests.unit.lambdas.fake_braket import FakeBraket
from tests.unit.lambdas.memory import Memory, MemoryServices
from tests.unit.lambdas.plan import Plan

REGION = "us-east-1"
ACCOUNT = "000000000000"
ASSETS = "assets"
REPOSITORY = "amazon-braket-hybrid-jobs-local"
STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/HybridJobs-local-Jobs/11111111-2222-3333-4444-555555555555"
SOURCE = b"the source archive"
GRAPH = b"0 1\n1 2\n"
PRICE = {"usd_per_minute": 0.00768, "source": "the price list", "as_of": "2026-08-01"}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class HandClock:
    """A clock that moves only when it is told to, or when someone sleeps."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
        self.slept = 0.0

    def now(self) -> datetime:
        # No two readings are the same, as on a real clock.
        self.moment += timedelta(microseconds=1)
        return self.moment

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.pass_time(seconds)

    def pass_time(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


class Context:
    """What Lambda tells a function of its time."""

    def __init__(self, clock: HandClock, seconds: float) -> None:
        self._clock = clock
        self._end = clock.moment + timedelta(seconds=seconds)

    def get_remaining_time_in_millis(self) -> float:
        return (self._end - self._clock.moment).total_seconds() * 1000


class StageClients:
    """The clients of the functions; made once, since making them is slow, and lent to one stage after another."""

    def __init__(self) -> None:
        def client(name: str) -> Any:
            made = boto3.client(
                name,  # type: ignore[call-overload]
                region_name=REGION,
                aws_access_key_id="test",
                aws_secret_access_key="test",
                config=Config(retries={"mode": "standard", "total_max_attempts": 1}),
            )
            made.meta.events.register_first("before-call", self._before)
            made.meta.events.register_last("after-call", self._after)
            return made

        self.plan = Plan()
        self.fake: FakeBraket | None = None
        self.braket = client("braket")
        self.braket.meta.events.register_first("before-send.braket", self._answer)
        self.dynamodb = client("dynamodb")
        self.s3 = client("s3")
        self.ecr = client("ecr")
        self.logs = client("logs")
        self.cloudformation = client("cloudformation")
        self.s3.create_bucket(Bucket=ASSETS)
        self.s3.put_object(Bucket=ASSETS, Key="source.tar.gz", Body=SOURCE)
        self.s3.put_object(Bucket=ASSETS, Key="graph.adjlist", Body=GRAPH)
        self.ecr.create_repository(repositoryName=REPOSITORY)
        self.logs.create_log_group(logGroupName="/aws/braket/jobs")
        self.stages = 0

    def _answer(self, request: Any, **_: Any) -> Any:
        assert self.fake is not None
        return self.fake.answer(request)

    def _before(self, model: Any, **_: Any) -> Any:
        refused = self.plan.called(model.name)
        if refused is None:
            return None
        return SimpleNamespace(status_code=refused["ResponseMetadata"]["HTTPStatusCode"]), refused

    def _after(self, model: Any, **_: Any) -> None:
        self.plan.answered(model.name)


class Stage:
    """The stage, with the events that CloudFormation and EventBridge send."""

    def __init__(
        self,
        clients: StageClients,
        *,
        max_concurrent_jobs: int = 3,
        in_memory: bool = False,
        service: type[FakeBraket] = FakeBraket,
        **settings: Any,
    ) -> None:
        self.clock = HandClock()
        clients.stages += 1
        self.braket = clients.fake = service(now=self.clock.now, number=clients.stages)
        self.clients = clients
        self.plan = clients.plan = Plan()
        self.bucket = f"amazon-braket-hybrid-jobs-local-{clients.stages}"
        self.table = f"ledger-{clients.stages}"
        self.settings = Settings(
            stage="local",
            job_bucket=self.bucket,
            job_role_arn=f"arn:aws:iam::{ACCOUNT}:role/service-role/AmazonBraketJobsExecutionRole-HybridJobs-local",
            ledger_table=self.table,
            max_concurrent_jobs=max_concurrent_jobs,
            repository_name=REPOSITORY,
            region=REGION,
            **settings,
        )
        self.services: Services = Services(settings=self.settings, clients=self.clients, clock=self.clock)  # type: ignore[arg-type]
        self._number = 0
        self.memory = Memory(self.plan)
        if in_memory:
            self.services = MemoryServices.over(self.memory, self.services)
        else:
            self._create_resources()

    def _create_resources(self) -> None:
        self.clients.s3.create_bucket(Bucket=self.bucket)
        self.clients.dynamodb.create_table(
            TableName=self.table,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": "S"} for name in ("kind", "name", "open_since")
            ],
            KeySchema=[{"AttributeName": "kind", "KeyType": "HASH"}, {"AttributeName": "name", "KeyType": "RANGE"}],
            LocalSecondaryIndexes=[
                {
                    "IndexName": "open-launches",
                    "KeySchema": [
                        {"AttributeName": "kind", "KeyType": "HASH"},
                        {"AttributeName": "open_since", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        )
        self.plan.calls.clear()

    # Events.

    def event(
        self,
        kind: str,
        properties: dict[str, Any],
        *,
        logical_id: str = "JobA",
        physical_id: str | None = None,
        old: dict[str, Any] | None = None,
        stack_id: str = STACK,
        request_id: str | None = None,
        resource_type: str = "Custom::BraketHybridJob",
    ) -> dict[str, Any]:
        self._number += 1
        event: dict[str, Any] = {
            "RequestType": kind,
            "RequestId": request_id or f"request-{self._number}",
            "StackId": stack_id,
            "LogicalResourceId": logical_id,
            "ResourceType": resource_type,
            "ResponseURL": "https://example.invalid/pre-signed",
            "ResourceProperties": properties,
        }
        if physical_id is not None:
            event["PhysicalResourceId"] = physical_id
        if old is not None:
            event["OldResourceProperties"] = old
        return event

    def launch(self, event: dict[str, Any]) -> dict[str, Any]:
        from launch_job.handler import serve

        return serve(self.services, event, Context(self.clock, 240))

    def create(self, properties: dict[str, Any] | None = None, **where: Any) -> str:
        """Create a job and return its name."""
        answer = self.launch(self.event("Create", properties or properties_of(), **where))
        return str(answer["PhysicalResourceId"])

    def collect(self, event: dict[str, Any]) -> dict[str, Any]:
        from collect_result.handler import serve

        return serve(self.services, event, Context(self.clock, 240))

    def changed(self, arn: str, status: str = "COMPLETED") -> dict[str, Any]:
        return self.collect(
            {
                "source": "aws.braket",
                "detail-type": "Braket Job State Change",
                "resources": [arn],
                "detail": {"jobArn": arn, "status": status},
            }
        )

    def sweep(self) -> dict[str, Any]:
        return self.collect({"sweep": True})

    def deadline(self, seconds: float = 100.0) -> Deadline:
        return Deadline(self.clock, seconds)

    # What a test looks at.

    def ledger(self, name: str) -> Launch:
        launch = self.services.ledger.get(name)
        assert launch is not None
        return launch

    def record(self, name: str) -> dict[str, Any]:
        read = self.services.artifacts.read(f"records/{name}.json")
        assert read is not None
        Record.model_validate_json(read[0])
        return dict(json.loads(read[0]))

    def save_results(self, name: str, data: dict[str, Any], *, first: dict[str, bytes] | None = None) -> None:
        document = {
            "braketSchemaHeader": {"name": "braket.jobs_data.persisted_job_data", "version": "1"},
            "dataDictionary": data,
            "dataFormat": "plaintext",
        }
        files = {**(first or {}), "results.json": json.dumps(document).encode()}
        key = f"jobs/{name}/data/output/model.tar.gz"
        if isinstance(self.services, MemoryServices):
            self.memory.objects[key] = tar_gz(files)
        else:
            self.clients.s3.put_object(Bucket=self.bucket, Key=key, Body=tar_gz(files))


def tar_gz(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def document_of(name: str = "qaoa-18-cpu", **changes: Any) -> dict[str, Any]:
    """A launch document, as the stacks write it."""
    return {
        "name": name,
        "device": "local:pennylane/lightning.qubit",
        "entry_point": "qaoa_source.qaoa:main",
        "image": "base",
        "distribution": "none",
        "instance": {"type": "ml.m5.2xlarge", "count": 1, "volume_gb": 30},
        "max_runtime_seconds": 3600,
        "hyperparameters": {"p": "2", "parametrize_differentiable": "true"},
        "source": {"sha256": sha256(SOURCE)},
        "inputs": {"input-graph": [{"path": "gnm_18_24.adjlist", "sha256": sha256(GRAPH)}]},
        "checkpoints": True,
        "benchmark": None,
        **changes,
    }


def properties_of(
    document: dict[str, Any] | None = None, *, run: str = "1", price: Any = PRICE, **changes: Any
) -> dict[str, Any]:
    """The properties of a custom resource, all strings, as CloudFormation hands them on."""
    document = document or document_of()
    text = canonical_json(document)
    return {
        "ServiceToken": "arn:aws:lambda:us-east-1:000000000000:function:provider",
        "ServiceTimeout": "300",
        "SpecVersion": "1",
        "SpecHash": sha256(text.encode()),
        "Run": run,
        "Spec": text,
        "Price": canonical_json(price),
        "SourceArchive": f"s3://{ASSETS}/source.tar.gz",
        "InputFiles": {
            f"{channel}/{file['path']}": f"s3://{ASSETS}/graph.adjlist"
            for channel, files in document["inputs"].items()
            for file in files
        },
        **changes,
    }


def name_of(properties: dict[str, Any], *, logical_id: str = "JobA", stack_id: str = STACK, generation: int = 0) -> str:
    spec = json.loads(properties["Spec"])
    return Identity(spec["name"], stack_id, logical_id, properties["SpecHash"], properties["Run"]).name(generation)
