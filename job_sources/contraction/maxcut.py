"""Exact Max-Cut QAOA energies and gradients from edge cones, for graphs of any number of nodes.

Conventions: |psi> = prod_l exp(-i beta_l H_M) exp(-i gamma_l H_C) |+...+> with layer 1 applied first,
H_M = sum_v X_v, H_C = 1/2 sum_(u,v) w_uv (Z_u Z_v - 1); the expected cut is -<H_C>.
E. Farhi, J. Goldstone, S. Gutmann, "A quantum approximate optimization algorithm", arXiv:1411.4028 (locality of the
edge terms in section II).
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from contraction import plan_cache
from contraction.angle_tables import AngleTables
from contraction.cost import DEFAULT_MEMORY_LIMIT
from contraction.edge_cone import Adjacency
from contraction.errors import UnsupportedCircuitError
from contraction.maxcut_plan import MaxCutPlan, MaxCutPlanner
from contraction.step_table import MOST_INPUTS, SCRATCH

if TYPE_CHECKING:
    import networkx

Edge = tuple[Hashable, Hashable]
Angles = Sequence[float] | npt.NDArray[np.float64]


def maxcut_qaoa(
    graph: "networkx.Graph[Any]",
    depth: int,
    *,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    slicing: bool = True,
    plan_folder: Path | Literal["default"] | None = "default",
) -> "MaxCutQaoa":
    """Prepare the exact energy of a Max-Cut QAOA circuit, from any graph, without a state vector.

    Args:
        graph: undirected; edge attribute "weight" (1 where absent). Isolated nodes and unconnected parts are fine.
        depth: number of layers p, at least 1.
        memory_limit: bytes that the tables may need; checked before they are allocated.
        slicing: cut cones that don't fit into parts that do, each summed on its own; False refuses them.
        plan_folder: where plans are kept across processes; None keeps nothing (see plan_cache.default_folder).

    Raises:
        UnsupportedCircuitError: directed graph, parallel edges, a loop, a weight that isn't finite, no edge, depth < 1.
        TooLargeError: the tables need more than the limit.
    """
    nodes, edges, adjacency = _checked_graph(graph, depth)
    weights = np.array([adjacency[u][v] for u, v in edges])
    qubits = max(len(component) for component in _components(adjacency))
    folder = plan_cache.default_folder() if plan_folder == "default" else plan_folder
    planner = MaxCutPlanner(edges, adjacency, depth, qubits, memory_limit, slicing=slicing, folder=folder)
    return MaxCutQaoa(depth, [(nodes[u], nodes[v]) for u, v in edges], weights, planner.plan())


class MaxCutQaoa:
    """Energy <H_C>, its gradient and all edge correlations <Z_u Z_v> of one graph at one depth.

    Not safe for use by several threads at once: evaluations share one workspace.

    Attributes:
        depth: number of layers.
        edges: the graph's edges, as its own pairs of nodes.
        parts: the steps of the contraction.
        cost: what one value and gradient costs, beside a state vector.
    """

    def __init__(
        self, depth: int, edges: Sequence[Edge], weights: npt.NDArray[np.float64], prepared: MaxCutPlan
    ) -> None:
        self.depth = depth
        self.edges = tuple(edges)
        self.parts = prepared.parts
        self.cost = prepared.cost
        self._weights = weights
        self._class_of_edge = prepared.class_of_edge
        self._classes = sum(len(part.classes) for part in prepared.parts)
        self._coefficients = np.bincount(prepared.class_of_edge, weights=weights / 2, minlength=self._classes).astype(
            np.float64
        )
        self._tables = AngleTables(depth, prepared.weights)
        entries = max(part.plan.buffer_entries[0] for part in prepared.parts)
        self._re, self._im = np.zeros(entries), np.zeros(entries)
        self._bar_re, self._bar_im = np.zeros(0), np.zeros(0)
        self._scratch = np.zeros(SCRATCH), np.zeros(SCRATCH), np.zeros(MOST_INPUTS, dtype=np.int64)

    def value(self, gammas: Angles, betas: Angles) -> float:
        """<H_C> at one set of angles, each of shape (depth,), in radians."""
        values, _ = self._evaluate(gammas, betas, differentiate=False)
        return float(self._coefficients @ values - self._weights.sum() / 2)

    def value_and_gradient(self, gammas: Angles, betas: Angles) -> tuple[float, npt.NDArray[np.float64]]:
        """<H_C> and its derivatives, shape (2, depth): row 0 by the gammas, row 1 by the betas."""
        values, adjoints = self._evaluate(gammas, betas, differentiate=True)
        return float(self._coefficients @ values - self._weights.sum() / 2), self._tables.gradient(adjoints)

    def edge_correlations(self, gammas: Angles, betas: Angles) -> dict[Edge, float]:
        """<Z_u Z_v> for every edge of the graph, keyed by the graph's own edges."""
        values, _ = self._evaluate(gammas, betas, differentiate=False)
        return dict(zip(self.edges, values[self._class_of_edge].tolist(), strict=True))

    def _evaluate(
        self, gammas: Angles, betas: Angles, *, differentiate: bool
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.complex128]]:
        """Values of all classes, and adjoints of all entries of the leaf tables (see angle_tables)."""
        from contraction.sweep_kernels import evaluate_networks  # noqa: PLC0415  (imports numba)

        re, im = self._tables.entries(_angles(gammas, "gammas", self.depth), _angles(betas, "betas", self.depth))
        if differentiate and not self._bar_re.size:
            self._bar_re, self._bar_im = np.zeros_like(self._re), np.zeros_like(self._re)
        values = np.zeros(self._classes)
        adjoints = np.zeros(len(re), dtype=np.complex128)
        for part in self.parts:
            plan = part.plan
            size = plan.buffer_entries[0] if differentiate else 0
            bar_re, bar_im = self._bar_re[:size], self._bar_im[:size]
            coefficients = part.weight * self._coefficients[part.classes] if differentiate else np.zeros(0)
            results = np.zeros(len(plan.roots))
            for number in part.slices:
                places = part.leaves.at_slice(number)
                self._re[: len(places)], self._im[: len(places)] = re[places], im[places]
                evaluate_networks(
                    plan.steps, plan.inputs, plan.groups, plan.roots, coefficients,
                    self._re, self._im, bar_re, bar_im, results, False, *self._scratch,
                )  # fmt: skip
                values[part.classes] += part.weight * results
                if differentiate:
                    adjoints.real += np.bincount(places, bar_re[: len(places)], len(re))
                    adjoints.imag += np.bincount(places, bar_im[: len(places)], len(re))
        return values, adjoints


