"""The rows of every fold, and all rows, as best-subset problems of a smooth convex loss at one gamma.

What a search needs of a fold whose loss is not squared: the best subsets of its training rows and fits of given
supports, with certified objectives and held-out losses (:mod:`sparsecv_mio.trees.glm_subsets`). Columns are those
of the standard numbering, in the units of the file: the trees centre and scale them for themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.arrays import STORE_BYTES, FloatArray, IntArray, beside_ones
from sparsecv_mio.data.fold_plan import FoldPlan, RowLists
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.glm import Centring, GlmProblem
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.problem.responses import response_of, row_loss
from sparsecv_mio.search.cells import ALL_ROWS
from sparsecv_mio.search.context import Context
from sparsecv_mio.thresholds import FEW_FOLDS
from sparsecv_mio.trees.glm_fits import GlmFits
from sparsecv_mio.trees.glm_left_out import LeftOut
from sparsecv_mio.trees.glm_subsets import GlmSubsets
from sparsecv_mio.trees.subsets import never
from sparsecv_mio.units import FROM_ROWS, GAMMA_RANGE

KEPT = STORE_BYTES // 32  # numbers in the rows of few folds whose problems are kept; each is there four times or so


@dataclass(frozen=True, eq=False)
class ScoredFits:
    """Fits of (L,) supports: bounds of training objectives and held-out losses, and the latter as computed."""

    value_lower: FloatArray
    value_upper: FloatArray
    held_lower: FloatArray
    held_upper: FloatArray
    held_out: FloatArray


def rows_in_units(data: StandardData, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return columns in the units of the file, and targets and weights as the loss has them, of some rows.

    Parameters
    ----------
    data : StandardData
    rows : int array
    """
    X = data.dataset.X
    whole = np.array_equal(rows, np.arange(len(X))) and np.array_equal(data.columns, np.arange(X.shape[1]))
    if whole:  # no copy of all there is
        return X, *response_of(data, rows)
    return np.ascontiguousarray(X[np.ix_(rows, data.columns)]), *response_of(data, rows)


