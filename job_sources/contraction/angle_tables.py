"""Leaf tables of Max-Cut cones as functions of the angles, and derivatives by the tables as derivatives by the angles.

Every table has two entries: for equal and for different bits (of one bit: for 0 and for 1). Entry d of table t of an
edge_cone.CoupledTables is number 2 t + d of the list of all entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from contraction.leaf_tables import SlicedAxes
from contraction.plan import Plan


class AngleTables:
    """Entries of the tables of one depth and one list of edge weights.

    Args:
        depth: number of layers.
        weights: in the order of edge_cone.CoupledTables.
    """

    def __init__(self, depth: int, weights: Sequence[float]) -> None:
        self._depth = depth
        rows = np.arange(2 * depth * (1 + len(weights)))
        kinds, places = np.divmod(rows, 2 * depth)
        self._layers = places // 2
        self._conjugate = np.where(places % 2 > 0, -1.0, 1.0)
        self._is_phase = kinds > 0
        self._half_weights = np.array([0.0, *weights])[kinds] / 2
        self._sines = self._cosines = np.zeros(len(rows))

    def entries(
        self, gammas: npt.NDArray[np.float64], betas: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Real and imaginary parts of all entries: a phase is exp(-+i angle), a mixer cos(angle) and -i sin(angle)."""
        angles = np.where(self._is_phase, self._half_weights * gammas[self._layers], betas[self._layers])
        self._cosines = np.cos(angles)
        self._sines = self._conjugate * np.sin(angles)
        re, im = np.empty((1 + len(angles), 2)), np.empty((1 + len(angles), 2))
        re[0], im[0] = (1.0, -1.0), 0.0
        re[1:, 0] = self._cosines
        im[1:, 0] = np.where(self._is_phase, -self._sines, 0.0)
        re[1:, 1] = np.where(self._is_phase, self._cosines, 0.0)
        im[1:, 1] = np.where(self._is_phase, self._sines, -self._sines)
        return re.ravel(), im.ravel()

    def gradient(self, adjoints: npt.NDArray[np.complex128]) -> npt.NDArray[np.float64]:
        """Real part of sum(adjoint d(entry)/d(angle)), summed by layer: shape (2, depth); after `entries`."""
        equal, different = adjoints.reshape(-1, 2)[1:].T
        cosines = self._conjugate * self._cosines
        sines = self._conjugate * self._sines
        by_angle = np.where(
            self._is_phase,
            self._half_weights * ((equal - different).imag * cosines - (equal + different).real * sines),
            different.imag * cosines - equal.real * sines,
        )
        result = np.zeros((2, self._depth))
        for row, chosen in enumerate((self._is_phase, ~self._is_phase)):
            result[row] = np.bincount(self._layers[chosen], weights=by_angle[chosen], minlength=self._depth)
        return result


@dataclass(frozen=True)
class ConeLeaves:
    """Which entry every leaf entry of a plan is.

    Attributes:
        entries: for each leaf entry its number, with the sliced variables at 0.
        flips: (sliced variables, leaf entries) 1 where a sliced variable's value 1 exchanges equal and different.
    """

    entries: npt.NDArray[np.int64]
    flips: npt.NDArray[np.int64]

    def at_slice(self, number: int) -> npt.NDArray[np.int64]:
        """Numbers for one assignment of the sliced variables: bit i of `number` is variable i's value."""
        chosen = [place for place in range(len(self.flips)) if number >> place & 1]
        return self.entries ^ (self.flips[chosen].sum(axis=0) & 1) if chosen else self.entries


def cone_leaves(plan: Plan, tables: Sequence[tuple[int, SlicedAxes]] | None = None, sliced: int = 0) -> ConeLeaves:
    """The leaves of a plan of folded networks, or of one sliced network whose tables are (table, cuts) by number."""
    entries: list[npt.NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
    flips: list[npt.NDArray[np.int64]] = [np.zeros((sliced, 0), dtype=np.int64)]
    for layout in plan.layouts:
        table, cuts = (layout.table, ()) if tables is None else tables[layout.table]
        stored = 1 << layout.stored_bits
        parities = np.array([place.bit_count() & 1 for place in range(stored)], dtype=np.int64)
        entries.append(2 * table + parities)
        flipped = np.zeros((sliced, stored), dtype=np.int64)
        for _, place in cuts:
            flipped[place] ^= 1
        flips.append(flipped)
    return ConeLeaves(np.concatenate(entries), np.concatenate(flips, axis=1))
