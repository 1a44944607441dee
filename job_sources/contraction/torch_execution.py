"""Evaluate a planned circuit with torch: values for all samples, differentiable by every parameter.

On the CPU the steps run as compiled sweeps inside one autograd function; elsewhere, or on request, as torch operations
with torch's own gradient.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.autograd.function import once_differentiable

from contraction.batch_kernels import evaluate_batch
from contraction.circuit import Circuit
from contraction.circuit_plan import CircuitPlan, TableGroup
from contraction.gates import GATES, gate_tables
from contraction.plan import Plan
from contraction.sweep_kernels import (
    BATCHED,
    BITS,
    FIRST_INPUT,
    INPUT_BATCHED,
    INPUTS,
    MASK,
    OFFSET,
    OUTPUT,
    SCRATCH,
    STORED,
    SUMMED,
    backward_sweep,
    evaluate_networks,
    forward_sweep,
)

_LANES = 64
_KEPT_BYTES = 64 * 2**20


def expectation_values(
    circuit: Circuit,
    circuit_plan: CircuitPlan,
    parameters: Sequence[torch.Tensor],
    *,
    dtype: torch.dtype = torch.float64,
    compiled: bool | None = None,
) -> torch.Tensor:
    """Expectation values of every word of the circuit.

    Args:
        circuit: structure, as planned.
        circuit_plan: from circuit_plan.plan_circuit.
        parameters: one real tensor each: of shape (batch,) where the circuit says batched, else (); matrices for
            QubitUnitary.
        dtype: torch.float64 or torch.float32.
        compiled: run compiled sweeps; None does so for tensors on the CPU.

    Returns:
        Real tensor of shape (words, batch), or (words,) without a batch.
    """
    complex_dtype = torch.complex128 if dtype == torch.float64 else torch.complex64
    plain = _flat_tables(circuit_plan.groups[0], parameters, dtype, complex_dtype, batch=0)
    batch = _batch_size(circuit, parameters)
    batched = _flat_tables(circuit_plan.groups[1], parameters, dtype, complex_dtype, batch=batch)
    on_cpu = plain.device.type == "cpu" and batched.device.type == "cpu"
    if compiled is None:
        compiled = on_cpu
    if compiled:
        result: torch.Tensor = _Sweep.apply(circuit_plan, plain, batched)  # type: ignore[no-untyped-call]
    else:
        result = _run_with_torch(circuit_plan, plain, batched)
    return result.expand(-1, batch) if batch else result[:, 0]


def _batch_size(circuit: Circuit, parameters: Sequence[torch.Tensor]) -> int:
    """Number of samples; 0 without a batch."""
    sizes = {len(parameter) for parameter, batched in zip(parameters, circuit.batched, strict=True) if batched}
    if len(sizes) > 1:
        raise ValueError(f"batched parameters of lengths {sorted(sizes)}: all must have one value per sample.")
    return sizes.pop() if sizes else 0


def _flat_tables(
    groups: Sequence[TableGroup],
    parameters: Sequence[torch.Tensor],
    dtype: torch.dtype,
    complex_dtype: torch.dtype,
    *,
    batch: int,
) -> torch.Tensor:
    """All tables one after another: shape (entries,), or (entries, batch). Gates of one kind are computed together."""
    pieces: list[torch.Tensor] = []
    for group in groups:
        kind = complex_dtype if group.name == "QubitUnitary" else dtype
        axes = 2 if group.name == "QubitUnitary" else 0
        stacked = []
        for column in zip(*group.members, strict=True):
            values = [parameters[number] for number in column]
            if batch:
                values = [v if v.ndim > axes else v.expand(batch, *v.shape) for v in values]
            stacked.append(torch.stack(values).to(kind))
        tables = gate_tables(group.name, group.wires, stacked, complex_dtype)
        if not stacked:
            tables = tables.expand(len(group.members), -1)
        if group.adjoint:
            tables = _inverse(tables, group)
        tables = _with_controls(tables, group)
        pieces.append(tables.transpose(1, 2).flatten(0, 1) if batch else tables.flatten())
    if not pieces:
        return torch.zeros((0, batch) if batch else (0,), dtype=complex_dtype)
    device = next((piece.device for piece in pieces if piece.device.type != "cpu"), torch.device("cpu"))
    return torch.cat([piece.to(device) for piece in pieces])


def _inverse(tables: torch.Tensor, group: TableGroup) -> torch.Tensor:
    if GATES[group.name].diagonal:
        return tables.conj()
    size = 2**group.wires
    return tables.unflatten(-1, (size, size)).mT.conj().flatten(-2)


def _with_controls(tables: torch.Tensor, group: TableGroup) -> torch.Tensor:
    """Put one axis per control before the gate's own axes, with the identity wherever the gate doesn't act."""
    if not group.controls:
        return tables
    if GATES[group.name].diagonal:
        identity = torch.ones(2**group.wires, dtype=tables.dtype, device=tables.device)
    else:
        identity = torch.eye(2**group.wires, dtype=tables.dtype, device=tables.device).flatten()
    acting = int("".join(str(int(value)) for value in group.controls), 2)
    idle = identity.expand_as(tables)
    return torch.cat([tables if index == acting else idle for index in range(2 ** len(group.controls))], dim=-1)


class _Sweep(torch.autograd.Function):
    """Compiled forward and backward sweeps between the gate tables and the expectation values."""

    @staticmethod
    def forward(ctx: Any, circuit_plan: CircuitPlan, plain: torch.Tensor, batched: torch.Tensor) -> torch.Tensor:
        workspace = _Workspace(circuit_plan, plain.detach().numpy(), batched.detach().numpy())
        ctx.workspace = workspace
        return torch.from_numpy(workspace.values())

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, cotangents: torch.Tensor) -> tuple[None, torch.Tensor, torch.Tensor]:
        plain, batched = ctx.workspace.adjoints(cotangents.contiguous().numpy())
        return None, torch.from_numpy(plain), torch.from_numpy(batched)


class _Workspace:
    """Buffers of one evaluation; the samples of a batch go through them in chunks."""

    def __init__(
        self, circuit_plan: CircuitPlan, plain: npt.NDArray[np.complexfloating], batched: npt.NDArray[np.complexfloating]
    ) -> None:
        self._plan = circuit_plan.plan
        self._gathers = circuit_plan.gathers
        self._batched = batched
        self._sizes = (len(plain), len(batched))
        self._batch = batched.shape[1] if batched.ndim == 2 and len(batched) else 0
        self._type = plain.real.dtype
        self._re = np.zeros(self._plan.buffer_entries[0], dtype=self._type)
        self._im = np.zeros_like(self._re)
        self._fill(self._re, self._im, plain, 0)
        self._kept: dict[int, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {}

    def _fill(self, re: npt.NDArray[Any], im: npt.NDArray[Any], tables: npt.NDArray[Any], batched: int) -> None:
        gather = self._gathers[batched]
        count = len(gather.entries)
        chosen = tables[gather.entries]
        if batched:
            re.reshape(-1, tables.shape[1])[:count] = chosen.real
            np.multiply(chosen.imag, gather.signs[:, None], out=im.reshape(-1, tables.shape[1])[:count], casting="same_kind")
        else:
            re[:count] = chosen.real
            im[:count] = chosen.imag * gather.signs

    def _chunks(self) -> Iterator[tuple[int, int]]:
        for first in range(0, self._batch, _LANES):
            yield first, min(_LANES, self._batch - first)

    def values(self) -> npt.NDArray[Any]:
        """Shape (words, batch), or (words, 1) without a batch."""
        plan, none = self._plan, np.zeros(0, dtype=self._type)
        if not self._batch:
            results = np.zeros(len(plan.roots), dtype=self._type)
            evaluate_networks(
                plan.steps, plan.inputs, plan.groups, plan.roots, none, self._re, self._im, none, none, results
            )
            return results[:, None]
        work = np.zeros(SCRATCH, dtype=self._type), np.zeros(SCRATCH, dtype=self._type)
        forward_sweep(plan.steps, plan.inputs, *plan.groups[0], self._re, self._im, *work)
        collected = np.zeros((len(plan.roots), self._batch), dtype=self._type)
        keep = len(plan.roots) == 1 and 2 * plan.buffer_entries[1] * self._batch * self._re.itemsize <= _KEPT_BYTES
        for first, lanes in self._chunks():
            re, im = self._filled_lanes(first, lanes)
            results = np.zeros((len(plan.roots), lanes), dtype=self._type)
            self._evaluate(re, im, none, none, none, none, lanes, np.zeros((0, 0), dtype=self._type), results)
            collected[:, first : first + lanes] = results
            if keep:
                self._kept[first] = re, im
        return collected

    def _filled_lanes(self, first: int, lanes: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        re = np.zeros(self._plan.buffer_entries[1] * lanes, dtype=self._type)
        im = np.zeros_like(re)
        self._fill(re, im, self._batched[:, first : first + lanes], 1)
        return re, im

    def _evaluate(
        self, re: Any, im: Any, plain_bar_re: Any, plain_bar_im: Any, bar_re: Any, bar_im: Any, lanes: int,
        cotangents: npt.NDArray[Any], results: npt.NDArray[Any], *, computed: bool = False,
    ) -> None:  # fmt: skip
        plan = self._plan
        evaluate_batch(
            plan.steps, plan.inputs, plan.groups, plan.roots, self._re, self._im, plain_bar_re, plain_bar_im,
            re, im, bar_re, bar_im, lanes, computed, cotangents, results,
        )  # fmt: skip

    def adjoints(self, cotangents: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Gradients by the real and imaginary parts of the gate tables, as torch defines them for complex tensors."""
        plan = self._plan
        cotangents = np.ascontiguousarray(cotangents, dtype=self._type)
        bar_re, bar_im = np.zeros_like(self._re), np.zeros_like(self._re)
        complex_type = np.result_type(self._type, np.complex64)
        batched = np.zeros(self._batched.shape, dtype=complex_type)
        if not self._batch:
            results = np.zeros(len(plan.roots), dtype=self._type)
            evaluate_networks(
                plan.steps, plan.inputs, plan.groups, plan.roots, cotangents[:, 0].copy(),
                self._re, self._im, bar_re, bar_im, results,
            )  # fmt: skip
            return self._scattered(bar_re, bar_im, 0), batched
        for first, lanes in self._chunks():
            kept = self._kept.get(first)
            re, im = kept or self._filled_lanes(first, lanes)
            lane_re, lane_im = np.zeros_like(re), np.zeros_like(re)
            results = np.zeros((len(plan.roots), lanes), dtype=self._type)
            chunk = np.ascontiguousarray(cotangents[:, first : first + lanes])
            self._evaluate(re, im, bar_re, bar_im, lane_re, lane_im, lanes, chunk, results, computed=kept is not None)
            batched[:, first : first + lanes] = self._scattered(lane_re, lane_im, 1, lanes)
        work = np.zeros(SCRATCH, dtype=self._type), np.zeros(SCRATCH, dtype=self._type)
        backward_sweep(plan.steps, plan.inputs, *plan.groups[0], self._re, self._im, bar_re, bar_im, *work)
        return self._scattered(bar_re, bar_im, 0), batched

    def _scattered(self, bar_re: npt.NDArray[Any], bar_im: npt.NDArray[Any], batched: int, lanes: int = 1) -> npt.NDArray[Any]:
        """Sum the leaves' adjoints over the leaves that read one table entry.

        With d(loss) = real part of sum(B dF), torch's gradient of F is the conjugate of B, and that of a conjugated F
        is B itself.
        """
        gather = self._gathers[batched]
        count = len(gather.entries)
        leaves = np.empty((count, lanes), dtype=np.result_type(self._type, np.complex64))
        leaves.real = bar_re[: count * lanes].reshape(count, lanes)
        leaves.imag = -gather.signs[:, None] * bar_im[: count * lanes].reshape(count, lanes)
        result = np.zeros((self._sizes[batched], lanes), dtype=leaves.dtype)
        np.add.at(result, gather.entries, leaves)
        return result if batched else result[:, 0]


