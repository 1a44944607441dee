"""Find an order in which to sum the variables of a network, and know its price before anything is allocated.

Greedy elimination (minimum fill and minimum width) followed by randomised tries, as many as the network's size is
worth; R. Dechter, "Bucket elimination", Artificial Intelligence 113 (1999), and V. Gogate, R. Dechter, "A complete anytime algorithm for treewidth", UAI 2004.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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
    ranks = np.zeros(count) if priority is None else np.append(np.asarray(priority, dtype=float), np.zeros(count))[:count]
    order = np.zeros(count - int(is_kept.sum()), dtype=np.int64)
    scores = np.zeros(count)

    best: EliminationOrder | None = None
    for rule in (kernels.MINIMUM_FILL, kernels.MINIMUM_WIDTH):
        operations, width = kernels.eliminate_greedily(
            adjacency.copy(), weights, ranks, ~is_kept, rule, 0.0, seed, math.inf, order, scores
        )
        if best is None or operations < 0.9 * best.operations:
            best = EliminationOrder(tuple(order.tolist()), width, operations)
    assert best is not None
    # A deterministic order lets equal parts of different networks share tables: randomness must pay for itself.
    threshold = 0.8 * best.operations
    for trial in range(_worthwhile_tries(best.operations, count) if tries is None else tries):
        rule = kernels.MINIMUM_FILL if trial % 3 else kernels.MINIMUM_WIDTH
        temperature = (0.1, 0.3, 0.6, 1.0)[trial % 4]
        operations, width = kernels.eliminate_greedily(
            adjacency.copy(), weights, ranks, ~is_kept, rule, temperature, seed + trial + 1, threshold, order, scores
        )
        if operations < threshold:
            best = EliminationOrder(tuple(order.tolist()), width, operations)
            threshold = operations
    return best


def _worthwhile_tries(operations: float, variables: int) -> int:
    """As many tries as cost about ten evaluations (3 ns an entry, forward and back; 3 ns a pair of variables a try)."""
    return int(min(1024, 10 * operations / max(variables, 8) ** 2))


def _adjacency(scopes: Sequence[Sequence[int]], count: int, batched: Sequence[bool] | None) -> np.ndarray:
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
