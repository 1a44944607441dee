"""Roles that Braket assumes have the path and name that it looks for."""

from collections.abc import Iterator, Mapping
from typing import Any

from stacks.rules.rule import Finding, Rule, Stack, flat

SERVICE = "braket.amazonaws.com"
PATH = "/service-role/"
NAME = "AmazonBraketJobsExecutionRole"


def check(stack: Stack) -> Iterator[Finding]:
    """Roles that trust Braket and are called or placed otherwise."""
    for logical_id, properties in stack.resources("AWS::IAM::Role"):
        if not _trusts_braket(properties.get("AssumeRolePolicyDocument", {})):
            continue
        path, name = flat(properties.get("Path", "/")), flat(properties.get("RoleName", ""))
        if path != PATH:
            yield Finding(logical_id, "Properties/Path", path)
        if not name.startswith(NAME):
            yield Finding(logical_id, "Properties/RoleName", name or "named by CloudFormation")


def _trusts_braket(policy: Mapping[str, Any]) -> bool:
    principals = [statement.get("Principal") for statement in policy.get("Statement", [])]
    services = [each["Service"] for each in principals if isinstance(each, dict) and "Service" in each]
    return any(SERVICE in (each if isinstance(each, list) else [each]) for each in services)


RULE = Rule(
    name="job-role",
    description=f"Braket's policies and tools know job roles only as {PATH}{NAME}*",
    remedy=f'Write path="{PATH}" and a role_name that begins with {NAME}',
    check=check,
)
