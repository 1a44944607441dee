"""Exact smaller circuits for the correlations of some of a graph's edges.

Four reductions, each exact for the expectation value of Z_i Z_j and its derivatives:
- Causal cone: gates that cancel between the circuit and its inverse are left out, layer by layer from the measurement
  back. Nodes farther than p edges from the measured edges vanish, with them every other connected component.
- Boundary: a node that only the first layer reaches has cost gates but no mixer. Those with a single neighbour in the
  cone dephase it by cos(gamma w) each, so all of one neighbour's are folded into one qubit with the angle t where
  cos t = prod_k cos(gamma w_k).
- Flip symmetry: ansatz and cost don't change when every bit is flipped, so one node, the root, can be held at 0: its
  cost gates become RZ on the neighbours, its mixer flips all other qubits at once. A root on the boundary has no mixer.
- Equal cones: edges whose cones have the same structure have the same correlation, so one circuit serves them all.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
from networkx.algorithms.isomorphism import GraphMatcher

from qaoa_source.ansatz import Circuit, Gate, SampledState, Term, estimated_work
from qaoa_source.problem import MaxCutProblem


@dataclass(frozen=True)
class Cone:
    """The part of the ansatz that the correlations of `targets` depend on.

    targets: the measured edges. mixers: of each node, how many layers, counted from the first, mix it. links: of each
    edge, how many layers, counted from the first, couple it. folded: of a node, the weights of the boundary nodes
    that hang on it alone. Edges are positions in the problem.
    """

    targets: tuple[int, ...]
    mixers: Mapping[int, int]
    links: Mapping[int, int]
    folded: Mapping[int, tuple[float, ...]]

    @cached_property
    def wires(self) -> int:
        """Qubits of the circuit: nodes and folded boundaries, less the root."""
        return len(self.mixers) + len(self.folded) - 1

    @cached_property
    def work(self) -> float:
        """The work of the circuit, without building it."""
        gates = sum(self.mixers.values()) + sum(self.links.values()) + len(self.folded)
        flips = 0 if self.folded else min(self.mixers.values())
        return estimated_work(self.wires, gates, flips, len(self.targets))


class Cones:
    """Finds the cones of a problem at a depth."""

    def __init__(self, problem: MaxCutProblem, p: int) -> None:
        self._problem = problem
        self._p = p
        self._incident: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for index, edge in enumerate(problem.edges):
            self._incident[edge.first].append((index, edge.second))
            self._incident[edge.second].append((index, edge.first))

    def cone(self, targets: Iterable[int]) -> Cone:
        """The cone of these edges: from the last layer back, each layer's couplings reach one edge farther."""
        measured = tuple(sorted(targets))
        reached = {node for index in measured for node in self._problem.pairs[index].tolist()}
        mixers: dict[int, int] = {}
        links: dict[int, int] = {}
        fresh = reached
        for layer in range(self._p, 0, -1):
            for node in fresh:
                mixers[node] = layer
            beyond = set()
            for node in fresh:
                for index, neighbour in self._incident[node]:
                    links.setdefault(index, layer)
                    if neighbour not in mixers:
                        beyond.add(neighbour)
            fresh = beyond
        return self._fold(measured, mixers, links, fresh)

    def _fold(
        self, measured: tuple[int, ...], mixers: dict[int, int], links: dict[int, int], boundary: set[int]
    ) -> Cone:
        hanging: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for node in sorted(boundary):
            inner = [(index, neighbour) for index, neighbour in self._incident[node] if neighbour in mixers]
            if len(inner) == 1:
                hanging[inner[0][1]].append((inner[0][0], node))
            else:
                mixers[node] = 0
        folded = {}
        for node, leaves in sorted(hanging.items()):
            folded[node] = tuple(sorted(self._problem.edges[index].weight for index, _ in leaves))
            for index, _ in leaves:
                del links[index]
        return Cone(measured, mixers, links, folded)

    def circuit(self, cone: Cone, represented: Mapping[int, Collection[int]] | None = None) -> Circuit:
        """The cone as a circuit.

        `represented` lists, for a measured edge, all edges that have the same correlation; by default only itself.
        """
        return _Builder(self._problem, self._p, cone).build(represented or {})

    def state(self, component: Iterable[int]) -> SampledState:
        """The final state of a whole connected component, given by its edges: nothing of it cancels."""
        builder = _Builder(self._problem, self._p, self.cone(component))
        return SampledState(builder.build({}), builder.nodes)

    def same_structure(self, cones: Sequence[Cone]) -> list[list[int]]:
        """Groups one-edge cones whose measured edges have the same correlation; each group as positions in `cones`."""
        groups: dict[str, list[tuple[nx.Graph[int], list[int]]]] = defaultdict(list)
        for position, cone in enumerate(cones):
            graph = self._labelled(cone)
            key = nx.weisfeiler_lehman_graph_hash(graph, node_attr="label", edge_attr="label")
            for other, members in groups[key]:
                if GraphMatcher(graph, other, _same_label, _same_label).is_isomorphic():
                    members.append(position)
                    break
            else:
                groups[key].append((graph, [position]))
        return [members for bucket in groups.values() for _, members in bucket]

    def _labelled(self, cone: Cone) -> "nx.Graph[int]":
        graph: nx.Graph[int] = nx.Graph()
        for node, layers in cone.mixers.items():
            graph.add_node(node, label=repr((layers, cone.folded.get(node, ()))))
        for index, layers in cone.links.items():
            edge = self._problem.edges[index]
            graph.add_edge(edge.first, edge.second, label=repr((layers, edge.weight, index in cone.targets)))
        return graph


