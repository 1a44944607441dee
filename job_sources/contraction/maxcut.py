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
from contraction.cost import DEFAULT_MEMORY_LIMIT, MOST_BITS, Cost, combined_cost, table_bytes
from contraction.edge_cone import Adjacency, CoupledTables, EdgeCone, cone_network, edge_cone
from contraction.elimination import find_order
from contraction.errors import UnsupportedCircuitError
from contraction.plan import Plan, PlanBuilder
from contraction.step_table import MOST_INPUTS, SCRATCH

if TYPE_CHECKING:
    import networkx

# A cone wider than this is priced alone, before the search goes on to the others.
_WORTH_A_LOOK = 24

Edge = tuple[Hashable, Hashable]
Angles = Sequence[float] | npt.NDArray[np.float64]


def maxcut_qaoa(
    graph: "networkx.Graph[Any]",
    depth: int,
    *,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    plan_folder: Path | Literal["default"] | None = "default",
) -> "MaxCutQaoa":
    """Prepare the exact energy of a Max-Cut QAOA circuit, from any graph, without a state vector.

    Args:
        graph: undirected; edge attribute "weight" (1 where absent). Isolated nodes and unconnected parts are fine.
        depth: number of layers p, at least 1.
        memory_limit: bytes that the tables may need; checked before they are allocated.
        plan_folder: where plans are kept across processes; None keeps nothing (see plan_cache.default_folder).

    Raises:
        UnsupportedCircuitError: directed graph, parallel edges, a loop, a weight that isn't finite, no edge, depth < 1.
        TooLargeError: the tables need more than the limit.
    """
    nodes, edges, adjacency = _checked_graph(graph, depth)
    weights = np.array([adjacency[u][v] for u, v in edges])
    qubits = max(len(component) for component in _components(adjacency))
    folder = plan_cache.default_folder() if plan_folder == "default" else plan_folder
    structure = ["maxcut_qaoa", depth, [[u, v, weight] for (u, v), weight in zip(edges, weights.tolist(), strict=True)]]

    def make() -> plan_cache.StoredPlan:
        return _plan(edges, adjacency, depth, qubits, memory_limit)

    stored = plan_cache.load_or_make(folder, plan_cache.plan_key(structure), make)
    cost = _cost(stored.plan, depth, qubits, len(edges))
    cost.require(memory_limit)
    tables = CoupledTables(depth)
    for weight in stored.values["weights"]:
        tables.phase(0, weight, bra=False)
    named_edges = [(nodes[u], nodes[v]) for u, v in edges]
    return MaxCutQaoa(depth, named_edges, weights, stored.arrays["class_of_edge"], stored.plan, tables, cost)


def _plan(
    edges: Sequence[tuple[int, int]], adjacency: Adjacency, depth: int, qubits: int, memory_limit: float
) -> plan_cache.StoredPlan:
    """Equal cones once; each network with its order."""
    tables = CoupledTables(depth)
    builder = PlanBuilder()
    classes: dict[EdgeCone, int] = {}
    class_of_edge = []
    for edge in edges:
        cone = edge_cone(adjacency, edge, depth)
        if cone not in classes:
            classes[cone] = len(classes)
            network = cone_network(cone, tables)
            scopes = [factor.scope for factor in network.factors]
            order = find_order(scopes, network.variables, priority=network.priority)
            if order.width > MOST_BITS:
                # Folded: tables of half the width's entries, each with its adjoint.
                combined_cost(
                    width=int(order.width),
                    operations=order.operations,
                    steps=network.variables,
                    table_bytes=16.0 * 2.0**order.width,
                    slices=1,
                    qubits=qubits - 1,
                    gates=depth * (len(edges) + qubits),
                    circuits=1,
                ).require(min(memory_limit, 2.0**MOST_BITS))
            if order.width > _WORTH_A_LOOK:
                alone = PlanBuilder()
                alone.add_network(network, order.order)
                _cost(alone.build(), depth, qubits, len(edges)).require(memory_limit)
            builder.add_network(network, order.order)
        class_of_edge.append(classes[cone])
    return plan_cache.StoredPlan(
        builder.build(), {"class_of_edge": np.array(class_of_edge)}, {"weights": list(tables.weights)}
    )


def _cost(plan: Plan, depth: int, qubits: int, edges: int) -> Cost:
    """Beside a state vector of the largest component with one node fixed (Z2)."""
    return combined_cost(
        width=plan.width,
        operations=plan.operations[0],
        steps=len(plan.steps),
        table_bytes=table_bytes(plan, 0, 1),
        slices=1,
        qubits=qubits - 1,
        gates=depth * (edges + qubits),
        circuits=1,
    )


