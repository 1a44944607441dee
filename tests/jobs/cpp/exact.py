"""Random problems of every kind of weight, and an exact gradient, both written with numpy alone."""

from collections.abc import Iterable

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from qaoa_source.problem import Edge, MaxCutProblem
from tests.jobs.qaoa import oracle

Amplitudes = NDArray[np.complex128]


def _mixed(amplitudes: Amplitudes, beta: float) -> Amplitudes:
    nodes = int(np.log2(amplitudes.size))
    for node in range(nodes):
        tensor = amplitudes.reshape(2**node, 2, -1)
        amplitudes = (np.cos(beta) * tensor - 1j * np.sin(beta) * tensor[:, ::-1]).reshape(-1)
    return amplitudes


def _after(amplitudes: Amplitudes, cuts: NDArray[np.float64], layers: Iterable[tuple[float, float]]) -> Amplitudes:
    for gamma, beta in layers:
        amplitudes = _mixed(amplitudes * np.exp(1j * gamma * cuts), beta)
    return amplitudes


def gradient(problem: MaxCutProblem, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
    """d<H_C>, shape (2, p), from the derivative of the state by each parameter."""
    cuts = oracle.cut_of_every_bit_string(problem)
    index = np.arange(cuts.size)
    layers = [(float(gamma), float(beta)) for gamma, beta in parameters.T]
    start = np.full(cuts.size, cuts.size**-0.5, dtype=np.complex128)
    final = _after(start, cuts, layers)
    slopes = np.zeros_like(parameters)
    for layer, (gamma, beta) in enumerate(layers):
        before_mixer = _after(start, cuts, layers[:layer]) * np.exp(1j * gamma * cuts)
        by_gamma = _after(_mixed(1j * cuts * before_mixer, beta), cuts, layers[layer + 1 :])
        flipped = sum(_mixed(before_mixer, beta)[index ^ (1 << node)] for node in range(problem.nodes))
        by_beta = _after(-1j * np.asarray(flipped), cuts, layers[layer + 1 :])
        for row, derivative in enumerate((by_gamma, by_beta)):
            slopes[row, layer] = -2 * np.vdot(final, cuts * derivative).real
    return slopes


@st.composite
def problems(draw: st.DrawFn, most_nodes: int = 12) -> MaxCutProblem:
    """Graphs as the oracle draws them, with weights that the engine stores as bytes, as words and as reals."""
    problem = draw(oracle.problems(most_nodes, weighted=False))
    kind = draw(st.sampled_from(["ones", "few", "quarters", "many", "reals", "alike"]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = len(problem.edges)
    weights = {
        "ones": np.ones(count),
        "few": random.integers(-3, 4, count),
        "quarters": random.integers(-8, 9, count) / 4,
        "many": random.integers(-300, 301, count),
        "reals": random.uniform(-2, 2, count),
        "alike": np.full(count, 0.1),
    }[kind]
    edges = (Edge(edge.first, edge.second, float(weight)) for edge, weight in zip(problem.edges, weights, strict=True))
    return MaxCutProblem(problem.labels, tuple(edges))
