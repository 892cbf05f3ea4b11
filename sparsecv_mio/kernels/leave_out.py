"""Exact removal of rows from ridge fits: objectives and errors of all folds from one full-data fit (theory section 5).

Let e be the residuals of the full-data fit of a support S, V_S the columns of S, and M_S their Gram matrix plus the
penalty. The hat matrix is `H = V_S M_S^{-1} V_S' + base root root'`, where `base root root'` is the part of the
intercept. The vector `root` has the square roots of the row weights, and `base` is 0 without an intercept. If the rows
N are removed from the fit, the residuals of these rows become `(I - H_NN)^{-1} e_N`. If all folds share the support,
the sum of the squares of these residuals over all folds is the held-out error.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import EPS, cholesky_in_place, cholesky_solve, copy_vector, dot, gather, invert_lower
from sparsecv_mio.kernels.jit import NO_ITEMS, njit


class HeldOutRows(NamedTuple):
    """Rows of consecutive folds about the means of all rows: columns, target, and the start of each fold.

    Rows are multiplied by `root`, the square roots of their weights: ones if each counts once.
    """

    V: np.ndarray
    r: np.ndarray
    starts: np.ndarray
    root: np.ndarray


class ListedSupports(NamedTuple):
    """Supports fitted to all rows at one gamma, prepared for evaluation in every fold.

    Attributes
    ----------
    supports, sizes : (L, s), (L,) int arrays
        Columns: the first `sizes[a]` entries of row a.
    tau_index : (L,) int array
        Index of the tau of each support.
    value, value_error : (L,) arrays
        Training objective on all rows, and a bound on its rounding error.
    beta, beta_error : (L, s) arrays
        Coefficients, and bounds on their rounding errors.
    residual_error : (L,) array
        Bound on the rounding error that the means of columns and target leave in a residual, for a row of weight 1.
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
        """Return (taus,) rounding errors of objectives with a fold held out, by tau, over the supports of that tau.

        Removing rows divides by `1 - leverage`; the error is valid for leverages below one half.
        """
        worst = np.zeros(taus)
        np.maximum.at(worst, self.tau_index, self.value_error)
        return 4.0 * worst

    def after(self, first):
        """Return the supports from number `first` on, as views."""
        return ListedSupports(*(array[first:] for array in self))


class WinLimits(NamedTuple):
    """Conditions on supports that can win a fold.

    Attributes
    ----------
    limit : (T, k) array
        Limits: a support with f above `limit[place, fold]` cannot win the fold.
    eta : (k,) array
        Upper bound, below 1, on the largest eigenvalue of every H of the fold.
    """

    limit: np.ndarray
    eta: np.ndarray


class BestByFold(NamedTuple):
    """The best of some supports by (tau, fold), for consecutive folds, each held out of the full-data fit.

    Attributes
    ----------
    value, second : (T, K) arrays
        Smallest and second smallest training objective without the fold; inf if there is none.
    held_out, error : (T, K) arrays
        Held-out sum of squares of the support with the smallest objective, and a bound on its rounding error.
    which : (T, K) int array
        Number of that support; -1 if there is none.
    """

    value: np.ndarray
    second: np.ndarray
    held_out: np.ndarray
    error: np.ndarray
    which: np.ndarray

    def copy(self):
        """Return a writable copy."""
        return BestByFold(*(array.copy() for array in self))

    @classmethod
    def empty(cls, taus, folds):
        """Return a result without any support."""
        shape = (taus, folds)
        unknown = (np.full(shape, np.inf) for _ in range(3))
        return cls(*unknown, np.zeros(shape), np.full(shape, -1, dtype=np.int32))


ROWS_TOGETHER = 64  # rows processed together, if folds have fewer


