"""A support in every fold at once, from its fit on all rows: intervals of objectives and of held-out losses.

A step of Newton's method without the rows of a fold begins at the fit on all rows, with the Hessian there less what
these rows add; a ball about the point where it ends holds the fold's fit (`kernels/rows_out`). For folds of few rows
that is O(tau^2) each, whatever the number of rows; where an interval is too wide, steps with gradients of their own
follow, O(n tau) each (docs/theory/glm.md, section 9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BLOCK_NUMBERS, CACHED_ROWS, BoolArray, FloatArray, IntArray
from sparsecv_mio.data.fold_plan import RowLists
from sparsecv_mio.kernels import rows_out
from sparsecv_mio.kernels.glm_newton import Columns, merged
from sparsecv_mio.problem.row_losses import RowLoss
from sparsecv_mio.trees.glm_fits import GlmFits
from sparsecv_mio.trees.subsets import never
from sparsecv_mio.units import LOSS_ROUNDING, MARGINS_OFF

SETTLED = 1e-9  # of a margin, where held-out losses are to be those of the fits
FINEST = 1e-2  # of these digits, where slopes are far larger than losses
NEARLY = 1e-4  # the same, where objectives are to be near the least ones
FOLDS_AT_ONCE = 1 << 14  # folds whose intervals are had together
FEW = 1 << 26  # numbers of a step in every fold that are few enough for all folds to have more than one
ENOUGH_FOR_TWO = 1e-7  # off after one step, times the move: two steps are off a fifth of it at most (4,000 draws)
APART = 1e-4  # of a margin, between curvatures


class HeldOut(NamedTuple):
    """(K,) bounds of held-out losses at the fits of folds, and what they are nearly; 0, inf and nan where unknown."""

    lower: FloatArray
    upper: FloatArray
    middle: FloatArray


class LeftOut:
    """Folds of some rows.

    Parameters
    ----------
    fits : GlmFits
        Of all rows.
    left_out : RowLists
        Rows that each fold leaves out; those of weight 0 count too.
    scored : sequence of int arrays or None
        Those of them that it scores; None for all.
    weights : (n,) array
    """

    def __init__(
        self, fits: GlmFits, left_out: RowLists, scored: Sequence[IntArray] | None, weights: FloatArray
    ) -> None:
        self.fits, self.k = fits, len(left_out.starts) - 1
        # copies: the lists of a plan may be read-only, and for those no kernel is compiled ahead
        self.rows, self.ends = left_out.rows.copy(), left_out.starts.copy()
        self.counted: FloatArray = np.broadcast_to(1.0, len(self.rows))
        if scored is None and np.all(weights == 1.0):
            return  # nothing beside the lists of rows, which may be as many as there are rows
        kept, counted = weights > 0.0, weights[self.rows]  # fits have no rows of weight 0
        for at, of in enumerate(scored or ()):
            here = slice(left_out.starts[at], left_out.starts[at + 1])
            counted[here] = np.where(np.isin(self.rows[here], of), counted[here], 0.0)
        out = kept[self.rows]
        self.ends = np.concatenate([[0], np.cumsum(out)])[left_out.starts].astype(np.int64)
        self.rows, self.counted = (np.cumsum(kept) - 1)[self.rows[out]].astype(np.int64), counted[out]

    def with_fits(self, fits: GlmFits) -> LeftOut:
        """Return the same folds of the same rows with other fits of them all.

        Parameters
        ----------
        fits : GlmFits
        """
        other = copy(self)
        other.fits = fits
        return other

    def parts(self) -> Iterator[tuple[slice, LeftOut]]:
        """Yield folds that are looked at together: which they are, and they."""
        for begin in range(0, self.k, FOLDS_AT_ONCE):
            part, ends = copy(self), self.ends[begin : begin + FOLDS_AT_ONCE + 1]
            rows = slice(int(ends[0]), int(ends[-1]))
            part.rows, part.counted, part.ends = self.rows[rows], self.counted[rows], ends - ends[0]
            part.k = len(ends) - 1
            yield slice(begin, begin + part.k), part

    def by_fold(self, losses: FloatArray) -> FloatArray:
        """(K,) sums of losses of the rows left out, fold by fold, over those that are scored."""
        weighted = self.counted * losses
        if self.k == len(weighted) and np.all(np.diff(self.ends) == 1):
            return weighted
        fold = np.repeat(np.arange(self.k), np.diff(self.ends))
        return np.asarray(np.bincount(fold, weighted, minlength=self.k), dtype=np.float64)

    def summed(self, losses: FloatArray) -> FloatArray:
        """(K,) the same of losses of all rows with a weight."""
        return self.by_fold(losses[self.rows])

    def of(self, mask: BoolArray, point: FloatArray) -> SupportLeftOut:
        """Return a support in every fold.

        Parameters
        ----------
        mask, point : (p,) bool array and (first + p,) array
            A support, and its fit on all rows.
        """
        return SupportLeftOut(self, mask, point).within(self)

    def by_parts(self, mask: BoolArray, point: FloatArray) -> Iterator[tuple[slice, SupportLeftOut]]:
        """Yield the same in folds that are looked at together, and which they are: of very many less is there at once.

        Parameters
        ----------
        mask, point
            As for `of`.
        """
        whole = SupportLeftOut(self, mask, point)
        for at, part in self.parts():
            yield at, whole.within(part)

    def values(
        self, mask: BoolArray, point: FloatArray, expired: Callable[[], bool]
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """Return (K,) upper bounds of least objectives in training sets, and held-out losses at nearly the fits.

        Parameters
        ----------
        mask, point : (p,) bool array and (first + p,) array
            A support, and its fit on all rows.
        expired : callable
            True leaves inf and nan.
        """
        values, held = np.full(self.k, np.inf), np.full(self.k, np.nan)
        for at, part in () if expired() else self.by_parts(mask, point):
            few = self.k * part.size <= FEW
            part.settle(np.flatnonzero(few | ~(part.values[:, 1] < np.inf)), NEARLY, expired)
            values[at], held[at] = part.values[:, 1], part.held_out().middle
        return values, held

    def held_out(
        self, mask: BoolArray, point: FloatArray, folds: IntArray, expired: Callable[[], bool] = never,
        ended: Callable[[], bool] = never,
    ) -> FloatArray:  # fmt: skip
        """Return (F,) held-out losses of some folds at the fits themselves; nan where the steps do not get there.

        Parameters
        ----------
        mask, point : (p,) bool array and (first + p,) array
            A support, and its fit on all rows.
        folds : (F,) int array
        expired : callable
            True leaves the others at a second step that is not proved, and fits but a few that this is not enough for;
            the folds that are off the most come first.
        ended : callable
            True leaves these few too: where classes are apart and the ridge is next to nothing one takes hundreds of
            steps.
        """
        held, fitted = np.full(len(folds), np.nan), 0
        for at, here in self.by_parts(mask, point):
            settled, known = SETTLED * here.fine, MARGINS_OFF * here.fine
            inside = (at.start <= folds) & (folds < at.stop)
            some = folds[inside] - at.start
            off = here.values[some, 2]
            here.settle(some[np.argsort(-off, kind="stable")][: np.count_nonzero(off > settled)], settled, expired)
            near = here.second_steps(here.values[:, 2] > known)
            far = some[(here.values[some, 2] > known) & ~near[some]]
            far = far[: max(FEW // here.size - fitted, 0)]
            here.settle(far, settled, ended)
            fitted += len(far)
            held[inside] = np.where((here.values[:, 2] <= known) | near, here.held_out().middle, np.nan)[some]
        return held


def _third_derivatives(loss: RowLoss, margins: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Return those of losses times weights, by differences of curvatures: to some eight digits."""
    near = [loss.curvatures(margins + side * APART, y, weights) for side in (1.0, -1.0)]
    return np.asarray((near[0] - near[1]) / (2.0 * APART))


