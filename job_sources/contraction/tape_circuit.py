"""Translate PennyLane tapes into circuits: structure apart from parameter values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pennylane as qml
from pennylane.exceptions import DeviceError

from contraction.circuit import Circuit, Gate, PauliWord
from contraction.gates import CONTROLLED, GATES

DEVICE_NAME = "hybridjobs.contraction"

_MOST_CONTROLS = 6
_MOST_DENSE_WIRES = {"MultiRZ": 8, "QubitUnitary": 5}
_IGNORED = {"Identity", "Barrier", "GlobalPhase"}


@dataclass(frozen=True)
class TapeCircuit:
    """A tape as a circuit, with what its measurements are made of.

    Attributes:
        circuit: structure on wires 0, 1, ...
        parameters: values, one for each of the circuit's parameters.
        slots: for each of the circuit's parameters its number among the tape's parameters.
        measurements: for each measurement its coefficients and the numbers of its words.
    """

    circuit: Circuit
    parameters: tuple[Any, ...]
    slots: tuple[int, ...]
    measurements: tuple[tuple[tuple[Any, int], ...], ...]


def has_table(operator: Any) -> bool:
    """Whether an operator is taken as it is; PennyLane decomposes the others."""
    return operator.name in _IGNORED or _gate_parts(operator) is not None


def _gate_parts(operator: Any) -> tuple[str, list[Any], list[Any], tuple[bool, ...], bool] | None:
    """Name, controls, targets, control values and adjoint of an operator with a table; None for others."""
    name, wires = operator.name, list(operator.wires)
    if name in GATES and len(wires) <= _MOST_DENSE_WIRES.get(name, 3):
        return name, [], wires, (), False
    if name in CONTROLLED:
        count, base = CONTROLLED[name]
        return base, wires[:count], wires[count:], (True,) * count, False
    if isinstance(operator, qml.ops.Controlled):
        inner = _gate_parts(operator.base)
        controls = list(operator.control_wires)
        if inner is None or len(controls) + len(inner[1]) > _MOST_CONTROLS:
            return None
        base, more, targets, values, adjoint = inner
        return base, [*controls, *more], targets, (*map(bool, operator.control_values), *values), adjoint
    if isinstance(operator, qml.ops.Adjoint):
        inner = _gate_parts(operator.base)
        if inner is not None and not inner[4] and (not operator.base.data or inner[0] == "QubitUnitary"):
            return (*inner[:4], True)
    return None


def tape_circuit(tape: Any) -> TapeCircuit:
    """Translate a tape of operators with tables and expectation values of Pauli sums.

    Raises:
        DeviceError: an observable isn't a sum of Pauli words.
    """
    numbers = {wire: number for number, wire in enumerate(tape.wires)}
    gates: list[Gate] = []
    parameters: list[Any] = []
    slots: list[int] = []
    batched: list[bool] = []
    slot = 0
    for operator in tape.operations:
        first = slot
        slot += len(operator.data)
        if operator.name in _IGNORED:
            continue
        parts = _gate_parts(operator)
        if parts is None:
            raise DeviceError(
                f"operator {operator} has no table on {DEVICE_NAME}. Decompose it, or use lightning.qubit."
            )
        name, controls, targets, values, adjoint = parts
        matrix_axes = 2 if name == "QubitUnitary" else 0
        taken = []
        for place, value in enumerate(operator.data):
            taken.append(len(parameters))
            parameters.append(value)
            slots.append(first + place)
            batched.append(qml.math.ndim(value) > matrix_axes)
        gates.append(
            Gate(
                name,
                tuple(numbers[wire] for wire in targets),
                tuple(numbers[wire] for wire in controls),
                () if all(values) else values,
                tuple(taken),
                adjoint,
            )
        )
    words: dict[PauliWord, int] = {}
    measurements = tuple(_pauli_terms(measurement.obs, numbers, words) for measurement in tape.measurements)
    circuit = Circuit(len(numbers), tuple(gates), tuple(words), tuple(batched))
    return TapeCircuit(circuit, tuple(parameters), tuple(slots), measurements)


def _pauli_terms(observable: Any, numbers: dict[Any, int], words: dict[PauliWord, int]) -> tuple[tuple[Any, int], ...]:
    """Coefficients and word numbers of an observable; the identity is the empty word."""
    sentence = observable.pauli_rep
    if sentence is None:
        raise DeviceError(
            f"observable {observable}: {DEVICE_NAME} measures Pauli words and their sums. "
            "Write it as such (qml.pauli_decompose), or use lightning.qubit."
        )
    terms = []
    for word, coefficient in sentence.items():
        key = tuple(sorted((numbers[wire], pauli) for wire, pauli in word.items()))
        terms.append((coefficient, words.setdefault(key, len(words))))
    return tuple(terms)


def refuse_unsupported(tape: Any) -> tuple[Sequence[Any], Any]:
    """Refuse by name what has no exact expectation value here, with the device that has it.

    Raises:
        DeviceError: shots, a measurement that isn't an expectation value, or one in the middle of the circuit.
    """
    if tape.shots:
        raise DeviceError(
            f"shots = {tape.shots.total_shots}: {DEVICE_NAME} computes exact expectation values and can't sample. "
            "Use shots=None, or lightning.qubit for samples."
        )
    for operator in _walk(tape.operations):
        if isinstance(operator, (qml.ops.MidMeasure, qml.ops.Conditional)):
            raise DeviceError(
                f"{operator.name}: {DEVICE_NAME} can't measure in the middle of a circuit. "
                "Use default.qubit or lightning.qubit, or defer the measurement (qml.defer_measurements)."
            )
    for measurement in tape.measurements:
        if not isinstance(measurement, qml.measurements.ExpectationMP) or measurement.obs is None:
            raise DeviceError(
                f"{type(measurement).__name__.removesuffix('MP')} measurement {measurement}: {DEVICE_NAME} computes "
                "qml.expval of Pauli words and sums only. Use lightning.qubit or default.qubit for samples, "
                "probabilities, variances and states."
            )
    return (tape,), lambda results: results[0]


def _walk(operators: Iterable[Any]) -> Iterable[Any]:
    for operator in operators:
        yield operator
        base = getattr(operator, "base", None)
        if base is not None:
            yield from _walk([base])
