"""Search for a variable elimination order: greedy on an interaction graph of bit rows, with a random part."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from contraction.block_kernels import Index
from contraction.compiled import compiled

MINIMUM_FILL = 0
MINIMUM_WIDTH = 1

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_PAIRS, _NIBBLES, _BYTES, _SUM = (
    np.uint64(0x5555555555555555),
    np.uint64(0x3333333333333333),
    np.uint64(0x0F0F0F0F0F0F0F0F),
    np.uint64(0x0101010101010101),
)
_MULTIPLIER, _INCREMENT = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
_SHIFTS = (np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56))
_NOISE_SHIFT = np.uint64(11)


@compiled
def _count_bits(word: np.uint64) -> np.int64:
    word = word - ((word >> _SHIFTS[0]) & _PAIRS)
    word = (word & _NIBBLES) + ((word >> _SHIFTS[1]) & _NIBBLES)
    word = (word + (word >> _SHIFTS[2])) & _BYTES
    return np.int64((word * _SUM) >> _SHIFTS[3])


@compiled
def _score(rows: npt.NDArray[np.uint64], weights: npt.NDArray[np.float64], vertex: Index, rule: Index) -> float:
    """Price of eliminating one vertex now: missing edges among its neighbours, or bits of the joint table."""
    words = rows.shape[1]
    degree = 0
    linked: Any = 0
    bits = weights[vertex]
    for word in range(words):
        remaining = rows[vertex, word]
        while remaining != _ZERO:
            lowest = remaining & (~remaining + _ONE)
            neighbour = word * 64 + _count_bits(lowest - _ONE)
            remaining ^= lowest
            degree += 1
            bits += weights[neighbour]
            if rule == MINIMUM_FILL:
                for other in range(words):
                    linked += _count_bits(rows[neighbour, other] & rows[vertex, other])
    if rule == MINIMUM_FILL:
        return float((degree * (degree - 1) - linked) * 0.5)
    return float(bits)


@compiled
def _eliminate(rows: npt.NDArray[np.uint64], vertex: Index) -> None:
    """Join all neighbours of a vertex and take it out; its own row is kept."""
    words = rows.shape[1]
    for word in range(words):
        remaining = rows[vertex, word]
        while remaining != _ZERO:
            lowest = remaining & (~remaining + _ONE)
            neighbour = word * 64 + _count_bits(lowest - _ONE)
            remaining ^= lowest
            for other in range(words):
                rows[neighbour, other] |= rows[vertex, other]
            rows[neighbour, vertex // 64] &= ~(_ONE << np.uint64(vertex % 64))
            rows[neighbour, neighbour // 64] &= ~(_ONE << np.uint64(neighbour % 64))


@compiled
def eliminate_greedily(
    rows: npt.NDArray[np.uint64],
    weights: npt.NDArray[np.float64],
    priority: npt.NDArray[np.float64],
    alive: npt.NDArray[np.bool_],
    rule: int,
    temperature: float,
    seed: int,
    limit: float,
    order: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float64],
) -> tuple[float, float]:
    """Fill `order` with one greedy elimination order.

    Args:
        rows: (n, ceil(n/64)) bit rows; bit j of row i says that i and j share a factor. Overwritten.
        weights: (n,) log2 of each variable's number of values.
        priority: (n,) lower goes first among equal scores.
        alive: (n,) False for variables that are never eliminated (the batch). Overwritten.
        rule: MINIMUM_FILL or MINIMUM_WIDTH.
        temperature: strength of the random part of a score (Gumbel noise); 0 is deterministic.
        seed: of the random part.
        limit: give up once the operations exceed this.
        order: (number of eliminated variables,) result.
        scores: (n,) scratch.

    Returns:
        Table entries visited over all eliminations, and the largest table's width in bits.
        Infinity when given up.
    """
    count = rows.shape[0]
    words = rows.shape[1]
    state = np.uint64(seed) * _MULTIPLIER + _INCREMENT
    operations = 0.0
    width = 0.0
    eliminated = -1
    for position in range(order.size + 1):
        # Scores change only for vertices whose neighbourhood the last elimination touched.
        for vertex in range(count):
            if not alive[vertex]:
                continue
            touched = eliminated < 0
            if not touched:
                for word in range(words):
                    if rows[eliminated, word] & (
                        rows[vertex, word] | (_ZERO if vertex // 64 != word else _ONE << np.uint64(vertex % 64))
                    ):
                        touched = True
            if touched:
                scores[vertex] = _score(rows, weights, np.int64(vertex), np.int64(rule))
                if temperature > 0.0:
                    state = state * _MULTIPLIER + _INCREMENT
                    uniform = (float(state >> _NOISE_SHIFT) + 0.5) * 2.0**-53
                    scores[vertex] -= temperature * math.log(-math.log(uniform))
        if position == order.size:
            break
        best = -1
        for vertex in range(count):
            if alive[vertex] and (
                best < 0
                or scores[vertex] < scores[best]
                or (scores[vertex] == scores[best] and priority[vertex] < priority[best])
            ):
                best = vertex
        bits = _score(rows, weights, np.int64(best), np.int64(MINIMUM_WIDTH))
        operations += 2.0**bits
        width = max(width, bits)
        if operations > limit:
            return np.inf, np.inf
        order[position] = best
        alive[best] = False
        eliminated = best
        _eliminate(rows, np.int64(best))
    return operations, width


@compiled
def anneal_order(  # noqa: PLR0912  (one loop whose parts share all their state)
    adjacency: npt.NDArray[np.uint64],
    weights: npt.NDArray[np.float64],
    order: npt.NDArray[np.int64],
    sweeps: int,
    window: int,
    temperature: float,
    seed: int,
    rows: npt.NDArray[np.uint64],
    trial: npt.NDArray[np.uint64],
    best_order: npt.NDArray[np.int64],
) -> tuple[float, float]:
    """Improve an elimination order by moving variables forward by up to `window` places.

    The graph that is left after eliminating a set of variables doesn't depend on their order, so that a move changes
    only the prices between its two places. Simulated annealing on log2 of the operations, cooled to zero.

    Passed on:
        adjacency, weights: as for eliminate_greedily; not changed.
        order: the order to begin with; overwritten.
        sweeps: passes over all places.
        window: the farthest move.
        temperature: of the first sweep, in units of log2 of the operations.
        seed: of the random numbers.
        rows, trial: scratch of adjacency's shape.
        best_order: (as order) result.

    Returns:
        Operations and width of `best_order`, as eliminate_greedily.
    """
    count = order.size
    words = adjacency.shape[1]
    state = np.uint64(seed) * _MULTIPLIER + _INCREMENT
    best, best_width = np.inf, np.inf
    total = np.inf
    for sweep in range(sweeps + 1):
        heat = temperature * (1.0 - sweep / max(sweeps, 1))
        for vertex in range(adjacency.shape[0]):
            for word in range(words):
                rows[vertex, word] = adjacency[vertex, word]
        seen, width = 0.0, 0.0
        for place in range(count):
            # The first sweep only prices the order, and so does the part of a sweep without a room to move.
            state = state * _MULTIPLIER + _INCREMENT
            distance = 1 + np.int64((state >> _NOISE_SHIFT) % np.uint64(window))
            if sweep > 0 and place + distance < count:
                before, after = 0.0, 0.0
                for side in range(2):
                    for vertex in range(adjacency.shape[0]):
                        for word in range(words):
                            trial[vertex, word] = rows[vertex, word]
                    for step in range(distance + 1):
                        vertex = order[place + step]
                        if side == 1:
                            vertex = order[place + distance] if step == 0 else order[place + step - 1]
                        price = 2.0 ** _score(trial, weights, np.int64(vertex), np.int64(MINIMUM_WIDTH))
                        if side == 0:
                            before += price
                        else:
                            after += price
                        _eliminate(trial, np.int64(vertex))
                changed = total - before + after
                state = state * _MULTIPLIER + _INCREMENT
                uniform = (float(state >> _NOISE_SHIFT) + 0.5) * 2.0**-53
                if after <= before or math.log2(changed / total) < -heat * math.log(uniform):
                    moved = order[place + distance]
                    for step in range(distance, 0, -1):
                        order[place + step] = order[place + step - 1]
                    order[place] = moved
                    total = changed
            vertex = order[place]
            bits = _score(rows, weights, np.int64(vertex), np.int64(MINIMUM_WIDTH))
            seen += 2.0**bits
            width = max(width, bits)
            _eliminate(rows, np.int64(vertex))
        total = seen
        if seen < best:
            best, best_width = seen, width
            for place in range(count):
                best_order[place] = order[place]
    return best, best_width
