"""Tables of PennyLane's standard gates, for many parameter values at once, differentiable by torch.

A diagonal gate's table holds its 2^n phases; another gate's the 2^n x 2^n entries of its matrix, row (output) first.
Entries are given as functions of the parameters, each a tensor of any shape; constants are plain numbers.
Definitions follow https://docs.pennylane.ai/en/stable/introduction/operations.html.
"""

import cmath
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Entries = Sequence[Any]
"""Row-major list of entries: complex tensors of one shape, or Python numbers."""


@dataclass(frozen=True)
class GateKind:
    """What a gate's name stands for.

    Attributes:
        wires: number of wires; 0 for any number.
        parameters: number of parameters.
        diagonal: whether the table holds the diagonal only.
        entries: the table's entries from the parameters.
    """

    wires: int
    parameters: int
    diagonal: bool
    entries: Callable[..., Entries]


def _half_angle(theta: "torch.Tensor") -> tuple["torch.Tensor", "torch.Tensor"]:
    return (theta / 2).cos(), (theta / 2).sin()


def _phase(angle: "torch.Tensor") -> "torch.Tensor":
    """exp(i angle)."""
    import torch  # noqa: PLC0415

    return torch.complex(angle.cos(), angle.sin())


def _rx(theta: "torch.Tensor") -> Entries:
    c, s = _half_angle(theta)
    return [c, -1j * s, -1j * s, c]


def _ry(theta: "torch.Tensor") -> Entries:
    c, s = _half_angle(theta)
    return [c, -s, s, c]


def _rz(theta: "torch.Tensor") -> Entries:
    return [_phase(-theta / 2), _phase(theta / 2)]


def _rot(phi: "torch.Tensor", theta: "torch.Tensor", omega: "torch.Tensor") -> Entries:
    c, s = _half_angle(theta)
    plus, minus = (phi + omega) / 2, (phi - omega) / 2
    return [_phase(-plus) * c, -_phase(minus) * s, _phase(-minus) * s, _phase(plus) * c]


def _u2(phi: "torch.Tensor", delta: "torch.Tensor") -> Entries:
    r = math.sqrt(0.5)
    return [r, -r * _phase(delta), r * _phase(phi), r * _phase(phi + delta)]


def _u3(theta: "torch.Tensor", phi: "torch.Tensor", delta: "torch.Tensor") -> Entries:
    c, s = _half_angle(theta)
    return [c, -_phase(delta) * s, _phase(phi) * s, _phase(phi + delta) * c]


def _ising_xx(theta: "torch.Tensor") -> Entries:
    c, s = _half_angle(theta)
    return [c, 0, 0, -1j * s, 0, c, -1j * s, 0, 0, -1j * s, c, 0, -1j * s, 0, 0, c]


def _ising_yy(theta: "torch.Tensor") -> Entries:
    c, s = _half_angle(theta)
    return [c, 0, 0, 1j * s, 0, c, -1j * s, 0, 0, -1j * s, c, 0, 1j * s, 0, 0, c]


def _ising_xy(theta: "torch.Tensor") -> Entries:
    c, s = _half_angle(theta)
    return [1, 0, 0, 0, 0, c, 1j * s, 0, 0, 1j * s, c, 0, 0, 0, 0, 1]


def _single_excitation(theta: "torch.Tensor") -> Entries:
    c, s = _half_angle(theta)
    return [1, 0, 0, 0, 0, c, -s, 0, 0, s, c, 0, 0, 0, 0, 1]


def _phase_swap(theta: "torch.Tensor") -> Entries:
    return [1, 0, 0, 0, 0, 0, _phase(theta), 0, 0, _phase(theta), 0, 0, 0, 0, 0, 1]


def _multi_rz(theta: "torch.Tensor", wires: int) -> Entries:
    negative, positive = _phase(-theta / 2), _phase(theta / 2)
    return [positive if index.bit_count() % 2 else negative for index in range(2**wires)]


def _fixed(*entries: complex) -> Callable[[], Entries]:
    return lambda: list(entries)


_R = math.sqrt(0.5)
_T = cmath.exp(0.25j * math.pi)

