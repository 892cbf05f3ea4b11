"""Safe screening by a dual point, of the problem itself or of another one (theory sections 1, 2 and 8).

Safe screening by a dual point: columns that every, or that no, good enough support holds (theory section 2).

With `d_j = g_j^2 / w_j` at any point and D its own dual value, a support S of k columns has

    f(S)  >=  D + (sum of the k largest d) - (sum of d over S),

so one without column i has `f >= D + d_i - d_(k+1)` and one with it `f >= D + d_(k) - d_i`, d_(1) >= d_(2) >= ...
Valid for that k alone: optima of two sizes need not nest.

Rounding: `room` is how far above D the supports to be kept may lie; whoever calls adds the rounding of D and of their f
to it. The rule itself subtracts once and compares.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.held_out_sums import EXACT, blurred, distances, one_support
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.k_support import largest
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, Rounding, size_of_candidates
from sparsecv_mio.kernels.perspective_newton import new_factor


@njit(cache=True, nogil=True)
def fix_columns(d, count, columns, inner, outer, room, status):
    """Fix the columns that the rule decides.

    Parameters
    ----------
    d : array
        `g_j^2 / w_j` of the open columns; the first `count` entries count.
    count : int
    columns : int array
        Their places in `status`.
    inner, outer : float
        The k-th and the (k + 1)-th largest of d, 0 < k < count.
    room : float
        Supports with f at most D + room are to be kept.
    status : (q,) int8 array
        DROPPED or INSIDE is written where a column is fixed.

    Returns
    -------
    int
        How many are.
    """
    fixed = 0
    for a in range(count):
        if inner - d[a] > room:
            status[columns[a]] = DROPPED
            fixed += 1
        elif d[a] - outer > room:
            status[columns[a]] = INSIDE
            fixed += 1
    return fixed


@njit(cache=True, nogil=True)
def screen(d, count, columns, k, room, status):
    """Fix the open columns of a node that has k columns to choose, see `fix_columns`; return how many. O(count k).

    Parameters
    ----------
    d, count, columns, room, status
        As for `fix_columns`.
    k : int
        0 < k < count.
    """
    heap = np.empty(k + 1)
    largest(d, count, k + 1, heap)
    return fix_columns(d, count, columns, heap[k - 1], heap[k], room, status)


class ReuseTask(NamedTuple):
    """What is asked of the points.

    Attributes
    ----------
    tie, unit : float
        Supports up to `best (1 + tie)` survive; unit of the rounding allowance (docs/theory/bounds.md 7).
    wildest : float
        `b'G b` over yy beyond which D is a difference of large numbers and fixes nothing.
    rows : int
        Held-out rows that `X, u` stand for.
    exact : bool
        Fill `numbers`.
    """

    tie: float
    unit: float
    wildest: float
    rows: int
    exact: bool


class Reused(NamedTuple):
    """What the points of T sizes say.

    Attributes
    ----------
    sizes : (T,) int array
        k, 0 < k < q.
    dual : (T,) array
        D less the allowance, at least 0.
    status : (T, q) int8 array
        INSIDE, DROPPED or FREE.
    decided : (T,) bool array
        Whether the incumbent is the only support left.
    numbers : (T, 8) array
        Where decided: as `fold_bounds.run` writes.
    """

    sizes: np.ndarray
    dual: np.ndarray
    status: np.ndarray
    decided: np.ndarray
    numbers: np.ndarray


@njit(cache=True, nogil=True)
def reused_duals(fold, scale, points, asked, incumbents, found):
    """Screen every size of a fold by a given point; where one support is left, say what it predicts.

        D(b) = yy - b'G b - (sum of the k largest d_j),   G = M - diag(w),  g = c - G b,  d_j = g_j^2 / w_j

    A column is in no support with `f <= level` if `d_(k) - d_j > level - D`, in every one if
    `d_j - d_(k+1) > level - D`.

    Parameters
    ----------
    fold : Fold
    scale : (q,) array
        What the points are divided by to be in the units of M.
    points : (T, q) array
        Any points: the closer to the relaxation's solution the more they fix.
    asked : ReuseTask
    incumbents : Incumbents
    found : Reused
        Filled for its sizes.

    Notes
    -----
    O(T (q (nonzeros of a point + log q) + k^3)), the last for decided sizes.
    """
    M, c, yy, w, u = fold.M, fold.c, fold.yy, fold.w, fold.u
    sizes, dual, status, decided, rows = found
    best, supports = incumbents
    q = c.shape[0]
    b = np.empty(q)
    g = np.empty(q)
    d = np.empty(q)
    lo = np.empty(u.shape[0])
    hi = np.empty(u.shape[0])
    factor = new_factor(q, q)
    widest, heap = np.empty(q), np.empty(q)
    columns = np.arange(q)
    for j in range(q):
        widest[j] = 1.0 / w[j]
    for t in range(sizes.shape[0]):
        k = sizes[t]
        prior = size_of_candidates(yy, widest, k)
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
        slip = asked.unit * (prior + total) ** 2
        value = yy - quad - top
        dual[t] = max(value - slip, 0.0)
        gap = best[k] * (1.0 + asked.tie) + 2.0 * slip - value
        usable = quad <= asked.wildest * yy and gap >= 0.0 and gap < np.inf
        decided[t] = usable
        for j in range(q):
            status[t, j] = FREE
        if usable:
            fix_columns(d, q, columns, heap[k - 1], heap[k], gap, status[t])
        for j in range(q):
            if status[t, j] != (INSIDE if supports[k, j] else DROPPED):
                decided[t] = False
        if not (decided[t] and asked.exact):
            continue
        rounding = Rounding(asked.unit, prior, 0.0, scale)
        if not one_support(fold, status[t], k, rounding, lo, hi, factor):
            decided[t] = False
            continue
        low, high = distances(u, lo, hi)
        rows[t, 6] = 0.5 * (low + high)
        low, high = blurred(low, high, asked.rows, rounding)
        rows[t, 0] = max(min(dual[t], best[k]), best[k] - asked.unit * prior * prior, 0.0)
        rows[t, 1] = best[k] * (1.0 + asked.tie) + asked.unit * prior * prior
        rows[t, 2] = low
        rows[t, 3] = high
        rows[t, 4] = EXACT
        rows[t, 5] = EXACT
        rows[t, 7] = 0.0
