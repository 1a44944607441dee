"""Which image a job runs, from what its spec says. No AWS here."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The images that Amazon Braket publishes, with their full tags of 2026-08: `latest` would change under a launch.
STOCK_REGISTRY = "292282985366"
STOCK_IMAGES = {
    "base": "amazon-braket-base-jobs:1.0-cpu-py312-ubuntu24.04",
    "pytorch": "amazon-braket-pytorch-jobs:2.8.0-gpu-py312-cu129-ubuntu22.04",
    "tensorflow": "amazon-braket-tensorflow-jobs:2.19.0-gpu-py312-cu125-ubuntu22.04",
    "cudaq": "amazon-braket-cudaq-jobs:0.14.0-cpu-py312-0.14.0-ubuntu24.04",
}

_PRIVATE = re.compile(
    r"(?P<registry>(?P<account>\d{10,14})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com)/"
    r"(?P<repository>[^:@]+)(?::(?P<tag>[^@]+))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


@dataclass(frozen=True)
class PrivateImage:
    """An image of a private repository; `reference` is its digest (`sha256:...`), or its tag where it has none."""

    account: str
    region: str
    registry: str
    repository: str
    reference: str

    @property
    def is_certain(self) -> bool:
        """Whether it is the same image for ever: a digest names it, not a tag."""
        return self.reference.startswith("sha256:")

    @property
    def is_stock(self) -> bool:
        """Whether it is one of those that Amazon Braket publishes."""
        return self.account == STOCK_REGISTRY

    def at(self, digest: str) -> str:
        """Return the address of that very image, whatever the tag comes to stand for later."""
        return f"{self.registry}/{self.repository}@{digest}"


def stock_image(name: str, region: str) -> str | None:
    """Return the address of one of Braket's own images in a region; None if the name isn't one of theirs."""
    image = STOCK_IMAGES.get(name)
    return None if image is None else f"{STOCK_REGISTRY}.dkr.ecr.{region}.amazonaws.com/{image}"


def private_image(uri: str) -> PrivateImage | None:
    """Split the address of an image that has a tag or a digest; None for every other text."""
    match = _PRIVATE.fullmatch(uri)
    reference = (match["digest"] or match["tag"]) if match else None
    if match is None or reference is None:
        return None
    return PrivateImage(match["account"], match["region"], match["registry"], match["repository"], reference)
