"""For which platforms an image of the registry is, as its manifest and its configuration say."""

from __future__ import annotations

import json
import time
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import urlopen

from botocore.exceptions import ClientError

from errors import LaunchError

if TYPE_CHECKING:
    from mypy_boto3_ecr import ECRClient

_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
# What BuildKit calls the entries of an index that are attestations, not images.
_ATTESTATION = "unknown/unknown"
# A configuration has kilobytes; what is larger is none, and the function has 512 MiB.
_LARGEST_CONFIGURATION = 1_000_000
# As long as one attempt of a call of AWS, see aws.clients: the first for each wait, the second for all of them.
_WAIT_SECONDS = 3
_DOWNLOAD_SECONDS = 10
_PIECE = 65_536


class UnreadableImageError(Exception):
    """Raised when nothing tells an image's platform; the text holds no address, since a download's is pre-signed."""


def image_platforms(client: ECRClient, repository: str, digest: str) -> frozenset[str]:
    """Return the platforms that an image is for, such as `linux/amd64`: those of all the images of an index.

    Raises:
        LaunchError: The registry does not give the image, so that nothing could pull it.
        UnreadableImageError: What it says of itself can't be reached, or names no platform.
    """
    manifest = _json_object(_manifest(client, repository, digest), "manifest")
    if "manifests" in manifest:
        return _platforms_of_index(manifest["manifests"])
    config = manifest.get("config")
    layer = config.get("digest") if isinstance(config, dict) else None
    if not isinstance(layer, str):
        raise UnreadableImageError("its manifest names no configuration")
    return frozenset({_platform(_json_object(_download(_address(client, repository, layer)), "configuration"))})


def _manifest(client: ECRClient, repository: str, digest: str) -> str:
    answer = client.batch_get_image(
        repositoryName=repository, imageIds=[{"imageDigest": digest}], acceptedMediaTypes=[*_INDEXES, *_MANIFESTS]
    )
    # An image comes once for each of its tags.
    for image in answer.get("images", []):
        return image.get("imageManifest", "")
    reasons = [f"{each.get('failureCode')}: {each.get('failureReason')}" for each in answer.get("failures", [])]
    raise LaunchError(
        f"the registry does not give the manifest of image {repository}@{digest} ({'; '.join(reasons) or 'no reason'})",
        remedy="Push the image again with `hybridjobs image push`",
    )


def _platforms_of_index(entries: Any) -> frozenset[str]:
    found: set[str] = set()
    for entry in entries if isinstance(entries, list) else []:
        # The key is optional in an index; an image that says nothing may be the wanted one.
        if not isinstance(entry, dict) or "platform" not in entry:
            found.add("")
        else:
            found.add(_platform(entry["platform"]))
    if "" in found and "linux/amd64" not in found:
        raise UnreadableImageError("an image of its index names no platform")
    return frozenset(found - {"", _ATTESTATION})


def _address(client: ECRClient, repository: str, layer: str) -> str:
    try:
        return client.get_download_url_for_layer(repositoryName=repository, layerDigest=layer)["downloadUrl"]
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code not in {"LayersNotFoundException", "LayerInaccessibleException"}:
            raise
        # Whoever pulls the image asks for the same.
        raise LaunchError(
            f"{code}: the registry lacks the configuration {layer} of an image in {repository}, so nothing can pull it",
            remedy="Push the image again with `hybridjobs image push`",
        ) from error


def _download(address: str) -> bytes:
    """Read a configuration, which no server can make endless, neither in bytes nor in time."""
    end = time.monotonic() + _DOWNLOAD_SECONDS
    content = b""
    try:
        with urlopen(address, timeout=_WAIT_SECONDS) as response:  # noqa: S310 - ECR itself names the address
            while piece := response.read1(_PIECE):
                content += piece
                if len(content) > _LARGEST_CONFIGURATION:
                    raise UnreadableImageError(f"its configuration has more than {_LARGEST_CONFIGURATION} bytes")
                if time.monotonic() > end:
                    raise UnreadableImageError(f"its configuration did not come within {_DOWNLOAD_SECONDS} s")
    except HTTPError as error:
        raise UnreadableImageError(f"its configuration was answered with HTTP {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:
        # Some of their texts repeat the address.
        raise UnreadableImageError(f"its configuration could not be downloaded: {type(error).__name__}") from None
    return content


def _json_object(text: str | bytes, what: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise UnreadableImageError(f"its {what} is no JSON object")
    return document


def _platform(document: Any) -> str:
    if isinstance(document, dict):
        match document.get("os"), document.get("architecture"):
            case str(system), str(architecture) if system and architecture:
                return f"{system}/{architecture}"
    raise UnreadableImageError("it names no operating system and architecture")
