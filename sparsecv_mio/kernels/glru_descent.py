"""Cyclic coordinate descent on a weighted least-squares model with an elastic-net or L1 penalty.

    m(u) = sum_i h_i (x_i'(u - w))^2 / 2 - sum_i a_i x_i'(u - w) + sum_j [ridge u_j^2 / 2 + l1 |u_j|]

Columns of X come as rows of a C-contiguous (d, n) array, or as a CSC triple. Both keep `v = X (u - w)` up to date.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def _move(value, slope, second, ridge, l1):
    """Minimiser of `second (u - value)^2 / 2 + slope (u - value) + ridge u^2 / 2 + l1 |u|`."""
    pull = second * value - slope
    if pull > l1:
        return (pull - l1) / (second + ridge)
    if pull < -l1:
        return (pull + l1) / (second + ridge)
    return 0.0


@njit(cache=True, nogil=True)
def descend_dense(XT, columns, h, a, second, u, v, ridge, l1, free, sweeps, share):
    """Sweep over `columns` until a full sweep lowers the model by at most `share` of what the first one did.

    `second[j] = sum_i h_i x_ij^2`; a column where it is 0 while ridge is 0 stays as it is. `free` is the column without
    a penalty, or -1. Changes u and v in place, returns what the first sweep lowered the model by. O(n len(columns)) a
    sweep; between full sweeps only the nonzero columns are visited.
    """
    n = XT.shape[1]
    full, first = True, -1.0
    for _ in range(sweeps):
        drop = 0.0
        for k in range(columns.shape[0]):
            j = columns[k]
            if (not full and u[j] == 0.0 and j != free) or second[j] + ridge <= 0.0:
                continue
            x = XT[j]
            slope = 0.0
            for i in range(n):
                slope += x[i] * (h[i] * v[i] - a[i])
            if j == free:
                new = u[j] - slope / second[j] if second[j] > 0.0 else u[j]
                weight = second[j]
            else:
                new = _move(u[j], slope, second[j], ridge, l1)
                weight = second[j] + ridge
            step = new - u[j]
            if step != 0.0:
                u[j] = new
                drop += 0.5 * weight * step * step
                for i in range(n):
                    v[i] += step * x[i]
        if first < 0.0:
            first = drop
        if drop <= share * first:
            if full:
                break
            full = True
        else:
            full = False
    return first


@njit(cache=True, nogil=True)
def descend_sparse(data, rows, starts, columns, h, a, second, u, v, ridge, l1, free, sweeps, share):
    """As :func:`descend_dense` for a CSC triple. O(nonzeros of the columns) a sweep."""
    full, first = True, -1.0
    for _ in range(sweeps):
        drop = 0.0
        for k in range(columns.shape[0]):
            j = columns[k]
            if (not full and u[j] == 0.0 and j != free) or second[j] + ridge <= 0.0:
                continue
            slope = 0.0
            for e in range(starts[j], starts[j + 1]):
                i = rows[e]
                slope += data[e] * (h[i] * v[i] - a[i])
            if j == free:
                new = u[j] - slope / second[j] if second[j] > 0.0 else u[j]
                weight = second[j]
            else:
                new = _move(u[j], slope, second[j], ridge, l1)
                weight = second[j] + ridge
            step = new - u[j]
            if step != 0.0:
                u[j] = new
                drop += 0.5 * weight * step * step
                for e in range(starts[j], starts[j + 1]):
                    v[rows[e]] += step * data[e]
        if first < 0.0:
            first = drop
        if drop <= share * first:
            if full:
                break
            full = True
        else:
            full = False
    return first
