"""A limit that comes before any pair is scored in every fold still leaves an answer: one pair, scored at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.search.shared_tree.listed_supports import ListedSupports
from sparsecv_mio.search.subproblem.fold_solver import FoldSolver

if TYPE_CHECKING:
    from sparsecv_mio.search.methods.rounds import CrossValidation

FEW_FOLDS = 1000  # that many are scored one by one, with bounds
SMALL_FOLD = 16  # rows; more folds, of at most this size, are left out of the full-data fit


def score_one_pair(run: CrossValidation) -> None:
    """Score the pair with the fewest folds missing in these folds, unless some pair has none missing.

    Of several such the one with the least held-out error in the other folds.

    No tree is run. Few folds get the best support at hand and the bounds that hold without a proof; many small ones the
    full-data support, left out of in closed form, with no bound.
    """
    if run.row_wise:
        return
    missing = ~np.isfinite(run.cells.nominal)
    count = missing.sum(axis=2)
    if count.min() == 0:
        _bound(run)
        return
    known = np.where(missing, 0.0, run.cells.nominal).sum(axis=2)
    g, t = (int(i) for i in np.unravel_index(int(np.lexsort((known.ravel(), count.ravel()))[0]), count.shape))
    if count[g, t] > FEW_FOLDS and run.folds.sizes.max() <= SMALL_FOLD:
        _leave_out(run, g, t)
    _visit(run, (g, t), np.flatnonzero(~np.isfinite(run.cells.nominal[g, t])))
    _bound(run)


def _bound(run: CrossValidation) -> None:
    """See to an upper bound in every fold of the pair that will be reported."""
    if not run.clock.expired():
        return
    pair = run.bounds().answer(run.gap, run.grid.gammas, run.grid.taus)
    unknown = ~np.isfinite(run.cells.upper[pair])
    if int(unknown.sum()) <= FEW_FOLDS:
        _visit(run, pair, np.flatnonzero(unknown))


def _visit(run: CrossValidation, pair: tuple[int, int], which: NDArray[np.int64]) -> None:
    """The best support at hand and the bounds that hold without a proof, in some folds of a pair."""
    wanted = np.zeros(run.cells.nominal.shape[:2], dtype=bool)
    wanted[pair] = True
    solver = FoldSolver(run.context, run.cells, run.best_by_gamma)
    for fold, moments in run.oracles.training_moments(which.tolist()):
        if run.clock.abandoned.is_set():
            break
        solver.bound(fold, moments, wanted)


def _leave_out(run: CrossValidation, g: int, t: int) -> None:
    """Score the full-data support of a pair in every fold that is missing it. O(n s^2)."""
    leave_out = run.leave_out
    support = run.full[g].cells[int(run.grid.taus[t])].support
    listing = ListedSupports.of(leave_out.all_rows.problem(g), [support], [t])
    number = run.cells.pool.number(support)

    def score(lo: int, hi: int) -> None:
        found = leave_out.score(listing, leave_out.rows(lo, hi))
        run.cells.offer((g, t, slice(lo, hi)), number, found.held_out[t], found.value[t])

    leave_out.over_chunks(score)