def subsets_of(data: StandardData, rows: IntArray) -> GlmSubsets:
    """Return the best-subset problem of some rows at gamma 1.

    Parameters
    ----------
    data : StandardData
    rows : int array
        Training rows.
    """
    n, p = data.dataset.X.shape
    if not (len(data.columns) == p and len(rows) > n // 2 and np.all(np.diff(rows) > 0)):
        return GlmSubsets(problem_of(data, rows), data.forced)
    every = problem_of(
        data, np.arange(n)
    )  # what has no weight is left out as columns are centred: no copy of most rows
    weights = np.zeros(n)
    weights[rows] = every.v[rows]
    return GlmSubsets(replace(every, v=weights), data.forced)


def problem_of(data: StandardData, rows: IntArray, gamma: float = 1.0) -> GlmProblem:
    """Return the problem of some rows.

    Parameters
    ----------
    data : StandardData
    rows : int array
        Training rows.
    gamma : float, optional
    """
    weight = np.clip(data.weight * data.divisor * data.divisor, *GAMMA_RANGE)
    weight[data.adjusting] = 0.0
    X, y, v = rows_in_units(data, rows)
    return GlmProblem(X, y, v, weight, gamma, data.has_intercept, row_loss(data.loss))


def left_out_of(data: StandardData, plan: FoldPlan, fits: GlmFits) -> LeftOut:
    """Return the folds of all rows, whose fits are given.

    Parameters
    ----------
    data : StandardData
    plan : FoldPlan
    fits : GlmFits
        Of all rows, on any columns.
    """
    left = RowLists(plan.order[: plan.scored], plan.starts) if plan.left is None else plan.left
    weights = response_of(data, slice(0, data.n))[1]
    scored = None if plan.left is None else [plan.scored_rows(fold) for fold in range(plan.k)]
    return LeftOut(fits, left, scored, weights)


def fits_in_place(data: StandardData, gamma: float) -> GlmFits | None:
    """Return the fits on all rows where that takes no copy of them; None elsewhere."""
    problem = problem_of(data, np.arange(data.n), gamma)
    if beside_ones(problem.X) is None or not Centring.of(problem.X, problem.v, problem.intercept).changes_nothing:
        return None
    return GlmFits.of(problem, None)


def held_out_at_fits(
    data: StandardData, plan: FoldPlan, support: IntArray, gamma: float, folds: IntArray,
    expired: Callable[[], bool] = never, ended: Callable[[], bool] = never, every: GlmFits | None = None,
) -> FloatArray:  # fmt: skip
    """Return (F,) held-out losses of a support in some folds, from its fit on all rows; nan where that is too far.

    Parameters
    ----------
    data : StandardData
    plan : FoldPlan
    support, folds : int arrays
    gamma : float
    expired : callable
        True leaves second steps from all rows, where these are exact enough, and nan for most others.
    ended : callable
        True leaves nan for all others.
    every : GlmFits, optional
        `fits_in_place` at that gamma: else the columns of the support are copied.
    """
    fits, columns = every, support
    if fits is None:
        problem, columns = problem_of(data, np.arange(data.n), gamma).only(support), np.arange(len(support))
        fits = GlmFits.of(problem, None)
    mask, point = fits.mask(columns.tolist()), fits.fit(columns.tolist())[0]
    return left_out_of(data, plan, fits).held_out(mask, point, folds, expired, ended)


class GlmFolds:
    """Problems and fits by fold and gamma. Safe to use from several threads, each at a fold of its own.

    Parameters
    ----------
    context : Context
    """

    def __init__(self, context: Context) -> None:
        self.context, self.data, self.plan = context, context.data, context.folds
        self.loss = row_loss(self.data.loss)
        self._problems: dict[int, tuple[GlmSubsets, dict[int, GlmSubsets]]] = {}  # of folds: one, and by gamma
        self._folds: LeftOut | None = None

    def at(self, fold: int, g: int) -> GlmSubsets:
        """Return the best-subset problem of a fold at the gamma of index `g`."""
        known = self._problems.get(fold)
        if known is None:
            rows = np.arange(self.data.n) if fold == ALL_ROWS else self.plan.train_rows(fold)
            self._forget()
            known = self._problems[fold] = self._without(fold) or subsets_of(self.data, rows), {}
        of_fold, at_gammas = known
        if g not in at_gammas:
            at_gammas[g] = of_fold.with_gamma(float(self.context.grid.gammas[g]))
        return at_gammas[g]

    def _without(self, fold: int) -> GlmSubsets | None:
        """Return the problem of one of many folds in the columns of all rows; None where it needs its own."""
        if fold == ALL_ROWS or self.plan.k <= FEW_FOLDS:
            return None
        subsets = self.at(ALL_ROWS, 0)
        folds = self.left_out_rows(subsets.fits)
        return subsets.without(folds.rows[folds.ends[fold] : folds.ends[fold + 1]])

    def _forget(self) -> None:
        """Keep the problems of all rows and of the last folds, as many as `KEPT` numbers are, before one is made."""
        few, size = self.plan.k <= FEW_FOLDS, self.data.n * (self.data.q + 1)
        most = max(KEPT // size if few else 0, self.context.threads)  # of many, none is kept until its next turn
        folds = [fold for fold in list(self._problems) if fold != ALL_ROWS]
        for fold in folds[: max(len(folds) - most + 1, 0)]:
            self._problems.pop(fold, None)

    def score(self, fold: int, g: int, supports: Sequence[IntArray]) -> ScoredFits:
        """Fit supports on the training rows of a fold, and score its held-out rows.

        Parameters
        ----------
        fold, g : int
        supports : sequence of int arrays
        """
        rows = rows_in_units(self.data, self.plan.scored_rows(fold))
        fits, low, high = self.at(fold, g).scored(list(supports), *rows)
        held_out = np.clip(fits.losses(self.loss, *rows).sum(axis=1), low, high)
        found = ScoredFits(fits.lower, fits.upper, low, high, held_out)
        for i in np.flatnonzero(~(high - low <= FROM_ROWS * found.held_out)).tolist():
            self._from_rows(found, i, fold, g, supports[i])
        return found

    def _from_rows(self, found: ScoredFits, i: int, fold: int, g: int, support: IntArray) -> None:
        """Fit a support by orthogonal factors of its rows, where normal equations have lost its digits."""
        made = refit_glm(self.data, self.plan.train_rows(fold), support, float(self.context.grid.gammas[g]))
        held, slip = made.held_out(self.data, self.plan.scored_rows(fold))
        off = made.objective_error
        found.value_lower[i] = max(found.value_lower[i], made.objective - off)
        found.value_upper[i] = min(found.value_upper[i], made.objective + off)
        found.held_lower[i] = max(found.held_lower[i], held - slip)
        found.held_upper[i] = min(found.held_upper[i], held + slip)
        found.held_out[i] = np.clip(held, found.held_lower[i], found.held_upper[i])

    def losses(self, fold: int, g: int, supports: Sequence[IntArray]) -> tuple[FloatArray, FloatArray]:
        """Return (L,) upper bounds of the training objectives of supports, and (L, m) losses of held-out rows.

        Parameters
        ----------
        fold, g : int
        supports : sequence of int arrays
        """
        fits = self.at(fold, g).refit(list(supports))
        return fits.upper, fits.losses(self.loss, *rows_in_units(self.data, self.plan.scored_rows(fold)))

    def left_out(self, g: int, support: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return (K,) such bounds and losses, summed, of fits near that on all rows; inf and nan beyond the limit.

        Parameters
        ----------
        g : int
        support : int array
        """
        fits, expired = self.at(ALL_ROWS, g).fits, self.context.deadline.expired
        masks = fits.masks([support])
        return self.left_out_rows(fits).values(masks[0], fits.refit(masks, expired=expired).points[0], expired)

    def left_out_rows(self, fits: GlmFits) -> LeftOut:
        """Return the rows of every fold, to be left out of fits of all rows."""
        self._folds = self._folds or left_out_of(self.data, self.plan, fits)
        return self._folds.with_fits(fits)

    def interval(self, fold: int, g: int, tau: int, upper: float) -> tuple[float, float]:
        """Bound the held-out loss of a cell of which only an incumbent is known, with an objective up to `upper`."""
        rows, expired = rows_in_units(self.data, self.plan.scored_rows(fold)), self.context.deadline.expired
        return self.at(fold, g).open_fold_interval(tau, upper, *rows, expired=expired)

    def one_support(self, tau: int) -> bool:
        """Whether a size leaves one support, that of all columns, on all rows and so in every fold."""
        return tau >= int(np.count_nonzero(self.at(ALL_ROWS, 0).fits.varies))
