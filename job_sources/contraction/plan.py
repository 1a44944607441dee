"""Turn networks and their elimination orders into one straight list of steps, equal steps written once.

Variables are renumbered so that the one summed first has the highest bit in every table: each step then sums the
highest bits, and every table is read in its own order (see step_table). Two steps with the same inputs at the same
masks are one step, whichever networks they belong to: equal branches of different networks are contracted once, and
networks that are equal as a whole share their root. Equality is decided on the expressions, never by a hash alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contraction.buckets import buckets_of, compress_mask, lowest_bit, mask_of
from contraction.network import Factor, Network
from contraction.step_table import BLOCK_BITS, MOST_INPUTS

_SHARED_BITS = 14
_STEP_COLUMNS = 10


@dataclass(frozen=True)
class LeafLayout:
    """How one table of the plan is laid out: its number, and the axes from highest to lowest bit."""

    table: int
    axes: tuple[int, ...]
    batched: bool
    stored_bits: int


@dataclass(frozen=True)
class Plan:
    """Steps for one evaluation, with everything that must be known before memory is allocated.

    Attributes:
        steps: (steps, 10) table, columns as in step_table.
        inputs: (inputs, 3) table: offset, mask, batched.
        groups: (groups, 2) first and last step: group 0 holds the steps that don't depend on the batch or that several
            networks share, group 1 the batched steps that several share, and each later group one network's own.
        roots: (networks, 2) offset of each network's value, and whether it lies in the batched buffer.
        layouts: of the leaf tables, in the order in which they lie at the start of their buffer.
        leaf_entries: entries of the leaves in the plain and in the batched buffer.
        buffer_entries: entries of both buffers in all (per sample for the batched one).
        operations: complex multiplications of one forward pass, for one sample: plain steps, batched steps.
        width: bits of the largest joint index, without the batch.
    """

    steps: npt.NDArray[np.int64]
    inputs: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64]
    roots: npt.NDArray[np.int64]
    layouts: tuple[LeafLayout, ...]
    leaf_entries: tuple[int, int]
    buffer_entries: tuple[int, int]
    operations: tuple[float, float]
    width: int


@dataclass(frozen=True)
class _Step:
    inputs: tuple[tuple[int, int], ...]
    bits: int
    summed: int
    folded: bool
    sign: int
    halvings: int
    batched: bool
    stored_bits: int


class PlanBuilder:
    """Collects networks and shares what is equal among them."""

    def __init__(self, batch: int = 1) -> None:
        self._batch_bits = max(batch, 1).bit_length() - 1
        self._values: list[LeafLayout | _Step] = []
        self._numbers: dict[LeafLayout | _Step, int] = {}
        self._signs: list[int] = []
        self._roots: list[int] = []

    def add_network(self, network: Network, order: Sequence[int]) -> int:
        """Add a network with the order of its sums; returns the number of its value among the roots.

        Raises:
            ValueError: the order doesn't sum every variable exactly once.
        """
        if sorted(order) != list(range(network.variables)):
            raise ValueError(f"order = {tuple(order)}: must hold each of {network.variables} variables once")
        buckets, final_order = buckets_of(network.factors, order)
        position = {variable: network.variables - 1 - rank for rank, variable in enumerate(final_order)}
        alive = [self._leaf(factor, position, network.folded) for factor in network.factors]
        for members, summed in buckets:
            alive.append(self._sum_bucket([alive[member] for member in members], summed, position, network))
        leftovers = set(range(len(alive))) - {member for members, _ in buckets for member in members}
        root = self._product_of_scalars([alive[number][1] for number in sorted(leftovers)])
        self._roots.append(root)
        return len(self._roots) - 1

    def _intern(self, value: "LeafLayout | _Step", sign: int) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._values)
            self._values.append(value)
            self._signs.append(sign)
        return number

    def _leaf(self, factor: Factor, position: dict[int, int], folded: bool) -> tuple[int, int]:
        axes = tuple(sorted(range(len(factor.scope)), key=lambda axis: -position[factor.scope[axis]]))
        stored = len(axes) - 1 if folded and axes else len(axes)
        # A folded table is a function of parities: the same whichever way its axes lie.
        layout = LeafLayout(factor.table, tuple(range(len(axes))) if folded else axes, factor.batched, stored)
        return mask_of(factor.scope, position), self._intern(layout, factor.sign)

    def _is_batched(self, number: int) -> bool:
        return self._values[number].batched

    def _sum_bucket(
        self, members: list[tuple[int, int]], summed: Sequence[int], position: dict[int, int], network: Network
    ) -> tuple[int, int]:
        """One or more product steps, then the step that sums; returns the mask and number of the result."""
        scope = 0
        for mask, _ in members:
            scope |= mask
        full_cost = scope.bit_count() + self._batch_bits * any(self._is_batched(number) for _, number in members)
        members = sorted(members, key=lambda member: member[1])
        while len(members) > 1:
            cost, first, second = min(
                (
                    (members[a][0] | members[b][0]).bit_count()
                    + self._batch_bits * (self._is_batched(members[a][1]) or self._is_batched(members[b][1])),
                    a,
                    b,
                )
                for a in range(len(members))
                for b in range(a + 1, len(members))
            )
            if (len(members) <= 2 or cost > full_cost - 2) and len(members) <= MOST_INPUTS:
                break
            pair = [members[first], members[second]]
            mask = pair[0][0] | pair[1][0]
            product = self._add_step(pair, mask, 0, 0, network.folded)
            members = [member for place, member in enumerate(members) if place not in {first, second}]
            members.append((mask, product))
            members.sort(key=lambda member: member[1])
        halvings = sum(variable in network.halved for variable in summed)
        result = self._add_step(members, scope, len(summed), halvings, network.folded)
        return scope & ~mask_of(summed, position), result

    def _add_step(
        self, members: Sequence[tuple[int, int]], scope: int, summed: int, halvings: int, folded: bool
    ) -> int:
        """Intern one step; a folded table's highest variable is 0 and not part of its index."""
        bits = scope.bit_count()
        index_scope = scope & ~(1 << (scope.bit_length() - 1)) if folded else scope
        index_bits = bits - 1 if folded else bits
        masks = [(number, compress_mask(mask & index_scope, index_scope)) for mask, number in members]
        batched = any(self._is_batched(number) for number, _ in masks)
        inputs = tuple(sorted(masks, key=lambda entry: (-lowest_bit(entry[1], 0 if batched else BLOCK_BITS), entry)))
        sign = 1
        for number, _ in inputs:
            sign *= self._signs[number]
        folds = folded and summed > 0
        index_summed = summed - 1 if folds else summed
        output_bits = index_bits - index_summed
        stored = output_bits - 1 if folds and output_bits > 0 else output_bits
        step = _Step(inputs, index_bits, index_summed, folds, sign, halvings, batched, stored)
        return self._intern(step, sign)

    def _product_of_scalars(self, numbers: Sequence[int]) -> int:
        """The root: the value of the network, or the product of the values of its disconnected parts."""
        product = numbers[0]
        for number in numbers[1:]:
            product = self._add_step([(0, product), (0, number)], 0, 0, 0, False)
        return product

    def build(self) -> Plan:
        """Lay out memory and group the steps."""
        users = self._users()
        batched_plan = any(value.batched for value in self._values)
        shared: dict[int, bool] = {}
        for number, value in enumerate(self._values):
            if isinstance(value, _Step):
                inputs_shared = all(shared.get(source, True) for source, _ in value.inputs)
                several = len(users[number]) > 1 and value.stored_bits <= _SHARED_BITS
                shared[number] = inputs_shared and (several or (batched_plan and not value.batched))
        layout = _Memory(self._values)
        groups: list[list[int]] = [
            [number for number, common in shared.items() if common and not self._is_batched(number)],
            [number for number, common in shared.items() if common and self._is_batched(number)],
        ]
        own = [number for number, common in shared.items() if not common]
        groups.extend([n for n in own if network in users[n]] for network in range(len(self._roots)))
        step_rows: list[list[int]] = []
        input_rows: list[list[int]] = []
        bounds: list[tuple[int, int]] = []
        roots = np.zeros((len(self._roots), 2), dtype=np.int64)
        operations = [0.0, 0.0]
        width = 0
        for group, numbers in enumerate(groups):
            first = len(step_rows)
            layout.start_group(permanent=group < 2)
            for number in numbers:
                step = self._values[number]
                if not isinstance(step, _Step):
                    continue
                offset = layout.place(number)
                step_rows.append(
                    [
                        step.bits,
                        step.summed,
                        step.folded,
                        step.sign,
                        step.halvings,
                        offset,
                        1 << step.stored_bits,
                        len(input_rows),
                        len(step.inputs),
                        step.batched,
                    ]
                )
                for source, mask in step.inputs:
                    input_rows.append([layout.offsets[source], mask, self._is_batched(source)])
                operations[step.batched] += 2.0**step.bits * len(step.inputs)
                width = max(width, step.bits + step.folded)
            bounds.append((first, len(step_rows)))
            if group >= 2:
                root = self._roots[group - 2]
                roots[group - 2] = layout.offsets[root], self._is_batched(root)
        return Plan(
            steps=np.array(step_rows, dtype=np.int64).reshape(-1, _STEP_COLUMNS),
            inputs=np.array(input_rows, dtype=np.int64).reshape(-1, 3),
            groups=np.array(bounds, dtype=np.int64),
            roots=roots,
            layouts=tuple(value for value in self._values if isinstance(value, LeafLayout)),
            leaf_entries=layout.leaf_entries,
            buffer_entries=layout.most_entries,
            operations=(operations[0], operations[1]),
            width=width,
        )

    def _users(self) -> dict[int, set[int]]:
        """For each value the networks that need it."""
        users: dict[int, set[int]] = {number: set() for number in range(len(self._values))}
        for network, root in enumerate(self._roots):
            users[root].add(network)
        for number in range(len(self._values) - 1, -1, -1):
            value = self._values[number]
            if isinstance(value, _Step):
                for source, _ in value.inputs:
                    users[source] |= users[number]
        return users


class _Memory:
    """Offsets in the two flat buffers: leaves, then shared tables, then one arena that each network uses anew."""

    def __init__(self, values: Sequence[LeafLayout | _Step]) -> None:
        self._values = values
        self.offsets: dict[int, int] = {}
        self._next = [0, 0]
        self._arena: list[int] | None = None
        self._most = [0, 0]
        for number, value in enumerate(values):
            if isinstance(value, LeafLayout):
                self.place(number)
        self.leaf_entries = (self._next[0], self._next[1])

    def start_group(self, *, permanent: bool) -> None:
        if permanent:
            return
        if self._arena is None:
            self._arena = list(self._next)
        self._next = list(self._arena)

    def place(self, number: int) -> int:
        value = self._values[number]
        offset = self._next[value.batched]
        self.offsets[number] = offset
        self._next[value.batched] = offset + (1 << value.stored_bits)
        self._most = [max(a, b) for a, b in zip(self._most, self._next, strict=True)]
        return offset

    @property
    def most_entries(self) -> tuple[int, int]:
        return self._most[0], self._most[1]
