"""Which tables each step of an elimination takes, and sets of variables as bit masks."""

from collections.abc import Iterable, Sequence

from contraction.network import Factor


def buckets_of(factors: Sequence[Factor], order: Sequence[int]) -> tuple[list[tuple[list[int], list[int]]], list[int]]:
    """Which tables each step takes and which variables it sums: all that only those tables depend on."""
    scopes = [frozenset(factor.scope) for factor in factors]
    holders: dict[int, set[int]] = {variable: set() for variable in order}
    for number, scope in enumerate(scopes):
        for variable in scope:
            holders[variable].add(number)
    buckets: list[tuple[list[int], list[int]]] = []
    final_order: list[int] = []
    done: set[int] = set()
    rank = {variable: place for place, variable in enumerate(order)}
    for variable in order:
        if variable in done:
            continue
        members = holders[variable]
        if not members:
            raise ValueError(f"variable {variable} is in no factor: its sum is only a factor 2; leave it out")
        scope = frozenset[int]().union(*(scopes[member] for member in members))
        summed = sorted((v for v in scope if holders[v] <= members), key=rank.__getitem__)
        buckets.append((sorted(members), summed))
        final_order += summed
        done.update(summed)
        remaining = scope - set(summed)
        new = len(scopes)
        scopes.append(remaining)
        for v in remaining:
            holders[v] -= members
            holders[v].add(new)
    return buckets, final_order


def mask_of(variables: Iterable[int], position: dict[int, int]) -> int:
    """One bit for each variable, at its position."""
    mask = 0
    for variable in variables:
        mask |= 1 << position[variable]
    return mask


def lowest_bit(mask: int, block_bits: int) -> int:
    """How seldom a table's block changes as the joint index runs: its lowest bit above those within a block."""
    high = mask >> block_bits
    return (high & -high).bit_length() if high else 64


def compress_mask(mask: int, scope: int) -> int:
    """The bits of `mask` at the bits of `scope`, moved together."""
    result = 0
    target = 0
    while scope:
        lowest = scope & -scope
        if mask & lowest:
            result |= 1 << target
        target += 1
        scope ^= lowest
    return result
