"""Image repositories get a name that Braket accepts."""

from collections.abc import Iterator

from stacks.rules.rule import Finding, Rule, Stack, flat

PREFIX = "amazon-braket-"


def check(stack: Stack) -> Iterator[Finding]:
    """Repositories without a name, or with another one."""
    for logical_id, properties in stack.resources("AWS::ECR::Repository"):
        name = flat(properties.get("RepositoryName", ""))
        if not name.startswith(PREFIX):
            yield Finding(logical_id, "Properties/RepositoryName", name or "named by CloudFormation")


RULE = Rule(
    name="repository-name",
    description="Braket's policies for job roles know only repositories called amazon-braket-*",
    remedy="Give the repository a name that begins with amazon-braket-",
    check=check,
)
