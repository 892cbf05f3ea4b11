"""Three columns left to choose: which columns can be the most useful one of three that bring f down far enough.

Beside a node let `h_j = e_j / sqrt(d_j)` and H be the correlations of its free columns (:mod:`.last_levels`): some of
them, S, lower f by `h_S' H_SS^{-1} h_S`. For three columns the part of `H_SS` beside its diagonal has trace zero, so
no eigenvalue of it is below `-sqrt(2/3)` times its length, and

    gain of S  <=  (h_i^2 + h_j^2 + h_k^2) / (1 - sqrt(4/3 (H_ij^2 + H_ik^2 + H_jk^2)))

where the divisor is positive: columns of little gain of their own need strong correlations. What this leaves is looked
at exactly.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.last_levels import FLAT, eliminate

COLLINEAR = 1e-6  # share of a column beside another one below which the gain of three may be rounding
SURELY = 1.0 - 1e-9


@njit(cache=True, nogil=True)
def sort_by_gain(form, node, factor, x, rest):
    """Put the free columns of a node in the order of their gains, the largest first, and eliminate those inside.

    Parameters
    ----------
    form : Form
    node : Node
        `free` is sorted.
    factor, x : arrays
        As for `eliminate`.
    rest : Rest
        Filled for the new order.

    Returns
    -------
    bool
        False where M_II is not positive.
    """
    if not eliminate(form, node, factor, x, rest):
        return False
    count = node.count_free
    gain = np.empty(count)
    for f in range(count):
        gain[f] = -rest.e[f] * rest.e[f] / rest.d[f] if rest.d[f] > 0.0 else -np.inf
    order = np.argsort(gain)
    free = node.free[:count].copy()
    for f in range(count):
        node.free[f] = free[order[f]]
    return eliminate(form, node, factor, x, rest)


@njit(cache=True, nogil=True)
def correlations(form, node, rest, H, top, h):
    """Fill the correlations of the free columns beside those inside. O((s + 1) count^2 / 2).

    Parameters
    ----------
    form : Form
    node : Node
    rest : Rest
        As `eliminate` left it.
    H : (count, count) array
        Filled above the diagonal.
    top : (count,) array
        Filled with the largest squared correlation of every column.
    h : (count,) array
        Filled with the roots of their gains, with the sign of e.

    Returns
    -------
    bool
        False where a free column depends on those inside: nothing is filled then.
    """
    free, count, size = node.free, node.count_free, node.count_inside
    scale = np.empty(count)
    for f in range(count):
        if not rest.d[f] > 0.0:
            return False
        scale[f] = 1.0 / np.sqrt(rest.d[f])
        h[f] = rest.e[f] * scale[f]
        top[f] = 0.0
    for f in range(count):
        row, line = form.G[free[f]], H[f]
        for g in range(f + 1, count):
            line[g] = row[free[g]]
        for a in range(size):
            own, other = rest.rows[a, f], rest.rows[a]
            for g in range(f + 1, count):
                line[g] -= own * other[g]
        own = scale[f]
        most = top[f]
        for g in range(f + 1, count):
            t = line[g] * own * scale[g]
            line[g] = t
            most = max(most, t * t)
            top[g] = max(top[g], t * t)
        top[f] = most
    return True


@njit(cache=True, nogil=True)
def may_reach(H, top, h, first, need, e, d):
    """Whether a column and two of those after it may lower f by `need`; never False where they do.

    Parameters
    ----------
    H, top, h : arrays
        Of `correlations`, the largest gain first.
    first : int
        Place of the column.
    need : float
    e, d : (count,) arrays
        Work.

    Notes
    -----
    All columns together cost O(count^3 / 6) at the worst.
    """
    count = h.shape[0]
    own = h[first] * h[first]
    rest = need - own
    if rest <= 0.0:
        return True
    line = H[first]
    for k in range(first + 1, count):
        e[k] = h[k] - line[k] * h[first]
        d[k] = 1.0 - line[k] * line[k]
        if d[k] <= COLLINEAR:
            return True
    for j in range(first + 1, count - 1):
        tie = line[j]
        short = 1.0 - (own + 2.0 * h[j] * h[j]) / need
        if short > 0.0 and tie * tie + top[first] + top[j] < 0.75 * SURELY * short * short:
            continue
        row, e_j, d_j = H[j], e[j], d[j]
        found = 0
        for k in range(j + 1, count):
            t = row[k] - tie * line[k]
            det = d_j * d[k] - t * t
            gain = e_j * (e_j * d[k] - 2.0 * e[k] * t) + e[k] * e[k] * d_j
            found += np.int64(gain >= SURELY * rest * det) | np.int64(det <= FLAT * d_j * d[k])
        if found:
            return True
    return False
