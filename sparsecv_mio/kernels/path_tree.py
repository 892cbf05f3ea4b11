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

LEVEL, NODES, KEPT, OVERFLOW = 0, 1, 2, 3
FREE, INSIDE, DROPPED = 0, 1, 2


class PathState(NamedTuple):
    """Everything a path tree knows between two calls; arrays only.

    `ctrl` = (level, nodes, kept supports, overflow flag); per level: number of free columns, number included at its
    birth, next child, alive tau range, f, columns, beta, cost of each, offset of V. `best` and `bar` by tau: incumbent
    value and pruning bar `best (1 + keep) + slack`. `kept_*`: every support found at or below the bar.
    """

    ctrl: np.ndarray
    free: np.ndarray
    included: np.ndarray
    child: np.ndarray
    low: np.ndarray
    high: np.ndarray
    value: np.ndarray
    column: np.ndarray
    beta: np.ndarray
    cost: np.ndarray
    offset: np.ndarray
    V: np.ndarray
    dropped: np.ndarray
    status: np.ndarray
    best: np.ndarray
    bar: np.ndarray
    bar_max: np.ndarray
    kept_mask: np.ndarray
    kept_size: np.ndarray
    kept_value: np.ndarray


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
        free=np.zeros(levels, dtype=np.int64),
        included=np.zeros(levels, dtype=np.int64),
        child=np.zeros(levels, dtype=np.int64),
        low=np.zeros(levels, dtype=np.int64),
        high=np.zeros(levels, dtype=np.int64),
        value=np.zeros(levels),
        column=np.zeros((levels, max(m, 1)), dtype=np.int64),
        beta=np.zeros((levels, max(m, 1))),
        cost=np.zeros((levels, max(m, 1))),
        offset=offset,
        V=np.empty(max(int(offset[-1]), 1)),
        dropped=np.full(levels, -1, dtype=np.int64),
        status=np.where(inside, INSIDE, FREE).astype(np.int8),
        best=best.copy(),
        bar=best * (1.0 + keep) + slack,
        bar_max=np.zeros(q + 1),
        kept_mask=np.zeros((capacity, q), dtype=np.bool_),
        kept_size=np.zeros(capacity, dtype=np.int64),
        kept_value=np.zeros(capacity),
    )
    state.bar_max[:] = np.maximum.accumulate(state.bar[::-1])[::-1]
    state.free[0] = m
    state.included[0] = q - m
    state.low[0], state.high[0] = tau_low, tau_high
    state.value[0] = value
    state.column[0, :m] = order
    state.beta[0, :m] = beta[order]
    state.cost[0, :m] = cost[order]
    state.V[: m * m] = V[np.ix_(order, order)].ravel()
    return state


@njit(cache=True, nogil=True)
def _record(s, size, value, keep, slack):
    """Take in the support of `status` (not dropped): improve the incumbent, keep it if within the bar."""
    if value < s.best[size]:
        s.best[size] = value
        s.bar[size] = value * (1.0 + keep) + slack
        top = 0.0
        for t in range(s.bar.shape[0] - 1, -1, -1):
            top = max(top, s.bar[t])
            s.bar_max[t] = top
    if s.ctrl[KEPT] == s.kept_size.shape[0]:
        w = 0
        for r in range(s.ctrl[KEPT]):
            if s.kept_value[r] <= s.bar[s.kept_size[r]]:
                if w < r:
                    s.kept_mask[w] = s.kept_mask[r]
                    s.kept_size[w] = s.kept_size[r]
                    s.kept_value[w] = s.kept_value[r]
                w += 1
        s.ctrl[KEPT] = w
        if w == s.kept_size.shape[0]:
            s.ctrl[OVERFLOW] = 1
            return
    r = s.ctrl[KEPT]
    for j in range(s.status.shape[0]):
        s.kept_mask[r, j] = s.status[j] != DROPPED
    s.kept_size[r] = size
    s.kept_value[r] = value
    s.ctrl[KEPT] = r + 1


