"""Safe screening: the columns that are in every, or in no, support within a cutoff (theory sections 1 and 2).

The dual point may be that of the problem itself or of another one. Let g be its correlations with the columns, `d_j =
g_j^2 / w_j` with the diagonal w of the relaxation, and D the dual value at this point. A support S of k columns has

    f(S)  >=  D + (sum of the k largest d) - (sum of d over S).

With d_(1) >= d_(2) >= ... the sorted d, a support without column i has `f >= D + d_i - d_(k+1)`, and one with column i
`f >= D + d_(k) - d_i`. The result is valid for this k only: the optimum of one size need not contain that of a smaller
size.

Supports with f of at most D + `room` must be kept. The caller adds the rounding errors of D and f to `room`; the rule
itself subtracts once and compares.
"""

import numpy as np

from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.k_support import largest
from sparsecv_mio.kernels.nodes import DROPPED, INSIDE


@njit(cache=True, nogil=True)
def fix_columns(d, count, columns, inner, outer, room, status):
    """Fix the columns that the rule determines; return their number.

    Parameters
    ----------
    d : array
        `g_j^2 / w_j` of the open columns, of which the first `count` entries are used.
    count : int
        Number of open columns.
    columns : int array
        Their positions in `status`.
    inner, outer : float
        The k-th and the (k + 1)-th largest of d, 0 < k < count.
    room : float
        Distance: supports with f at most D + room are kept.
    status : (q,) int8 array
        Status, in which DROPPED or INSIDE is written for a fixed column.

    Returns
    -------
    int
        Number of fixed columns.
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
    """Fix the open columns of a node that has k columns to choose, see `fix_columns`; return their number. O(count k).

    Parameters
    ----------
    d, count, columns, room, status
        Data as for `fix_columns`.
    k : int
        Number of columns to choose, 0 < k < count.
    """
    heap = np.empty(k + 1)
    largest(d, count, k + 1, heap)
    return fix_columns(d, count, columns, heap[k - 1], heap[k], room, status)
