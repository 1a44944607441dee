"""Archives and object keys that try to write outside a job's folder, sent as a user would, to jobs that really run."""

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybridjobs.local.braket.cloud_facts import emulated_client
from hybridjobs.local.braket.endpoint import EndpointSettings
from hybridjobs.local.runners.job import JobSettings
from hybridjobs.local.runners.process import ProcessRunner
from tests.local.braket.fake_cloud import BUCKET, VALID_REQUEST, Cloud, changed

VOLUME_BYTES = 4 << 20
LIMITS = EndpointSettings(max_concurrent_jobs=20, instance_quotas={"ml.m5.large": 20})
CODE = b"print('job code ran')\n"


def packed(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for header, content in [(tarfile.TarInfo("job/main.py"), CODE), *members]:
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return raw.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, target
    return header


def zipped(name: str, content: bytes) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("job/main.py", CODE)
        archive.writestr(name, content)
    return raw.getvalue()


def archives(outside: Path) -> dict[str, tuple[bytes, str]]:
    """Return archives by the key of their object, each with what the failure reason must say."""
    climbing, bomb = "would be written outside the job's folder", f"unpacks to more than {VOLUME_BYTES} bytes"
    into_link = (member("job/way", tarfile.SYMTYPE, str(outside)), b""), (member("job/way/escaped"), b"data")
    return {
        "climbing.tar.gz": (packed((member("../" * 12 + str(outside)[1:] + "/escaped"), b"data")), climbing),
        "absolute.tar.gz": (packed((member(f"{outside}/escaped"), b"data")), climbing),
        "link.tar.gz": (packed(*into_link), "is a link"),
        "hard-link.tar.gz": (packed((member("job/shadow", tarfile.LNKTYPE, "/etc/shadow"), b"")), "is a link"),
        "device.tar.gz": (packed((member("job/device", tarfile.CHRTYPE), b"")), "is a device or pipe"),
        "pipe.tar.gz": (packed((member("job/pipe", tarfile.FIFOTYPE), b"")), "is a device or pipe"),
        "bomb.tar.gz": (packed((member("job/zeros"), bytes(8 * VOLUME_BYTES))), bomb),
        "bomb.zip": (zipped("job/zeros", bytes(8 * VOLUME_BYTES)), bomb),
        "climbing.zip": (zipped("../" * 12 + str(outside)[1:] + "/escaped", b"data"), climbing),
    }


@pytest.fixture
def cloud(start_cloud: Callable[..., Cloud], aws: dict[str, str]) -> Cloud:
    # So seldom that it is the unpacking that stops a bomb, not the look at the volume.
    small = JobSettings(watch_seconds=60.0, grace_seconds=1.0, largest_volume_bytes=VOLUME_BYTES)
    return start_cloud(aws_environment=aws, runner=ProcessRunner(settings=small), settings=LIMITS)


def logged(cloud: Cloud) -> str:
    return "".join(file.read_text() for file in cloud.folder.glob("jobs/*/logs/*.log"))


def test_archives_that_try_to_escape_fail_their_jobs_and_write_nothing_outside(
    cloud: Cloud, aws: dict[str, str], tmp_path: Path
) -> None:
    s3 = emulated_client("s3", aws)
    outside = tmp_path / "outside"
    outside.mkdir()
    jobs = {}
    for number, (key, (archive, complaint)) in enumerate(archives(outside).items()):
        s3.put_object(Bucket=BUCKET, Key=f"hostile/{key}", Body=archive)
        script = {"entryPoint": "job.main", "s3Uri": f"s3://{BUCKET}/hostile/{key}", "compressionType": "GZIP"}
        request = changed("algorithmSpecification.scriptModeConfig", script)
        jobs[cloud.create(changed("inputDataConfig", None, request), jobName=f"hostile-{number}")] = complaint
    for arn, complaint in jobs.items():
        described = cloud.wait(arn, "FAILED", "COMPLETED")
        assert described["failureReason"].startswith("AlgorithmError: UnsafeArchive: ")
        assert complaint in described["failureReason"]
    assert list(outside.iterdir()) == []
    assert "job code ran" not in logged(cloud)
    sizes = [file.stat().st_size for file in cloud.folder.rglob("zeros")]
    assert all(size <= VOLUME_BYTES for size in sizes)


def test_object_keys_that_try_to_escape_fail_their_jobs_and_write_nothing_outside(
    cloud: Cloud, aws: dict[str, str], tmp_path: Path
) -> None:
    s3 = emulated_client("s3", aws)
    s3.put_object(Bucket=BUCKET, Key="keys/source.tar.gz", Body=packed())
    script = {"entryPoint": "job.main", "s3Uri": f"s3://{BUCKET}/keys/source.tar.gz", "compressionType": "GZIP"}
    jobs = []
    for number, name in enumerate(
        [f"{'../' * 12}{str(tmp_path)[1:]}/escaped", f"/{tmp_path}/escaped", "a/./../escaped"]
    ):
        s3.put_object(Bucket=BUCKET, Key=f"keys/inputs-{number}/{name}", Body=b"data")
        inputs = [
            {"channelName": "data", "dataSource": {"s3DataSource": {"s3Uri": f"s3://{BUCKET}/keys/inputs-{number}/"}}}
        ]
        request: Any = changed(
            "algorithmSpecification.scriptModeConfig", script, {**VALID_REQUEST, "inputDataConfig": inputs}
        )
        jobs.append(cloud.create(request, jobName=f"keys-{number}"))
        s3.put_object(Bucket=BUCKET, Key=f"keys/checkpoints-{number}/{name}", Body=b"data")
        checkpoints = {"s3Uri": f"s3://{BUCKET}/keys/checkpoints-{number}", "localPath": "/opt/jobs/checkpoints"}
        request = changed("checkpointConfig", checkpoints, changed("inputDataConfig", None, request))
        jobs.append(cloud.create(request, jobName=f"checkpoint-keys-{number}"))
    for arn in jobs:
        reason = cloud.wait(arn, "FAILED", "COMPLETED")["failureReason"]
        assert reason.startswith("ClientError: object key 'keys/")
        assert "can't be stored as a file below its folder" in reason
    assert not (tmp_path / "escaped").exists()
    assert list(cloud.folder.rglob("escaped")) == []
    assert "job code ran" not in logged(cloud)
