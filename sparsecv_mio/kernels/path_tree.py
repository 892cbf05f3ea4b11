"""The path tree: best subsets of every size in one branch-and-bound (theory section 4).

Normal form: minimise `yy - c_S' M_S^{-1} c_S` over `|S| = tau`, for every tau of a range at once, `M >= w I`.

A node is (included I, free F) with A = I + F, the ridge solution on A and `V = M_A^{-1}`. Only the free rows of V and
beta are ever needed: dropping j costs `beta_j^2 / V_jj` and leaves the Schur complement on `F - j`. So a node holds a
|F| x |F| matrix, and the t-th child (columns sorted by falling cost, the first t included) one of size |F| - t - 1.

The tree is depth-first over preallocated levels; a call runs a number of nodes and returns, so that time limits,
progress and interrupts live outside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE

LEVEL, NODES, KEPT, OVERFLOW = 0, 1, 2, 3
COUNT, INCLUDED, CHILD, LOW, HIGH, START, LEFT_OUT = 0, 1, 2, 3, 4, 5, 6
BEST, BAR, MOST = 0, 1, 2


class PathState(NamedTuple):
    """Everything a path tree knows between two calls; few arrays, for every one is paid for when the kernels compile.

    `ctrl` = (level, nodes, kept supports, overflow flag); `node` by level: number of free columns, number included at
    its birth, next child, alive tau range, where its V starts, the column left out; by level too: f, columns, beta,
    cost of each. `bars` by tau: incumbent value, pruning bar `best (1 + keep) + slack` and the largest bar from there
    up. `kept_*`: every support found at or below the bar.
    """

    ctrl: np.ndarray
    node: np.ndarray
    value: np.ndarray
    column: np.ndarray
    beta: np.ndarray
    cost: np.ndarray
    V: np.ndarray
    status: np.ndarray
    bars: np.ndarray
    kept_mask: np.ndarray
    kept_size: np.ndarray
    kept_value: np.ndarray

    @property
    def best(self):
        """Incumbent value by tau."""
        return self.bars[BEST]

    @property
    def bar(self):
        """Pruning bar by tau."""
        return self.bars[BAR]

    def set_bars(self, sizes, best, bar):
        """Set the incumbent values and the bars of one size or of several."""
        self.bars[BEST, sizes], self.bars[BAR, sizes] = best, bar
        self.bars[MOST] = np.maximum.accumulate(self.bars[BAR, ::-1])[::-1]


def new_state(V, beta, value, best, tau_low, tau_high, keep, slack, capacity, forced_in=None):
    """Allocate a tree whose root holds all q columns; O(q^3 / 3) memory.

    Parameters
    ----------
    V, beta, value : (q, q), (q,), float
        Inverse of M, ridge solution and f on all columns.
    best : (q + 1,) array
        Incumbent values by size (inf where unknown).
    tau_low, tau_high : int
        Range of sizes asked for, `1 <= tau_low <= tau_high <= q`.
    keep, slack : float
        Supports within `best (1 + keep) + slack` are kept.
    capacity : int
        Number of kept supports the state can hold.
    forced_in : (k,) int array, optional
        Columns every support contains.
    """
    q = beta.shape[0]
    inside = np.zeros(q, dtype=bool)
    if forced_in is not None:
        inside[forced_in] = True
    cost = beta**2 / np.diag(V)
    free = np.flatnonzero(~inside)
    order = free[np.argsort(-cost[free], kind="stable")]
    m = len(order)
    levels = m + 1
    sizes = np.maximum(m - np.arange(levels), 0)
    offset = np.concatenate(([0], np.cumsum(sizes**2))).astype(np.int64)
    state = PathState(
        ctrl=np.zeros(4, dtype=np.int64),
        node=np.zeros((levels, 7), dtype=np.int64),
        value=np.zeros(levels),
        column=np.zeros((levels, max(m, 1)), dtype=np.int64),
        beta=np.zeros((levels, max(m, 1))),
        cost=np.zeros((levels, max(m, 1))),
        V=np.empty(max(int(offset[-1]), 1)),
        status=np.where(inside, INSIDE, FREE).astype(np.int8),
        bars=np.empty((3, q + 1)),
        kept_mask=np.zeros((capacity, q), dtype=np.bool_),
        kept_size=np.zeros(capacity, dtype=np.int64),
        kept_value=np.zeros(capacity),
    )
    state.set_bars(slice(None), best, best * (1.0 + keep) + slack)
    state.node[:, START] = offset[:levels]
    state.node[:, LEFT_OUT] = -1
    state.node[0, [COUNT, INCLUDED, LOW, HIGH]] = m, q - m, tau_low, tau_high
    state.value[0] = value
    state.column[0, :m] = order
    state.beta[0, :m] = beta[order]
    state.cost[0, :m] = cost[order]
    state.V[: m * m] = V[np.ix_(order, order)].ravel()
    return state


@njit(cache=True, nogil=True)
def _record(s, size, value, keep, slack):
    """Take in the support of `status` (not dropped): improve the incumbent, keep it if within the bar."""
    bars, kept_size, kept_value, kept_mask, status = s.bars, s.kept_size, s.kept_value, s.kept_mask, s.status
    q = status.shape[0]
    if value < bars[BEST, size]:
        bars[BEST, size] = value
        bars[BAR, size] = value * (1.0 + keep) + slack
        top = 0.0
        for t in range(q, -1, -1):
            top = max(top, bars[BAR, t])
            bars[MOST, t] = top
    r = s.ctrl[KEPT]
    if r == kept_size.shape[0]:
        w = 0
        for r in range(kept_size.shape[0]):
            if kept_value[r] <= bars[BAR, kept_size[r]]:
                for j in range(q):
                    kept_mask[w, j] = kept_mask[r, j]
                kept_size[w] = kept_size[r]
                kept_value[w] = kept_value[r]
                w += 1
        s.ctrl[KEPT] = w
        if w == kept_size.shape[0]:
            s.ctrl[OVERFLOW] = 1
            return
        r = w
    for j in range(q):
        kept_mask[r, j] = status[j] != DROPPED
    kept_size[r] = size
    kept_value[r] = value
    s.ctrl[KEPT] = r + 1


@njit(cache=True, nogil=True)
def _descend(s, level, t, value, low, high, w, order, row, scratch):
    """Build the child of `level` that drops column t in level + 1 if some tau survives; True if it does.

    O(|F'|) for the costs and tests, O(|F'|^2) for V when a tau survives them.
    """
    node, V, bars = s.node, s.V, s.bars
    beta, column, costs = s.beta, s.column, s.cost
    size = node[level, COUNT]
    m = size - t - 1
    base = node[level, START]
    lead = base + t * size
    new = level + 1
    pivot = 1.0 / V[lead + t]
    bt = beta[level, t] * pivot
    count = 0
    for a in range(t + 1, size):
        v = V[lead + a]
        b = beta[level, a] - v * bt
        d = V[base + a * size + a] - v * v * pivot
        cost = b * b / d if d > 0.0 else 0.0
        k = count
        while k > 0 and scratch[k - 1] < cost:
            scratch[k] = scratch[k - 1]
            order[k] = order[k - 1]
            row[k] = row[k - 1]
            k -= 1
        scratch[k] = cost
        order[k] = a
        row[k] = b
        count += 1
    top = node[level, INCLUDED] + size - 1
    # m-th smallest cost
    while low <= high and value + scratch[m - (top - high)] >= bars[BAR, high]:
        high -= 1
    while low <= high and value + scratch[m - (top - low)] >= bars[BAR, low]:
        low += 1
    if low > high:
        return False
    for k in range(m):
        column[new, k] = column[level, order[k]]
        beta[new, k] = row[k]
        costs[new, k] = scratch[k]
    if w > 0.0:
        # sum of the m smallest w beta_j^2
        for k in range(m):
            x = row[k] * row[k] * w
            i = k
            while i > 0 and scratch[i - 1] > x:
                scratch[i] = scratch[i - 1]
                i -= 1
            scratch[i] = x
        for k in range(1, m):
            scratch[k] += scratch[k - 1]
        while low <= high and value + scratch[top - high - 1] >= bars[BAR, high]:
            high -= 1
        while low <= high and value + scratch[top - low - 1] >= bars[BAR, low]:
            low += 1
        if low > high:
            return False
    out = node[new, START]
    for k in range(m):
        ra = base + order[k] * size
        f = V[lead + order[k]] * pivot
        for i in range(k + 1):
            x = V[ra + order[i]] - f * V[lead + order[i]]
            V[out + k * m + i] = x
            V[out + i * m + k] = x
    node[new, COUNT] = m
    node[new, INCLUDED] = node[level, INCLUDED] + t
    node[new, CHILD] = 0
    node[new, LOW] = low
    node[new, HIGH] = high
    s.value[new] = value
    node[new, LEFT_OUT] = column[level, t]
    return True


@njit(cache=True, nogil=True)
def run(s, copy_prev, copy_next, w, keep, slack, max_nodes):
    """Work on the tree for at most `max_nodes` nodes; True when it is finished.

    Parameters
    ----------
    s : PathState
    copy_prev, copy_next : (q,) int array
        Previous and next copy of each column (equal or negated, same penalty) or -1; supports hold copies in index
        order.
    w : float
        `M - w I` is positive semidefinite; 0 switches the second-term test off.
    keep, slack : float
        As for the state.
    max_nodes : int

    Notes
    -----
    A node costs O(|F|) when its tests close it and O(|F|^2) when it is expanded.
    """
    ctrl, node, status, column, bars = s.ctrl, s.node, s.status, s.column, s.bars
    q = status.shape[0]
    order = np.empty(q + 1, dtype=np.int64)
    row = np.empty(q + 1)
    scratch = np.empty(q + 1)
    level = ctrl[LEVEL]
    left = max_nodes
    while level >= 0:
        if left <= 0:
            ctrl[LEVEL] = level
            return False
        size = node[level, COUNT]
        t = node[level, CHILD]
        inside = node[level, INCLUDED] + t
        top = node[level, INCLUDED] + size - 1
        closed = t >= size or inside > node[level, HIGH] or top < node[level, LOW]
        if t > 0 and not closed:
            earlier = copy_prev[column[level, t - 1]]
            closed = earlier >= 0 and status[earlier] == DROPPED
        if closed:
            for k in range(t):
                status[column[level, k]] = FREE
            level -= 1
            if level >= 0:
                status[column[level, node[level, CHILD] - 1]] = INSIDE
            continue
        j = column[level, t]
        node[level, CHILD] = t + 1
        value = s.value[level] + s.cost[level, t]
        low = max(node[level, LOW], inside)
        if value > bars[MOST, low]:
            status[j] = INSIDE
            continue
        left -= 1
        ctrl[NODES] += 1
        # a later copy inside without this one is the same support twice
        orphan = False
        later = copy_next[j]
        while later >= 0:
            if status[later] == INSIDE:
                orphan = True
            later = copy_next[later]
        if orphan:
            status[j] = INSIDE
            continue
        status[j] = DROPPED
        if top <= node[level, HIGH] and value <= bars[BAR, top]:
            canonical = True
            for k in range(q):
                if status[k] == DROPPED:
                    later = copy_next[k]
                    if later >= 0 and status[later] != DROPPED:
                        canonical = False
                        break
            if canonical:
                _record(s, top, value, keep, slack)
        high = min(node[level, HIGH], top - 1)
        if low <= high and _descend(s, level, t, value, low, high, w, order, row, scratch):
            level += 1
        else:
            status[j] = INSIDE
    ctrl[LEVEL] = -1
    return True


def open_bounds(s, bounds):
    """Lower `bounds` (by tau) to what the open part of the tree may still hold. O(levels q).

    The children not yet visited at a level form the node (I + first t columns, the others free); its bound is f of the
    level plus the m-th smallest cost.
    """
    for level in range(s.ctrl[LEVEL] + 1):
        size, included, t, low, high = s.node[level, [COUNT, INCLUDED, CHILD, LOW, HIGH]]
        tau = np.arange(low, min(high, included + size - 1) + 1)
        tau = tau[tau - included >= t]
        bounds[tau] = np.minimum(bounds[tau], s.value[level] + s.cost[level, tau - included])
