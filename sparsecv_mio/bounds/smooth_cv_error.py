"""Intervals without branching for CV errors with logistic and Poisson loss, for `sparsecv bounds`.

Local search finds a support of each size in every fold. The training objective u of this support is an upper bound on
the minimum of the fold. All fits whose objective is at most u lie in an ellipsoid, which bounds their held-out loss h
(docs/theory/glm.md, section 8). In addition, h is at least F* - u. Here F* is a lower bound on the minimum objective of
the full data, computed at the roots of its branch-and-bound trees.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sparsecv_mio.bounds.closed_form import LEFT_OUT_WEIGHTS
from sparsecv_mio.bounds.cv_error import NO_HOOKS, BoundsHooks, BoundsTable
from sparsecv_mio.bounds.fold import UNKNOWN, Origin
from sparsecv_mio.bounds.more_weight import HeldOutWeightedBounds
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.thresholds import FEW_FOLDS
from sparsecv_mio.trees.glm_fits import WIDE, GlmFits
from sparsecv_mio.trees.smooth_rows import make_glm_problem, make_subsets, rows_in_units
from sparsecv_mio.trees.subsets import is_never_expired
from sparsecv_mio.units import OUTWARD, SUM_RTOL


def bound_smooth_cv_errors(
    data: StandardData, folds: FoldPlan, gammas: Sequence[float], taus: Sequence[int], hooks: BoundsHooks = NO_HOOKS
) -> BoundsTable:
    """Return bounds on the held-out losses of every (gamma, tau, fold).

    Parameters
    ----------
    data : StandardData
        Data set with two classes or counts as target.
    folds : FoldPlan
        Folds.
    gammas, taus : sequences
        Grid.
    hooks : BoundsHooks, optional
        Functions that follow the progress and can end the work early.

    Returns
    -------
    BoundsTable
        Intervals; the estimate is the held-out loss of the supports of the local search.
    """
    table = BoundsTable.empty(data, folds, tuple(gammas), tuple(taus))
    if hooks.begun is not None:
        hooks.begun(table)
    whole, slip = make_subsets(data, np.arange(data.n)), SUM_RTOL * data.dataset.weight_of(slice(0, data.n))
    rising, weighed, least = np.argsort(table.gammas), np.zeros(table.lower.shape), np.zeros(table.lower.shape[:2])
    for g, gamma in enumerate(table.gammas):
        at, begin = whole.with_gamma(gamma), time.perf_counter()
        least[g] = [at.solve([tau], effort=1, expired=hooks.expired).by_size[tau].lower for tau in taus]
        table.seconds[g] += time.perf_counter() - begin
    for fold in range(folds.k):
        if hooks.expired():
            break
        training, rows = make_subsets(data, folds.train_rows(fold)), rows_in_units(data, folds.scored_rows(fold))
        for g, gamma in enumerate(table.gammas):
            begin, at = time.perf_counter(), training.with_gamma(gamma)
            solution = at.solve(taus, effort=0, expired=hooks.expired)
            supports = [solution.by_size[tau].support for tau in taus]
            _, low, high = at.score_supports(supports, *rows)
            numbers = np.tile(UNKNOWN, (len(taus), 1))
            for t, tau in enumerate(taus):
                upper = solution.by_size[tau].upper
                ends = at.open_fold_interval(tau, upper, *rows, expired=hooks.expired)
                numbers[t, 1:6] = upper, *ends, Origin.CONIC, Origin.CONIC
            numbers[:, 6], numbers[:, 7] = 0.5 * (low + high), data.q
            table.put(g, fold, numbers)
            table.seconds[g] += time.perf_counter() - begin
        if hooks.progress is not None:
            hooks.progress(fold + 1, folds.k)
    begin = time.perf_counter()
    for fold in range(folds.k if folds.k <= FEW_FOLDS else 0):
        bounds = HeldOutWeightedBounds(np.array(table.gammas)[rising], np.array(taus))
        bound_weighted_by_all_columns(data, folds, fold, bounds, hooks.expired)
        weighed[rising, :, fold] = bounds.held_out_errors(table.objective_upper[rising, :, fold] + slip)
    table.seconds[:] += (time.perf_counter() - begin) / len(table.gammas)
    for g in range(len(table.gammas)):
        floor = (least[g] * (1.0 - OUTWARD) - slip)[:, None] - table.objective_upper[g]
        lower = np.maximum(weighed[g], np.where(folds.scores_all_left_out, np.maximum(floor, 0.0), 0.0))
        table.raise_lower(g, lower, Origin.TRAINING)
    return table


def bound_weighted_by_all_columns(
    data: StandardData,
    folds: FoldPlan,
    fold: int,
    bounds: HeldOutWeightedBounds,
    expired: Callable[[], bool] = is_never_expired,
) -> None:
    """Bound the held-out-weighted objectives of a fold, at every weight, by fits of all columns.

    These bounds hold for every size (docs/theory/glm.md, section 14). Six steps of O(n q^2) for each weight and gamma;
    with more than 200 columns nothing is proved.

    Parameters
    ----------
    data : StandardData
        Data set with two classes or counts as target.
    folds : FoldPlan
        Folds.
    fold : int
        Index of the fold.
    bounds : HeldOutWeightedBounds
        Bounds of the fold, to which the new ones are written.
    expired : callable
        Function that returns True when time is over.
    """
    training, scored = folds.train_rows(fold), folds.scored_rows(fold)
    together = make_glm_problem(data, np.concatenate([training, scored]))
    for place, t in enumerate(LEFT_OUT_WEIGHTS):
        v = np.concatenate([together.v[: len(training)], t * together.v[len(training) :]])
        fits = GlmFits.from_problem(replace(together, v=v), None)
        point = fits.start()
        for g, gamma in enumerate(bounds.gammas.tolist()):
            if expired() or np.count_nonzero(fits.varies) > WIDE:
                return
            at = fits.with_gamma(gamma)
            point, lower = at.fit_of_all(fits.varies, point, expired)
            bounds.lower[place, g] = np.maximum(bounds.lower[place, g], lower)
