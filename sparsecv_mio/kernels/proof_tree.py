"""A tree whose leaves prove thresholds: every support of size tau that it does not list has an objective of at least T.

It is the path tree (theory section 4) with the answers known: one chain of splits for every set of columns A that is
left, first included the column that costs most to drop. A node (I, F), A = I + F, is a leaf where for each size its
ridge fit bounds all its supports: by f(A) and the m-th smallest cost, or f(A) and the m smallest `weight beta^2`; the
supports that are no such bound's are A themselves, and are listed. Nodes come out in preorder, a split as its column, a
leaf as -1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ENDED, SHORT, LISTED = 0, 1, 2


@njit(cache=True, nogil=True)
def _last_split(value, cost, ridge, included, sizes, bars):
    """How many columns of a chain must be split off before its rest is a leaf; `cost` falls with the place."""
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
            continue  # A itself: bounded or listed
        if max(value + cost[place], value + total[count - place]) < bars[tau]:
            last = place + 1
    return last


@njit(cache=True, nogil=True)
def prove(V, beta, value, weight, sizes, bars, nodes, listed):
    """Write the tree of one problem.

    Parameters
    ----------
    V, beta, value : (q, q), (q,) arrays, float
        Inverse of `M = X'X + diag(weight)` of all columns, ridge solution and its objective.
    weight : (q,) array
    sizes : (2,) int array
        First and last size.
    bars : (q + 1,) array
        By size: what bounds must reach; supports below are listed.
    nodes : (m,) int array
        Takes the nodes.
    listed : (l, q) bool array
        Takes the supports.

    Returns
    -------
    ended : int
        0; 1 where `nodes` is too short, 2 where `listed` is.
    used, found : int
        Nodes and supports written.
    """
    q = len(beta)
    depth = q + 1
    inverse = np.empty((depth, q, q))
    solution = np.empty((depth, q))
    column = np.empty((depth, q), dtype=np.int64)
    cost = np.empty((depth, q))
    # count of free columns, of included ones, and the place of the child to visit, by level
    shape = np.zeros((depth, 3), dtype=np.int64)
    values = np.empty(depth)
    mine = np.zeros(q, dtype=np.bool_)
    used, found, level = 0, 0, 0
    inverse[0, :q, :q], solution[0], values[0] = V, beta, value
    for j in range(q):
        column[0, j] = j
    shape[0, 0] = q
    fresh = True
    while level >= 0:
        count, included = shape[level, 0], shape[level, 1]
        if fresh:
            # costs in falling order, and with them columns, solution and inverse
            now = np.empty(count)
            for a in range(count):
                now[a] = solution[level, a] ** 2 / inverse[level, a, a]
            order = np.argsort(-now)
            cost[level, :count] = now[order]
            column[level, :count] = column[level, :count][order]
            solution[level, :count] = solution[level, :count][order]
            sorted_inverse = np.empty((count, count))
            for a in range(count):
                for b in range(count):
                    sorted_inverse[a, b] = inverse[level, order[a], order[b]]
            inverse[level, :count, :count] = sorted_inverse
            whole = included + count
            if sizes[0] <= whole <= sizes[1] and values[level] < bars[whole]:
                if found == len(listed):
                    return LISTED, used, found
                listed[found] = mine
                for a in range(count):
                    listed[found, column[level, a]] = True
                found += 1
            ridge = weight[column[level, :count]] * solution[level, :count] ** 2
            last = _last_split(values[level], cost[level, :count], ridge, included, sizes, bars)
            if used + last + 1 > len(nodes):
                return SHORT, used, found
            for t in range(last):
                nodes[used] = column[level, t]
                mine[column[level, t]] = True
                used += 1
            nodes[used] = -1
            used += 1
            shape[level, 2] = last
            fresh = False
        t = shape[level, 2] - 1
        if t < 0:
            level -= 1
            continue
        shape[level, 2] = t
        j = column[level, t]
        mine[j] = False
        rest = count - t - 1
        pivot, own = inverse[level, t, t], solution[level, t]
        for a in range(rest):
            factor = inverse[level, t + 1 + a, t] / pivot
            column[level + 1, a] = column[level, t + 1 + a]
            solution[level + 1, a] = solution[level, t + 1 + a] - factor * own
            for b in range(rest):
                inverse[level + 1, a, b] = inverse[level, t + 1 + a, t + 1 + b] - factor * inverse[level, t, t + 1 + b]
        values[level + 1] = values[level] + own * own / pivot
        shape[level + 1, 0], shape[level + 1, 1] = rest, included + t
        level += 1
        fresh = True
    return ENDED, used, found
