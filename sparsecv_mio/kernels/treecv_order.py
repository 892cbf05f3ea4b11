"""Random orders that depend on (seed, first row, last row) only: the same in every strategy and on every thread."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def splitmix(x: np.uint64) -> np.uint64:
    """One step of splitmix64 on a uint64. O(1)."""
    x = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, nogil=True)
def shuffled_range(first: int, last: int, seed: int, out: NDArray[np.int64]) -> None:
    """Fill `out[:last - first]` with first .. last-1 in a random order (Fisher-Yates). O(last - first).

    Parameters
    ----------
    first, last : int
    seed : int
    out : int array
    """
    m = last - first
    for i in range(m):
        out[i] = first + i
    key = splitmix(splitmix(splitmix(np.uint64(seed)) ^ np.uint64(first)) ^ np.uint64(last))
    for i in range(m - 1, 0, -1):
        key = splitmix(key)
        j = np.int64(np.float64(key >> np.uint64(11)) * 1.1102230246251565e-16 * (i + 1))  # 2^-53
        kept = out[i]
        out[i] = out[j]
        out[j] = kept
