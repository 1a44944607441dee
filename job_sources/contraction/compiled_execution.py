"""Evaluate a planned circuit on the CPU by compiled sweeps, as one function of the gate tables with its adjoint."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from contraction.batch_kernels import backward_batch, forward_batch
from contraction.circuit_plan import PlanPart
from contraction.matrix_steps import MatrixStep
from contraction.step_table import LANES, MOST_INPUTS, OUTPUT, SCRATCH, STORED
from contraction.sweep_kernels import evaluate_networks

Array = npt.NDArray[Any]

# Tables of the way forward are kept for the way back up to this size, and computed again beyond.
_KEPT_BYTES = 64 * 2**20


def part_values(part: PlanPart, plain: Array, batched: Array) -> "tuple[Array, CompiledEvaluation | None]":
    """Values of a part's words, summed over its slices, and the evaluation for its adjoints if there is one slice."""
    evaluation = CompiledEvaluation(part, 0, plain, batched)
    total = evaluation.values()
    for number in range(1, part.slices):
        total = total + CompiledEvaluation(part, number, plain, batched).values()
    return total, evaluation if part.slices == 1 else None


def part_adjoints(
    part: PlanPart, plain: Array, batched: Array, cotangents: Array, evaluation: "CompiledEvaluation | None"
) -> tuple[Array, Array]:
    """Gradients by the gate tables, summed over a part's slices; see CompiledEvaluation.adjoints."""
    if evaluation is not None:
        return evaluation.adjoints(cotangents)
    plain_total, batched_total = np.zeros_like(plain), np.zeros_like(batched)
    for number in range(part.slices):
        evaluation = CompiledEvaluation(part, number, plain, batched)
        evaluation.values()
        plain_part, batched_part = evaluation.adjoints(cotangents)
        plain_total += plain_part
        batched_total += batched_part
    return plain_total, batched_total


