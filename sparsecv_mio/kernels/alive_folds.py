"""The alive-fold tree: the path tree of the full data, carrying the leave-one-out fits of the folds still alive.

Every fold is one row. A node holds, over its free columns F, beta and `V = M_A^{-1}` of the full data as in
`path_tree`, and for each fold i still alive the residual e_i, the leverage h_i and the column `W_i = V x_i` over F.
Then (theory section 5), exactly, for the data without row i:

    f_i(A)  = f(A) - e_i^2 / (1 - h_i)
    D_ji    = (beta_j - W_ji e_i / (1 - h_i))^2 / (V_jj + W_ji^2 / (1 - h_i))        the cost of dropping j

A fold is alive below a child while some tau of the range has at least m columns j with `f_i + D_ji` under the fold's
bar, m the number still to be dropped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE

LEVEL, NODES, KEPT, WORK = 0, 1, 2, 3
FINISHED, BUDGET, FULL = 0, 1, 2


class AliveState(NamedTuple):
    """Everything the tree knows between two calls; by level unless said otherwise.

    `alive` counts folds; `fold`, `e`, `p` (1 / (1 - h)), `value_i` (f_i) list them; `W` holds their columns, free
    column by free column. By (tau row, fold): `bar`, `best`, `second`, `which` (number of a kept support).
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
    status: np.ndarray
    alive: np.ndarray
    fold: np.ndarray
    e: np.ndarray
    p: np.ndarray
    value_i: np.ndarray
    W: np.ndarray
    row_of: np.ndarray  # (q + 1,): row of bar for a size, -1 where the size is not asked for
    bar: np.ndarray
    best: np.ndarray
    second: np.ndarray
    which: np.ndarray
    kept_mask: np.ndarray


def memory(m, folds):
    """Bytes of the state for m columns and so many folds."""
    return 8 * (m * (m + 1) // 2 * folds + m**3 // 3 + 4 * m * folds)


def new_state(V, beta, value, W, e, h, folds, row_of, bar, low, high, capacity):
    """State with the root as its only node.

    Parameters
    ----------
    V, beta, value : (m, m), (m,), float
        Full-data inverse, ridge solution and f at all columns.
    W, e, h : (m, k), (k,), (k,)
        `V x_i`, residual and leverage of the k folds to be solved.
    folds : (k,) int array
        Their columns in `bar`.
    row_of : (m + 1,) int array
    bar : (T, n) array
        Pruning bars; lowered in place as better supports are found.
    low, high : int
        Range of sizes, `1 <= low <= high < m`.
    capacity : int
        Supports that can be kept before the tree asks for room.
    """
    m = beta.shape[0]
    k = len(folds)
    cost = beta**2 / np.diag(V)
    order = np.argsort(-cost, kind="stable")
    levels = m + 1
    sizes = np.maximum(m - np.arange(levels), 0)
    offset = np.zeros((levels + 1, 2), dtype=np.int64)
    offset[1:, 0] = np.cumsum(sizes**2)
    offset[1:, 1] = np.cumsum(sizes * k)
    state = AliveState(
        ctrl=np.zeros(4, dtype=np.int64),
        free=np.zeros(levels, dtype=np.int64),
        included=np.zeros(levels, dtype=np.int64),
        child=np.zeros(levels, dtype=np.int64),
        low=np.zeros(levels, dtype=np.int64),
        high=np.zeros(levels, dtype=np.int64),
        value=np.zeros(levels),
        column=np.zeros((levels, m), dtype=np.int64),
        beta=np.zeros((levels, m)),
        cost=np.zeros((levels, m)),
        offset=offset,
        V=np.empty(int(offset[-1, 0])),
        status=np.zeros(m, dtype=np.int8),
        alive=np.zeros(levels, dtype=np.int64),
        fold=np.zeros((levels, k), dtype=np.int64),
        e=np.empty((levels, k)),
        p=np.empty((levels, k)),
        value_i=np.empty((levels, k)),
        W=np.empty(int(offset[-1, 1])),
        row_of=row_of,
        bar=bar,
        best=np.full(bar.shape, np.inf),
        second=np.full(bar.shape, np.inf),
        which=np.full(bar.shape, -1, dtype=np.int32),
        kept_mask=np.zeros((capacity, m), dtype=np.bool_),
    )
    state.free[0] = m
    state.low[0], state.high[0] = low, high
    state.value[0] = value
    state.column[0] = order
    state.beta[0] = beta[order]
    state.cost[0] = cost[order]
    state.V[: m * m] = V[np.ix_(order, order)].ravel()
    state.alive[0] = k
    state.fold[0] = folds
    state.e[0] = e
    state.p[0] = 1.0 / (1.0 - h)
    state.value_i[0] = value - e**2 * state.p[0]
    state.W[: m * k] = W[order].ravel()
    return state


def grown(state):
    """State with room for twice as many supports."""
    return state._replace(kept_mask=np.concatenate((state.kept_mask, np.zeros_like(state.kept_mask))))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "arcp", "nsz"})
