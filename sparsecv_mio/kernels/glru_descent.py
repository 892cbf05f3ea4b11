"""Cyclic coordinate descent on a weighted least-squares model with an elastic-net or L1 penalty.

m(u) = sum_i h_i (x_i'(u - w))^2 / 2 - sum_i a_i x_i'(u - w) + sum_j [ridge u_j^2 / 2 + l1 |u_j|]

Columns of X come as rows of a C-contiguous (d, n) array, or as a CSC triple. Both keep `v = X (u - w)` up to date.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.jit import njit


class DescentModel(NamedTuple):
    """The numbers of the model that is descended on.

    It holds what the second-order model of a penalised risk needs, whatever the loss.

    Attributes
    ----------
    h, a : (n,) arrays
    second : (d,) array
        `sum_i h_i x_ij^2`; a column where it is 0 while ridge is 0 stays as it is.
    ridge, l1 : float
    free : int
        The column without a penalty, or -1.
    """

    h: np.ndarray
    a: np.ndarray
    second: np.ndarray
    ridge: float
    l1: float
    free: int


class SparseColumns(NamedTuple):
    """X by columns: a CSC triple."""

    data: np.ndarray
    rows: np.ndarray
    starts: np.ndarray


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
def _step(j, slope, model, u):
    """Move one coefficient to the least value along it; return the step and what it lowers the model by."""
    second = model.second[j]
    if j == model.free:
        new = u[j] - slope / second if second > 0.0 else u[j]
        weight = second
    else:
        new = _move(u[j], slope, second, model.ridge, model.l1)
        weight = second + model.ridge
    step = new - u[j]
    u[j] = new
    return step, 0.5 * weight * step * step


@njit(cache=True, nogil=True)
def descend_dense(XT, columns, model, u, v, sweeps, share):
    """Sweep over columns until a full sweep lowers the model by at most `share` of what the first one did.

    Parameters
    ----------
    XT : (d, n) array
        Columns of X as rows.
    columns : int array
        Those that may move.
    model : DescentModel
    u, v : (d,), (n,) arrays
        Changed in place.
    sweeps : int
        Most of them.
    share : float

    Returns
    -------
    float
        What the first sweep lowered the model by, -1 where there was none.

    Notes
    -----
    O(n len(columns)) a sweep; between full sweeps only the nonzero columns are visited.
    """
    h, a, second, ridge, _, free = model
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
            step, lowered = _step(j, slope, model, u)
            if step != 0.0:
                drop += lowered
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
def descend_sparse(X, columns, model, u, v, sweeps, share):
    """Do as :func:`descend_dense` for a CSC triple.

    Parameters
    ----------
    X : SparseColumns
    columns, model, u, v, sweeps, share
        As there.

    Notes
    -----
    O(nonzeros of the columns) a sweep.
    """
    data, rows, starts = X
    h, a, second, ridge, _, free = model
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
            step, lowered = _step(j, slope, model, u)
            if step != 0.0:
                drop += lowered
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
