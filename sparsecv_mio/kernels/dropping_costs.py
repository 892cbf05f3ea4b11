"""Lower bounds on the cost of dropping columns from the ridge fit of a node, by number of columns (theory section 4).

A is the set of columns of the node and F its free columns, beta is the ridge fit on A with objective f(A), M_A is the
Gram matrix plus the penalty and `V = M_A^{-1}`. A support that drops m columns of F has

    f  >=  f(A) + max( m-th smallest beta_j^2 / V_jj,  sum of the m smallest w_j beta_j^2 )       over j in F

for every diagonal w >= 0 with `M_A - diag(w)` positive semidefinite. The bound determines for which sizes the node
remains open.
"""

import numpy as np

from sparsecv_mio.kernels.jit import njit


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
