"""Scans of the last levels of a branch-and-bound tree, by exact gains of up to three further columns.

Let I be the included and F the free columns of a node. With `G = M_FF - M_FI M_II^{-1} M_IF`,
`e = c_F - M_FI M_II^{-1} c_I` and d the diagonal of G, adding column j lowers f(I) by exactly `e_j^2 / d_j`. Adding j
and k lowers f(I) by `(e_j^2 d_k - 2 e_j e_k G_jk + e_k^2 d_j) / (d_j d_k - G_jk^2)`.

If three columns are left to choose, a first test discards columns. Consider all sets of three columns that lower f to
the cutoff or below. The test keeps a column if it may have the largest single gain `e_j^2 / d_j` in one of these sets.
Let `h_j = e_j / sqrt(d_j)`, and let H contain the correlations of the free columns, given the columns of I. A set S of
free columns lowers f by `h_S' H_SS^{-1} h_S`. For three columns, the off-diagonal part of `H_SS` has trace zero. Its
smallest eigenvalue is therefore at least `-sqrt(2/3)` times its Frobenius norm, and

    gain of S  <=  (h_i^2 + h_j^2 + h_k^2) / (1 - sqrt(4/3 (H_ij^2 + H_ik^2 + H_jk^2)))

if the divisor is positive. Columns with small gains therefore need strong correlations. The gains of all sets of three
of the columns that pass the test are computed exactly.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import cholesky_in_place, gather, solve_lower
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.k_support import largest_places

ROUNDED_DET = 1e-9  # share of `d_j d_k` below which the determinant may be rounding error


class Rest(NamedTuple):
    """The free columns of a node after elimination of the included ones, in the order of `node.free`.

    Attributes
    ----------
    rows : (s, q) array
        `L^{-1} M_IF` for `M_II = L L'`.
    e, d : (q,) arrays
        Vectors e and d of the module.
    value : (1,) array
        f(I).
    line : (q,) array
        Work array.
    """

    rows: np.ndarray
    e: np.ndarray
    d: np.ndarray
    value: np.ndarray
    line: np.ndarray


@njit(cache=True, nogil=True)
def new_rest_arrays(q, tau):
    """Return arrays for supports of tau of q columns."""
    return Rest(np.empty((max(tau, 1), q)), np.empty(q), np.empty(q), np.empty(1), np.empty(q))


@njit(cache=True, nogil=True)
def eliminate(form, node, factor, x, rest):
    """Fill `rest` for a node; return False if M_II is not positive. O(s^2 count).

    Parameters
    ----------
    form : Form
        Problem.
    node : Node
        Node.
    factor : array
        Work array, at least (s, s).
    x : array
        Work array for s numbers.
    rest : Rest
        Arrays to fill.
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
    """Return the next one or two free columns that lower f to at most `bar`, after the last ones found.

    Pairs of columns that are collinear to rounding are returned whatever their gain.

    Parameters
    ----------
    form : Form
        Problem.
    node : Node
        Node with k = 1 or 2.
    rest : Rest
        Arrays as `eliminate` left them.
    bar : float
        Cutoff.
    start : (int, int)
        Positions of the last columns found; (0, 0) to begin with.

    Returns
    -------
    first, second : int
        Positions in `node.free`; first is `count_free` at the end, second is 0 for a single column.

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
            if e_f * (e_f * d[h] - 2.0 * e[h] * t) + e[h] * e[h] * d_f >= need * det or det <= ROUNDED_DET * d_f * d[h]:
                return f, h
            h += 1
        f += 1
        h = 0
    return count, 0


COLLINEAR = 1e-6  # share of a column left by another one below which the gain of three may be rounding error
SURELY = 1.0 - 1e-9


@njit(cache=True, nogil=True)
def sort_by_gain(form, node, factor, x, rest):
    """Sort the free columns of a node by falling gain, and eliminate the included columns.

    Parameters
    ----------
    form : Form
        Problem.
    node : Node
        Node, whose `free` is sorted.
    factor, x : arrays
        Work arrays as for `eliminate`.
    rest : Rest
        Arrays to fill for the new order.

    Returns
    -------
    bool
        False if M_II is not positive.
    """
    if not eliminate(form, node, factor, x, rest):
        return False
    count = node.count_free
    gain = np.empty(count)
    for f in range(count):
        gain[f] = rest.e[f] * rest.e[f] / rest.d[f] if rest.d[f] > 0.0 else np.inf
    order = np.empty(count, dtype=np.int64)
    largest_places(gain, count, count, order)
    free = node.free[:count].copy()
    for f in range(count):
        node.free[f] = free[order[f]]
    return eliminate(form, node, factor, x, rest)


@njit(cache=True, nogil=True)
def correlations(form, node, rest, H, top, h):
    """Fill the correlations of the free columns given the included ones. O((s + 1) count^2 / 2).

    Parameters
    ----------
    form : Form
        Problem.
    node : Node
        Node.
    rest : Rest
        Arrays as `eliminate` left them.
    H : (count, count) array
        Array to fill above the diagonal.
    top : (count,) array
        Array to fill with the largest squared correlation of every column.
    h : (count,) array
        Array to fill with the square roots of the gains, with the sign of e.

    Returns
    -------
    bool
        False if a free column depends on the included ones: nothing is filled then.
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
    """Return True if a column and two later ones may lower f by `need`; never False if they do.

    Parameters
    ----------
    H, top, h : arrays
        Results of `correlations`, the largest gain first.
    first : int
        Position of the column.
    need : float
        Required decrease of f.
    e, d : (count,) arrays
        Work arrays.

    Notes
    -----
    All columns together cost O(count^3 / 6) at most.
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
            found += np.int64(gain >= SURELY * rest * det) | np.int64(det <= ROUNDED_DET * d_j * d[k])
        if found:
            return True
    return False