@njit(cache=True, nogil=True)
def _descend(s, level, t, value, low, high, w, order, row, scratch):
    """Build the child of `level` that drops column t in level + 1 if some tau survives; True if it does.

    O(|F'|) for the costs and tests, O(|F'|^2) for V when a tau survives them.
    """
    size = s.free[level]
    m = size - t - 1
    base = s.offset[level]
    new = level + 1
    pivot = 1.0 / s.V[base + t * size + t]
    bt = s.beta[level, t] * pivot
    count = 0
    for a in range(t + 1, size):
        v = s.V[base + t * size + a]
        b = s.beta[level, a] - v * bt
        d = s.V[base + a * size + a] - v * v * pivot
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
    top = s.included[level] + size - 1
    # m-th smallest cost
    while low <= high and value + scratch[m - (top - high)] >= s.bar[high]:
        high -= 1
    while low <= high and value + scratch[m - (top - low)] >= s.bar[low]:
        low += 1
    if low > high:
        return False
    for k in range(m):
        a = order[k]
        s.column[new, k] = s.column[level, a]
        s.beta[new, k] = row[k]
        s.cost[new, k] = scratch[k]
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
        while low <= high and value + scratch[top - high - 1] >= s.bar[high]:
            high -= 1
        while low <= high and value + scratch[top - low - 1] >= s.bar[low]:
            low += 1
        if low > high:
            return False
    out = s.offset[new]
    for k in range(m):
        ra = base + order[k] * size
        f = s.V[base + t * size + order[k]] * pivot
        for i in range(k + 1):
            x = s.V[ra + order[i]] - f * s.V[base + t * size + order[i]]
            s.V[out + k * m + i] = x
            s.V[out + i * m + k] = x
    s.free[new] = m
    s.included[new] = s.included[level] + t
    s.child[new] = 0
    s.low[new] = low
    s.high[new] = high
    s.value[new] = value
    s.dropped[new] = s.column[level, t]
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
    q = s.status.shape[0]
    order = np.empty(q + 1, dtype=np.int64)
    row = np.empty(q + 1)
    scratch = np.empty(q + 1)
    level = s.ctrl[LEVEL]
    left = max_nodes
    while level >= 0:
        if left <= 0:
            s.ctrl[LEVEL] = level
            return False
        size = s.free[level]
        t = s.child[level]
        inside = s.included[level] + t
        closed = t >= size or inside > s.high[level] or s.included[level] + size - 1 < s.low[level]
        if t > 0 and not closed:
            earlier = copy_prev[s.column[level, t - 1]]
            closed = earlier >= 0 and s.status[earlier] == DROPPED
        if closed:
            for k in range(t):
                s.status[s.column[level, k]] = FREE
            level -= 1
            if level >= 0:
                s.status[s.column[level, s.child[level] - 1]] = INSIDE
            continue
        j = s.column[level, t]
        s.child[level] = t + 1
        value = s.value[level] + s.cost[level, t]
        low = max(s.low[level], inside)
        top = s.included[level] + size - 1
        if value > s.bar_max[low]:
            s.status[j] = INSIDE
            continue
        left -= 1
        s.ctrl[NODES] += 1
        # a later copy inside without this one is the same support twice
        orphan = False
        later = copy_next[j]
        while later >= 0:
            if s.status[later] == INSIDE:
                orphan = True
            later = copy_next[later]
        if orphan:
            s.status[j] = INSIDE
            continue
        s.status[j] = DROPPED
        if top <= s.high[level] and value <= s.bar[top]:
            canonical = True
            for k in range(q):
                if s.status[k] == DROPPED:
                    later = copy_next[k]
                    if later >= 0 and s.status[later] != DROPPED:
                        canonical = False
                        break
            if canonical:
                _record(s, top, value, keep, slack)
        high = min(s.high[level], top - 1)
        if low <= high and _descend(s, level, t, value, low, high, w, order, row, scratch):
            level += 1
        else:
            s.status[j] = INSIDE
    s.ctrl[LEVEL] = -1
    return True


@njit(cache=True, nogil=True)
def open_bounds(s, bounds):
    """Lower `bounds` (by tau) to what the open part of the tree may still hold. O(levels q).

    The children not yet visited at a level form the node (I + first t columns, the others free); its bound is f of the
    level plus the m-th smallest cost.
    """
    for level in range(s.ctrl[LEVEL] + 1):
        size = s.free[level]
        t = s.child[level]
        for tau in range(s.low[level], s.high[level] + 1):
            m = s.included[level] + size - tau
            if m < 1 or size - m < t:
                continue
            bounds[tau] = min(bounds[tau], s.value[level] + s.cost[level, size - m])
