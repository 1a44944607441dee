import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hybridjobs.local.braket.cloud_facts import emulated_client
from tests.local.braket.fake_cloud import BUCKET, REGION, REPOSITORY, ROLE_NAME, ROLE_PATH, Cloud

TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "braket.amazonaws.com"}, "Action": "sts:AssumeRole"},
    ],
}

MANIFEST = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json"})


@pytest.fixture
def start_cloud(tmp_path: Path) -> Iterator[Callable[..., Cloud]]:
    clouds: list[Cloud] = []

    def start(**options: Any) -> Cloud:
        clouds.append(Cloud(options.pop("folder", tmp_path / f"cloud-{len(clouds)}"), **options))
        return clouds[-1]

    yield start
    for cloud in clouds:
        cloud.stop()


@pytest.fixture
def cloud(start_cloud: Callable[..., Cloud]) -> Cloud:
    return start_cloud()


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables of an emulated AWS that has the bucket and the role of the valid request."""
    port = free_port()
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }
    settings = {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "IOT_MTLS_ENABLED": "0",
        "TMPDIR": str(tmp_path_factory.mktemp("emulator")),
    }
    emulator = subprocess.Popen(
        [sys.executable, "-m", "ministack"],
        env=os.environ | settings,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_listener(port)
        emulated_client("s3", environment).create_bucket(Bucket=BUCKET)
        emulated_client("iam", environment).create_role(
            Path=ROLE_PATH, RoleName=ROLE_NAME, AssumeRolePolicyDocument=json.dumps(TRUST)
        )
        images = emulated_client("ecr", environment)
        images.create_repository(repositoryName=REPOSITORY)
        images.put_image(repositoryName=REPOSITORY, imageTag="1", imageManifest=MANIFEST)
        yield environment
    finally:
        emulator.terminate()
        emulator.wait(30)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_for_listener(port: int) -> None:
    pause = threading.Event()
    for _ in range(600):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        pause.wait(0.1)
    raise AssertionError(f"no emulator on port {port}")