class SupportLeftOut:
    """A support, and once it is `within` some folds what is known of it there.

    Parameters
    ----------
    folds : LeftOut
        Of all rows.
    mask, point : (p,) bool array and (first + p,) array
        The support, and its fit on all rows.

    Attributes
    ----------
    values : (K, 3) array
        Bounds of the least objective of each fold's training rows, 0 and inf where nothing is known; and how far
        margins may be off what they nearly are.
    margins : (m, 3) array
        Ends of those of the rows left out, fold by fold, and what they nearly are; -inf, inf and nan where unknown.
    one_step : (K,) bool array
        Whether a fold's margins are those after one step.
    size : int
        Numbers of a support in all rows.
    fine : float
        What the digits of margins are multiplied by, so that losses have as many: slopes of counts of 10,000 are a
        hundred times their losses, those of two classes are smaller than these.
    """

    values: FloatArray
    margins: FloatArray
    one_step: BoolArray

    def __init__(self, folds: LeftOut, mask: BoolArray, point: FloatArray) -> None:
        rows = folds.fits.rows
        places, penalty = merged(rows, mask)
        self.folds, self.size = folds, max(len(places), 1) * rows.W.shape[1]
        self._whole = rows_out.about_all_rows(Columns(rows.W, places), rows.response, penalty, point[places])
        lost, slopes = float(folds.fits.problem.v @ self._whole.losses), float(np.abs(self._whole.falls).sum())
        self.fine = max(min(lost / slopes, 1.0), FINEST) if slopes > 0.0 else 1.0
        self._tensor: list[FloatArray] = []  # (k, k, k) of third derivatives and rows, once it is asked for

    def within(self, folds: LeftOut) -> SupportLeftOut:
        """Return the same support in some of the folds, after one step.

        Parameters
        ----------
        folds : LeftOut
        """
        here = copy(self)
        here.folds, here.one_step = folds, np.ones(folds.k, dtype=np.bool_)
        here.margins, here.values = np.empty((len(folds.rows), 3)), np.empty((folds.k, 3))
        rows_out.left_out(here._whole, folds.rows, folds.ends, here.margins, here.values)
        return here

    def settle(self, which: IntArray, enough: float, expired: Callable[[], bool] = never) -> None:
        """Narrow the intervals of some folds, until margins are known to `enough` where that can be had.

        Parameters
        ----------
        which : (f,) int array
        enough : float
        expired : callable
            True leaves the others as they are.
        """
        step = max(BLOCK_NUMBERS // self.size, 1)
        for begin in range(0, len(which), step):
            if expired():
                break
            here = np.ascontiguousarray(which[begin : begin + step], dtype=np.int64)
            rows_out.left_out_again(
                self._whole, self.folds.rows, self.folds.ends, here, enough, self.margins, self.values
            )  # fmt: skip
            self.one_step[here] = False

    def nearly_all(self, which: IntArray, enough: float) -> IntArray:
        """Move margins of many folds to where second steps lead; return those of them that this leaves to be settled.

        Parameters
        ----------
        which : (f,) int array
        enough : float
            How far margins may be from the ends of their intervals.
        """
        if len(which) * self.size <= FEW:
            return which
        wanted = np.zeros(self.folds.k, dtype=np.bool_)
        wanted[which] = True
        done = self.second_steps(wanted) & (self.values[:, 2] <= enough)
        return which[~done[which]]

    def second_steps(self, wanted: BoolArray) -> BoolArray:
        """Move margins of some folds of one row to where a second step leads; returns of which folds that is enough.

        Of folds that had further steps nothing is moved: these lead nearer.

        With `t = L^{-1} z` and third derivatives l, the gradient after a step d is half of `sum_j l_j (t_j'd)^2 t_j`
        but for the row out: one tensor of all rows, O(n k^3), and O(k^3) a fold. Nothing is proved.

        Parameters
        ----------
        wanted : (K,) bool array
        """
        folds = self.folds
        near, known = np.zeros(folds.k, dtype=np.bool_), np.isfinite(self.values[:, 2])
        single = np.flatnonzero(wanted & known & self.one_step & (np.diff(folds.ends) == 1))
        if not len(single):
            return near
        for begin in range(0, len(single), CACHED_ROWS):
            self._second_step(single[begin : begin + CACHED_ROWS], near)
        return near

    def _third(self, rows: slice | IntArray) -> FloatArray:
        """Third derivatives of the losses of some rows at the fit of all, times weights."""
        problem = self.folds.fits.problem
        return _third_derivatives(problem.loss, self._whole.margins[rows], problem.y[rows], problem.v[rows])

    def _turned(self, rows: slice | IntArray) -> FloatArray:
        """(k, m) some rows times their signs, in the coordinates of the Hessian's factor."""
        whole, signs = self._whole, self.folds.fits.problem.signs[rows]
        return np.asarray(whole.inverse @ (whole.Z.W[:, rows][whole.Z.places] * signs))

    def _third_moments(self) -> FloatArray:
        """Return the tensor of all rows; once for all parts."""
        if not self._tensor:
            whole, n = self._whole, len(self._whole.margins)
            k = len(whole.inverse)
            tensor = np.zeros((k, k, k))
            for begin in range(0, n, CACHED_ROWS):
                here = slice(begin, begin + CACHED_ROWS)
                t, third = self._turned(here), self._third(here)
                for a in range(k):
                    tensor[a] += (third * t[a] * t) @ t.T
            self._tensor.append(tensor)
        return self._tensor[0]

    @np.errstate(over="ignore", invalid="ignore")  # where losses are next to nothing, and this is not enough
    def _second_step(self, single: IntArray, near: BoolArray) -> None:
        """Take the second steps of some folds of one row, and mark those of which that is enough."""
        folds, whole, tensor = self.folds, self._whole, self._third_moments()
        at = folds.ends[:-1][single]
        rows = folds.rows[at]
        out, own = self._turned(rows), self._third(rows)
        along = sum((out[a] * ((tensor[a] @ out) * out).sum(axis=0) for a in range(len(out))), np.zeros(len(single)))
        square = (out**2).sum(axis=0)
        stays = 1.0 - whole.curved[rows] * square
        step = -whole.falls[rows] / stays
        second = -0.5 * step**2 * (along - own * square**3) / stays
        enough = self.values[single, 2] * np.abs(step) * square <= ENOUGH_FOR_TWO * self.fine
        near[single], at = enough, at[enough]
        moved = (whole.margins[rows] + step * square + second)[enough]
        self.margins[at, 2] = np.clip(moved, self.margins[at, 0], self.margins[at, 1])

    def held_out(self) -> HeldOut:
        """Return what is known of the held-out loss of every fold."""
        most, losses = np.diff(self.folds.ends).max(initial=0), np.empty((3, len(self.folds.rows)))
        for begin in range(0, len(self.folds.rows), CACHED_ROWS):
            here = slice(begin, begin + CACHED_ROWS)
            losses[:, here] = np.where(self.folds.counted[here] > 0.0, self._losses(here), 0.0)
        room = LOSS_ROUNDING + most * float(np.finfo(float).eps)
        lower, upper, near = (self.folds.by_fold(of_rows) for of_rows in losses)
        return HeldOut(lower * (1.0 - room), upper * (1.0 + room), near)

    def _losses(self, here: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return ends of the losses of some of the rows left out, and what they nearly are."""
        problem, rows, (first, last, middle) = self.folds.fits.problem, self.folds.rows[here], self.margins[here].T
        signs, y, known = problem.signs[rows], problem.y[rows], np.isfinite(first) & np.isfinite(last)
        ends = np.sort(np.where(known, signs * np.array([first, last]), 0.0), axis=0)
        low, high = problem.loss.between(ends[0], ends[1], y)
        with np.errstate(invalid="ignore"):
            return np.where(known, low, 0.0), np.where(known, high, np.inf), problem.loss.losses(middle, y)
