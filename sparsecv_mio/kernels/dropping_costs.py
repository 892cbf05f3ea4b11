"""What dropping columns from the ridge fit of a node costs at least (theory section 4): its sizes that stay alive.

A support that drops m of the free columns F of a node has

    f  >=  f(A) + max( m-th smallest beta_j^2 / V_jj,  sum of the m smallest w_j beta_j^2 )       over F

for every diagonal w >= 0 under M_A.
"""

import numpy as np

from sparsecv_mio.kernels.jit import njit


@njit(cache=True, nogil=True, inline="always")
def sizes_left(value, child, count, top, sizes, w, bar, scratch):
    """Range of sizes of which a node may hold a support below its bar; empty where low > high. O(|F|) moves of a sort.

    Parameters
    ----------
    value : float
        f of all columns of the node.
    child : Child
        Its free columns by falling cost; `count` of them.
    top : int
        Columns of the node.
    sizes : (int, int)
        Range to begin with, less than `top`.
    w : float
        `M - w I` is positive semidefinite; 0 leaves the second bound out.
    bar : (q + 1,) array
    scratch : (count,) array or larger
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
    """How many columns of a chain must be split off before its rest is a leaf, where it holds no support below a bar.

    Parameters
    ----------
    value : float
        f of all columns of the node.
    cost, ridge : (count,) arrays
        Cost of dropping each free column, falling, and its part of the ridge term, `w_j beta_j^2`.
    included : int
    sizes, bars : int array, (q + 1,) array
        First and last size, and the bar of each.
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
            continue  # A itself: bounded or listed
        if max(value + cost[place], value + total[count - place]) < bars[tau]:
            last = place + 1
    return last
