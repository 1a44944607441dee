"""The answer a user wants: the best cut found, the optimum where it can be had, and what a classical search finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from qaoa_source.ansatz import SampledState, operations
from qaoa_source.pennylane_later import qml
from qaoa_source.problem import MaxCutProblem

BRUTE_FORCE_NODES = 24
SEARCH_STARTS = 100
_LOW_BITS = 18

Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class Cut:
    """A partition of the nodes, one bit a node, with the weight of the edges it cuts."""

    bits: Bits
    value: float

    @property
    def partition(self) -> str:
        """The bits as text, in the order of the problem's labels; the first node is always on side 0."""
        return "".join("01"[int(bit != self.bits[0])] for bit in self.bits)


def sample(
    problem: MaxCutProblem, states: Sequence[SampledState], parameters: NDArray[np.float64], device: Any, count: int
) -> Bits:
    """Draws bit strings from the final state, shape (count, nodes).

    The states are of separate components, so their product is the final state of the whole graph. A node in none of
    them has no edge and is given 0.
    """
    bits = np.zeros((count, problem.nodes), dtype=np.bool_)
    for state in states:
        script = qml.tape.QuantumScript(
            operations(state.circuit, state.circuit.angles(parameters)),
            [qml.sample(wires=range(state.circuit.wires))],
            shots=count,
        )
        (drawn,) = qml.execute([script], device, diff_method=None)
        bits[:, list(state.nodes)] = np.asarray(drawn, dtype=np.bool_).reshape(count, -1)
    return bits


def best_of(problem: MaxCutProblem, bits: Bits) -> Cut:
    """The row that cuts the most."""
    values = problem.cut_values(bits)
    best = int(np.argmax(values))
    return Cut(bits[best], float(values[best]))


def optimum(problem: MaxCutProblem) -> float | None:
    """The largest cut there is, by trying them all; None where a component has too many nodes for that."""
    if any(len(component) > BRUTE_FORCE_NODES for component in problem.components):
        return None
    least = sum(_least_energy(problem, component) for component in problem.components)
    return (problem.total_weight - least) / 2


def upper_bound(problem: MaxCutProblem) -> float:
    """What no cut can exceed: the sum of the positive weights."""
    return float(problem.weights[problem.weights > 0].sum())


def _least_energy(problem: MaxCutProblem, component: tuple[int, ...]) -> float:
    """The minimum of sum_ij w_ij s_i s_j over the component's spins, with the last one fixed at +1.

    All assignments of the low bits are held at once, each pattern of the high bits adds to them a linear function.
    """
    size = len(component)
    low = min(size - 1, _LOW_BITS)
    position = {node: index for index, node in enumerate(component)}
    coupling = np.zeros((size, size))
    for edge in problem.edges:
        if edge.first in position:
            coupling[position[edge.first], position[edge.second]] = edge.weight
    coupling += coupling.T

    energies = np.zeros(1)
    for bit in range(low):
        field = _linear(coupling[bit, :bit])
        energies = np.concatenate((energies + field, energies - field))
    least = float("inf")
    for pattern in range(2 ** (size - low - 1)):
        spins = np.array([1 - 2 * (pattern >> bit & 1) for bit in range(size - low)], dtype=np.float64)
        among_high = float(spins @ coupling[low:, low:] @ spins) / 2
        least = min(least, among_high + float(np.min(energies + _linear(spins @ coupling[low:, :low]))))
    return least


def _linear(fields: NDArray[np.float64]) -> NDArray[np.float64]:
    """sum_k fields_k s_k for every assignment of the spins s, bit k of the index giving s_k = +1 or -1."""
    values = np.zeros(1)
    for field in fields:
        values = np.concatenate((values + field, values - field))
    return values


def local_search(problem: MaxCutProblem, starts: Bits) -> Cut:
    """The best cut after moving, in each row of `starts`, one node at a time to the better side until none gains."""
    adjacency = _adjacency(problem)
    spins = np.where(starts, -1.0, 1.0)
    active = np.arange(len(spins))
    while active.size:
        gains = spins[active] * np.asarray(adjacency @ spins[active].T).T
        nodes = gains.argmax(axis=1)
        # A gain of rounding size must not send the search round in circles.
        improving = gains[np.arange(active.size), nodes] > 1e-9
        active, nodes = active[improving], nodes[improving]
        spins[active, nodes] *= -1
    return best_of(problem, spins < 0)


def _adjacency(problem: MaxCutProblem) -> csr_array:
    rows, columns = problem.pairs.T
    half = coo_array((problem.weights, (rows, columns)), shape=(problem.nodes, problem.nodes))
    return csr_array(half + half.T)


def classical_control(problem: MaxCutProblem, count: int, generator: np.random.Generator) -> dict[str, float]:
    """What needs no quantum circuit: the best of `count` random cuts, and of a local search from some of them."""
    bits = generator.integers(0, 2, size=(count, problem.nodes)).astype(np.bool_)
    starts = bits[:SEARCH_STARTS]
    return {
        "random_cuts": count,
        "random_best_cut": best_of(problem, bits).value,
        "local_search_starts": len(starts),
        "local_search_best_cut": local_search(problem, starts).value,
    }


def from_correlations(problem: MaxCutProblem, correlations: NDArray[np.float64]) -> Cut:
    """A cut where no state can be sampled: signs along a forest of the strongest correlations, then local search.

    It is exact on the forest's edges only, so it is no sample of the QAOA state.
    """
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(problem.nodes))
    for (first, second), value in zip(problem.pairs.tolist(), correlations.tolist(), strict=True):
        graph.add_edge(first, second, strength=abs(value), apart=value < 0)
    forest = nx.maximum_spanning_tree(graph, weight="strength")
    bits = np.zeros(problem.nodes, dtype=np.bool_)
    for component in problem.components:
        for near, far in nx.bfs_edges(forest, component[0]):
            bits[far] = bits[near] ^ forest.edges[near, far]["apart"]
    return local_search(problem, bits[np.newaxis])
