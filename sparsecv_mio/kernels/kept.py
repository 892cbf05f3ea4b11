"""Supports that a tree keeps: all that lie within a bar, which falls as better ones are found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sparsecv_mio.kernels.status import DROPPED


class Kept(NamedTuple):
    """Kept supports.

    Attributes
    ----------
    mask : (capacity, q) bool array
    row : (capacity,) int array
        Which of the tree's bars each answers to.
    value : (capacity,) array
    """

    mask: np.ndarray
    row: np.ndarray
    value: np.ndarray


class Margin(NamedTuple):
    """How far above the best a support is kept: within `best (1 + keep) + slack`, the rounding of the tree's values."""

    keep: float
    slack: float


def new_kept(capacity, q):
    """Room for so many supports of q columns."""
    return Kept(np.zeros((capacity, q), dtype=np.bool_), np.zeros(capacity, dtype=np.int64), np.zeros(capacity))


@njit(cache=True, nogil=True)
def keep_support(s, count, status, row, value, bars):
    """Add the support of the columns not dropped to `count` others; those above their bar give way where it is full.

    Returns the number kept, -1 where there is no room. O(q), and O(capacity q) where it is full.

    Parameters
    ----------
    s : Kept
    count : int
        Supports kept so far.
    status : (q,) int8 array
    row : int
        Which of the bars it answers to.
    value : float
        Its f.
    bars : array
    """
    q = status.shape[0]
    capacity = s.value.shape[0]
    if count == capacity:
        count = 0
        for r in range(capacity):
            if s.value[r] <= bars[s.row[r]]:
                if count < r:
                    for j in range(q):
                        s.mask[count, j] = s.mask[r, j]
                    s.row[count] = s.row[r]
                    s.value[count] = s.value[r]
                count += 1
        if count == capacity:
            return -1
    for j in range(q):
        s.mask[count, j] = status[j] != DROPPED
    s.row[count] = row
    s.value[count] = value
    return count + 1
