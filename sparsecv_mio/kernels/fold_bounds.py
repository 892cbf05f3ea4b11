"""Every size of one fold: relaxation, incumbent, screening, reduction and the bounds of the held-out error.

The columns of M come scaled to `M_jj = 1`. For a size k: relax on all columns; round; screen with the dual point;
minimise out what must be in, forget what must be out, sharpen w on what is left, and again while that helps. What is
left bounds the predictions and the sum of squares (docs/theory/bounds.md 3 to 5). A single support is an exact answer.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.conic import (
    allowance,
    gershgorin,
    least_squares,
    most_squares,
    squares,
    squares_over_ball,
)
from sparsecv_mio.kernels.curvature import dominated, sharpen
from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, put, solve_lower, support_value, times
from sparsecv_mio.kernels.fold_rows import bound_rows
from sparsecv_mio.kernels.k_support import top_sum
from sparsecv_mio.kernels.perspective import relax
from sparsecv_mio.kernels.perspective_newton import NONE
from sparsecv_mio.kernels.reduction import normalise, reduce_problem
from sparsecv_mio.kernels.screening import screen
from sparsecv_mio.kernels.status import FREE, INSIDE, list_columns

SHARPNESS = 20.0
FEW_STEPS = np.int64(3)  # of sharpening
SHARP_COLUMNS = 300  # more columns than this keep the w they come with: sharpening costs O(f^3)
SOLVE_STEPS = np.int64(400)
ACCURACY = 1e-4  # of the gap to the incumbent
PASSES = 5
WORTH = 1.0
NOTHING, ROWS, TOGETHER, EXACT = 0.0, 1.0, 2.0, 3.0  # which bound an end comes from; floats, as where they are kept
DO_REDUCE, DO_ROWS, DO_TOGETHER, DO_ENDS = 1, 2, 4, 8
SHARES = np.array([0.5, 0.7, 0.3, 0.85, 0.15, 0.95])


@njit(cache=True, nogil=True)
def take_support(M, c, yy, status, free, b, k, best, supports, work, x, index):
    """Try the columns inside plus the largest entries of b as the support of the size; keep it if it is better."""
    q = c.shape[0]
    size = NONE
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
    value = support_value(M, 0.0, c, yy, index, size, work, x)
    if value < best[k]:
        best[k] = value
        supports[k, :] = False
        for a in range(size):
            supports[k, index[a]] = True


@njit(cache=True, nogil=True)
def leverages(M, c, X):
    """`X M^{-1} X'`, `M^{-1}c` and False if M is not positive definite. O(f^3 / 3 + N f^2 + N^2 f)."""
    f = M.shape[0]
    N = X.shape[0]
    L = M.copy()
    Z = X.copy()
    K = np.zeros((N, N))
    beta = c.copy()
    if not cholesky_in_place(L, f):
        return K, beta, False
    cholesky_solve(L, beta, f)
    for e in range(N):
        solve_lower(L, Z[e], f)
    for e in range(N):
        for a in range(e + 1):
            s = 0.0
            for i in range(f):
                s += Z[e, i] * Z[a, i]
            K[e, a] = s
            K[a, e] = s
    return K, beta, True


@njit(cache=True, nogil=True)
def one_support(M, c, status, k, X, u, prior, rounding, lo, hi, work, x, index):
    """Predictions of the only support left (INSIDE, and FREE if all of those fit) into `lo, hi`. False if singular."""
    q = c.shape[0]
    size = NONE
    inside = 0
    for j in range(q):
        if status[j] == INSIDE:
            inside += 1
    for j in range(q):
        if status[j] == INSIDE or (status[j] == FREE and inside < k):
            index[size] = j
            size += 1
    if not np.isfinite(support_value(M, 0.0, c, 0.0, index, size, work, x)):
        return False
    # the error of the solution: |M_S^{-1}| (rounding (prior)) from the factor that support_value left in work
    for e in range(X.shape[0]):
        pred = 0.0
        lever = 0.0
        part = np.empty(size)
        for a in range(size):
            pred += X[e, index[a]] * x[a]
            part[a] = X[e, index[a]]
        cholesky_solve(work, part, size)
        for a in range(size - 1, -1, -1):
            lever += abs(part[a])
        error = abs(pred) * rounding
        for a in range(size):
            error += rounding * abs(X[e, index[a]] * x[a])
        error += rounding * lever * prior
        lo[e] = pred - error
        hi[e] = pred + error
    return True


@njit(cache=True, nogil=True)
def distances(u, lo, hi):
    """Smallest and largest `sum (u_i - p_i)^2` over `p_i` in `[lo_i, hi_i]`."""
    low = 0.0
    high = 0.0
    for i in range(u.shape[0]):
        near = max(lo[i] - u[i], u[i] - hi[i], 0.0)
        far = max(u[i] - lo[i], hi[i] - u[i])
        low += near * near
        high += far * far
    return low, high


@njit(cache=True, nogil=True)
def blurred(low, high, N, rounding, prior):
    """Widen an interval of `||u - X b*||^2` by the rounding of the means that u and X are about.

    With the rounding unit `eps (n + 4q + 64) loss` (docs/theory/bounds.md 7) an entry of `u - X b*` is off by at most
    `4 eps loss (||y|| + sum |b*_j|) / sqrt(n) <= rounding prior / 10`.
    """
    blur = 0.1 * rounding * prior * np.sqrt(N)
    near = max(np.sqrt(low) - blur, 0.0)
    return near * near, (np.sqrt(high) + blur) ** 2


@njit(cache=True, nogil=True)
def nothing(cell, ends, lower):
    """Write a cell about whose predictions nothing is known."""
    cell[0] = lower
    cell[1] = np.inf
    cell[2] = 0.0
    cell[3] = np.inf
    cell[4] = NOTHING
    cell[5] = NOTHING
    cell[6] = np.nan
    ends[:, 0] = -np.inf
    ends[:, 1] = np.inf


@njit(cache=True, nogil=True)
def settle(cell, low, high, low_code, high_code):
    """Write the interval of a cell and where its ends come from."""
    cell[2] = low
    cell[3] = high
    cell[4] = low_code
    cell[5] = high_code


@njit(cache=True, nogil=True)
def carry(free, left, w, b, root, share):
    """`share w`, and b in the units of M, on the columns `left` of `free`."""
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
def narrow(
    M, c, yy, X, u, w, G, cn, Xn, root, b, g, dual, primal, k, passes, sharp, tie, rounding, prior, best, supports
):
    """From the relaxation of all columns (b, g, dual, primal in normal form) to what screening leaves.

    Returns
    -------
    status : (q,) int8
        FREE, INSIDE or DROPPED.
    free : int array
        The free columns; `M, c, yy, X, u, w` below are the problem on them.
    k, M, c, yy, X, u, w, G, cn, Xn, root, b, dual, primal
        That problem, its normal form and its relaxation; k is 0 or the number of free columns when one support is left.
    lower, level, slip : float
        Certified lower bound of f, the level that every optimum is below (inf: lost), rounding allowance.
    """
    q = c.shape[0]
    work = np.empty((q, q))
    x = np.empty(q)
    index = np.empty(q, dtype=np.int64)
    free = np.arange(q)
    status = np.zeros(q, dtype=np.int8)
    size = k
    slip = allowance(rounding, prior, root, b)
    take_support(M, c, yy, status, free, times(b, root), size, best, supports, work, x, index)
    level = best[size] * (1.0 + tie) + slip
    lower = dual - slip
    now_M, now_c, now_yy, now_X, now_u, now_w = M, c, yy, X, u, w
    sharpened = q
    for _ in range(passes):
        if not np.isfinite(level) or screen(
            times(g, g), free.shape[0], free, k, level + slip - dual, status
        ) == 0:
            break
        inside, left = np.empty(q, dtype=np.int64), np.empty(q, dtype=np.int64)
        i, f = list_columns(status, inside, left)
        inside, left = inside[:i], left[:f]
        k = size - i
        if k <= 0 or k >= f:
            if k < 0 or k > f:
                lower = np.inf  # more columns must be in, or out, than can be: a bug
            free = left
            break
        fresh = f <= sharp and f <= WORTH * sharpened
        now_w, start = carry(free, left, now_w, b, root, 0.98 if fresh else 1.0)
        free = left
        now_M, now_c, now_yy, now_X, now_u, ok = reduce_problem(M, c, yy, X, u, inside, free)
        if fresh:
            sharpened = f
            if sharpen(now_M, now_w, SHARPNESS, FEW_STEPS) < 0:
                ok = ok and dominated(now_M, 0.9, now_w)
        if not ok:
            level = np.inf
            break
        G, cn, Xn, root = normalise(now_M, now_c, now_X, now_w)
        b, g = np.empty(f), np.empty(f)
        for a in range(f):
            start[a] /= root[a]
            b[a] = start[a]
        bar = min(best[size], now_yy)
        dual, primal, _ = relax(
            G, cn, now_yy, gershgorin(G), free, NONE, np.arange(f), f, k, bar, ACCURACY, SOLVE_STEPS, start, x[:f], b, g
        )
        slip = max(slip, allowance(rounding, prior, root, b))
        lower = max(lower, dual - slip)
        take_support(M, c, yy, status, free, times(b, root), size, best, supports, work, x, index)
        level = best[size] * (1.0 + tie) + slip
    return (
        status, free, k, now_M, now_c, now_yy, now_X, now_u, now_w, G, cn, Xn, root, b, dual, primal, lower, level, slip
    )  # fmt: skip


@njit(cache=True, nogil=True)
def run(M, c, yy, X, u, w, sizes, work_mode, rounds, sharp, tie, rounding, best, supports, out, rows):
    """Bound one fold at one gamma for every size.

    Parameters
    ----------
    M, c, yy : (q, q), (q,), float
        Moments and penalty of the training rows, `M_jj = 1`.
    X, u : (N, q), (N,)
        Held-out rows about the training means.
    w : (q,) array
        A valid diagonal.
    sizes : int array
        Rising, each in 1..q-1.
    work_mode : int
        DO_REDUCE, DO_ROWS, DO_TOGETHER added up; with DO_ENDS every end of a prediction is sharp, not only those that
        tell about its error.
    rounds : int
        Relaxations a bound may take.
    sharp : int
        Sharpen w on what screening leaves if that is at most this many columns: O(f^3).
    tie : float
        Supports up to `best (1 + tie)` must be covered.
    rounding : float
        Unit of the rounding allowance.
    best, supports : (q + 1,), (q + 1, q) bool
        Incumbents by size, improved in place.
    out : (len(sizes), 8) array
        Filled with: lower bound of f, its level ubar, lower and upper end of `||u - X b*||^2`, the codes of these two
        ends, the estimate at the relaxation's solution, columns left free.
    rows : (len(sizes), N, 2) array
        Ends of the predictions `x_i'b*`, infinite where not asked for.

    Returns
    -------
    int
        Sizes whose lower bound contradicts its incumbent; always 0 unless there is a bug.

    Notes
    -----
    A size costs a relaxation warm from the size before, a few on what screening leaves, and 2 N (rounds) for the rows.
    """
    q = c.shape[0]
    N = X.shape[0]
    work = np.empty((q, q))
    x = np.empty(q)
    index = np.empty(q, dtype=np.int64)
    everything = np.arange(q)
    G, cn, Xn, root = normalise(M, c, X, w)
    top = gershgorin(G)
    root_yy = np.sqrt(yy)
    reach_of = np.empty(q)
    for j in range(q):
        reach_of[j] = 1.0 / w[j]
    norm = root_yy  # ||b*|| in normal form: b*'diag(w) b* <= b*'M b* <= yy
    start = np.zeros(q)
    g = np.empty(q)
    root_g = np.empty(q)
    root_b = np.zeros(q)
    moved = np.full((N, 2, q), np.nan)
    lo = np.empty(N)
    hi = np.empty(N)
    passes = PASSES if work_mode & DO_REDUCE else 0
    broken = 0
    for place in range(sizes.shape[0]):
        k = sizes[place]
        put(root_b, start)
        dual, primal, _ = relax(
            G,
            cn,
            yy,
            top,
            everything,
            NONE,
            everything,
            q,
            k,
            min(best[k], yy),
            ACCURACY,
            SOLVE_STEPS,
            start,
            g,
            root_b,
            root_g,
        )
        prior = root_yy * (1.0 + 2.0 * np.sqrt(top_sum(reach_of, k)))
        (
            status, free, kf, M_f, c_f, yy_f, X_f, u_f, w_f, G_f, cn_f, Xn_f, root_f, b_f, dual_f, primal_f,
            lower, level, slip,
        ) = narrow(
            M, c, yy, X, u, w, G, cn, Xn, root, root_b, root_g, dual, primal, k, passes, sharp, tie, rounding, prior,
            best, supports,
        )  # fmt: skip
        if lower > level:
            broken += 1
        nothing(out[place], rows[place], min(lower, best[k]))
        out[place, 7] = free.shape[0]
        if not np.isfinite(level):
            continue
        out[place, 1] = level
        f = free.shape[0]
        if kf <= 0 or kf >= f:
            if one_support(M, c, status, k, X, u, prior, rounding, lo, hi, work, x, index):
                low, high = distances(u, lo, hi)
                out[place, 6] = 0.5 * (low + high)
                low, high = blurred(low, high, N, rounding, prior)
                settle(out[place], low, high, EXACT, EXACT)
                out[place, 7] = 0.0
                for i in range(N):
                    rows[place, i, 0] = lo[i]
                    rows[place, i, 1] = hi[i]
            continue
        out[place, 6] = squares(Xn_f, u_f, b_f)
        goal = level + slip
        low, high, low_code, high_code = 0.0, np.inf, NOTHING, NOTHING
        if work_mode & DO_ROWS:
            targets, shift = np.empty(N), np.empty(N)
            for i in range(N):
                targets[i] = np.nan if work_mode & DO_ENDS else u_f[i]
                shift[i] = u[i] - u_f[i]
            bound_rows(
                G_f, cn_f, yy_f, Xn_f, shift, targets, kf, goal, dual_f, b_f, root_f, free, prior, norm, rounding,
                rounds, SOLVE_STEPS, moved, rows[place],
            )  # fmt: skip
            for i in range(N):
                lo[i], hi[i] = rows[place, i, 0], rows[place, i, 1]
            low, high = distances(u, lo, hi)
            low_code, high_code = ROWS, ROWS
        if work_mode & DO_TOGETHER:
            K, ridge, ok = leverages(M_f, c_f, X_f)
            if not ok:
                low, high = blurred(low, high, N, rounding, prior)
                settle(out[place], low, high, low_code, high_code)
                continue
            value = least_squares(
                G_f,
                cn_f,
                yy_f,
                kf,
                Xn_f,
                u_f,
                goal,
                primal_f,
                b_f,
                rounds + 2,
                SOLVE_STEPS,
                root_f,
                prior,
                norm,
                rounding,
            )
            if value > low:
                low, low_code = value, TOGETHER
            trace, longest = 0.0, 0.0
            for i in range(N):
                trace += K[i, i]
            unit = np.ones(f)
            for j in range(f):
                longest = max(longest, root_f[j])
            reach = np.linalg.eigvalsh(K)[-1] * (1.0 + 1e-9) + 1e-14 * trace + 1e-300
            value = most_squares(
                M_f, w_f, c_f, yy_f, kf, X_f, u_f, goal, primal_f, reach, times(b_f, root_f), SHARES, SOLVE_STEPS, unit,
                prior, norm * longest, rounding,
            )  # fmt: skip
            if value < high:
                high, high_code = value, TOGETHER
            # the ridge ball: one step, and the tighter one where the perspective is weak
            slip_r = allowance(rounding, prior, unit, ridge)
            radius = goal + slip_r - (yy_f - np.dot(c_f, ridge))
            residual = np.dot(X_f, ridge)
            for i in range(N):
                residual[i] = u_f[i] - residual[i]
            value, most = squares_over_ball(K, residual, max(radius, 0.0))
            if value > low:
                low, low_code = value, TOGETHER
            if most < high:
                high, high_code = most, TOGETHER
        if low > high:
            if low > high * (1.0 + 1e-6):
                broken += 1
            low = high
        low, high = blurred(low, high, N, rounding, prior)
        settle(out[place], low, high, low_code, high_code)
    return broken
