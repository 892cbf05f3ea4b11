"""The open nodes of a best-first tree of one size, for any kind of bound, and the supports that the tree has found.

The problem has the normal form `M = G + I`. A node includes columns (INSIDE) and excludes columns (DROPPED). Open nodes
are stored as rows of arrays and in a binary heap, the smallest bound first. If the tree stops at any moment, the
smallest bound in the heap is a valid lower bound. If one or two columns are left to choose, or three columns out of at
most `MAX_SCANNED_COLUMNS`, all choices are scanned without a relaxation or further nodes
(:mod:`sparsecv_mio.kernels.last_levels`).
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import copy_vector, support_value
from sparsecv_mio.kernels.jit import FIRST_INDEX, NO_INDEX, NO_ITEMS, njit
from sparsecv_mio.kernels.k_support import largest_places
from sparsecv_mio.kernels.last_levels import (
    Rest,
    correlations,
    eliminate,
    may_reach,
    new_rest_arrays,
    next_completion,
    sort_by_gain,
)
from sparsecv_mio.kernels.nodes import (
    DROPPED,
    FREE,
    INSIDE,
    KeptSupports,
    Node,
    keep_support,
    new_kept_supports,
    uses_copies_in_order,
)

OPEN, NODES, KEPT, OVERFLOW, STEPS, SPARE, REUSED = range(7)
FINISHED, BUDGET, FULL, TAKEN = range(4)
MAX_SCANNED_COLUMNS = 500  # maximum number of free columns for which a scan of three costs less than the nodes below


class NodePool(NamedTuple):
    """Open nodes: bound and row by heap position, status and start by row, the unused rows."""

    ctrl: np.ndarray
    bound: np.ndarray
    row: np.ndarray
    status: np.ndarray
    point: np.ndarray
    spare: np.ndarray
    best: np.ndarray  # (2,): incumbent value, cutoff
    best_mask: np.ndarray
    kept: KeptSupports


def new_pool(status, best, bar, best_mask, capacity=64, keep_capacity=256):
    """Return a pool with one open node of the given status (q,); O(capacity q) memory.

    Parameters
    ----------
    status : (q,) int8 array
        Status of columns.
    best, bar : float
        Incumbent value and cutoff.
    best_mask : (q,) bool array
        Incumbent.
    capacity, keep_capacity : int
        Capacities for open nodes and for stored supports.
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
        kept=new_kept_supports(keep_capacity, q),
    )
    pool.status[0] = status
    pool.ctrl[SPARE] = capacity - 1
    pool.ctrl[OPEN] = 1
    return pool


def grow_pool(pool):
    """Return a pool of twice the size with the same nodes."""
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
    """Remove the open node with the smallest bound from the heap; return its bound and its row.

    Parameters
    ----------
    s : NodePool
        Pool.
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
    """Work arrays of one call, for q columns: included and free ones, a point and its slope, the best ones, a value's.

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
    """Return work arrays for nodes of tau of q columns."""
    return NodeWork(
        np.empty(q, dtype=np.int64),
        np.empty(q, dtype=np.int64),
        np.empty(q, dtype=np.int8),
        np.zeros(q),
        np.zeros(q),
        np.zeros(q),
        np.zeros(q),
        np.empty(q),
        np.empty((tau, tau)),
        np.empty(q, dtype=np.int8),
        new_rest_arrays(q, tau),
    )


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
    """Record the only support left of a node, with all free columns if fewer than tau are included, else with none."""
    inside = scratch.inside
    size = count
    for j in range(status.shape[0]):
        if status[j] == FREE:
            if count < tau:
                inside[size] = j
                size += 1
            else:
                status[j] = DROPPED
    if not uses_copies_in_order(copies, status):
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
    """Record every support within the cutoff of a node with one or two columns left to choose."""
    if not eliminate(form, node, scratch.factor, scratch.x, scratch.rest):
        return
    first, second = FIRST_INDEX, FIRST_INDEX
    while True:
        first, second = next_completion(form, node, scratch.rest, s.best[1] + margin.slack, (first, second))
        if first >= node.count_free:
            return
        for place in range(node.k):
            scratch.inside[node.count_inside + place] = node.free[first if place == 0 else second]
        copy_vector(scratch.status, scratch.trial)
        for a in range(tau):
            scratch.trial[scratch.inside[a]] = INSIDE
        _close(s, form, tau, tau, scratch, scratch.trial, copies, margin)
        if node.k == 1:
            first += 1
        else:
            second += 1