def _checked_graph(
    graph: "networkx.Graph[Any]", depth: int
) -> tuple[list[Hashable], list[tuple[int, int]], dict[int, dict[int, float]]]:
    """Nodes, edges by node number, and weights by node number; edges of weight 0 are left out of the adjacency."""
    if depth < 1:
        raise UnsupportedCircuitError(f"depth = {depth}: a QAOA circuit has at least one layer. Choose depth >= 1.")
    if graph.is_directed() or graph.is_multigraph():
        raise UnsupportedCircuitError(
            f"graph of type {type(graph).__name__}: Max-Cut needs an undirected graph without parallel edges. "
            "Convert it with networkx.Graph(graph)."
        )
    if not graph.number_of_edges():
        raise UnsupportedCircuitError("graph without edges: its Max-Cut energy is always 0. Pass at least one edge.")
    nodes: list[Hashable] = list(graph.nodes)
    numbers: Mapping[Hashable, int] = {node: number for number, node in enumerate(nodes)}
    adjacency: dict[int, dict[int, float]] = {number: {} for number in range(len(nodes))}
    edges = []
    for u, v, data in graph.edges(data=True):
        weight = _weight(u, v, data)
        edges.append((numbers[u], numbers[v]))
        adjacency[numbers[u]][numbers[v]] = adjacency[numbers[v]][numbers[u]] = weight
    return nodes, edges, adjacency


def _components(adjacency: Adjacency) -> list[set[int]]:
    """Connected parts, as sets of node numbers."""
    found: list[set[int]] = []
    seen: set[int] = set()
    for start in adjacency:
        if start in seen:
            continue
        component, frontier = {start}, [start]
        while frontier:
            fresh = [node for node in adjacency[frontier.pop()] if node not in component]
            component.update(fresh)
            frontier += fresh
        seen |= component
        found.append(component)
    return found


def _weight(u: Hashable, v: Hashable, data: Mapping[str, Any]) -> float:
    if u == v:
        raise UnsupportedCircuitError(f"edge ({u}, {v}): a loop is never cut. Remove it.")
    weight = float(data.get("weight", 1.0))
    if not math.isfinite(weight):
        raise UnsupportedCircuitError(f"edge ({u}, {v}): weight = {weight} is not finite. Give it a real weight.")
    return weight


def _angles(values: Angles, name: str, depth: int) -> npt.NDArray[np.float64]:
    angles = np.asarray(values, dtype=np.float64)
    if angles.shape != (depth,):
        raise ValueError(f"{name} of shape {angles.shape}: expected ({depth},), one angle a layer.")
    return angles
