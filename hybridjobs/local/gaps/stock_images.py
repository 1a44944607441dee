"""ECR BatchGetImage of Braket's own images: the emulator has no repositories of other accounts, and finds none.

The SDK asks for them before it submits a function as a job (`@hybrid_job`): function and job must have the same Python,
which it reads from the image's full tag. Jobs that are processes run in the Python of the embedded cloud, whatever
image they name, so that is what the tag says; jobs in containers run in the image, so there it is the image's.
"""

import hashlib
import os
import sys
from collections.abc import Mapping
from typing import Any

from hybridjobs.local.runners.choice import DOCKER, VARIABLE
from hybridjobs.model.images import STOCK_ACCOUNT

_IMAGES_PYTHON = "312"
# Full tags as AWS names them, by repository.
_TAGS = {
    "amazon-braket-base-jobs": "1.0-cpu-py{python}-ubuntu24.04",
    "amazon-braket-cudaq-jobs": "0.14.0-cpu-py{python}-0.14.0-ubuntu24.04",
    "amazon-braket-pytorch-jobs": "2.8.0-gpu-py{python}-cu129-ubuntu22.04",
    "amazon-braket-tensorflow-jobs": "2.19.0-gpu-py{python}-cu125-ubuntu22.04",
}


def apply() -> None:
    """Let the emulator know the tags of Braket's own images."""
    from ministack.services import ecr  # noqa: PLC0415

    get = ecr._batch_get_image

    def batch_get_image(data: Mapping[str, Any]) -> Any:
        repository = data.get("repositoryName", "")
        if data.get("registryId") != STOCK_ACCOUNT or repository not in _TAGS:
            return get(data)
        return ecr.json_response(_stock_images(repository, data.get("imageIds", []), _python()))

    ecr._batch_get_image = batch_get_image


def _python() -> str:
    in_containers = os.environ.get(VARIABLE) == DOCKER
    return _IMAGES_PYTHON if in_containers else "{}{}".format(*sys.version_info[:2])


def _stock_images(repository: str, wanted: list[Mapping[str, str]], python: str) -> dict[str, Any]:
    """Answer BatchGetImage: the newest image of a repository has two tags, and a digest stands for both."""
    digest = f"sha256:{hashlib.sha256(repository.encode()).hexdigest()}"
    tags = ["latest", _TAGS[repository].format(python=python)]
    images, failures = [], []
    for identity in wanted:
        found = [tag for tag in tags if identity.get("imageTag", tag) == tag]
        if not found or identity.get("imageDigest", digest) != digest:
            reason = {"failureCode": "ImageNotFound", "failureReason": "Requested image not found"}
            failures.append({"imageId": identity, **reason})
        else:
            images += [{"imageDigest": digest, "imageTag": tag} for tag in found]
    place = {"registryId": STOCK_ACCOUNT, "repositoryName": repository}
    return {"images": [{**place, "imageId": image} for image in images], "failures": failures}
