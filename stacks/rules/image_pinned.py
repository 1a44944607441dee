"""A job's image is a certain one."""

from collections.abc import Iterator

from hybridjobs.model.errors import SpecError
from hybridjobs.model.images import parse_image
from hybridjobs.model.job_spec import LAUNCH_RESOURCE_TYPE
from stacks.rules.rule import Finding, Rule, Stack, flat


def check(stack: Stack) -> Iterator[Finding]:
    """Images of launch documents that parse_image refuses, and resolved image URIs without a fixed tag or digest."""
    for logical_id, document in stack.launches():
        try:
            parse_image(str(document.get("image", "base")))
        except SpecError as error:
            yield Finding(logical_id, "Properties/Spec/image", f"{error.value}: {error.problem}")
    for logical_id, properties in stack.resources(LAUNCH_RESOURCE_TYPE):
        name = flat(properties.get("ImageUri", "image:pinned")).rpartition("/")[2]
        if name.endswith(":latest") or ":" not in name:
            yield Finding(logical_id, "Properties/ImageUri", name)


RULE = Rule(
    name="image-pinned",
    description="An image by a tag that moves, or by none, is another one than the one that was tested",
    remedy="Name a fixed tag other than latest, or a digest (@sha256:...)",
    check=check,
)