def _run_with_torch(circuit_plan: CircuitPlan, plain: torch.Tensor, batched: torch.Tensor) -> torch.Tensor:
    """The same steps as torch operations: each table a tensor of shape (entries,) or (entries, batch)."""
    plan = circuit_plan.plan
    tables: tuple[dict[int, torch.Tensor], dict[int, torch.Tensor]] = ({}, {})
    for kind, source in enumerate((plain, batched)):
        gather = circuit_plan.gathers[kind]
        chosen = source[torch.from_numpy(gather.entries).to(source.device)]
        conjugated = torch.from_numpy(gather.signs < 0).to(source.device)
        leaves = torch.where(conjugated if kind == 0 else conjugated[:, None], chosen.conj(), chosen)
        offset = 0
        for layout in plan.layouts:
            if layout.batched == bool(kind):
                tables[kind][offset] = leaves[offset : offset + (1 << layout.stored_bits)]
                offset += 1 << layout.stored_bits
    results = []
    for group, (start, stop) in enumerate(plan.groups):
        for number in range(start, stop):
            _torch_step(plan, number, tables)
        if group >= 2:
            offset, kind = plan.roots[group - 2]
            results.append(tables[kind][int(offset)][0].real)
    shape = torch.broadcast_shapes(*(result.shape for result in results), (1,))
    return torch.stack([result.expand(shape) for result in results])


