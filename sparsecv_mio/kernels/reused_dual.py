"""The dual value of points that were solved for another problem, and what it fixes (theory sections 1 and 8)."""

from __future__ import annotations

import numpy as np
from numba import njit

FREE, INSIDE, DROPPED = 0, 1, 2


@njit(cache=True, nogil=True)
def reused_dual(M, c, yy, w, points, sizes, dual, slope, status, room):
    """Screen every size by a given point.

        D(b) = yy - b'G b - (sum of the k largest d_j),   G = M - diag(w),  g = c - G b,  d_j = g_j^2 / w_j

    A column is in no support with `f <= D + room` if `d_(k) - d_j > room`, in every one if `d_j - d_(k+1) > room`.

    Parameters
    ----------
    M, c, yy : (q, q), (q,), float
        The problem; M symmetric.
    w : (q,) array
        `M - diag(w)` positive semidefinite, w > 0.
    points : (T, q) array
        Any points: the closer to the relaxation's solution the more they fix.
    sizes : (T,) int array
        k, 0 < k < q.
    dual : (T,) array
        Written: D.
    slope : (T,) array
        Written: `b'G b`, beside which D is a difference.
    status : (T, q) int8 array
        Written where `room` allows: INSIDE or DROPPED, else FREE.
    room : (T,) array
        Added to with minus D: on entry the level that supports worth keeping stay below, on return the gap.

    Notes
    -----
    O(T q (nonzeros of a point + log q)).
    """
    q = c.shape[0]
    g = np.empty(q)
    d = np.empty(q)
    for t in range(sizes.shape[0]):
        k = sizes[t]
        b = points[t]
        for j in range(q):
            g[j] = c[j] + w[j] * b[j]
        for i in range(q):
            if b[i] != 0.0:
                for j in range(q):
                    g[j] -= M[i, j] * b[i]
        quad = 0.0
        for j in range(q):
            quad += b[j] * (c[j] - g[j])
            d[j] = g[j] * g[j] / w[j]
        ordered = np.sort(d)
        top = 0.0
        for a in range(k):
            top += ordered[q - 1 - a]
        dual[t] = yy - quad - top
        slope[t] = quad
        room[t] -= dual[t]
        inner = ordered[q - k]
        outer = ordered[q - k - 1]
        gap = room[t]
        for j in range(q):
            status[t, j] = FREE
            if inner - d[j] > gap:
                status[t, j] = DROPPED
            elif d[j] - outer > gap:
                status[t, j] = INSIDE
