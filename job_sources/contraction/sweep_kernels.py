"""Run the steps of a contraction plan that have no batch, forward and backward, in compiled code.

A table that depends on all low bits of the joint index is read as contiguous memory. The work is done in blocks of
2^BLOCK_BITS entries, real and imaginary parts apart; indices are unsigned, since numba's care for negative ones keeps
loops from being vectorised.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from contraction.block_kernels import (
    BIT_COUNTS,
    Table,
    Values,
    add_block,
    compress,
    fetch_block,
    load_block,
    multiply_rows,
    store_block,
)
from contraction.compiled import compiled, inlined
from contraction.step_table import (
    BITS,
    BLOCK,
    BLOCK_BITS,
    FIRST_INPUT,
    INPUTS,
    MASK,
    MOST_INPUTS,
    OFFSET,
    OUTPUT,
    STORED,
)


@inlined
def _forward_sweep(
    steps: Table,
    inputs: Table,
    start: int,
    stop: int,
    re: Values,
    im: Values,
    work_re: Values,
    work_im: Values,
    bases: Table,
) -> None:
    """Compute the tables of steps `start` to `stop` in the flat buffers `re` and `im`.

    Row j of the scratch arrays (SCRATCH entries) holds a block of the product of inputs 0 to j. Inputs come slowest
    changing first, so that most blocks recompute the last rows only; one further row takes a loaded block.
    """
    loaded: Any = np.int64(MOST_INPUTS * BLOCK)
    for number in range(start, stop):
        bits = steps[number, BITS]
        offset, stored = steps[number, OUTPUT], steps[number, STORED]
        block_bits = min(BLOCK_BITS, bits)
        count = 1 << block_bits
        first_input, input_count = steps[number, FIRST_INPUT], steps[number, INPUTS]
        for entry in range(offset, offset + stored):
            re[entry] = 0.0
            im[entry] = 0.0
        for high in range(1 << (bits - block_bits)):
            changed = False
            row: Any = np.int64(0)  # a literal would have kernels compiled once more, for it alone
            for j in range(input_count):
                mask = inputs[first_input + j, MASK]
                low_mask = mask & (count - 1)
                base = inputs[first_input + j, OFFSET]
                if high:
                    base += compress(high, mask >> block_bits) << BIT_COUNTS[low_mask]
                if high == 0 or base != bases[j]:
                    bases[j] = base
                    changed = True
                row = j * BLOCK
                if changed:
                    if j == 0:
                        load_block(re, im, base, low_mask, count, work_re, work_im, np.int64(0))
                    elif low_mask == count - 1:
                        multiply_rows(work_re, work_im, row - BLOCK, re, im, base, count, work_re, work_im, row)
                    else:
                        load_block(re, im, base, low_mask, count, work_re, work_im, loaded)
                        multiply_rows(
                            work_re, work_im, row - BLOCK, work_re, work_im, loaded, count, work_re, work_im, row
                        )
            store_block(steps, number, high << block_bits, count, work_re, work_im, row, re, im)


@inlined
def _backward_sweep(  # noqa: PLR0912  (calls of kernels by kernels are kept few)
    steps: Table,
    inputs: Table,
    start: int,
    stop: int,
    re: Values,
    im: Values,
    bar_re: Values,
    bar_im: Values,
    work_re: Values,
    work_im: Values,
    bases: Table,
) -> None:
    """Carry adjoints from the outputs of steps `start` to `stop` to their inputs, last step first.

    The adjoint of a table F is the array B with d(result) = real part of sum(B dF): holomorphic, no conjugation.
    In the scratch arrays (SCRATCH entries) rows 0 to MOST_INPUTS - 1 hold a block of each input, the next ones the
    product of the inputs before it, the next ones the adjoints not yet added to its table, and the last row the
    output's adjoint times the inputs after it.
    """
    before, pending, after = np.int64(MOST_INPUTS * BLOCK), 2 * MOST_INPUTS * BLOCK, 3 * MOST_INPUTS * BLOCK
    for number in range(stop - 1, start - 1, -1):
        bits = steps[number, BITS]
        block_bits = min(BLOCK_BITS, bits)
        count = 1 << block_bits
        lanes = np.uintp(count)
        blocks = 1 << (bits - block_bits)
        first_input, input_count = steps[number, FIRST_INPUT], steps[number, INPUTS]
        for high in range(blocks + 1):
            changed = False
            for j in range(input_count):
                mask = inputs[first_input + j, MASK]
                low_mask = mask & (count - 1)
                base = inputs[first_input + j, OFFSET]
                if high:
                    base += compress(high, mask >> block_bits) << BIT_COUNTS[low_mask]
                row = j * BLOCK
                if high in (0, blocks) or base != bases[j]:
                    if high:
                        add_block(bar_re, bar_im, bases[j], low_mask, count, work_re, work_im, pending + row)
                    bases[j] = base
                    changed = high < blocks
                    if changed:
                        for lane in range(pending + row, pending + row + count):
                            work_re[lane] = 0.0
                            work_im[lane] = 0.0
                        load_block(re, im, base, low_mask, count, work_re, work_im, row)
                if changed and 0 < j < input_count - 1:
                    following = before + row + BLOCK
                    multiply_rows(
                        work_re, work_im, before + row, work_re, work_im, row, count, work_re, work_im, following
                    )
                elif changed and j == 0:
                    for lane in range(count):
                        work_re[before + BLOCK + lane] = work_re[lane]
                        work_im[before + BLOCK + lane] = work_im[lane]
            if high == blocks:
                break
            fetch_block(steps, number, high << block_bits, count, bar_re, bar_im, work_re, work_im, after)
            for j in range(input_count - 1, 0, -1):
                own, others = np.uintp(j * BLOCK), np.uintp(before + j * BLOCK)
                total, incoming = np.uintp(pending + j * BLOCK), np.uintp(after)
                for lane in range(lanes):
                    a_re, a_im = work_re[incoming + lane], work_im[incoming + lane]
                    b_re, b_im = work_re[others + lane], work_im[others + lane]
                    c_re, c_im = work_re[own + lane], work_im[own + lane]
                    work_re[total + lane] += a_re * b_re - a_im * b_im
                    work_im[total + lane] += a_re * b_im + a_im * b_re
                    work_re[incoming + lane] = a_re * c_re - a_im * c_im
                    work_im[incoming + lane] = a_re * c_im + a_im * c_re
            total, incoming = np.uintp(pending), np.uintp(after)
            for lane in range(lanes):
                work_re[total + lane] += work_re[incoming + lane]
                work_im[total + lane] += work_im[incoming + lane]


@compiled
def evaluate_networks(
    steps: Table,
    inputs: Table,
    groups: Table,
    roots: Table,
    coefficients: npt.NDArray[np.float64],
    re: Values,
    im: Values,
    bar_re: Values,
    bar_im: Values,
    results: npt.NDArray[np.float64],
    computed: bool,
    work_re: Values,
    work_im: Values,
    bases: Table,
) -> None:
    """Evaluate every network of a plan without a batch, and optionally the gradient of a weighted sum of the values.

    Passed on:
        steps, inputs, groups, roots: of the plan.
        coefficients: (networks,) weights of the sum that is differentiated; empty for values only.
        re, im: flat buffers with the leaf tables filled in.
        bar_re, bar_im: adjoints, zeroed here; the leaves' part holds the result. Not used for values only.
        results: (networks,) real parts of the networks' values.
        computed: whether the buffers still hold the tables and `bar_re`, `bar_im` the adjoints to go back from.
        work_re, work_im: scratch of SCRATCH entries.
        bases: scratch of MOST_INPUTS entries.
    """
    networks = roots.shape[0]
    differentiate = coefficients.size > 0
    # The shared steps (group 0) run first forward, and last backward.
    for turn in range(networks + 2):
        group = turn + 1 if 0 < turn <= networks else 0
        start, stop = groups[group, 0], groups[group, 1]
        if turn <= networks and not computed:
            _forward_sweep(steps, inputs, start, stop, re, im, work_re, work_im, bases)
        if turn == 0:
            if not computed:
                for entry in range(bar_re.size):
                    bar_re[entry] = 0.0
                    bar_im[entry] = 0.0
            continue
        if turn <= networks:
            root = roots[turn - 1, 0]
            results[turn - 1] = re[root]
            if differentiate:
                for number in range(start, stop):
                    for entry in range(steps[number, OUTPUT], steps[number, OUTPUT] + steps[number, STORED]):
                        bar_re[entry] = 0.0
                        bar_im[entry] = 0.0
                bar_re[root] += coefficients[turn - 1]
        if differentiate:
            _backward_sweep(steps, inputs, start, stop, re, im, bar_re, bar_im, work_re, work_im, bases)
