"""Buckets that are given a name get one that Braket accepts.

Since July 2026 Braket also accepts a bucket of another name that has the tag AmazonBraket = true, if S3 evaluates tags
for it (attribute-based access control): version 3 of the policies of its service-linked role and of job roles.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from stacks.rules.rule import Finding, Rule, Stack, flat

PREFIX = "amazon-braket-"


def check(stack: Stack) -> Iterator[Finding]:
    """Named buckets, and the bucket that functions are told to keep jobs in."""
    for logical_id, properties in stack.resources("AWS::S3::Bucket"):
        name = flat(properties.get("BucketName", PREFIX))
        if not name.startswith(PREFIX) and not _is_tagged(properties):
            yield Finding(logical_id, "Properties/BucketName", name)
    for logical_id, properties in stack.resources("AWS::Lambda::Function"):
        name = flat(properties.get("Environment", {}).get("Variables", {}).get("JOB_BUCKET", PREFIX))
        if not name.startswith(PREFIX):
            yield Finding(logical_id, "Properties/Environment/Variables/JOB_BUCKET", name)


def _is_tagged(properties: Mapping[str, Any]) -> bool:
    tags = {str(tag.get("Key")): str(tag.get("Value")).lower() for tag in properties.get("Tags", [])}
    return properties.get("AbacStatus") == "Enabled" and tags.get("AmazonBraket") == "true"


RULE = Rule(
    name="bucket-name",
    description="Braket reads and writes only buckets called amazon-braket-*, or tagged for it",
    remedy="Begin the bucket's name with amazon-braket-, or tag it AmazonBraket = true and enable AbacStatus",
    check=check,
)
