"""Branch-and-bound for one tau on the perspective relaxation, best bound first (theory sections 1, 2 and 4).

The last two levels of a tree by a scan: exact gains of one and of two columns beside those of a node.

With `G = M_FF - M_FI M_II^{-1} M_IF`, `e = c_F - M_FI M_II^{-1} c_I` and d the diagonal of G, adding column j lowers
f(I) by exactly `e_j^2 / d_j`, adding j and k by `(e_j^2 d_k - 2 e_j e_k G_jk + e_k^2 d_j) / (d_j d_k - G_jk^2)`.

Three columns left to choose: which columns can be the most useful one of three that bring f down far enough.

Beside a node let `h_j = e_j / sqrt(d_j)` and H be the correlations of its free columns: some of them, S,
lower f by `h_S' H_SS^{-1} h_S`. For three columns the part of `H_SS` beside its diagonal has trace zero, so no
eigenvalue of it is below `-sqrt(2/3)` times its length, and

    gain of S  <=  (h_i^2 + h_j^2 + h_k^2) / (1 - sqrt(4/3 (H_ij^2 + H_ik^2 + H_jk^2)))

where the divisor is positive: columns of little gain of their own need strong correlations. What this leaves is looked
at exactly.

Same normal form as the path tree, `M = G + I`. A node fixes columns in (INSIDE) and out (DROPPED); it is closed by the
dual of its relaxation, its free columns are fixed by the safe screening of section 2 with the same dual point, and it
branches on the most fractional z. Open nodes live in a pool of rows and a binary heap, so that a stop at any moment
leaves a valid lower bound: the smallest bound on the heap. With one or two columns left to choose, or three of not too
many, a node is scanned as above: no relaxation, no node below.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import cholesky_in_place, gather, put, solve_lower, support_value
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.k_support import largest_places
from sparsecv_mio.kernels.node_bounds import bound_of_size
from sparsecv_mio.kernels.nodes import (
    DROPPED,
    FREE,
    INSIDE,
    Accuracy,
    KeptSupports,
    Node,
    in_order,
    keep_support,
    list_columns,
    new_kept,
)
from sparsecv_mio.kernels.screening import screen

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
        gain[f] = rest.e[f] * rest.e[f] / rest.d[f] if rest.d[f] > 0.0 else np.inf
    order = np.empty(count, dtype=np.int64)
    largest_places(gain, count, count, order)
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


OPEN, NODES, KEPT, OVERFLOW, STEPS, SPARE, REUSED = 0, 1, 2, 3, 4, 5, 6
FINISHED, BUDGET, FULL = 0, 1, 2
NEAR, NODE_STEPS = 0.3, np.int64(80)  # of the relaxation of a node; a plain 80 is a type of its own
SHORT = 500  # free columns up to which three left to choose are scanned, for less than the nodes below would cost
FEW_STEPS, MORE_STEPS = np.int64(2), np.int64(8)  # of a relaxation before a scan: it may close or shrink a node


class NodePool(NamedTuple):
    """Open nodes: bound and row by heap position, status and warm start by row, the unused rows."""

    ctrl: np.ndarray
    bound: np.ndarray
    row: np.ndarray
    status: np.ndarray
    point: np.ndarray
    spare: np.ndarray
    best: np.ndarray  # (2,): incumbent value, pruning bar
    best_mask: np.ndarray
    kept: KeptSupports


def new_pool(status, best, bar, best_mask, capacity=64, keep_capacity=256):
    """Pool with one open node of the given status (q,); O(capacity q) memory.

    Parameters
    ----------
    status : (q,) int8 array
    best, bar : float
        Incumbent value and pruning bar.
    best_mask : (q,) bool array
        The incumbent.
    capacity, keep_capacity : int
        Open nodes and kept supports there is room for.
    """
    q = status.shape[0]
    pool = NodePool(
        ctrl=np.zeros(7, dtype=np.int64),
        bound=np.full(capacity, -np.inf),
        row=np.zeros(capacity, dtype=np.int64),
        status=np.zeros((capacity, q), dtype=np.int8),
        point=np.zeros((capacity, q), dtype=np.float32),
        spare=np.arange(capacity - 1, -1, -1, dtype=np.int64),
        best=np.array([best, bar]),
        best_mask=best_mask.copy(),
        kept=new_kept(keep_capacity, q),
    )
    pool.status[0] = status
    pool.ctrl[SPARE] = capacity - 1
    pool.ctrl[OPEN] = 1
    return pool


def grown(pool):
    """Pool of twice the size holding the same nodes."""
    old = pool.bound.shape[0]
    spare = np.empty(2 * old, dtype=np.int64)
    left = int(pool.ctrl[SPARE])
    spare[:left] = pool.spare[:left]
    spare[left : left + old] = np.arange(2 * old - 1, old - 1, -1)
    pool.ctrl[SPARE] = left + old
    return pool._replace(
        bound=np.concatenate((pool.bound, np.zeros(old))),
        row=np.concatenate((pool.row, np.zeros(old, dtype=np.int64))),
        status=np.concatenate((pool.status, np.zeros_like(pool.status))),
        point=np.concatenate((pool.point, np.zeros_like(pool.point))),
        spare=spare,
    )


@njit(cache=True, nogil=True)
def _push(s, bound, row):
    i = s.ctrl[OPEN]
    s.ctrl[OPEN] = i + 1
    while i > 0:
        parent = (i - 1) // 2
        if s.bound[parent] <= bound:
            break
        s.bound[i] = s.bound[parent]
        s.row[i] = s.row[parent]
        i = parent
    s.bound[i] = bound
    s.row[i] = row


@njit(cache=True, nogil=True)
def _pop(s):
    """Take the open node of the least bound off the heap; returns its bound and its row.

    Parameters
    ----------
    s : NodePool
    """
    bound, row = s.bound[0], s.row[0]
    n = s.ctrl[OPEN] - 1
    s.ctrl[OPEN] = n
    x, r = s.bound[n], s.row[n]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and s.bound[child + 1] < s.bound[child]:
            child += 1
        if x <= s.bound[child]:
            break
        s.bound[i] = s.bound[child]
        s.row[i] = s.row[child]
        i = child
    if n > 0:
        s.bound[i] = x
        s.row[i] = r
    return bound, row


class NodeWork(NamedTuple):
    """Work of one call, for q columns: those inside and those free, a point and its slope, the best ones, a value's."""

    inside: np.ndarray
    free: np.ndarray
    status: np.ndarray
    b: np.ndarray
    g: np.ndarray
    best_b: np.ndarray
    best_g: np.ndarray
    x: np.ndarray
    factor: np.ndarray
    rest: Rest


