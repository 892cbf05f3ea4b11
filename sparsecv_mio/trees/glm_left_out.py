"""Intervals for the training objective and held-out loss of a support in every fold, from its full-data fit.

For each fold, one Newton step starts at the full-data fit, with the Hessian at this fit minus the terms of the held-out
rows. A ball about the point after the step contains the fit of the fold (`kernels/rows_out`). If folds have few rows,
the step costs O(tau^2) for each fold, whatever the total number of rows. If an interval is too wide, further Newton
steps follow. Each further step computes the gradient from all n rows in O(n tau) operations (docs/theory/glm.md,
section 9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BLOCK_NUMBERS, CACHED_ROWS, BoolArray, FloatArray, IntArray
from sparsecv_mio.data.fold_plan import RowLists
from sparsecv_mio.kernels import rows_out
from sparsecv_mio.kernels.glm_newton import Columns, merge_copies
from sparsecv_mio.problem.row_losses import RowLoss
from sparsecv_mio.trees.glm_fits import GlmFits
from sparsecv_mio.trees.subsets import is_never_expired
from sparsecv_mio.units import LOSS_ROUNDING, MARGINS_OFF, ROUNDING

SETTLED = 1e-9  # accuracy of margins for the held-out losses of exact fits
FINEST = 1e-2  # minimum factor on these accuracies if slopes are far larger than losses
ROUGH_MARGIN_ERROR = 1e-4  # accuracy of margins if objectives need only be near their minima
FOLDS_AT_ONCE = 1 << 14  # folds that are handled together
FEW = 1 << 26  # maximum number of values read by steps in all folds for every fold to get a further step
ENOUGH_FOR_TWO = 1e-7  # maximum of error after one step x move: the second step leaves at most 1/5 of it (4,000 draws)
APART = 1e-4  # difference of margins in a difference quotient of curvatures


class HeldOutIntervals(NamedTuple):
    """Bounds on held-out losses at the fits of K folds, and estimates; 0, inf and nan if unknown."""

    lower: FloatArray
    upper: FloatArray
    middle: FloatArray


class LeftOut:
    """Held-out rows of all folds, with fits to all rows.

    Parameters
    ----------
    fits : GlmFits
        Fits to all rows.
    left_out : RowLists
        Rows that each fold holds out, including rows of weight 0.
    scored : sequence of int arrays or None
        Rows that each fold scores, among its held-out rows; None if it scores all of them.
    weights : (n,) array
        Row weights.
    """

    def __init__(
        self, fits: GlmFits, left_out: RowLists, scored: Sequence[IntArray] | None, weights: FloatArray
    ) -> None:
        self.fits, self.k = fits, len(left_out.starts) - 1
        # copied, because no kernel is compiled ahead for read-only arrays, and the lists of a plan may be read-only
        self.rows, self.ends = left_out.rows.copy(), left_out.starts.copy()
        self.counted: FloatArray = np.broadcast_to(1.0, len(self.rows))
        if scored is None and np.all(weights == 1.0):
            return  # no further array, since the lists may hold as many entries as there are rows
        is_weighted, counted = weights > 0.0, weights[self.rows]  # fits have no rows of weight 0
        for at, of in enumerate(scored or ()):
            here = slice(left_out.starts[at], left_out.starts[at + 1])
            counted[here] = np.where(np.isin(self.rows[here], of), counted[here], 0.0)
        out = is_weighted[self.rows]
        self.ends = np.concatenate([[0], np.cumsum(out)])[left_out.starts].astype(np.int64)
        self.rows, self.counted = (np.cumsum(is_weighted) - 1)[self.rows[out]].astype(np.int64), counted[out]

    def with_fits(self, fits: GlmFits) -> LeftOut:
        """Return the same folds of the same rows with other full-data fits.

        Parameters
        ----------
        fits : GlmFits
            Fits to all rows.
        """
        folds = copy(self)
        folds.fits = fits
        return folds

    def parts(self) -> Iterator[tuple[slice, LeftOut]]:
        """Yield groups of folds that are handled together, each with its slice of folds."""
        for begin in range(0, self.k, FOLDS_AT_ONCE):
            block, ends = copy(self), self.ends[begin : begin + FOLDS_AT_ONCE + 1]
            rows = slice(int(ends[0]), int(ends[-1]))
            block.rows, block.counted, block.ends = self.rows[rows], self.counted[rows], ends - ends[0]
            block.k = len(ends) - 1
            yield slice(begin, begin + block.k), block

    def sum_by_fold(self, losses: FloatArray) -> FloatArray:
        """Return (K,) sums over the scored rows of each fold, given losses of the held-out rows, fold by fold."""
        weighted = self.counted * losses
        if self.k == len(weighted) and np.all(np.diff(self.ends) == 1):
            return weighted
        fold = np.repeat(np.arange(self.k), np.diff(self.ends))
        return np.asarray(np.bincount(fold, weighted, minlength=self.k), dtype=np.float64)

    def sum_held_out_rows(self, losses: FloatArray) -> FloatArray:
        """Return (K,) sums over the scored rows of each fold, given losses of all rows that have a weight."""
        return self.sum_by_fold(losses[self.rows])

    def evaluate_support(self, mask: BoolArray, point: FloatArray) -> SupportLeftOut:
        """Return the intervals of a support in every fold, after one step.

        Parameters
        ----------
        mask, point : (p,) bool array and (first + p,) array
            Support and its fit to all rows.
        """
        return SupportLeftOut(self, mask, point).restrict_to_folds(self)

    def evaluate_in_parts(self, mask: BoolArray, point: FloatArray) -> Iterator[tuple[slice, SupportLeftOut]]:
        """Yield the intervals of a support for one group of folds after another, which limits memory.

        Each item is the slice of the folds and their intervals.

        Parameters
        ----------
        mask, point : (p,) bool array and (first + p,) array
            Support and its fit to all rows.
        """
        whole = SupportLeftOut(self, mask, point)
        for at, block in self.parts():
            yield at, whole.restrict_to_folds(block)

    def values(
        self, mask: BoolArray, point: FloatArray, is_expired: Callable[[], bool]
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """Return (K,) upper bounds on the minimum training objectives, and approximate held-out losses.

        Parameters
        ----------
        mask, point : (p,) bool array and (first + p,) array
            Support and its fit to all rows.
        is_expired : callable
            Function that returns True when time is over; the remaining values are inf and nan.
        """
        values, losses = np.full(self.k, np.inf), np.full(self.k, np.nan)
        for at, block in () if is_expired() else self.evaluate_in_parts(mask, point):
            few = self.k * block.size <= FEW
            block.settle(np.flatnonzero(few | ~(block.values[:, 1] < np.inf)), ROUGH_MARGIN_ERROR, is_expired)
            values[at], losses[at] = block.values[:, 1], block.held_out().middle
        return values, losses

    def held_out(
        self, mask: BoolArray, point: FloatArray, folds: IntArray, is_expired: Callable[[], bool] = is_never_expired,
        ended: Callable[[], bool] = is_never_expired,
    ) -> FloatArray:  # fmt: skip
        """Return the (F,) held-out losses of some folds at the exact fits; nan if the steps do not reach a fit.

        Parameters
        ----------
        mask, point : (p,) bool array and (first + p,) array
            Support and its fit to all rows.
        folds : (F,) int array
            Indices of the folds.
        is_expired : callable
            Function that returns True when time is over. Remaining folds then get a second step without proof, and only
            a few for which this is not enough are fitted. Folds with the largest errors come first.
        ended : callable
            Function that returns True to skip these few fits, too: with separable classes and a ridge of nearly zero,
            one fit takes hundreds of steps.
        """
        losses, fitted = np.full(len(folds), np.nan), 0
        for at, here in self.evaluate_in_parts(mask, point):
            settled, errors = SETTLED * here.fine, MARGINS_OFF * here.fine
            inside = (at.start <= folds) & (folds < at.stop)
            some = folds[inside] - at.start
            off = here.values[some, 2]
            here.settle(some[np.argsort(-off, kind="stable")][: np.count_nonzero(off > settled)], settled, is_expired)
            near = here.second_steps(here.values[:, 2] > errors)
            far = some[(here.values[some, 2] > errors) & ~near[some]]
            far = far[: max(FEW // here.size - fitted, 0)]
            here.settle(far, settled, ended)
            fitted += len(far)
            losses[inside] = np.where((here.values[:, 2] <= errors) | near, here.held_out().middle, np.nan)[some]
        return losses


def _third_derivatives(loss: RowLoss, margins: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Return weighted third derivatives of losses, to about eight digits, from differences of curvatures."""
    near = [loss.curvatures(margins + side * APART, y, weights) for side in (1.0, -1.0)]
    return np.asarray((near[0] - near[1]) / (2.0 * APART))


