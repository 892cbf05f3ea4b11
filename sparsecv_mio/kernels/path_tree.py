"""The path tree, a branch-and-bound tree that finds the best subsets of all sizes by dropping columns.

In normal form, the tree minimises `yy - c_S' M_S^{-1} c_S` over `|S| = tau`, for every tau of a range at once, with
`M - w I` positive semidefinite (theory section 4).

A node has included columns I and free columns F. Let A be the union of I and F, beta the ridge solution on A, and V the
inverse of `M_A`. A node stores only the parts of beta and V on F. Dropping column j costs exactly `beta_j^2 / V_jj` and
leaves

    beta_a - V_aj beta_j / V_jj,        V_ab - V_aj V_jb / V_jj        on F - j.

The free columns of a node are sorted by the cost of dropping them, the largest cost first. The t-th child of the node
includes the first t of these columns, drops the next one and has the other |F| - t - 1 columns free. Rounding errors of
repeated updates grow with the condition number of M; the allowances `keep` and `slack` of the trees include them.

Let w >= 0 be any diagonal for which `M_A - diag(w)` is positive semidefinite. A support that drops m columns of F has

    f  >=  f(A) + max( m-th smallest beta_j^2 / V_jj,  sum of the m smallest w_j beta_j^2 )       over j in F.

This bound determines the sizes for which the node remains open (`remaining_sizes`).

The tree is searched depth-first, and the arrays of every depth are allocated in advance. The leave-one-out tree has the
same arrays (`Levels`). A call of `process_nodes` visits at most a given number of nodes and returns, so that the caller
can handle time limits, progress and interrupts.

`prove` builds the same tree when the results are known. The tree then proves that every support of size tau that is not
listed has an objective of at least T. Each node has a set of columns A and begins a chain of splits. A split takes the
column that costs most to drop: one child drops this column, and the chain goes on with the column included. The chain
ends at a leaf as soon as the ridge fit on A gives a sufficient bound for all remaining supports of each size. With m
columns to drop, the bound is f(A) plus the m-th smallest cost, or f(A) plus the sum of the m smallest `weight beta^2`.
If A itself has one of the sizes and f(A) is below T, A is listed. Nodes are written in preorder. A split is written as
the number of its column, and a leaf as -1.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.nodes import (
    DROPPED,
    FREE,
    INSIDE,
    KeptSupports,
    keep_support,
    later_copy_inside,
    new_kept_supports,
    uses_copies_in_order,
)

COUNT, INCLUDED, CHILD, LOW, HIGH, START = range(6)


class Levels(NamedTuple):
    """A depth-first tree, level by level.

    Attributes
    ----------
    node : (levels, 6) int array
        Number of free columns, number of columns included at its creation, next child, alive range of sizes, start of
        V.
    value : (levels,) array
        f of all columns of the node.
    column, beta, cost : (levels, q) arrays
        Free columns by falling cost, their coefficients and costs.
    V : array
        Free part of the inverse of every level, row by row.
    status : (q,) int8 array
        Status on the way to the present node: FREE, INSIDE or DROPPED.
    """

    node: np.ndarray
    value: np.ndarray
    column: np.ndarray
    beta: np.ndarray
    cost: np.ndarray
    V: np.ndarray
    status: np.ndarray


class Child(NamedTuple):
    """Work arrays: a node's remaining columns without one of them, their positions in it, coefficients and costs."""

    place: np.ndarray
    beta: np.ndarray
    cost: np.ndarray


# Functions of the inner loop take arrays, not the tuples that hold them: passing a tuple counts the references of all
# its arrays, which took a tenth of a small tree's time.


