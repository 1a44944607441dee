"""Small things to run in an embedded cloud: functions, stacks, jobs."""

import contextlib
import io
import json
import tarfile
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
from botocore.exceptions import ClientError

from hybridjobs.local.cloud import LocalCloud

ROOT = Path(__file__).resolve().parents[2]
BUCKET = "amazon-braket-tiny"
ROLE = "AmazonBraketJobsExecutionRole-Tiny"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "braket.amazonaws.com"}, "Action": "sts:AssumeRole"},
    ],
}


def tiny_project(root: Path) -> Path:
    """A project that has nothing but the CDK CLI."""
    (root / "node_modules").symlink_to(ROOT / "node_modules")
    return root


def create_function(cloud: LocalCloud, name: str, source: str, runtime: str = "python3.13") -> str:
    """Create a Lambda function of one module; return its ARN."""
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py" if runtime.startswith("python") else "index.js", source)
    answer = cloud.client("lambda").create_function(
        FunctionName=name,
        Runtime=runtime,
        Role="arn:aws:iam::000000000000:role/tiny",
        Handler="index.handle",
        Code={"ZipFile": code.getvalue()},
        Timeout=60,
    )
    return str(answer["FunctionArn"])


def invoke(cloud: LocalCloud, name: str, event: Mapping[str, Any] | None = None) -> Any:
    """Invoke a function and return what it returned."""
    answer = cloud.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event or {}).encode())
    return json.loads(answer["Payload"].read())


def start_job(cloud: LocalCloud, name: str, program: str, image: str | None = None) -> str:
    """Start a job of one module, with the bucket and role that it needs; return its ARN."""
    container = {"containerImage": {"uri": image}} if image else {}
    s3, iam = cloud.client("s3"), cloud.client("iam")
    s3.create_bucket(Bucket=BUCKET)
    with contextlib.suppress(ClientError):
        iam.create_role(RoleName=ROLE, Path="/service-role/", AssumeRolePolicyDocument=json.dumps(TRUST))
    source = io.BytesIO()
    with tarfile.open(fileobj=source, mode="w:gz") as archive:
        for path, content in (("tiny/__init__.py", b""), ("tiny/job.py", program.encode())):
            header = tarfile.TarInfo(path)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    s3.put_object(Bucket=BUCKET, Key="source.tar.gz", Body=source.getvalue())
    answer = cloud.client("braket").create_job(
        clientToken=name,
        jobName=name,
        roleArn=f"arn:aws:iam::000000000000:role/service-role/{ROLE}",
        algorithmSpecification={
            "scriptModeConfig": {
                "entryPoint": "tiny.job",
                "s3Uri": f"s3://{BUCKET}/source.tar.gz",
                "compressionType": "GZIP",
            },
            **container,
        },
        outputDataConfig={"s3Path": f"s3://{BUCKET}/jobs/{name}/data"},
        checkpointConfig={"s3Uri": f"s3://{BUCKET}/jobs/{name}/checkpoints"},
        instanceConfig={"instanceType": "ml.m5.large", "volumeSizeInGb": 1},
        deviceConfig={"device": "local:none/none"},
        stoppingCondition={"maxRuntimeInSeconds": 600},
    )
    return str(answer["jobArn"])


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether `condition` holds before the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


def alive(process: psutil.Process) -> bool:
    """Whether the process runs; one that has ended but was not collected by its parent does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
