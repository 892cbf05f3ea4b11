"""What is known of the predictions of a fold's held-out rows, as an interval of their sum of squares."""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.dense import cholesky_solve, support_value
from sparsecv_mio.kernels.perspective_newton import NONE
from sparsecv_mio.kernels.status import FREE, INSIDE

NOTHING, ROWS, TOGETHER, EXACT = 0.0, 1.0, 2.0, 3.0  # which bound an end comes from; floats, as where they are kept


@njit(cache=True, nogil=True)
def one_support(fold, status, k, rounding, lo, hi, factor):
    """Predictions of the only support left (INSIDE, and FREE if all of those fit) into `lo, hi`. False if singular.

    Rounding: a prediction is widened by that of its own sum and by `x'M_S^{-1}` times that of the moments.

    Parameters
    ----------
    fold : Fold
    status : (q,) int8 array
    k : int
        Size of the supports.
    rounding : Rounding
    lo, hi : (N,) arrays
        Filled.
    factor : Factor
        Scratch for all columns.
    """
    X, x, index, work = fold.X, factor.x, factor.columns, factor.work
    unit = rounding.unit
    q = fold.c.shape[0]
    size = NONE
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
        error = abs(pred) * unit
        for a in range(size):
            error += unit * abs(X[e, index[a]] * x[a])
        error += unit * lever * rounding.prior
        lo[e] = pred - error
        hi[e] = pred + error
    return True


@njit(cache=True, nogil=True)
def distances(u, lo, hi):
    """Smallest and largest `sum (u_i - p_i)^2` over `p_i` in `[lo_i, hi_i]`.

    Parameters
    ----------
    u : (N,) array
    lo, hi : (N,) arrays
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
def blurred(low, high, N, rounding):
    """Widen an interval of `||u - X b*||^2` by the rounding of the means that u and X are about.

    With the rounding unit `eps (n + 4q + 64) loss` (docs/theory/bounds.md 7) an entry of `u - X b*` is off by at most
    `4 eps loss (||y|| + sum |b*_j|) / sqrt(n) <= unit prior / 10`.

    Parameters
    ----------
    low, high : float
    N : int
        Held-out rows.
    rounding : Rounding
    """
    blur = 0.1 * rounding.unit * rounding.prior * np.sqrt(N)
    near = max(np.sqrt(low) - blur, 0.0)
    return near * near, (np.sqrt(high) + blur) ** 2


@njit(cache=True, nogil=True)
def nothing(cell, ends, lower):
    """Write a cell about whose predictions nothing is known.

    Parameters
    ----------
    cell : (8,) array
        As `fold_bounds.run` writes; filled but for its last entry.
    ends : (N, 2) array
        Filled.
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
    """Write the interval of a cell and where its ends come from.

    Parameters
    ----------
    cell : (8,) array
    low, high : float
    low_code, high_code : float
    """
    cell[2] = low
    cell[3] = high
    cell[4] = low_code
    cell[5] = high_code
