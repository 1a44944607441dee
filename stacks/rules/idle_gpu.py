"""No GPU is paid for that the job's simulator can't use."""

from collections.abc import Iterator

from hybridjobs.model.instances import INSTANCE_TYPES
from hybridjobs.model.job_rules import CPU_SIMULATORS
from stacks.rules.rule import Finding, Rule, Stack


def check(stack: Stack) -> Iterator[Finding]:
    """Launch documents with a CPU simulator on an instance type with GPUs."""
    for logical_id, document in stack.launches():
        device = document.get("device")
        kind = INSTANCE_TYPES.get(str(document.get("instance", {}).get("type")))
        if device in CPU_SIMULATORS and kind is not None and kind.gpus:
            yield Finding(logical_id, "Properties/Spec/device", f"{device} on {kind.name}")


RULE = Rule(
    name="idle-gpu",
    description="A simulator for CPUs on a GPU instance: the GPUs idle and are billed",
    remedy='Use a device such as "local:pennylane/lightning.gpu", or an instance type such as "ml.m5.2xlarge"',
    check=check,
)
