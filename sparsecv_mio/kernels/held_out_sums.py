"""Sums of squared held-out errors: for given supports, by refits, or as an interval for all supports of a fold."""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, gather, support_value
from sparsecv_mio.kernels.jit import NO_ITEMS, njit
from sparsecv_mio.kernels.nodes import FREE, INSIDE

ROW_ROUNDING = 4.0e-16  # relative rounding of a term of a prediction
MOST_LOST = 0.25  # maximum share of the smallest eigenvalue lost to rounding for a fit from moments
MEAN_ROUNDING = 1.0e-15  # relative rounding of means in a sum of squares from moments, times the root of the rows


class SupportRows(NamedTuple):
    """Supports: the first `sizes[r]` entries of row r of `columns` (k, s)."""

    columns: np.ndarray
    sizes: np.ndarray


class RidgeFits(NamedTuple):
    """Ridge fits of k supports, with bounds on their rounding.

    Attributes
    ----------
    beta, spread : (k, s) arrays
        Coefficients and a bound on the error of each, see `refit_supports`.
    value, value_error : (k,) arrays
        f(S) and a bound on its error; inf if M_S is not positive definite, or rounding hides whether it is.
    """

    beta: np.ndarray
    spread: np.ndarray
    value: np.ndarray
    value_error: np.ndarray


class HeldOutSums(NamedTuple):
    """Held-out sums of squares of k supports and bounds on their rounding: (k,) arrays."""

    error: np.ndarray
    rounding: np.ndarray


class HeldOutMoments(NamedTuple):
    """Moments of `rows` test rows about the training means."""

    Q: np.ndarray
    c: np.ndarray
    yy: float
    rows: int


def new_scores(k):
    """Return arrays for the sums of k supports."""
    return HeldOutSums(np.empty(k), np.empty(k))


@njit(cache=True, nogil=True)
def refit_supports(Q, c, yy, penalty, listed, unit, fits):
    """Fill the ridge fit of every support, refined once, with bounds on its rounding error.

    Parameters
    ----------
    Q, c, yy, penalty : (q, q), (q,), float, (q,)
        Moments of the training rows, and penalty.
    listed : SupportRows
        Supports.
    unit : float
        Relative error of the moments (a few ulp).
    fits : RidgeFits
        Fits to fill.

    Notes
    -----
    O(size^3) for each support. The terms of a product of two columns may cancel, so its error is at most `unit` times
    the product of their norms `d_j = sqrt(Q_jj)`. In units where the diagonal of M_S is 1, its smallest eigenvalue is
    at least `1 / t`, `t = sum_j M_jj (M^{-1})_jj`, and the largest eigenvalue of the rounding at most `size unit`. Up
    to `loss = size unit t = 1/4` the exact M_S is above `(1 - loss) M_S`. So with `reach = sqrt(yy) + d' |beta|` and
    `load = unit (d reach + penalty |beta|)` the coefficients have errors of at most `|M_S^{-1}| load / (1 - loss)`. The
    error of f is at most `unit reach^2 + unit |beta|' diag(penalty) |beta|`, the rounding of f at beta, plus
    `load' |M_S^{-1}| load / (1 - loss)`, the amount that f may still drop. For a larger loss nothing is known.
    """
    supports, sizes = listed
    beta, spread, value, value_error = fits
    top = supports.shape[1]
    L = np.empty((top, top))
    x = np.empty(top)
    load = np.empty(top)
    for r in range(supports.shape[0]):
        n = sizes[r]
        gather(Q, supports[r], n, L)
        for a in range(n):
            L[a, a] += penalty[supports[r, a]]
            x[a] = c[supports[r, a]]
        if not cholesky_in_place(L, n):
            value[r] = np.inf
            value_error[r] = np.inf
            for a in range(n):
                beta[r, a] = 0.0
                spread[r, a] = np.inf
            continue
        cholesky_solve(L, x, n)
        for a in range(n):
            beta[r, a] = x[a]
        for a in range(n):
            i = supports[r, a]
            s = c[i] - penalty[i] * beta[r, a]
            for b in range(n):
                s -= Q[i, supports[r, b]] * beta[r, b]
            x[a] = s
        cholesky_solve(L, x, n)
        for a in range(n):
            beta[r, a] += x[a]
        total = yy
        reach = length = np.sqrt(max(yy, 0.0))
        for a in range(n):
            i = supports[r, a]
            total -= c[i] * beta[r, a]
            reach += np.sqrt(max(Q[i, i], 0.0)) * abs(beta[r, a])
            spread[r, a] = 0.0
        error = length * reach
        for a in range(n):
            i = supports[r, a]
            s = np.sqrt(max(Q[i, i], 0.0)) * reach + penalty[i] * abs(beta[r, a])
            load[a] = unit * s
            error += s * abs(beta[r, a])
        value[r] = total
        loss = 0.0
        for b in range(n):
            for a in range(n):
                x[a] = 0.0
            x[b] = 1.0
            cholesky_solve(L, x, n)
            i = supports[r, b]
            loss += n * unit * (Q[i, i] + penalty[i]) * x[b]
            for a in range(n):
                spread[r, a] += abs(x[a]) * load[b]
        drop = 0.0
        for a in range(n):
            spread[r, a] = spread[r, a] / (1.0 - loss) if loss <= MOST_LOST else np.inf
            drop += load[a] * spread[r, a]
        value_error[r] = unit * error + drop if loss <= MOST_LOST else np.inf


