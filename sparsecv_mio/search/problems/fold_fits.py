"""One fold with squared-error loss: ridge fits of supports with their held-out errors, and bounds on held-out losses.

Fits are computed from the moments (X'X, X'y and y'y) of the training rows, or from the rows.

Suppose that the known support of a size is not proved optimal. Let f be the training objective of the fold, and u the
minimum of f on this support. For every b with `f(b) <= u`, two bounds on the held-out loss of b hold. The first bound
comes from the ridge ball (:mod:`sparsecv_mio.bounds.closed_form`) and is valid for any support of b. The second bound
comes from the relaxations of :mod:`sparsecv_mio.bounds.fold` and is valid for supports among the columns that remain
after screening with u. The relaxations are prepared once for all sizes of a gamma. If screening leaves one support for
a size, the size is solved without a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import RidgeBall
from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows, is_wide
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.kernels import held_out_sums as kernel
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import TrainingMoments, row_moments
from sparsecv_mio.search.problems.protocol import Enclosed, Fits, IsExpired
from sparsecv_mio.search.steps import SubproblemBounds
from sparsecv_mio.thresholds import CUBIC_COLUMNS, FEW_FOLDS, RELAXED_COLUMNS
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments
from sparsecv_mio.trees.subsets import SWAP_ROUNDS
from sparsecv_mio.units import ACCURATE_RTOL, MOMENTS_RTOL, ROUNDING, WORST_ROUNDING, Interval
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
        bounds = (problem.own or self.data).coefficient_bounds
        made, scores = fit_from_moments(problem, supports, bounds), kernel.new_scores(len(supports))
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
        low, low_loss = (
            np.subtract(center, error, out=np.zeros(len(center)), where=np.isfinite(center))  # 0 where a fit overflows
            for center, error in ((value, value_error), (loss, loss_error))
        )
        return Fits(supports, low, value + value_error, low_loss, loss + loss_error, loss, value, is_accurate)


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


def enclose_held_out(
    here: FoldData, sizes: Sequence[int], objective_upper: FloatArray, supports: Sequence[IntArray], relaxes: bool
) -> Enclosed:
    """Bound the held-out sums of squares of some sizes of a fold, and their training objectives from below.

    Parameters
    ----------
    here : FoldData
        Fold at a gamma.
    sizes : sequence of int
        Sizes to bound.
    objective_upper : (S,) array
        Upper bounds on the objectives of all optima, tied ones included; inf where none is known.
    supports : sequence of int arrays
        Best known supports, in columns of the problem.
    relaxes : bool
        False to use the ridge ball alone, O(q^3 + rows q^2) in all; True to add relaxations if rows and columns are few
        enough.
    """
    problem, rows = here.problem, here.held_out
    intervals, objective_lower = [Interval(0.0, np.inf)] * len(sizes), np.zeros(len(sizes))
    if problem.q <= CUBIC_COLUMNS:
        ball = (
            RidgeBall.from_moments(problem, rows.Q, rows.c, rows.yy, rows.unit, rows.level, rows.count)
            if rows.by_moments
            else RidgeBall.from_rows(problem, rows.V, rows.r, rows.unit, rows.level)
        )
        if ball is not None:
            intervals = [ball.held_out(float(upper)) for upper in objective_upper]
            objective_lower[:] = ball.least
    finite = np.flatnonzero(np.isfinite(objective_upper)).tolist()
    if relaxes and finite and not rows.by_moments and problem.q <= RELAXED_COLUMNS:
        scored = rows.folds.scored_rows(rows.fold)
        fold = FoldBounds(problem, *(problem.own or rows.data).rows(scored), root=rows.data.root_of(scored))
        for at in finite:
            fold.improve(sizes[at], supports[at], float(objective_upper[at]))
        slack = 1e-12 * float(fold.u @ fold.u) + 1e-300
        for at, cell in zip(finite, fold.cells([sizes[at] for at in finite]), strict=True):
            intervals[at] = intervals[at].tighten(cell.interval, slack + 1e-9 * intervals[at].upper)
            objective_lower[at] = max(objective_lower[at], cell.objective_lower)
    lower, upper = (np.array([getattr(interval, name) for interval in intervals]) for name in ("lower", "upper"))
    return Enclosed(lower, upper, objective_lower)


def relax_sizes(
    here: FoldData, sizes: Sequence[int], supports: Sequence[IntArray], near: FloatArray | None,
    is_expired: IsExpired,
) -> tuple[FloatArray, list[IntArray | None]]:  # fmt: skip
    """Return the numbers of the relaxations of some sizes of a fold, a row each, and the incumbents.

    Parameters
    ----------
    here : FoldData
        Fold at a gamma.
    sizes : sequence of int
        Sizes to relax.
    supports : sequence of int arrays
        Supports to try as incumbents.
    near : (m,) array or None
        Diagonal of the relaxation of the full data, which saves time.
    is_expired : callable
        Function that returns True once the search has to end.
    """
    rows = _relaxed_rows(here, near, is_expired)
    rows.try_supports(supports)
    rows.search(sizes, swap_rounds=SWAP_ROUNDS if here.held_out.folds.k <= FEW_FOLDS else 0)
    return rows.numbers(sizes), [rows.incumbent(size) for size in sizes]


def _relaxed_rows(here: FoldData, near: FloatArray | None, is_expired: IsExpired) -> FoldBounds | WideFold:
    """Return the relaxations of a fold: by its Gram matrix, or by its rows if there are very many columns."""
    data, folds, problem = here.held_out.data, here.held_out.folds, here.problem
    scored = folds.scored_rows(here.fold)
    if is_wide(data):
        return WideFold(WideRows.from_data(data, folds.train_rows(here.fold), scored, 2.0 * problem.lam), is_expired)
    return FoldBounds(problem, *(problem.own or data).rows(scored), near, data.root_of(scored))


def narrow_by_relaxations(
    bounds: SubproblemBounds, fits: Fits, ball: Enclosed, numbers: FloatArray
) -> SubproblemBounds:  # fmt: skip
    """Return the bounds of one fold, narrowed by its relaxations; a single remaining support is optimal.

    Parameters
    ----------
    bounds : SubproblemBounds
        Fits of the incumbents, without bounds on held-out losses.
    fits : Fits
        Fits of the incumbents.
    ball : Enclosed
        Bounds by the ridge ball.
    numbers : (T', 8) array
        Numbers of the relaxations, as `relax_sizes` returns them.
    """
    objective_lower, lower, upper, n_open = numbers[:, 0], numbers[:, 2], numbers[:, 3], numbers[:, 7]
    is_solved = (n_open == 0) & fits.is_accurate & np.isfinite(bounds.objective_upper[:, 0])
    lower, upper = np.maximum(lower, ball.lower), np.minimum(upper, ball.upper)
    solved = is_solved[:, None]
    return replace(
        bounds,
        objective_lower=np.maximum(objective_lower, ball.objective_lower)[:, None],
        lower=np.where(is_solved, np.maximum(fits.held_out_lower, 0.0), lower)[:, None],
        upper=np.where(is_solved, fits.held_out_upper, upper)[:, None],
        is_solved=solved,
        is_final=solved,
    )
