"""Sums of the cells over the folds: the interval of every pair (gamma, tau), and the pair to report.

Three pairs may be called the best one:

* `PairBounds.best` has the least upper bound. Certificates and exclusions compare with it.
* `likely_winner` has the least estimate among the pairs that may still win. Methods work on it first.
* `PairBounds.reported_pair` is the answer: `best` once the grid is proved, before that the pair with the least CV error
  found, whose upper bound may not be known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.units import CROSSING_RTOL, TIE_RTOL


@dataclass(frozen=True, eq=False)
class PairBounds:
    """Sums over folds by (gamma, tau): `lower <= sum_j h_j <= upper`.

    Attributes
    ----------
    lower, upper : (G, T) arrays
    nominal : (G, T) array
        At the supports the cells hold: the sum itself where all folds are decided, else an estimate.
    best : gamma, tau
        The least upper sum; of pairs alike to rounding the one with the smallest tau, then the largest gamma. Where no
        upper sum is known, the least `nominal`.
    cells : CellTable
    """

    lower: FloatArray
    upper: FloatArray
    nominal: FloatArray
    best: tuple[int, int]
    cells: CellTable

    def within(self, part: BoolArray, gammas: FloatArray, taus: IntArray) -> PairBounds:
        """Bounds of the grid without the pairs (G, T) outside of a part: nothing of these may be chosen.

        Parameters
        ----------
        part : (G, T) bool array
            At least one pair.
        gammas, taus : arrays
            The whole grid.

        Returns
        -------
        PairBounds
            With inf for all three numbers of the pairs left out.
        """
        lower, upper, nominal = (np.where(part, array, np.inf) for array in (self.lower, self.upper, self.nominal))
        return PairBounds(lower, upper, nominal, _best(upper, nominal, self.cells, gammas, taus), self.cells)

    @property
    def floor(self) -> float:
        """Certified lower bound of the smallest h over the grid."""
        return float(self.lower.min())

    @property
    def ceiling(self) -> float:
        """Certified upper bound of the best pair's h."""
        return float(self.upper[self.best])

    @property
    def decided(self) -> IntArray:
        """(G, T): folds decided."""
        return np.asarray(self.cells.decided.sum(axis=2))

    @property
    def shown(self) -> FloatArray:
        """(G, T): `nominal`, moved to the nearer end where an estimate lies outside of the certified interval."""
        return np.asarray(np.clip(self.nominal, self.lower, self.upper))

    @property
    def found(self) -> FloatArray:
        """(G, T): `shown`, inf for pairs that are not scored in every fold."""
        return np.where(np.isfinite(self.nominal), self.shown, np.inf)

    def allowances(self) -> tuple[float, float]:
        """Tie width and rounding allowance of the certificate: those of the pair that attains the lower bound.

        With every cell decided, `upper[best] <= upper[lowest] = lower[lowest] + ties + rounding`.
        """
        g, t = (int(i) for i in np.unravel_index(int(np.argmin(self.lower)), self.lower.shape))
        tie, rounding = self.cells.allowances(g, t)
        # what the difference of the sums may lose: ties can make the upper one much the larger
        size = self.ceiling if np.isfinite(self.ceiling) else float(self.lower[g, t])
        alike = self.ceiling - float(self.upper.min()) if np.isfinite(self.ceiling) else 0.0
        return tie, rounding + alike + 1e-14 * size

    def proved(self, gap: float) -> bool:
        """Whether `upper - lower <= gap * upper + tie_width + allowance`."""
        tie, allowance = self.allowances()
        return bool(np.isfinite(self.ceiling)) and self.ceiling - self.floor <= gap * self.ceiling + tie + allowance

    def reported_pair(self, gap: float, gammas: FloatArray, taus: IntArray) -> tuple[int, int]:
        """Return the pair to report: `best` where it is proved, else the one with the least CV error found.

        Of pairs whose CV errors agree to `TIE_RTOL`, the smallest tau, then the largest gamma.

        Parameters
        ----------
        gap : float
        gammas, taus : arrays
            The grid.
        """
        if self.proved(gap):
            return self.best
        found = self.found
        if not np.isfinite(found.min()):
            return self.best
        return simplest(found <= found.min() * (1.0 + TIE_RTOL), gammas, taus)


