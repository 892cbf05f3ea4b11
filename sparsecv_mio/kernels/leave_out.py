"""One full-data fit, every fold's fit: leaving rows out of a ridge fit exactly (theory section 5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, gather, invert_lower

EPS = 2.220446049250313e-16


class HeldOutRows(NamedTuple):
    """Rows of consecutive folds about the means of all rows: columns, target, and where each fold starts.

    Rows are times the roots of their weights, `root`: ones where each counts once.
    """

    V: np.ndarray
    r: np.ndarray
    starts: np.ndarray
    root: np.ndarray


class Listed(NamedTuple):
    """Supports, refitted on all rows.

    Attributes
    ----------
    supports, sizes, place : (L, s), (L,), (L,) int arrays
        Columns, how many, and the row of `limit` and of the scores (the tau) each belongs to.
    value, beta, spread, level : (L,), (L, s), (L, s), (L,)
        f, coefficients, bounds on their rounding, on that of the means in a residual.
    half, blur : (L, s, s), (L,)
        Lower-triangular C with `C' C = M_S^{-1}`, and the relative rounding of the leverages.
    """

    supports: np.ndarray
    sizes: np.ndarray
    place: np.ndarray
    value: np.ndarray
    beta: np.ndarray
    spread: np.ndarray
    level: np.ndarray
    half: np.ndarray
    blur: np.ndarray


class Limits(NamedTuple):
    """What can win a fold.

    Attributes
    ----------
    limit : (T, k) array
        A support with f above `limit[place, fold]` cannot win the fold.
    eta : (k,) array
        At least the largest eigenvalue of every H of the fold; < 1.
    """

    limit: np.ndarray
    eta: np.ndarray


class Best(NamedTuple):
    """Best two values by (tau, fold); updated in place.

    Attributes
    ----------
    best, second : (T, k) arrays
        Smallest and second smallest f^(-N).
    held, error : (T, k) arrays
        Held-out sum of squares of the best with a bound on its rounding.
    which : (T, k) int array
        Its number.
    """

    best: np.ndarray
    second: np.ndarray
    held: np.ndarray
    error: np.ndarray
    which: np.ndarray


@njit(cache=True, nogil=True)
def score_supports(rows, base, listed, limits, first, scores):
    """Leave every fold out of every listed support; keep the best two values per (tau, fold).

    With `e = r - V_S beta`, `H = V_S (M_S)^{-1} V_S' + base root root'` on the fold's rows:
    `f^(-N) = f - e' (I - H)^{-1} e` and the held-out residual is `(I - H)^{-1} e` (theory section 5, exactly).
    Rounding: that of e and of H, through `(I - H)^{-1}`, is in `error`; that of `best` is for whoever compares it.

    Parameters
    ----------
    rows : HeldOutRows
        Of a chunk, centred as the full-data fit is.
    base : float
        1 over the weight of all rows where an intercept is profiled out, else 0.
    listed : Listed
    limits : Limits
    first : int
        Number of the first listed support.
    scores : Best

    Notes
    -----
    O(rows s) a support for e, O(rows s^2 / 2) for the leverages of the folds that e alone does not rule out.
    """
    supports, sizes, place, value, beta, spread, level, half, blur = listed
    V, r, starts, root = rows
    limit, eta = limits
    best, second, held, error, which = scores
    top = 1
    for k in range(starts.shape[0] - 1):
        top = max(top, starts[k + 1] - starts[k])
    e = np.empty(top)
    d = np.empty(top)
    slip = np.empty(top)
    H = np.empty((top, top))
    z = np.empty((top, supports.shape[1]))
    for a in range(supports.shape[0]):
        t = place[a]
        n = sizes[a]
        g = value[a]
        for k in range(starts.shape[0] - 1):
            if limit[t, k] < g:
                continue
            lo = starts[k]
            b = starts[k + 1] - lo
            total = 0.0
            for i in range(b):
                s = r[lo + i]
                for c in range(n):
                    s -= V[lo + i, supports[a, c]] * beta[a, c]
                e[i] = s
                total += s * s
            if g - total / (1.0 - eta[k]) > second[t, k]:
                continue
            for i in range(b):
                for c in range(n):
                    s = 0.0
                    for j in range(c + 1):
                        s += half[a, c, j] * V[lo + i, supports[a, j]]
                    z[i, c] = s
                d[i] = e[i]
            trace = 0.0
            for i in range(b):
                for j in range(i + 1):
                    s = base * root[lo + i] * root[lo + j]
                    for c in range(n):
                        s += z[i, c] * z[j, c]
                    if i == j:
                        trace += s
                        H[i, i] = 1.0 - s
                    else:
                        H[i, j] = -s
            if not cholesky_in_place(H, b):
                continue
            cholesky_solve(H, d, b)
            f = g
            out = 0.0
            for i in range(b):
                f -= e[i] * d[i]
                out += d[i] * d[i]
            if f < best[t, k]:
                second[t, k] = best[t, k]
                best[t, k] = f
                which[t, k] = first + a
                held[t, k] = out
                # rounding of e, then of H, through (I - H)^{-1}, whose norm is at most 1 / (1 - eta)
                wide = 0.0
                for i in range(b):
                    s = level[a] * root[lo + i]
                    size = abs(r[lo + i])
                    for c in range(n):
                        x = abs(V[lo + i, supports[a, c]])
                        s += x * spread[a, c]
                        size += x * abs(beta[a, c])
                    slip[i] = s + (4 * n + 16) * EPS * size
                    wide += slip[i] * slip[i]
                norm = np.sqrt(out)
                wide = (np.sqrt(wide) + blur[a] * trace * norm) / (1.0 - eta[k])
                error[t, k] = (2.0 * norm + wide) * wide + 32.0 * EPS * out
            elif f < second[t, k]:
                second[t, k] = f


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _residuals_of_block(X, beta, size, count, e):
    """`e -= X' beta` over the gathered rows."""
    for c in range(size):
        b = beta[c]
        for i in range(count):
            e[i] -= X[c, i] * b


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _leverages_of_block(X, half, size, count, z, h):
    """`h += ||half X||^2` by columns of X."""
    for c in range(size):
        for i in range(count):
            z[i] = 0.0
        for j in range(c + 1):
            f = half[c, j]
            for i in range(count):
                z[i] += f * X[j, i]
        for i in range(count):
            h[i] += z[i] * z[i]


@njit(cache=True, nogil=True, error_model="numpy")
def score_supports_by_row(rows, base, listed, limits, first, scores):
    """`score_supports` where every fold is one row: the same numbers, rows gathered 64 at a time for SIMD.

    O(rows s) a support for e, O(rows s^2 / 2) for the leverages of the rows that e alone does not rule out.

    Parameters
    ----------
    rows : HeldOutRows
        A row a fold.
    base, listed, limits, first, scores
        As for `score_supports`.
    """
    supports, sizes, place, value, beta, spread, level, half, blur = listed
    limit, eta = limits
    best, second, held, error, which = scores
    V, r, _, root = rows
    block = 64
    top = supports.shape[1]
    X = np.empty((top, block))
    alive = np.empty(block, dtype=np.int64)
    e = np.empty(block)
    h = np.empty(block)
    z = np.empty(block)
    for a in range(supports.shape[0]):
        t = place[a]
        n = sizes[a]
        g = value[a]
        for lo in range(0, V.shape[0], block):
            count = np.int64(0)  # a plain 0 is a type of its own: what is called with it would be compiled twice
            for k in range(lo, min(lo + block, V.shape[0])):
                if limit[t, k] >= g:
                    alive[count] = k
                    count += 1
            if count == 0:
                continue
            for i in range(count):
                k = alive[i]
                e[i] = r[k]
                for c in range(n):
                    X[c, i] = V[k, supports[a, c]]
            _residuals_of_block(X, beta[a], n, count, e)
            hopes = np.int64(0)
            for i in range(count):
                k = alive[i]
                if g - e[i] * e[i] / (1.0 - eta[k]) <= second[t, k]:
                    if hopes < i:
                        alive[hopes] = k
                        e[hopes] = e[i]
                        for c in range(n):
                            X[c, hopes] = X[c, i]
                    h[hopes] = base * root[k] * root[k]
                    hopes += 1
            if hopes == 0:
                continue
            _leverages_of_block(X, half[a], n, hopes, z, h)
            for i in range(hopes):
                k = alive[i]
                gap = 1.0 - h[i]
                if not gap > 0.0:
                    continue
                d = e[i] / gap
                f = g - e[i] * d
                if f < best[t, k]:
                    second[t, k] = best[t, k]
                    best[t, k] = f
                    which[t, k] = first + a
                    held[t, k] = d * d
                    # rounding of e, then of h, through 1 / (1 - h)
                    s = level[a] * root[k]
                    size = abs(r[k])
                    for c in range(n):
                        x = abs(X[c, i])
                        s += x * spread[a, c]
                        size += x * abs(beta[a, c])
                    norm = abs(d)
                    wide = (s + (4 * n + 16) * EPS * size + blur[a] * h[i] * norm) / gap
                    error[t, k] = (2.0 * norm + wide) * wide + 32.0 * EPS * d * d
                elif f < second[t, k]:
                    second[t, k] = f


@njit(cache=True, nogil=True)
def half_inverses(Q, penalty, supports, sizes, half, blur):
    """Fill `half[a]` with the inverse of the Cholesky factor of `M_S`, and `blur` with its relative rounding.

    O(s^3) a support. `blur` is inf where M_S is not positive definite.

    Parameters
    ----------
    Q, penalty : (q, q), (q,)
    supports, sizes : (L, s), (L,) int arrays
    half, blur : (L, s, s), (L,)
        Filled.
    """
    top = supports.shape[1]
    L = np.empty((top, top))
    for a in range(supports.shape[0]):
        n = sizes[a]
        gather(Q, supports[a], n, L)
        norm = 0.0
        for i in range(n):
            L[i, i] += penalty[supports[a, i]]
            norm += L[i, i]
        if not cholesky_in_place(L, n):
            blur[a] = np.inf
            continue
        inverse = 0.0
        invert_lower(L, half[a], n)
        for i in range(n):
            for j in range(i + 1):
                inverse += half[a, i, j] * half[a, i, j]
        blur[a] = 8.0 * (n + 2) * EPS * norm * inverse
