"""Plan the cones of a Max-Cut circuit once: equal cones share a contraction, and what doesn't fit is sliced."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from contraction import plan_cache
from contraction.angle_tables import ConeLeaves, cone_leaves
from contraction.cost import WIDEST, Cost, combined_cost, table_bytes
from contraction.edge_cone import Adjacency, CoupledTables, EdgeCone, cone_network, edge_cone
from contraction.elimination import EliminationOrder, find_order
from contraction.network import Network
from contraction.plan import Plan, PlanBuilder
from contraction.slicing import SlicedNetwork, slice_network

# A cone wider than this is priced alone, before the search goes on to the others.
_WORTH_A_LOOK = 24
# Tries of a search while it is open which variables to fix.
_TRIES_WHILE_SLICING = 16
# A cone that takes hours an evaluation isn't sliced.
_MOST_OPERATIONS = 2.0**40


@dataclass(frozen=True)
class ConePart:
    """Classes of cones that are evaluated together: all that fit as they are, or one that is sliced.

    Attributes:
        classes: their numbers, one for each root of the plan.
        plan: the steps.
        leaves: what fills the plan's leaf tables.
        slices: the assignments of the sliced variables whose values are summed.
        weight: factor of that sum.
    """

    classes: npt.NDArray[np.int64]
    plan: Plan
    leaves: ConeLeaves
    slices: tuple[int, ...] = (0,)
    weight: float = 1.0


@dataclass(frozen=True)
class MaxCutPlan:
    """All that an evaluation needs besides the angles.

    Attributes:
        parts: of all classes of cones.
        class_of_edge: the class of each edge's cone.
        weights: of the phase tables, in their order.
        cost: of one value and gradient.
    """

    parts: tuple[ConePart, ...]
    class_of_edge: npt.NDArray[np.int64]
    weights: tuple[float, ...]
    cost: Cost


class MaxCutPlanner:
    """Plans of one graph at one depth, read from the cache where it has them.

    Args:
        edges, adjacency: of the graph, by node number.
        depth: number of layers.
        qubits: of the state vector that would be needed instead.
        memory_limit: bytes that the tables may need.
        slicing: whether cones that don't fit are sliced.
        folder: of the cache.
    """

    def __init__(
        self,
        edges: Sequence[tuple[int, int]],
        adjacency: Adjacency,
        depth: int,
        qubits: int,
        memory_limit: float,
        *,
        slicing: bool,
        folder: Path | None,
    ) -> None:
        self._edges, self._adjacency, self._depth, self._qubits = edges, adjacency, depth, qubits
        self._limit, self._slicing, self._folder = memory_limit, slicing, folder
        self._structure = ["maxcut_qaoa", depth, [[u, v, adjacency[u][v]] for u, v in edges]]

    def plan(self) -> MaxCutPlan:
        """All cones in one plan, or those that fit, and a sliced plan for each of the others.

        Raises:
            TooLargeError: the tables need more than the limit.
        """
        stored = plan_cache.load_or_make(self._folder, plan_cache.plan_key(self._structure), self._whole)
        if stored is not None and (not self._slicing or _bytes_of(stored.plan) <= self._limit):
            classes = np.arange(len(stored.plan.roots))
            parts = [ConePart(classes, stored.plan, cone_leaves(stored.plan))]
            class_of_edge, weights = stored.arrays["class_of_edge"], tuple(stored.values["weights"])
        else:
            parts, class_of_edge, weights = self._sliced()
        cost = self._cost(parts)
        cost.require(self._limit)
        return MaxCutPlan(tuple(parts), class_of_edge, weights, cost)

    def _classes(self, tables: CoupledTables) -> tuple[npt.NDArray[np.int64], list[Network]]:
        """The class of each edge, and the network of each class."""
        classes: dict[EdgeCone, int] = {}
        networks: list[Network] = []
        class_of_edge = []
        for edge in self._edges:
            cone = edge_cone(self._adjacency, edge, self._depth)
            if cone not in classes:
                classes[cone] = len(classes)
                networks.append(cone_network(cone, tables))
            class_of_edge.append(classes[cone])
        return np.array(class_of_edge), networks

    def _whole(self) -> plan_cache.StoredPlan | None:
        """One plan of all cones; None where one alone doesn't fit and is to be sliced."""
        tables = CoupledTables(self._depth)
        builder = PlanBuilder()
        class_of_edge, networks = self._classes(tables)
        for network in networks:
            order = _order(network)
            if not self._fits_alone(network, order):
                return None
            builder.add_network(network, order.order)
        values = {"weights": list(tables.weights)}
        return plan_cache.StoredPlan(builder.build(), {"class_of_edge": class_of_edge}, values)

    def _fits_alone(self, network: Network, order: EliminationOrder) -> bool:
        """Whether a wide cone fits the limit.

        Raises:
            TooLargeError: it doesn't, and can't be sliced to fit.
        """
        if order.width <= _WORTH_A_LOOK:
            return not self._slicing or 8.0 * 2.0**order.width <= self._limit or _fits(network, order, self._limit)
        if _fits(network, order, self._limit):
            return True
        if not self._slicing or order.operations > _MOST_OPERATIONS:
            self._refuse(network, order)
        return False

    def _sliced(self) -> tuple[list[ConePart], npt.NDArray[np.int64], tuple[float, ...]]:
        tables = CoupledTables(self._depth)
        builder = PlanBuilder()
        class_of_edge, networks = self._classes(tables)
        fitting: dict[int, Plan] = {}
        wide: dict[int, tuple[Network, EliminationOrder]] = {}
        for number, network in enumerate(networks):
            order = _order(network)
            alone = _plan_of(network, order)
            if alone is not None and _bytes_of(alone) <= self._limit:
                fitting[number] = alone
                builder.add_network(network, order.order)
            elif order.operations > _MOST_OPERATIONS:
                # Before minutes go into slicing the others.
                self._refuse(network, order)
            else:
                wide[number] = network, order
        parts = [self._sliced_part(number, network, order) for number, (network, order) in wide.items()]
        if fitting:
            together = builder.build()
            # Tables that cones share are all in memory at once; without sharing there is only one cone's.
            plans = {tuple(fitting): together}
            if _bytes_of(together) > self._limit:
                plans = {(number,): plan for number, plan in fitting.items()}
            parts += [ConePart(np.array(classes), plan, cone_leaves(plan)) for classes, plan in plans.items()]
        return parts, class_of_edge, tuple(tables.weights)

    def _sliced_part(self, number: int, folded: Network, unsliced: EliminationOrder) -> ConePart:
        # Fixing a variable takes the place of folding: what is fixed first needs its value 0 only.
        network = replace(folded, folded=False)

        def make() -> plan_cache.StoredPlan:
            sliced = slice_network(
                network,
                lambda part: _order(part, _TRIES_WHILE_SLICING),
                lambda part, order: _fits(part, order, self._limit),
                min(WIDEST, np.log2(self._limit)),
            )
            # An order of fewer operations may need more memory.
            orders = sliced.order, _order(sliced.network)
            fitting = [order for order in orders if _fits(sliced.network, order, self._limit)]
            if not fitting:
                self._refuse(folded, unsliced)
            order = min(fitting, key=lambda found: found.operations)
            return _stored(sliced, order, len(network.halved))

        key = plan_cache.plan_key([self._structure, number, self._limit])
        stored = plan_cache.load_or_make(self._folder, key, make)
        cuts = [(table, tuple((axis, place) for axis, place in axes)) for table, axes in stored.values["tables"]]
        sliced = stored.values["sliced"]
        leaves = cone_leaves(stored.plan, cuts, sliced)
        # Of the first variable that is fixed only the value 0 counts, and twice, for the symmetry.
        slices, weight = tuple(range(0, 1 << sliced, 2)), 2.0 * 0.5 ** stored.values["halved"]
        return ConePart(np.array([number]), stored.plan, leaves, slices, weight)

    def _refuse(self, network: Network, order: EliminationOrder) -> None:
        """Price a cone that doesn't fit, as it is without slices.

        Raises:
            TooLargeError: always.
        """
        alone = _plan_of(network, order)
        tables = 16.0 * 2.0 ** min(order.width, 1000.0) if alone is None else _bytes_of(alone)
        self._combined(
            width=int(order.width),
            operations=order.operations,
            steps=network.variables,
            table_bytes=max(self._limit + 1, tables),
            slices=1,
        ).require(self._limit)

    def _cost(self, parts: Sequence[ConePart]) -> Cost:
        return self._combined(
            width=max(part.plan.width for part in parts),
            operations=sum(len(part.slices) * part.plan.operations[0] for part in parts),
            steps=sum(len(part.slices) * len(part.plan.steps) for part in parts),
            # One after another in one workspace.
            table_bytes=max(_bytes_of(part.plan) for part in parts),
            slices=max(len(part.slices) for part in parts),
        )

    def _combined(self, **counted: Any) -> Cost:
        """Beside a state vector of the largest component with one node fixed (Z2)."""
        words = len(self._edges)
        gates = self._depth * (words + self._qubits)
        return combined_cost(**counted, qubits=self._qubits - 1, gates=gates, words=words, circuits=1)


