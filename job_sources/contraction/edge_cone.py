"""Causal cone of one edge of a Max-Cut QAOA circuit, its canonical form, and its tensor network.

At depth p, <Z_i Z_j> depends on the nodes within distance p of the edge: a node at distance d keeps its first p - d
layers, because later mixers and phases cancel against their conjugates. Its path sum has one bit per node and layer
for the ket, one for the bra, and one in the middle, where both meet. A ZZ phase is diagonal, hence a pair factor of
two such bits; a mixer is a pair factor of a node's bits of neighbouring layers. Phases between two middle bits of one
layer cancel. Flipping all bits changes no pair factor and only the signs of the two measured Z: half the sum suffices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contraction.network import Factor, Network

Adjacency = Mapping[int, Mapping[int, float]]


@dataclass(frozen=True)
class EdgeCone:
    """What <Z_i Z_j> depends on, relabelled 0, 1, ...: equal cones have equal values.

    Attributes:
        distances: for each node its distance to the edge; the measured nodes are those at distance 0.
        edges: (node, node, weight) of every edge whose phases don't all cancel, sorted.
    """

    distances: tuple[int, ...]
    edges: tuple[tuple[int, int, float], ...]


def edge_cone(adjacency: Adjacency, edge: tuple[int, int], depth: int) -> EdgeCone:
    """Collect the nodes within `depth` steps of an edge and relabel them by structure.

    Nodes are told apart by colour refinement, and ties broken one node at a time (individualisation and refinement).
    Two cones with the same result are isomorphic, since the result is the cone; isomorphic cones may get different
    results in rare highly regular cases, which costs a second contraction and nothing else.
    """
    distances = {edge[0]: 0, edge[1]: 0}
    frontier = [edge[0], edge[1]]
    for distance in range(1, depth + 1):
        following = []
        for node in frontier:
            for neighbour in adjacency[node]:
                if neighbour not in distances:
                    distances[neighbour] = distance
                    following.append(neighbour)
        frontier = following
    nodes = list(distances)
    neighbours = {
        u: {
            v: weight
            for v, weight in adjacency[u].items()
            if v in distances and not distances[u] == distances[v] == depth
        }
        for u in nodes
    }
    labels = _canonical_labels(nodes, distances, neighbours)
    ordered = sorted(nodes, key=labels.__getitem__)
    edges = sorted(
        (min(labels[u], labels[v]), max(labels[u], labels[v]), weight)
        for u in nodes
        for v, weight in neighbours[u].items()
        if u < v
    )
    return EdgeCone(tuple(distances[node] for node in ordered), tuple(edges))


def _canonical_labels(nodes: Sequence[int], distances: Mapping[int, int], neighbours: Adjacency) -> dict[int, int]:
    """Number the nodes 0, 1, ... by structure alone, as far as refinement can tell them apart."""
    # Twins, such as the leaves of one node, are interchangeable: their ties need no refinement.
    colours = _refine({node: distances[node] for node in nodes}, neighbours)
    while True:
        classes: dict[int, list[int]] = {}
        for node, colour in colours.items():
            classes.setdefault(colour, []).append(node)
        tied = [members for members in classes.values() if len(members) > 1 and not _are_twins(members, neighbours)]
        if not tied:
            break
        chosen = min(tied, key=lambda members: colours[members[0]])[0]
        split = {node: 2 * colour + 1 for node, colour in colours.items()}
        split[chosen] -= 1
        colours = _refine(split, neighbours)
    ordered = sorted(nodes, key=lambda node: (colours[node], node))
    return {node: label for label, node in enumerate(ordered)}


def _are_twins(members: Sequence[int], neighbours: Adjacency) -> bool:
    """Whether exchanging any two of the nodes changes nothing: equal neighbours, but for each other."""
    first = members[0]
    return all(
        {node: weight for node, weight in neighbours[first].items() if node != member}
        == {node: weight for node, weight in neighbours[member].items() if node != first}
        for member in members[1:]
    )


def _refine(colours: dict[int, int], neighbours: Adjacency) -> dict[int, int]:
    """Split colours by weights and colours of neighbours until nothing changes; numbers follow from structure only."""
    count = len(set(colours.values()))
    while True:
        signatures = {
            node: (colour, sorted((colours[other], weight) for other, weight in neighbours[node].items()))
            for node, colour in colours.items()
        }
        distinct: list[tuple[int, list[tuple[int, float]]]] = []
        for signature in sorted(signatures.values()):
            if not distinct or distinct[-1] != signature:
                distinct.append(signature)
        ranks = {(colour, tuple(around)): rank for rank, (colour, around) in enumerate(distinct)}
        colours = {node: ranks[colour, tuple(around)] for node, (colour, around) in signatures.items()}
        if len(distinct) == count:
            return colours
        count = len(distinct)


class CoupledTables:
    """Numbers of the leaf tables that a set of cones uses: one per layer and side, and one per weight for phases.

    Table 0 is the measured Z, the only one that flips sign with its bit. Every other table has two entries: for equal
    and for different bits.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.weights: dict[float, int] = {}

    def mixer(self, layer: int, *, bra: bool) -> int:
        """Table of exp(-i beta X) between the bits of layers `layer` and `layer` + 1 (layers count from 0)."""
        return 1 + 2 * layer + bra

    def phase(self, layer: int, weight: float, *, bra: bool) -> int:
        """Table of exp(-i gamma w Z Z / 2) at one layer."""
        index = self.weights.setdefault(weight, len(self.weights))
        return 1 + 2 * self.depth * (1 + index) + 2 * layer + bra


def cone_network(cone: EdgeCone, tables: CoupledTables) -> Network:
    """Write <Z_i Z_j> of a cone as a folded network (see network.Network)."""
    depth = tables.depth
    first = 0
    ket: list[list[int]] = []
    bra: list[list[int]] = []
    priority: list[float] = []
    middle: list[int] = []
    for label, distance in enumerate(cone.distances):
        layers = depth - distance
        ket.append([*range(first, first + layers), first + 2 * layers])
        bra.append([*range(first + layers, first + 2 * layers), first + 2 * layers])
        middle.append(first + 2 * layers)
        # Far nodes first; then by layer, then by node, so that like branches are summed alike.
        rank = -distance * 1e6 + label * 1e-3
        priority += [rank + 10 * layer for layer in range(layers)]
        priority += [rank + 10 * layer + 1 for layer in range(layers)]
        priority.append(rank + 10 * layers)
        first += 2 * layers + 1
    factors: list[Factor] = []
    for label, distance in enumerate(cone.distances):
        if distance == 0:
            factors.append(Factor(0, (middle[label],), sign=-1))
        for layer in range(depth - distance):
            factors.append(Factor(tables.mixer(layer, bra=False), (ket[label][layer], ket[label][layer + 1])))
            factors.append(Factor(tables.mixer(layer, bra=True), (bra[label][layer], bra[label][layer + 1])))
    for u, v, weight in cone.edges:
        for layer in range(depth - min(cone.distances[u], cone.distances[v])):
            factors.append(Factor(tables.phase(layer, weight, bra=False), (ket[u][layer], ket[v][layer])))
            factors.append(Factor(tables.phase(layer, weight, bra=True), (bra[u][layer], bra[v][layer])))
    return Network(first, tuple(factors), frozenset(middle), tuple(priority), folded=True)
