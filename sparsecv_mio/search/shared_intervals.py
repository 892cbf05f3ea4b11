"""Intervals of every fold without a tree, from fits and relaxations on all rows (theory sections 5 and 8).

`first_intervals` scores the best supports of all rows in every fold. `decide_by_reuse` tests dual points of all rows in
every fold at once, from the held-out rows alone: with b the relaxation's solution on all rows, e its residuals, s, u
the (weighted) sums of the held-out rows of V and e and n_T the (weight of the) training rows,

    c_T - Q_T b = (c - Q b) - V_N'e_N - s u / n_T,      ||r_T||^2 = ||r||^2 - ||e_N||^2 - u^2 / n_T

are the slope and the length of the residual restricted to the training rows T and centred on them: O(|N| q) a fold.
With eta the leverage of the fold, `(1 - eta) w` is a valid diagonal in the fold wherever w is one on all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import ROWS_ROUNDING, training_loss_bound
from sparsecv_mio.bounds.fold import WILDEST, Points
from sparsecv_mio.kernels.leave_out import BestByFold, HeldOutRows
from sparsecv_mio.kernels.screening import leaves_only
from sparsecv_mio.problem.problem import SparseProblem, without_rows
from sparsecv_mio.search import leave_fold_out
from sparsecv_mio.words import Intercept

KNOWN_ERROR = 1e-6  # relative rounding error of a held-out error up to which its support is shown in an open cell


def first_intervals(root: leave_fold_out.RootNode) -> None:
    """Show the best supports of all rows in every open cell of a gamma, and bound its held-out error.

    Their held-out errors are the estimates that order the search. Their objectives u are feasible in the fold: the
    training-loss bound, with the lower bounds found on all rows, bounds the held-out error from below
    (:func:`sparsecv_mio.bounds.closed_form.training_loss_bound`), the fold's ridge ball from above
    (:func:`sparsecv_mio.search.leave_fold_out.held_out_ceiling`).

    Parameters
    ----------
    root : RootNode
        Whose wanted taus are all that have open cells.

    Raises
    ------
    Contradiction
        If an interval misses what is known of a cell.
    """
    leave_out, g, form = root.leave_out, root.g, root.form
    numbers = leave_out.pool_numbers(root.incumbents)
    best = leave_out.all_rows.best[g]
    lower = np.array([best.by_size[int(tau)].lower for tau in leave_out.taus]) - form.slack
    cells = leave_out.cells

    def write(lo: int, hi: int) -> None:
        scores, cutoffs = root.scores(lo, hi), root.cutoffs(lo, hi)
        known = well_known(root, scores) & ~cells.final[g, :, lo:hi]
        part = (g, slice(None), slice(lo, hi))
        cells.offer(part, numbers[scores.which], scores.held_out, np.where(known, scores.value, np.nan))
        leverage = np.minimum(root.leverage[lo:hi], 1.0)
        residual = root.residual[lo:hi] * (1.0 + leave_fold_out.OUTWARD) + form.slack
        least = np.where(known, training_loss_bound(lower[:, None], cutoffs), 0.0)
        most = np.where(known, leave_fold_out.held_out_ceiling(cutoffs, root.lower, residual, leverage), np.inf)
        cells.narrow(part, least, most)

    leave_out.over_chunks(write)


def offer_supports(root: leave_fold_out.RootNode, supports: Sequence[IntArray], tau_index: Sequence[int]) -> None:
    """Show more supports in every open cell of a gamma where they have the least objective so far.

    Parameters
    ----------
    root : RootNode
    supports : sequence of int arrays
    tau_index : sequence of int
        Index of the tau that each is for.

    Notes
    -----
    O(n s^2) a support.
    """
    leave_out = root.leave_out
    candidates = leave_fold_out.ScoredTogether(root, supports, tau_index)

    def write(lo: int, hi: int) -> None:
        scores = candidates.scores(lo, hi)
        part = (root.g, slice(None), slice(lo, hi))
        value = np.where(well_known(root, scores), scores.value, np.nan)
        leave_out.cells.offer(part, candidates.numbers[scores.which], scores.held_out, value)

    leave_out.over_chunks(write)


def well_known(root: leave_fold_out.RootNode, scores: BestByFold) -> BoolArray:
    """Where the held-out error of the best support is known well enough to be shown, in the shape of the scores."""
    return np.asarray((scores.which >= 0) & (scores.error <= KNOWN_ERROR * scores.held_out + root.form.slack))


def decide_by_reuse(root: leave_fold_out.RootNode, points: Points) -> tuple[int, int]:
    """Decide the open cells of a gamma whose incumbent is the only support that screening leaves.

    Parameters
    ----------
    root : RootNode
    points : Points
        Relaxations on all rows at the same gamma.

    Returns
    -------
    tested, decided : int
        Cells.

    Notes
    -----
    O(n q + K q log q) a tau.
    """
    leave_out, g = root.leave_out, root.g
    if root.form.m != root.problem.q or not root.problem.yy > 0.0:
        return 0, 0
    taken = [(t, points.of(int(tau))) for t, tau in enumerate(leave_out.taus) if points.of(int(tau)) >= 0]
    numbers = leave_out.pool_numbers(root.incumbents)
    masks = np.zeros((len(root.incumbents.sizes), root.problem.q), dtype=np.bool_)
    for a, support in enumerate(root.supports):
        masks[a, support] = True
    counts: list[tuple[int, int]] = []

    def decide(lo: int, hi: int) -> None:
        scores, cutoffs, rows = root.scores(lo, hi), root.cutoffs(lo, hi), leave_out.rows(lo, hi)
        leverage = np.minimum(root.leverage[lo:hi], 1.0)
        sure = np.zeros(cutoffs.shape, dtype=np.bool_)
        tested = 0
        for t, at in taken:
            ask = (
                ~leave_out.cells.final[g, t, lo:hi]
                & (scores.which[t] >= 0)
                & (leverage < leave_fold_out.WIDEST_LEVERAGE)
            )
            tested += int(ask.sum())
            if ask.any():
                mask = masks[np.maximum(scores.which[t], 0)]
                sure[t] = ask & only_support(root, (points, at), rows, leverage, cutoffs[t], mask)
        counts.append((tested, leave_out.decide((g, slice(lo, hi)), scores, numbers, sure, branched=False)))

    leave_out.over_chunks(decide)
    return sum(one for one, _ in counts), sum(two for _, two in counts)


def only_support(
    root: leave_fold_out.RootNode,
    point: tuple[Points, int],
    rows: HeldOutRows,
    leverage: FloatArray,
    cutoffs: FloatArray,
    mask: BoolArray,
) -> BoolArray:
    """Whether every support of a size but one is certified to lie above a fold's cutoff, by safe screening.

    Parameters
    ----------
    root : RootNode
    point : Points, int
        Relaxations on all rows, and which of them to test.
    rows : HeldOutRows
        Of K consecutive folds.
    leverage, cutoffs : (K,) arrays
        Of these folds.
    mask : (K, q) bool array
        The one support, by fold.

    Returns
    -------
    (K,) bool array
    """
    problem, (points, at) = root.problem, point
    size, b = int(points.sizes[at]), points.beta[at]
    # a fold of leverage one has no diagonal: its numbers are no numbers, and compare as false
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        diagonal = without_rows(points.diagonal, leverage)
        quad, dual, d = fold_duals(root, b, size, rows, diagonal)
        gap = cutoffs + ROWS_ROUNDING * problem.yy - dual
        return np.asarray(leaves_only(d, size, gap, mask) & (gap >= 0.0) & (quad <= WILDEST * problem.yy))


def fold_duals(
    root: leave_fold_out.RootNode, b: FloatArray, size: int, rows: HeldOutRows, diagonal: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Dual value and screening scores of one point in each of some consecutive folds.

    Parameters
    ----------
    root : RootNode
    b : (q,) array
        The point.
    size : int
        Columns of a support.
    rows : HeldOutRows
        Of K folds.
    diagonal : (K, q) array
        Valid in each fold.

    Returns
    -------
    quad, dual : (K,) arrays
        `b'G b`, rounded up to what y'y of all rows makes of it, and D.
    d : (K, q) array
        The d_j that screening compares.
    """
    problem = root.problem
    g, squares = training_residual(problem, b, rows, root.leave_out.data.intercept)
    along = g @ b
    beside = (problem.penalty - diagonal) @ (b * b)
    g += (diagonal - problem.penalty) * b
    d = g * g / diagonal
    top = np.partition(d, problem.q - size, axis=1)[:, problem.q - size :].sum(axis=1)
    dual = squares + 2.0 * along - beside - top
    # at least b'G b, which is y'y of the training rows less these
    quad = problem.yy - dual - top
    return quad, dual, d