def new_levels(V, beta, value, low, high):
    """Return a tree whose root has all columns; O(q^3 / 3) memory.

    Parameters
    ----------
    V, beta, value : (q, q), (q,), float
        Inverse of M, ridge solution and f on all columns.
    low, high : int
        Range of requested sizes.
    """
    q = beta.shape[0]
    cost = beta**2 / np.diag(V)
    order = np.argsort(-cost, kind="stable")
    start = np.concatenate(([0], np.cumsum((q - np.arange(q + 1)) ** 2)))
    levels = Levels(
        node=np.zeros((q + 1, 6), dtype=np.int64),
        value=np.zeros(q + 1),
        column=np.zeros((q + 1, q), dtype=np.int64),
        beta=np.zeros((q + 1, q)),
        cost=np.zeros((q + 1, q)),
        V=np.empty(int(start[-1])),
        status=np.full(q, FREE, dtype=np.int8),
    )
    levels.node[:, START] = start[:-1]
    levels.node[0, [COUNT, LOW, HIGH]] = q, low, high
    levels.value[0] = value
    levels.column[0] = order
    levels.beta[0] = beta[order]
    levels.cost[0] = cost[order]
    levels.V[: q * q] = V[np.ix_(order, order)].ravel()
    return levels


@njit(cache=True, nogil=True)
def new_child(q):
    """Return work arrays for a child of q columns."""
    return Child(np.empty(q + 1, dtype=np.int64), np.empty(q + 1), np.empty(q + 1))


@njit(cache=True, nogil=True, inline="always")
def is_level_finished(node, column, status, level, before):
    """Return True if a level has no child left to visit; `before` as in `Copies`. O(1).

    Parameters
    ----------
    node, column, status : arrays
        Arrays of `Levels`.
    level : int
        Level.
    before : (q,) int array
        Previous copies, as in `Copies`.
    """
    t = node[level, CHILD]
    top = node[level, INCLUDED] + node[level, COUNT] - 1
    if t >= node[level, COUNT] or node[level, INCLUDED] + t > node[level, HIGH] or top < node[level, LOW]:
        return True
    if t == 0:
        return False
    # all remaining children include a column whose earlier copy is dropped
    earlier = before[column[level, t - 1]]
    return earlier >= 0 and status[earlier] == DROPPED


@njit(cache=True, nogil=True, inline="always")
def leave_level(node, column, status, level):
    """Leave a level; the column dropped above it is included from now on. Return the level above.

    Parameters
    ----------
    node, column, status : arrays
        Arrays of `Levels`.
    level : int
        Level.
    """
    for k in range(node[level, CHILD]):
        status[column[level, k]] = FREE
    level -= 1
    if level >= 0:
        status[column[level, node[level, CHILD] - 1]] = INSIDE
    return level


@njit(cache=True, nogil=True, inline="always")
def child_costs(node, V, beta, level, t, pivot, child):
    """Fill `child` with the columns of a node without its t-th one, by falling cost; pivot is `1 / V_tt`.

    O(|F|) and the moves of the sort: costs nearly keep their order.

    Parameters
    ----------
    node, V, beta : arrays
        Arrays of `Levels`.
    level, t : int
        Node, and position of the column in it.
    pivot : float
        `1 / V_tt`.
    child : Child
        Arrays to fill.
    """
    place, betas, costs = child.place, child.beta, child.cost
    size = node[level, COUNT]
    base = node[level, START]
    lead = base + t * size
    bt = beta[level, t] * pivot
    count = 0
    for a in range(t + 1, size):
        v = V[lead + a]
        b = beta[level, a] - v * bt
        d = V[base + a * size + a] - v * v * pivot
        cost = b * b / d if d > 0.0 else 0.0
        k = count
        while k > 0 and costs[k - 1] < cost:
            costs[k] = costs[k - 1]
            place[k] = place[k - 1]
            betas[k] = betas[k - 1]
            k -= 1
        costs[k] = cost
        place[k] = a
        betas[k] = b
        count += 1


