"""Estimates what the circuits need before anything is allocated, and says what would fit where it doesn't."""

import dataclasses
import os
import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from qaoa_source.devices import DeviceRequest
from qaoa_source.hyperparameters import Hyperparameters
from qaoa_source.reductions import Plan

GIB = 2.0**30
# What the process holds besides states: interpreter, libraries, plan.
BASE_BYTES = 0.25 * GIB
# Peak resident size over the state's, measured with PennyLane 0.45 at 20 and 22 qubits.
_LIGHTNING_COPIES = {"adjoint": 7.1, "parameter-shift": 5.1}
_DEFAULT_COPIES = 8
# Not measured: the adjoint pass of lightning.gpu keeps two states, a copy for the generator, and a buffer.
_GPU_COPIES = 4

# Memory of Braket's instances, host and one GPU, in GiB.
HOST_GIB: Mapping[str, float] = {
    "ml.m5.large": 8, "ml.m5.xlarge": 16, "ml.m5.2xlarge": 32, "ml.m5.4xlarge": 64, "ml.m5.12xlarge": 192,
    "ml.m5.24xlarge": 384,
}  # fmt: skip
GPU_GIB: Mapping[str, float] = {"ml.g4dn.xlarge": 16, "ml.g6.2xlarge": 24, "ml.p4d.24xlarge": 40, "ml.g6e.2xlarge": 48}
# Part of an instance's memory that a job can count on.
_USABLE = 0.9


class MemoryEstimateError(RuntimeError):
    """The job doesn't fit: says what it needs, what there is, and which reduction, device or instance would do."""


@dataclass(frozen=True)
class MemoryNeed:
    """An estimate in bytes: `state` of the largest state vector, `total` of the whole process (or the GPU)."""

    wires: int
    state: float
    total: float


def need(plan: Plan, request: DeviceRequest, settings: Hyperparameters) -> MemoryNeed:
    """What evaluating a plan takes at its peak: the largest circuit's states, one circuit at a time."""
    largest = max(plan.circuits, key=lambda circuit: circuit.wires)
    # A float of any number of qubits, so that the estimate itself never overflows.
    state = (8 if settings.precision == "single" else 16) * 2.0 ** min(largest.wires, 1000)
    if request.name == "lightning.gpu":
        return MemoryNeed(largest.wires, state, _GPU_COPIES * state)
    copies = _LIGHTNING_COPIES.get(settings.diff_method, _LIGHTNING_COPIES["adjoint"])
    if request.name == "default.qubit":
        # Its adjoint pass holds a state a term; back-propagation keeps every intermediate state.
        extra = {"adjoint": len(largest.terms), "backprop": 2 * (len(largest.gates) + largest.wires)}
        copies = _DEFAULT_COPIES + extra.get(settings.diff_method, 0)
    return MemoryNeed(largest.wires, state, BASE_BYTES + copies * state)


def available() -> float:
    """Bytes this process may use: what the machine has free, or the container's limit where that is less."""
    free = float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    information = Path("/proc/meminfo")
    if information.exists():
        fields = dict(line.split(":", 1) for line in information.read_text().splitlines() if ":" in line)
        free = float(fields["MemAvailable"].split()[0]) * 1024
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        used = Path("/sys/fs/cgroup/memory.current")
        free = min(free, float(text) - (float(used.read_text()) if used.exists() else 0.0))
    return free


def peak() -> int:
    """The most memory that this process has held at once, in bytes."""
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Not getrusage: its peak survives the start of a program, so a small job of a large parent would tell the parent's.
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM:")).split()[1]) * 1024


def check_bytes(wanted: float, free: float) -> MemoryNeed:
    """The need of the contraction simulator, whose tables take `wanted` bytes.

    Raises:
        MemoryEstimateError: It doesn't fit into `free` bytes.
    """
    total = BASE_BYTES + wanted
    if total <= free:
        return MemoryNeed(0, 0.0, total)
    fitting = [f"instance type {name} ({gib:g} GiB)" for name, gib in HOST_GIB.items() if total <= _USABLE * gib * GIB]
    raise MemoryEstimateError(
        f"the contraction needs {_text(total)}, this instance has {_text(free)} free. "
        f"Would fit: {', '.join([*fitting[:1], 'a smaller p', 'a sparser graph'])}."
    )


def check(
    plan: Plan,
    request: DeviceRequest,
    settings: Hyperparameters,
    free: float,
    alternatives: Callable[[], Mapping[str, Plan]],
) -> MemoryNeed:
    """Returns the plan's need where it fits into `free` bytes.

    `alternatives` makes the reductions that the remedy may name; it is only called for that.

    Raises:
        MemoryEstimateError: It doesn't fit.
    """
    wanted = need(plan, request, settings)
    if wanted.total <= free:
        return wanted
    on_gpu = request.name == "lightning.gpu"
    remedies = []
    for name, other in alternatives().items():
        theirs = need(other, request, settings).total
        if theirs <= free:
            remedies.append(f"reduction = {name} ({_text(theirs)})")
    if request.name.startswith("lightning."):
        single = need(plan, request, dataclasses.replace(settings, precision="single")).total
        if single <= free:
            remedies.append(f"precision = single ({_text(single)})")
    for name, gib in (GPU_GIB if on_gpu else HOST_GIB).items():
        if wanted.total <= _USABLE * gib * GIB:
            remedies.append(f"instance type {name} ({gib:g} GiB)")
            break
    raise MemoryEstimateError(
        f"reduction = {plan.reduction} on {request.name} needs {_text(wanted.total)} for {wanted.wires} qubits "
        f"(a state of {_text(wanted.state)}), {'the GPU' if on_gpu else 'this instance'} has {_text(free)} free. "
        + (f"Would fit: {', '.join(remedies)}." if remedies else "No reduction and no instance would hold it.")
    )


def _text(size: float) -> str:
    return f"{size / GIB:.3g} GiB" if size < 2.0**60 else f"{size:.1e} bytes"
