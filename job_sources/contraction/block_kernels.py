"""Blocks of a table's entries, as the compiled sweeps read, multiply and write them: real and imaginary parts apart.

Indices are unsigned, since numba's care for negative ones keeps loops from being vectorised.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from contraction.compiled import compiled, inlined
from contraction.step_table import BITS, BLOCK, BLOCK_BITS, FOLDED, HALVINGS, OUTPUT, SIGN, STORED, SUMMED

Table = npt.NDArray[np.int64]
Values = npt.NDArray[np.floating[Any]]
Index = int | np.signedinteger[Any]


def _compression_table() -> npt.NDArray[np.uint8]:
    """Row m, column x: the bits of x selected by m, moved together."""
    table = np.zeros((BLOCK, BLOCK), dtype=np.uint8)
    for mask in range(BLOCK):
        positions = [bit for bit in range(BLOCK_BITS) if mask >> bit & 1]
        for target, bit in enumerate(positions):
            table[mask] |= ((np.arange(BLOCK) >> bit & 1) << target).astype(np.uint8)
    return table


COMPRESSION = _compression_table()
BIT_COUNTS = np.array([int(mask).bit_count() for mask in range(BLOCK)], dtype=np.int64)


@compiled
def compress(index: Index, mask: Index) -> int:
    """The bits of `index` at the bits of `mask`, moved together."""
    result: Any = 0
    shift: Any = 0
    while mask:
        low = mask & (BLOCK - 1)
        result |= np.int64(COMPRESSION[low, index & (BLOCK - 1)]) << shift
        shift += BIT_COUNTS[low]
        mask >>= BLOCK_BITS
        index >>= BLOCK_BITS
    return int(result)


@compiled
def load_block(
    re: Values, im: Values, base: Index, low_mask: Index, count: Index, to_re: Values, to_im: Values, row: Index
) -> None:
    """Copy the block of a table at `base` to `row` of the scratch arrays."""
    source, target, lanes = np.uintp(base), np.uintp(row), np.uintp(count)
    if low_mask == count - 1:
        for lane in range(lanes):
            to_re[target + lane] = re[source + lane]
            to_im[target + lane] = im[source + lane]
    else:
        for lane in range(lanes):
            entry = source + np.uintp(COMPRESSION[low_mask, lane])
            to_re[target + lane] = re[entry]
            to_im[target + lane] = im[entry]


@compiled
def multiply_rows(
    a_re: Values,
    a_im: Values,
    a: Index,
    b_re: Values,
    b_im: Values,
    b: Index,
    count: Index,
    c_re: Values,
    c_im: Values,
    c: Index,
) -> None:
    """C = a b, each a row of `count` complex numbers that starts at the index given."""
    first, second, target = np.uintp(a), np.uintp(b), np.uintp(c)
    for lane in range(np.uintp(count)):
        x_re, x_im = a_re[first + lane], a_im[first + lane]
        y_re, y_im = b_re[second + lane], b_im[second + lane]
        c_re[target + lane] = x_re * y_re - x_im * y_im
        c_im[target + lane] = x_re * y_im + x_im * y_re


@compiled
def _output_entry(steps: Table, step: int, index: Index) -> tuple[int, float, int]:
    """Where a joint index lands in a step's output, with what weight, and which way the following ones lie."""
    output_bits = steps[step, BITS] - steps[step, SUMMED]
    output_mask = (1 << output_bits) - 1
    entry = index & output_mask
    weight = 1.0 / (1 << steps[step, HALVINGS])
    direction = 1
    if steps[step, FOLDED]:
        if output_bits == 0:
            weight *= 1 + steps[step, SIGN]
        elif entry >= steps[step, STORED]:
            entry = output_mask - entry
            weight *= steps[step, SIGN]
            direction = -1
    return steps[step, OUTPUT] + entry, weight, direction


@inlined
def store_block(
    steps: Table,
    step: int,
    index: Index,
    count: Index,
    work_re: Values,
    work_im: Values,
    row: Index,
    re: Values,
    im: Values,
) -> None:
    """Add a block of products to the step's output."""
    entry, weight, direction = _output_entry(steps, step, index)
    source, lanes = np.uintp(row), np.uintp(count)
    if steps[step, STORED] < count:
        for lane in range(count):
            entry, weight, direction = _output_entry(steps, step, index + lane)
            re[entry] += weight * work_re[row + lane]
            im[entry] += weight * work_im[row + lane]
    elif direction < 0:
        last = np.uintp(entry)
        for lane in range(lanes):
            re[last - lane] += weight * work_re[source + lane]
            im[last - lane] += weight * work_im[source + lane]
    else:
        first = np.uintp(entry)
        for lane in range(lanes):
            re[first + lane] += weight * work_re[source + lane]
            im[first + lane] += weight * work_im[source + lane]


@inlined
def fetch_block(
    steps: Table,
    step: int,
    index: Index,
    count: Index,
    re: Values,
    im: Values,
    work_re: Values,
    work_im: Values,
    row: Index,
) -> None:
    """Read the adjoints of the output entries that a block of products was added to."""
    entry, weight, direction = _output_entry(steps, step, index)
    target, lanes = np.uintp(row), np.uintp(count)
    if steps[step, STORED] < count:
        for lane in range(count):
            entry, weight, direction = _output_entry(steps, step, index + lane)
            work_re[row + lane] = weight * re[entry]
            work_im[row + lane] = weight * im[entry]
    elif direction < 0:
        last = np.uintp(entry)
        for lane in range(lanes):
            work_re[target + lane] = weight * re[last - lane]
            work_im[target + lane] = weight * im[last - lane]
    else:
        first = np.uintp(entry)
        for lane in range(lanes):
            work_re[target + lane] = weight * re[first + lane]
            work_im[target + lane] = weight * im[first + lane]


@inlined
def add_block(
    re: Values, im: Values, base: Index, low_mask: Index, count: Index, work_re: Values, work_im: Values, row: Index
) -> None:
    """Add a row of the scratch arrays to the entries that a block was loaded from."""
    source, target, lanes = np.uintp(row), np.uintp(base), np.uintp(count)
    if low_mask == count - 1:
        for lane in range(lanes):
            re[target + lane] += work_re[source + lane]
            im[target + lane] += work_im[source + lane]
    else:
        for lane in range(lanes):
            entry = target + np.uintp(COMPRESSION[low_mask, lane])
            re[entry] += work_re[source + lane]
            im[entry] += work_im[source + lane]