def _drop_values(beta_t, v_tt, w, e, p, value_i, count, out):
    """`f_i + D_ti` of every alive fold."""
    for a in range(count):
        b = beta_t - w[a] * e[a] * p[a]
        out[a] = value_i[a] + b * b / (v_tt + w[a] * w[a] * p[a])


@njit(cache=True, nogil=True)
def _mark_alive(drop, bar, columns, count, need, tally, hit):
    """Mark the folds in which at least `need` columns can be dropped under their bar; whether there are any.

    A count over columns, folds innermost, beats a sort per fold by SIMD. O(columns count).
    """
    for a in range(count):
        tally[a] = 0
    for c in range(columns):
        row = drop[c]
        for a in range(count):
            tally[a] += row[a] < bar[a]
    found = 0
    for a in range(count):
        x = tally[a] >= need
        hit[a] += x
        found += x
    return found > 0


@njit(cache=True, nogil=True)
def _take(s, row, fold, value, number, keep, slack):
    """Take in that a support of the row's size reaches `value` in a fold: keep the two best values, lower the bar."""
    if value < s.best[row, fold]:
        s.second[row, fold] = s.best[row, fold]
        s.best[row, fold] = value
        s.which[row, fold] = number
        bar = value * (1.0 + keep) + slack
        if bar < s.bar[row, fold]:
            s.bar[row, fold] = bar
    elif value < s.second[row, fold]:
        s.second[row, fold] = value


