"""Independent references: a NumPy state vector for QAOA, and PennyLane circuits of both workloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np


def qaoa_energy(graph: nx.Graph, gammas: Sequence[float], betas: Sequence[float]) -> float:
    """<H_C> from all amplitudes, with H_C = 1/2 sum w (ZZ - 1)."""
    nodes = list(graph)
    count = len(nodes)
    number = {node: place for place, node in enumerate(nodes)}
    spins = 1 - 2 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
    energies = np.zeros(2**count)
    for u, v, data in graph.edges(data=True):
        energies += data.get("weight", 1.0) / 2 * (spins[:, number[u]] * spins[:, number[v]] - 1)
    state = np.full(2**count, 2 ** (-count / 2), dtype=complex)
    for gamma, beta in zip(gammas, betas, strict=True):
        state = state * np.exp(-1j * gamma * energies)
        for qubit in range(count):
            state = state.reshape(-1, 2, 2**qubit)
            flipped = state[:, ::-1]
            state = np.cos(beta) * state - 1j * np.sin(beta) * flipped
        state = state.reshape(-1)
    return float(np.abs(state) ** 2 @ energies)


def central_differences(function: Any, point: np.ndarray, step: float = 0.01) -> np.ndarray:
    """Derivatives by the eighth-order central difference: relative error about (frequency * step)^8 / 630."""
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    result = np.zeros_like(point)
    for place in range(point.size):
        for distance, weight in enumerate(weights, start=1):
            shift = np.zeros_like(point)
            shift.flat[place] = distance * step
            result.flat[place] += weight * (function(point + shift) - function(point - shift)) / step
    return result


def sonar_circuit(qml: Any, wires: int, inputs: Any, first: Any, second: Any, last: Any) -> Any:
    """<Z_0> of the dressed circuit of the QML workload, with controlled rotations as single gates."""
    for wire in range(wires):
        qml.RX(inputs[..., wire], wires=wire)
    for weights, distance in ((first, 1), (second, 3)):
        for wire in range(wires):
            qml.Rot(weights[0, wire, 0], weights[0, wire, 1], weights[0, wire, 2], wires=wire)
        control = 0
        for place in range(wires):
            target = (control - distance) % wires
            angles = weights[1, place]
            qml.CRot(angles[0], angles[1], angles[2], wires=[control, target])
            control = target
    qml.Rot(last[0], last[1], last[2], wires=0)
    return qml.expval(qml.Z(0))


def qaoa_circuit(qml: Any, graph: nx.Graph, gammas: Any, betas: Any) -> Any:
    """<H_C> without its constant, written with native gates."""
    for node in graph:
        qml.Hadamard(wires=node)
    for gamma, beta in zip(gammas, betas, strict=True):
        for u, v in graph.edges:
            qml.IsingZZ(gamma, wires=[u, v])
        for node in graph:
            qml.RX(2 * beta, wires=node)
    return qml.expval(qml.Hamiltonian([0.5] * graph.number_of_edges(), [qml.Z(u) @ qml.Z(v) for u, v in graph.edges]))
