"""The Max-Cut problem that a job solves: nodes, weighted edges, and the value of a cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
from numpy.typing import NDArray

Label = int | str


class GraphError(ValueError):
    """The graph can't be used: says where, what is wrong, and the remedy."""


@dataclass(frozen=True)
class Edge:
    """An edge between two nodes, which are given by their position in the problem's `labels`."""

    first: int
    second: int
    weight: float = 1.0


@dataclass(frozen=True)
class MaxCutProblem:
    """A graph whose nodes are to be divided in two so that the cut edges weigh the most.

    Node k of every array, bit string and circuit is `labels[k]`. Nodes without edges are part of the problem.
    """

    labels: tuple[Label, ...]
    edges: tuple[Edge, ...]

    @property
    def nodes(self) -> int:
        """The number of nodes, isolated ones included."""
        return len(self.labels)

    @cached_property
    def pairs(self) -> NDArray[np.intp]:
        """The edges' node positions, shape (edges, 2)."""
        return np.array([(edge.first, edge.second) for edge in self.edges], dtype=np.intp).reshape(-1, 2)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The edges' weights, shape (edges,)."""
        return np.array([edge.weight for edge in self.edges], dtype=np.float64)

    @cached_property
    def total_weight(self) -> float:
        """The sum of all weights: a bound on the cut where no weight is negative."""
        return float(self.weights.sum())

    @cached_property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """The connected components with at least one edge, each as sorted node positions."""
        graph: nx.Graph[int] = nx.Graph((edge.first, edge.second) for edge in self.edges)
        return tuple(sorted(tuple(sorted(component)) for component in nx.connected_components(graph)))

    def cut_values(self, bits: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The weight of the edges cut by each row of `bits`, shape (rows, nodes)."""
        crossing = bits[:, self.pairs[:, 0]] != bits[:, self.pairs[:, 1]]
        return np.asarray(crossing @ self.weights, dtype=np.float64)


def problem_from_edges(labels: Sequence[Label], edges: Sequence[tuple[Label, Label, float]]) -> MaxCutProblem:
    """Orders nodes and edges by label, so that one graph gives one problem however its file was written.

    Raises:
        GraphError: There is no edge, so there is nothing to cut.
    """
    if not edges:
        raise GraphError(f"the graph has {len(labels)} nodes and no edge: there is nothing to cut. Add edges.")
    ordered = sorted(labels, key=lambda label: (isinstance(label, str), label))
    position = {label: index for index, label in enumerate(ordered)}
    numbered = sorted((*sorted((position[first], position[second])), weight) for first, second, weight in edges)
    return MaxCutProblem(
        labels=tuple(ordered), edges=tuple(Edge(int(first), int(second), weight) for first, second, weight in numbered)
    )


def random_problem(nodes: int, edges: int, seed: int) -> MaxCutProblem:
    """The documented benchmark graph: networkx's G(n, m) with this many nodes and edges, weights 1."""
    graph = nx.gnm_random_graph(nodes, edges, seed=seed)
    return problem_from_edges(list(graph.nodes), [(first, second, 1.0) for first, second in graph.edges])
