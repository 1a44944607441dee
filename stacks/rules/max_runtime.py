"""Every job says for how long it may run at most."""

from collections.abc import Iterator

from hybridjobs.model.job_fields import LONGEST_RUNTIME_SECONDS
from stacks.rules.rule import Finding, Rule, Stack


def check(stack: Stack) -> Iterator[Finding]:
    """Launch documents without a time limit that Braket takes; one that can't be read has none."""
    for logical_id, document in stack.launches():
        seconds = document.get("max_runtime_seconds")
        if type(seconds) is not int or not 1 <= seconds <= LONGEST_RUNTIME_SECONDS:
            yield Finding(logical_id, "Properties/Spec/max_runtime_seconds", f"{seconds!r}")


RULE = Rule(
    name="max-runtime",
    description="Without a time limit a job that hangs is billed for five days, Braket's own default",
    remedy=f"Write limits.max_runtime_seconds, from 1 to {LONGEST_RUNTIME_SECONDS}",
    check=check,
)
