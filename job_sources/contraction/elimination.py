"""Find an order in which to sum the variables of a network, and know its price before anything is allocated.

Greedy elimination (minimum fill and minimum width), randomised tries, as many as the network's size is worth, and
annealing by local moves. R. Dechter, "Bucket elimination", Artificial Intelligence 113 (1999); V. Gogate, R. Dechter,
"A complete anytime algorithm for treewidth", UAI 2004.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_MOST_TRIES = 512
_WORTH_ANNEALING = 3e4
_WINDOW, _HEAT = 40, 0.05
# No search makes up for so many operations.
_HOPELESS = 2.0**52
# Random parts of a minimum-fill score, in missing edges: narrow networks want the low ones, wide ones the high ones.
_TEMPERATURES = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0)


@dataclass(frozen=True)
class EliminationOrder:
    """An order of summation with its price.

    Attributes:
        order: the summed variables, first to last.
        width: bits of the largest joint index that is ever visited (log2, with the batch counted in).
        operations: table entries visited over all steps, with the batch counted in.
    """

    order: tuple[int, ...]
    width: float
    operations: float


def find_order(
    scopes: Sequence[Sequence[int]],
    variables: int,
    *,
    priority: Sequence[float] | None = None,
    kept: Sequence[int] = (),
    batched: Sequence[bool] | None = None,
    batch: int = 1,
    tries: int | None = None,
    seed: int = 0,
) -> EliminationOrder:
    """Find a cheap elimination order of two-valued variables.

    Args:
        scopes: for each factor the variables that it depends on.
        variables: how many variables there are, numbered from 0.
        priority: which of equally good variables goes first (lowest); networks with equal structure and equal
            priorities get equal orders.
        kept: variables that are not summed.
        batched: for each factor whether it also depends on the sample of a batch.
        batch: number of samples.
        tries: randomised tries; None chooses by the price of the deterministic orders.
        seed: of the randomised tries.

    Returns:
        The cheapest order found.
    """
    from contraction import order_kernels as kernels  # noqa: PLC0415  (imports numba)

    carries_batch = batch > 1 and batched is not None and any(batched)
    count = variables + carries_batch
    adjacency = _adjacency(scopes, count, batched if carries_batch else None)
    weights = np.ones(count)
    is_kept = np.zeros(count, dtype=np.bool_)
    is_kept[list(kept)] = True
    if carries_batch:
        weights[variables] = math.log2(batch)
        is_kept[variables] = True
    ranks = np.zeros(count)
    if priority is not None:
        ranks[:variables] = priority
    search = _Search(adjacency, weights, ranks, is_kept, seed)
    for rule in (kernels.MINIMUM_FILL, kernels.MINIMUM_WIDTH):
        search.try_greedy(rule, 0.0, 0.9)
    # A deterministic order lets equal parts of different networks share tables: randomness must pay for itself.
    worthwhile = _worthwhile_tries(search.best.operations, count) if tries is None else tries
    for trial in range(worthwhile):
        temperature = _TEMPERATURES[trial % len(_TEMPERATURES)]
        search.try_greedy(kernels.MINIMUM_FILL, temperature, 0.8 if search.deterministic else 1.0)
    if worthwhile and search.best.operations > _WORTH_ANNEALING:
        search.anneal(sweeps=min(300, worthwhile))
    return search.best


class _Search:
    """The cheapest order so far, and ways to find a cheaper one."""

    def __init__(
        self,
        adjacency: npt.NDArray[np.uint64],
        weights: npt.NDArray[np.float64],
        ranks: npt.NDArray[np.float64],
        is_kept: npt.NDArray[np.bool_],
        seed: int,
    ) -> None:
        self.best = EliminationOrder((), math.inf, math.inf)
        self.deterministic = True
        self._adjacency, self._weights, self._ranks, self._is_kept = adjacency, weights, ranks, is_kept
        self._seed = seed
        self._order = np.zeros(len(weights) - int(is_kept.sum()), dtype=np.int64)
        self._scores = np.zeros(len(weights))

    def try_greedy(self, rule: int, temperature: float, needed: float) -> None:
        """One greedy order, taken if its price is below `needed` of the best."""
        from contraction.order_kernels import eliminate_greedily  # noqa: PLC0415  (imports numba)

        self._seed += 1
        limit = needed * self.best.operations
        operations, width = eliminate_greedily(
            self._adjacency.copy(), self._weights, self._ranks, ~self._is_kept,
            rule, temperature, self._seed, limit, self._order, self._scores,
        )  # fmt: skip
        if operations < limit:
            self.best = EliminationOrder(tuple(self._order.tolist()), width, operations)
            self.deterministic = temperature == 0.0

    def anneal(self, sweeps: int) -> None:
        """Improve the best order by local moves."""
        from contraction.order_kernels import anneal_order  # noqa: PLC0415  (imports numba)

        scratch = np.zeros_like(self._adjacency), np.zeros_like(self._adjacency)
        operations, width = anneal_order(
            self._adjacency, self._weights, np.array(self.best.order), sweeps, _WINDOW, _HEAT, self._seed,
            *scratch, self._order,
        )  # fmt: skip
        if operations < self.best.operations:
            self.best = EliminationOrder(tuple(self._order.tolist()), width, operations)


def _worthwhile_tries(operations: float, variables: int) -> int:
    """As many tries as cost about ten evaluations (3 ns an entry, forward and back; 3 ns a pair of variables a try)."""
    if operations > _HOPELESS:
        return 0
    return int(min(_MOST_TRIES, 10 * operations / max(variables, 8) ** 2))


def _adjacency(scopes: Sequence[Sequence[int]], count: int, batched: Sequence[bool] | None) -> npt.NDArray[np.uint64]:
    rows = [0] * count
    for number, scope in enumerate(scopes):
        mask = 0
        for variable in scope:
            mask |= 1 << variable
        if batched is not None and batched[number]:
            mask |= 1 << (count - 1)
        remaining = mask
        while remaining:
            lowest = remaining & -remaining
            rows[lowest.bit_length() - 1] |= mask
            remaining ^= lowest
    words = (count + 63) // 64
    adjacency = np.zeros((count, max(words, 1)), dtype=np.uint64)
    for vertex, row in enumerate(rows):
        data = (row & ~(1 << vertex)).to_bytes(words * 8, "little")
        adjacency[vertex] = np.frombuffer(data, dtype=np.uint64)
    return adjacency
