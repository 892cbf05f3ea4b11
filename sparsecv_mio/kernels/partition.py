"""Columns of a relaxation by their z: at 1, fractional, out; and the stationary point while that stays as it is.

On the columns with z = 1 the relaxation is a ridge problem, on the fractional ones, with signs s and kappa what is left
of k, its penalty is `(s'b)^2 / kappa`: a linear system. Where the partition is that of the solution, so is the point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve
from sparsecv_mio.kernels.k_support import prox_scale


class Partition(NamedTuple):
    """Columns by their z: `kind` is 1 (z = 1), 2 (fractional) or 0 (out), `sign` that of their coefficient."""

    kind: np.ndarray
    sign: np.ndarray


@njit(cache=True, nogil=True)
def new_partition(q):
    """Partition in which every column is out."""
    return Partition(np.zeros(q, dtype=np.int8), np.ones(q))


@njit(cache=True, nogil=True)
def partition_matrix(G, members, partition, kappa, work, index):
    """Fill the lower triangle of `work` with the matrix of `newton_point`, `index` with its columns; return its size.

    -1 if `work` is too small. O(s^2).

    Parameters
    ----------
    G : (q, q) array
    members : int array
    partition : Partition
    kappa : float
        k less the number of columns with z = 1.
    work : (cap, cap) array
    index : int array
    """
    kind, sign = partition.kind, partition.sign
    s = 0
    for a in range(members.shape[0]):
        j = members[a]
        if kind[j] != 0:
            index[s] = j
            s += 1
    if s > work.shape[0]:
        return -1
    for a in range(s):
        i = index[a]
        for e in range(a + 1):
            j = index[e]
            m = G[i, j]
            if kind[i] == 2 and kind[j] == 2:
                m += sign[i] * sign[j] / kappa
            work[a, e] = m
        if kind[i] == 1:
            work[a, a] += 1.0
        else:
            work[a, a] += 1e-10
    return s


@njit(cache=True, nogil=True)
def newton_point(form, members, partition, kappa, factor, b):
    """Solve the stationarity system of a partition; False if it is singular.

    On z = 1: `(G b)_j + b_j = c_j`; on the fractional set `(G b)_j + sign_j mu = c_j` with `mu = sum sign_j b_j /
    kappa`. O(s^3 / 3), s the columns not out.

    Parameters
    ----------
    form : Form
    members : int array
    partition : Partition
    kappa : float
        k less the number of columns with z = 1.
    factor : Factor
        Work.
    b : (q,) array
        Filled on the members.
    """
    x, index = factor.x, factor.columns
    s = partition_matrix(form.G, members, partition, kappa, factor.work, index)
    if s < 0 or not cholesky_in_place(factor.work, s):
        return False
    for a in range(members.shape[0]):
        b[members[a]] = 0.0
    for a in range(s):
        x[a] = form.c[index[a]]
    cholesky_solve(factor.work, x, s)
    for a in range(s):
        b[index[a]] = x[a]
    return True


@njit(cache=True, nogil=True)
def propose_partition(b, g, node, step, partition, buffer):
    """Split the columns as the proximal map of this step at `b + step g`; return k less the number with z = 1.

    O(count).

    Parameters
    ----------
    b, g : (q,) arrays
    node : Node
    step : float
    partition : Partition
        Filled on the node.
    buffer : array
        Work for the free columns.
    """
    kind, sign = partition.kind, partition.sign
    for a in range(node.count_free):
        j = node.free[a]
        y = b[j] + step * g[j]
        buffer[a] = abs(y)
        sign[j] = 1.0 if y >= 0.0 else -1.0
    t = prox_scale(buffer, node.count_free, node.k, step)
    kappa = float(node.k)
    for a in range(node.count_free):
        z = buffer[a] * t - step
        if z >= 1.0:
            kind[node.free[a]] = 1
            kappa -= 1.0
        elif z > 0.0:
            kind[node.free[a]] = 2
        else:
            kind[node.free[a]] = 0
    for a in range(node.count_inside):
        kind[node.inside[a]] = 1
    return max(kappa, 1e-9)


@njit(cache=True, nogil=True)
def partition_of(z, b, node, partition):
    """Split the columns as z does; return k less the number with z = 1, and the number of fractional columns.

    Parameters
    ----------
    z, b : (q,) arrays
    node : Node
    partition : Partition
        Filled on the node.
    """
    kind, sign = partition.kind, partition.sign
    kappa = float(node.k)
    fractional = 0
    for a in range(node.count_free):
        j = node.free[a]
        sign[j] = 1.0 if b[j] >= 0.0 else -1.0
        if z[j] >= 1.0:
            kind[j] = 1
            kappa -= 1.0
        elif z[j] > 0.0:
            kind[j] = 2
            fractional += 1
        else:
            kind[j] = 0
    for a in range(node.count_inside):
        kind[node.inside[a]] = 1
    return max(kappa, 1e-9), fractional