@njit(cache=True, nogil=True, inline="always")
def put_child(s, level, t, pivot, child, low, high):
    """Write `child` to the next level, with the range of sizes that are alive there. O(|F|^2).

    Parameters
    ----------
    s : Levels
        Tree.
    level, t : int
        Node, and position of the column in it.
    pivot : float
        `1 / V_tt`.
    child : Child
        Child.
    low, high : int
        Range of sizes.
    """
    node, V, column, beta, cost = s.node, s.V, s.column, s.beta, s.cost
    place, betas, costs = child.place, child.beta, child.cost
    new = level + 1
    size = node[level, COUNT]
    m = size - t - 1
    base = node[level, START]
    lead = base + t * size
    out = node[new, START]
    for k in range(m):
        column[new, k] = column[level, place[k]]
        beta[new, k] = betas[k]
        cost[new, k] = costs[k]
    for k in range(m):
        row = base + place[k] * size
        f = V[lead + place[k]] * pivot
        for i in range(k + 1):
            x = V[row + place[i]] - f * V[lead + place[i]]
            V[out + k * m + i] = x
            V[out + i * m + k] = x
    node[new, COUNT] = m
    node[new, INCLUDED] = node[level, INCLUDED] + t
    node[new, CHILD] = 0
    node[new, LOW] = low
    node[new, HIGH] = high
    s.value[new] = s.value[level] + cost[level, t]


@njit(cache=True, nogil=True, inline="always")
def remaining_sizes(value, child, count, top, sizes, w, bar, scratch):
    """Return the range of sizes for which a node may contain a support below its cutoff; empty if low > high.

    O(|F|) moves of a sort.

    Parameters
    ----------
    value : float
        Objective f of all columns of the node.
    child : Child
        Free columns by falling cost; `count` of them.
    count : int
        Number of free columns.
    top : int
        Number of columns of the node.
    sizes : (int, int)
        Initial range, less than `top`.
    w : float
        Number with `M - w I` positive semidefinite; 0 skips the second bound.
    bar : (q + 1,) array
        Cutoff of each size.
    scratch : (count,) array or larger
        Work array.
    """
    low, high = sizes
    costs = child.cost
    while low <= high and value + costs[count - (top - high)] >= bar[high]:
        high -= 1
    while low <= high and value + costs[count - (top - low)] >= bar[low]:
        low += 1
    if low <= high and w > 0.0:
        betas = child.beta
        for k in range(count):
            x = betas[k] * betas[k] * w
            i = k
            while i > 0 and scratch[i - 1] > x:
                scratch[i] = scratch[i - 1]
                i -= 1
            scratch[i] = x
        for k in range(1, count):
            scratch[k] += scratch[k - 1]
        while low <= high and value + scratch[top - high - 1] >= bar[high]:
            high -= 1
        while low <= high and value + scratch[top - low - 1] >= bar[low]:
            low += 1
    return low, high


@njit(cache=True, nogil=True)
def last_split(value, cost, ridge, included, sizes, bars):
    """Return how many columns of a chain must be split off before the rest is a leaf without a support below a cutoff.

    Parameters
    ----------
    value : float
        Objective f of all columns of the node.
    cost, ridge : (count,) arrays
        Falling costs of dropping each free column, and its part of the ridge term, `w_j beta_j^2`.
    included : int
        Number of included columns.
    sizes, bars : int array, (q + 1,) array
        First and last size, and the cutoff of each size.
    """
    count = len(cost)
    low, high = max(sizes[0], included), min(sizes[1], included + count)
    rising = np.sort(ridge)
    total = np.zeros(count + 1)
    for i in range(count):
        total[i + 1] = total[i] + rising[i]
    last = 0
    for tau in range(low, high + 1):
        place = tau - included
        if place == count:
            continue  # the support A is bounded or listed separately
        if max(value + cost[place], value + total[count - place]) < bars[tau]:
            last = place + 1
    return last


LEVEL, NODES, KEPT, OVERFLOW = range(4)
BEST, BAR, MOST = range(3)


