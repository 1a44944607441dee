"""The cost on the contraction simulator, which needs no state vector and so no reduction."""

import importlib
import importlib.util
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from qaoa_source.devices import CONTRACTION, DeviceError
from qaoa_source.problem import MaxCutProblem
from qaoa_source.reductions import Elsewhere, Plan

LIBRARY = "contraction"
# Seconds that lightning.qubit takes for one amplitude update of ansatz.estimated_work, between 18 and 24 nodes.
_SECONDS_AN_UPDATE = 3e-9
# Tables of this size are planned for in any case, and larger ones only beside a state vector as large.
_WORTH_PLANNING_BYTES = 2.0**24


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
        try:
            self._energy: Any = _prepared(problem, p)
        except ImportError as error:
            raise DeviceError(
                f"the contraction simulator can't be loaded: {error}. Install it in the job's image."
            ) from error
        self._pairs = {frozenset(pair): index for index, pair in enumerate(problem.pairs.tolist())}

    @property
    def bytes_needed(self) -> float:
        """What the tables of one evaluation take."""
        return float(self._energy.cost.bytes)

    def plan(self) -> Plan:
        """What is to be done, in the terms that a state vector's plan is described in."""
        cost = self._energy.cost
        reason = (
            f"contraction of causal cones, width {cost.width} bits, {cost.operations:.1e} multiplications forward, "
            f"about {cost.seconds:.1e} s an iteration; a state vector of {cost.state_vector_qubits} qubits would take "
            f"about {cost.state_vector_seconds:.1e} s"
        )
        if cost.faster != LIBRARY:
            reason += ": device = local:pennylane/lightning.qubit with reduction = auto is less work"
        seconds = {LIBRARY: cost.seconds, "symmetry": cost.state_vector_seconds}
        compared = {name: value / _SECONDS_AN_UPDATE for name, value in seconds.items()}
        return Plan(LIBRARY, (), reason, compared)

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


def priced(problem: MaxCutProblem, p: int, best: Plan) -> Elsewhere:
    """What the contraction simulator would take for a problem, beside the best plan of state vectors.

    A contraction whose tables would be larger than the states is not planned to the end.
    """
    if importlib.util.find_spec(LIBRARY) is None:
        return Elsewhere(LIBRARY, CONTRACTION, None, "the job's archive doesn't hold it")
    limit = max(_WORTH_PLANNING_BYTES, 3 * 16 * 2.0 ** min(best.wires, 1000))
    errors = importlib.import_module(f"{LIBRARY}.errors")
    try:
        cost = _prepared(problem, p, memory_limit=limit, slicing=False).cost
    except ImportError as error:
        return Elsewhere(LIBRARY, CONTRACTION, None, str(error))
    except errors.TooLargeError:
        return Elsewhere(LIBRARY, CONTRACTION, None, f"its tables would exceed {limit / 2**20:.3g} MiB")
    return Elsewhere(LIBRARY, CONTRACTION, cost.seconds / _SECONDS_AN_UPDATE)


def _prepared(problem: MaxCutProblem, p: int, **options: Any) -> Any:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(problem.nodes))
    for edge in problem.edges:
        graph.add_edge(edge.first, edge.second, weight=edge.weight)
    return importlib.import_module(f"{LIBRARY}.maxcut").maxcut_qaoa(graph, p, **options)
