"""What an evaluation costs, before anything is allocated, beside a state vector of the same circuit.

Times are estimates from operation counts, measured on one core (docs/contraction.md): good to a factor of two or so,
which is enough to choose between methods that differ by powers of two. Bytes are counted, not estimated.
"""

import math
from dataclasses import dataclass
from typing import Literal

from contraction.errors import TooLargeError
from contraction.plan import Plan

Method = Literal["contraction", "state vector"]

DEFAULT_MEMORY_LIMIT = 4 * 2**30

# Seconds a complex multiplication of one forward pass, for value and gradient together.
_CONTRACTION_SECONDS = 5e-9
_STEP_SECONDS = 4e-7
# lightning.qubit by adjoint, value and gradient together. Seconds an amplitude for each gate and each word of the
# observable, on states that stay in the second cache and beyond; and what a gate or word, and a circuit, cost in
# PennyLane whatever their size.
_CACHED_AMPLITUDES = 2**17
_STATE_VECTOR_SECONDS = 3e-9
_UNCACHED_STATE_VECTOR_SECONDS = 9e-9
_STATE_VECTOR_GATE_SECONDS = 1e-4
_STATE_VECTOR_CALL_SECONDS = 0.004
# States that are in memory at once, where the observable is one word and where it is a sum.
_STATES_OF_WORD = 4
_STATES_OF_SUM = 7
_COMPLEX_BYTES = 16
# Wider networks can't fit any memory, and writing their steps down would only take time.
WIDEST = 34
# An evaluation of more than a day is no remedy.
_LONGEST_SECONDS = 86_400


@dataclass(frozen=True)
class Cost:
    """Price of one value and gradient.

    Attributes:
        width: bits of the largest joint index of the contraction.
        operations: complex multiplications of one forward pass over all samples; the gradient takes about two more.
        bytes: of all tables and their adjoints.
        slices: independent parts that the contraction is cut into, so that its tables fit.
        seconds: estimate on one core.
        state_vector_qubits: of the state vector that would be needed instead.
        state_vector_bytes: of all copies that lightning.qubit holds at once.
        state_vector_seconds: estimate on one core.
    """

    width: int
    operations: float
    bytes: float
    slices: int
    seconds: float
    state_vector_qubits: int
    state_vector_bytes: float
    state_vector_seconds: float

    @property
    def faster(self) -> Method:
        """The method with the lower estimate."""
        return "contraction" if self.seconds <= self.state_vector_seconds else "state vector"

    def cheapest_that_fits(self, memory_limit: float) -> Method | None:
        """The faster method among those within a limit in bytes; None when neither is."""
        contraction, state_vector = self.bytes <= memory_limit, self.state_vector_bytes <= memory_limit
        if contraction and state_vector:
            return self.faster
        if contraction:
            return "contraction"
        return "state vector" if state_vector else None

    def require(self, memory_limit: float) -> None:
        """Refuse a contraction beyond a limit in bytes, with the numbers and what would fit.

        Raises:
            TooLargeError: the contraction's tables need more than the limit.
        """
        if self.bytes <= memory_limit:
            return
        state_vector = (
            f"a state vector of {self.state_vector_qubits} qubits needs {_readable(self.state_vector_bytes)}"
            f" and about {self.state_vector_seconds:.3g} s a gradient"
        )
        smaller = f"a shallower circuit or a sparser graph; {state_vector}."
        if self.state_vector_bytes <= memory_limit:
            remedy = f"Use lightning.qubit: {state_vector}."
        elif self.width > WIDEST or self.seconds > _LONGEST_SECONDS:
            remedy = f"Take {smaller}"
        else:
            remedy = f"Raise the limit to {_readable(self.bytes)}, or take {smaller}"
        raise TooLargeError(
            f"memory_limit = {_readable(memory_limit)}: the contraction is {self.width} bits wide and needs "
            f"{_readable(self.bytes)}, {self.operations:.3g} operations, about {self.seconds:.3g} s a gradient. "
            f"{remedy}"
        )


def table_bytes(plan: Plan, lanes: int, batch: int) -> float:
    """Bytes of all tables of a plan and their adjoints.

    Args:
        plan: the steps.
        lanes: samples whose tables are in memory at once.
        batch: samples in all, for the gate tables.
    """
    tables = plan.buffer_entries[0] + plan.buffer_entries[1] * lanes
    return 2.0 * _COMPLEX_BYTES * (tables + plan.leaf_entries[1] * batch)


def combined_cost(
    *,
    width: int,
    operations: float,
    steps: int,
    table_bytes: float,
    slices: int,
    qubits: int,
    gates: int,
    words: int,
    circuits: int,
) -> Cost:
    """Cost from counted numbers, with the estimates of time."""
    amplitudes = 2.0 ** min(qubits, 1000)  # beyond, a float overflows
    cached = amplitudes <= _CACHED_AMPLITUDES
    sweep = amplitudes * (_STATE_VECTOR_SECONDS if cached else _UNCACHED_STATE_VECTOR_SECONDS)
    return Cost(
        width=width,
        operations=operations,
        bytes=table_bytes,
        slices=slices,
        seconds=operations * _CONTRACTION_SECONDS + steps * _STEP_SECONDS,
        state_vector_qubits=qubits,
        state_vector_bytes=(_STATES_OF_WORD if words == 1 else _STATES_OF_SUM) * _COMPLEX_BYTES * amplitudes,
        state_vector_seconds=circuits
        * ((gates + words) * (sweep + _STATE_VECTOR_GATE_SECONDS) + _STATE_VECTOR_CALL_SECONDS),
    )


def _readable(count: float) -> str:
    """Bytes in binary units, never fewer: a limit raised to what is written suffices."""
    if count < 2**10:
        return f"{math.ceil(count)} B"
    for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"), start=1):
        if count < 2 ** (10 * (power + 1)):
            return f"{math.ceil(100 * count / 2 ** (10 * power)) / 100:g} {unit}"
    return f"2^{math.ceil(math.log2(count))} B"
