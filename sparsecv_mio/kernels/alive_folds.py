"""The leave-one-out tree: one path tree on the full data that finds the best subsets of all folds of one row.

A node has the columns A, of which F are free. As in `path_tree`, the node stores the full-data fit beta on A and
`V = M_A^{-1}`, both restricted to F. A fold is *alive* at a node if the node may still contain a support better than
the incumbent of the fold. For each alive fold i, which holds out row x_i, the node also stores the residual e_i of this
row, its leverage h_i and the column `W_i = V x_i` over F. Let f_i(A) be the objective of the fit on A without row i,
and D_ji the cost of dropping column j from this fit. Then (theory section 5)

    f_i(A)  = f(A) - e_i^2 / (1 - h_i)
    D_ji    = (beta_j - W_ji e_i / (1 - h_i))^2 / (V_jj + W_ji^2 / (1 - h_i))

Let m be the number of columns that a support of size tau drops from the child. A fold stays alive at the child if, for
some tau of the range, at least m columns j have `f_i + D_ji` below the cutoff of the fold.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.jit import NO_ITEMS, njit
from sparsecv_mio.kernels.node_pool import BUDGET, FINISHED, FULL
from sparsecv_mio.kernels.nodes import DROPPED, INSIDE, later_copy_inside, uses_copies_in_order
from sparsecv_mio.kernels.path_tree import (
    CHILD,
    COUNT,
    HIGH,
    INCLUDED,
    KEPT,
    LEVEL,
    LOW,
    NODES,
    START,
    Levels,
    child_costs,
    is_level_finished,
    leave_level,
    new_child,
    new_levels,
    put_child,
)

WORK = 3  # index in `ctrl` of the number of products
GROUP = 192  # folds of one tree, few enough for its columns to stay in the cache
SLICE = 2_000  # nodes between two checks of the clock
KEPT_AT_FIRST = 1024  # supports that a tree can store at first


class Alive(NamedTuple):
    """The folds alive at each level.

    Attributes
    ----------
    folds : (levels,) int array
        Number of folds.
    fold : (levels, k) int array
        Their indices.
    e, p, value : (levels, k) arrays
        Residual, `1 / (1 - h)` and f_i of each fold.
    start : (levels,) int array
        Start of the columns W_i of a level.
    W : array
        Columns W_i by level, free column by free column.
    """

    folds: np.ndarray
    fold: np.ndarray
    e: np.ndarray
    p: np.ndarray
    value: np.ndarray
    start: np.ndarray
    W: np.ndarray


class Answers(NamedTuple):
    """Results for the folds, by (row of a size, fold).

    Attributes
    ----------
    row_of : (q + 1,) int array
        Row of a size, -1 for a size that is not requested.
    bar : (T, n) array
        Cutoffs; lowered in place as better supports are found.
    best, second : (T, n) arrays
        The two smallest values found.
    which : (T, n) int array
        Number of the stored support that is best, -1 for none.
    """

    row_of: np.ndarray
    bar: np.ndarray
    best: np.ndarray
    second: np.ndarray
    which: np.ndarray


class AliveState(NamedTuple):
    """State of the tree between two calls: `ctrl` = (level, nodes, stored supports, products), and its arrays."""

    ctrl: np.ndarray
    levels: Levels
    alive: Alive
    answers: Answers
    kept_mask: np.ndarray


def memory(m, folds):
    """Return the bytes of the state for m columns and a number of folds."""
    return 8 * (m * (m + 1) // 2 * folds + m**3 // 3 + 4 * m * folds)


def new_state(levels, W, e, h, folds, row_of, bar, capacity):
    """Return a state with the root as its only node.

    Parameters
    ----------
    levels : Levels
        Tree of the full data; its range of sizes is `1 <= low <= high < m`.
    W, e, h : (m, k), (k,), (k,)
        `V x_i`, residual and leverage of the k folds.
    folds : (k,) int array
        Columns of the folds in `bar`.
    row_of, bar : arrays
        Rows of sizes and cutoffs, as in `Answers`.
    capacity : int
        Number of supports that can be stored before the state must grow.
    """
    m = len(levels.status)
    k = len(folds)
    start = np.concatenate(([0], np.cumsum((m - np.arange(m + 1)) * k)))
    alive = Alive(
        folds=np.zeros(m + 1, dtype=np.int64),
        fold=np.zeros((m + 1, k), dtype=np.int64),
        e=np.empty((m + 1, k)),
        p=np.empty((m + 1, k)),
        value=np.empty((m + 1, k)),
        start=start[:-1],
        W=np.empty(int(start[-1])),
    )
    alive.folds[0] = k
    alive.fold[0] = folds
    alive.e[0] = e
    alive.p[0] = 1.0 / (1.0 - h)
    alive.value[0] = levels.value[0] - e**2 * alive.p[0]
    alive.W[: m * k] = W[levels.column[0]].ravel()
    return AliveState(
        ctrl=np.zeros(4, dtype=np.int64),
        levels=levels,
        alive=alive,
        answers=Answers(
            row_of=row_of,
            bar=bar,
            best=np.full(bar.shape, np.inf),
            second=np.full(bar.shape, np.inf),
            which=np.full(bar.shape, -1, dtype=np.int32),
        ),
        kept_mask=np.zeros((capacity, m), dtype=np.bool_),
    )


def grow_state(state):
    """Return a state with twice the capacity for supports."""
    return state._replace(kept_mask=np.concatenate((state.kept_mask, np.zeros_like(state.kept_mask))))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "arcp", "nsz"})
def _drop_values(beta_t, v_tt, w, e, p, value_i, count, out):
    """Fill `out` with `f_i + D_ti` of every fold alive."""
    for a in range(count):
        b = beta_t - w[a] * e[a] * p[a]
        out[a] = value_i[a] + b * b / (v_tt + w[a] * w[a] * p[a])


@njit(cache=True, nogil=True)
def _mark_alive(drop, bar, columns, count, need, tally, hit):
    """Mark the folds in which at least `need` columns can be dropped below the cutoff; return True if there are any.

    A count over columns with folds in the inner loop is faster by SIMD than a sort for each fold. O(columns count).
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
def _take(s, row, fold, value, number, margin):
    """Record that a support of the row's size has `value` in a fold: keep the two smallest values, lower the cutoff."""
    if value < s.best[row, fold]:
        s.second[row, fold] = s.best[row, fold]
        s.best[row, fold] = value
        s.which[row, fold] = number
        bar = value * (1.0 + margin.keep) + margin.slack
        if bar < s.bar[row, fold]:
            s.bar[row, fold] = bar
    elif value < s.second[row, fold]:
        s.second[row, fold] = value


