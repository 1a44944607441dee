"""Every custom resource fails fast."""

from collections.abc import Iterator

from stacks.rules.rule import Finding, Rule, Stack

LONGEST_SECONDS = 900


def check(stack: Stack) -> Iterator[Finding]:
    """Custom resources without a literal ServiceTimeout, or with one that no Lambda function can use."""
    for logical_id, resource in stack.template.get("Resources", {}).items():
        if not resource["Type"].startswith(("Custom::", "AWS::CloudFormation::CustomResource")):
            continue
        timeout = str(resource.get("Properties", {}).get("ServiceTimeout", "an hour, by default"))
        if not timeout.isdecimal() or not 1 <= int(timeout) <= LONGEST_SECONDS:
            yield Finding(logical_id, "Properties/ServiceTimeout", timeout)


RULE = Rule(
    name="custom-resource-timeout",
    description="CloudFormation waits an hour for a custom resource that doesn't answer, and again to roll it back",
    remedy=f"Write service_timeout with at most {LONGEST_SECONDS} seconds, the longest that a function runs",
    check=check,
)
