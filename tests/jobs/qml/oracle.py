"""The dressed circuit by dense matrices, as the published example writes it: controlled rotations in seven gates."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Complex = NDArray[np.complex128]
_CNOT: Complex = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], dtype=complex)


def _rx(angle: float) -> Complex:
    return np.array([[np.cos(angle / 2), -1j * np.sin(angle / 2)], [-1j * np.sin(angle / 2), np.cos(angle / 2)]])


def _ry(angle: float) -> Complex:
    return np.array([[np.cos(angle / 2), -np.sin(angle / 2)], [np.sin(angle / 2), np.cos(angle / 2)]], dtype=complex)


def _rz(angle: float) -> Complex:
    return np.diag(np.exp([-0.5j * angle, 0.5j * angle]))


class _State:
    def __init__(self, wires: int) -> None:
        self.amplitudes = np.zeros((2,) * wires, dtype=complex)
        self.amplitudes[(0,) * wires] = 1

    def apply(self, matrix: Complex, *wires: int) -> None:
        gate = matrix.reshape((2,) * (2 * len(wires)))
        moved = np.tensordot(gate, self.amplitudes, axes=(range(len(wires), 2 * len(wires)), wires))
        self.amplitudes = np.moveaxis(moved, range(len(wires)), wires)


def value(angles: Vector, weights: Vector) -> float:
    """<Z_0> for angles of shape (wires,), weights of shape (12 wires + 3,)."""
    n = len(angles)
    state = _State(n)
    for wire, angle in enumerate(angles):
        state.apply(_rx(angle), wire)
    position = 0
    for reach in (1, 3):
        layer = weights[position : position + 6 * n].reshape(2, n, 3)
        position += 6 * n
        for wire in range(n):
            phi, theta, omega = layer[0, wire]
            state.apply(_rz(omega) @ _ry(theta) @ _rz(phi), wire)
        control = 0
        for step in range(n):
            target = (control - reach) % n
            phi, theta, omega = layer[1, step]
            state.apply(_rz((phi - omega) / 2), target)
            state.apply(_CNOT, control, target)
            state.apply(_ry(-theta / 2) @ _rz(-(phi + omega) / 2), target)
            state.apply(_CNOT, control, target)
            state.apply(_rz(omega) @ _ry(theta / 2), target)
            control = target
    phi, theta, omega = weights[position:]
    state.apply(_rz(omega) @ _ry(theta) @ _rz(phi), 0)
    probabilities = (np.abs(state.amplitudes) ** 2).reshape(2, -1).sum(axis=1)
    return float(probabilities[0] - probabilities[1])
