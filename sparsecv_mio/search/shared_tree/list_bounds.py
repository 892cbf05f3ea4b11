"""What a list of near-optimal supports on all rows proves of the folds: no branch-and-bound per fold.

Let the list hold every support of tau columns with `f(S) <= T` on all rows, and let `ubar` be a feasible value of fold
N. An optimum of the fold is on a listed support with `f^(-N)(S) <= ubar`, or its held-out error is at least `T - ubar`
(:mod:`sparsecv_mio.bounds.training_loss`). T just below the optimum needs no support at all and gives the training-loss
bound of the paper; a larger T proves more; and where `T - ubar` exceeds a certified upper bound of the held-out error
the optimum is listed, and the cell is decided.
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.training_loss import training_loss_bound
from sparsecv_mio.search.shared_tree.first_intervals import well_known
from sparsecv_mio.search.shared_tree.identities import WIDEST_LEVERAGE
from sparsecv_mio.search.shared_tree.listed_supports import clear_of_ties_refitted
from sparsecv_mio.search.shared_tree.near_optimal import SupportList
from sparsecv_mio.search.shared_tree.root_node import Candidates, RootNode
from sparsecv_mio.search.state.cells import Where
from sparsecv_mio.search.subproblem.cell_solver import CellSolver
from sparsecv_mio.search.subproblem.fold_problem import Refits
from sparsecv_mio.units import TIE_RTOL

BISECTIONS = 60


def apply_in_closed_form(root: RootNode, t: int, listed: SupportList) -> BoolArray:
    """Raise the lower bounds of a pair's open cells to what a list proves, all folds at once.

    Parameters
    ----------
    root : RootNode
    t : int
        Index of tau.
    listed : SupportList

    Returns
    -------
    (K,) bool array
        The folds that were served. Those with a near tie or a high leverage are left to `apply_by_refits`.
    """
    leave_out, g, form = root.leave_out, root.g, root.form
    candidates = Candidates(root, listed.supports, [t] * len(listed.supports))
    value_error = float(candidates.listing.left_out_error(len(leave_out.taus))[t])
    cells = leave_out.cells
    served = np.zeros(leave_out.folds.k, dtype=bool)

    def write(lo: int, hi: int) -> None:
        scores = candidates.scores(lo, hi)
        best, held_out, error = scores.value[t], scores.held_out[t], scores.error[t]
        known = clear_of_ties_refitted(best, scores.second[t], value_error) & (root.leverage[lo:hi] < WIDEST_LEVERAGE)
        known &= well_known(root, scores)[t]
        ubar = best * (1.0 + form.keep) + form.slack + 2.0 * value_error
        least = np.minimum(training_loss_bound(listed.threshold, ubar), held_out - error)
        part = (g, t, slice(lo, hi))
        open_cells = known & ~cells.final[part]
        cells.offer(part, candidates.numbers[scores.which[t]], held_out, np.where(open_cells, best, np.nan))
        cells.narrow(part, np.where(open_cells, least, 0.0), np.inf)
        served[lo:hi] = known

    leave_out.over_chunks(write)
    return served


def apply_by_refits(
    solver: CellSolver, pair: tuple[int, int], folds: IntArray, listed: SupportList, goal: float = np.inf
) -> None:
    """Write what a list proves of some folds of a pair, the listed supports refitted in each of them.

    Parameters
    ----------
    solver : CellSolver
    pair : gamma, tau
        Indices in the grid.
    folds : int array
        Those with most to gain come first.
    listed : SupportList
    goal : float
        Sum of the pair's lower ends beyond which the rest is left.

    Notes
    -----
    O(L (s^3 + rows s)) a fold.
    """
    cells = solver.cells
    gain = np.minimum(cells.nominal[pair][folds], cells.upper[pair][folds]) - cells.lower[pair][folds]
    for fold in folds[np.argsort(-gain, kind="stable")].tolist():
        if float(cells.lower[pair].sum()) >= goal:
            break
        _apply_to_cell(solver, (*pair, fold), listed)


def _apply_to_cell(solver: CellSolver, where: Where, listed: SupportList) -> None:
    g, _, fold = where
    cells, here = solver.cells, solver.at(g, fold)
    known = cells.pool.supports[cells.support[where]]
    supports = [*listed.supports, known]
    fits = here.refit(supports)
    if not np.all(np.isfinite(fits.value_error)):
        return
    ubar = _ceiling(fits)
    outside = float(training_loss_bound(listed.threshold, ubar))
    near = fits.value - fits.value_error <= ubar
    inside = np.flatnonzero(near[:-1])
    if len(inside) and outside > cells.upper[where]:
        optimal = [supports[i] for i in inside]
        solver.intervals.decide(here, where, optimal, fits.at(inside), branched=True)
        return
    best = int(np.argmin(fits.value))
    least = float((fits.held_out - fits.held_out_error)[near].min())
    cells.narrow(where, min(outside, least), np.inf)
    cells.offer(where, cells.pool.number(supports[best]), float(fits.held_out[best]), float(fits.value[best]))


def incumbent_values(solver: CellSolver, pair: tuple[int, int], folds: IntArray) -> FloatArray:
    """Certified upper bounds of the optimum and all its ties in some folds of a pair, from the supports held.

    Parameters
    ----------
    solver : CellSolver
    pair : gamma, tau
        Indices in the grid.
    folds : int array

    Returns
    -------
    array
        By fold of `folds`.
    """
    values = np.empty(len(folds))
    for a, fold in enumerate(folds.tolist()):
        support = solver.cells.pool.supports[solver.cells.support[(*pair, fold)]]
        values[a] = _ceiling(solver.at(pair[0], fold).refit([support]))
    return values


def _ceiling(fits: Refits) -> float:
    """Value that every optimum and every tie of it stays below."""
    return float((fits.value + fits.value_error).min()) * (1.0 + TIE_RTOL)


def least_threshold(lower: FloatArray, expected: FloatArray, ubar: FloatArray, goal: float) -> float:
    """Least threshold T of a list that is expected to lift the lower sum of some folds to a goal.

    That sum is `sum_j max(lower_j, min(T - ubar_j, expected_j))`, which rises with T: found by bisection.

    Parameters
    ----------
    lower, expected : (K,) arrays
        Lower bounds, and estimates, of the held-out errors.
    ubar : (K,) array
        Feasible values of the folds.
    goal : float

    Returns
    -------
    float
        inf where no threshold is expected to reach the goal.
    """
    if float(np.maximum(lower, expected).sum()) < goal:
        return np.inf
    low, high = float(ubar.min()), float((ubar + expected).max())
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        # an expectation of the training-loss bound, of finite values only: nothing is certified here
        if float(np.maximum(lower, np.minimum(middle - ubar, expected)).sum()) >= goal:
            high = middle
        else:
            low = middle
    return high