def likely_winner(now: PairBounds) -> tuple[int, int]:
    """Pair with the least estimate of h, among those that may still win."""
    may_win = now.lower <= now.ceiling
    g, t = np.unravel_index(int(np.argmin(np.where(may_win, now.nominal, np.inf))), now.lower.shape)
    return int(g), int(t)


def simplest(among: BoolArray, gammas: FloatArray, taus: IntArray) -> tuple[int, int]:
    """Of some pairs (G, T) the one with the smallest tau, then the largest gamma.

    Parameters
    ----------
    among : (G, T) bool array
    gammas, taus : arrays
        The grid.
    """
    rows, cols = np.nonzero(among)
    pick = np.lexsort((-gammas[rows], taus[cols]))[0]
    return int(rows[pick]), int(cols[pick])


def statuses(lower: FloatArray, upper: FloatArray, decided: BoolArray, gap: float, proved: bool) -> NDArray[np.str_]:
    """Return what is known of every pair: `decided`, `excluded` or `open`.

    A pair is excluded where another one is at least as good, up to the gap: its upper bound is above the least one, its
    lower bound at least `1 - gap` times that. Where the whole grid is proved this is so of every pair with a larger
    upper bound, ties and rounding included.

    Parameters
    ----------
    lower, upper : (G, T) arrays
    decided : (G, T) bool array
        Whether every fold of the pair is.
    gap : float
    proved : bool
        Whether the whole grid is proved to the gap.

    Returns
    -------
    (G, T) array of str

    Examples
    --------
    >>> lower, upper = np.array([[2.0, 1.0, 2.5, 1.0]]), np.array([[2.0, 3.0, np.inf, np.inf]])
    >>> statuses(lower, upper, np.array([[True, False, False, False]]), 0.0, False).tolist()
    [['decided', 'open', 'excluded', 'open']]
    """
    least = upper.min()
    beaten = (upper > least) & (proved | (lower >= (1.0 - gap) * least))
    return np.where(decided, "decided", np.where(beaten, "excluded", "open"))


def pair_bounds(cells: CellTable, gammas: FloatArray, taus: IntArray) -> PairBounds:
    """Sum the cells over folds. O(G T K).

    Parameters
    ----------
    cells : CellTable
    gammas, taus : arrays
        The grid.
    """
    lower, upper, nominal = (array.sum(axis=2) for array in (cells.lower, cells.upper, cells.nominal))
    return PairBounds(lower, upper, nominal, _best(upper, nominal, cells, gammas, taus), cells)


def _best(
    upper: FloatArray,
    nominal: FloatArray,
    cells: CellTable,
    gammas: FloatArray,
    taus: IntArray,
) -> tuple[int, int]:
    """Return the pair with the least upper sum, see `PairBounds.best`."""
    least = upper.min()
    if not np.isfinite(least):
        place = np.unravel_index(int(np.argmin(nominal)), nominal.shape)
        return int(place[0]), int(place[1])
    alike = upper <= least * (1.0 + 1e-15)
    near = np.argwhere(~alike & (upper <= least * (1.0 + CROSSING_RTOL)) & cells.decided.all(axis=2))
    if len(near):
        # one h, computed by different engines: its upper ends differ by what their rounding allows
        bar = least + max(cells.allowances(int(g), int(t))[1] for g, t in np.argwhere(alike))
        for g, t in near.tolist():
            alike[g, t] = upper[g, t] <= bar + cells.allowances(g, t)[1]
    return simplest(alike, gammas, taus)
