"""A storage and log service on loopback, and jobs made of a few lines of source."""

import contextlib
import gzip
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest

from hybridjobs.local.runners.base import JobRun, Outcome, Phase
from hybridjobs.local.runners.job import HostedJob, JobSettings
from hybridjobs.local.runners.machine import free_port
from hybridjobs.local.runners.process import ProcessRunner

QUICK = JobSettings(watch_seconds=0.2, grace_seconds=2.0, log_seconds=0.05)
BUCKET = "amazon-braket-runner-test"


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """Pack files as the SDK packs a source folder."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as bundle:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            header = tarfile.TarInfo(name)
            header.size = len(data)
            bundle.addfile(header, io.BytesIO(data))
    return raw.getvalue()


@dataclass
class Ended:
    """What a finished job left."""

    run: JobRun
    outcome: Outcome
    phases: list[Phase]
    log: str

    @property
    def reason(self) -> str:
        assert self.outcome.failure_reason is not None, self.log
        return self.outcome.failure_reason

    def host(self, name: str = "algo-1") -> Path:
        return self.run.folder / name


@dataclass
class Workbench:
    """Starts jobs against the emulated services."""

    folder: Path
    environment: Mapping[str, str]
    s3: Any
    logs: Any
    settings: JobSettings = QUICK
    phases: list[Phase] = field(default_factory=list)
    runners: dict[JobSettings, ProcessRunner] = field(default_factory=dict)
    jobs: list[HostedJob] = field(default_factory=list)

    def run(self, files: Mapping[str, str | bytes] | bytes, entry_point: str = "job.main", **changes: Any) -> JobRun:
        name = f"job-{uuid.uuid4().hex[:8]}"
        key = f"{name}/source.tar.gz"
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=files if isinstance(files, bytes) else archive(files))
        request = {
            "jobName": name,
            "deviceConfig": {"device": "local:pennylane/lightning.qubit"},
            "instanceConfig": {"instanceType": "ml.m5.large", "volumeSizeInGb": 1, "instanceCount": 1},
            "outputDataConfig": {"s3Path": f"s3://{BUCKET}/{name}/data"},
            "algorithmSpecification": {
                "scriptModeConfig": {
                    "entryPoint": entry_point,
                    "s3Uri": f"s3://{BUCKET}/{key}",
                    "compressionType": "GZIP",
                }
            },
            **changes,
        }
        job_id = str(uuid.uuid4())
        arn = f"arn:aws:braket:us-east-1:000000000000:job/{job_id}"
        return JobRun(name, job_id, arn, request, self.folder / name, self.environment)

    def start(self, run: JobRun, settings: JobSettings | None = None) -> HostedJob:
        self.phases = []
        wanted = settings or self.settings
        runner = self.runners.setdefault(wanted, ProcessRunner(settings=wanted))
        job = runner.start(run, self.phases.append)
        self.jobs.append(job)
        return job

    def finish(self, run: JobRun, job: HostedJob) -> Ended:
        outcome = job.wait()
        file = run.folder / "logs" / "algo-1.log"
        return Ended(run, outcome, self.phases, file.read_text() if file.exists() else "")

    def complete(self, files: Mapping[str, str | bytes] | bytes, entry_point: str = "job.main", **more: Any) -> Ended:
        settings = more.pop("settings", None)
        run = self.run(files, entry_point, **more)
        return self.finish(run, self.start(run, settings))

    def results(self, ended: Ended) -> dict[str, bytes]:
        assert ended.outcome.failure_reason is None, ended.outcome.failure_reason + ended.log
        location = ended.run.request["outputDataConfig"]["s3Path"].removeprefix(f"s3://{BUCKET}/")
        body = self.s3.get_object(Bucket=BUCKET, Key=f"{location}/output/model.tar.gz")["Body"].read()
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(body))) as bundle:
            return {item.name: bundle.extractfile(item).read() for item in bundle}  # type: ignore[union-attr]

    def keys(self, prefix: str) -> set[str]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return {item["Key"] for page in pages for item in page.get("Contents", [])}

    def cloud_log(self, run: JobRun, host: str = "algo-1") -> list[str]:
        stream = f"{run.job_name}/{run.job_id}/{host}"
        events = self.logs.get_log_events(logGroupName="/aws/braket/jobs", logStreamName=stream, startFromHead=True)
        return [event["message"] for event in events["events"]]


def processes_of(run: JobRun) -> list[psutil.Process]:
    """Return every living process whose environment names the job's folder."""
    found = []
    for process in psutil.process_iter():
        try:
            marker = process.environ().get("BRAKET_ML_ROOT", "")
            if marker.startswith(str(run.folder)) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("services")
    port = free_port()
    settings = {
        "BIND_HOST": "127.0.0.1",
        "DOCKER_HOST": f"unix://{folder}/no-engine.sock",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "S3_DATA_DIR": f"{folder}/s3",
        "SFTP_ENABLED": "0",
        "STATE_DIR": f"{folder}/state",
        "TMPDIR": str(folder),
    }
    environment = {"PATH": os.environ["PATH"], **settings}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "ministack"], env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            break
        assert server.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < deadline, "the storage and log service does not answer"
        time.sleep(0.1)
    yield {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    server.kill()
    server.wait()


@pytest.fixture
def workbench(services: dict[str, str], tmp_path: Path) -> Iterator[Workbench]:
    session = boto3.session.Session("test", "test", region_name="us-east-1")
    s3 = session.client("s3", endpoint_url=services["AWS_ENDPOINT_URL"])
    s3.create_bucket(Bucket=BUCKET)
    bench = Workbench(tmp_path, services, s3, session.client("logs", endpoint_url=services["AWS_ENDPOINT_URL"]))
    yield bench
    for job in bench.jobs:
        job.stop()
        job.wait()


def read_json(text: bytes) -> Any:
    return json.loads(text)