class CompiledEvaluation:
    """Buffers of one evaluation; the samples of a batch go through them in chunks.

    Args:
        part: of a plan from circuit_plan.plan_circuit.
        number: of the slice.
        plain: (entries,) gate tables without a batch, complex128 or complex64.
        batched: (entries, batch) gate tables with a batch, or with no entry.
    """

    def __init__(self, part: PlanPart, number: int, plain: Array, batched: Array) -> None:
        self._plan = part.plan
        self._matrix_steps = part.matrix_steps
        self._signs = part.gathers[0].signs, part.gathers[1].signs
        self._places = part.gathers[0].at_slice(number), part.gathers[1].at_slice(number)
        self._batched = batched
        self._plain_size = len(plain)
        self._batch = batched.shape[1] if batched.ndim == 2 and len(batched) else 0
        self._type = plain.real.dtype
        self._re, self._im = self._zeros(self._plan.buffer_entries[0]), self._zeros(self._plan.buffer_entries[0])
        self._fill(self._re, self._im, plain, batched=False)
        self._scratch = self._zeros(SCRATCH), self._zeros(SCRATCH), np.zeros(MOST_INPUTS, dtype=np.int64)
        self._lanes = max(1, min(LANES, self._batch))
        rows = (MOST_INPUTS + 1) * self._lanes
        self._lane_scratch = self._zeros(rows), self._zeros(rows), *np.zeros((3, MOST_INPUTS), dtype=np.int64)
        self._kept: dict[int, tuple[Array, Array]] = {}

    def _zeros(self, *shape: int) -> Array:
        return np.zeros(shape, dtype=self._type)

    def values(self) -> Array:
        """Expectation values: shape (words, batch), or (words, 1) without a batch."""
        plan = self._plan
        words = len(plan.roots)
        if not self._batch:
            return self._plain_values(self._zeros(0), self._zeros(0), self._zeros(0))[:, None]
        self._shared_plain_steps(self._zeros(0), self._zeros(0), self._zeros(0))
        collected = self._zeros(words, self._batch)
        keep = words == 1 and 2 * plan.buffer_entries[1] * self._batch * self._type.itemsize <= _KEPT_BYTES
        for first, lanes in self._chunks():
            tables = self._filled_lanes(first, lanes)
            collected[:, first : first + lanes] = self._chunk_values(tables, lanes)
            if keep:
                self._kept[first] = tables
        return collected

    def adjoints(self, cotangents: Array) -> tuple[Array, Array]:
        """Gradients by the gate tables, as torch defines them for complex tensors; after `values`.

        Args:
            cotangents: derivative of the loss by each value, of the values' shape.
        """
        cotangents = np.ascontiguousarray(cotangents, dtype=self._type)
        bars = np.zeros_like(self._re), np.zeros_like(self._re)
        batched = np.zeros(self._batched.shape, dtype=self._batched.dtype)
        if not self._batch:
            self._plain_values(cotangents[:, 0].copy(), *bars)
            return self._collected(bars, self._plain_size, 1, batched=False)[:, 0], batched
        for first, lanes in self._chunks():
            tables = self._kept.get(first)
            computed = tables is not None
            if tables is None:
                tables = self._filled_lanes(first, lanes)
            lane_bars = np.zeros_like(tables[0]), np.zeros_like(tables[0])
            chunk = np.ascontiguousarray(cotangents[:, first : first + lanes])
            self._chunk_adjoints(tables, bars, lane_bars, lanes, chunk, computed=computed)
            batched[:, first : first + lanes] = self._collected(lane_bars, len(batched), lanes, batched=True)
        self._shared_plain_steps(self._zeros(1), *bars)
        return self._collected(bars, self._plain_size, 1, batched=False)[:, 0], batched

    def _plain_values(self, coefficients: Array, bar_re: Array, bar_im: Array) -> Array:
        plan = self._plan
        results = self._zeros(len(plan.roots))
        evaluate_networks(
            plan.steps, plan.inputs, plan.groups, plan.roots, coefficients,
            self._re, self._im, bar_re, bar_im, results, False, *self._scratch,
        )  # fmt: skip
        return results

    def _shared_plain_steps(self, coefficients: Array, bar_re: Array, bar_im: Array) -> None:
        """Run the steps of group 0 forward, or with a coefficient backward from the adjoints given."""
        plan = self._plan
        evaluate_networks(
            plan.steps, plan.inputs, plan.groups, plan.roots[:0], coefficients, self._re, self._im,
            bar_re, bar_im, self._zeros(0), bool(coefficients.size), *self._scratch,
        )  # fmt: skip

    def _chunks(self) -> Iterator[tuple[int, int]]:
        for first in range(0, self._batch, self._lanes):
            yield first, min(self._lanes, self._batch - first)

    def _filled_lanes(self, first: int, lanes: int) -> tuple[Array, Array]:
        entries = self._plan.buffer_entries[1] * lanes
        re, im = np.empty(entries, self._type), np.empty(entries, self._type)
        self._fill(re, im, self._batched[:, first : first + lanes], batched=True)
        return re, im

    def _fill(self, re: Array, im: Array, tables: Array, *, batched: bool) -> None:
        """Copy every leaf from the gate table that it is a view of."""
        places = self._places[batched]
        chosen = tables[places].reshape(len(places), -1)
        re[: chosen.size] = chosen.real.ravel()
        im[: chosen.size] = (chosen.imag * self._signs[batched][:, None]).ravel()

    def _chunk_values(self, tables: tuple[Array, Array], lanes: int) -> Array:
        """Values of every network for some samples: shape (networks, lanes)."""
        results = self._zeros(len(self._plan.roots), lanes)
        self._forward(1, tables, lanes)
        for network in range(len(results)):
            self._forward(2 + network, tables, lanes)
            root, batched = self._plan.roots[network]
            results[network] = tables[0][root * lanes : (root + 1) * lanes] if batched else self._re[root]
        return results

    def _chunk_adjoints(
        self,
        tables: tuple[Array, Array],
        plain_bars: tuple[Array, Array],
        lane_bars: tuple[Array, Array],
        lanes: int,
        cotangents: Array,
        *,
        computed: bool,
    ) -> None:
        """Add to the adjoints, the batched ones zero before; `computed`: the tables of the only network are there."""
        plan = self._plan
        if not computed:
            self._forward(1, tables, lanes)
        for network, (root, batched) in enumerate(plan.roots):
            if not computed:
                self._forward(2 + network, tables, lanes)
            # Each network's own tables lie where the one before had its own.
            for step in plan.steps[slice(*plan.groups[2 + network])]:
                for bars in lane_bars:
                    bars[step[OUTPUT] * lanes : (step[OUTPUT] + step[STORED]) * lanes] = 0.0
            if batched:
                lane_bars[0][root * lanes : (root + 1) * lanes] += cotangents[network]
            else:
                plain_bars[0][root] += cotangents[network].sum()
            self._backward(2 + network, tables, plain_bars, lane_bars, lanes)
        self._backward(1, tables, plain_bars, lane_bars, lanes)

    def _forward(self, group: int, tables: tuple[Array, Array], lanes: int) -> None:
        plan = self._plan
        buffers = (self._re, self._im), _by_lane(tables, lanes)
        for part in _segments(plan.groups[group], self._matrix_steps):
            if isinstance(part, MatrixStep):
                part.forward(buffers)
            else:
                forward_batch(
                    plan.steps, plan.inputs, *part, self._re, self._im, *tables, lanes, *self._lane_scratch
                )  # fmt: skip

    def _backward(
        self,
        group: int,
        tables: tuple[Array, Array],
        plain_bars: tuple[Array, Array],
        lane_bars: tuple[Array, Array],
        lanes: int,
    ) -> None:
        plan = self._plan
        buffers = (self._re, self._im), _by_lane(tables, lanes)
        for part in reversed(_segments(plan.groups[group], self._matrix_steps)):
            if isinstance(part, MatrixStep):
                part.backward(buffers, (plain_bars, _by_lane(lane_bars, lanes)))
            else:
                backward_batch(
                    plan.steps, plan.inputs, *part, self._re, self._im, *plain_bars,
                    *tables, *lane_bars, lanes, *self._lane_scratch,
                )  # fmt: skip

    def _collected(self, bars: tuple[Array, Array], entries: int, lanes: int, *, batched: bool) -> Array:
        """Sum the leaves' adjoints over the leaves that are views of one table entry.

        With d(loss) = real part of sum(B dF), torch's gradient of F is the conjugate of B, and where the leaf is the
        conjugate of F, it is B itself.
        """
        places = self._places[batched]
        count = len(places)
        leaves = np.empty((count, lanes), dtype=np.result_type(self._type, np.complex64))
        leaves.real = bars[0][: count * lanes].reshape(count, lanes)
        leaves.imag = -self._signs[batched][:, None] * bars[1][: count * lanes].reshape(count, lanes)
        result = np.zeros((entries, lanes), dtype=leaves.dtype)
        np.add.at(result, places, leaves)
        return result


def _by_lane(tables: tuple[Array, Array], lanes: int) -> tuple[Array, Array]:
    return tables[0].reshape(-1, lanes), tables[1].reshape(-1, lanes)


def _segments(group: Array, matrix_steps: Sequence[MatrixStep]) -> list[MatrixStep | tuple[int, int]]:
    """The steps of a group (first, end) in order: matrix steps, and ranges of the others between them."""
    start, stop = group.tolist()
    segments: list[MatrixStep | tuple[int, int]] = []
    for step in matrix_steps:
        if start <= step.number < stop:
            if step.number > start:
                segments.append((start, step.number))
            segments.append(step)
            start = step.number + 1
    if stop > start:
        segments.append((start, stop))
    return segments
