"""The dual value of points that were solved for another problem, and what it fixes (theory sections 1 and 8)."""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.fold_bounds import EXACT, blurred, distances, one_support
from sparsecv_mio.kernels.k_support import largest
from sparsecv_mio.kernels.screening import fix_columns
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE


@njit(cache=True, nogil=True)
def reused_duals(
    M, c, yy, w, scale, points, sizes, tie, rounding, best, supports, wildest, exact, X, u, N, dual, status, decided,
    rows,
):
    """Screen every size of a fold by a given point; where one support is left, say what it predicts.

        D(b) = yy - b'G b - (sum of the k largest d_j),   G = M - diag(w),  g = c - G b,  d_j = g_j^2 / w_j

    A column is in no support with `f <= level` if `d_(k) - d_j > level - D`, in every one if
    `d_j - d_(k+1) > level - D`.

    Parameters
    ----------
    M, c, yy : (q, q), (q,), float
        The problem; M symmetric.
    w : (q,) array
        `M - diag(w)` positive semidefinite, w > 0.
    scale : (q,) array
        What the points are divided by to be in the units of M.
    points : (T, q) array
        Any points: the closer to the relaxation's solution the more they fix.
    sizes : (T,) int array
        k, 0 < k < q.
    tie, rounding : float
        Supports up to `best (1 + tie)` survive; unit of the rounding allowance (docs/theory/bounds.md 7).
    best, supports : (q + 1,), (q + 1, q) bool
        Incumbents by size.
    wildest : float
        `b'G b` over yy beyond which D is a difference of large numbers and fixes nothing.
    exact : bool
        Fill `rows`.
    X, u, N : (N', q), (N',), int
        Held-out rows, perhaps compressed from N.
    dual : (T,) array
        Written: D less the allowance, at least 0.
    status : (T, q) int8 array
        Written: INSIDE, DROPPED or FREE.
    decided : (T,) bool array
        Written: whether the incumbent is the only support left.
    rows : (T, 8) array
        Written where decided: as `fold_bounds.run` writes.

    Notes
    -----
    O(T (q (nonzeros of a point + log q) + k^3)), the last for decided sizes.
    """
    q = c.shape[0]
    b = np.empty(q)
    g = np.empty(q)
    d = np.empty(q)
    lo = np.empty(u.shape[0])
    hi = np.empty(u.shape[0])
    work = np.empty((q, q))
    x = np.empty(q)
    index = np.empty(q, dtype=np.int64)
    widest, heap = np.empty(q), np.empty(q)
    columns = np.arange(q)
    for j in range(q):
        widest[j] = 1.0 / w[j]
    for t in range(sizes.shape[0]):
        k = sizes[t]
        prior = np.sqrt(yy) * (1.0 + 2.0 * np.sqrt(largest(widest, q, k, heap)))
        total = 0.0
        for j in range(q):
            b[j] = points[t, j] / scale[j]
            total += abs(b[j])
            g[j] = c[j] + w[j] * b[j]
        for i in range(q):
            if b[i] != 0.0:
                for j in range(q):
                    g[j] -= M[i, j] * b[i]
        quad = 0.0
        for j in range(q):
            quad += b[j] * (c[j] - g[j])
            d[j] = g[j] * g[j] / w[j]
        largest(d, q, k + 1, heap)
        top = 0.0
        for a in range(k):
            top += heap[a]
        slip = rounding * (prior + total) ** 2
        value = yy - quad - top
        dual[t] = max(value - slip, 0.0)
        gap = best[k] * (1.0 + tie) + 2.0 * slip - value
        usable = quad <= wildest * yy and gap >= 0.0 and gap < np.inf
        decided[t] = usable
        for j in range(q):
            status[t, j] = FREE
        if usable:
            fix_columns(d, q, columns, heap[k - 1], heap[k], gap, status[t])
        for j in range(q):
            if status[t, j] != (INSIDE if supports[k, j] else DROPPED):
                decided[t] = False
        if not (decided[t] and exact):
            continue
        if not one_support(M, c, status[t], k, X, u, prior, rounding, lo, hi, work, x, index):
            decided[t] = False
            continue
        low, high = distances(u, lo, hi)
        rows[t, 6] = 0.5 * (low + high)
        low, high = blurred(low, high, N, rounding, prior)
        rows[t, 0] = max(min(dual[t], best[k]), best[k] - rounding * prior * prior, 0.0)
        rows[t, 1] = best[k] * (1.0 + tie) + rounding * prior * prior
        rows[t, 2] = low
        rows[t, 3] = high
        rows[t, 4] = EXACT
        rows[t, 5] = EXACT
        rows[t, 7] = 0.0
