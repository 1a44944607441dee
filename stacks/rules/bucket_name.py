"""Buckets that are given a name get one that Braket accepts."""

from collections.abc import Iterator

from stacks.rules.rule import Finding, Rule, Stack, flat

PREFIX = "amazon-braket-"


def check(stack: Stack) -> Iterator[Finding]:
    """Named buckets, and the bucket that functions are told to keep jobs in."""
    for logical_id, properties in stack.resources("AWS::S3::Bucket"):
        name = flat(properties.get("BucketName", PREFIX))
        if not name.startswith(PREFIX):
            yield Finding(logical_id, "Properties/BucketName", name)
    for logical_id, properties in stack.resources("AWS::Lambda::Function"):
        name = flat(properties.get("Environment", {}).get("Variables", {}).get("JOB_BUCKET", PREFIX))
        if not name.startswith(PREFIX):
            yield Finding(logical_id, "Properties/Environment/Variables/JOB_BUCKET", name)


RULE = Rule(
    name="bucket-name",
    description="Braket reads and writes only buckets called amazon-braket-*",
    remedy="Begin the bucket's name with amazon-braket-",
    check=check,
)