@njit(cache=True, nogil=True, error_model="numpy")
def run(s, copy_prev, copy_next, keep, slack, max_nodes):
    """Work on the tree for at most `max_nodes` nodes: FINISHED, BUDGET or FULL (grow the state, call again).

    Notes
    -----
    A node costs O(alive) when the joint values close it, O(|F| alive + |F|^2) when it is expanded; `ctrl[WORK]` counts
    the products.
    """
    q = s.status.shape[0]
    k = s.fold.shape[1]
    order = np.empty(q + 1, dtype=np.int64)
    row_b = np.empty(q + 1)
    row_c = np.empty(q + 1)
    bar = np.empty(k)
    tally = np.empty(k, dtype=np.int64)
    hit = np.empty(k, dtype=np.int64)
    dropped_value = np.empty(k)
    drop = np.empty((q + 1, k))
    level = s.ctrl[LEVEL]
    left = max_nodes
    while level >= 0:
        if left <= 0:
            s.ctrl[LEVEL] = level
            return BUDGET
        if s.ctrl[KEPT] == s.kept_mask.shape[0]:
            s.ctrl[LEVEL] = level
            return FULL
        size = s.free[level]
        t = s.child[level]
        inside = s.included[level] + t
        closed = t >= size or inside > s.high[level] or s.included[level] + size - 1 < s.low[level]
        if t > 0 and not closed:
            earlier = copy_prev[s.column[level, t - 1]]
            closed = earlier >= 0 and s.status[earlier] == DROPPED
        if closed:
            for i in range(t):
                s.status[s.column[level, i]] = FREE
            level -= 1
            if level >= 0:
                s.status[s.column[level, s.child[level] - 1]] = INSIDE
            continue
        j = s.column[level, t]
        s.child[level] = t + 1
        left -= 1
        s.ctrl[NODES] += 1
        low = max(s.low[level], inside)
        top = s.included[level] + size - 1
        orphan = False
        later = copy_next[j]
        while later >= 0:
            if s.status[later] == INSIDE:
                orphan = True
            later = copy_next[later]
        if orphan:
            s.status[j] = INSIDE
            continue
        count = s.alive[level]
        s.ctrl[WORK] += count
        base = s.offset[level, 0]
        wbase = s.offset[level, 1]
        v_tt = s.V[base + t * size + t]
        w = s.W[wbase + t * count : wbase + (t + 1) * count]
        _drop_values(s.beta[level, t], v_tt, w, s.e[level], s.p[level], s.value_i[level], count, dropped_value)
        # the support A' itself
        row = s.row_of[top] if top <= s.high[level] else -1
        s.status[j] = DROPPED
        if row >= 0:
            number = -1
            for a in range(count):
                i = s.fold[level, a]
                if dropped_value[a] <= s.bar[row, i]:
                    if number < 0:
                        canonical = True
                        for c in range(q):
                            if s.status[c] == DROPPED:
                                later = copy_next[c]
                                if later >= 0 and s.status[later] != DROPPED:
                                    canonical = False
                                    break
                        if not canonical:
                            break
                        number = s.ctrl[KEPT]
                        for c in range(q):
                            s.kept_mask[number, c] = s.status[c] != DROPPED
                        s.ctrl[KEPT] = number + 1
                    _take(s, row, i, dropped_value[a], number, keep, slack)
        high = min(s.high[level], top - 1)
        m = size - t - 1
        if low > high:
            s.status[j] = INSIDE
            continue
        # folds that may still win at the smallest size of the range
        new = level + 1
        kept = np.int64(0)  # a plain 0 is a type of its own: what is called with it would be compiled twice
        for a in range(count):
            i = s.fold[level, a]
            hope = False
            for tau in range(low, high + 1):
                r = s.row_of[tau]
                if r >= 0:
                    hope = dropped_value[a] < s.bar[r, i]
                    break
            if hope:
                s.fold[new, kept] = a
                kept += 1
        if kept == 0:
            s.status[j] = INSIDE
            continue
        # full-data costs of the child, in falling order
        pivot = 1.0 / v_tt
        bt = s.beta[level, t] * pivot
        n = 0
        for c in range(t + 1, size):
            v = s.V[base + t * size + c]
            b = s.beta[level, c] - v * bt
            d = s.V[base + c * size + c] - v * v * pivot
            x = b * b / d if d > 0.0 else 0.0
            i = n
            while i > 0 and row_c[i - 1] < x:
                row_c[i] = row_c[i - 1]
                order[i] = order[i - 1]
                row_b[i] = row_b[i - 1]
                i -= 1
            row_c[i] = x
            order[i] = c
            row_b[i] = b
            n += 1
        # residuals and leverages of the survivors
        for a in range(kept):
            old = s.fold[new, a]
            x = w[old]
            s.e[new, a] = s.e[level, old] + x * bt
            h = 1.0 - 1.0 / s.p[level, old] - x * x * pivot
            s.p[new, a] = 1.0 / (1.0 - h)
            s.value_i[new, a] = dropped_value[old]
        wnew = s.offset[new, 1]
        for c in range(m):
            f = s.V[base + t * size + order[c]] * pivot
            d = s.V[base + order[c] * size + order[c]] - f * s.V[base + t * size + order[c]]
            old_row = wbase + order[c] * count
            b = row_b[c]
            out = wnew + c * kept
            if kept == count:
                for a in range(kept):
                    s.W[out + a] = s.W[old_row + a] - f * w[a]
            else:
                for a in range(kept):
                    old = s.fold[new, a]
                    s.W[out + a] = s.W[old_row + old] - f * w[old]
            _drop_values(b, d, s.W[out : out + kept], s.e[new], s.p[new], s.value_i[new], kept, drop[c])
        s.ctrl[WORK] += m * kept
        # which folds have, for some tau, enough columns to drop under their bar
        least = q + 1
        most = -1
        for a in range(kept):
            hit[a] = 0
        for tau in range(low, high + 1):
            r = s.row_of[tau]
            if r < 0:
                continue
            for a in range(kept):
                bar[a] = s.bar[r, s.fold[level, s.fold[new, a]]]
            if _mark_alive(drop, bar, m, kept, top - tau, tally, hit):
                least = min(least, tau)
                most = max(most, tau)
        alive = 0
        for a in range(kept):
            if hit[a] > 0:
                i = s.fold[level, s.fold[new, a]]
                if alive < a:
                    s.e[new, alive] = s.e[new, a]
                    s.p[new, alive] = s.p[new, a]
                    s.value_i[new, alive] = s.value_i[new, a]
                tally[alive] = a
                s.fold[new, alive] = i
                alive += 1
        if alive == 0:
            s.status[j] = INSIDE
            continue
        if alive < kept:
            for c in range(m):
                src = wnew + c * kept
                dst = wnew + c * alive
                for a in range(alive):
                    s.W[dst + a] = s.W[src + tally[a]]
        out = s.offset[new, 0]
        for c in range(m):
            s.column[new, c] = s.column[level, order[c]]
            s.beta[new, c] = row_b[c]
            s.cost[new, c] = row_c[c]
            ra = base + order[c] * size
            f = s.V[base + t * size + order[c]] * pivot
            for i in range(c + 1):
                x = s.V[ra + order[i]] - f * s.V[base + t * size + order[i]]
                s.V[out + c * m + i] = x
                s.V[out + i * m + c] = x
        s.alive[new] = alive
        s.free[new] = m
        s.included[new] = inside
        s.child[new] = 0
        s.low[new] = least
        s.high[new] = most
        s.value[new] = s.value[level] + s.cost[level, t]
        level = new
    s.ctrl[LEVEL] = -1
    return FINISHED