@njit(cache=True, nogil=True, error_model="numpy")
def score_supports(rows, base, listed, limits, first, scores):
    """Hold every fold out of every listed support; keep the best two values for each (tau, fold).

    With `e = r - V_S beta`, `H = V_S (M_S)^{-1} V_S' + base root root'` on the fold's rows:
    `f^(-N) = f - e' (I - H)^{-1} e` and the held-out residual is `(I - H)^{-1} e` (theory section 5, exactly).
    `error` includes the rounding of e and of H, through `(I - H)^{-1}`; the caller allows for the rounding of `value`.

    Parameters
    ----------
    rows : HeldOutRows
        Rows of a chunk, V by columns, centred like the full-data fit.
    base : float
        1 over the weight of all rows if an intercept is profiled out, else 0.
    listed : ListedSupports
        Supports.
    limits : WinLimits
        Conditions for winning a fold.
    first : int
        Number of the first listed support.
    scores : BestByFold
        Results, improved in place.

    Notes
    -----
    O(rows s) for each support for e, O(rows s^2 / 2) for the leverages of the folds that e alone does not rule out. The
    rows of consecutive folds are gathered for SIMD.
    """
    supports, sizes, place, value, _, beta, spread, level, half, blur = listed
    V, r, starts, root = rows
    limit, eta = limits
    best, second, held_out, error, which = scores
    folds, top, widest = len(starts) - 1, supports.shape[1], 1
    for k in range(folds):
        widest = max(widest, starts[k + 1] - starts[k])
    room, least = ROWS_TOGETHER + widest, min(top + 1, widest)
    X, Z, e, d = np.empty((top, room)), np.empty((top + 1, room)), np.empty(len(r)), np.empty(widest)
    fold, row, at = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64), np.empty(room + 1, dtype=np.int64)
    trace, H, inverse, x = np.empty(room), np.empty((least, least)), np.empty((least, least)), np.empty(top + 1)
    for a in range(supports.shape[0]):
        t, n, g = place[a], sizes[a], value[a]
        copy_vector(r, e)
        _less_fits(V, supports[a], beta[a], n, e)
        k = 0
        while k < folds:
            hopes, kept = NO_ITEMS, NO_ITEMS
            while k < folds and kept < ROWS_TOGETHER:
                total = 0.0
                for i in range(starts[k], starts[k + 1]):
                    total += e[i] * e[i]
                if limit[t, k] >= g and g - total / (1.0 - eta[k]) <= second[t, k]:
                    fold[hopes], at[hopes], trace[hopes] = k, kept, 0.0
                    for i in range(starts[k], starts[k + 1]):
                        row[kept] = i
                        for c in range(n):
                            X[c, kept] = V[i, supports[a, c]]
                        trace[hopes] += base * root[i] * root[i]
                        Z[n, kept] = np.sqrt(base) * root[i]
                        kept += 1
                    hopes += 1
                k += 1
            if hopes == 0:
                continue
            at[hopes] = kept
            _half_rows(X, half[a], n, kept, Z)
            for c in range(n):
                _add_by_fold(Z[c], Z[c], at, hopes, trace)
            for f in range(hopes):
                j, lo, b, mine = fold[f], at[f], at[f + 1] - at[f], row[at[f]]
                widening = 1.0 / (1.0 - eta[j])  # at least the norm of (I - H)^{-1}
                if b == 1:
                    if not trace[f] < 1.0:
                        continue
                    widening = 1.0 / (1.0 - trace[f])
                    d[0] = e[mine] / (1.0 - trace[f])
                elif _solve_fold_system(Z[:, lo : lo + b], e[mine : mine + b], b, n + 1, d, x, H, inverse) == np.inf:
                    continue
                v, out = g, 0.0
                for i in range(b):
                    v -= e[mine + i] * d[i]
                    out += d[i] * d[i]
                if v < best[t, j]:
                    second[t, j], best[t, j], which[t, j], held_out[t, j] = best[t, j], v, first + a, out
                    wide = 0.0
                    for i in range(lo, lo + b):
                        slip, size = level[a] * root[row[i]], abs(r[row[i]])
                        for c in range(n):
                            slip += abs(X[c, i]) * spread[a, c]
                            size += abs(X[c, i]) * abs(beta[a, c])
                        slip += (4 * n + 16) * EPS * size
                        wide += slip * slip
                    norm = np.sqrt(out)
                    wide = (np.sqrt(wide) + blur[a] * trace[f] * norm) * widening
                    error[t, j] = (2.0 * norm + wide) * wide + 32.0 * EPS * out
                elif v < second[t, j]:
                    second[t, j] = v