class SupportLeftOut:
    """A support and its full-data fit; after `within`, also its intervals in some folds.

    Parameters
    ----------
    folds : LeftOut
        Folds with fits to all rows.
    mask, point : (p,) bool array and (first + p,) array
        Support and its fit to all rows.

    Attributes
    ----------
    values : (K, 3) array
        Bounds on the minimum objective on the training rows of each fold (0 and inf if unknown), and a bound on the
        errors of the estimated margins.
    margins : (m, 3) array
        Bounds and estimates of the margins of held-out rows, fold by fold; -inf, inf and nan if unknown.
    one_step : (K,) bool array
        True for folds whose margins are those after one step.
    size : int
        Number of values of the support in all rows.
    fine : float
        Factor on the accuracy of margins that makes losses equally accurate. For counts of 10,000, slopes are a hundred
        times the losses; for two classes, slopes are smaller than the losses.
    """

    values: FloatArray
    margins: FloatArray
    one_step: BoolArray

    def __init__(self, folds: LeftOut, mask: BoolArray, point: FloatArray) -> None:
        rows = folds.fits.rows
        places, penalty = merge_copies(rows, mask)
        self.folds, self.size = folds, max(len(places), 1) * rows.W.shape[1]
        self._whole = rows_out.prepare_row_removal(Columns(rows.W, places), rows.response, penalty, point[places])
        lost, slopes = float(folds.fits.problem.v @ self._whole.losses), float(np.abs(self._whole.falls).sum())
        self.fine = max(min(lost / slopes, 1.0), FINEST) if slopes > 0.0 else 1.0
        self._tensor: list[FloatArray] = []  # the (k, k, k) tensor of third derivatives, computed at the first request

    def restrict_to_folds(self, folds: LeftOut) -> SupportLeftOut:
        """Return the same support in some of the folds, after one step.

        Parameters
        ----------
        folds : LeftOut
            Folds for which intervals are computed.
        """
        here = copy(self)
        here.folds, here.one_step = folds, np.ones(folds.k, dtype=np.bool_)
        here.margins, here.values = np.empty((len(folds.rows), 3)), np.empty((folds.k, 3))
        rows_out.bound_held_out_fits(here._whole, folds.rows, folds.ends, here.margins, here.values)
        return here

    def settle(self, which: IntArray, enough: float, is_expired: Callable[[], bool] = is_never_expired) -> None:
        """Narrow the intervals of some folds until their margins have a given accuracy, if steps can reach it.

        Parameters
        ----------
        which : (f,) int array
            Indices of the folds.
        enough : float
            Requested accuracy of margins.
        is_expired : callable
            Function that returns True when time is over; the remaining folds stay unchanged.
        """
        step = max(BLOCK_NUMBERS // self.size, 1)
        for begin in range(0, len(which), step):
            if is_expired():
                break
            here = np.ascontiguousarray(which[begin : begin + step], dtype=np.int64)
            rows_out.refine_held_out_fits(
                self._whole, self.folds.rows, self.folds.ends, here, enough, self.margins, self.values
            )  # fmt: skip
            self.one_step[here] = False

    def refine_folds(self, which: IntArray, enough: float) -> IntArray:
        """Move the margins of many folds by a second step; return the folds for which this is not accurate enough.

        Parameters
        ----------
        which : (f,) int array
            Indices of the folds.
        enough : float
            Maximum distance of margins from the bounds of their intervals.
        """
        if len(which) * self.size <= FEW:
            return which
        wanted = np.zeros(self.folds.k, dtype=np.bool_)
        wanted[which] = True
        done = self.second_steps(wanted) & (self.values[:, 2] <= enough)
        return which[~done[which]]

    def second_steps(self, wanted: BoolArray) -> BoolArray:
        """Move the margins of single-row folds by a second step; return the (K,) mask of folds that need no more.

        Folds that had further steps are not moved, because these steps are more accurate.

        With `t = L^{-1} z` and third derivatives l, the gradient after a step d is half of `sum_j l_j (t_j'd)^2 t_j`,
        without the term of the held-out row. One tensor of all rows costs O(n k^3), and each fold O(k^3). The result is
        not a bound.

        Parameters
        ----------
        wanted : (K,) bool array
            True for folds to be moved.
        """
        folds = self.folds
        near, is_known = np.zeros(folds.k, dtype=np.bool_), np.isfinite(self.values[:, 2])
        single = np.flatnonzero(wanted & is_known & self.one_step & (np.diff(folds.ends) == 1))
        if not len(single):
            return near
        for begin in range(0, len(single), CACHED_ROWS):
            self._second_step(single[begin : begin + CACHED_ROWS], near)
        return near

    def _third(self, rows: slice | IntArray) -> FloatArray:
        """Return weighted third derivatives of the losses of some rows at the full-data fit."""
        problem = self.folds.fits.problem
        return _third_derivatives(problem.loss, self._whole.margins[rows], problem.y[rows], problem.v[rows])

    def _transform_rows(self, rows: slice | IntArray) -> FloatArray:
        """Return (k, m) rows, multiplied by their signs, in the coordinates of the Hessian's factor."""
        whole, signs = self._whole, self.folds.fits.problem.signs[rows]
        return np.asarray(whole.inverse @ (whole.Z.W[:, rows][whole.Z.places] * signs))

    def _third_moments(self) -> FloatArray:
        """Return the tensor of third derivatives of all rows, computed once."""
        if not self._tensor:
            whole, n = self._whole, len(self._whole.margins)
            k = len(whole.inverse)
            tensor = np.zeros((k, k, k))
            for begin in range(0, n, CACHED_ROWS):
                here = slice(begin, begin + CACHED_ROWS)
                t, third = self._transform_rows(here), self._third(here)
                for a in range(k):
                    tensor[a] += (third * t[a] * t) @ t.T
            self._tensor.append(tensor)
        return self._tensor[0]

    @np.errstate(over="ignore", invalid="ignore")  # overflow: losses are nearly zero, the step is rejected
    def _second_step(self, single: IntArray, near: BoolArray) -> None:
        """Take the second steps of some single-row folds, and mark the folds for which this is enough."""
        folds, whole, tensor = self.folds, self._whole, self._third_moments()
        at = folds.ends[:-1][single]
        rows = folds.rows[at]
        out, own = self._transform_rows(rows), self._third(rows)
        along = sum((out[a] * ((tensor[a] @ out) * out).sum(axis=0) for a in range(len(out))), np.zeros(len(single)))
        square = (out**2).sum(axis=0)
        stays = 1.0 - whole.curved[rows] * square
        step = -whole.falls[rows] / stays
        second = -0.5 * step**2 * (along - own * square**3) / stays
        enough = self.values[single, 2] * np.abs(step) * square <= ENOUGH_FOR_TWO * self.fine
        near[single], at = enough, at[enough]
        moved = (whole.margins[rows] + step * square + second)[enough]
        self.margins[at, 2] = np.clip(moved, self.margins[at, 0], self.margins[at, 1])

    def held_out(self) -> HeldOutIntervals:
        """Return bounds and estimates of the held-out loss of every fold."""
        most, losses = np.diff(self.folds.ends).max(initial=0), np.empty((3, len(self.folds.rows)))
        for begin in range(0, len(self.folds.rows), CACHED_ROWS):
            here = slice(begin, begin + CACHED_ROWS)
            losses[:, here] = np.where(self.folds.counted[here] > 0.0, self._losses(here), 0.0)
        room = LOSS_ROUNDING + most * ROUNDING
        lower, upper, near = (self.folds.sum_by_fold(of_rows) for of_rows in losses)
        return HeldOutIntervals(lower * (1.0 - room), upper * (1.0 + room), near)

    def _losses(self, here: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return bounds and estimates of the losses of some held-out rows."""
        problem, rows, (first, last, middle) = self.folds.fits.problem, self.folds.rows[here], self.margins[here].T
        signs, y, is_known = problem.signs[rows], problem.y[rows], np.isfinite(first) & np.isfinite(last)
        ends = np.sort(np.where(is_known, signs * np.array([first, last]), 0.0), axis=0)
        low, high = problem.loss.bound_losses(ends[0], ends[1], y)
        with np.errstate(invalid="ignore"):
            return np.where(is_known, low, 0.0), np.where(is_known, high, np.inf), problem.loss.losses(middle, y)
