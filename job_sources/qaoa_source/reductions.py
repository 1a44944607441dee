"""Chooses the circuits that stand for the whole one: exact ways to the same cost, compared by their work."""

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from qaoa_source.ansatz import Circuit, SampledState, whole_circuit
from qaoa_source.cones import Cone, Cones
from qaoa_source.problem import MaxCutProblem

# Joining two cones is tried where it could save this part of the whole work.
MATTERING_SAVING = 1e-3
# No instance holds a state of this many qubits.
HOPELESS_WIRES = 40


@dataclass(frozen=True)
class Plan:
    """Circuits whose values add up to a problem's cost, and how they were arrived at.

    `compared` gives each method's estimated work (amplitude updates an iteration), `reason` says why this one.
    """

    reduction: str
    circuits: tuple[Circuit, ...]
    reason: str
    compared: Mapping[str, float] = field(default_factory=dict)

    @property
    def work(self) -> float:
        """Estimated amplitude updates of one iteration."""
        return sum(circuit.work for circuit in self.circuits)

    @property
    def wires(self) -> int:
        """Qubits of the largest circuit, 0 where there is none."""
        return max((circuit.wires for circuit in self.circuits), default=0)


@dataclass(frozen=True)
class Elsewhere:
    """An exact method that another device runs: its work, or why it has none here, and the device's name."""

    name: str
    device: str
    work: float | None
    remark: str = ""


def plan(problem: MaxCutProblem, p: int, reduction: str, elsewhere: Callable[[Plan], Elsewhere] | None = None) -> Plan:
    """The circuits for a reduction: none, symmetry, light-cone, or auto for the one with the least work.

    `elsewhere` prices what another device could do, given the best plan of this one: auto compares it too, and says
    where it would be less work, but runs on the device that was asked for.
    """
    if reduction != "auto":
        return _PLANS[reduction](problem, p)
    plans = [make(problem, p) for make in _PLANS.values()]
    best = min(plans, key=lambda candidate: candidate.work)
    compared = {candidate.reduction: candidate.work for candidate in plans}
    hint = ""
    if elsewhere is not None:
        other = elsewhere(best)
        if other.work is None:
            hint = f"; {other.name} isn't compared: {other.remark}"
        else:
            compared[other.name] = other.work
            if other.work < best.work:
                hint = f"; {other.name} would be less work: device = {other.device}"
    others = ", ".join(f"{name} {work:.1e}" for name, work in sorted(compared.items()) if name != best.reduction)
    reason = (
        f"auto took {best.reduction}: least work on this device, {best.work:.1e} amplitude updates an iteration on "
        f"{best.wires} qubits ({others}){hint}"
    )
    return Plan(best.reduction, best.circuits, reason, compared)


def _none(problem: MaxCutProblem, p: int) -> Plan:
    return Plan("none", (whole_circuit(problem, p),), "the whole circuit, as asked")


def _symmetry(problem: MaxCutProblem, p: int) -> Plan:
    cones = Cones(problem, p)
    circuits = [cones.circuit(cones.cone(edges)) for edges in component_edges(problem)]
    return Plan("symmetry", tuple(circuits), "connected components apart, one node of each held, as asked")


def _light_cone(problem: MaxCutProblem, p: int) -> Plan:
    cones = Cones(problem, p)
    single = [cones.cone((index,)) for index in range(len(problem.edges))]
    if max(cone.wires for cone in single) > HOPELESS_WIRES:
        # Comparing and joining the cones of a dense graph takes long and would not bring it into reach.
        whole = tuple(cones.circuit(cones.cone(edges)) for edges in component_edges(problem))
        return Plan("light-cone", whole, f"causal cones of more than {HOPELESS_WIRES} qubits, joined, as asked")
    alike = cones.same_structure(single)
    represented = {members[0]: tuple(members) for members in alike}
    groups = _merge(cones, [single[members[0]] for members in alike])
    circuits = [cones.circuit(group, represented) for group in groups]
    reason = f"{len(circuits)} causal cones for {len(problem.edges)} edges, {len(alike)} of them different, as asked"
    return Plan("light-cone", tuple(sorted(circuits, key=lambda circuit: circuit.wires)), reason)


def component_states(problem: MaxCutProblem, p: int) -> list[SampledState]:
    """The final state, component by component, one node of each held at 0."""
    cones = Cones(problem, p)
    return [cones.state(edges) for edges in component_edges(problem)]


def component_edges(problem: MaxCutProblem) -> list[list[int]]:
    """The edges of each connected component, as positions in the problem."""
    component_of = {node: number for number, nodes in enumerate(problem.components) for node in nodes}
    edges: list[list[int]] = [[] for _ in problem.components]
    for index, edge in enumerate(problem.edges):
        edges[component_of[edge.first]].append(index)
    return edges


def _merge(cones: Cones, start: Iterable[Cone]) -> list[Cone]:
    """Joins cones, greedily the pair that saves most, while one circuit for both is less work than one for each.

    Only cones that share a node are tried, and only where the saving could matter. A joined cone holds every gate
    that either needs.
    """
    groups = dict(enumerate(start))
    worthwhile = MATTERING_SAVING * sum(cone.work for cone in groups.values())
    number_of_next = len(groups)
    by_node: dict[int, set[int]] = {}
    for number, cone in groups.items():
        for node in cone.mixers:
            by_node.setdefault(node, set()).add(number)
    queue: list[tuple[float, int, int]] = []
    joined: dict[tuple[int, int], Cone] = {}

    def offer(number: int, others: Collection[int]) -> None:
        for other in others:
            pair = (min(number, other), max(number, other))
            # The joined circuit is at least the larger of the two, so this is the most that can be saved.
            if number == other or pair in joined or min(groups[number].work, groups[other].work) < worthwhile:
                continue
            cone = cones.cone(groups[number].targets + groups[other].targets)
            saving = groups[number].work + groups[other].work - cone.work
            if saving > worthwhile:
                joined[pair] = cone
                heapq.heappush(queue, (-saving, *pair))

    for number, cone in groups.items():
        offer(number, {other for node in cone.mixers for other in by_node[node] if other > number})
    while queue:
        _, first, second = heapq.heappop(queue)
        if first not in groups or second not in groups:
            continue
        cone = joined.pop((first, second))
        del groups[first], groups[second]
        number, number_of_next = number_of_next, number_of_next + 1
        groups[number] = cone
        for node in cone.mixers:
            by_node.setdefault(node, set()).add(number)
        offer(number, {other for node in cone.mixers for other in by_node[node] if other in groups})
    return list(groups.values())


_PLANS = {"none": _none, "symmetry": _symmetry, "light-cone": _light_cone}
