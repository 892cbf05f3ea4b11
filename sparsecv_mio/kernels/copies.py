"""Equal or negated columns under one penalty: supports that differ by copies are one, so copies are used in order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sparsecv_mio.kernels.status import DROPPED, INSIDE


class Copies(NamedTuple):
    """Neighbouring copies of each column.

    Attributes
    ----------
    before, after : (q,) int arrays
        The previous and the next copy, -1 for none.
    """

    before: np.ndarray
    after: np.ndarray


@njit(cache=True, nogil=True, inline="always")
def later_copy_inside(j, after, status):
    """Whether a later copy of j is inside: then a support without j is the same support twice.

    Parameters
    ----------
    j : int
    after : (q,) int array
        As in `Copies`.
    status : (q,) int8 array
    """
    found = False
    later = after[j]
    while later >= 0:
        if status[later] == INSIDE:
            found = True
        later = after[later]
    return found


@njit(cache=True, nogil=True)
def in_order(copies, status):
    """Whether the support of the columns not dropped uses copies in index order. O(q)."""
    for k in range(status.shape[0]):
        if status[k] == DROPPED:
            later = copies.after[k]
            if later >= 0 and status[later] != DROPPED:
                return False
    return True
