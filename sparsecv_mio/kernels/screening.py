"""Safe screening by a dual point, of the problem itself or of another one (theory sections 1, 2 and 8).

Safe screening by a dual point: columns that every, or that no, good enough support holds (theory section 2).

With `d_j = g_j^2 / w_j` at any point and D its own dual value, a support S of k columns has

    f(S)  >=  D + (sum of the k largest d) - (sum of d over S),

so one without column i has `f >= D + d_i - d_(k+1)` and one with it `f >= D + d_(k) - d_i`, d_(1) >= d_(2) >= ...
Valid for that k alone: optima of two sizes need not nest.

Rounding: `room` is how far above D the supports to be kept may lie; whoever calls adds the rounding of D and of their f
to it. The rule itself subtracts once and compares.
"""

import numpy as np

from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.k_support import largest
from sparsecv_mio.kernels.nodes import DROPPED, INSIDE


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
