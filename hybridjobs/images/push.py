"""Pushes an image into a stage's repository, once it has passed every check, and names it by its digest."""

from typing import Any

from docker.errors import APIError

from hybridjobs.images.checks import problems_of
from hybridjobs.images.probe import facts_of, local_image
from hybridjobs.images.registry import RegistryError, StageRegistry, check_region
from hybridjobs.model.errors import SpecError, SpecProblem


def check_image(client: Any, reference: str, volume_gb: int) -> None:
    """Raise SpecError with everything that keeps a local image from running jobs; see checks.problems_of."""
    problems = problems_of(facts_of(client, reference), volume_gb)
    if problems:
        raise SpecError.of([SpecProblem(**{**vars(each), "file": reference}) for each in problems])


def push_image(client: Any, reference: str, registry: StageRegistry, *, target: str | None, volume_gb: int) -> str:
    """Check and push a local image; return its address by digest, for the key `image` of a job.

    Args:
        client: The container engine (docker.DockerClient).
        reference: The image's name there.
        registry: The repository of the stage.
        target: The address to push to, with a tag; by default the stage's repository, the image's id being the tag.
        volume_gb: The smallest volume of the instances that are to run it.

    Raises:
        SpecError: The image can't run jobs.
        RegistryError: The tag stands for another image already, the repository is elsewhere, or the push failed.
    """
    check_image(client, reference, volume_gb)
    image = local_image(client, reference)
    tag = check_region(target, registry).tag if target else image.id.removeprefix("sha256:")[:32]
    assert tag is not None  # noqa: S101 - check_region refuses an address without
    there = registry.stored(tag)
    if there is not None:
        if not there.is_image(image.id):
            raise RegistryError(
                f"{registry.uri}:{tag} is another image already ({there.digest}), and jobs that name this tag would "
                "run that one or this one by chance. Push under a new tag, or name the image by its digest"
            )
        return f"{registry.uri}@{there.digest}"
    _push(client, image, registry, tag)
    pushed = registry.stored(tag)
    if pushed is None:
        raise RegistryError(f"{registry.uri}:{tag} is not in the repository after the push. Push it again")
    return f"{registry.uri}@{pushed.digest}"


def _push(client: Any, image: Any, registry: StageRegistry, tag: str) -> None:
    image.tag(registry.address, tag)
    try:
        progress = client.images.push(
            registry.address, tag, stream=True, decode=True, auth_config=registry.credentials()
        )
        for line in progress:
            if "error" in line:
                raise RegistryError(
                    f"{registry.uri}:{tag} could not be pushed: {line['error']}. Check that the repository's policy "
                    "lets you push"
                )
    except APIError as error:
        raise RegistryError(f"{registry.uri}:{tag} could not be pushed: {error.explanation or error}") from error
    finally:
        client.images.remove(f"{registry.address}:{tag}", noprune=True)
