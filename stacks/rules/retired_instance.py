"""Jobs run on instance types that Braket offers."""

from collections.abc import Iterator

from hybridjobs.model.errors import SpecError
from hybridjobs.model.instances import instance_type
from stacks.rules.rule import Finding, Rule, Stack


def check(stack: Stack) -> Iterator[Finding]:
    """Launch documents with a retired or unknown instance type; the finding names the one to use instead."""
    for logical_id, document in stack.launches():
        if not document:
            continue
        try:
            instance_type(str(document.get("instance", {}).get("type")))
        except SpecError as error:
            problem = f"{error.value}: {error.problem}. {error.remedy}"
            yield Finding(logical_id, "Properties/Spec/instance/type", problem)


RULE = Rule(
    name="retired-instance",
    description="CreateJob refuses instance types that Braket has retired or never had",
    remedy="Use the instance type that the finding names",
    check=check,
)