class PathState(NamedTuple):
    """State of a path tree between two calls.

    Attributes
    ----------
    ctrl : (4,) int array
        Level, nodes, stored supports, overflow flag.
    levels : Levels
        Tree.
    bars : (3, q + 1) array
        Values by size: incumbent value, cutoff `best (1 + keep) + slack`, and largest cutoff of this and larger sizes.
    kept : KeptSupports
        Every support found at or below the cutoff of its size.
    """

    ctrl: np.ndarray
    levels: Levels
    bars: np.ndarray
    kept: KeptSupports

    @property
    def best(self):
        """Incumbent value by size."""
        return self.bars[BEST]

    @property
    def bar(self):
        """Cutoff by size."""
        return self.bars[BAR]

    def set_bars(self, sizes, best, bar):
        """Set the incumbent values and the cutoffs of one size or of several.

        Parameters
        ----------
        sizes : int, slice or int array
            Sizes.
        best, bar : float or array
            Incumbent values and cutoffs.
        """
        self.bars[BEST, sizes], self.bars[BAR, sizes] = best, bar
        self.bars[MOST] = np.maximum.accumulate(self.bars[BAR, ::-1])[::-1]


def new_state(levels, best, margin, capacity):
    """Return the state of a tree that has not started.

    Parameters
    ----------
    levels : Levels
        Tree with the root; its range of sizes is `1 <= low <= high <= q`.
    best : (q + 1,) array
        Incumbent values by size (inf if unknown).
    margin : Margin
        Margin within which supports are kept.
    capacity : int
        Number of supports that the state can store.
    """
    q = len(levels.status)
    state = PathState(
        ctrl=np.zeros(4, dtype=np.int64),
        levels=levels,
        bars=np.empty((3, q + 1)),
        kept=new_kept_supports(capacity, q),
    )
    state.set_bars(slice(None), best, best * (1.0 + margin.keep) + margin.slack)
    return state


@njit(cache=True, nogil=True)
def _record(s, size, value, margin):
    """Record the support of the columns not dropped: improve the incumbent, store the support if within the cutoff."""
    bars = s.bars
    if value < bars[BEST, size]:
        bars[BEST, size] = value
        bars[BAR, size] = value * (1.0 + margin.keep) + margin.slack
        top = 0.0
        for t in range(bars.shape[1] - 1, -1, -1):
            top = max(top, bars[BAR, t])
            bars[MOST, t] = top
    count = keep_support(s.kept, s.ctrl[KEPT], s.levels.status, size, value, bars[BAR])
    if count < 0:
        s.ctrl[OVERFLOW] = 1
    else:
        s.ctrl[KEPT] = count


@njit(cache=True, nogil=True)
def _descend(levels, bars, level, t, sizes, w, child, scratch):
    """Build the child of `level` that drops column t in level + 1 if some size survives; return True if it does.

    O(|F'|) for the costs and tests, O(|F'|^2) for V if a size survives them.
    """
    node, V = levels.node, levels.V
    value = levels.value[level] + levels.cost[level, t]
    size = node[level, COUNT]
    m = size - t - 1
    pivot = 1.0 / V[node[level, START] + t * size + t]
    child_costs(node, V, levels.beta, level, t, pivot, child)
    top = node[level, INCLUDED] + size - 1
    low, high = remaining_sizes(value, child, m, top, sizes, w, bars[BAR], scratch)
    if low > high:
        return False
    put_child(levels, level, t, pivot, child, low, high)
    return True


@njit(cache=True, nogil=True)
def process_nodes(s, copies, w, margin, max_nodes):
    """Process at most `max_nodes` nodes of the tree; return True when it is finished.

    Parameters
    ----------
    s : PathState
        State.
    copies : Copies
        Duplicate columns.
    w : float
        Number with `M - w I` positive semidefinite; 0 switches the second-term test off.
    margin : Margin
        Margin as for the state.
    max_nodes : int
        Maximum number of nodes.

    Notes
    -----
    A node costs O(|F|) if its tests close it and O(|F|^2) if it is expanded.
    """
    ctrl, levels, bars = s.ctrl, s.levels, s.bars
    node, status, column, values, costs = levels.node, levels.status, levels.column, levels.value, levels.cost
    before, after = copies
    q = status.shape[0]
    child = new_child(q)
    scratch = np.empty(q + 1)
    level = ctrl[LEVEL]
    left = max_nodes
    while level >= 0:
        if left <= 0:
            ctrl[LEVEL] = level
            return False
        if is_level_finished(node, column, status, level, before):
            level = leave_level(node, column, status, level)
            continue
        t = node[level, CHILD]
        top = node[level, INCLUDED] + node[level, COUNT] - 1
        j = column[level, t]
        node[level, CHILD] = t + 1
        value = values[level] + costs[level, t]
        low = max(node[level, LOW], node[level, INCLUDED] + t)
        if value > bars[MOST, low]:
            status[j] = INSIDE
            continue
        left -= 1
        ctrl[NODES] += 1
        if later_copy_inside(j, after, status):
            status[j] = INSIDE
            continue
        status[j] = DROPPED
        if top <= node[level, HIGH] and value <= bars[BAR, top] and uses_copies_in_order(copies, status):
            _record(s, top, value, margin)
        high = min(node[level, HIGH], top - 1)
        if low <= high and _descend(levels, bars, level, t, (low, high), w, child, scratch):
            level += 1
        else:
            status[j] = INSIDE
    ctrl[LEVEL] = -1
    return True


