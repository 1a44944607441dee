"""Which image a job runs in, and how it gets into the engine."""

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from docker.errors import APIError, ImageNotFound

from hybridjobs.local.runners.base import JobRun
from hybridjobs.local.runners.failures import ClientFaultError
from hybridjobs.model.images import STOCK_ACCOUNT

_DEFAULT_REPOSITORY = "amazon-braket-base-jobs"
_URI = re.compile(
    r"(?P<host>(?P<account>\d+)\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com)/(?P<repository>[^:@]+)(?P<reference>[:@].+)"
)


@dataclass(frozen=True)
class WantedImage:
    """The image of a job as the job names it, and where the emulated registry has it (None: another account's)."""

    uri: str
    emulated: str | None


def wanted_image(run: JobRun) -> WantedImage:
    """Return the image that the request names, or the service's default.

    An image of the job's own account is in the registry of the embedded cloud, whose address (loopback, so that engines
    speak plain HTTP to it) takes the place of the ECR host name.
    """
    region, account = run.job_arn.split(":")[3:5]
    default = f"{STOCK_ACCOUNT}.dkr.ecr.{region}.amazonaws.com/{_DEFAULT_REPOSITORY}:latest"
    uri: str = run.request["algorithmSpecification"].get("containerImage", {}).get("uri", default)
    parts = _URI.fullmatch(uri)
    if parts is None or parts["account"] != account:
        return WantedImage(uri, None)
    registry = urlsplit(run.aws_environment["AWS_ENDPOINT_URL"]).netloc
    return WantedImage(uri, f"{registry}/{parts['repository']}{parts['reference']}")


def check_image_fits(uri: str, attributes: Mapping[str, Any], volume_bytes: int) -> None:
    """Raise ClientFaultError for an image that the job's instance could not hold or run; `attributes` are docker's."""
    if attributes["Architecture"] != "amd64":
        raise ClientFaultError(
            f"image '{uri}' is for {attributes['Architecture']}, and every instance type of Braket is x86-64. Build it"
            " with --platform linux/amd64"
        )
    if attributes["Size"] > volume_bytes:
        raise ClientFaultError(
            f"image '{uri}' unpacks to {attributes['Size'] / 1e9:.1f} GB, more than the job's volume of"
            f" {volume_bytes / (1 << 30):g} GiB. Raise volumeSizeInGb, or make the image smaller"
        )


def local_name(uri: str) -> str:
    """Return the name under which the engine keeps an image: the job's own, a digest as a tag.

    Engines know by digest only what they have pulled, and forget that with the registry's address.
    """
    named, _, digest = uri.partition("@")
    folder, slash, last = named.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{folder}{slash}{name}:{digest.replace(':', '-') or tag or 'latest'}"


class ContainerImages:
    """The images of an engine; one pull at a time."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lock = threading.Lock()

    def obtain(self, wanted: WantedImage, keep_going: Callable[[], bool]) -> Any:
        """Return the image (docker.models.images.Image), pulled from the emulated registry where that has it.

        What the registry holds now wins over an image of that name in the engine, which may stem from an earlier cloud;
        layers that the engine has are not transferred again. Images of other accounts are only looked for: the
        embedded cloud reaches no registry but its own. Raises ClientFaultError for an image that can't be had.
        """
        problem = "it belongs to another account, whose registry the embedded cloud does not reach"
        if wanted.emulated is not None:
            try:
                return self._pull(wanted.uri, wanted.emulated, keep_going)
            except APIError as error:
                problem = f"the registry of the embedded cloud does not give it: {error.explanation or error}"
        try:
            return self._known(wanted.uri)
        except ImageNotFound as error:
            raise ClientFaultError(
                f"image '{wanted.uri}' is not in the container engine, and {problem}. Pull it or build it under that"
                " name, push it to the embedded cloud, or run jobs as processes (HYBRIDJOBS_RUNNER=process)"
            ) from error

    def _known(self, uri: str) -> Any:
        try:
            return self._client.images.get(uri)
        except ImageNotFound:
            return self._client.images.get(local_name(uri))

    def _pull(self, uri: str, emulated: str, keep_going: Callable[[], bool]) -> Any:
        with self._lock:
            for progress in self._client.api.pull(emulated, stream=True, decode=True):
                _raise_error(progress)
                if not keep_going():
                    raise ClientFaultError(f"the job was stopped while image '{uri}' was pulled")
            image = self._client.images.get(emulated)
            # The port is another one in the next embedded cloud: only the name that the job uses is kept.
            repository, _, tag = local_name(uri).rpartition(":")
            image.tag(repository, tag)
            self._client.images.remove(emulated, noprune=True)
            return image


def _raise_error(progress: Mapping[str, Any]) -> None:
    """Errors after the pull has begun come as a line of progress."""
    if "error" in progress:
        raise APIError(progress["error"], explanation=progress["error"])