class MaxCutQaoa:
    """Energy <H_C>, its gradient and all edge correlations <Z_u Z_v> of one graph at one depth.

    Not safe for use by several threads at once: evaluations share one workspace.

    Attributes:
        depth: number of layers.
        edges: the graph's edges, as its own pairs of nodes.
        plan: the steps of the contraction.
        cost: what one value and gradient costs, beside a state vector.
    """

    def __init__(
        self,
        depth: int,
        edges: Sequence[Edge],
        weights: npt.NDArray[np.float64],
        class_of_edge: npt.NDArray[np.int64],
        plan: Plan,
        tables: CoupledTables,
        cost: Cost,
    ) -> None:
        self.depth = depth
        self.edges = tuple(edges)
        self.plan = plan
        self.cost = cost
        self._weights = weights
        self._class_of_edge = class_of_edge
        self._coefficients = np.bincount(class_of_edge, weights=weights / 2, minlength=len(plan.roots)).astype(
            np.float64
        )
        self._leaves = _Leaves(plan, tables)
        entries = plan.buffer_entries[0]
        self._re, self._im = np.zeros(entries), np.zeros(entries)
        self._bar_re, self._bar_im = np.zeros(0), np.zeros(0)
        self._scratch = np.zeros(SCRATCH), np.zeros(SCRATCH), np.zeros(MOST_INPUTS, dtype=np.int64)

    def value(self, gammas: Angles, betas: Angles) -> float:
        """<H_C> at one set of angles, each of shape (depth,), in radians."""
        values = self._evaluate(gammas, betas, np.zeros(0))
        return float(self._coefficients @ values - self._weights.sum() / 2)

    def value_and_gradient(self, gammas: Angles, betas: Angles) -> tuple[float, npt.NDArray[np.float64]]:
        """<H_C> and its derivatives, shape (2, depth): row 0 by the gammas, row 1 by the betas."""
        values = self._evaluate(gammas, betas, self._coefficients)
        gradient = self._leaves.gradient(self._bar_re, self._bar_im)
        return float(self._coefficients @ values - self._weights.sum() / 2), gradient

    def edge_correlations(self, gammas: Angles, betas: Angles) -> dict[Edge, float]:
        """<Z_u Z_v> for every edge of the graph, keyed by the graph's own edges."""
        values = self._evaluate(gammas, betas, np.zeros(0))[self._class_of_edge]
        return dict(zip(self.edges, values.tolist(), strict=True))

    def _evaluate(
        self, gammas: Angles, betas: Angles, coefficients: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        from contraction.sweep_kernels import evaluate_networks  # noqa: PLC0415  (imports numba)

        angles = _angles(gammas, "gammas", self.depth), _angles(betas, "betas", self.depth)
        self._leaves.fill(*angles, self._re, self._im)
        if coefficients.size and not self._bar_re.size:
            self._bar_re, self._bar_im = np.zeros_like(self._re), np.zeros_like(self._re)
        plan = self.plan
        results = np.zeros(len(plan.roots))
        evaluate_networks(
            plan.steps, plan.inputs, plan.groups, plan.roots, coefficients,
            self._re, self._im, self._bar_re, self._bar_im, results, False, *self._scratch,
        )  # fmt: skip
        return results


class _Leaves:
    """Fills the leaf tables from the angles, and carries their adjoints back to the angles."""

    def __init__(self, plan: Plan, tables: CoupledTables) -> None:
        self._depth = tables.depth
        weights = list(tables.weights)
        self._measured: list[int] = []
        rows = []
        offset = 0
        for layout in plan.layouts:
            if layout.table == 0:
                self._measured.append(offset)
            else:
                kind, place = divmod(layout.table - 1, 2 * tables.depth)
                rows.append((offset, place // 2, place % 2, kind > 0, weights[kind - 1] if kind else 0.0))
            offset += 1 << layout.stored_bits
        columns = np.array(rows).reshape(-1, 5).T
        self._offsets, self._layers = columns[0].astype(np.int64), columns[1].astype(np.int64)
        self._conjugate = np.where(columns[2] > 0, -1.0, 1.0)
        self._is_phase = columns[3] > 0
        self._half_weights = columns[4] / 2
        self._angles = self._sines = self._cosines = np.zeros(0)

    def fill(
        self,
        gammas: npt.NDArray[np.float64],
        betas: npt.NDArray[np.float64],
        re: npt.NDArray[np.float64],
        im: npt.NDArray[np.float64],
    ) -> None:
        angles = np.where(self._is_phase, self._half_weights * gammas[self._layers], betas[self._layers])
        self._cosines = np.cos(angles)
        self._sines = self._conjugate * np.sin(angles)
        # A phase is exp(-+i angle) for equal and different bits, a mixer cos(angle) and -i sin(angle).
        re[self._offsets] = self._cosines
        im[self._offsets] = np.where(self._is_phase, -self._sines, 0.0)
        re[self._offsets + 1] = np.where(self._is_phase, self._cosines, 0.0)
        im[self._offsets + 1] = np.where(self._is_phase, self._sines, -self._sines)
        re[self._measured] = 1.0
        im[self._measured] = 0.0

    def gradient(self, bar_re: npt.NDArray[np.float64], bar_im: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Real part of sum(adjoint d(table)/d(angle)), summed by layer: shape (2, depth)."""
        equal = bar_re[self._offsets] + 1j * bar_im[self._offsets]
        different = bar_re[self._offsets + 1] + 1j * bar_im[self._offsets + 1]
        cosines = self._conjugate * self._cosines
        sines = self._conjugate * self._sines
        by_angle = np.where(
            self._is_phase,
            self._half_weights * ((equal - different).imag * cosines - (equal + different).real * sines),
            different.imag * cosines - equal.real * sines,
        )
        result = np.zeros((2, self._depth))
        for row, chosen in enumerate((self._is_phase, ~self._is_phase)):
            result[row] = np.bincount(self._layers[chosen], weights=by_angle[chosen], minlength=self._depth)
        return result


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
