"""Best-subset problems with a smooth convex loss from the rows of a data set, and held-out losses from full-data fits.

Columns are numbered as in standard coordinates, but have the units of the file; the trees centre and scale them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray, base_with_ones
from sparsecv_mio.data.fold_plan import FoldPlan, RowLists
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.glm import Centring, GlmProblem
from sparsecv_mio.problem.row_losses import encode_row_targets, row_loss
from sparsecv_mio.trees.glm_fits import GlmFits
from sparsecv_mio.trees.glm_left_out import LeftOut
from sparsecv_mio.trees.glm_subsets import GlmSubsets
from sparsecv_mio.trees.subsets import is_never_expired
from sparsecv_mio.units import GAMMA_RANGE


def rows_in_units(data: StandardData, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return some rows: columns in the units of the file, targets in the form of the loss, and weights.

    Parameters
    ----------
    data : StandardData
        Data set.
    rows : int array
        Row indices.
    """
    X = data.dataset.X
    whole = np.array_equal(rows, np.arange(len(X))) and np.array_equal(data.columns, np.arange(X.shape[1]))
    if whole:  # avoids a copy of the whole data set
        return X, *encode_row_targets(data, rows)
    return np.ascontiguousarray(X[np.ix_(rows, data.columns)]), *encode_row_targets(data, rows)


def make_subsets(data: StandardData, rows: IntArray) -> GlmSubsets:
    """Return the best-subset problem of some rows at gamma 1.

    Parameters
    ----------
    data : StandardData
        Data set.
    rows : int array
        Training rows.
    """
    n, p = data.dataset.X.shape
    takes_most_rows = len(rows) > n // 2 and not data.dataset.has_scales_of_folds
    if not (len(data.columns) == p and takes_most_rows and np.all(np.diff(rows) > 0)):
        return GlmSubsets(make_glm_problem(data, rows), data.forced)
    every = make_glm_problem(
        data, np.arange(n)
    )  # rows without weight are skipped when columns are centred, which avoids a copy of most rows
    weights = np.zeros(n)
    weights[rows] = every.v[rows]
    return GlmSubsets(replace(every, v=weights), data.forced)


def make_glm_problem(data: StandardData, rows: IntArray, gamma: float = 1.0) -> GlmProblem:
    """Return the problem of some rows.

    Parameters
    ----------
    data : StandardData
        Data set.
    rows : int array
        Training rows.
    gamma : float, optional
        Ridge weight.
    """
    weight = np.clip(data.weight_of(rows) * data.divisor * data.divisor, *GAMMA_RANGE)
    weight[data.adjusting] = 0.0
    X, y, v = rows_in_units(data, rows)
    return GlmProblem(X, y, v, weight, gamma, data.has_intercept, row_loss(data.loss))


def make_held_out_folds(data: StandardData, plan: FoldPlan, fits: GlmFits) -> LeftOut:
    """Return the folds of all rows, given full-data fits.

    Parameters
    ----------
    data : StandardData
        Data set.
    plan : FoldPlan
        Folds.
    fits : GlmFits
        Fits to all rows, on any columns.
    """
    row_lists = RowLists(plan.order[: plan.scored], plan.starts) if plan.left is None else plan.left
    weights = encode_row_targets(data, slice(0, data.n))[1]
    scored = None if plan.left is None else [plan.scored_rows(fold) for fold in range(plan.k)]
    return LeftOut(fits, row_lists, scored, weights)


def fit_rows_in_place(data: StandardData, gamma: float) -> GlmFits | None:
    """Return fits to all rows if they need no copy of the rows; otherwise None."""
    problem = make_glm_problem(data, np.arange(data.n), gamma)
    if base_with_ones(problem.X) is None or not Centring.from_rows(problem.X, problem.v, problem.intercept).is_identity:
        return None
    return GlmFits.from_problem(problem, None)


def held_out_losses_at_fits(
    data: StandardData,
    plan: FoldPlan,
    support: IntArray,
    gamma: float,
    folds: IntArray,
    expired: Callable[[], bool] = is_never_expired,
    ended: Callable[[], bool] = is_never_expired,
    every: GlmFits | None = None,
) -> FloatArray:
    """Return (F,) held-out losses of a support in some folds, from its full-data fit; nan if steps do not suffice.

    Parameters
    ----------
    data : StandardData
        Data set.
    plan : FoldPlan
        Folds.
    support, folds : int arrays
        Columns of the support, and indices of the folds.
    gamma : float
        Ridge weight.
    expired : callable
        Function that returns True when time is over; later folds get second steps if these are accurate enough, or nan.
    ended : callable
        Function that returns True to leave nan for all remaining folds.
    every : GlmFits, optional
        Fits of `fit_rows_in_place` at this gamma; otherwise the columns of the support are copied.
    """
    fits, columns = every, support
    if fits is None:
        problem, columns = (
            make_glm_problem(data, np.arange(data.n), gamma).select_columns(support),
            np.arange(len(support)),
        )
        fits = GlmFits.from_problem(problem, None)
    mask, point = fits.mask(columns.tolist()), fits.fit(columns.tolist())[0]
    return make_held_out_folds(data, plan, fits).held_out(mask, point, folds, expired, ended)
