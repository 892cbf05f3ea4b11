"""A tree whose leaves prove thresholds: every support of size tau that it does not list has an objective of at least T.

It is the path tree (theory section 4) with the answers known: one chain of splits for every set of columns A that is
left, first included the column that costs most to drop. A node (I, F), A = I + F, is a leaf where for each size its
ridge fit bounds all its supports: by f(A) and the m-th smallest cost, or f(A) and the m smallest `weight beta^2`; the
supports that are no such bound's are A themselves, and are listed. Nodes come out in preorder, a split as its column, a
leaf as -1.
"""

import numpy as np

from sparsecv_mio.kernels.dropping_costs import last_split
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.path_tree import CHILD, COUNT, INCLUDED, START, child_costs, new_child, put_child

ENDED, SHORT, LISTED = 0, 1, 2


@njit(cache=True, nogil=True)
def prove(levels, weight, sizes, bars, nodes, listed):
    """Write the tree of one problem.

    Parameters
    ----------
    levels : Levels
        The root, of `M = X'X + diag(weight)`; overwritten.
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
