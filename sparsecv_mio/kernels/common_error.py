"""The cross-validation error of a support that every fold shares, from its fit on all rows (theory section 5).

With `e = r - V_S beta` and `H = V_S M_S^{-1} V_S' + base root root'`, leaving the rows N out of the fit makes their
residual `(I - H_NN)^{-1} e_N`: the error of the support is the sum of the squares over all folds.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, dot, invert_lower
from sparsecv_mio.kernels.leave_out import EPS

BLOCK = 256  # rows worked on at once where every fold is one


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _residuals(V, r, beta, support, size, lo, hi, e):
    """`e = r - V_S beta` of the rows lo..hi."""
    for i in range(lo, hi):
        e[i - lo] = r[i]
    for c in range(size):
        b, j = beta[c], support[c]
        for i in range(lo, hi):
            e[i - lo] -= V[i, j] * b


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _half_rows(V, half, support, size, lo, hi, Z):
    """`Z = half V_S'` of the rows lo..hi, a column a row."""
    for c in range(size):
        for i in range(hi - lo):
            Z[c, i] = 0.0
        for k in range(c + 1):
            f, j = half[c, k], support[k]
            for i in range(lo, hi):
                Z[c, i - lo] += f * V[i, j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _slips(rows, listed, a, lo, hi, slip):
    """Bounds on the rounding errors of the residuals of the support number a, of the rows lo..hi."""
    V, r, root = rows.V, rows.r, rows.root
    n, level = listed.sizes[a], listed.level[a]
    unit = (4 * n + 16) * EPS
    for i in range(lo, hi):
        slip[i - lo] = level * root[i] + unit * abs(r[i])
    for c in range(n):
        j, f = listed.supports[a, c], listed.spread[a, c] + unit * abs(listed.beta[a, c])
        for i in range(lo, hi):
            slip[i - lo] += abs(V[i, j]) * f


@njit(cache=True, nogil=True)
def common_errors_by_row(rows, base, listed, limit, total, error):
    """`common_errors` where every fold is one row. O(rows s^2 / 2) a support.

    Parameters
    ----------
    rows : HeldOutRows
        V by columns; a row a fold.
    base, listed, limit, total, error
        As for `common_errors`.
    """
    V, r, root, top = rows.V, rows.r, rows.root, listed.supports.shape[1]
    e, h, slip, Z = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty((max(top, 1), BLOCK))
    for a in range(len(listed.sizes)):
        n, support, half = listed.sizes[a], listed.supports[a], listed.half[a]
        total[a], error[a] = 0.0, 0.0
        lo = np.int64(0)  # a plain 0 is a type of its own: what is called with it would be compiled twice
        while lo < len(r) and total[a] - error[a] <= limit:
            hi = min(lo + BLOCK, len(r))
            _residuals(V, r, listed.beta[a], support, n, lo, hi, e)
            _half_rows(V, half, support, n, lo, hi, Z)
            _slips(rows, listed, a, lo, hi, slip)
            for i in range(hi - lo):
                h[i] = base * root[lo + i] * root[lo + i]
            for c in range(n):
                for i in range(hi - lo):
                    h[i] += Z[c, i] * Z[c, i]
            for i in range(hi - lo):
                gap = 1.0 - h[i]
                if not gap > 0.0:
                    error[a] = np.inf
                    continue
                d = e[i] / gap
                wide = (slip[i] + listed.blur[a] * h[i] * abs(d)) / gap
                total[a] += d * d
                error[a] += (2.0 * abs(d) + wide) * wide + 32.0 * EPS * d * d
            lo = hi
        error[a] += 2.0 * len(r) * EPS * total[a]


@njit(cache=True, nogil=True)
def _left_out(Z, e, x, b, n, d, H, inverse):
    """`d = (I - Z'Z)^{-1} e` of a fold with b rows, Z of n rows, x = Z e; returns a bound on the inverse, or inf.

    By the rows of the fold, or `d = e + Z' (I - Z Z')^{-1} x` by those of Z, whichever are fewer. x is overwritten.

    Parameters
    ----------
    Z : (n, b) array
    e, x : (b,), (n,) arrays
    b, n : int
    d : (b,) array
        Filled.
    H, inverse : arrays
        Work, as wide as the smaller of b and n.
    """
    few = n < b
    size = n if few else b
    for i in range(size):
        for k in range(i + 1):
            s = 0.0
            if few:
                s = dot(Z[i], Z[k], b)
            else:
                for c in range(n):
                    s += Z[c, i] * Z[c, k]
            H[i, k] = 1.0 - s if i == k else -s
    if not cholesky_in_place(H, size):
        return np.inf
    invert_lower(H, inverse, size)
    norm = 0.0
    for i in range(size):
        for k in range(i + 1):
            norm += inverse[i, k] * inverse[i, k]
    for i in range(b):
        d[i] = e[i]
    if not few:
        cholesky_solve(H, d, b)
        return norm
    cholesky_solve(H, x, n)
    for c in range(n):
        for i in range(b):
            d[i] += Z[c, i] * x[c]
    return max(norm, 1.0)


@njit(cache=True, nogil=True)
def common_errors(rows, base, listed, limit, total, error):
    """Sum the squared held-out residuals of every listed support over all folds.

    Parameters
    ----------
    rows : HeldOutRows
        V by columns, centred as the fit on all rows is.
    base : float
        1 over the weight of all rows where an intercept is profiled out, else 0.
    listed : Listed
        Their values and places do not count.
    limit : float
        A support whose sum is certain to exceed it is left with a part of the sum that does.
    total, error : (L,) arrays
        Filled: the sums, and bounds on their rounding errors, inf where a leverage is 1 to rounding.

    Notes
    -----
    O(rows s^2 + folds s^3) a support, of folds with fewer than s rows O(rows (s^2 + rows of a fold s)). A support with
    `sum ||e_N||^2 + 2 ||Z_N e_N||^2` beyond the limit is left before anything is factored: `(I - H)^{-2} >= I + 2 H`.
    """
    V, r, starts, root = rows
    folds, top, widest = len(starts) - 1, listed.supports.shape[1] + 1, 1
    for k in range(folds):
        widest = max(widest, starts[k + 1] - starts[k])
    least = min(top, widest)
    slip, d, H, inverse = np.empty(widest), np.empty(widest), np.empty((least, least)), np.empty((least, least))
    e, Z, x, off = np.empty((folds, widest)), np.empty((folds, top, widest)), np.empty((folds, top)), np.empty(folds)
    for a in range(len(listed.sizes)):
        n, support = listed.sizes[a], listed.supports[a]
        low, loose = 0.0, 0.0
        for k in range(folds):
            lo, hi = starts[k], starts[k + 1]
            _residuals(V, r, listed.beta[a], support, n, lo, hi, e[k])
            _half_rows(V, listed.half[a], support, n, lo, hi, Z[k])
            _slips(rows, listed, a, lo, hi, slip)
            for i in range(hi - lo):
                Z[k, n, i] = np.sqrt(base) * root[lo + i]
            off[k] = dot(slip, slip, hi - lo)
            own = dot(e[k], e[k], hi - lo)
            low += own
            loose += (2.0 * np.sqrt(own) + np.sqrt(off[k])) * np.sqrt(off[k])
            for c in range(n + 1):
                x[k, c] = dot(Z[k, c], e[k], hi - lo)
                low += 2.0 * x[k, c] * x[k, c]
        total[a], error[a] = low, 3.0 * loose + (1e-9 + 4.0 * listed.blur[a]) * low
        if low - error[a] > limit:
            continue
        total[a], error[a] = 0.0, 0.0
        for k in range(folds):
            if total[a] - error[a] > limit:
                break
            b = starts[k + 1] - starts[k]
            own, trace = dot(e[k], e[k], b), 0.0
            for c in range(n + 1):
                trace += dot(Z[k, c], Z[k, c], b)
            norm = _left_out(Z[k], e[k], x[k], b, n + 1, d, H, inverse)
            if norm == np.inf:
                error[a] = np.inf
                continue
            out = dot(d, d, b)
            length = np.sqrt(out)
            solved = 16.0 * (b + n + 2) * EPS * (norm * np.sqrt(own) + length)
            wide = (np.sqrt(off[k]) + listed.blur[a] * trace * length + solved) * norm
            total[a] += out
            error[a] += (2.0 * length + wide) * wide + 32.0 * EPS * out
        error[a] += 2.0 * len(r) * EPS * total[a]
