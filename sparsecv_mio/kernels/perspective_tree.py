"""Branch-and-bound for one tau on the perspective relaxation, best bound first (theory sections 1, 2 and 4).

Same normal form as the path tree, `M = G + I`. A node fixes columns in (INSIDE) and out (DROPPED); it is closed by the
dual of its relaxation, its free columns are fixed by the safe screening of section 2 with the same dual point, and it
branches on the most fractional z. Open nodes live in a pool of rows and a binary heap, so that a stop at any moment
leaves a valid lower bound: the smallest bound on the heap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sparsecv_mio.kernels.dense import support_value
from sparsecv_mio.kernels.perspective import relax
from sparsecv_mio.kernels.screening import screen
from sparsecv_mio.kernels.status import DROPPED, INSIDE, list_columns

OPEN, NODES, KEPT, OVERFLOW, STEPS, SPARE, REUSED = 0, 1, 2, 3, 4, 5, 6
FINISHED, BUDGET, FULL = 0, 1, 2
NEAR, NODE_STEPS = 0.3, np.int64(80)  # of the relaxation of a node; a plain 80 is a type of its own


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
    kept_mask: np.ndarray
    kept_value: np.ndarray


def new_pool(status, best, bar, best_mask, capacity=64, keep_capacity=256):
    """Pool with one open node of the given status (q,); O(capacity q) memory."""
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
        kept_mask=np.zeros((keep_capacity, q), dtype=np.bool_),
        kept_value=np.zeros(keep_capacity),
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


@njit(cache=True, nogil=True)
def _record(s, index, size, value, keep, slack):
    """Take in a leaf: improve the incumbent, keep the support if within the bar."""
    if value < s.best[0]:
        s.best[0] = value
        s.best[1] = value * (1.0 + keep) + slack
        s.best_mask[:] = False
        for a in range(size):
            s.best_mask[index[a]] = True
    if value > s.best[1]:
        return
    if s.ctrl[KEPT] == s.kept_value.shape[0]:
        w = 0
        for r in range(s.ctrl[KEPT]):
            if s.kept_value[r] <= s.best[1]:
                if w < r:
                    for j in range(s.kept_mask.shape[1]):
                        s.kept_mask[w, j] = s.kept_mask[r, j]
                    s.kept_value[w] = s.kept_value[r]
                w += 1
        s.ctrl[KEPT] = w
        if w == s.kept_value.shape[0]:
            s.ctrl[OVERFLOW] = 1
            return
    r = s.ctrl[KEPT]
    s.kept_mask[r, :] = False
    for a in range(size):
        s.kept_mask[r, index[a]] = True
    s.kept_value[r] = value
    s.ctrl[KEPT] = r + 1


@njit(cache=True, nogil=True)
def _canonical(inside, size, status, copy_prev):
    """Whether a support holds copies in index order."""
    for a in range(size):
        j = copy_prev[inside[a]]
        if j >= 0:
            found = False
            for b in range(size):
                if inside[b] == j:
                    found = True
            if not found:
                return False
    return True


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
def run(s, G, c, yy, lipschitz, tau, copy_prev, copy_next, keep, slack, max_nodes):
    """Work on the tree for at most `max_nodes` nodes.

    Parameters
    ----------
    s : NodePool
    G, c, yy : normal form, M = G + I
    lipschitz : float
        At least the largest eigenvalue of G.
    tau : int
        1 <= tau < q.
    copy_prev, copy_next : (q,) int arrays
        Neighbouring copies or -1; supports hold copies in index order.
    keep, slack : float
        Supports within `best (1 + keep) + slack` are kept.

    Returns
    -------
    int
        FINISHED, BUDGET (nodes used up) or FULL (the pool must grow).

    Notes
    -----
    A node costs a few relaxation steps of O(|A| nnz + s^3) each.
    """
    q = c.shape[0]
    inside = np.empty(q, dtype=np.int64)
    free = np.empty(q, dtype=np.int64)
    status = np.empty(q, dtype=np.int8)
    b = np.zeros(q)
    g = np.zeros(q)
    best_b = np.zeros(q)
    best_g = np.zeros(q)
    x = np.empty(q)
    work = np.empty((tau, tau))
    left = max_nodes
    while s.ctrl[OPEN] > 0:
        if s.bound[0] >= s.best[1]:
            s.ctrl[OPEN] = 0
            break
        if left <= 0:
            return BUDGET
        if s.ctrl[SPARE] < 2:
            return FULL
        bound, row = _pop(s)
        for j in range(q):
            status[j] = s.status[row, j]
            b[j] = s.point[row, j]
        s.spare[s.ctrl[SPARE]] = row
        s.ctrl[SPARE] += 1
        s.ctrl[NODES] += 1
        left -= 1
        closed = False
        dual = bound
        for sweep in range(3):
            ni, nf = list_columns(status, inside, free)
            k = tau - ni
            if k < 0 or nf < k:
                closed = True
                break
            if k == 0 or nf == k:
                for a in range(nf if k > 0 else 0):
                    inside[ni] = free[a]
                    ni += 1
                if _canonical(inside, ni, status, copy_prev):
                    value = support_value(G, 1.0, c, yy, inside, ni, work, x)
                    _record(s, inside, ni, value, keep, slack)
                closed = True
                break
            for j in range(q):
                if status[j] == DROPPED:
                    b[j] = 0.0
            d, v, steps = relax(
                G, c, yy, lipschitz, inside, ni, free, nf, k, s.best[1], NEAR, NODE_STEPS, b, g, best_b, best_g
            )
            s.ctrl[STEPS] += steps
            dual = max(dual, d)
            if dual >= s.best[1]:
                if steps == 0:  # the parent's dual point was enough
                    s.ctrl[REUSED] += 1
                closed = True
                break
            # round: the k largest |g| beside the columns inside
            for a in range(nf):
                x[a] = -abs(best_g[free[a]])
            order = np.argsort(x[:nf])
            for a in range(k):
                inside[ni + a] = free[order[a]]
            value = support_value(G, 1.0, c, yy, inside, tau, work, x)
            if value < s.best[0]:
                s.best[0] = value
                s.best[1] = value * (1.0 + keep) + slack
                s.best_mask[:] = False
                for a in range(tau):
                    s.best_mask[inside[a]] = True
            for a in range(nf):
                x[a] = best_g[free[a]] * best_g[free[a]]
            fixed = screen(x, nf, free, k, s.best[1] - d, status)
            for j in range(q):
                b[j] = best_b[j] if status[j] != DROPPED else 0.0
            if fixed == 0 or (10 * fixed < nf and nf - fixed > 8):
                if fixed > 0:
                    ni, nf = list_columns(status, inside, free)
                    k = tau - ni
                    if k <= 0 or nf <= k:
                        continue
                break
        if closed:
            continue
        ni, nf = list_columns(status, inside, free)
        if tau - ni < 0 or nf < tau - ni:
            continue
        if tau == ni or nf == tau - ni:
            for a in range(nf if tau > ni else 0):
                inside[ni] = free[a]
                ni += 1
            if _canonical(inside, ni, status, copy_prev):
                value = support_value(G, 1.0, c, yy, inside, ni, work, x)
                _record(s, inside, ni, value, keep, slack)
            continue
        j = _branch_column(best_b, best_g, free, nf)
        for side in range(2):
            s.ctrl[SPARE] -= 1
            new = s.spare[s.ctrl[SPARE]]
            for i in range(q):
                s.status[new, i] = status[i]
            ok = True
            if side == 0:
                s.status[new, j] = INSIDE
                other = copy_prev[j]
                while other >= 0:
                    ok = ok and status[other] != DROPPED
                    s.status[new, other] = INSIDE
                    other = copy_prev[other]
            else:
                s.status[new, j] = DROPPED
                other = copy_next[j]
                while other >= 0:
                    ok = ok and status[other] != INSIDE
                    s.status[new, other] = DROPPED
                    other = copy_next[other]
            if not ok:
                s.spare[s.ctrl[SPARE]] = new
                s.ctrl[SPARE] += 1
                continue
            for i in range(q):
                s.point[new, i] = b[i]
            _push(s, dual, new)
    return FINISHED
