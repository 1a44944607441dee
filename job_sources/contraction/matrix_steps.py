"""Wide steps of two inputs as matrix products, which BLAS computes ten times faster than an entry at a time.

The bits of such a step's joint index are of four kinds: shared by all three tables, rows (of the first input and the
output), columns (of the second input and the output), and summed (of both inputs). For each value of the shared bits
the step is a product of a (rows, summed) and a (summed, columns) matrix; samples of a batch are one more shared index
where both inputs have a batch, and more rows where one has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from contraction.plan import Plan
from contraction.step_table import (
    BATCHED,
    BITS,
    FIRST_INPUT,
    FOLDED,
    HALVINGS,
    INPUT_BATCHED,
    INPUTS,
    MASK,
    OFFSET,
    OUTPUT,
    SUMMED,
)

Array = npt.NDArray[Any]
Buffers = tuple[tuple[Array, Array], tuple[Array, Array]]
"""Real and imaginary parts of the flat buffers of tables without and with a batch, (entries,) and (entries, lanes)."""

# Below, copying the tables into matrices costs more than the product saves: bits of the joint index, and of each kind.
_FEWEST_BITS = 14
_FEWEST_OF_A_KIND = 3


@dataclass(frozen=True)
class _Operand:
    """A table of a matrix step.

    Attributes:
        offset, entries: its place in its buffer.
        batched: which buffer.
        sizes: of its axes, neighbouring bits of one kind together.
        axes: their order as (shared, first kind, second kind), where the lanes come last.
    """

    offset: int
    entries: int
    batched: bool
    sizes: tuple[int, ...]
    axes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

    def view(self, buffers: Buffers, part: int) -> Array:
        """The table with an axis for each run of bits; of a batched one the last axis is the lanes."""
        stored = buffers[self.batched][part][self.offset : self.offset + self.entries]
        return stored.reshape(*self.sizes, *stored.shape[1:])


@dataclass(frozen=True)
class MatrixStep:
    """One step: output (shared, rows, columns) = sum over summed of first (shared, rows, summed) second (..., columns).

    Attributes:
        number: of the step in its plan.
        shared, rows, columns, summed: sizes.
        first: the input with a batch, if only one has.
        second, output: the other tables.
    """

    number: int
    shared: int
    rows: int
    columns: int
    summed: int
    first: _Operand
    second: _Operand
    output: _Operand

    @property
    def scratch_entries(self) -> int:
        """Complex numbers a sample that the matrices and their adjoints take."""
        return 2 * self.shared * (self.rows * self.summed + self.summed * self.columns + self.rows * self.columns)

    def forward(self, buffers: Buffers) -> None:
        """Compute the output's table."""
        first, second = _matrices(self.first, buffers), self._second(buffers)
        _scatter(self.output, buffers, np.matmul(first, second), add=False)

    def backward(self, buffers: Buffers, bars: Buffers) -> None:
        """Add to the inputs' adjoints what the output's adjoint says."""
        first, second, incoming = _matrices(self.first, buffers), self._second(buffers), _matrices(self.output, bars)
        _scatter(self.first, bars, np.matmul(incoming, _transposed(second)), add=True)
        to_second = np.matmul(_transposed(first), incoming)
        if not self.second.batched:
            to_second = to_second.sum(axis=0)[None]
        _scatter(self.second, bars, _transposed(to_second), add=True)

    def _second(self, buffers: Buffers) -> Array:
        """As (lanes or 1, shared, summed, columns)."""
        return _transposed(_matrices(self.second, buffers))


def matrix_steps(plan: Plan) -> tuple[MatrixStep, ...]:
    """The batched steps of a plan that are worth a matrix product, in the plan's order."""
    return tuple(_matrix_steps(plan))


def _matrix_steps(plan: Plan) -> Iterator[MatrixStep]:
    for number, step in enumerate(plan.steps):
        bits, summed = int(step[BITS]), int(step[SUMMED])
        wanted = step[BATCHED] and step[INPUTS] == 2 and bits >= _FEWEST_BITS and summed >= _FEWEST_OF_A_KIND
        if not wanted or step[FOLDED] or step[HALVINGS]:
            continue
        first, second = sorted(
            plan.inputs[step[FIRST_INPUT] : step[FIRST_INPUT] + 2].tolist(), key=lambda row: -row[INPUT_BATCHED]
        )
        # Of each joint bit, highest first: whether it is of the first input, of the second, and summed.
        kinds = [
            (bool(first[MASK] >> bit & 1), bool(second[MASK] >> bit & 1), bit >= bits - summed)
            for bit in range(bits - 1, -1, -1)
        ]
        counts = [kinds.count(kind) for kind in ((True, False, False), (False, True, False), (True, True, True))]
        shared = kinds.count((True, True, False))
        if min(counts) < _FEWEST_OF_A_KIND or sum(counts) + shared != bits:
            continue
        names = {(True, False, False): "rows", (False, True, False): "columns", (True, True, True): "summed"}
        letters = [names.get(kind, "shared") for kind in kinds]
        yield MatrixStep(
            number,
            1 << shared,
            1 << counts[0],
            1 << counts[1],
            1 << counts[2],
            _operand(first[OFFSET], bool(first[INPUT_BATCHED]), letters, ("shared", "rows", "summed")),
            _operand(second[OFFSET], bool(second[INPUT_BATCHED]), letters, ("shared", "columns", "summed")),
            _operand(int(step[OUTPUT]), True, letters, ("shared", "rows", "columns")),
        )


def _operand(offset: int, batched: bool, letters: list[str], kinds: tuple[str, str, str]) -> _Operand:
    own = [letter for letter in letters if letter in kinds]
    sizes: list[int] = []
    runs: list[str] = []
    for letter in own:
        if runs and runs[-1] == letter:
            sizes[-1] *= 2
        else:
            runs.append(letter)
            sizes.append(2)
    axes = [tuple(axis for axis, run in enumerate(runs) if run == kind) for kind in kinds]
    return _Operand(offset, 1 << len(own), batched, tuple(sizes), (axes[0], axes[1], axes[2]))


def _matrices(operand: _Operand, buffers: Buffers) -> Array:
    """A table as complex matrices (lanes or 1, shared, first kind, second kind)."""
    re, im = operand.view(buffers, 0), operand.view(buffers, 1)
    lanes = (len(operand.sizes),) if operand.batched else ()
    order = lanes + sum(operand.axes, ())
    result = np.empty([re.shape[axis] for axis in order], dtype=np.result_type(re.dtype, np.complex64))
    result.real, result.imag = re.transpose(order), im.transpose(order)
    shape = [int(np.prod([operand.sizes[axis] for axis in axes])) for axes in operand.axes]
    return result.reshape(-1, *shape)


def _scatter(operand: _Operand, buffers: Buffers, matrices: Array, *, add: bool) -> None:
    """Write matrices, as _matrices makes them, to the table, or add them to it."""
    lanes = (len(operand.sizes),) if operand.batched else ()
    order = lanes + sum(operand.axes, ())
    back = np.argsort(order)
    for part, values in enumerate((matrices.real, matrices.imag)):
        view = operand.view(buffers, part)
        moved = values.reshape([view.shape[axis] for axis in order]).transpose(back)
        if add:
            view += moved
        else:
            view[...] = moved


def _transposed(matrices: Array) -> Array:
    return matrices.swapaxes(-1, -2)
