"""Joins the circuit's rotations into few two-qubit matrices, computed in PyTorch with their derivatives.

A state-vector simulator that applies any matrix spends its time by the gate: n encodings, 2 n rotations and 2 n
controlled rotations become 2 n matrices and a last one. Every rotation is absorbed into the next two-qubit gate on its
wire. Rotations with no such gate after them act on wires that are not measured, so they can't change <Z_0> and are
left out; the last one, on wire 0, is kept.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from qml_source.circuit import WEIGHTS_PER_ROTATION, Rotation

Matrices = list[tuple[Tensor, tuple[int, ...]]]


def _matrix(rows: Sequence[Sequence[Tensor]]) -> Tensor:
    return torch.stack([torch.stack(list(row), dim=-1) for row in rows], dim=-2)


def rotation_matrices(angles: Tensor) -> Tensor:
    """Rot(phi, theta, omega) = RZ(omega) RY(theta) RZ(phi) for angles of shape (..., 3); shape (..., 2, 2), complex."""
    phi, theta, omega = angles.unbind(-1)
    cosine, sine = torch.cos(theta / 2), torch.sin(theta / 2)
    sum_phase = torch.exp(-0.5j * (phi + omega))
    difference_phase = torch.exp(0.5j * (phi - omega))
    return _matrix(
        [
            [sum_phase * cosine, -difference_phase * sine],
            [difference_phase.conj() * sine, sum_phase.conj() * cosine],
        ]
    )


def encoding_matrices(angles: Tensor) -> Tensor:
    """RX for angles of shape (...); shape (..., 2, 2), complex."""
    cosine, sine = torch.cos(angles / 2) + 0j, -1j * torch.sin(angles / 2)
    return _matrix([[cosine, sine], [sine, cosine]])


def _tensor_product(first: Tensor, second: Tensor) -> Tensor:
    product = torch.einsum("...ij,...kl->...ikjl", first, second)
    return product.reshape(*product.shape[:-4], 4, 4)


def fused_matrices(parts: Sequence[Rotation], angles: Tensor, weights: Tensor) -> Matrices:
    """The circuit as matrices and their wires: angles of shape (batch, wires), weights of shape (weights,).

    A matrix has shape (4, 4), or (batch, 4, 4) where it holds an encoding, or 2 in place of 4 for a single wire.
    """
    matrices = rotation_matrices(weights.reshape(-1, WEIGHTS_PER_ROTATION))
    identity = torch.eye(2, dtype=matrices.dtype, device=matrices.device)
    waiting: list[Tensor | None] = list(encoding_matrices(angles).unbind(1))
    made: Matrices = []
    for rotation in parts:
        matrix = matrices[rotation.first // WEIGHTS_PER_ROTATION]
        before = [waiting[wire] for wire in rotation.wires]
        if len(rotation.wires) == 1:
            waiting[rotation.wires[0]] = matrix if before[0] is None else matrix @ before[0]
            continue
        controlled = torch.eye(4, dtype=matrix.dtype, device=matrix.device)
        controlled[2:, 2:] = matrix
        if any(each is not None for each in before):
            first, second = (identity if each is None else each for each in before)
            controlled = controlled @ _tensor_product(first, second)
        made.append((controlled, rotation.wires))
        for wire in rotation.wires:
            waiting[wire] = None
    last = waiting[0]
    if last is not None:
        made.append((last, (0,)))
    return made
