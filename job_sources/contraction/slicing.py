"""Cut a network into independent parts when its tables don't fit: fix some variables and sum over their values.

Each fixed variable halves the tables that depend on it and doubles the number of evaluations. The variable chosen is
the one whose fixing leaves the cheapest network among those in the largest tables; the order is searched anew.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from contraction.elimination import EliminationOrder
from contraction.network import Network

_CANDIDATES = 6
_MOST_SLICED = 20


@dataclass(frozen=True)
class SlicedNetwork:
    """A network without its sliced variables, which its factors' tables are cut at.

    Attributes:
        network: the variables that are left, numbered anew; the factor 1/2 of a halved one that is fixed is left out.
        order: of their summation, with its price.
        sliced_axes: for each factor pairs (axis, place among the sliced variables) of the axes that were cut.
        sliced: how many variables are fixed; there are 2^sliced evaluations.
    """

    network: Network
    order: EliminationOrder
    sliced_axes: tuple[tuple[tuple[int, int], ...], ...]
    sliced: int


def slice_network(
    network: Network,
    find: Callable[[Network], EliminationOrder],
    fits: Callable[[Network, EliminationOrder], bool],
    widest: float,
) -> SlicedNetwork:
    """Fix variables one by one until the network's plan fits.

    Args:
        network: not folded.
        find: searches an order.
        fits: whether a network's tables fit the memory in some order.
        widest: the width in bits beyond which no network fits; a variable that is fixed takes away about one bit.

    Returns:
        The sliced network; one that doesn't fit if none does.
    """
    sliced: list[int] = []
    while True:
        remaining, axes = _without(network, sliced)
        order = find(remaining)
        hopeless = order.width - (_MOST_SLICED - len(sliced)) > widest
        if hopeless or len(sliced) >= _MOST_SLICED or remaining.variables < 2 or fits(remaining, order):
            break
        sliced.append(_best_variable(network, sliced, order, find))
    return SlicedNetwork(remaining, order, axes, len(sliced))


def _best_variable(
    network: Network, sliced: Sequence[int], order: EliminationOrder, find: Callable[[Network], EliminationOrder]
) -> int:
    """Of the variables in most of the factors that meet the widest step, the one that leaves the fewest operations."""
    names = [variable for variable in range(network.variables) if variable not in sliced]
    remaining, _ = _without(network, sliced)
    counts = _large_table_counts(remaining, order.order)
    candidates = sorted(range(remaining.variables), key=lambda variable: -counts[variable])[:_CANDIDATES]
    return min(
        (names[candidate] for candidate in candidates),
        key=lambda variable: find(_without(network, [*sliced, variable])[0]).operations,
    )


def _large_table_counts(network: Network, order: Sequence[int]) -> list[float]:
    """For each variable the entries of all joint tables that it is in."""
    neighbours: dict[int, set[int]] = {variable: set() for variable in range(network.variables)}
    for factor in network.factors:
        for variable in factor.scope:
            neighbours[variable].update(factor.scope)
    counts = [0.0] * network.variables
    for variable in order:
        around = neighbours.pop(variable) - {variable}
        size = 2.0 ** len(around)
        for other in around:
            counts[other] += size
            neighbours[other] |= around
            neighbours[other].discard(variable)
        counts[variable] += size
    return counts


def _without(network: Network, sliced: Sequence[int]) -> tuple[Network, tuple[tuple[tuple[int, int], ...], ...]]:
    """The network with variables taken out of every scope, and the axes that they had."""
    if not sliced:
        return network, ((),) * len(network.factors)
    places = {variable: place for place, variable in enumerate(sliced)}
    names = [variable for variable in range(network.variables) if variable not in places]
    numbers = {variable: number for number, variable in enumerate(names)}
    factors = []
    axes = []
    for factor in network.factors:
        scope = tuple(numbers[variable] for variable in factor.scope if variable in numbers)
        factors.append(replace(factor, scope=scope))
        axes.append(tuple((axis, places[v]) for axis, v in enumerate(factor.scope) if v in places))
    priority = tuple(network.priority[variable] for variable in names) if network.priority else ()
    halved = frozenset(numbers[variable] for variable in network.halved if variable in numbers)
    return Network(len(names), tuple(factors), halved, priority), tuple(axes)