@njit(cache=True, nogil=True)
def new_scratch(q, tau):
    """Work of nodes of tau of q columns."""
    return NodeWork(
        np.empty(q, dtype=np.int64), np.empty(q, dtype=np.int64), np.empty(q, dtype=np.int8), np.zeros(q), np.zeros(q),
        np.zeros(q), np.zeros(q), np.empty(q), np.empty((tau, tau)), new_rest(q, tau),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def improve(s, support, size, value, margin):
    """Make a support the incumbent if it is better."""
    if value < s.best[0]:
        s.best[0] = value
        s.best[1] = value * (1.0 + margin.keep) + margin.slack
        s.best_mask[:] = False
        for a in range(size):
            s.best_mask[support[a]] = True


@njit(cache=True, nogil=True)
def _close(s, form, tau, count, scratch, copies, margin):
    """Take in the only support left of a node: all its free columns if it has fewer than tau inside, else none."""
    inside, status = scratch.inside, scratch.status
    size = count
    for j in range(status.shape[0]):
        if status[j] == FREE:
            if count < tau:
                inside[size] = j
                size += 1
            else:
                status[j] = DROPPED
    if not in_order(copies, status):
        return
    value = support_value(form.G, 1.0, form.c, form.yy, inside, size, scratch.factor, scratch.x)
    improve(s, inside, size, value, margin)
    if value <= s.best[1]:
        kept = keep_support(s.kept, s.ctrl[KEPT], status, 0, value, s.best[1:])
        if kept < 0:
            s.ctrl[OVERFLOW] = 1
        else:
            s.ctrl[KEPT] = kept


@njit(cache=True, nogil=True)
def _scan(s, form, tau, node, scratch, trial, copies, margin):
    """Take in every support of a node with one or two columns left that lies within the bar."""
    if not eliminate(form, node, scratch.factor, scratch.x, scratch.rest):
        return
    first, second = np.int64(0), np.int64(0)  # of plain ones `next_completion` is compiled a second time
    while True:
        first, second = next_completion(form, node, scratch.rest, s.best[1] + margin.slack, (first, second))
        if first >= node.count_free:
            return
        for place in range(node.k):
            trial.inside[node.count_inside + place] = node.free[first if place == 0 else second]
        put(scratch.status, trial.status)
        for a in range(tau):
            trial.status[trial.inside[a]] = INSIDE
        _close(s, form, tau, tau, trial, copies, margin)
        if node.k == 1:
            first += 1
        else:
            second += 1


@njit(cache=True, nogil=True)
def _scan_all(s, form, tau, node, scratch, trial, copies, margin):
    """Do so with up to three columns left: one of them in turn, two of those after it."""
    three, size, count = node.k == 3, node.count_inside, node.count_free
    side = count if three else 0
    H, top, h, e, d = np.empty((side, side)), np.empty(side), np.empty(side), np.empty(side), np.empty(side)
    sure, value = False, 0.0
    if three:
        if not sort_by_gain(form, node, scratch.factor, scratch.x, scratch.rest):
            return
        value = scratch.rest.value[0]
        sure = correlations(form, node, scratch.rest, H, top, h)
    for f in range(count - 2 if three else 1):
        rest = node
        if three:
            if sure and not may_reach(H, top, h, f, value - s.best[1] - margin.slack, e, d):
                continue
            node.inside[size] = node.free[f]
            rest = Node(node.inside, size + 1, node.free[f + 1 :], count - f - 1, 2)
        _scan(s, form, tau, rest, scratch, trial, copies, margin)  # one call: each costs seconds of compiling


@njit(cache=True, nogil=True)
def take_node(s, status):
    """Take the open node of the least bound, its columns into `status`; returns its bound and its row, now spare.

    Parameters
    ----------
    s : NodePool
    status : (q,) int8 array
    """
    bound, row = _pop(s)
    for j in range(status.shape[0]):
        status[j] = s.status[row, j]
    s.spare[s.ctrl[SPARE]] = row
    s.ctrl[SPARE] += 1
    s.ctrl[NODES] += 1
    return bound, row


@njit(cache=True, nogil=True)
def ends_here(s, form, node, scratch, trial, copies, margin):
    """Take in the supports of a node that none, one, or up to three columns left make; False if it has more.

    Parameters
    ----------
    s : NodePool
    form : Form
    node : Node
    scratch, trial : NodeWork
    copies : Copies
    margin : Margin
    """
    k, count = node.k, node.count_free
    tau = node.count_inside + k
    if k < 0 or count < k:
        return True
    if k == 0 or count == k:
        _close(s, form, tau, node.count_inside, scratch, copies, margin)
        return True
    if k <= 2 or (k == 3 and count <= SHORT):
        _scan_all(s, form, tau, node, scratch, trial, copies, margin)
        return True
    return False


@njit(cache=True, nogil=True)
def try_largest(s, form, node, scratch, margin):
    """Try the columns inside and those free ones with the k largest `scratch.x` as a support.

    Parameters
    ----------
    s : NodePool
    form : Form
    node : Node
    scratch : NodeWork
        x is filled for the free columns, in their order.
    margin : Margin
    """
    support, x = scratch.inside, scratch.x
    chosen = support[node.count_inside :]
    largest_places(x, node.count_free, node.k, chosen)
    for a in range(node.k):
        chosen[a] = node.free[chosen[a]]
    size = node.count_inside + node.k
    value = support_value(form.G, 1.0, form.c, form.yy, support, size, scratch.factor, x)
    improve(s, support, size, value, margin)


@njit(cache=True, nogil=True)
def _branch_column(b, g, free, nf):
    """Fractional z = b / g nearest 3/4 (measured better than 1/2 where branching is long), else the largest z."""
    pick = free[0]
    most = -1.0
    for a in range(nf):
        j = free[a]
        z = 0.0
        if g[j] != 0.0:
            z = min(max(b[j] / g[j], 0.0), 1.0)
        x = min(z, 3.0 * (1.0 - z))
        if x < 1e-6:
            x = 1e-7 * z
        x += 1e-12 * abs(g[j])
        if x > most:
            most = x
            pick = j
    return pick


@njit(cache=True, nogil=True)
def branch(s, dual, j, scratch, copies):
    """Open the two nodes with and without column j and its copies; returns their rows, -1 for none.

    Parameters
    ----------
    s : NodePool
    dual : float
        Their bound.
    j : int
    scratch : NodeWork
        With the status and the point b of their parent.
    copies : Copies
    """
    status = scratch.status
    q = status.shape[0]
    rows = (np.int64(-1), np.int64(-1))
    for side in range(2):
        s.ctrl[SPARE] -= 1
        new = s.spare[s.ctrl[SPARE]]
        for i in range(q):
            s.status[new, i] = status[i]
        ok = True
        if side == 0:
            s.status[new, j] = INSIDE
            other = copies.before[j]
            while other >= 0:
                ok = ok and status[other] != DROPPED
                s.status[new, other] = INSIDE
                other = copies.before[other]
        else:
            s.status[new, j] = DROPPED
            other = copies.after[j]
            while other >= 0:
                ok = ok and status[other] != INSIDE
                s.status[new, other] = DROPPED
                other = copies.after[other]
        if not ok:
            s.spare[s.ctrl[SPARE]] = new
            s.ctrl[SPARE] += 1
            continue
        for i in range(q):
            s.point[new, i] = scratch.b[i]
        rows = (new, rows[1]) if side == 0 else (rows[0], new)
        _push(s, dual, new)
    return rows


@njit(cache=True, nogil=True)
def run(s, form, tau, copies, margin, max_nodes):
    """Work on the tree for at most `max_nodes` nodes.

    Parameters
    ----------
    s : NodePool
    form : Form
    tau : int
        1 <= tau < q.
    copies : Copies
    margin : Margin
    max_nodes : int

    Returns
    -------
    int
        FINISHED, BUDGET (nodes used up) or FULL (the pool must grow).

    Notes
    -----
    A node costs a few relaxation steps of O(|A| nnz + s^3) each.
    """
    q = form.c.shape[0]
    scratch = new_scratch(q, tau)
    inside, free, status, x = scratch.inside, scratch.free, scratch.status, scratch.x
    b, best_b, best_g = scratch.b, scratch.best_b, scratch.best_g
    trial = NodeWork(
        inside, free, np.empty(q, dtype=np.int8), b, scratch.g, best_b, best_g, x, scratch.factor, scratch.rest
    )
    left = max_nodes
    while s.ctrl[OPEN] > 0:
        if s.bound[0] >= s.best[1]:
            s.ctrl[OPEN] = 0
            break
        if left <= 0:
            return BUDGET
        if s.ctrl[SPARE] < 2:
            return FULL
        bound, row = take_node(s, status)
        for j in range(q):
            b[j] = s.point[row, j]
        left -= 1
        closed = False
        dual = bound
        for sweep in range(3):
            ni, nf = list_columns(status, inside, free)
            k = tau - ni
            if k <= 0 or nf <= k:
                break
            for j in range(q):
                if status[j] == DROPPED:
                    b[j] = 0.0
            node = Node(inside, ni, free, nf, k)
            few = NODE_STEPS if k > 3 else FEW_STEPS if nf <= SHORT else MORE_STEPS if k <= 2 else NODE_STEPS
            d, _, steps = bound_of_size(form, node, Accuracy(s.best[1], NEAR, few), b, scratch.g, best_b, best_g)
            s.ctrl[STEPS] += steps
            dual = max(dual, d)
            if dual >= s.best[1]:
                if steps == 0:  # the parent's dual point was enough
                    s.ctrl[REUSED] += 1
                closed = True
                break
            for a in range(nf):
                x[a] = abs(best_g[free[a]])
            try_largest(s, form, node, scratch, margin)
            for a in range(nf):
                x[a] = best_g[free[a]] * best_g[free[a]]
            fixed = screen(x, nf, free, k, s.best[1] - d, status)
            for j in range(q):
                b[j] = best_b[j] if status[j] != DROPPED else 0.0
            # few columns fixed: what is left is not worth another relaxation, unless it is one support
            if fixed == 0 or (10 * fixed < nf and nf - fixed > 8):
                break
        if closed:
            continue
        ni, nf = list_columns(status, inside, free)
        if ends_here(s, form, Node(inside, ni, free, nf, tau - ni), scratch, trial, copies, margin):
            continue
        branch(s, dual, _branch_column(best_b, best_g, free, nf), scratch, copies)
    return FINISHED
