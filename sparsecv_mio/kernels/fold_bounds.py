"""Bounds on the held-out error of one fold for every size: relaxation, incumbent, screening and reduction.

The columns of M are scaled to `M_jj = 1`. For each size k, the relaxation of all columns is solved, and its solution is
rounded to a support. The dual point screens columns. Columns in every near-optimal support are forced in and eliminated
by partial minimisation; columns in no near-optimal support are dropped. The diagonal w that defines the relaxation is
then computed again for the remaining columns, so that the relaxation becomes tighter. Screening is repeated until it
fixes no further column. Bounds on the predictions and on the sum of squared held-out errors then follow from the
remaining columns (docs/theory/bounds.md, sections 3 to 5). If only one support remains, the held-out error is known
exactly.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import copy_vector, support_value, times
from sparsecv_mio.kernels.held_out_sums import (
    EXACT,
    NOTHING,
    ROWS,
    TOGETHER,
    distances,
    off_by_means,
    one_support,
    settle,
    widen_interval,
    write_unknown_subproblem,
)
from sparsecv_mio.kernels.jit import NO_ITEMS, int_constant, njit
from sparsecv_mio.kernels.level_sets import (
    PredictedRows,
    bound_rows,
    largest_leverage,
    least_squares,
    leverages,
    most_squares,
    squares,
    squares_of_candidates,
)
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import (
    INSIDE,
    Accuracy,
    Effort,
    Fold,
    LevelSet,
    Node,
    Rounding,
    allowance,
    list_columns,
    screen,
    size_of_candidates,
)
from sparsecv_mio.kernels.perspective_newton import new_factor
from sparsecv_mio.kernels.reduced_forms import (
    SHARPNESS,
    Normal,
    fill_valid_diagonal,
    normalise,
    reduce_problem,
    sharpen,
)

FEW_STEPS = int_constant(3)  # maximum number of sharpening steps
SOLVE_STEPS = int_constant(400)  # maximum number of steps of a relaxation
ACCURACY = 1e-4  # accuracy of a relaxation, as a share of the gap to the incumbent
PASSES = 5  # maximum number of rounds of screening and reduction
DO_REDUCE, DO_ROWS, DO_TOGETHER, DO_ENDS = (1 << bit for bit in range(4))
SHARES = np.array([0.5, 0.7, 0.3, 0.85, 0.15, 0.95])


class BoundTask(NamedTuple):
    """Request for the bounds of a fold.

    Attributes
    ----------
    mode : int
        Sum of DO_REDUCE, DO_ROWS, DO_TOGETHER; with DO_ENDS all bounds of predictions are sharp, not only those that
        matter for the errors.
    rounds : int
        Maximum number of relaxations for a bound.
    sharp : int
        Maximum number of screened columns for sharpening w: O(f^3).
    tie : float
        Relative tolerance: supports up to `best (1 + tie)` must be covered.
    unit : float
        Unit of the rounding allowance.
    """

    mode: int
    rounds: int
    sharp: int
    tie: float
    unit: float


class RelaxedPoint(NamedTuple):
    """Solution of a relaxation in normal form: the point, its slope, its dual value and the smallest primal value."""

    b: np.ndarray
    g: np.ndarray
    dual: float
    primal: float


class Narrowed(NamedTuple):
    """The problem that screening leaves of a fold for one size.

    Attributes
    ----------
    status : (q,) int8 array
        Status of columns: FREE, INSIDE or DROPPED.
    free : int array
        Free columns; all following attributes refer to the problem on these.
    k : int
        Number of columns to choose; 0 or the number of free columns if one support is left.
    fold, normal, relaxed : Fold, Normal, RelaxedPoint
        Problem, its normal form, and the solution of its relaxation.
    lever : (N,) array
        Rounding of the held-out rows, as `reduce_problem` returns it.
    lower, level, slip : float
        Certified lower bound of f, a level above every optimum (inf if unknown), and the rounding allowance.
    """

    status: np.ndarray
    free: np.ndarray
    k: int
    fold: Fold
    normal: Normal
    relaxed: RelaxedPoint
    lever: np.ndarray
    lower: float
    level: float
    slip: float


@njit(cache=True, nogil=True)
def take_support(fold, status, free, b, k, incumbents, factor):
    """Try the included columns and the largest entries of b as the support of the size; keep it if it is better.

    Parameters
    ----------
    fold : Fold
        Problem.
    status : (q,) int8 array
        Status of columns.
    free : int array
        Free columns.
    b : (f,) array
        Point on the free columns.
    k : int
        Size of the support.
    incumbents : Incumbents
        Incumbents, improved in place.
    factor : Factor
        Work arrays for all columns.
    """
    index, supports = factor.columns, incumbents.supports
    q = fold.c.shape[0]
    size = NO_ITEMS
    for j in range(q):
        if status[j] == INSIDE:
            index[size] = j
            size += 1
    f = b.shape[0]
    taken = np.zeros(f)
    while size < k:
        pick = 0
        most = -1.0
        for a in range(f):
            if taken[a] == 0.0 and abs(b[a]) > most:
                most = abs(b[a])
                pick = a
        taken[pick] = 1.0
        index[size] = free[pick]
        size += 1
    value = support_value(fold.M, 0.0, fold.c, fold.yy, index, size, factor.work, factor.x)
    if value < incumbents.best[k]:
        incumbents.best[k] = value
        supports[k, :] = False
        for a in range(size):
            supports[k, index[a]] = True


@njit(cache=True, nogil=True)
def carry(free, left, w, b, root, share):
    """Return `share w`, and b in the units of M, on the columns `left` of `free`.

    Parameters
    ----------
    free, left : int arrays
        Ascending columns, the second a subset of the first.
    w, b : arrays
        Diagonal and point on `free`, b in normal form.
    root : array
        Factors from b to the units of M.
    share : float
        Factor on w.
    """
    f = left.shape[0]
    w_left = np.empty(f)
    b_left = np.empty(f)
    at = 0
    for a in range(free.shape[0]):
        if at < f and free[a] == left[at]:
            w_left[at] = share * w[a]
            b_left[at] = b[a] * root[a]
            at += 1
    return w_left, b_left


@njit(cache=True, nogil=True)
def narrow(fold, normal, relaxed, size, asked, prior, incumbents, factor):
    """Return the problem that screening leaves, starting from the relaxation of all columns.

    Parameters
    ----------
    fold, normal : Fold, Normal
        Problem and its normal form.
    relaxed : RelaxedPoint
        Solution of the relaxation of all columns.
    size : int
        Size.
    asked : BoundTask
        Request.
    prior : float
        Bound as in `Rounding`.
    incumbents : Incumbents
        Incumbents, improved in place.
    factor : Factor
        Work arrays for all columns.

    Returns
    -------
    Narrowed
        Remaining problem.
    """
    q = fold.c.shape[0]
    best = incumbents.best
    passes = PASSES if asked.mode & DO_REDUCE else 0
    free = np.arange(q)
    status = np.zeros(q, dtype=np.int8)
    k = size
    b, g, dual, primal = relaxed
    slip = allowance(Rounding(asked.unit, prior, 0.0, normal.root), b)
    take_support(fold, status, free, times(b, normal.root), size, incumbents, factor)
    level = best[size] * (1.0 + asked.tie) + slip
    lower = dual - slip
    now = fold
    lever = np.zeros(fold.X.shape[0])
    sharpened = q
    for _ in range(passes):
        if not np.isfinite(level) or screen(times(g, g), free.shape[0], free, k, level + slip - dual, status) == 0:
            break
        inside, left = np.empty(q, dtype=np.int64), np.empty(q, dtype=np.int64)
        i, f = list_columns(status, inside, left)
        inside, left = inside[:i], left[:f]
        k = size - i
        if k <= 0 or k >= f:
            if k < 0 or k > f:
                lower = np.inf  # screening included or dropped too many columns, which shows a bug
            free = left
            break
        fresh = f <= asked.sharp and f <= sharpened
        w, start = carry(free, left, now.w, b, normal.root, 0.98 if fresh else 1.0)
        free = left
        now, lever, ok = reduce_problem(fold, inside, free, w)
        if fresh:
            sharpened = f
            if sharpen(now.M, w, SHARPNESS, FEW_STEPS) < 0:
                ok = ok and fill_valid_diagonal(now.M, 0.9, w)
        if not ok:
            level = np.inf
            break
        normal = normalise(now)
        b, g = np.empty(f), np.empty(f)
        for a in range(f):
            start[a] /= normal.root[a]
            b[a] = start[a]
        stop = Accuracy(min(best[size], now.yy), ACCURACY, SOLVE_STEPS)
        dual, primal, _ = relax(normal.form, Node(free, NO_ITEMS, np.arange(f), f, k), stop, start, factor.x[:f], b, g)
        slip = max(slip, allowance(Rounding(asked.unit, prior, 0.0, normal.root), b))
        lower = max(lower, dual - slip)
        take_support(fold, status, free, times(b, normal.root), size, incumbents, factor)
        level = best[size] * (1.0 + asked.tie) + slip
    return Narrowed(status, free, k, now, normal, RelaxedPoint(b, g, dual, primal), lever, lower, level, slip)


@njit(cache=True, nogil=True)
def bound_together(left, goal, asked, rounding, low, high):
    """Return an interval of the sum of squares, narrowed by the bounds of all rows together; False if M is singular.

    Parameters
    ----------
    left : Narrowed
        Remaining problem.
    goal : float
        Level of the candidates.
    asked : BoundTask
        Request.
    rounding : Rounding
        Rounding allowance in normal form.
    low, high : (float, float)
        Bounds of the interval, each with the code of its origin.

    Returns
    -------
    low, high, ok
        Narrowed bounds, and False if M is singular.
    """
    fold, normal, relaxed = left.fold, left.normal, left.relaxed
    f = left.free.shape[0]
    K, ridge, ok = leverages(fold)
    if not ok:
        return low, high, False
    candidates = LevelSet(left.k, goal, relaxed.primal)
    effort = Effort(asked.rounds + 2, SOLVE_STEPS)
    least = least_squares(normal.form, candidates, normal.X, fold.u, relaxed.b, effort, rounding)
    longest = 0.0
    for j in range(f):
        longest = max(longest, normal.root[j])
    plain = Rounding(rounding.unit, rounding.prior, rounding.norm * longest, np.ones(f))
    centre = times(relaxed.b, normal.root)
    most = most_squares(fold, candidates, largest_leverage(K), centre, SHARES, SOLVE_STEPS, plain)
    # the ridge ball takes one step and is tighter if the perspective is weak
    least_of_ball, most_of_ball = squares_of_candidates(fold, ridge, K, goal, plain)
    off = rounding.unit * rounding.prior * np.sqrt(np.dot(left.lever, left.lever))
    least, most = widen_interval(max(least, least_of_ball), min(most, most_of_ball), off)
    if least > low[0]:
        low = least, TOGETHER
    if most < high[0]:
        high = most, TOGETHER
    return low, high, True


@njit(cache=True, nogil=True)
def bound_fold(fold, sizes, asked, incumbents, out, rows):
    """Bound one fold at one gamma for every size; return the number of contradictions.

    Parameters
    ----------
    fold : Fold
        Problem with `M_jj = 1`.
    sizes : int array
        Rising sizes, each in 1..q-1.
    asked : BoundTask
        Request.
    incumbents : Incumbents
        Incumbents, improved in place.
    out : (len(sizes), 8) array
        Array to fill with: lower bound of f, its level ubar, lower and upper bound of `||u - X b*||^2`, the codes of
        these two bounds, the estimate at the relaxation's solution, number of free columns left.
    rows : (len(sizes), N, 2) array
        Array to fill with bounds of the predictions `x_i'b*`, infinite if not requested.

    Returns
    -------
    int
        Number of sizes whose lower bound contradicts the incumbent; always 0 unless there is a bug.

    Notes
    -----
    A size costs a relaxation that starts from the previous size, a few on the screened columns, and 2 N (rounds) for
    the rows.
    """
    u, yy, best = fold.u, fold.yy, incumbents.best
    q = fold.c.shape[0]
    N = fold.X.shape[0]
    factor = new_factor(q, q)
    everything = np.arange(q)
    normal = normalise(fold)
    reach_of = np.empty(q)
    for j in range(q):
        reach_of[j] = 1.0 / fold.w[j]
    norm = np.sqrt(yy)  # ||b*|| in normal form: b*'diag(w) b* <= b*'M b* <= yy
    start = np.zeros(q)
    g = np.empty(q)
    root_g = np.empty(q)
    root_b = np.zeros(q)
    moved = np.full((N, 2, q), np.nan)
    lo = np.empty(N)
    hi = np.empty(N)
    broken = 0
    for place in range(sizes.shape[0]):
        k = sizes[place]
        copy_vector(root_b, start)
        stop = Accuracy(min(best[k], yy), ACCURACY, SOLVE_STEPS)
        node = Node(everything, NO_ITEMS, everything, q, k)
        dual, primal, _ = relax(normal.form, node, stop, start, g, root_b, root_g)
        prior = size_of_candidates(yy, reach_of, k)
        left = narrow(fold, normal, RelaxedPoint(root_b, root_g, dual, primal), k, asked, prior, incumbents, factor)
        if left.lower > left.level:
            broken += 1
        write_unknown_subproblem(out[place], rows[place], min(left.lower, best[k]))
        f = left.free.shape[0]
        out[place, 7] = f
        if not np.isfinite(left.level):
            continue
        out[place, 1] = left.level
        rounding = Rounding(asked.unit, prior, norm, left.normal.root)
        if left.k <= 0 or left.k >= f:
            if one_support(fold, left.status, k, rounding, lo, hi, factor):
                low, high = distances(u, lo, hi)
                out[place, 6] = 0.5 * (low + high)
                low, high = widen_interval(low, high, off_by_means(N, rounding))
                settle(out[place], low, high, EXACT, EXACT)
                out[place, 7] = 0.0
                for i in range(N):
                    rows[place, i, 0] = lo[i]
                    rows[place, i, 1] = hi[i]
            continue
        out[place, 6] = squares(left.normal.X, left.fold.u, left.relaxed.b)
        goal = left.level + left.slip
        low, high, low_code, high_code = 0.0, np.inf, NOTHING, NOTHING
        if asked.mode & DO_ROWS:
            targets, shift = np.empty(N), np.empty(N)
            for i in range(N):
                targets[i] = np.nan if asked.mode & DO_ENDS else left.fold.u[i]
                shift[i] = u[i] - left.fold.u[i]
            wanted = PredictedRows(left.normal.X, shift, targets, left.free, moved)
            effort = Effort(asked.rounds, SOLVE_STEPS)
            candidates = LevelSet(left.k, goal, left.relaxed.dual)
            bound_rows(left.normal.form, candidates, wanted, left.relaxed.b, effort, rounding, rows[place])
            for i in range(N):
                off = rounding.unit * rounding.prior * left.lever[i]
                rows[place, i, 0] -= off
                rows[place, i, 1] += off
                lo[i], hi[i] = rows[place, i, 0], rows[place, i, 1]
            low, high = distances(u, lo, hi)
            low_code, high_code = ROWS, ROWS
        ok = True
        if asked.mode & DO_TOGETHER:
            (low, low_code), (high, high_code), ok = bound_together(
                left, goal, asked, rounding, (low, low_code), (high, high_code)
            )
        if ok and low > high:
            if low > high * (1.0 + 1e-6):
                broken += 1
            low = high
        low, high = widen_interval(low, high, off_by_means(N, rounding))
        settle(out[place], low, high, low_code, high_code)
    return broken