def open_bounds(s, bounds):
    """Lower `bounds` (by tau) to lower bounds of f in the open part of the tree. O(levels q).

    The unvisited children of a level form the node (I + first t columns, the others free); its bound is f of the level
    plus the m-th smallest cost.
    """
    for level in range(s.ctrl[LEVEL] + 1):
        size, included, t, low, high = s.levels.node[level, [COUNT, INCLUDED, CHILD, LOW, HIGH]]
        tau = np.arange(low, min(high, included + size - 1) + 1)
        tau = tau[tau - included >= t]
        bounds[tau] = np.minimum(bounds[tau], s.levels.value[level] + s.levels.cost[level, tau - included])


ENDED, SHORT, LISTED = range(3)


@njit(cache=True, nogil=True)
def prove(levels, weight, sizes, bars, nodes, listed):
    """Write the proof tree of one problem.

    Parameters
    ----------
    levels : Levels
        Tree with the root, of `M = X'X + diag(weight)`; overwritten.
    weight : (q,) array
        Penalty.
    sizes : (2,) int array
        First and last size.
    bars : (q + 1,) array
        Values by size that bounds must reach; supports below are listed.
    nodes : (m,) int array
        Array to fill with the nodes.
    listed : (l, q) bool array
        Array to fill with the listed supports.

    Returns
    -------
    ended : int
        0 if complete; 1 if `nodes` is too short, 2 if `listed` is.
    used, found : int
        Numbers of nodes and supports written.
    """
    node, column, beta, cost, V = levels.node, levels.column, levels.beta, levels.cost, levels.V
    q = weight.shape[0]
    child = new_child(q)
    mine = np.zeros(q, dtype=np.bool_)
    used, found, level = 0, 0, 0
    fresh = True
    while level >= 0:
        count, included = node[level, COUNT], node[level, INCLUDED]
        if fresh:
            value = levels.value[level]
            whole = included + count
            if sizes[0] <= whole <= sizes[1] and value < bars[whole]:
                if found == len(listed):
                    return LISTED, used, found
                listed[found] = mine
                for a in range(count):
                    listed[found, column[level, a]] = True
                found += 1
            ridge = np.empty(count)
            for a in range(count):
                ridge[a] = weight[column[level, a]] * beta[level, a] * beta[level, a]
            last = last_split(value, cost[level, :count], ridge, included, sizes, bars)
            if used + last + 1 > len(nodes):
                return SHORT, used, found
            for t in range(last):
                nodes[used] = column[level, t]
                mine[column[level, t]] = True
                used += 1
            nodes[used] = -1
            used += 1
            node[level, CHILD] = last
            fresh = False
        t = node[level, CHILD] - 1
        if t < 0:
            level -= 1
            continue
        node[level, CHILD] = t
        mine[column[level, t]] = False
        pivot = 1.0 / V[node[level, START] + t * count + t]
        child_costs(node, V, beta, level, t, pivot, child)
        put_child(levels, level, t, pivot, child, sizes[0], sizes[1])
        level += 1
        fresh = True
    return ENDED, used, found
