"""An independent reference: QAOA's state vector, cost and distribution, written with numpy alone."""

import functools
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from qaoa_source.problem import MaxCutProblem, problem_from_edges


@functools.lru_cache(maxsize=8)
def cut_of_every_bit_string(problem: MaxCutProblem) -> NDArray[np.float64]:
    """Entry z is the cut of the bit string whose bit k (from the left) is node k's side."""
    index = np.arange(2**problem.nodes)
    bits = (index[:, np.newaxis] >> np.arange(problem.nodes)[::-1]) & 1
    cuts = np.zeros(2**problem.nodes)
    for edge in problem.edges:
        cuts += edge.weight * (bits[:, edge.first] != bits[:, edge.second])
    return cuts


def state(problem: MaxCutProblem, parameters: NDArray[np.float64]) -> NDArray[np.complex128]:
    """prod_l exp(-i beta_l H_M) exp(-i gamma_l H_C) |+>, where H_C = -cut."""
    nodes = problem.nodes
    cuts = cut_of_every_bit_string(problem)
    amplitudes = np.full(2**nodes, 2 ** (-nodes / 2), dtype=np.complex128)
    for gamma, beta in parameters.T:
        amplitudes = amplitudes * np.exp(1j * gamma * cuts)
        mixer = np.array([[np.cos(beta), -1j * np.sin(beta)], [-1j * np.sin(beta), np.cos(beta)]])
        for node in range(nodes):
            tensor = amplitudes.reshape(2**node, 2, -1)
            amplitudes = np.einsum("ab,ibj->iaj", mixer, tensor).reshape(-1)
    return amplitudes


def cost(problem: MaxCutProblem, parameters: NDArray[np.float64]) -> float:
    """<H_C>."""
    return -float(np.abs(state(problem, parameters)) ** 2 @ cut_of_every_bit_string(problem))


def central_differences(
    function: Callable[[NDArray[np.float64]], float], parameters: NDArray[np.float64], step: float = 2e-3
) -> NDArray[np.float64]:
    """The gradient by an eighth-order stencil, whose relative error is about (frequency * step)**8 / 630."""
    stencil = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
    gradient = np.zeros_like(parameters)
    for index in np.ndindex(parameters.shape):
        for distance, factor in stencil:
            shift = np.zeros_like(parameters)
            shift[index] = distance * step
            gradient[index] += factor * (function(parameters + shift) - function(parameters - shift)) / step
    return gradient


def slope(problem: MaxCutProblem, parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """The derivative of the cost along a direction with a part of every parameter, and that direction."""
    direction = np.cos(1.7 * np.arange(parameters.size) + 0.3).reshape(parameters.shape)
    # No frequency of the cost is above the phases that the layers turn by: on complete graphs over a hundred.
    fastest = np.abs(direction).sum(axis=1) @ [np.ptp(cut_of_every_bit_string(problem)), 2 * problem.nodes]
    step = min(2e-3, 0.05 / fastest)
    along = central_differences(lambda at: cost(problem, parameters + at[0] * direction), np.zeros(1), step)
    return float(along[0]), direction


def _graph(nodes: int, present: list[bool], weights: list[float]) -> MaxCutProblem:
    pairs = [(first, second) for second in range(nodes) for first in range(second)]
    edges = [
        (first, second, weight) for (first, second), here, weight in zip(pairs, present, weights, strict=True) if here
    ]
    return problem_from_edges(list(range(nodes)), edges)


@st.composite
def problems(draw: st.DrawFn, most_nodes: int = 8, weighted: bool | None = None) -> MaxCutProblem:
    """Random graphs of every density: trees, complete, disconnected, isolated nodes, tiny components."""
    nodes = draw(st.integers(2, most_nodes))
    pairs = nodes * (nodes - 1) // 2
    kind = draw(st.sampled_from(["sparse", "any", "tree", "complete"]))
    if kind == "tree":
        present = [False] * pairs
        for node in range(1, nodes):
            present[node * (node - 1) // 2 + draw(st.integers(0, node - 1))] = True
    elif kind == "complete":
        present = [True] * pairs
    else:
        density = draw(st.floats(0.1, 0.4)) if kind == "sparse" else draw(st.floats(0.1, 1.0))
        present = [chance < density for chance in draw(st.lists(st.floats(0, 1), min_size=pairs, max_size=pairs))]
        present[draw(st.integers(0, pairs - 1))] = True
    has_weights = draw(st.booleans()) if weighted is None else weighted
    weights = draw(st.lists(st.floats(-2, 2), min_size=pairs, max_size=pairs)) if has_weights else [1.0] * pairs
    return _graph(nodes, present, weights)


@st.composite
def parameters(draw: st.DrawFn, most_layers: int = 3) -> NDArray[np.float64]:
    """Gammas and betas, shape (2, p)."""
    p = draw(st.integers(1, most_layers))
    values = draw(st.lists(st.floats(-3, 3), min_size=2 * p, max_size=2 * p))
    return np.array(values).reshape(2, p)
