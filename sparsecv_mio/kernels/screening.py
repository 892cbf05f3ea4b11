"""Safe screening by a dual point: columns that every, or that no, good enough support holds (theory section 2).

With `d_j = g_j^2 / w_j` at any point and D its own dual value, a support S of k columns has

    f(S)  >=  D + (sum of the k largest d) - (sum of d over S),

so one without column i has `f >= D + d_i - d_(k+1)` and one with it `f >= D + d_(k) - d_i`, d_(1) >= d_(2) >= ...
Valid for that k alone: optima of two sizes need not nest.

Rounding: `room` is how far above D the supports to be kept may lie; whoever calls adds the rounding of D and of their f
to it. The rule itself subtracts once and compares.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.k_support import largest
from sparsecv_mio.kernels.status import DROPPED, FREE, INSIDE


@njit(cache=True, nogil=True)
def fix_columns(d, count, columns, inner, outer, room, status):
    """Fix the columns that the rule decides.

    Parameters
    ----------
    d : array
        `g_j^2 / w_j` of the open columns; the first `count` entries count.
    count : int
    columns : int array
        Their places in `status`.
    inner, outer : float
        The k-th and the (k + 1)-th largest of d, 0 < k < count.
    room : float
        Supports with f at most D + room are to be kept.
    status : (q,) int8 array
        DROPPED or INSIDE is written where a column is fixed.

    Returns
    -------
    int
        How many are.
    """
    fixed = 0
    for a in range(count):
        if inner - d[a] > room:
            status[columns[a]] = DROPPED
            fixed += 1
        elif d[a] - outer > room:
            status[columns[a]] = INSIDE
            fixed += 1
    return fixed


@njit(cache=True, nogil=True)
def screen(d, count, columns, k, room, status):
    """Fix the open columns of a node that has k columns to choose, see `fix_columns`; return how many. O(count k).

    Parameters
    ----------
    d, count, columns, room, status
        As for `fix_columns`.
    k : int
        0 < k < count.
    """
    heap = np.empty(k + 1)
    largest(d, count, k + 1, heap)
    return fix_columns(d, count, columns, heap[k - 1], heap[k], room, status)


@njit(cache=True, nogil=True)
def leaves_only(d, k, room, masks):
    """Say of several problems whether a support is the only one left.

    Parameters
    ----------
    d : (m, q) array
        `g_j^2 / w_j` by problem; where one is no number, nothing is said.
    k : int
        0 < k < q.
    room : (m,) array
    masks : (m, q) bool array
        A support of k columns for each problem.

    Returns
    -------
    (m,) bool array

    Notes
    -----
    O(m q k) at most.
    """
    q = d.shape[1]
    heap = np.empty(k + 1)
    columns = np.arange(q)
    status = np.empty(q, dtype=np.int8)
    only = np.zeros(d.shape[0], dtype=np.bool_)
    for i in range(d.shape[0]):
        largest(d[i], q, k + 1, heap)
        for j in range(q):
            status[j] = FREE
        only[i] = fix_columns(d[i], q, columns, heap[k - 1], heap[k], room[i], status) == q
        for j in range(q):
            if (status[j] == INSIDE) != masks[i, j]:
                only[i] = False
    return only
