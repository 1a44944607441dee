"""Run the batched steps of a contraction plan: the same steps as in sweep_kernels, for all samples of a batch at once.

The samples of one table entry lie side by side, so that every inner loop is contiguous; inputs without a batch enter
as one number for all samples.
"""

import numpy as np

from contraction.block_kernels import BIT_COUNTS, COMPRESSION, Table, Values, compress
from contraction.compiled import compiled
from contraction.step_table import (
    BITS,
    BLOCK_BITS,
    FIRST_INPUT,
    INPUT_BATCHED,
    INPUTS,
    MASK,
    MOST_INPUTS,
    OFFSET,
    OUTPUT,
    STORED,
    SUMMED,
)


@compiled
def _product(  # noqa: PLR0912  (a kernel's inner loops, one for each kind of input)
    re: Values, im: Values, base: int, plain_re: Values, plain_im: Values, batched: int, lanes: int,
    a_re: Values, a_im: Values, a: int, c_re: Values, c_im: Values, c: int, first: int, add: int,
) -> None:  # fmt: skip
    """Compute c = a times one input, or the input itself (`first`); c += a times the input (`add`)."""
    source, other, target, count = np.uintp(base * lanes), np.uintp(a), np.uintp(c), np.uintp(lanes)
    if batched:
        if first:
            for lane in range(count):
                c_re[target + lane] = re[source + lane]
                c_im[target + lane] = im[source + lane]
        elif add:
            for lane in range(count):
                x_re, x_im = a_re[other + lane], a_im[other + lane]
                y_re, y_im = re[source + lane], im[source + lane]
                c_re[target + lane] += x_re * y_re - x_im * y_im
                c_im[target + lane] += x_re * y_im + x_im * y_re
        else:
            for lane in range(count):
                x_re, x_im = a_re[other + lane], a_im[other + lane]
                y_re, y_im = re[source + lane], im[source + lane]
                c_re[target + lane] = x_re * y_re - x_im * y_im
                c_im[target + lane] = x_re * y_im + x_im * y_re
        return
    z_re, z_im = plain_re[base], plain_im[base]
    if first:
        for lane in range(count):
            c_re[target + lane] = z_re
            c_im[target + lane] = z_im
    elif add:
        for lane in range(count):
            x_re, x_im = a_re[other + lane], a_im[other + lane]
            c_re[target + lane] += x_re * z_re - x_im * z_im
            c_im[target + lane] += x_re * z_im + x_im * z_re
    else:
        for lane in range(count):
            x_re, x_im = a_re[other + lane], a_im[other + lane]
            c_re[target + lane] = x_re * z_re - x_im * z_im
            c_im[target + lane] = x_re * z_im + x_im * z_re


@compiled
def _move_rows(inputs: Table, first: int, count: int, high: int, low_bits: int, rows: Table, low_masks: Table) -> None:
    """Where each input's entries start for one value of the joint index above its low bits."""
    for j in range(count):
        mask = inputs[first + j, MASK]
        low_masks[j] = mask & ((1 << low_bits) - 1)
        rows[j] = inputs[first + j, OFFSET] + (compress(high, mask >> low_bits) << BIT_COUNTS[low_masks[j]])


@compiled
def forward_batch(
    steps: Table, inputs: Table, start: int, stop: int,
    plain_re: Values, plain_im: Values, re: Values, im: Values, lanes: int,
    work_re: Values, work_im: Values, bases: Table, rows: Table, low_masks: Table,
) -> None:  # fmt: skip
    """Compute the batched tables of steps `start` to `stop`; work arrays hold MOST_INPUTS rows of `lanes`."""
    for number in range(start, stop):
        bits = steps[number, BITS]
        low_bits = min(BLOCK_BITS, bits)
        low_count = 1 << low_bits
        output_mask = (1 << (bits - steps[number, SUMMED])) - 1
        offset = steps[number, OUTPUT]
        first_input, last = steps[number, FIRST_INPUT], steps[number, INPUTS] - 1
        for entry in range(offset * lanes, (offset + steps[number, STORED]) * lanes):
            re[entry] = 0.0
            im[entry] = 0.0
        for index in range(1 << bits):
            low = index & (low_count - 1)
            if low == 0:
                _move_rows(inputs, first_input, last + 1, index >> low_bits, low_bits, rows, low_masks)
            changed = False
            target = (offset + (index & output_mask)) * lanes
            for j in range(last + 1):
                base = rows[j] + np.int64(COMPRESSION[low_masks[j], low])
                batched = inputs[first_input + j, INPUT_BATCHED]
                if j == last and last > 0:
                    _product(
                        re, im, base, plain_re, plain_im, batched, lanes,
                        work_re, work_im, (j - 1) * lanes, re, im, target, 0, 1,
                    )  # fmt: skip
                    break
                if index == 0 or base != bases[j]:
                    bases[j] = base
                    changed = True
                if changed:
                    _product(
                        re, im, base, plain_re, plain_im, batched, lanes,
                        work_re, work_im, max(j - 1, 0) * lanes, work_re, work_im, j * lanes, j == 0, 0,
                    )  # fmt: skip
            if last == 0:
                for lane in range(lanes):
                    re[target + lane] += work_re[lane]
                    im[target + lane] += work_im[lane]


