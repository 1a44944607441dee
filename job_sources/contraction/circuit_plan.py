"""Plan the expectation values of a circuit once: networks, orders, steps, and slices where memory asks for them."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from contraction import plan_cache
from contraction.circuit import Circuit
from contraction.cost import DEFAULT_MEMORY_LIMIT, WIDEST, Cost, combined_cost, table_bytes
from contraction.elimination import EliminationOrder, find_order
from contraction.leaf_tables import LeafGather, SlicedAxes, TableGroup, leaf_gather, table_groups
from contraction.light_cone import TableRegister, TableView, word_network
from contraction.matrix_steps import MatrixStep, matrix_steps
from contraction.network import Network
from contraction.plan import Plan, PlanBuilder
from contraction.slicing import SlicedNetwork, slice_network
from contraction.step_table import LANES


@dataclass(frozen=True)
class PlanPart:
    """Words that are evaluated together: all that fit as they are, or one that is sliced.

    Attributes:
        words: their numbers in the circuit.
        plan: the steps.
        gathers: leaf entries of the plain and of the batched buffer.
        slices: number of evaluations whose sum is the result.
        matrix_steps: those of the plan's steps that run as matrix products.
    """

    words: tuple[int, ...]
    plan: Plan
    gathers: tuple[LeafGather, LeafGather]
    slices: int
    matrix_steps: tuple[MatrixStep, ...]


@dataclass(frozen=True)
class CircuitPlan:
    """All that an execution needs besides the values of the parameters.

    Attributes:
        parts: of the circuit's words.
        groups: gate tables in the order in which they are concatenated, those without and those with a batch.
        cost: of one value and gradient at the batch that was planned for.
    """

    parts: tuple[PlanPart, ...]
    groups: tuple[tuple[TableGroup, ...], tuple[TableGroup, ...]]
    cost: Cost


def plan_circuit(
    circuit: Circuit,
    batch: int = 1,
    *,
    memory_limit: float = DEFAULT_MEMORY_LIMIT,
    plan_folder: Path | None = None,
    tries: int | None = None,
) -> CircuitPlan:
    """Find networks and elimination orders for every word of a circuit, sliced where memory asks for it.

    Args:
        circuit: the structure.
        batch: number of samples; the next power of two is planned for.
        memory_limit: bytes that the tables may need.
        plan_folder: where plans are kept across processes; None keeps nothing.
        tries: randomised searches a word; None chooses by the price.

    Raises:
        TooLargeError: some word doesn't fit the limit however it is sliced.
    """
    planner = _Planner(circuit, 1 << (max(batch, 1) - 1).bit_length(), memory_limit, plan_folder, tries)
    parts = planner.whole() or planner.word_by_word()
    cost = planner.cost(parts)
    cost.require(memory_limit)
    return CircuitPlan(tuple(parts), planner.groups, cost)


class _Planner:
    """Plans of one circuit, read from the cache where it has them."""

    def __init__(
        self, circuit: Circuit, batch: int, memory_limit: float, folder: Path | None, tries: int | None
    ) -> None:
        self._circuit, self._batch, self._limit, self._folder, self._tries = circuit, batch, memory_limit, folder, tries
        register = TableRegister()
        self._networks = [word_network(circuit, word, register) for word in circuit.words]
        self._views = list(register.views)
        self.groups, self._offsets = table_groups(register, circuit.batched)
        self._structure = [asdict(circuit), batch, tries]

    def whole(self) -> list[PlanPart] | None:
        """One plan for all words, or None where that doesn't fit the limit."""

        def make() -> plan_cache.StoredPlan | None:
            orders = [self._order(network) for network in self._networks]
            if any(order.width - math.log2(self._batch) > WIDEST for order in orders):
                return None
            return self._stored(
                [
                    SlicedNetwork(network, order, ((),) * len(network.factors), 0)
                    for network, order in zip(self._networks, orders, strict=True)
                ]
            )

        stored = plan_cache.load_or_make(self._folder, plan_cache.plan_key(self._structure), make)
        if stored is None:
            return None
        parts = [self._part(range(len(self._networks)), stored)]
        return parts if self.cost(parts).bytes <= self._limit else None

    def word_by_word(self) -> list[PlanPart]:
        """A plan for each word, sliced until it fits."""
        parts = []
        for number, network in enumerate(self._networks):

            def make(network: Network = network) -> plan_cache.StoredPlan:
                widest = min(WIDEST, math.log2(self._limit)) + math.log2(self._batch)
                sliced = slice_network(network, self._order, self._fits, widest)
                if not self._fits(sliced.network, sliced.order):
                    self._refuse(network)
                return self._stored([sliced])

            key = plan_cache.plan_key([self._structure, number, self._limit])
            stored = plan_cache.load_or_make(self._folder, key, make)
            parts.append(self._part([number], stored))
        return parts

    def cost(self, parts: Sequence[PlanPart]) -> Cost:
        """Of all parts one after another, beside one state vector a sample."""
        return combined_cost(
            width=max(part.plan.width for part in parts),
            operations=sum(
                part.slices * (part.plan.operations[0] + part.plan.operations[1] * self._batch) for part in parts
            ),
            steps=sum(part.slices * len(part.plan.steps) for part in parts),
            table_bytes=max(_bytes_of(part.plan, self._batch) for part in parts),
            slices=max(part.slices for part in parts),
            qubits=self._circuit.wires,
            gates=len(self._circuit.gates),
            words=len(self._circuit.words),
            circuits=self._batch,
        )

    def _refuse(self, network: Network) -> None:
        """Price a network that doesn't fit, as it is without slices.

        Raises:
            TooLargeError: always.
        """
        order = self._order(network)
        combined_cost(
            width=round(order.width - math.log2(self._batch)),
            operations=order.operations,
            steps=network.variables,
            table_bytes=self._bytes(network, order),
            slices=1,
            qubits=self._circuit.wires,
            gates=len(self._circuit.gates),
            words=len(self._circuit.words),
            circuits=self._batch,
        ).require(self._limit)

    def _order(self, network: Network) -> EliminationOrder:
        return find_order(
            [factor.scope for factor in network.factors],
            network.variables,
            priority=network.priority,
            batched=[factor.batched for factor in network.factors],
            batch=self._batch,
            tries=self._tries,
        )

    def _fits(self, network: Network, order: EliminationOrder) -> bool:
        return self._bytes(network, order) <= self._limit

    def _bytes(self, network: Network, order: EliminationOrder) -> float:
        """Of one word alone; of one that is too wide to write its steps down, more than any limit."""
        if order.width - math.log2(self._batch) > WIDEST:
            return max(self._limit + 1, math.ldexp(32.0, min(round(order.width), 1000)))
        builder = PlanBuilder(self._batch)
        builder.add_network(network, order.order)
        return _bytes_of(builder.build(), self._batch)

    def _stored(self, networks: Sequence[SlicedNetwork]) -> plan_cache.StoredPlan:
        """Plan networks together; a factor's table becomes the number of its view and cuts."""
        builder = PlanBuilder(self._batch)
        tables: dict[tuple[int, SlicedAxes], int] = {}
        for sliced in networks:
            factors = tuple(
                replace(factor, table=tables.setdefault((factor.table, cuts), len(tables)))
                for factor, cuts in zip(sliced.network.factors, sliced.sliced_axes, strict=True)
            )
            builder.add_network(replace(sliced.network, factors=factors), sliced.order.order)
        values: dict[str, Any] = {"tables": list(tables), "sliced": max(sliced.sliced for sliced in networks)}
        return plan_cache.StoredPlan(builder.build(), {}, values)

    def _part(self, words: Sequence[int], stored: plan_cache.StoredPlan) -> PlanPart:
        tables: list[tuple[TableView, SlicedAxes]] = [
            (self._views[view], tuple((axis, place) for axis, place in cuts)) for view, cuts in stored.values["tables"]
        ]
        sliced = int(stored.values["sliced"])
        plain, batched = (
            leaf_gather(
                [layout for layout in stored.plan.layouts if layout.batched == kind], tables, self._offsets, sliced
            )
            for kind in (False, True)
        )
        return PlanPart(tuple(words), stored.plan, (plain, batched), 1 << sliced, matrix_steps(stored.plan))


def _bytes_of(plan: Plan, batch: int) -> float:
    """Of the tables, their adjoints, and the matrices of the largest matrix step."""
    lanes = min(batch, LANES)
    matrices = max((step.scratch_entries for step in matrix_steps(plan)), default=0)
    return table_bytes(plan, lanes, batch) + 16.0 * matrices * lanes
