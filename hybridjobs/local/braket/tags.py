"""Tags: the documented rules of AWS tags, and the operations TagResource, UntagResource, ListTagsForResource."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybridjobs.local.braket.errors import ServiceError, validation_error, violation
from hybridjobs.local.braket.wsgi import Handler

MAXIMUM_TAGS = 50
MAXIMUM_KEY_LENGTH = 128
MAXIMUM_VALUE_LENGTH = 256

Tags = Mapping[str, str]


def tag_violations(tags: Tags) -> Iterator[str]:
    """Yield what is wrong with all the tags that a resource would have."""
    if len(tags) > MAXIMUM_TAGS:
        yield violation("tags", len(tags), f"A resource has at most {MAXIMUM_TAGS} tags")
    for key, value in tags.items():
        if not 1 <= len(key) <= MAXIMUM_KEY_LENGTH:
            yield violation("tags (key)", key, f"Member must have length between 1 and {MAXIMUM_KEY_LENGTH}")
        if key.lower().startswith("aws:"):
            yield violation("tags (key)", key, "The prefix aws: is reserved")
        if len(value) > MAXIMUM_VALUE_LENGTH:
            limit = f"Member must have length less than or equal to {MAXIMUM_VALUE_LENGTH}"
            yield violation(f"tags.{key}", value, limit)


@dataclass(frozen=True)
class TaggedKind:
    """One kind of resource with tags: `infix` is what its ARNs contain."""

    infix: str
    read: Callable[[str], Tags]
    change: Callable[[str, Callable[[Tags], Tags]], object]


class TagOperations:
    """Answers the operations on tags for every kind of resource that has them."""

    def __init__(self, kinds: Sequence[TaggedKind]):
        self._kinds = kinds

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by operation name."""
        return {
            "TagResource": self.tag,
            "UntagResource": self.untag,
            "ListTagsForResource": self.list,
        }

    def tag(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Add tags, or replace the values of those that are there."""
        arn = request["resourceArn"]
        self._kind(arn).change(arn, lambda tags: _checked({**tags, **request["tags"]}))
        return {}

    def untag(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Remove tags by their keys; keys that aren't there are ignored."""
        arn, removed = request["resourceArn"], set(request["tagKeys"])
        self._kind(arn).change(arn, lambda tags: {key: value for key, value in tags.items() if key not in removed})
        return {}

    def list(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Return the tags of a resource."""
        arn = request["resourceArn"]
        return {"tags": self._kind(arn).read(arn)}

    def _kind(self, arn: str) -> TaggedKind:
        for kind in self._kinds:
            if kind.infix in arn:
                return kind
        raise ServiceError("ResourceNotFoundException", f"Resource '{arn}' not found")


def _checked(tags: Tags) -> Tags:
    violations = list(tag_violations(tags))
    if violations:
        raise validation_error(violations)
    return tags
