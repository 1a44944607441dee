"""Where every leaf entry of a circuit's plan comes from: gate tables computed in groups, and the places in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contraction.gates import GATES, table_entries
from contraction.light_cone import TableRegister, TableSource, TableView
from contraction.plan import LeafLayout

SlicedAxes = tuple[tuple[int, int], ...]
"""Pairs of an axis of a factor and the number of the sliced variable that cuts it."""


@dataclass(frozen=True)
class TableGroup:
    """Gates of one kind, whose tables are computed together and lie one after another.

    Attributes:
        name, wires, adjoint, controls: as in light_cone.TableSource.
        members: for each gate the numbers of its parameters.
    """

    name: str
    wires: int
    adjoint: bool
    controls: tuple[bool, ...]
    members: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class LeafGather:
    """Where the leaf entries of one buffer come from.

    Attributes:
        entries: for each leaf entry its place in the flat list of gate tables, with the sliced variables at 0.
        signs: -1.0 where the entry is conjugated, else 1.0.
        strides: (sliced variables, leaf entries) what a sliced variable's value 1 adds to the place.
    """

    entries: npt.NDArray[np.int64]
    signs: npt.NDArray[np.float64]
    strides: npt.NDArray[np.int64]

    def at_slice(self, number: int) -> npt.NDArray[np.int64]:
        """Places for one assignment of the sliced variables: bit i of `number` is variable i's value."""
        chosen = [place for place in range(len(self.strides)) if number >> place & 1]
        if not chosen:
            return self.entries
        return np.asarray(self.entries + self.strides[chosen].sum(axis=0), dtype=np.int64)


def table_groups(
    register: TableRegister, batched_parameters: Sequence[bool]
) -> tuple[tuple[tuple[TableGroup, ...], tuple[TableGroup, ...]], dict[int, int]]:
    """Group a circuit's gates by kind: groups without and with a batch, and each source's place among theirs."""
    groups: tuple[list[TableGroup], list[TableGroup]] = ([], [])
    offsets: dict[int, int] = {}
    for batched in (0, 1):
        alike: dict[tuple[str, int, bool, tuple[bool, ...]], list[TableSource]] = {}
        for source in register.sources:
            if any(batched_parameters[parameter] for parameter in source.parameters) == bool(batched):
                alike.setdefault((source.name, source.wires, source.adjoint, source.controls), []).append(source)
        size = 0
        for (name, wires, adjoint, controls), members in alike.items():
            for source in members:
                offsets[register.sources[source]] = size
                size += table_entries(GATES[name], wires) << len(controls)
            parameters = tuple(source.parameters for source in members)
            groups[batched].append(TableGroup(name, wires, adjoint, controls, parameters))
    return (tuple(groups[0]), tuple(groups[1])), offsets


def leaf_gather(
    layouts: Sequence[LeafLayout],
    tables: Sequence[tuple[TableView, SlicedAxes]],
    offsets: Mapping[int, int],
    sliced: int,
) -> LeafGather:
    """Places of all leaf entries of one buffer.

    Args:
        layouts: of the buffer's leaves, whose tables are numbers in `tables`.
        tables: views with the axes that slicing cuts.
        offsets: from table_groups.
        sliced: number of sliced variables.
    """
    entries: list[npt.NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    signs: list[npt.NDArray[np.float64]] = [np.zeros(0)]
    strides: list[npt.NDArray[np.int64]] = [np.zeros((sliced, 0), dtype=np.int64)]
    for layout in layouts:
        view, cuts = tables[layout.table]
        cut_axes = {axis for axis, _ in cuts}
        # The first axis of a gate's table has the highest stride; axes that are not free stay at 0.
        steps = [1 << (view.axes - 1 - axis) for axis in view.free]
        left = [step for axis, step in enumerate(steps) if axis not in cut_axes]
        places = np.zeros(1, dtype=np.int64)
        for axis in layout.axes:
            places = (places[:, None] + np.array([0, left[axis]])).ravel()
        entries.append(places + offsets[view.source])
        signs.append(np.full(len(places), -1.0 if view.conjugate else 1.0))
        added = np.zeros((sliced, len(places)), dtype=np.int64)
        for axis, place in cuts:
            added[place] += steps[axis]
        strides.append(added)
    return LeafGather(np.concatenate(entries), np.concatenate(signs), np.concatenate(strides, axis=1))
