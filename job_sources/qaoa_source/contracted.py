"""The cost on the contraction simulator, which needs no state vector and so no reduction."""

import importlib
import importlib.util
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from qaoa_source.devices import DeviceError
from qaoa_source.problem import MaxCutProblem
from qaoa_source.reductions import Plan

LIBRARY = "contraction"
# Two complex buffers of doubles, tables and their adjoints.
_BYTES_AN_ENTRY = 32


class ContractedObjective:
    """The cost <H_C> of a problem, each edge's correlation contracted from its causal cone.

    Raises:
        DeviceError: The library isn't in the job's archive, or one it needs isn't installed.
    """

    def __init__(self, problem: MaxCutProblem, p: int) -> None:
        if importlib.util.find_spec(LIBRARY) is None:
            raise DeviceError(
                f"the job's archive lacks the folder {LIBRARY}: write [source] libraries = [{LIBRARY!r}] in jobs.toml"
            )
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(problem.nodes))
        for edge in problem.edges:
            graph.add_edge(edge.first, edge.second, weight=edge.weight)
        try:
            self._energy: Any = importlib.import_module(f"{LIBRARY}.maxcut").maxcut_qaoa(graph, p)
        except ImportError as error:
            raise DeviceError(
                f"the contraction simulator can't be loaded: {error}. Install it in the job's image."
            ) from error
        self._pairs = {frozenset(pair): index for index, pair in enumerate(problem.pairs.tolist())}

    @property
    def bytes_needed(self) -> float:
        """What the tables of one evaluation take."""
        return float(self._energy.plan.buffer_entries[0]) * _BYTES_AN_ENTRY

    def plan(self) -> Plan:
        """What is to be done, in the terms that a state vector's plan is described in."""
        width, operations = self._energy.plan.width, sum(self._energy.plan.operations)
        reason = f"contraction of causal cones, width {width} bits, {operations:.1e} multiplications forward"
        return Plan(LIBRARY, (), reason)

    def value_and_gradient(self, parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The cost and its derivatives, shape (2, p)."""
        value, gradient = self._energy.value_and_gradient(parameters[0], parameters[1])
        return float(value), np.asarray(gradient, dtype=np.float64)

    def value(self, parameters: NDArray[np.float64]) -> float:
        """The cost alone."""
        return float(self._energy.value(parameters[0], parameters[1]))

    def correlations(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """<Z_i Z_j> of each edge, shape (edges,)."""
        correlations = np.zeros(len(self._pairs))
        for pair, value in self._energy.edge_correlations(parameters[0], parameters[1]).items():
            correlations[self._pairs[frozenset(pair)]] = value
        return correlations
