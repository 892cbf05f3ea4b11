"""Cyclic coordinate descent for a weighted least-squares problem with an elastic-net or L1 penalty.

The problem is the quadratic model of a loss at the coefficients w: row x_i has the slope -a_i and the curvature h_i.

m(u) = sum_i h_i (x_i'(u - w))^2 / 2 - sum_i a_i x_i'(u - w) + sum_j [ridge u_j^2 / 2 + l1 |u_j|]

The products `v = X (u - w)` are updated with every step.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.jit import njit


class DescentModel(NamedTuple):
    """Coefficients of the model: the second-order model of a penalised risk, for any loss.

    Attributes
    ----------
    h, a : (n,) arrays
        Curvatures and negative slopes of the rows.
    second : (d,) array
        `sum_i h_i x_ij^2`; a column for which this and ridge are 0 stays unchanged.
    ridge, l1 : float
        Penalty weights.
    free : int
        Column without a penalty, or -1.
    """

    h: np.ndarray
    a: np.ndarray
    second: np.ndarray
    ridge: float
    l1: float
    free: int


class ColumnsOfX(NamedTuple):
    """X by columns, as a CSC triple; if `rows` is empty, the columns are dense, one after the other in `data`."""

    data: np.ndarray
    rows: np.ndarray
    starts: np.ndarray


@njit(cache=True, nogil=True)
def _move(value, slope, second, ridge, l1):
    """Return the minimiser of `second (u - value)^2 / 2 + slope (u - value) + ridge u^2 / 2 + l1 |u|`."""
    pull = second * value - slope
    if pull > l1:
        return (pull - l1) / (second + ridge)
    if pull < -l1:
        return (pull + l1) / (second + ridge)
    return 0.0


@njit(cache=True, nogil=True)
def _step(j, slope, model, u):
    """Move one coefficient to the minimum along it; return the step and the decrease of the model."""
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
def descend(X, model, u, v, sweeps, share):
    """Sweep over columns until a full sweep lowers the model by at most `share` of the decrease of the first one.

    Parameters
    ----------
    X : ColumnsOfX
        Columns.
    model : DescentModel
        Model.
    u, v : (d,), (n,) arrays
        Coefficients and `X (u - w)`, changed in place.
    sweeps : int
        Maximum number of sweeps.
    share : float
        Stopping ratio.

    Returns
    -------
    float
        Decrease of the model in the first sweep, -1 if there was none.

    Notes
    -----
    O(nonzeros) for each sweep; between full sweeps only the nonzero columns are visited.
    """
    data, rows, starts = X
    h, a, second, ridge, _, free = model
    n, dense, full, first = v.shape[0], rows.shape[0] == 0, True, -1.0
    for _ in range(sweeps):
        drop = 0.0
        for j in range(u.shape[0]):
            if (not full and u[j] == 0.0 and j != free) or second[j] + ridge <= 0.0:
                continue
            slope, start = 0.0, starts[j]
            if dense:
                for i in range(n):
                    slope += data[start + i] * (h[i] * v[i] - a[i])
            else:
                for e in range(start, starts[j + 1]):
                    slope += data[e] * (h[rows[e]] * v[rows[e]] - a[rows[e]])
            step, lowered = _step(j, slope, model, u)
            if step != 0.0:
                drop += lowered
                if dense:
                    for i in range(n):
                        v[i] += step * data[start + i]
                else:
                    for e in range(start, starts[j + 1]):
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