@njit(cache=True, nogil=True)
def _record(s, row, level, values, copies, margin):
    """Record the support of the columns not dropped, with its value in every fold alive at the level."""
    status, answers, alive = s.levels.status, s.answers, s.alive
    number = -1
    for a in range(alive.folds[level]):
        i = alive.fold[level, a]
        if values[a] <= answers.bar[row, i]:
            if number < 0:
                if not uses_copies_in_order(copies, status):
                    return
                number = s.ctrl[KEPT]
                for c in range(status.shape[0]):
                    s.kept_mask[number, c] = status[c] != DROPPED
                s.ctrl[KEPT] = number + 1
            _take(answers, row, i, values[a], number, margin)


@njit(cache=True, nogil=True, error_model="numpy")
def process_nodes(s, copies, margin, max_nodes):
    """Process at most `max_nodes` nodes; return FINISHED, BUDGET or FULL (grow the state and call again).

    Parameters
    ----------
    s : AliveState
        State of the tree.
    copies : Copies
        Duplicate columns.
    margin : Margin
        Margin above the best values within which supports are kept.
    max_nodes : int
        Maximum number of nodes.

    Notes
    -----
    A node costs O(alive) if the joint values close it, O(|F| alive + |F|^2) if it is expanded; `ctrl[WORK]` counts the
    products.
    """
    levels, alive, answers = s.levels, s.alive, s.answers
    node, column, status, V = levels.node, levels.column, levels.status, levels.V
    before, after = copies
    q = status.shape[0]
    k = alive.fold.shape[1]
    child = new_child(q)
    bar = np.empty(k)
    tally = np.empty(k, dtype=np.int64)
    hit = np.empty(k, dtype=np.int64)
    dropped_value = np.empty(k)
    drop = np.empty((q + 1, k))
    level = s.ctrl[LEVEL]
    nodes_left = max_nodes
    while level >= 0:
        if nodes_left <= 0:
            s.ctrl[LEVEL] = level
            return BUDGET
        if s.ctrl[KEPT] == s.kept_mask.shape[0]:
            s.ctrl[LEVEL] = level
            return FULL
        if is_level_finished(node, column, status, level, before):
            level = leave_level(node, column, status, level)
            continue
        size = node[level, COUNT]
        t = node[level, CHILD]
        j = column[level, t]
        node[level, CHILD] = t + 1
        nodes_left -= 1
        s.ctrl[NODES] += 1
        low = max(node[level, LOW], node[level, INCLUDED] + t)
        top = node[level, INCLUDED] + size - 1
        if later_copy_inside(j, after, status):
            status[j] = INSIDE
            continue
        count = alive.folds[level]
        s.ctrl[WORK] += count
        base = node[level, START]
        wbase = alive.start[level]
        v_tt = V[base + t * size + t]
        w = alive.W[wbase + t * count : wbase + (t + 1) * count]
        _drop_values(
            levels.beta[level, t], v_tt, w, alive.e[level], alive.p[level], alive.value[level], count, dropped_value
        )
        # the support of all columns of the child
        row = answers.row_of[top] if top <= node[level, HIGH] else -1
        status[j] = DROPPED
        if row >= 0:
            _record(s, row, level, dropped_value, copies, margin)
        high = min(node[level, HIGH], top - 1)
        m = size - t - 1
        if low > high:
            status[j] = INSIDE
            continue
        # folds that may still win at the smallest size of the range
        new = level + 1
        kept = NO_ITEMS
        for a in range(count):
            i = alive.fold[level, a]
            hope = False
            for tau in range(low, high + 1):
                r = answers.row_of[tau]
                if r >= 0:
                    hope = dropped_value[a] < answers.bar[r, i]
                    break
            if hope:
                alive.fold[new, kept] = a
                kept += 1
        if kept == 0:
            status[j] = INSIDE
            continue
        pivot = 1.0 / v_tt
        bt = levels.beta[level, t] * pivot
        child_costs(node, V, levels.beta, level, t, pivot, child)
        # residuals and leverages of the survivors
        for a in range(kept):
            old = alive.fold[new, a]
            x = w[old]
            alive.e[new, a] = alive.e[level, old] + x * bt
            h = 1.0 - 1.0 / alive.p[level, old] - x * x * pivot
            alive.p[new, a] = 1.0 / (1.0 - h)
            alive.value[new, a] = dropped_value[old]
        wnew = alive.start[new]
        for c in range(m):
            place = child.place[c]
            f = V[base + t * size + place] * pivot
            d = V[base + place * size + place] - f * V[base + t * size + place]
            old_row = wbase + place * count
            out = wnew + c * kept
            if kept == count:
                for a in range(kept):
                    alive.W[out + a] = alive.W[old_row + a] - f * w[a]
            else:
                for a in range(kept):
                    old = alive.fold[new, a]
                    alive.W[out + a] = alive.W[old_row + old] - f * w[old]
            _drop_values(
                child.beta[c], d, alive.W[out : out + kept], alive.e[new], alive.p[new], alive.value[new], kept, drop[c]
            )
        s.ctrl[WORK] += m * kept
        # mark the folds that, for some tau, have enough columns to drop below their cutoff
        least = q + 1
        most = -1
        for a in range(kept):
            hit[a] = 0
        for tau in range(low, high + 1):
            r = answers.row_of[tau]
            if r < 0:
                continue
            for a in range(kept):
                bar[a] = answers.bar[r, alive.fold[level, alive.fold[new, a]]]
            if _mark_alive(drop, bar, m, kept, top - tau, tally, hit):
                least = min(least, tau)
                most = max(most, tau)
        still = NO_ITEMS
        for a in range(kept):
            if hit[a] > 0:
                i = alive.fold[level, alive.fold[new, a]]
                if still < a:
                    alive.e[new, still] = alive.e[new, a]
                    alive.p[new, still] = alive.p[new, a]
                    alive.value[new, still] = alive.value[new, a]
                tally[still] = a
                alive.fold[new, still] = i
                still += 1
        if still == 0:
            status[j] = INSIDE
            continue
        if still < kept:
            for c in range(m):
                source = wnew + c * kept
                target = wnew + c * still
                for a in range(still):
                    alive.W[target + a] = alive.W[source + tally[a]]
        alive.folds[new] = still
        put_child(levels, level, t, pivot, child, least, most)
        level = new
    s.ctrl[LEVEL] = -1
    return FINISHED


def grow(solved, fits, rows, bar, copies, margin, most, expired):
    """Grow the tree of some folds; return the state, and True if the tree is finished.

    Parameters
    ----------
    solved : tuple
        V, beta and f of all columns.
    fits : tuple
        `V x_i`, residual and leverage of the folds, as for `new_state`.
    rows : dict of int to int
        Row of `bar` for each requested size.
    bar : (T, folds) array
        Cutoffs, lowered in place if the margin is finite.
    copies, margin : Copies, Margin
        Duplicate columns, and margin within which supports are kept.
    most : int
        Maximum number of nodes, after which the tree is abandoned.
    expired : callable
        Function that returns True to abandon the tree.
    """
    V, beta, value = solved
    row_of = np.full(len(beta) + 1, -1, dtype=np.int64)
    row_of[list(rows)] = list(rows.values())
    levels = new_levels(V, beta, value, min(rows), max(rows))
    state, code = new_state(levels, *fits, np.arange(len(fits[1])), row_of, bar, KEPT_AT_FIRST), BUDGET
    while code != FINISHED and state.ctrl[NODES] < most and not expired():
        code = process_nodes(state, copies, margin, SLICE)
        if code == FULL:
            state = grow_state(state)
    return state, code == FINISHED