@njit(cache=True, nogil=True)
def held_out_rows(V, r_test, level, listed, fits, scores):
    """Fill the held-out sums of squares from the test rows, and bounds on their rounding.

    Parameters
    ----------
    V, r_test : (m, q), (m,) arrays
        Test rows about the training means.
    level : (q + 1,) array
        Accuracy of the means of the columns and, last, of the response, in ulps.
    listed : SupportRows
        Supports.
    fits : RidgeFits
        Fits of the supports.
    scores : HeldOutSums
        Sums to fill.

    Notes
    -----
    O(rows size) for each support.
    """
    supports, sizes = listed
    beta, spread = fits.beta, fits.spread
    error, rounding = scores
    for s in range(supports.shape[0]):
        total = 0.0
        bound = 0.0
        base = level[-1]
        for a in range(sizes[s]):
            base += level[supports[s, a]] * abs(beta[s, a])
        for i in range(V.shape[0]):
            e = r_test[i]
            d = abs(r_test[i]) + base
            slip = 0.0
            for a in range(sizes[s]):
                v = V[i, supports[s, a]]
                e -= v * beta[s, a]
                d += abs(v * beta[s, a])
                slip += abs(v) * spread[s, a]
            slip += ROW_ROUNDING * (sizes[s] + 4) * d
            total += e * e
            bound += (2.0 * abs(e) + slip) * slip
        error[s] = total
        rounding[s] = bound + ROW_ROUNDING * total


@njit(cache=True, nogil=True)
def held_out_moments(moments, level, listed, unit, fits, scores):
    """Fill the held-out sums of squares from the moments of the test rows, and bounds on their rounding.

    Parameters
    ----------
    moments : HeldOutMoments
        Moments of the test rows.
    level : (q + 1,) array
        Accuracy of the means of the columns and, last, of the response, in ulps.
    listed : SupportRows
        Supports.
    unit : float
        Relative error of the moments.
    fits : RidgeFits
        Fits of the supports.
    scores : HeldOutSums
        Sums to fill.

    Notes
    -----
    O(size^2) for each support.
    """
    Q, c, yy, rows = moments
    supports, sizes = listed
    beta, spread = fits.beta, fits.spread
    error, rounding = scores
    for s in range(supports.shape[0]):
        n = sizes[s]
        total = yy
        reach = np.sqrt(yy)
        base = level[-1]
        for a in range(n):
            i = supports[s, a]
            base += level[i] * abs(beta[s, a])
            reach += np.sqrt(Q[i, i]) * abs(beta[s, a])
        bound = unit * reach * reach  # the terms of Q and c may cancel
        for a in range(n):
            i = supports[s, a]
            g = -c[i]
            wide = 0.0
            for b in range(n):
                j = supports[s, b]
                g += Q[i, j] * beta[s, b]
                wide += abs(Q[i, j]) * spread[s, b]
            total += (g - c[i]) * beta[s, a]
            bound += (2.0 * (abs(g) + unit * np.sqrt(Q[i, i]) * reach) + wide) * spread[s, a]
        base *= MEAN_ROUNDING * np.sqrt(float(rows))
        error[s] = max(total, 0.0)
        rounding[s] = bound + (2.0 * np.sqrt(error[s]) + base) * base


