"""Ridge fits of supports on the training rows of one fold, from moments or rows, and their held-out errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.kernels import held_out_sums as kernel
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import TrainingMoments, row_moments
from sparsecv_mio.search.problems.protocol import Fits
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments
from sparsecv_mio.units import ACCURATE_RTOL, MOMENTS_RTOL, ROUNDING, WORST_ROUNDING
from sparsecv_mio.words import Intercept

MOMENTS_FACTOR = 4  # folds of more than this number of rows per column are scored from their moments
MOST_IN_FRACTIONS = 200  # supports of a list fitted in fractions: at most a second, in which no limit is checked


class HeldOutFold:
    """The held-out rows of one fold, gathered once for every gamma and tau.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds of the data.
    fold : int
        Index of the fold.
    training : SparseProblem
        Training rows, at any gamma; their means are subtracted from the held-out rows.

    Attributes
    ----------
    count : int
        Number of rows.
    unit : float
        Relative rounding of the training moments.
    level : (q + 1,) array
        Sizes of the means of the columns and, last, of the response, from which rows are centred; for weighted rows,
        times the largest root of a weight.
    weight : float
        Total weight of the rows: `count` if each row counts once.
    by_moments : bool
        True if there are so many rows that only their moments about the training means are stored: `Q` (q, q), `c` (q,)
        and `yy`. Otherwise `V` (count, q) and `r` (count,) are the rows themselves, less these means.
    """

    def __init__(self, data: StandardData, folds: FoldPlan, fold: int, training: SparseProblem) -> None:
        self.data, self.folds, self.fold = data, folds, fold
        rows = folds.scored_rows(fold)
        self.unit = training.rounding
        self.count, self.weight = len(rows), data.dataset.weight_of(rows)
        self.level = np.zeros(data.q + 1)
        if data.intercept is Intercept.FOLD:
            size = np.sqrt(np.append(np.diag(training.Q), training.yy) / training.total)
            self.level = size + np.abs(np.append(training.v_mean, training.r_mean))
            root = data.root_of(rows)
            if root is not None:
                self.level *= root.max()
        self.by_moments = len(rows) > MOMENTS_FACTOR * data.q + 64
        if self.by_moments:
            test = row_moments(training.own or data, rows)
            about = np.append(training.v_mean, training.r_mean)
            step = test.mean - about
            second = test.scatter + test.total * np.outer(step, step)
            self.Q = np.ascontiguousarray(second[:-1, :-1])
            self.c = second[:-1, -1].copy()
            self.yy = float(second[-1, -1])
        else:
            V, r = training.centre_rows(data, rows)
            self.V, self.r = np.ascontiguousarray(V), np.asarray(r, dtype=float)

    @property
    def off_by_mean(self) -> float:
        """Bound on the change of the residuals of all rows together by the mean of the target: 4 ulps of its size.

        The bound is negligible compared with a target that varies in training. If the training target is constant, it
        may be as large as everything that moments of rows contain.
        """
        return float(4.0 * ROUNDING * np.sqrt(self.count) * self.level[-1])

    def moments(self) -> tuple[FloatArray, FloatArray, float]:
        """Return Q, c and yy of the rows about the training means."""
        if self.by_moments:
            return self.Q, self.c, self.yy
        return self.V.T @ self.V, self.V.T @ self.r, float(self.r @ self.r)

    def fit(self, problem: SparseProblem, supports: Sequence[IntArray]) -> Fits:
        """Fit each support on the training rows and score it on the held-out rows.

        The fit uses moments first, with error bounds. If these are too wide, it uses the rows by QR. O(s^3 + rows s) a
        support.

        Parameters
        ----------
        problem : SparseProblem
            Training rows at the gamma in question.
        supports : sequence of k int arrays
            Supports to fit.
        """
        made, scores = fit_from_moments(problem, supports), kernel.new_scores(len(supports))
        if self.by_moments:
            moments = kernel.HeldOutMoments(self.Q, self.c, self.yy, self.count)
            kernel.held_out_moments(moments, self.level, made.support_rows, self.unit, made.fits, scores)
        else:
            kernel.held_out_rows(self.V, self.r, self.level, made.support_rows, made.fits, scores)
        value, value_error, loss, loss_error = made.value, made.value_error, scores.error, scores.rounding
        is_finite = np.isfinite(value) & np.isfinite(loss)  # of a support that moments cannot fit, both errors are inf
        is_exact = is_finite & (value_error <= MOMENTS_RTOL * value) & (loss_error <= ACCURATE_RTOL * loss)
        is_near = is_finite & (loss_error <= 1e-7 * loss) & (value_error <= 1e-9 * value)
        for count, i in enumerate(np.flatnonzero(~is_exact).tolist()):
            if self.by_moments and is_near[i]:
                continue
            support, gamma = np.asarray(supports[i], dtype=np.int64), 2.0 * problem.lam
            fit = refit_rows(self.data, self.folds.train_rows(self.fold), support, gamma, count < MOST_IN_FRACTIONS)
            if fit.objective_error < value_error[i]:
                value[i], value_error[i] = fit.objective, fit.objective_error
            held_out, rounding = fit.held_out(self.data, self.folds.scored_rows(self.fold))
            if not loss_error[i] <= rounding:
                loss[i], loss_error[i] = held_out, rounding
        negligible = ACCURATE_RTOL * problem.yy / problem.total * self.weight
        is_accurate = np.isfinite(loss) & (loss_error <= WORST_ROUNDING * loss + negligible)
        return Fits(
            supports, value - value_error, value + value_error, loss - loss_error, loss + loss_error, loss, value,
            is_accurate,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class FoldData:
    """One fold at one gamma: the problem on its training rows, and its held-out rows.

    Attributes
    ----------
    problem : SparseProblem
        Training rows, in standard coordinates.
    held_out : HeldOutFold
        Held-out rows.
    """

    problem: SparseProblem
    held_out: HeldOutFold

    @classmethod
    def from_moments(cls, data: StandardData, folds: FoldPlan, fold: int, moments: TrainingMoments) -> FoldData:
        """Return a fold, at gamma 1, from its training moments.

        Parameters
        ----------
        data : StandardData
            Data in standard coordinates.
        folds : FoldPlan
            Folds of the data.
        fold : int
            Index of the fold.
        moments : TrainingMoments
            Moments of the training rows of `data`.

        Returns
        -------
        FoldData
            Fold at gamma 1.
        """
        problem = moments.problem(data, 1.0)
        return cls(problem, HeldOutFold(data, folds, fold, problem))

    @property
    def fold(self) -> int:
        """Index of the fold."""
        return self.held_out.fold

    def with_gamma(self, gamma: float) -> FoldData:
        """Return the same fold at another gamma, with shared arrays."""
        return replace(self, problem=self.problem.with_gamma(gamma))

    def keeping(self, kept: dict[str | float, Any]) -> FoldData:
        """Return the same fold with stored results for its training rows."""
        return replace(self, problem=replace(self.problem, kept=kept))

    def fit(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports on the training rows and score them on the held-out rows.

        Rounding does not make a held-out loss inaccurate if the loss is negligible compared with that of the null
        model.
        """
        return self.held_out.fit(self.problem, supports)
