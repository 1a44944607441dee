"""A simulator that needs a GPU gets one."""

from collections.abc import Iterator

from hybridjobs.model.instances import INSTANCE_TYPES
from hybridjobs.model.job_rules import GPU_SIMULATORS
from stacks.rules.rule import Finding, Rule, Stack


def check(stack: Stack) -> Iterator[Finding]:
    """Launch documents with a GPU simulator on a known instance type without GPUs."""
    for logical_id, document in stack.launches():
        device = document.get("device")
        kind = INSTANCE_TYPES.get(str(document.get("instance", {}).get("type")))
        if device in GPU_SIMULATORS and kind is not None and not kind.gpus:
            yield Finding(logical_id, "Properties/Spec/device", f"{device} on {kind.name}")


RULE = Rule(
    name="gpu-device",
    description="A simulator for GPUs fails on an instance without one, after the instance has been billed",
    remedy='Use an instance type such as "ml.g6.xlarge", or a device such as "local:pennylane/lightning.qubit"',
    check=check,
)