@njit(cache=True, nogil=True)
def half_inverses(Q, penalty, supports, sizes, half, blur):
    """Fill `half[a]` with the inverse of the Cholesky factor of `M_S`, and `blur` with its relative rounding.

    O(s^3) for each support. `blur` is inf if M_S is not positive definite.

    Parameters
    ----------
    Q, penalty : (q, q), (q,)
        Gram matrix and penalty.
    supports, sizes : (L, s), (L,) int arrays
        Supports.
    half, blur : (L, s, s), (L,)
        Arrays to fill.
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


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _less_fits(V, support, beta, size, e):
    """Compute `e -= V_S beta`."""
    for c in range(size):
        b, j = beta[c], support[c]
        for i in range(e.shape[0]):
            e[i] -= V[i, j] * b


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _half_rows(X, half, size, count, Z):
    """Compute `Z = half X`."""
    for c in range(size):
        for i in range(count):
            Z[c, i] = 0.0
        for k in range(c + 1):
            f = half[c, k]
            for i in range(count):
                Z[c, i] += f * X[k, i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _add_by_fold(u, v, starts, folds, out):
    """Add to `out` the inner products of two vectors on the rows of every fold."""
    if starts[folds] == folds:  # each fold has one row
        for k in range(folds):
            out[k] += u[k] * v[k]
        return
    for k in range(folds):
        for i in range(starts[k], starts[k + 1]):
            out[k] += u[i] * v[i]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _slips(rows, listed, a, X, slip):
    """Fill bounds on the rounding errors of the residuals of the support number a."""
    r, root, n, count = rows.r, rows.root, listed.sizes[a], len(rows.r)
    level, unit = listed.residual_error[a], (4 * n + 16) * EPS
    for i in range(count):
        slip[i] = level * root[i] + unit * abs(r[i])
    for c in range(n):
        f = listed.beta_error[a, c] + unit * abs(listed.beta[a, c])
        for i in range(count):
            slip[i] += abs(X[c, i]) * f


@njit(cache=True, nogil=True)
def _solve_fold_system(Z, e, b, n, d, x, H, inverse):
    """Fill `d = (I - Z'Z)^{-1} e` for a fold with b rows, Z with n rows; return a bound on the inverse, or inf.

    It is solved by the rows of the fold, or as `d = e + Z' (I - Z Z')^{-1} Z e` by those of Z, whichever are fewer.

    Parameters
    ----------
    Z : (n, b) array
        Matrix.
    e : (b,) array
        Vector.
    b, n : int
        Numbers of rows.
    d : (b,) array
        Array to fill.
    x, H, inverse : arrays
        Work arrays: n numbers, and matrices as wide as the smaller of b and n.
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
    for c in range(n):
        x[c] = dot(Z[c], e, b)
    cholesky_solve(H, x, n)
    for c in range(n):
        for i in range(b):
            d[i] += Z[c, i] * x[c]
    return max(norm, 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def common_errors(rows, base, listed, limit, total, error):
    """Fill the sums of squared held-out residuals of every listed support over all folds.

    Parameters
    ----------
    rows : HeldOutRows
        Rows, V by columns, centred like the full-data fit.
    base : float
        1 over the weight of all rows if an intercept is profiled out, else 0.
    listed : ListedSupports
        Supports; their objectives and indices of tau are not used.
    limit : float
        Limit: for a support whose sum is certain to exceed it, a part of the sum that exceeds it is returned.
    total, error : (L,) arrays
        Arrays to fill with the sums, and bounds on their rounding errors, inf if a leverage is 1 to rounding.

    Notes
    -----
    O(rows s^2 + folds s^3) for each support; with folds of fewer than s rows O(rows (s^2 + rows of a fold s)). A
    support with `sum ||e_N||^2 + 2 ||Z_N e_N||^2` above the limit is skipped before any factorisation:
    `(I - H)^{-2} >= I + 2 H`.
    """
    V, r, starts, root = rows
    folds, top, count, widest = len(starts) - 1, listed.supports.shape[1], len(r), 1
    for k in range(folds):
        widest = max(widest, starts[k + 1] - starts[k])
    least = min(top + 1, widest)
    d, H, inverse = np.empty(widest), np.empty((least, least)), np.empty((least, least))
    X, Z, e, slip = np.empty((top, count)), np.empty((top + 1, count)), np.empty(count), np.empty(count)
    x, part, own, off, trace = np.empty(top + 1), np.empty(folds), np.empty(folds), np.empty(folds), np.empty(folds)
    for a in range(len(listed.sizes)):
        n = listed.sizes[a]
        for c in range(n):
            copy_vector(V[:, listed.supports[a, c]], X[c])
        copy_vector(r, e)
        _less_fits(V, listed.supports[a], listed.beta[a], n, e)
        _half_rows(X, listed.half_inverse[a], n, count, Z)
        _slips(rows, listed, a, X, slip)
        for k in range(folds):
            own[k], off[k], trace[k] = 0.0, 0.0, 0.0
            for i in range(starts[k], starts[k + 1]):
                Z[n, i] = np.sqrt(base) * root[i]
                trace[k] += base * root[i] * root[i]
        _add_by_fold(e, e, starts, folds, own)
        _add_by_fold(slip, slip, starts, folds, off)
        low, loose = 0.0, 0.0
        for k in range(folds):
            low += own[k]
            loose += (2.0 * np.sqrt(own[k]) + np.sqrt(off[k])) * np.sqrt(off[k])
        for c in range(n + 1):
            part[:] = 0.0
            _add_by_fold(Z[c], e, starts, folds, part)
            low += 2.0 * dot(part, part, folds)
        total[a], error[a] = low, 3.0 * loose + (1e-9 + 4.0 * listed.leverage_error[a]) * low
        if low - error[a] > limit:
            continue
        total[a], error[a] = 0.0, 0.0
        for c in range(n):
            _add_by_fold(Z[c], Z[c], starts, folds, trace)
        for k in range(folds):
            if total[a] - error[a] > limit:
                break
            lo, b = starts[k], starts[k + 1] - starts[k]
            if b == 1:
                norm = 1.0 / (1.0 - trace[k]) if trace[k] < 1.0 else np.inf
                d[0] = e[lo] * norm
            else:
                norm = _solve_fold_system(Z[:, lo : lo + b], e[lo : lo + b], b, n + 1, d, x, H, inverse)
            if norm == np.inf:
                error[a] = np.inf
                continue
            out = dot(d, d, b)
            length = np.sqrt(out)
            solved = 16.0 * (b + n + 2) * EPS * (norm * np.sqrt(own[k]) + length)
            wide = (np.sqrt(off[k]) + listed.leverage_error[a] * trace[k] * length + solved) * norm
            total[a] += out
            error[a] += (2.0 * length + wide) * wide + 32.0 * EPS * out
        error[a] += 2.0 * len(r) * EPS * total[a]
