"""The open nodes of a tree of one size, whatever bounds them: taken, ended and branched, and the supports they hold.

Normal form, `M = G + I`. A node fixes columns in (INSIDE) and out (DROPPED). Open nodes live in a pool of rows and a
binary heap, the least bound first, so that a stop at any moment leaves a valid lower bound: the smallest bound on the
heap. With one or two columns left to choose, or three of not too many, a node is scanned
(:mod:`sparsecv_mio.kernels.last_levels`): no relaxation, no node below.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import put, support_value
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.k_support import largest_places
from sparsecv_mio.kernels.last_levels import (
    Rest,
    correlations,
    eliminate,
    may_reach,
    new_rest,
    next_completion,
    sort_by_gain,
)
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, KeptSupports, Node, in_order, keep_support, new_kept

OPEN, NODES, KEPT, OVERFLOW, STEPS, SPARE, REUSED = 0, 1, 2, 3, 4, 5, 6
FINISHED, BUDGET, FULL, TAKEN = 0, 1, 2, 3
SHORT = 500  # free columns up to which three left to choose are scanned, for less than the nodes below would cost


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
    """Work of one call, for q columns: those inside and those free, a point and its slope, the best ones, a value's.

    `status` is that of the columns at the node, `trial` at one of its supports.
    """

    inside: np.ndarray
    free: np.ndarray
    status: np.ndarray
    b: np.ndarray
    g: np.ndarray
    best_b: np.ndarray
    best_g: np.ndarray
    x: np.ndarray
    factor: np.ndarray
    trial: np.ndarray
    rest: Rest


@njit(cache=True, nogil=True)
def new_scratch(q, tau):
    """Work of nodes of tau of q columns."""
    return NodeWork(
        np.empty(q, dtype=np.int64), np.empty(q, dtype=np.int64), np.empty(q, dtype=np.int8), np.zeros(q), np.zeros(q),
        np.zeros(q), np.zeros(q), np.empty(q), np.empty((tau, tau)), np.empty(q, dtype=np.int8), new_rest(q, tau),
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
def _close(s, form, tau, count, scratch, status, copies, margin):
    """Take in the only support left of a node: all its free columns if it has fewer than tau inside, else none."""
    inside = scratch.inside
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
def _scan(s, form, tau, node, scratch, copies, margin):
    """Take in every support of a node with one or two columns left that lies within the bar."""
    if not eliminate(form, node, scratch.factor, scratch.x, scratch.rest):
        return
    first, second = np.int64(0), np.int64(0)  # of plain ones `next_completion` is compiled a second time
    while True:
        first, second = next_completion(form, node, scratch.rest, s.best[1] + margin.slack, (first, second))
        if first >= node.count_free:
            return
        for place in range(node.k):
            scratch.inside[node.count_inside + place] = node.free[first if place == 0 else second]
        put(scratch.status, scratch.trial)
        for a in range(tau):
            scratch.trial[scratch.inside[a]] = INSIDE
        _close(s, form, tau, tau, scratch, scratch.trial, copies, margin)
        if node.k == 1:
            first += 1
        else:
            second += 1


@njit(cache=True, nogil=True)
def _scan_all(s, form, tau, node, scratch, copies, margin):
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
        _scan(s, form, tau, rest, scratch, copies, margin)  # one call: each costs seconds of compiling


@njit(cache=True, nogil=True)
def take_node(s, status, left):
    """Take the open node of the least bound, its columns into `status`, unless the tree ends or stops here.

    Parameters
    ----------
    s : NodePool
    status : (q,) int8 array
    left : int
        Nodes that may still be taken.

    Returns
    -------
    code : int
        TAKEN; FINISHED, BUDGET (nodes used up) or FULL (the pool must grow).
    bound, row : float, int
        Its bound and its row, now spare.
    """
    if s.ctrl[OPEN] > 0 and s.bound[0] >= s.best[1]:
        s.ctrl[OPEN] = 0
    if s.ctrl[OPEN] == 0 or left <= 0 or s.ctrl[SPARE] < 2:
        return (FINISHED if s.ctrl[OPEN] == 0 else BUDGET if left <= 0 else FULL), 0.0, np.int64(0)
    bound, row = _pop(s)
    put(s.status[row], status)
    s.spare[s.ctrl[SPARE]] = row
    s.ctrl[SPARE] += 1
    s.ctrl[NODES] += 1
    return TAKEN, bound, row


@njit(cache=True, nogil=True)
def ends_here(s, form, node, scratch, copies, margin):
    """Take in the supports of a node that none, one, or up to three columns left make; False if it has more.

    Parameters
    ----------
    s : NodePool
    form : Form
    node : Node
    scratch : NodeWork
    copies : Copies
    margin : Margin
    """
    k, count = node.k, node.count_free
    tau = node.count_inside + k
    if k < 0 or count < k:
        return True
    if k == 0 or count == k:
        _close(s, form, tau, node.count_inside, scratch, scratch.status, copies, margin)
        return True
    if k <= 2 or (k == 3 and count <= SHORT):
        _scan_all(s, form, tau, node, scratch, copies, margin)
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
    rows = (np.int64(-1), np.int64(-1))
    for side in range(2):
        s.ctrl[SPARE] -= 1
        new = s.spare[s.ctrl[SPARE]]
        put(status, s.status[new])
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
        put(scratch.b, s.point[new])
        rows = (new, rows[1]) if side == 0 else (rows[0], new)
        _push(s, dual, new)
    return rows