def _torch_step(plan: Plan, number: int, tables: tuple[dict[int, torch.Tensor], dict[int, torch.Tensor]]) -> None:
    step = plan.steps[number]
    bits, summed, batched = int(step[BITS]), int(step[SUMMED]), int(step[BATCHED])
    rows = plan.inputs[step[FIRST_INPUT] : step[FIRST_INPUT] + step[INPUTS]]
    masks = [int(row[MASK]) for row in rows]
    # Neighbouring bits that the same inputs depend on make one axis, but none crosses into the summed bits.
    sizes: list[int] = []
    patterns: list[tuple[bool, ...]] = []
    for bit in range(bits - 1, -1, -1):
        pattern = (bit >= bits - summed, *(bool(mask >> bit & 1) for mask in masks))
        if patterns and patterns[-1] == pattern:
            sizes[-1] *= 2
        else:
            sizes.append(2)
            patterns.append(pattern)
    product: torch.Tensor | None = None
    for place, row in enumerate(rows):
        table = tables[int(row[INPUT_BATCHED])][int(row[OFFSET])]
        shape = [size if pattern[place + 1] else 1 for size, pattern in zip(sizes, patterns, strict=True)]
        view = table.reshape(*shape, *([-1 if row[INPUT_BATCHED] else 1] if batched else []))
        product = view if product is None else product * view
    assert product is not None
    axes = [axis for axis, pattern in enumerate(patterns) if pattern[0]]
    product = product.expand(*sizes, *([-1] if batched else []))
    result = product.sum(axes) if axes else product
    tables[batched][int(step[OUTPUT])] = result.reshape(int(step[STORED]), *([-1] if batched else []))
