"""What the launcher finds out about an image before a job is paid for: digest, size and platform."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from aws import image_platforms
from aws.images import Images
from errors import LaunchError

REPOSITORY = "amazon-braket-hybrid-jobs-local"
DIGEST = "sha256:" + "a" * 64
CONFIGURATION = "sha256:" + "b" * 64
SIGNATURE = "X-Amz-Signature=0123456789abcdef"
GOES_ON = "the image is launched without a look at its platform"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_IMAGE = "application/vnd.oci.image.manifest.v1+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_IMAGE = "application/vnd.docker.distribution.manifest.v2+json"
OCI_CONFIGURATION = "application/vnd.oci.image.config.v1+json"
DOCKER_CONFIGURATION = "application/vnd.docker.container.image.v1+json"


class Registry:
    """A stubbed ECR that holds one image, and the server from which it has configurations downloaded."""

    def __init__(self, stub: Stubber, client: Any) -> None:
        self.stub = stub
        self.images = Images(client)
        self.downloads = 0
        self.answer: tuple[int, bytes] = (200, b"")
        self.respond: Callable[[BaseHTTPRequestHandler], None] = self._respond
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.downloads += 1
                registry.respond(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/configuration?{SIGNATURE}"

    def _respond(self, request: BaseHTTPRequestHandler) -> None:
        status, content = self.answer
        request.send_response(status)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def describes(self, size: int = 1_000_000, name: dict[str, str] | None = None) -> None:
        details = [{"imageDigest": DIGEST, "imageSizeInBytes": size}]
        asked = {"repositoryName": REPOSITORY, "imageIds": [name or {"imageTag": "1"}]}
        self.stub.add_response("describe_images", {"imageDetails": details}, asked)

    def gives(self, *manifests: str, failures: tuple[dict[str, str], ...] = ()) -> None:
        identity = {"imageDigest": DIGEST}
        self.stub.add_response(
            "batch_get_image",
            {
                "images": [{"imageId": identity, "imageManifest": manifest} for manifest in manifests],
                "failures": [{"imageId": identity, **failure} for failure in failures],
            },
            {
                "repositoryName": REPOSITORY,
                "imageIds": [identity],
                "acceptedMediaTypes": [OCI_INDEX, DOCKER_LIST, OCI_IMAGE, DOCKER_IMAGE],
            },
        )

    def names_download(self) -> None:
        self.stub.add_response(
            "get_download_url_for_layer",
            {"downloadUrl": self.address, "layerDigest": CONFIGURATION},
            {"repositoryName": REPOSITORY, "layerDigest": CONFIGURATION},
        )

    def holds(self, configuration: object) -> None:
        content = configuration if isinstance(configuration, bytes) else json.dumps(configuration).encode()
        self.answer = (200, content)

    def digest(self) -> str:
        found = self.images.digest(REPOSITORY, "1", 30)
        self.stub.assert_no_pending_responses()
        return found


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def registry() -> Iterator[Registry]:
    client = boto3.client("ecr", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
    with Stubber(client) as stub:
        made = Registry(stub, client)
        with running(made.server):
            yield made


def image(media_type: str = OCI_IMAGE) -> str:
    kind = OCI_CONFIGURATION if media_type == OCI_IMAGE else DOCKER_CONFIGURATION
    config = {"mediaType": kind, "digest": CONFIGURATION, "size": 100}
    return json.dumps({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": []})


def index(*platforms: str | None, media_type: str = OCI_INDEX) -> str:
    entries = []
    for number, platform in enumerate(platforms):
        entry: dict[str, Any] = {"mediaType": OCI_IMAGE, "digest": f"sha256:{number:064}", "size": 100}
        if platform is not None:
            system, architecture = platform.split("/")
            entry["platform"] = {"os": system, "architecture": architecture}
        entries.append(entry)
    return json.dumps({"schemaVersion": 2, "mediaType": media_type, "manifests": entries})


def configuration(platform: str) -> dict[str, object]:
    system, architecture = platform.split("/")
    return {"architecture": architecture, "os": system, "config": {}, "rootfs": {"type": "layers", "diff_ids": []}}


def test_an_image_that_no_volume_of_the_job_can_hold_is_refused_before_it_is_paid_for(registry: Registry) -> None:
    for reference, name in (("1", {"imageTag": "1"}), (DIGEST, {"imageDigest": DIGEST})):
        registry.describes(31_000_000_000, name)
        registry.gives(index("linux/amd64"))
        assert registry.images.digest(REPOSITORY, reference, 31) == DIGEST
        registry.describes(31_000_000_000, name)
        with pytest.raises(LaunchError, match=r"31.0 GB packed, the job's volume 30 GB") as caught:
            registry.images.digest(REPOSITORY, reference, 30)
        assert "instance.volume_gb to 96" in str(caught.value)


@pytest.mark.parametrize("media_type", [OCI_IMAGE, DOCKER_IMAGE])
def test_a_single_image_is_told_by_its_configuration(registry: Registry, media_type: str) -> None:
    registry.describes()
    registry.gives(image(media_type))
    registry.names_download()
    registry.holds(configuration("linux/amd64"))
    assert registry.digest() == DIGEST
    assert registry.downloads == 1


@pytest.mark.parametrize("media_type", [OCI_IMAGE, DOCKER_IMAGE])
@pytest.mark.parametrize("platform", ["linux/arm64", "windows/amd64"])
def test_an_image_for_another_platform_is_refused(registry: Registry, media_type: str, platform: str) -> None:
    registry.describes()
    registry.gives(image(media_type))
    registry.names_download()
    registry.holds(configuration(platform))
    with pytest.raises(LaunchError) as caught:
        registry.digest()
    assert f"image {REPOSITORY}:1 is for {platform}, while every instance" in str(caught.value)
    for remedy in ("docker build --platform linux/amd64", "hybridjobs image build", "hybridjobs image push"):
        assert remedy in str(caught.value)


@pytest.mark.parametrize("media_type", [OCI_INDEX, DOCKER_LIST])
@pytest.mark.parametrize(
    "platforms",
    [
        ("linux/amd64",),
        ("linux/arm64", "linux/amd64", "unknown/unknown", "unknown/unknown"),
        (None, "linux/amd64"),
    ],
)
def test_an_index_with_the_platform_is_taken_without_a_download(
    registry: Registry, media_type: str, platforms: tuple[str | None, ...]
) -> None:
    registry.describes()
    registry.gives(index(*platforms, media_type=media_type))
    assert registry.digest() == DIGEST
    assert registry.downloads == 0


@pytest.mark.parametrize(
    ("platforms", "said"),
    [
        (("linux/arm64", "unknown/unknown"), "is for linux/arm64,"),
        (("linux/s390x", "linux/arm64"), "is for linux/arm64, linux/s390x,"),
        (("unknown/unknown",), "is for no platform,"),
        ((), "is for no platform,"),
    ],
)
@pytest.mark.parametrize("media_type", [OCI_INDEX, DOCKER_LIST])
def test_an_index_without_the_platform_is_refused(
    registry: Registry, media_type: str, platforms: tuple[str, ...], said: str
) -> None:
    registry.describes()
    registry.gives(index(*platforms, media_type=media_type))
    with pytest.raises(LaunchError, match=said):
        registry.digest()


def test_an_image_with_several_tags_is_read_once(registry: Registry) -> None:
    registry.describes()
    registry.gives(index("linux/amd64"), index("linux/amd64"))
    assert registry.digest() == DIGEST


UNREADABLE: dict[str, tuple[int, bytes]] = {
    "HTTP 403": (403, b"<Error>AccessDenied</Error>"),
    "HTTP 503": (503, b""),
    "more than 1000000 bytes": (200, b" " * 1_000_001),
    "its configuration is no JSON object": (200, b"<html>a proxy</html>"),
    "is no JSON object": (200, b"[" * 200_000),
    "names no operating system and architecture": (200, b'{"os": "linux", "architecture": ""}'),
}


@pytest.mark.parametrize("reason", UNREADABLE)
def test_a_configuration_that_can_t_be_read_stops_no_launch_and_leaves_a_trace_without_the_address(
    registry: Registry, capsys: pytest.CaptureFixture[str], reason: str
) -> None:
    registry.describes()
    registry.gives(image())
    registry.names_download()
    registry.answer = UNREADABLE[reason]
    assert registry.digest() == DIGEST
    check_trace(capsys.readouterr().out, reason)


def check_trace(output: str, reason: str) -> None:
    (line,) = [json.loads(line) for line in output.splitlines()]
    assert (line["message"], line["image"], line["digest"]) == (GOES_ON, f"{REPOSITORY}:1", DIGEST)
    assert reason in line["reason"]
    assert SIGNATURE not in output
    assert "127.0.0.1" not in output


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/", "no address", "http://127.0.0.1/a\nb?"])
def test_a_server_that_can_t_be_reached_stops_no_launch(
    registry: Registry, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    registry.address = f"{address}{SIGNATURE}"
    registry.describes()
    registry.gives(image())
    registry.names_download()
    assert registry.digest() == DIGEST
    check_trace(capsys.readouterr().out, "could not be downloaded")


def test_a_server_that_stops_or_drips_is_left_in_time(
    registry: Registry, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert image_platforms._WAIT_SECONDS <= image_platforms._DOWNLOAD_SECONDS <= 13, "as long as a try of a call of AWS"
    monkeypatch.setattr(image_platforms, "_WAIT_SECONDS", 0.2)
    monkeypatch.setattr(image_platforms, "_DOWNLOAD_SECONDS", 0.4)
    left = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        while not left.wait(0.05):
            request.wfile.write(b" ")
            request.wfile.flush()

    def stop(request: BaseHTTPRequestHandler) -> None:
        left.wait(5)

    for respond, reason in ((stop, "could not be downloaded"), (drip, "did not come within")):
        registry.respond = respond
        registry.describes()
        registry.gives(image())
        registry.names_download()
        begun = time.monotonic()
        try:
            assert registry.digest() == DIGEST
        finally:
            left.set()
        assert time.monotonic() - begun < 3
        left.clear()
        check_trace(capsys.readouterr().out, reason)


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ("{", "its manifest is no JSON object"),
        ('{"schemaVersion": 2, "layers": []}', "its manifest names no configuration"),
        (index("linux/arm64", None), "an image of its index names no platform"),
        ('{"manifests": [{"platform": "linux/arm64"}]}', "names no operating system and architecture"),
    ],
)
def test_a_manifest_that_says_nothing_of_a_platform_stops_no_launch(
    registry: Registry, capsys: pytest.CaptureFixture[str], manifest: str, reason: str
) -> None:
    registry.describes()
    registry.gives(manifest)
    assert registry.digest() == DIGEST
    check_trace(capsys.readouterr().out, reason)


@pytest.mark.parametrize("code", ["LayersNotFoundException", "LayerInaccessibleException"])
def test_an_image_whose_configuration_the_registry_lacks_is_refused(registry: Registry, code: str) -> None:
    registry.describes()
    registry.gives(image())
    registry.stub.add_client_error("get_download_url_for_layer", code)
    with pytest.raises(LaunchError, match=rf"{code}: .*{CONFIGURATION}.*`hybridjobs image push`"):
        registry.digest()


def test_an_image_that_the_registry_does_not_give_is_refused(registry: Registry) -> None:
    registry.describes()
    registry.gives(failures=({"failureCode": "KmsError", "failureReason": "the key is disabled"},))
    with pytest.raises(LaunchError, match=r"KmsError: the key is disabled.*`hybridjobs image push`"):
        registry.digest()


@pytest.mark.parametrize("operation", ["batch_get_image", "get_download_url_for_layer"])
def test_a_call_that_is_not_allowed_is_no_unreadable_image(registry: Registry, operation: str) -> None:
    registry.describes()
    if operation == "get_download_url_for_layer":
        registry.gives(image())
    registry.stub.add_client_error(operation, "AccessDeniedException")
    with pytest.raises(ClientError, match="AccessDeniedException"):
        registry.digest()
