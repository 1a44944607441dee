"""The QAOA circuit as data: gates whose angles depend on the parameters, and the Pauli-Z terms that are measured.

With H_C = 1/2 sum_ij w_ij (Z_i Z_j - 1) and H_M = sum_i X_i the ansatz is
prod_l exp(-i beta_l H_M) exp(-i gamma_l H_C) |+...+>, and the expected cut is -<H_C>. The identity terms of H_C are
a global phase, so a layer is one IsingZZ(gamma w) an edge and one RX(2 beta) a node. Parameters have shape (2, p):
row 0 holds the gammas, row 1 the betas. A circuit addresses them by their position in the flattened array.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from qaoa_source.pennylane_later import qml
from qaoa_source.problem import MaxCutProblem

if TYPE_CHECKING:
    from pennylane.operation import Operator

# Passes over the state that an adjoint gradient takes: for a rotation forward, back on two states, and an inner product
# with its generator; for a CNOT half a state forward and back on two. Only ratios between circuits matter.
_PASSES_PER_GATE = 5.0
_PASSES_PER_CNOT = 1.5
_PASSES_PER_TERM = 3.0
# What a pass and a circuit cost besides amplitudes, in amplitudes: building, converting and dispatching.
_AMPLITUDES_PER_PASS = 2.0**12
_AMPLITUDES_PER_CIRCUIT = 2.0**18


def estimated_work(wires: int, gates: int, flips: int, terms: int) -> float:
    """Estimated amplitude updates of one gradient of a circuit, `flips` of whose gates flip all qubits."""
    passes = gates * _PASSES_PER_GATE + flips * 2 * (wires - 1) * _PASSES_PER_CNOT + terms * _PASSES_PER_TERM
    # Thousands of qubits are as hopeless as a thousand, and a float holds the number.
    return passes * (2.0 ** min(wires, 1000) + _AMPLITUDES_PER_PASS) + _AMPLITUDES_PER_CIRCUIT


@dataclass(frozen=True)
class Gate:
    """A rotation; `name` is IsingZZ, RZ, RX, or FlipAll: about the product of X on all its wires.

    Its angle is `factor * parameter`, or, where `folded` weights are given, the angle t with
    cos t = prod_k cos(folded_k * parameter).
    """

    name: str
    wires: tuple[int, ...]
    parameter: int
    factor: float = 1.0
    folded: tuple[float, ...] = ()


@dataclass(frozen=True)
class Term:
    """A product of Pauli Z on `wires`, the correlation of every edge in `edges` (positions in the problem)."""

    wires: tuple[int, ...]
    coefficient: float
    edges: tuple[int, ...]


@dataclass(frozen=True)
class Circuit:
    """|+...+> on wires 0 .. wires - 1, then the gates; its value is the sum of its terms' expectation values."""

    wires: int
    gates: tuple[Gate, ...]
    terms: tuple[Term, ...]

    @property
    def work(self) -> float:
        """Estimated amplitude updates of one gradient: the cost by which exact methods are compared."""
        flips = sum(gate.name == "FlipAll" for gate in self.gates)
        return estimated_work(self.wires, len(self.gates), flips, len(self.terms))

    @cached_property
    def measured(self) -> "Operator":
        """The weighted sum of the terms, as one observable so that one reverse pass serves them all."""
        return qml.Hamiltonian([term.coefficient for term in self.terms], [pauli_z(term.wires) for term in self.terms])

    @cached_property
    def prepared(self) -> "tuple[Operator, ...]":
        """The operations that make the state |+...+>."""
        return tuple(qml.Hadamard(wires=wire) for wire in range(self.wires))

    @cached_property
    def _parameters(self) -> NDArray[np.intp]:
        return np.array([gate.parameter for gate in self.gates], dtype=np.intp)

    @cached_property
    def _factors(self) -> NDArray[np.float64]:
        return np.array([gate.factor for gate in self.gates])

    @cached_property
    def _folded(self) -> tuple[tuple[int, Gate], ...]:
        return tuple((index, gate) for index, gate in enumerate(self.gates) if gate.folded)

    def angles(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """The gates' angles, shape (gates,)."""
        flat = parameters.reshape(-1)
        angles = self._factors * flat[self._parameters]
        for index, gate in self._folded:
            angles[index] = folded_angle(flat[gate.parameter], gate.folded)[0]
        return np.asarray(angles, dtype=np.float64)

    def chain(self, parameters: NDArray[np.float64], by_angle: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turns derivatives by the gates' angles into derivatives by the parameters, shape (2, p)."""
        flat = parameters.reshape(-1)
        slopes = self._factors.copy()
        for index, gate in self._folded:
            slopes[index] = folded_angle(flat[gate.parameter], gate.folded)[1]
        total = np.bincount(self._parameters, weights=slopes * by_angle, minlength=flat.size)
        return np.asarray(total.reshape(parameters.shape), dtype=np.float64)


@dataclass(frozen=True)
class SampledState:
    """A circuit that makes the final state of some nodes: wire k holds the bit of `nodes[k]`.

    One more node of theirs may be held at 0, which loses nothing since flipping all bits changes no cut.
    """

    circuit: Circuit
    nodes: tuple[int, ...]


def folded_angle(parameter: float, weights: Sequence[float]) -> tuple[float, float]:
    """The angle t in [0, pi] with cos t = prod_k cos(w_k x), and dt/dx.

    Built from sines, since 1 - cos^2 would lose every digit near x = 0, where the documented job starts. Where
    sin t = 0 the value of the circuit is stationary in t, so the slope there is immaterial.
    """
    cosine, sine_squared, derivative = 1.0, 0.0, 0.0
    for weight in weights:
        this_cosine, this_sine = np.cos(weight * parameter), np.sin(weight * parameter)
        derivative = derivative * this_cosine - cosine * weight * this_sine
        sine_squared += (cosine * this_sine) ** 2
        cosine *= this_cosine
    sine = float(np.sqrt(sine_squared))
    return float(np.arctan2(sine, cosine)), float(-derivative / sine) if sine > 0 else 0.0


def whole_circuit(problem: MaxCutProblem, p: int) -> Circuit:
    """The documented ansatz on all nodes, isolated ones included; wire k is node k."""
    gates: list[Gate] = []
    for layer in range(p):
        gates += [Gate("IsingZZ", (edge.first, edge.second), layer, edge.weight) for edge in problem.edges]
        gates += [Gate("RX", (node,), p + layer, 2.0) for node in range(problem.nodes)]
    terms = [Term((edge.first, edge.second), edge.weight / 2, (index,)) for index, edge in enumerate(problem.edges)]
    return Circuit(problem.nodes, tuple(gates), tuple(terms))


def _operations_of(gate: Gate, angle: object) -> "list[Operator]":
    if gate.name != "FlipAll":
        return [getattr(qml, gate.name)(angle, wires=gate.wires)]
    # No simulator differentiates PauliRot natively. CNOTs turn X on their control into X on all, and cost half a pass.
    control, *targets = gate.wires
    spread = [qml.CNOT(wires=(control, target)) for target in targets]
    return [*spread, qml.RX(angle, wires=control), *(qml.CNOT(wires=cnot.wires) for cnot in reversed(spread))]


def operations(circuit: Circuit, angles: Sequence[object] | NDArray[np.float64]) -> "list[Operator]":
    """The PennyLane operations of a circuit at the given gate angles."""
    rotations: list[Operator] = []
    for gate, angle in zip(circuit.gates, angles, strict=True):
        rotations += _operations_of(gate, angle)
    return [*circuit.prepared, *rotations]


def pauli_z(wires: Sequence[int]) -> "Operator":
    """The product of Pauli Z on the wires."""
    return qml.PauliZ(wires[0]) if len(wires) == 1 else qml.prod(*(qml.PauliZ(wire) for wire in wires))