def _order(network: Network, tries: int | None = None) -> EliminationOrder:
    scopes = [factor.scope for factor in network.factors]
    return find_order(scopes, network.variables, priority=network.priority, tries=tries)


def _plan_of(network: Network, order: EliminationOrder) -> Plan | None:
    """Of one cone alone; None for one that is too wide to write its steps down."""
    if order.width > WIDEST + network.folded:
        return None
    builder = PlanBuilder()
    builder.add_network(network, order.order)
    return builder.build()


def _fits(network: Network, order: EliminationOrder, limit: float) -> bool:
    plan = _plan_of(network, order)
    return plan is not None and _bytes_of(plan) <= limit


def _bytes_of(plan: Plan) -> float:
    return table_bytes(plan, 0, 1)


def _stored(sliced: SlicedNetwork, order: EliminationOrder, halved: int) -> plan_cache.StoredPlan:
    """A factor's table becomes the number of its table and cuts."""
    tables: dict[Any, int] = {}
    factors = tuple(
        replace(factor, table=tables.setdefault((factor.table, cuts), len(tables)))
        for factor, cuts in zip(sliced.network.factors, sliced.sliced_axes, strict=True)
    )
    builder = PlanBuilder()
    builder.add_network(replace(sliced.network, factors=factors), order.order)
    values = {
        "tables": list(tables),
        "sliced": sliced.sliced,
        "halved": halved - len(sliced.network.halved),
    }
    return plan_cache.StoredPlan(builder.build(), {}, values)
