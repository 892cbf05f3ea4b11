"""What is known of a column at a node: open, in every support, in none."""

from __future__ import annotations

from numba import njit

FREE, INSIDE, DROPPED = 0, 1, 2


@njit(cache=True, nogil=True)
def list_columns(status, inside, free):
    """Fill `inside` and `free` with the columns of each kind, ascending; return both counts. O(q).

    Parameters
    ----------
    status : (q,) int8 array
    inside, free : (q,) int arrays
    """
    count_inside = 0
    count_free = 0
    for j in range(status.shape[0]):
        if status[j] == INSIDE:
            inside[count_inside] = j
            count_inside += 1
        elif status[j] == FREE:
            free[count_free] = j
            count_free += 1
    return count_inside, count_free
