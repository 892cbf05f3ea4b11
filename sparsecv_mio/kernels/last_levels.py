"""The last two levels of a tree by a scan: exact gains of one and of two columns beside those of a node.

With `G = M_FF - M_FI M_II^{-1} M_IF`, `e = c_F - M_FI M_II^{-1} c_I` and d the diagonal of G, adding column j lowers
f(I) by exactly `e_j^2 / d_j`, adding j and k by `(e_j^2 d_k - 2 e_j e_k G_jk + e_k^2 d_j) / (d_j d_k - G_jk^2)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sparsecv_mio.kernels.dense import cholesky_in_place, gather, solve_lower

FLAT = 1e-9  # share of `d_j d_k` below which their determinant may be rounding


class Rest(NamedTuple):
    """What a node leaves of its free columns, in the order of `node.free`.

    Attributes
    ----------
    rows : (s, q) array
        `L^{-1} M_IF` for `M_II = L L'`.
    e, d : (q,) arrays
    value : (1,) array
        f(I).
    line : (q,) array
        Work.
    """

    rows: np.ndarray
    e: np.ndarray
    d: np.ndarray
    value: np.ndarray
    line: np.ndarray


@njit(cache=True, nogil=True)
def new_rest(q, tau):
    """Room for supports of tau of q columns."""
    return Rest(np.empty((max(tau, 1), q)), np.empty(q), np.empty(q), np.empty(1), np.empty(q))


@njit(cache=True, nogil=True)
def eliminate(form, node, factor, x, rest):
    """Fill `rest` for a node; False where M_II is not positive. O(s^2 count).

    Parameters
    ----------
    form : Form
    node : Node
    factor : array
        At least (s, s): work.
    x : array
        Work for s numbers.
    rest : Rest
    """
    G, c, inside, free, size = form.G, form.c, node.inside, node.free, node.count_inside
    gather(G, inside, size, factor)
    for a in range(size):
        factor[a, a] += 1.0
        x[a] = c[inside[a]]
    if not cholesky_in_place(factor, size):
        return False
    solve_lower(factor, x, size)
    value = form.yy
    for a in range(size):
        value -= x[a] * x[a]
    rest.value[0] = value
    for f in range(node.count_free):
        j = free[f]
        rest.e[f] = c[j]
        rest.d[f] = G[j, j] + 1.0
    for a in range(size):
        row, line = rest.rows[a], G[inside[a]]
        for f in range(node.count_free):
            row[f] = line[free[f]]
        for i in range(a):
            h, other = factor[a, i], rest.rows[i]
            for f in range(node.count_free):
                row[f] -= h * other[f]
        h = 1.0 / factor[a, a]
        for f in range(node.count_free):
            row[f] *= h
            rest.e[f] -= x[a] * row[f]
            rest.d[f] -= row[f] * row[f]
    return True


@njit(cache=True, nogil=True)
def next_completion(form, node, rest, bar, start):
    """Find the next one or two free columns that bring f to at most `bar`, from where the last search ended.

    Pairs of columns that are collinear to rounding are named whatever they bring.

    Parameters
    ----------
    form : Form
    node : Node
        With k = 1 or 2.
    rest : Rest
        As `eliminate` left it.
    bar : float
    start : (int, int)
        Places of the last one found; (0, 0) to begin with.

    Returns
    -------
    first, second : int
        Places in `node.free`; first is `count_free` at the end, second is 0 for a single column.

    Notes
    -----
    All pairs cost O((s + 1) count^2 / 2).
    """
    free, count, size = node.free, node.count_free, node.count_inside
    e, d, line = rest.e, rest.d, rest.line
    need = rest.value[0] - bar
    f, h = start
    if node.k == 1:
        while f < count and not e[f] * e[f] >= need * d[f]:
            f += 1
        return f, 0
    while f < count:
        if h <= f:
            h = f + 1
            row = form.G[free[f]]
            for g in range(h, count):
                line[g] = row[free[g]]
            for a in range(size):
                own, other = rest.rows[a, f], rest.rows[a]
                for g in range(h, count):
                    line[g] -= own * other[g]
        e_f, d_f = e[f], d[f]
        while h < count:
            t = line[h]
            det = d_f * d[h] - t * t
            if e_f * (e_f * d[h] - 2.0 * e[h] * t) + e[h] * e[h] * d_f >= need * det or det <= FLAT * d_f * d[h]:
                return f, h
            h += 1
        f += 1
        h = 0
    return count, 0
