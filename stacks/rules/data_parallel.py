"""Data parallelism gets something to spread the data over."""

from collections.abc import Iterator

from hybridjobs.model.instances import INSTANCE_TYPES
from stacks.rules.rule import Finding, Rule, Stack


def check(stack: Stack) -> Iterator[Finding]:
    """Data-parallel launch documents with a single GPU."""
    for logical_id, document in stack.launches():
        instance = document.get("instance", {})
        kind = INSTANCE_TYPES.get(str(instance.get("type")))
        parallel = document.get("distribution") == "data_parallel"
        if parallel and kind is not None and kind.gpus == 1 and instance.get("count", 1) == 1:
            yield Finding(logical_id, "Properties/Spec/distribution", f"data_parallel on one {kind.name}")


RULE = Rule(
    name="data-parallel",
    description="A data-parallel job on one GPU has one worker and gains nothing",
    remedy='Use an instance type with several GPUs such as "ml.g6.12xlarge", or instance.count = 2 or more',
    check=check,
)
