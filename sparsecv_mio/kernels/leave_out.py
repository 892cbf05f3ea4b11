"""One full-data fit, every fold's fit: leaving rows out of a ridge fit exactly (theory section 5).

The cross-validation error of a support that every fold shares, from its fit on all rows (theory section 5).

With `e = r - V_S beta` and `H = V_S M_S^{-1} V_S' + base root root'`, leaving the rows N out of the fit makes their
residual `(I - H_NN)^{-1} e_N`: the error of the support is the sum of the squares over all folds.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, dot, gather, invert_lower
from sparsecv_mio.kernels.jit import njit

EPS = 2.220446049250313e-16


class HeldOutRows(NamedTuple):
    """Rows of consecutive folds about the means of all rows: columns, target, and where each fold starts.

    Rows are times the roots of their weights, `root`: ones where each counts once.
    """

    V: np.ndarray
    r: np.ndarray
    starts: np.ndarray
    root: np.ndarray


class ListedSupports(NamedTuple):
    """Supports fitted on all rows at one gamma, ready to be scored in every fold.

    Attributes
    ----------
    supports, sizes : (L, s), (L,) int arrays
        Columns; of row a the first `sizes[a]` count.
    tau_index : (L,) int array
        Index of the tau that each support is for.
    value, value_error : (L,) arrays
        Training objective on all rows, and a bound on its rounding error.
    beta, beta_error : (L, s) arrays
        Coefficients, and bounds on their rounding errors.
    residual_error : (L,) array
        Bound on the rounding error that the means of columns and target leave in a residual, of a row of weight 1.
    half_inverse : (L, s, s) array
        Lower-triangular C with `C'C = M_S^{-1}`.
    leverage_error : (L,) array
        Relative rounding error of the leverages.
    """

    supports: np.ndarray
    sizes: np.ndarray
    tau_index: np.ndarray
    value: np.ndarray
    value_error: np.ndarray
    beta: np.ndarray
    beta_error: np.ndarray
    residual_error: np.ndarray
    half_inverse: np.ndarray
    leverage_error: np.ndarray

    def left_out_error(self, taus):
        """(taus,) rounding error of objectives with a fold left out, by tau: of its own supports alone.

        Leaving rows out divides by `1 - leverage`; asked for where the leverage is below one half.
        """
        worst = np.zeros(taus)
        np.maximum.at(worst, self.tau_index, self.value_error)
        return 4.0 * worst

    def after(self, first):
        """Return the supports from number `first` on; views, not copies."""
        return ListedSupports(*(array[first:] for array in self))


class WinLimits(NamedTuple):
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


class BestByFold(NamedTuple):
    """The best of some supports by (tau, fold), for consecutive folds, each left out of the fit on all rows.

    Attributes
    ----------
    value, second : (T, K) arrays
        Least and second least training objective without the fold; inf where there is none.
    held_out, error : (T, K) arrays
        Held-out sum of squares of the support with the least objective, and a bound on its rounding error.
    which : (T, K) int array
        Number of that support; -1 where there is none.
    """

    value: np.ndarray
    second: np.ndarray
    held_out: np.ndarray
    error: np.ndarray
    which: np.ndarray

    def copy(self):
        """Return a copy that may be written to."""
        return BestByFold(*(array.copy() for array in self))

    @classmethod
    def empty(cls, taus, folds):
        """Nothing known."""
        shape = (taus, folds)
        unknown = (np.full(shape, np.inf) for _ in range(3))
        return cls(*unknown, np.zeros(shape), np.full(shape, -1, dtype=np.int32))


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
    listed : ListedSupports
    limits : WinLimits
    first : int
        Number of the first listed support.
    scores : BestByFold

    Notes
    -----
    O(rows s) a support for e, O(rows s^2 / 2) for the leverages of the folds that e alone does not rule out.
    """
    supports, sizes, place, value, _, beta, spread, level, half, blur = listed
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
    supports, sizes, place, value, _, beta, spread, level, half, blur = listed
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
    n, level = listed.sizes[a], listed.residual_error[a]
    unit = (4 * n + 16) * EPS
    for i in range(lo, hi):
        slip[i - lo] = level * root[i] + unit * abs(r[i])
    for c in range(n):
        j, f = listed.supports[a, c], listed.beta_error[a, c] + unit * abs(listed.beta[a, c])
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
        n, support, half = listed.sizes[a], listed.supports[a], listed.half_inverse[a]
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
                wide = (slip[i] + listed.leverage_error[a] * h[i] * abs(d)) / gap
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
    listed : ListedSupports
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
            _half_rows(V, listed.half_inverse[a], support, n, lo, hi, Z[k])
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
        total[a], error[a] = low, 3.0 * loose + (1e-9 + 4.0 * listed.leverage_error[a]) * low
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
            wide = (np.sqrt(off[k]) + listed.leverage_error[a] * trace * length + solved) * norm
            total[a] += out
            error[a] += (2.0 * length + wide) * wide + 32.0 * EPS * out
        error[a] += 2.0 * len(r) * EPS * total[a]
