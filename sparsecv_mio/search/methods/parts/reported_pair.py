"""The pair to report, scored in every fold: where a limit came first, at once; in open cells, to the last digits."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.shared_tree.engines import SharedTrees
from sparsecv_mio.search.shared_tree.listed_supports import ListedSupports
from sparsecv_mio.search.subproblem.fold_problem import FoldProblem
from sparsecv_mio.search.subproblem.fold_solver import FoldSolver

FEW_FOLDS = 1000  # that many are scored one by one, with bounds
SMALL_FOLD = 16  # rows; more folds, of at most this size, are left out of the fit on all rows in closed form


def score_reported_pair(run: Run, trees: SharedTrees) -> None:
    """See to it that the pair to report is scored in every fold, to the accuracy of decided cells.

    Nothing is done before anything is known of all rows.
    """
    if run.state.all_rows.best:
        _score_one_pair(run, trees)
        _score_again(run)


def _score_one_pair(run: Run, trees: SharedTrees) -> None:
    """Score the pair with the fewest folds missing in these folds, unless some pair has none missing.

    Of several such the one with the least held-out error in the other folds. No tree is grown: few folds get the best
    support at hand and the bounds that hold without a proof; many small ones the best support of all rows, scored in
    closed form, with no bound.
    """
    nominal = run.state.cells.nominal
    missing = ~np.isfinite(nominal)
    count = missing.sum(axis=2)
    if count.min() > 0:
        known = np.where(missing, 0.0, nominal).sum(axis=2)
        g, t = (int(i) for i in np.unravel_index(int(np.lexsort((known.ravel(), count.ravel()))[0]), count.shape))
        folds = run.context.folds
        if count[g, t] > FEW_FOLDS and folds.left is None and folds.sizes.max() <= SMALL_FOLD:
            _score_in_closed_form(run, trees, g, t)
        _visit(run, (g, t), np.flatnonzero(~np.isfinite(nominal[g, t])))
    _bound(run)


def _bound(run: Run) -> None:
    """See to an upper bound in every fold of the pair that will be reported, where time is over."""
    context = run.context
    if not context.deadline.expired():
        return
    pair = run.state.bounds().reported_pair(context.gap, context.grid.gammas, context.grid.taus)
    unknown = ~np.isfinite(run.state.cells.upper[pair])
    if int(unknown.sum()) <= FEW_FOLDS:
        _visit(run, pair, np.flatnonzero(unknown))


def _visit(run: Run, pair: tuple[int, int], which: IntArray) -> None:
    """Give some folds of a pair the best support at hand and the bounds that hold without a proof."""
    context, cells = run.context, run.state.cells
    wanted = np.zeros(cells.nominal.shape[:2], dtype=bool)
    wanted[pair] = True
    solver = FoldSolver(run.state, run.accelerators)
    for fold, moments in run.accelerators.training_moments(which.tolist()):
        if context.deadline.abandoned.is_set():
            break
        solver.bound(fold, moments, wanted)


def _score_in_closed_form(run: Run, trees: SharedTrees, g: int, t: int) -> None:
    """Score the best support of all rows for a pair in every fold that is missing it. O(n s^2)."""
    leave_out, cells, taus = trees.leave_out, run.state.cells, run.context.grid.taus
    support = run.state.all_rows.best[g].cells[int(taus[t])].support
    listing = ListedSupports.of(run.state.all_rows.problem(g), [support], [t])
    number = cells.pool.number(support)

    def score(lo: int, hi: int) -> None:
        found = leave_out.score(listing, leave_out.rows(lo, hi))
        cells.offer((g, t, slice(lo, hi)), number, found.held_out[t], found.value[t])

    leave_out.over_chunks(score)


def _score_again(run: Run) -> None:
    """Score what the open cells of the pair to report show to the accuracy of decided ones. O(n q^2 log k)."""
    context, cells = run.context, run.state.cells
    pair = run.state.bounds().reported_pair(context.gap, context.grid.gammas, context.grid.taus)
    gamma = float(context.grid.gammas[pair[0]])
    folds = np.flatnonzero(~cells.decided[pair] & np.isfinite(cells.nominal[pair]))
    if not len(folds) or context.deadline.expired():
        return
    for fold, moments in run.accelerators.training_moments(folds.tolist()):
        support = cells.pool.supports[cells.support[(*pair, fold)]]
        fits = FoldProblem.of(context.data, context.folds, fold, moments).with_gamma(gamma).refit([support])
        cells.rescore((*pair, fold), float(fits.held_out[0]), float(fits.value[0]))
        if context.deadline.expired():
            break
