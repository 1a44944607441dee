"""The dressed circuit as data: which rotations it is made of, on which wires, and which parameter each one takes.

On n wires: RX(u_k) on wire k; then twice an entangling layer, its partners r = 1 and r = 3 wires apart: a rotation
Rot(phi, theta, omega) on every wire, and n controlled rotations in a chain that starts at wire 0, each from its control
c to the wire (c - r) mod n, which is the next control; then Rot on wire 0, whose <Z> is measured.
Where r divides n the chain visits n / r wires only, again and again, each time with weights of its own.

A sample's parameters are its n angles u, then the 12 n + 3 weights: of each layer (2, n, 3), rotations before
controlled rotations, then of the last rotation (3). Each parameter belongs to one gate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pennylane as qml

REACHES = (1, 3)
WEIGHTS_PER_ROTATION = 3


@dataclass(frozen=True)
class Rotation:
    """A Rot on one wire, or a controlled one on two (control, target); `first` is its first weight's position."""

    wires: tuple[int, ...]
    first: int


def weight_count(nwires: int) -> int:
    """How many weights the circuit has."""
    return len(REACHES) * 2 * nwires * WEIGHTS_PER_ROTATION + WEIGHTS_PER_ROTATION


def rotations(nwires: int) -> tuple[Rotation, ...]:
    """The circuit's rotations in the order of their application, after the encoding."""
    wires: list[tuple[int, ...]] = []
    for reach in REACHES:
        wires += [(wire,) for wire in range(nwires)]
        control = 0
        for _ in range(nwires):
            target = (control - reach) % nwires
            wires.append((control, target))
            control = target
    wires.append((0,))
    return tuple(Rotation(these, position * WEIGHTS_PER_ROTATION) for position, these in enumerate(wires))


def encoding(angles: Sequence[Any]) -> list[qml.operation.Operator]:
    """One RX a wire; an angle may hold a whole batch."""
    return [qml.RX(angle, wires=wire) for wire, angle in enumerate(angles)]


def whole_rotations(parts: Sequence[Rotation], weights: Sequence[Any]) -> list[qml.operation.Operator]:
    """The rotations as one operation each, for simulators that apply any matrix."""
    made = []
    for rotation in parts:
        angles = weights[rotation.first : rotation.first + WEIGHTS_PER_ROTATION]
        kind = qml.Rot if len(rotation.wires) == 1 else qml.CRot
        made.append(kind(*angles, wires=rotation.wires))
    return made


def single_parameter_rotations(parts: Sequence[Rotation], weights: Sequence[Any]) -> list[qml.operation.Operator]:
    """The rotations as RZ, RY, RZ or CRZ, CRY, CRZ, which simulators differentiate by the adjoint method.

    The operations take one weight each, in the weights' order.
    """
    made: list[qml.operation.Operator] = []
    for rotation in parts:
        kinds = (qml.RZ, qml.RY, qml.RZ) if len(rotation.wires) == 1 else (qml.CRZ, qml.CRY, qml.CRZ)
        made += [kind(weights[rotation.first + index], wires=rotation.wires) for index, kind in enumerate(kinds)]
    return made
