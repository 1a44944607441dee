"""The container image of a job: one of Braket's own, one built from this project, or one in a private repository."""

import re
from dataclasses import dataclass
from typing import Final

from hybridjobs.model.errors import SpecError, closest
from hybridjobs.model.instances import REGIONS

STOCK_IMAGES: Final = ("base", "pytorch", "tensorflow", "cudaq")
# Owns the registry of Braket's own images in every region.
STOCK_ACCOUNT: Final = "292282985366"
LONGEST_IMAGE_URI: Final = 255

_ASSET: Final = re.compile(r"asset:(?P<folder>[a-z0-9][a-z0-9._-]*)(:(?P<target>[A-Za-z0-9][A-Za-z0-9._-]*))?")
_REPOSITORY: Final = r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
_ECR: Final = re.compile(
    rf"(?P<account>\d{{12}})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com/(?P<repository>{_REPOSITORY})"
    r"(?:(?P<digest>@sha256:[0-9a-f]{64})|:(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?"
)
_CHOICES: Final = (
    'Use "base", "pytorch", "tensorflow" or "cudaq" for an image of Braket, "asset:<folder in container_assets>" for '
    "one built from this project, or <account>.dkr.ecr.<region>.amazonaws.com/<repository>@sha256:<digest>"
)


@dataclass(frozen=True)
class StockImage:
    """An image that Braket publishes; `name` is one of STOCK_IMAGES."""

    name: str


@dataclass(frozen=True)
class AssetImage:
    """An image built from `container_assets/<folder>/Dockerfile`, up to its stage `target` if one is named."""

    folder: str
    target: str | None = None


@dataclass(frozen=True)
class EcrImage:
    """An image in a private ECR repository; exactly one of `tag` and `digest` (`sha256:...`) is set."""

    uri: str
    account: str
    region: str
    repository: str
    tag: str | None = None
    digest: str | None = None


Image = StockImage | AssetImage | EcrImage


def parse_image(image: str) -> Image:
    """Read a job's `image` key.

    Raises SpecError for a reference that CreateJob would refuse, and for one that names no certain image: the tag
    `latest` moves, so the job that was tested would not be the one that is paid for.
    """
    if image in STOCK_IMAGES:
        return StockImage(name=image)
    if image.startswith("asset:"):
        return _parse_asset(image)
    if "/" not in image and ":" not in image:
        match = closest(image, STOCK_IMAGES)
        raise _refused(image, "this names no image", f'Did you mean "{match}"?' if match else _CHOICES)
    return _parse_ecr(image)


def _parse_asset(image: str) -> AssetImage:
    match = _ASSET.fullmatch(image)
    if match is None:
        raise _refused(
            image,
            "this names no folder of container_assets",
            'Write "asset:<folder>" or "asset:<folder>:<target stage>", such as "asset:pennylane:gpu"',
        )
    return AssetImage(folder=match["folder"], target=match["target"])


def _parse_ecr(image: str) -> EcrImage:
    match = _ECR.fullmatch(image)
    if match is None:
        raise _refused(image, "Braket runs images of private ECR repositories only, and this is none", _CHOICES)
    if len(image) > LONGEST_IMAGE_URI:
        raise _refused(
            image,
            f"an image URI may have {LONGEST_IMAGE_URI} characters, and this has {len(image)}",
            "Shorten the repository's name or the tag",
        )
    if match["tag"] is None and match["digest"] is None:
        raise _refused(image, "this names no tag and no digest", "Append @sha256:<digest> or :<tag>")
    if match["tag"] == "latest":
        raise _refused(
            image, "the tag latest moves: the same deployment would run another image", "Name a fixed tag or a digest"
        )
    if match["region"] not in REGIONS:
        raise _refused(
            image,
            f"Braket runs no hybrid jobs in {match['region']}, and an image must be in its job's region",
            f"Push the image to one of {', '.join(REGIONS)}",
        )
    return EcrImage(
        uri=image,
        account=match["account"],
        region=match["region"],
        repository=match["repository"],
        tag=match["tag"],
        digest=match["digest"].removeprefix("@") if match["digest"] else None,
    )


def _refused(image: str, problem: str, remedy: str) -> SpecError:
    return SpecError(problem, key="image", value=image, remedy=remedy)
