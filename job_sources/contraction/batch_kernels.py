"""Run the batched steps of a contraction plan: the same steps as in sweep_kernels, for all samples of a batch at once.

The samples of one table entry lie side by side, so that every inner loop is contiguous; inputs without a batch enter
as one number for all samples.
"""

import numpy as np
import numpy.typing as npt

from contraction.compiled import compiled, inlined
from contraction.sweep_kernels import (
    BITS,
    FIRST_INPUT,
    INPUT_BATCHED,
    INPUTS,
    MASK,
    MOST_INPUTS,
    OFFSET,
    OUTPUT,
    STORED,
    SUMMED,
    Table,
    Values,
    compress,
)


@inlined
def _product(
    re: Values, im: Values, base: int, plain_re: Values, plain_im: Values, batched: int, lanes: int,
    a_re: Values, a_im: Values, a: int, c_re: Values, c_im: Values, c: int, first: int, add: int,
) -> None:  # fmt: skip
    """c = a times one input, or the input itself (`first`); c += a times the input (`add`)."""
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
def forward_batch(
    steps: Table, inputs: Table, start: int, stop: int,
    plain_re: Values, plain_im: Values, re: Values, im: Values, lanes: int, work_re: Values, work_im: Values,
) -> None:  # fmt: skip
    """Compute the batched tables of steps `start` to `stop`; work arrays hold MOST_INPUTS rows of `lanes`."""
    bases = np.empty(MOST_INPUTS, dtype=np.int64)
    for number in range(start, stop):
        output_mask = (1 << (steps[number, BITS] - steps[number, SUMMED])) - 1
        offset = steps[number, OUTPUT]
        first_input, last = steps[number, FIRST_INPUT], steps[number, INPUTS] - 1
        for entry in range(offset * lanes, (offset + steps[number, STORED]) * lanes):
            re[entry] = 0.0
            im[entry] = 0.0
        for index in range(1 << steps[number, BITS]):
            changed = False
            target = (offset + (index & output_mask)) * lanes
            for j in range(last + 1):
                base = inputs[first_input + j, OFFSET] + compress(index, inputs[first_input + j, MASK])
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


@inlined
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
def backward_batch(
    steps: Table, inputs: Table, start: int, stop: int,
    plain_re: Values, plain_im: Values, plain_bar_re: Values, plain_bar_im: Values,
    re: Values, im: Values, bar_re: Values, bar_im: Values, lanes: int, work_re: Values, work_im: Values,
) -> None:  # fmt: skip
    """Carry adjoints from outputs to inputs; work arrays hold MOST_INPUTS + 1 rows of `lanes`."""
    bases = np.empty(MOST_INPUTS, dtype=np.int64)
    after = MOST_INPUTS * lanes
    for number in range(stop - 1, start - 1, -1):
        output_mask = (1 << (steps[number, BITS] - steps[number, SUMMED])) - 1
        offset = steps[number, OUTPUT]
        first_input, count = steps[number, FIRST_INPUT], steps[number, INPUTS]
        for index in range(1 << steps[number, BITS]):
            changed = False
            # Row j of the work arrays is the product of inputs 0 to j.
            for j in range(count):
                base = inputs[first_input + j, OFFSET] + compress(index, inputs[first_input + j, MASK])
                if index == 0 or base != bases[j]:
                    bases[j] = base
                    changed = True
                if changed and j < count - 1:
                    _product(
                        re, im, base, plain_re, plain_im, inputs[first_input + j, INPUT_BATCHED], lanes,
                        work_re, work_im, max(j - 1, 0) * lanes, work_re, work_im, j * lanes, j == 0, 0,
                    )  # fmt: skip
            source = np.uintp((offset + (index & output_mask)) * lanes)
            incoming = np.uintp(after)
            for lane in range(np.uintp(lanes)):
                work_re[incoming + lane] = bar_re[source + lane]
                work_im[incoming + lane] = bar_im[source + lane]
            for j in range(count - 1, -1, -1):
                batched = inputs[first_input + j, INPUT_BATCHED]
                _add_adjoint(
                    bar_re, bar_im, bases[j], plain_bar_re, plain_bar_im, batched, lanes,
                    work_re, work_im, max(j - 1, 0) * lanes, work_re, work_im, after, j == 0,
                )  # fmt: skip
                if j > 0:
                    _product(
                        re, im, bases[j], plain_re, plain_im, batched, lanes,
                        work_re, work_im, after, work_re, work_im, after, 0, 0,
                    )  # fmt: skip


@compiled
def evaluate_batch(
    steps: Table, inputs: Table, groups: Table, roots: Table,
    plain_re: Values, plain_im: Values, plain_bar_re: Values, plain_bar_im: Values,
    re: Values, im: Values, bar_re: Values, bar_im: Values, lanes: int, computed: bool,
    cotangents: npt.NDArray[np.float64], results: npt.NDArray[np.float64],
) -> None:  # fmt: skip
    """Evaluate every network for one chunk of samples, given the shared steps without batch; optionally its adjoint.

    Args:
        steps, inputs, groups, roots: of the plan.
        plain_re, plain_im: buffer of tables without batch, all computed.
        plain_bar_re, plain_bar_im: adjoints of those, added to.
        re, im: (entries x lanes) buffer with the batched leaf tables filled in.
        bar_re, bar_im: adjoints of those, zeroed here.
        lanes: samples in the chunk.
        computed: whether the buffer still holds the values of the only network; they are computed where not.
        cotangents: (networks, lanes) derivative of the loss by each value; of size 0 for values only.
        results: (networks, lanes) real parts of the values.
    """
    work_re, work_im = np.empty((MOST_INPUTS + 1) * lanes, dtype=re.dtype), np.empty((MOST_INPUTS + 1) * lanes, re.dtype)
    networks = roots.shape[0]
    differentiate = cotangents.size > 0
    # The batched steps that networks share (group 1) run first forward, and last backward.
    for turn in range(networks + 2):
        group = turn + 1 if turn <= networks else 1
        start, stop = groups[group, 0], groups[group, 1]
        if turn <= networks and not computed:
            forward_batch(steps, inputs, start, stop, plain_re, plain_im, re, im, lanes, work_re, work_im)
        if turn == 0:
            for entry in range(bar_re.size):
                bar_re[entry] = 0.0
                bar_im[entry] = 0.0
            continue
        if turn <= networks:
            root, batched = roots[turn - 1, 0], roots[turn - 1, 1]
            for lane in range(lanes):
                results[turn - 1, lane] = re[root * lanes + lane] if batched else plain_re[root]
            if differentiate:
                for number in range(start, stop):
                    first = steps[number, OUTPUT] * lanes
                    for entry in range(first, first + steps[number, STORED] * lanes):
                        bar_re[entry] = 0.0
                        bar_im[entry] = 0.0
                for lane in range(lanes):
                    if batched:
                        bar_re[root * lanes + lane] += cotangents[turn - 1, lane]
                    else:
                        plain_bar_re[root] += cotangents[turn - 1, lane]
        if differentiate:
            backward_batch(
                steps, inputs, start, stop, plain_re, plain_im, plain_bar_re, plain_bar_im,
                re, im, bar_re, bar_im, lanes, work_re, work_im,
            )  # fmt: skip
