"""A circuit as data: gates with their structure, parameters by number, and products of Pauli operators to measure."""

from dataclasses import dataclass

from contraction.gates import GATES


@dataclass(frozen=True)
class Gate:
    """One gate.

    Attributes:
        name: of the uncontrolled gate, a key of gates.GATES (PennyLane's names).
        targets: wires of the uncontrolled gate, in its order.
        controls: wires of the controls.
        control_values: the values at which the gate acts; empty means all 1.
        parameters: numbers of its parameters in the circuit's list of parameters.
        adjoint: whether the gate's inverse is meant (of a gate without parameters or with a matrix).
    """

    name: str
    targets: tuple[int, ...]
    controls: tuple[int, ...] = ()
    control_values: tuple[bool, ...] = ()
    parameters: tuple[int, ...] = ()
    adjoint: bool = False

    @property
    def diagonal(self) -> bool:
        """Whether the gate only multiplies basis states by phases."""
        return GATES[self.name].diagonal


PauliWord = tuple[tuple[int, str], ...]
"""Pairs of a wire and "X", "Y" or "Z", sorted by wire; the empty word is the identity."""


@dataclass(frozen=True)
class Circuit:
    """Structure of a circuit from |0...0>, without the values of its parameters.

    Attributes:
        wires: number of wires, numbered from 0.
        gates: in the order of their application.
        words: the Pauli words whose expectation values are wanted.
        batched: for each parameter whether it has one value per sample.
    """

    wires: int
    gates: tuple[Gate, ...]
    words: tuple[PauliWord, ...]
    batched: tuple[bool, ...] = ()
