"""Complete lists of the supports that can be optimal anywhere on an interval of lam, for every training set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.formulation.backends.native.cell import PathCell
from sparsecv_mio.formulation.backends.native.path import solve_path
from sparsecv_mio.problem.accumulate import full_problem
from sparsecv_mio.search.continuous.chords import Envelope
from sparsecv_mio.search.continuous.fits import Fits, Values
from sparsecv_mio.search.continuous.left_out import LeftOutRows, RowFits, row_keys
from sparsecv_mio.search.continuous.listing import EFFORT, Listed, Lister
from sparsecv_mio.search.subproblem.supports import filled_up
from sparsecv_mio.units import TINY

ROOM = 1e-3  # share of a width that is added for rounding
WIDENINGS = 4  # rounds, of which the first nearly always does

Both = tuple[IntArray, IntArray, Values, Values]  # training sets, supports, values at both ends of an interval


class AllRows:
    """Best supports of all rows at any lam, with certified lower bounds.

    Parameters
    ----------
    lister : Lister
    sizes : sequence of int
    """

    def __init__(self, lister: Lister, sizes: Sequence[int]) -> None:
        self.lister, self.sizes = lister, list(sizes)
        self._problem = full_problem(lister.data, 1.0)
        self._cells: dict[float, dict[int, PathCell]] = {}
        self._last: list[IntArray] = []
        self._supports: dict[tuple[float, int], IntArray] = {}
        self._found: dict[int, dict[bytes, IntArray]] = {size: {} for size in self.sizes}

    def at(self, lam: float) -> dict[int, PathCell]:
        """Return what is known of every size at one lam."""
        if lam not in self._cells:
            here = self._problem.with_gamma(2.0 * lam)
            found = solve_path(here, self.sizes, starts=self._last, effort=EFFORT, expired=self.lister.expired)
            self.lister.nodes += found.nodes
            self._cells[lam] = found.cells
            self._last = [cell.support for cell in found.cells.values()]
            for size, cell in found.cells.items():
                support = filled_up(cell.support, size, np.arange(self.lister.sets.q))
                self._supports[lam, size] = self._found[size].setdefault(support.tobytes(), support)
        return self._cells[lam]

    def support(self, lam: float, size: int) -> IntArray:
        """Return the best support found, filled up to its size."""
        self.at(lam)
        return self._supports[lam, size]

    def found(self, size: int) -> list[IntArray]:
        """Return the best supports at the lams looked at so far, each once."""
        return list(self._found[size].values())


class Lists:
    """The supports that can be optimal on an interval, from complete lists at its ends.

    Parameters
    ----------
    lister : Lister
    all_rows : AllRows
    """

    def __init__(self, lister: Lister, all_rows: AllRows) -> None:
        self.lister, self.all_rows, self.sets = lister, all_rows, lister.evaluated
        self._listed: dict[tuple[float, int], Listed] = {}

    def solve(self, lam: float, sizes: Sequence[int]) -> bool:
        """Find the optima of some sizes at a lam; False where the clock ended it."""
        missing = [size for size in sizes if (lam, size) not in self._listed]
        return not missing or self._keep(lam, self.lister.optima(lam, {s: self.all_rows.found(s) for s in missing}))

    def solved(self, low: float, high: float, size: int) -> bool:
        """Whether the optima of a size are known at both ends of an interval.

        Parameters
        ----------
        low, high : float
            Ends of the interval.
        size : int
        """
        return (low, size) in self._listed and (high, size) in self._listed

    def optima(self, lam: float, size: int) -> tuple[IntArray, Values]:
        """Return the training sets of what is listed at a lam that was solved, ascending, and the values there."""
        fold, support = _distinct([self._listed[lam, size]])
        return fold, self.sets.values(fold, support, lam)

    def widen(self, lam: float, intervals: Sequence[tuple[float, float, int]]) -> bool:
        """Lengthen the lists at a lam as some intervals (low, high, size) that end there need; False where that fails.

        Lists at both ends of an interval must have been made.
        """
        bars: dict[int, FloatArray] = {}
        for low, high, size in intervals:
            wanted, _ = self._wanted(low, high, size)
            if wanted is not None:
                bars[size] = np.maximum(bars.get(size, self._listed[lam, size].bar), wanted[0 if lam == low else 1])
        listed = self.lister.below(lam, bars) if bars else {}
        if listed is None:
            return False
        # trees cut at equality: where the targets of a training set are constant, f is 0 everywhere and none is below 0
        return self._keep(lam, {size: one.joined(self._listed[lam, size]) for size, one in listed.items()})

    def on(self, low: float, high: float, size: int) -> Fits | RowFits | None:
        """Return every fit that can be optimal somewhere on an interval; None where its lists do not come to an end.

        A support outside of both lists has f above their bars at the ends, so by concavity above the chord of these on
        all of the interval; and that chord is above the tangents of known supports.

        Parameters
        ----------
        low, high : float
            Ends of the interval.
        size : int
        """
        for _ in range(WIDENINGS):
            bars, (fold, support, left, right) = self._wanted(low, high, size)
            if bars is None:
                alive = np.flatnonzero(Envelope.of((low, high), fold, left, right).may_win(left, right))
                return self.sets.fits(fold[alive], support[alive])
            if not all(self.widen(lam, [(low, high, size)]) for lam in (low, high)):
                return None
        return None

    def of_one(self, lam: float, size: int) -> Values:
        """Return the values of the best support of all rows in every training set."""
        k = self.sets.k
        return self.sets.values(np.arange(k), np.tile(self.all_rows.support(lam, size), (k, 1)), lam)

    def _keep(self, lam: float, listed: dict[int, Listed] | None) -> bool:
        if listed is not None:
            self._listed.update({(lam, size): one for size, one in listed.items()})
        return listed is not None

    def _both(self, low: float, high: float, size: int) -> Both:
        """Training sets, supports and values at both ends of what is listed at either."""
        fold, support = _distinct([self._listed[low, size], self._listed[high, size]])
        if isinstance(self.sets, LeftOutRows):
            fits = self.sets.fits(fold, support)
            return fold, support, fits.values(low), fits.values(high)
        left, right = (self.sets.values(fold, support, lam) for lam in (low, high))
        return fold, support, left, right

    def _wanted(self, low: float, high: float, size: int) -> tuple[tuple[FloatArray, FloatArray] | None, Both]:
        """Bars that the lists at both ends need, None where theirs will do; and what these hold."""
        both = self._both(low, high, size)
        envelope = Envelope.of((low, high), both[0], *both[2:])
        bars = [self._listed[lam, size].bar for lam in (low, high)]
        wanted, share = envelope.excess + 4.0 * envelope.error, envelope.share
        enough = wanted <= (1.0 - share) * (bars[0] - envelope.left) + share * (bars[1] - envelope.right)
        if np.all(enough):
            return None, both
        room = np.where(enough, -np.inf, wanted * (1.0 + ROOM) + TINY)
        return (envelope.left + room, envelope.right + room), both


def _distinct(lists: Sequence[Listed]) -> tuple[IntArray, IntArray]:
    """Return the training sets, ascending, and supports of some lists, each once."""
    fold, support = (np.concatenate([getattr(one, name) for one in lists]) for name in ("fold", "support"))
    number = np.unique(row_keys(support), return_inverse=True)[1].reshape(-1)
    _, first = np.unique(fold * (len(number) + 1) + number, return_index=True)
    return fold[first], support[first]
