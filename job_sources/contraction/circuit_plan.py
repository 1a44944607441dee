"""Plan the expectation values of a circuit once: networks, orders, steps, and where every leaf entry comes from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contraction.circuit import Circuit
from contraction.elimination import find_order
from contraction.gates import GATES, table_entries
from contraction.light_cone import TableRegister, TableSource, TableView, word_network
from contraction.network import Network
from contraction.plan import LeafLayout, Plan, PlanBuilder


@dataclass(frozen=True)
class LeafGather:
    """For each leaf entry of one buffer: its place in the flat list of gate tables, and -1 where it is conjugated."""

    entries: npt.NDArray[np.int64]
    signs: npt.NDArray[np.float64]


@dataclass(frozen=True)
class TableGroup:
    """Gates of one kind, whose tables are computed together and lie one after another.

    Attributes:
        name, wires, adjoint, controls: as in light_cone.TableSource.
        members: for each gate the numbers of its parameters.
    """

    name: str
    wires: int
    adjoint: bool
    controls: tuple[bool, ...]
    members: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CircuitPlan:
    """All that an execution needs besides the values of the parameters.

    Attributes:
        plan: the steps.
        groups: gate tables in the order in which they are concatenated, those without and those with a batch.
        gathers: leaf entries of the plain and of the batched buffer.
    """

    plan: Plan
    groups: tuple[tuple[TableGroup, ...], tuple[TableGroup, ...]]
    gathers: tuple[LeafGather, LeafGather]


def plan_circuit(circuit: Circuit, batch: int = 1, *, tries: int | None = None) -> CircuitPlan:
    """Find networks and elimination orders for every word of a circuit.

    Args:
        circuit: the structure.
        batch: number of samples; only its size matters for the order.
        tries: randomised searches a word; None chooses by the price.
    """
    register = TableRegister()
    builder = PlanBuilder(batch)
    for word in circuit.words:
        network = word_network(circuit, word, register)
        builder.add_network(network, network_order(network, batch, tries=tries))
    plan = builder.build()
    groups: tuple[list[TableGroup], list[TableGroup]] = ([], [])
    offsets: dict[int, int] = {}
    for batched in (0, 1):
        size = 0
        for members in _alike(register, circuit.batched, batched=bool(batched)):
            for source in members:
                offsets[register.sources[source]] = size
                size += full_entries(source)
            first = members[0]
            parameters = tuple(source.parameters for source in members)
            groups[batched].append(TableGroup(first.name, first.wires, first.adjoint, first.controls, parameters))
    views = list(register.views)
    gathers = tuple(
        _gather([layout for layout in plan.layouts if layout.batched == batched], views, offsets) for batched in (0, 1)
    )
    return CircuitPlan(plan, (tuple(groups[0]), tuple(groups[1])), (gathers[0], gathers[1]))


def _alike(register: TableRegister, batched_parameters: Sequence[bool], *, batched: bool) -> list[list[TableSource]]:
    alike: dict[tuple[str, int, bool, tuple[bool, ...]], list[TableSource]] = {}
    for source in register.sources:
        if any(batched_parameters[parameter] for parameter in source.parameters) == batched:
            alike.setdefault((source.name, source.wires, source.adjoint, source.controls), []).append(source)
    return list(alike.values())


def network_order(network: Network, batch: int, *, tries: int | None = None) -> tuple[int, ...]:
    """A cheap order for a network of a circuit."""
    return find_order(
        [factor.scope for factor in network.factors],
        network.variables,
        priority=network.priority,
        batched=[factor.batched for factor in network.factors],
        batch=batch,
        tries=tries,
    ).order


def full_entries(source: TableSource) -> int:
    """Entries of a source's table with its controls."""
    return table_entries(GATES[source.name], source.wires) << len(source.controls)


def _gather(layouts: Sequence[LeafLayout], views: Sequence[TableView], offsets: dict[int, int]) -> LeafGather:
    entries: list[npt.NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    signs: list[npt.NDArray[np.float64]] = [np.zeros(0)]
    for layout in layouts:
        view = views[layout.table]
        # Axis 0 of a gate's table has the highest stride; axes not in `free` stay at 0.
        places = np.zeros(1, dtype=np.int64)
        for axis in layout.axes:
            stride = 1 << (view.axes - 1 - view.free[axis])
            places = (places[:, None] + np.array([0, stride])).ravel()
        entries.append(places + offsets[view.source])
        signs.append(np.full(len(places), -1.0 if view.conjugate else 1.0))
    return LeafGather(np.concatenate(entries), np.concatenate(signs))