GATES: dict[str, GateKind] = {
    "Identity": GateKind(1, 0, True, _fixed(1, 1)),
    "PauliX": GateKind(1, 0, False, _fixed(0, 1, 1, 0)),
    "PauliY": GateKind(1, 0, False, _fixed(0, -1j, 1j, 0)),
    "PauliZ": GateKind(1, 0, True, _fixed(1, -1)),
    "Hadamard": GateKind(1, 0, False, _fixed(_R, _R, _R, -_R)),
    "S": GateKind(1, 0, True, _fixed(1, 1j)),
    "T": GateKind(1, 0, True, _fixed(1, _T)),
    "SX": GateKind(1, 0, False, _fixed(0.5 + 0.5j, 0.5 - 0.5j, 0.5 - 0.5j, 0.5 + 0.5j)),
    "SWAP": GateKind(2, 0, False, _fixed(1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1)),
    "ISWAP": GateKind(2, 0, False, _fixed(1, 0, 0, 0, 0, 0, 1j, 0, 0, 1j, 0, 0, 0, 0, 0, 1)),
    "RX": GateKind(1, 1, False, _rx),
    "RY": GateKind(1, 1, False, _ry),
    "RZ": GateKind(1, 1, True, _rz),
    "PhaseShift": GateKind(1, 1, True, lambda phi: [1, _phase(phi)]),
    "GlobalPhase": GateKind(0, 1, True, lambda phi: [_phase(-phi)]),
    "Rot": GateKind(1, 3, False, _rot),
    "U2": GateKind(1, 2, False, _u2),
    "U3": GateKind(1, 3, False, _u3),
    "IsingXX": GateKind(2, 1, False, _ising_xx),
    "IsingYY": GateKind(2, 1, False, _ising_yy),
    "IsingZZ": GateKind(2, 1, True, lambda theta: _multi_rz(theta, 2)),
    "IsingXY": GateKind(2, 1, False, _ising_xy),
    "SingleExcitation": GateKind(2, 1, False, _single_excitation),
    "PSWAP": GateKind(2, 1, False, _phase_swap),
    "MultiRZ": GateKind(0, 1, True, _multi_rz),
    "QubitUnitary": GateKind(0, 1, False, lambda matrix: [matrix]),
}
"""Every gate that has a table here; others are decomposed into these by PennyLane."""

CONTROLLED: dict[str, tuple[int, str]] = {
    "CNOT": (1, "PauliX"),
    "CY": (1, "PauliY"),
    "CZ": (1, "PauliZ"),
    "CH": (1, "Hadamard"),
    "CSWAP": (1, "SWAP"),
    "Toffoli": (2, "PauliX"),
    "CCZ": (2, "PauliZ"),
    "CRX": (1, "RX"),
    "CRY": (1, "RY"),
    "CRZ": (1, "RZ"),
    "CRot": (1, "Rot"),
    "ControlledPhaseShift": (1, "PhaseShift"),
}
"""Gates with names of their own: how many of their first wires control which gate."""


def table_entries(kind: GateKind, wires: int) -> int:
    """Number of entries of a gate's table on so many wires."""
    return 1 << (wires if kind.diagonal else 2 * wires)


def gate_tables(name: str, wires: int, parameters: Sequence["torch.Tensor"], dtype: "torch.dtype") -> "torch.Tensor":
    """Tables of one kind of gate for all values of its parameters.

    Args:
        name: key of GATES.
        wires: number of target wires.
        parameters: tensors of one shape S (of S + (2^n, 2^n) for QubitUnitary).
        dtype: torch.complex128 or torch.complex64.

    Returns:
        Tensor of shape S + (entries,); S is () without parameters.
    """
    import torch  # noqa: PLC0415

    kind = GATES[name]
    if name == "QubitUnitary":
        return parameters[0].to(dtype).flatten(-2)
    if name == "MultiRZ":
        entries = _multi_rz(parameters[0], wires)
    elif name == "GlobalPhase":
        entries = [_phase(-parameters[0])] * 2**wires
    else:
        entries = kind.entries(*parameters)
    if not parameters:
        return torch.tensor(entries, dtype=dtype)
    like = parameters[0]
    return torch.stack(
        [
            entry.to(dtype)
            if isinstance(entry, torch.Tensor)
            else torch.full(like.shape, entry, dtype=dtype, device=like.device)
            for entry in entries
        ],
        dim=-1,
    )