def training_residual(
    problem: SparseProblem, b: FloatArray, rows: HeldOutRows, intercept: Intercept
) -> tuple[FloatArray, FloatArray]:
    """Slope and squared length of the residual of a point on the training rows of each of some consecutive folds.

    Parameters
    ----------
    problem : SparseProblem
        All rows.
    b : (q,) array
    rows : HeldOutRows
        Of K folds.
    intercept : Intercept
        With one of its own in each fold, the residual is centred on the training rows.

    Returns
    -------
    slope : (K, q) array
        `c_T - Q_T b`, T the training rows.
    square : (K,) array
        `||r_T||^2`.

    Notes
    -----
    O(|N| q) a fold: the training rows themselves are not read.
    """
    V, r, starts, root = rows
    first = starts[:-1]
    e = r - V @ b
    slope = problem.c - problem.Q @ b
    square = float(problem.yy - problem.c @ b - slope @ b)
    held_slope = np.add.reduceat(V * e[:, None], first, axis=0)
    held_square = np.add.reduceat(e * e, first)
    if intercept is Intercept.FOLD:
        left = problem.total - np.add.reduceat(root * root, first)
        mean = np.add.reduceat(root * e, first) / left
        ones = V if np.all(root == 1.0) else V * root[:, None]
        held_slope += np.add.reduceat(ones, first, axis=0) * mean[:, None]
        held_square += mean * mean * left
    return slope - held_slope, square - held_square
