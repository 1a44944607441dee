"""Data-parallel jobs through CreateJob at the Braket endpoint, on hosts that are real process trees."""

import gzip
import io
import json
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psutil

from hybridjobs.local.braket.cloud_facts import emulated_client
from hybridjobs.model.source_archive import build_source_archive
from tests.jobs.qml.job_run import LIGHTNING, SMALL, SONAR, SOURCE
from tests.local.braket.fake_cloud import BUCKET, REGION, VALID_REQUEST, Cloud

IMAGE = f"292282985366.dkr.ecr.{REGION}.amazonaws.com/amazon-braket-pytorch-jobs:latest"
ENABLED = {"sagemaker_distributed_dataparallel_enabled": "true", "sagemaker_instance_type": "ml.m5.large"}
TERMINAL = ("COMPLETED", "FAILED", "CANCELLED")
PATIENCE_SECONDS = 200


@dataclass
class EndpointJobs:
    """Jobs of one endpoint; all share a checkpoint location, so that each can continue the others."""

    cloud: Cloud
    aws: Mapping[str, str]

    def __post_init__(self) -> None:
        self.s3 = emulated_client("s3", self.aws)
        self.put("qml/source.tar.gz", build_source_archive(SOURCE).bytes)
        self.put("qml/sonar/sonar.all-data", SONAR.read_bytes())

    def put(self, key: str, content: bytes) -> None:
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=content)

    def get(self, key: str) -> bytes:
        return bytes(self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())

    def create(self, name: str, hosts: int, **hyperparameters: str) -> str:
        script = {
            "entryPoint": "qml_source.train_dp",
            "s3Uri": f"s3://{BUCKET}/qml/source.tar.gz",
            "compressionType": "GZIP",
        }
        data = {"s3DataSource": {"s3Uri": f"s3://{BUCKET}/qml/sonar/"}}
        request = {
            **VALID_REQUEST,
            "jobName": name,
            "algorithmSpecification": {"scriptModeConfig": script, "containerImage": {"uri": IMAGE}},
            "inputDataConfig": [{"channelName": "input-data", "dataSource": data}],
            "outputDataConfig": {"s3Path": f"s3://{BUCKET}/qml/{name}"},
            "checkpointConfig": {"s3Uri": f"s3://{BUCKET}/qml/checkpoints", "localPath": "/opt/jobs/checkpoints"},
            "instanceConfig": {"instanceType": "ml.m5.large", "volumeSizeInGb": 1, "instanceCount": hosts},
            "deviceConfig": {"device": LIGHTNING},
            "hyperParameters": {**SMALL, **ENABLED, **hyperparameters},
        }
        return str(self.cloud.create(request))

    def ended(self, arn: str) -> Mapping[str, Any]:
        """The job's description once it has ended."""
        description: Mapping[str, Any] = {}

        def over() -> bool:
            nonlocal description
            description = self.cloud.braket.get_job(jobArn=arn)
            return description["status"] in TERMINAL

        wait_for(over)
        return description

    def log(self, arn: str, name: str, host: str = "algo-1") -> list[str]:
        logs = emulated_client("logs", self.aws)
        stream = f"{name}/{arn.rpartition('/')[2]}/{host}"
        try:
            answer = logs.get_log_events(logGroupName="/aws/braket/jobs", logStreamName=stream, startFromHead=True)
        except logs.exceptions.ResourceNotFoundException:
            return []
        return [event["message"] for event in answer["events"]]

    def epochs(self, arn: str, name: str) -> int:
        """How many epochs the log tells of."""
        return sum("Metrics - " in line and "training_loss" in line for line in self.log(arn, name))

    def results(self, name: str) -> dict[str, bytes]:
        """The files in the job's model.tar.gz."""
        content = gzip.decompress(self.get(f"qml/{name}/output/model.tar.gz"))
        with tarfile.open(fileobj=io.BytesIO(content)) as bundle:
            return {item.name: bundle.extractfile(item).read() for item in bundle}  # type: ignore[union-attr]

    def result(self, name: str) -> dict[str, Any]:
        return dict(json.loads(self.results(name)["results.json"])["dataDictionary"])


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.1)


def processes(name: str, host: str | None = None, role: str = "") -> Iterator[psutil.Process]:
    """The living processes of a job, on one of its hosts, whose command line holds `role`."""
    for process in psutil.process_iter():
        try:
            variables = process.environ()
            belongs = variables.get("AMZN_BRAKET_JOB_NAME") == name and host in (None, variables.get("SM_CURRENT_HOST"))
            if belongs and process.status() != psutil.STATUS_ZOMBIE and role in " ".join(process.cmdline()):
                yield process
        except psutil.Error:
            continue
