"""Evaluate a planned circuit with torch: values for all samples, differentiable by every parameter.

On the CPU the steps run as compiled sweeps inside one autograd function; elsewhere, or on request, as torch operations
with torch's own gradient.
"""

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from contraction.circuit import Circuit
from contraction.circuit_plan import CircuitPlan, PlanPart
from contraction.gates import GATES, gate_tables
from contraction.leaf_tables import TableGroup
from contraction.plan import Plan
from contraction.step_table import (
    BATCHED,
    BITS,
    FIRST_INPUT,
    INPUT_BATCHED,
    INPUTS,
    MASK,
    OFFSET,
    OUTPUT,
    STORED,
    SUMMED,
)


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
    rows: dict[int, torch.Tensor] = {}
    for part in circuit_plan.parts:
        if compiled:
            values: torch.Tensor = _CompiledSweep.apply(part, plain, batched)  # type: ignore[no-untyped-call]
        else:
            values = _run_with_torch(part, 0, plain, batched)
            for number in range(1, part.slices):
                values = values + _run_with_torch(part, number, plain, batched)
        rows.update(zip(part.words, values.unbind(0), strict=True))
    result = torch.stack([rows[number].expand(max(batch, 1)) for number in range(len(circuit.words))])
    return result if batch else result[:, 0]


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
    return tables.reshape(*tables.shape[:-1], size, size).mT.conj().flatten(-2)


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


class _CompiledSweep(torch.autograd.Function):
    """Compiled sweeps between the gate tables and the expectation values."""

    @staticmethod
    def forward(ctx: Any, part: PlanPart, plain: torch.Tensor, batched: torch.Tensor) -> torch.Tensor:
        from contraction.compiled_execution import part_values  # noqa: PLC0415  (imports numba)

        ctx.part = part
        ctx.tables = plain.detach().resolve_conj().numpy(), batched.detach().resolve_conj().numpy()
        values, ctx.evaluation = part_values(part, *ctx.tables)
        return torch.from_numpy(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangents: torch.Tensor) -> tuple[None, torch.Tensor, torch.Tensor]:
        from contraction.compiled_execution import part_adjoints  # noqa: PLC0415  (imports numba)

        plain, batched = ctx.tables
        gradients = part_adjoints(ctx.part, plain, batched, cotangents.numpy(), ctx.evaluation)
        return None, torch.from_numpy(gradients[0]), torch.from_numpy(gradients[1])


def _run_with_torch(part: PlanPart, number: int, plain: torch.Tensor, batched: torch.Tensor) -> torch.Tensor:
    """One slice's steps as torch operations: each table a tensor of shape (entries,) or (entries, batch)."""
    plan = part.plan
    tables: tuple[dict[int, torch.Tensor], dict[int, torch.Tensor]] = ({}, {})
    for kind, source in enumerate((plain, batched)):
        gather = part.gathers[kind]
        chosen = source[torch.from_numpy(gather.at_slice(number)).to(source.device)]
        conjugated = torch.from_numpy(gather.signs < 0).to(source.device)
        leaves = torch.where(conjugated if kind == 0 else conjugated[:, None], chosen.conj(), chosen)
        offset = 0
        for layout in plan.layouts:
            if layout.batched == bool(kind):
                tables[kind][offset] = leaves[offset : offset + (1 << layout.stored_bits)]
                offset += 1 << layout.stored_bits
    results = []
    for group, (start, stop) in enumerate(plan.groups):
        for step in range(start, stop):
            _torch_step(plan, step, tables)
        if group >= 2:
            place, kind = plan.roots[group - 2]
            results.append(tables[kind][int(place)][0].real)
    longest = max((result.numel() for result in results), default=1)
    return torch.stack([result.expand(longest) for result in results])


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
    views = []
    for place, row in enumerate(rows):
        table = tables[int(row[INPUT_BATCHED])][int(row[OFFSET])]
        shape = [size if pattern[place + 1] else 1 for size, pattern in zip(sizes, patterns, strict=True)]
        views.append(table.reshape(*shape, *([-1 if row[INPUT_BATCHED] else 1] if batched else [])))
    product = functools.reduce(torch.mul, views)
    axes = [axis for axis, pattern in enumerate(patterns) if pattern[0]]
    product = product.expand(*sizes, *([-1] if batched else []))
    result = product.sum(axes) if axes else product
    tables[batched][int(step[OUTPUT])] = result.reshape(int(step[STORED]), *([-1] if batched else []))