@compiled
def _add_adjoint(
    bar_re: Values, bar_im: Values, base: int, plain_re: Values, plain_im: Values, batched: int, lanes: int,
    a_re: Values, a_im: Values, a: int, b_re: Values, b_im: Values, b: int, alone: int,
) -> None:  # fmt: skip
    """Add a times b (or b `alone`) to an input's adjoint, summed over the samples where the input has no batch."""
    target, first, second, count = np.uintp(base * lanes), np.uintp(a), np.uintp(b), np.uintp(lanes)
    if batched and alone:
        for lane in range(count):
            bar_re[target + lane] += b_re[second + lane]
            bar_im[target + lane] += b_im[second + lane]
    elif batched:
        for lane in range(count):
            x_re, x_im = a_re[first + lane], a_im[first + lane]
            y_re, y_im = b_re[second + lane], b_im[second + lane]
            bar_re[target + lane] += x_re * y_re - x_im * y_im
            bar_im[target + lane] += x_re * y_im + x_im * y_re
    else:
        total_re, total_im = 0.0, 0.0
        for lane in range(count):
            y_re, y_im = b_re[second + lane], b_im[second + lane]
            if alone:
                total_re += y_re
                total_im += y_im
            else:
                x_re, x_im = a_re[first + lane], a_im[first + lane]
                total_re += x_re * y_re - x_im * y_im
                total_im += x_re * y_im + x_im * y_re
        plain_re[base] += total_re
        plain_im[base] += total_im


@compiled
def _pass_on(
    inputs: Table, first_input: int, last: int, plain_re: Values, plain_im: Values, plain_bar_re: Values,
    plain_bar_im: Values, re: Values, im: Values, bar_re: Values, bar_im: Values, lanes: int,
    work_re: Values, work_im: Values, bases: Table,
) -> None:  # fmt: skip
    """Carry the adjoint of the product of all inputs but the last, in the last row of the work arrays, to each."""
    pending = MOST_INPUTS * lanes
    for j in range(last - 1, -1, -1):
        batched = inputs[first_input + j, INPUT_BATCHED]
        _add_adjoint(
            bar_re, bar_im, bases[j], plain_bar_re, plain_bar_im, batched, lanes,
            work_re, work_im, max(j - 1, 0) * lanes, work_re, work_im, pending, j == 0,
        )  # fmt: skip
        if j > 0:
            _product(
                re, im, bases[j], plain_re, plain_im, batched, lanes,
                work_re, work_im, pending, work_re, work_im, pending, 0, 0,
            )  # fmt: skip


@compiled
def backward_batch(
    steps: Table, inputs: Table, start: int, stop: int,
    plain_re: Values, plain_im: Values, plain_bar_re: Values, plain_bar_im: Values,
    re: Values, im: Values, bar_re: Values, bar_im: Values, lanes: int,
    work_re: Values, work_im: Values, bases: Table, rows: Table, low_masks: Table,
) -> None:  # fmt: skip
    """Carry adjoints from outputs to inputs; work arrays hold MOST_INPUTS + 1 rows of `lanes`.

    Row j is the product of inputs 0 to j. The last input changes fastest: each entry needs two products only, and the
    adjoint of the others' product waits in the last row until one of them changes.
    """
    pending = MOST_INPUTS * lanes
    for number in range(stop - 1, start - 1, -1):
        bits = steps[number, BITS]
        low_bits = min(BLOCK_BITS, bits)
        low_count = 1 << low_bits
        output_mask = (1 << (bits - steps[number, SUMMED])) - 1
        offset = steps[number, OUTPUT]
        first_input, last = steps[number, FIRST_INPUT], steps[number, INPUTS] - 1
        last_batched = inputs[first_input + last, INPUT_BATCHED]
        for index in range(1 << bits):
            low = index & (low_count - 1)
            if low == 0:
                _move_rows(inputs, first_input, last + 1, index >> low_bits, low_bits, rows, low_masks)
            changed = last > 0 and index == 0
            for j in range(last):
                if not changed and rows[j] + np.int64(COMPRESSION[low_masks[j], low]) != bases[j]:
                    changed = True
            if changed:
                if index > 0:
                    _pass_on(
                        inputs, first_input, last, plain_re, plain_im, plain_bar_re, plain_bar_im,
                        re, im, bar_re, bar_im, lanes, work_re, work_im, bases,
                    )  # fmt: skip
                for lane in range(pending, pending + lanes):
                    work_re[lane] = 0.0
                    work_im[lane] = 0.0
                for j in range(last):
                    bases[j] = rows[j] + np.int64(COMPRESSION[low_masks[j], low])
                    _product(
                        re, im, bases[j], plain_re, plain_im, inputs[first_input + j, INPUT_BATCHED], lanes,
                        work_re, work_im, max(j - 1, 0) * lanes, work_re, work_im, j * lanes, j == 0, 0,
                    )  # fmt: skip
            base = rows[last] + np.int64(COMPRESSION[low_masks[last], low])
            source = (offset + (index & output_mask)) * lanes
            _add_adjoint(
                bar_re, bar_im, base, plain_bar_re, plain_bar_im, last_batched, lanes,
                work_re, work_im, max(last - 1, 0) * lanes, bar_re, bar_im, source, last == 0,
            )  # fmt: skip
            if last > 0:
                _product(
                    re, im, base, plain_re, plain_im, last_batched, lanes,
                    bar_re, bar_im, source, work_re, work_im, pending, 0, 1,
                )  # fmt: skip
        if last > 0:
            _pass_on(
                inputs, first_input, last, plain_re, plain_im, plain_bar_re, plain_bar_im,
                re, im, bar_re, bar_im, lanes, work_re, work_im, bases,
            )  # fmt: skip
