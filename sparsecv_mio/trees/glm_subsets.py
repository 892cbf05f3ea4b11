"""Best subsets by a smooth convex loss on one training set: fits, proofs, and what held-out rows lose by them.

`GlmSubsets` is to such a loss what moments and their trees are to the squared one. All work is on centred
columns, of which copies are one (`trees/glm_fits`); sizes are proved by `trees/glm_tree`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import CACHED_ROWS, BoolArray, FloatArray, IntArray
from sparsecv_mio.problem.glm import GlmProblem, Ranges
from sparsecv_mio.problem.row_losses import RowLoss
from sparsecv_mio.trees.glm_fits import FittedSupports, GlmFits
from sparsecv_mio.trees.glm_ranges import around
from sparsecv_mio.trees.glm_tree import LEAPS_WORK, Listing, SizeSearch
from sparsecv_mio.trees.subsets import UNLIMITED, BestSubset, BestSubsets, never
from sparsecv_mio.units import LOSS_ROUNDING, TIE_RTOL

MOST_STARTS = 5  # supports of a size, the last ones found, that another gamma or size begins with


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits of some supports.

    Attributes
    ----------
    coefficients : (L, p) array
        In the units of X.
    intercept : (L,) array
    lower, upper : (L,) arrays
        `lower <= F_S <= upper`.
    """

    coefficients: FloatArray
    intercept: FloatArray
    lower: FloatArray
    upper: FloatArray

    def losses(self, loss: RowLoss, X: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
        """(L, m) weighted losses of rows, as computed."""
        margins = loss.signs(y) * (self.coefficients @ X.T + self.intercept[:, None])
        return np.asarray(weights * loss.losses(margins, y))


class LossesBelow(NamedTuple):
    """(n,) bounds of the losses of training rows: of fits of a size with F at most an objective, and of any such point.

    Attributes
    ----------
    least, most : (n,) arrays
        Of points with so many columns, fits among them.
    anywhere : (n,) array
        At most that at any point.
    """

    least: FloatArray
    most: FloatArray
    anywhere: FloatArray


class GlmSubsets:
    """Best supports of every size asked, with bounds of their objectives and of what held-out rows lose.

    Parameters
    ----------
    problem : GlmProblem
        Columns of any offset and scale.
    forced : int array, optional
        Columns that every support contains.
    """

    def __init__(self, problem: GlmProblem, forced: IntArray | None = None) -> None:
        self.fits, self._good = GlmFits.of(problem, forced), dict[int, list[frozenset[int]]]()

    def with_gamma(self, gamma: float) -> GlmSubsets:
        """Return the same rows under another gamma; what was best here is tried first there."""
        other = copy(self)
        other.fits = self.fits.with_gamma(gamma)
        return other

    def without(self, rows: IntArray) -> GlmSubsets | None:
        """Return the best-subset problem of the other rows, in the same columns; None where those tell less apart.

        Parameters
        ----------
        rows : int array
            Among those with a weight.
        """
        fits, other = self.fits.without(rows), copy(self)
        if fits is None:
            return None
        other.fits, other._good = fits, {}
        return other

    def _starts(self, size: int) -> list[frozenset[int]]:
        """Return the last good supports of a size, and of the next smaller one there is."""
        smaller = max((below for below in tuple(self._good) if below < size), default=size)
        return [support for of in {smaller, size} for support in self._good.get(of, [])]

    # -- sizes ------------------------------------------------------------------------------------------------------

    def relax(self, sizes: Sequence[int], starts: Iterable[IntArray], expired: Callable[[], bool]) -> BestSubsets:
        """Bound the optima of some sizes by the roots of their trees.

        Parameters
        ----------
        sizes, starts, expired
            As of `solve`.
        """
        return self.solve(sizes, starts, 1, None, expired, exchanges=False, work=1)

    def solve(
        self,
        sizes: Sequence[int],
        starts: Iterable[IntArray] = (),
        effort: int = UNLIMITED,
        enough: Mapping[int, float] | None = None,
        expired: Callable[[], bool] = never,
        threads: int = 1,
        exchanges: bool = True,
        work: int = LEAPS_WORK,
    ) -> BestSubsets:
        """Solve `min F_S, |S| <= tau` for every tau asked.

        Parameters
        ----------
        sizes : sequence of int
            At least the number of columns that are forced in.
        starts : iterable of int arrays
            Supports worth trying first.
        effort : int
            Most nodes of the outer tree of a size, each with trees of its own.
        enough : mapping of int to float, optional
            By tau, a lower bound that will do.
        expired : callable
            Looked at every few milliseconds; True ends with what is held.
        threads : int
            So many nodes of a tree are worked on at the same time; with several, how many there are may differ.
        exchanges : bool
            Whether starts of a size are improved before its tree.
        work : int
            Of a node; 1 for its relaxation alone.

        Returns
        -------
        BestSubsets
            Where a size is `complete`, its candidates are all supports that can be optimal, up to columns that are
            constant in these rows.
        """
        fits, by_size, nodes, before = self.fits, dict[int, BestSubset](), 0, frozenset(self.fits.forced)
        finished = True
        given = [frozenset(start.tolist()) for start in starts]
        for tau in sorted(set(sizes)):
            search = SizeSearch(fits, max(tau, len(fits.forced)), expired)
            search.begin([before, *given, *self._starts(tau)], exchanges)
            search.work = work
            by_size[tau] = search.run(tau, effort, np.inf if enough is None else enough.get(tau, np.inf), threads)
            before, nodes = search.support, nodes + search.nodes
            finished &= by_size[tau].complete or search.exhausted
            good = self._good.get(len(before), [])
            if before not in good:
                self._good[len(before)] = [*good, before][-MOST_STARTS:]
        return BestSubsets(by_size, nodes, finished)

    def listing(self, size: int, wanted: Listing, expired: Callable[[], bool] = never) -> SizeSearch:
        """Return a search that hands over every support of a size with F at most a level, once it is run.

        Parameters
        ----------
        size : int
        wanted : Listing
            Whose level may fall while it runs.
        expired : callable
            True ends it; `SizeSearch.unseen` then bounds the others.
        """
        search = SizeSearch(self.fits, max(size, len(self.fits.forced)), expired, wanted)
        search.begin([frozenset(self.fits.forced), *self._starts(size)])
        return search

    # -- supports ---------------------------------------------------------------------------------------------------

    def refit(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports.

        Parameters
        ----------
        supports : sequence of int arrays
        """
        masks = self.fits.masks(supports)
        return self._in_units(masks, self.fits.refit(masks))

    def _in_units(self, masks: BoolArray, fitted: FittedSupports) -> Fits:
        coefficients, intercept = np.zeros(masks.shape), np.zeros(len(masks))
        for row, mask in enumerate(masks):
            coefficients[row], intercept[row] = self.fits.in_units_of_x(mask, fitted.points[row])
        return Fits(coefficients, intercept, fitted.lower, fitted.upper)

    def scored(
        self, supports: Sequence[IntArray], X: FloatArray, y: FloatArray, weights: FloatArray | None = None
    ) -> tuple[Fits, FloatArray, FloatArray]:
        """Fit supports, and bound the loss of rows, summed, at the exact fit of each.

        Parameters
        ----------
        supports : sequence of int arrays
        X, y : (m, p), (m,) arrays
            Rows in the units of the problem's, targets as the loss has them.
        weights : (m,) array, optional
            1 by default.

        Returns
        -------
        Fits
            As `refit` returns them.
        lower, upper : (L,) arrays
        """
        masks = self.fits.masks(supports)
        fitted = self.fits.refit(masks)
        return self._in_units(masks, fitted), *self._lost(*self.fits.decisions(masks, fitted, X), y, weights)

    def open_fold_interval(
        self,
        size: int,
        upper: float,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray | None = None,
        expired: Callable[[], bool] = never,
    ) -> tuple[float, float]:
        """Bound the loss of rows at the best fit of a size, whatever its support.

        Every fit with F at most `upper` is in an ellipsoid, and every one of at most so many columns in a smaller one,
        whatever its support (docs/theory/glm.md, section 8).

        Parameters
        ----------
        size : int
            Some support of this size or smaller has F at most `upper`.
        upper : float
        X, y, weights
            As in `scored`.
        expired : callable
            True ends it with what is proved, (0, inf) if nothing is.
        """
        if not upper < np.inf:
            return 0.0, np.inf
        fits, low, high = self.fits, np.full(len(X), -np.inf), np.full(len(X), np.inf)
        rows, spread = fits.rows_outside(X)
        level = upper * (1.0 + TIE_RTOL)
        points = fits.points_below(level, self._good.get(size, []), expired)
        for below, sparse, _ in around(fits, points, size, level, expired):
            off = spread @ below.ellipsoid.size
            for ellipsoid in (below.ellipsoid, sparse or below.ellipsoid):
                least, most = ellipsoid.predictions(rows)
                low, high = np.maximum(low, least - off), np.minimum(high, most + off)
            del below  # has numbers of rows, and the next one is made meanwhile
        lower, most_lost = self._lost(low[None, :], high[None, :], y, weights)
        return float(lower[0]), float(most_lost[0])

    def losses_below(self, size: int, objective: float, expired: Callable[[], bool] = never) -> LossesBelow:
        """Bound the loss of every training row at points with F at most an objective.

        Parameters
        ----------
        size : int
            Some support of this size or smaller has F at most `objective`.
        objective : float
        expired : callable
            True ends it with what is proved.
        """
        n, level = len(self.fits.problem.y), objective * (1.0 + TIE_RTOL)
        points = self.fits.points_below(level, self._good.get(size, []), expired)
        for below, _, ranges in around(self.fits, points, size, level, expired):
            least, most = self._losses_within(ranges)
            anywhere = most if ranges is below.ranges else self._losses_within(below.ranges).high
            return LossesBelow(least, most, anywhere)
        return LossesBelow(np.zeros(n), np.full(n, np.inf), np.full(n, np.inf))

    def _losses_within(self, ranges: Ranges) -> Ranges:
        """Put ends of the losses of training rows whose margins lie within ranges in place of these."""
        problem, room = self.fits.problem, 1.0 + 4.0 * LOSS_ROUNDING
        for begin in range(0, len(problem.y), CACHED_ROWS):
            here = slice(begin, begin + CACHED_ROWS)
            low, high = np.sort(
                problem.loss.signs(problem.y[here]) * np.array([ranges.low[here], ranges.high[here]]), axis=0
            )
            least, most = problem.loss.between(low, high, problem.y[here])
            ranges.low[here], ranges.high[here] = least / room, most * room
        return ranges

    def _lost(
        self, low: FloatArray, high: FloatArray, y: FloatArray, weights: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Bound sums of weighted losses of rows whose predictors lie between (L, m) ends."""
        v = np.ones(len(y)) if weights is None else weights
        v, low, high, y = v[v > 0.0], low[:, v > 0.0], high[:, v > 0.0], y[v > 0.0]
        least, most = self.fits.problem.loss.between(low, high, y)
        rounding = LOSS_ROUNDING + len(v) * np.finfo(float).eps
        with np.errstate(over="ignore"):
            lower, upper = least @ v * (1.0 - rounding), most @ v * (1.0 + rounding)
        # what overflowed says nothing
        return np.where(lower > 0.0, lower, 0.0), np.where(upper < np.inf, upper, np.inf)
