"""The slope of a point in all columns, from the products of all columns with the few that the point uses."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def slope_from_products(products, c, b, count, g):
    """Fill `g = c - G b` for a point on the first columns of a working set. O(q nnz(b)).

    Parameters
    ----------
    products : (cap, q) array
        Row a holds the products of all columns with the a-th of the working set.
    c : (q,) array
    b : (count,) array
    count : int
    g : (q,) array
    """
    q = c.shape[0]
    for j in range(q):
        g[j] = c[j]
    for a in range(count):
        x = b[a]
        if x != 0.0:
            row = products[a]
            for j in range(q):
                g[j] -= row[j] * x