@njit(cache=True, nogil=True)
def _scan_all(s, form, tau, node, scratch, copies, margin):
    """Record them with up to three columns left to choose: each column in turn, with two of those after it."""
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
        _scan(s, form, tau, rest, scratch, copies, margin)  # the only call, because each one takes seconds to compile


@njit(cache=True, nogil=True)
def take_node(s, status, left):
    """Take the open node with the smallest bound and fill `status`, unless the tree ends or stops here.

    Parameters
    ----------
    s : NodePool
        Pool.
    status : (q,) int8 array
        Array to fill with the status of columns.
    left : int
        Number of nodes that may still be taken.

    Returns
    -------
    code : int
        TAKEN; FINISHED, BUDGET (nodes used up) or FULL (the pool must grow).
    bound, row : float, int
        Bound and row of the node; the row is unused now.
    """
    if s.ctrl[OPEN] > 0 and s.bound[0] >= s.best[1]:
        s.ctrl[OPEN] = 0
    if s.ctrl[OPEN] == 0 or left <= 0 or s.ctrl[SPARE] < 2:
        return (FINISHED if s.ctrl[OPEN] == 0 else BUDGET if left <= 0 else FULL), 0.0, NO_ITEMS
    bound, row = _pop(s)
    copy_vector(s.status[row], status)
    s.spare[s.ctrl[SPARE]] = row
    s.ctrl[SPARE] += 1
    s.ctrl[NODES] += 1
    return TAKEN, bound, row


@njit(cache=True, nogil=True)
def ends_here(s, form, node, scratch, copies, margin):
    """Record the supports of a node with at most three columns left to choose; return False if there are more.

    Parameters
    ----------
    s : NodePool
        Pool.
    form : Form
        Problem.
    node : Node
        Node.
    scratch : NodeWork
        Work arrays.
    copies : Copies
        Duplicate columns.
    margin : Margin
        Margin within which supports are kept.
    """
    k, count = node.k, node.count_free
    tau = node.count_inside + k
    if k < 0 or count < k:
        return True
    if k == 0 or count == k:
        _close(s, form, tau, node.count_inside, scratch, scratch.status, copies, margin)
        return True
    if k <= 2 or (k == 3 and count <= MAX_SCANNED_COLUMNS):
        _scan_all(s, form, tau, node, scratch, copies, margin)
        return True
    return False


@njit(cache=True, nogil=True)
def try_largest(s, form, node, scratch, margin):
    """Try the included columns and the free ones with the k largest `scratch.x` as a support.

    Parameters
    ----------
    s : NodePool
        Pool.
    form : Form
        Problem.
    node : Node
        Node.
    scratch : NodeWork
        Work arrays; x is filled for the free columns, in their order.
    margin : Margin
        Margin within which supports are kept.
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
    """Open the two nodes with and without column j and its copies; return their rows, -1 for none.

    Parameters
    ----------
    s : NodePool
        Pool.
    dual : float
        Bound of both nodes.
    j : int
        Column.
    scratch : NodeWork
        Work arrays with the status and the point b of their parent.
    copies : Copies
        Duplicate columns.
    """
    status = scratch.status
    rows = (NO_INDEX, NO_INDEX)
    for side in range(2):
        s.ctrl[SPARE] -= 1
        new = s.spare[s.ctrl[SPARE]]
        copy_vector(status, s.status[new])
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
        copy_vector(scratch.b, s.point[new])
        rows = (new, rows[1]) if side == 0 else (rows[0], new)
        _push(s, dual, new)
    return rows
