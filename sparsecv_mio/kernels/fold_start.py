"""The start of a fold: its matrix with unit diagonal, and first incumbents of every size."""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.dense import invert
from sparsecv_mio.kernels.starts import backward_elimination, try_supports


@njit(cache=True, nogil=True)
def unit_form(Q, penalty, c, mean, constant):
    """Scale the columns to `M_jj = Q_jj + penalty_j = 1`.

    Parameters
    ----------
    Q, penalty, c : (q, q), (q,), (q,)
    mean : (q,) array
        Of the columns over the training rows.
    constant : float
        Of the squared mean: a squared length up to which a column is constant.

    Returns
    -------
    M : (q, q) array
    c, scale : (q,) arrays
        `c_j scale_j` and `scale_j = 1 / sqrt(M_jj)`.
    dead : (q,) bool array
        Columns with `Q_jj <= constant mean_j^2`: their row of Q and their c are taken as zero.
    longest : float
        Largest `|mean_j| scale_j`.

    Notes
    -----
    O(q^2).
    """
    q = c.shape[0]
    dead = np.zeros(q, dtype=np.bool_)
    scale = np.empty(q)
    for j in range(q):
        dead[j] = Q[j, j] <= constant * mean[j] * mean[j]
        scale[j] = 1.0 / np.sqrt(penalty[j] if dead[j] else Q[j, j] + penalty[j])
    M = np.empty((q, q))
    out = np.empty(q)
    for i in range(q):
        for j in range(q):
            M[i, j] = 0.0 if dead[i] or dead[j] else Q[i, j] * scale[i] * scale[j]
        M[i, i] = 1.0
        out[i] = 0.0 if dead[i] else c[i] * scale[i]
    longest = 0.0
    for j in range(q):
        longest = max(longest, abs(mean[j]) * scale[j])
    return M, out, scale, dead, longest


@njit(cache=True, nogil=True)
def eliminate(M, c, yy, best, supports):
    """Backward elimination from all columns; the values of its path are computed afresh, as updated inverses drift.

    `best, supports` are improved in place. False if M is singular to rounding. O(q^4 / 12): q factorisations.

    Parameters
    ----------
    M, c, yy : (q, q), (q,), float
    best, supports : (q + 1,), (q + 1, q) bool
        Incumbents by size.
    """
    q = c.shape[0]
    V, ok = invert(M)
    if not ok:
        return False
    beta = np.dot(V, c)
    path_best = np.full(q + 1, np.inf)
    path = np.zeros((q + 1, q), dtype=np.bool_)
    backward_elimination(V, beta, yy - np.dot(c, beta), path_best, path)
    try_supports(M, c, yy, path[1:], best, supports)
    return True