NOTHING, ROWS, TOGETHER, EXACT = map(float, range(4))  # codes of the origin of a bound; floats, like their array


@njit(cache=True, nogil=True)
def one_support(fold, status, k, rounding, lo, hi, factor):
    """Fill `lo, hi` with the predictions of the only support left (INSIDE, and FREE if all fit); False if singular.

    A prediction is widened by the rounding of its own sum and by `x'M_S^{-1}` times that of the moments.

    Parameters
    ----------
    fold : Fold
        Problem.
    status : (q,) int8 array
        Status of columns.
    k : int
        Size of the supports.
    rounding : Rounding
        Rounding allowance.
    lo, hi : (N,) arrays
        Arrays to fill.
    factor : Factor
        Work arrays for all columns.
    """
    X, x, index, work = fold.X, factor.x, factor.columns, factor.work
    unit = rounding.unit
    q = fold.c.shape[0]
    size = NO_ITEMS
    inside = 0
    for j in range(q):
        if status[j] == INSIDE:
            inside += 1
    for j in range(q):
        if status[j] == INSIDE or (status[j] == FREE and inside < k):
            index[size] = j
            size += 1
    if not np.isfinite(support_value(fold.M, 0.0, fold.c, 0.0, index, size, work, x)):
        return False
    # the error of the solution is |M_S^{-1}| (rounding (prior)), with the factor that support_value left in work
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
        error = abs(pred) * unit
        for a in range(size):
            error += unit * abs(X[e, index[a]] * x[a])
        error += unit * lever * rounding.prior
        lo[e] = pred - error
        hi[e] = pred + error
    return True


@njit(cache=True, nogil=True)
def distances(u, lo, hi):
    """Return the smallest and largest `sum (u_i - p_i)^2` over `p_i` in `[lo_i, hi_i]`.

    Parameters
    ----------
    u : (N,) array
        Targets.
    lo, hi : (N,) arrays
        Bounds.
    """
    low = 0.0
    high = 0.0
    for i in range(u.shape[0]):
        near = max(lo[i] - u[i], u[i] - hi[i], 0.0)
        far = max(u[i] - lo[i], hi[i] - u[i])
        low += near * near
        high += far * far
    return low, high


@njit(cache=True, nogil=True)
def off_by_means(N, rounding):
    """Return a bound on the error of `u - X b*`, N entries, by the rounding of the means that were subtracted.

    With the rounding unit `eps (n + 4q + 64) loss` (docs/theory/bounds.md, section 7) an entry has an error of at most
    `4 eps loss (||y|| + sum |b*_j|) / sqrt(n) <= unit prior / 10`.

    Parameters
    ----------
    N : int
        Number of held-out rows.
    rounding : Rounding
        Rounding allowance.
    """
    return 0.1 * rounding.unit * rounding.prior * np.sqrt(N)


@njit(cache=True, nogil=True)
def widen_interval(low, high, off):
    """Return an interval of `||u - X b*||^2`, widened for an error of that vector.

    Parameters
    ----------
    low, high : float
        Bounds.
    off : float
        Bound on the length of the error.
    """
    near = max(np.sqrt(low) - off, 0.0)
    return near * near, (np.sqrt(high) + off) ** 2


@njit(cache=True, nogil=True)
def write_unknown_subproblem(cell, ends, lower):
    """Write a subproblem whose predictions have no bounds.

    Parameters
    ----------
    cell : (8,) array
        Row as in `fold_bounds.run`; filled except for its last entry.
    ends : (N, 2) array
        Array to fill with infinite bounds.
    lower : float
        Lower bound of f.
    """
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
    """Write the interval of a subproblem and the origins of its bounds.

    Parameters
    ----------
    cell : (8,) array
        Row as in `fold_bounds.run`.
    low, high : float
        Bounds.
    low_code, high_code : float
        Codes of their origins.
    """
    cell[2] = low
    cell[3] = high
    cell[4] = low_code
    cell[5] = high_code