def _same_label(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    return first["label"] == second["label"]


class _Builder:
    """Turns one cone into a circuit with a root held at 0."""

    def __init__(self, problem: MaxCutProblem, p: int, cone: Cone) -> None:
        self._problem = problem
        self._p = p
        self._cone = cone
        couplings: dict[int, int] = defaultdict(int)
        for index, layers in cone.links.items():
            for node in problem.pairs[index].tolist():
                couplings[node] += layers
        # The cheapest root has the fewest mixers, each of which would flip all qubits, and the most couplings.
        self._root = min(cone.mixers, key=lambda node: (cone.mixers[node], -couplings[node], node))
        leaves = sorted(cone.folded)
        if cone.mixers[self._root] > 0 and leaves:
            # Folded boundaries have no mixer: one of them is held at 0 instead of a node.
            self._root = -1
            leaves.pop(0)
        self.nodes = tuple(sorted(set(cone.mixers) - {self._root}))
        self._wire = {node: wire for wire, node in enumerate(self.nodes)}
        self._leaf_wire = {node: len(self.nodes) + position for position, node in enumerate(leaves)}

    def build(self, represented: Mapping[int, Collection[int]]) -> Circuit:
        gates: list[Gate] = []
        for layer in range(1, self._p + 1):
            gates += [
                self._coupling(index, layer) for index, layers in sorted(self._cone.links.items()) if layers >= layer
            ]
            if layer == 1:
                gates += [self._folded(node) for node in sorted(self._cone.folded)]
            gates += [self._mixer(node, layer) for node, layers in sorted(self._cone.mixers.items()) if layers >= layer]
        terms = []
        for index in self._cone.targets:
            alike = tuple(represented.get(index, (index,)))
            coefficient = sum(self._problem.edges[edge].weight for edge in alike) / 2
            terms.append(Term(self._wires_of(index), coefficient, alike))
        return Circuit(self._cone.wires, tuple(gates), tuple(terms))

    def _wires_of(self, index: int) -> tuple[int, ...]:
        return tuple(self._wire[node] for node in self._problem.pairs[index].tolist() if node != self._root)

    def _coupling(self, index: int, layer: int) -> Gate:
        wires = self._wires_of(index)
        return Gate("IsingZZ" if len(wires) == 2 else "RZ", wires, layer - 1, self._problem.edges[index].weight)

    def _folded(self, node: int) -> Gate:
        weights = self._cone.folded[node]
        held = node not in self._leaf_wire
        name, wires = ("RZ", (self._wire[node],)) if held else ("IsingZZ", (self._wire[node], self._leaf_wire[node]))
        return Gate(name, wires, 0, weights[0]) if len(weights) == 1 else Gate(name, wires, 0, folded=weights)

    def _mixer(self, node: int, layer: int) -> Gate:
        parameter = self._p + layer - 1
        if node != self._root:
            return Gate("RX", (self._wire[node],), parameter, 2.0)
        everything = tuple(range(self._cone.wires))
        return Gate("RX" if len(everything) == 1 else "FlipAll", everything, parameter, 2.0)
