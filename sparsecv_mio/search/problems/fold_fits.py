"""Ridge fits of supports in one fold, from its moments or rows, and their held-out errors."""

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
from sparsecv_mio.trees.support_fits import fit_from_moments
from sparsecv_mio.units import ACCURATE_RTOL, MOMENTS_RTOL, ROUNDING, WORST_ROUNDING
from sparsecv_mio.words import Intercept

MOMENTS_FACTOR = 4  # folds of more than this many rows a column are scored from their moments
MOST_IN_FRACTIONS = 200  # supports of one list that are fitted so, a second at most: no limit is looked at in between


class HeldOutFold:
    """The rows that one fold leaves out, gathered once for every gamma and tau.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    fold : int
    training : SparseProblem
        Training rows, at any gamma: their means are taken off the rows left out.

    Attributes
    ----------
    count : int
        Number of rows.
    unit : float
        Relative rounding of the training moments.
    level : (q + 1,) array
        Size of the means of the columns and, last, of the response, beside which rows are centred; of the row that
        weighs most.
    weight : float
        Of the rows together: `count` where each counts once.
    by_moments : bool
        Whether there are so many rows that only their moments about the training means are kept: `Q` (q, q), `c` (q,)
        and `yy`. Else `V` (count, q) and `r` (count,) are the rows themselves, less these means.
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
            V, r = training.about(data, rows)
            self.V, self.r = np.ascontiguousarray(V), np.asarray(r, dtype=float)

    @property
    def off_by_mean(self) -> float:
        """By how much the mean of the target may move the residuals of all rows together: 4 ulps of its size.

        Nothing beside a target that varies in training; of a constant one it may be all that moments of rows have.
        """
        return float(4.0 * ROUNDING * np.sqrt(self.count) * self.level[-1])

    def moments(self) -> tuple[FloatArray, FloatArray, float]:
        """Return Q, c and yy of the rows about the training means."""
        if self.by_moments:
            return self.Q, self.c, self.yy
        return self.V.T @ self.V, self.V.T @ self.r, float(self.r @ self.r)

    def fit(self, problem: SparseProblem, supports: Sequence[IntArray]) -> Fits:
        """Fit each support on the training rows and score it on the rows left out.

        From moments first, with error bounds; where those are too wide, from the rows by QR. O(s^3 + rows s) a support.

        Parameters
        ----------
        problem : SparseProblem
            Training rows at the gamma in question.
        supports : sequence of k int arrays
        """
        made, scores = fit_from_moments(problem, supports), kernel.new_scores(len(supports))
        if self.by_moments:
            moments = kernel.HeldOutMoments(self.Q, self.c, self.yy, self.count)
            kernel.held_out_moments(moments, self.level, made.listed, self.unit, made.fits, scores)
        else:
            kernel.held_out_rows(self.V, self.r, self.level, made.listed, made.fits, scores)
        value, value_error, loss, loss_error = made.value, made.value_error, scores.error, scores.rounding
        is_exact = (value_error <= MOMENTS_RTOL * value) & (loss_error <= ACCURATE_RTOL * loss)
        is_near = (loss_error <= 1e-7 * loss) & (value_error <= 1e-9 * value)
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
        is_accurate = loss_error <= WORST_ROUNDING * loss + negligible
        return Fits(
            supports, value - value_error, value + value_error, loss - loss_error, loss + loss_error, loss, value,
            is_accurate,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class FoldData:
    """One fold at one gamma: the problem on its training rows and the rows it leaves out.

    Attributes
    ----------
    problem : SparseProblem
        Training rows, in standard coordinates.
    held_out : HeldOutFold
        Rows left out.
    """

    problem: SparseProblem
    held_out: HeldOutFold

    @classmethod
    def of(cls, data: StandardData, folds: FoldPlan, fold: int, moments: TrainingMoments) -> FoldData:
        """Make a fold, at gamma 1, from its training moments.

        Parameters
        ----------
        data : StandardData
        folds : FoldPlan
        fold : int
        moments : TrainingMoments
            Of the training rows of `data`.

        Returns
        -------
        FoldData
        """
        problem = moments.problem(data, 1.0)
        return cls(problem, HeldOutFold(data, folds, fold, problem))

    @property
    def fold(self) -> int:
        """Number of the fold."""
        return self.held_out.fold

    def with_gamma(self, gamma: float) -> FoldData:
        """Return the same fold at another gamma; the arrays are shared."""
        return replace(self, problem=self.problem.with_gamma(gamma))

    def keeping(self, kept: dict[str | float, Any]) -> FoldData:
        """Return the same fold with what was computed of its training rows before."""
        return replace(self, problem=replace(self.problem, kept=kept))

    def fit(self, supports: Sequence[IntArray]) -> Fits:
        """Fit supports on the training rows and score them on the rows left out.

        Where a held-out loss is negligible beside that of the null model, rounding does not make it inaccurate.
        """
        return self.held_out.fit(self.problem, supports)
