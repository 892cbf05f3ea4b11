"""The perspective relaxation of one node and its dual bound, for one size or all sizes (theory sections 1 and 4).

Let M be the Gram matrix plus the penalty, scaled so that `M = G + I` with G positive semidefinite. Let yy be the sum of
squares of the target and c the products of the columns with the target. For a node with included columns I and free
columns F, and `k = tau - |I|`, the minimum of the relaxation has the lower bound D(b) for every b:

    min_b  yy - 2 c'b + b'G b + sum_I b_j^2 + Omega_k(b_F)  >=  D(b) = yy - b'G b - sum_I g_j^2 - (k largest g_j^2 in F)

with `g = c - G b` and Omega_k the squared k-support norm (:mod:`sparsecv_mio.kernels.k_support`). For every b, D(b) is
a valid lower bound on the objective of every support of the node, so the relaxation need not be minimised exactly.
Three methods compute the minimum. The first method is semismooth Newton on the partition of the columns (z = 1,
fractional, z = 0) that the proximal map proposes. If semismooth Newton stalls, projected Newton on z follows, which
lowers the value from any initial point. If both methods stall, accelerated proximal gradient follows.

A partition makes the Newton step a linear system. On the columns with z = 1 the relaxation is a ridge problem. On the
columns with fractional z, the penalty of the relaxation is `(s'b)^2 / kappa`. Here s are the signs of b, and kappa is
k minus the number of free columns with z = 1. If the partition equals the partition of the minimiser, one Newton step
reaches the minimiser.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, copy_entries, copy_vector
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.k_support import largest, prox_scale, support_norm
from sparsecv_mio.kernels.perspective_newton import Factor, fill_point, fill_weights, fit, new_factor, newton_step


class KindsOfColumns(NamedTuple):
    """Columns by their z: `kind` is 1 (z = 1), 2 (fractional) or 0 (out); `sign` is that of their coefficient."""

    kind: np.ndarray
    sign: np.ndarray


@njit(cache=True, nogil=True)
def new_partition(q):
    """Return a partition in which every column is out."""
    return KindsOfColumns(np.zeros(q, dtype=np.int8), np.ones(q))


@njit(cache=True, nogil=True)
def partition_matrix(G, members, partition, kappa, work, index):
    """Fill the lower triangle of `work` with the matrix of `newton_point`, `index` with its columns; return its size.

    The result is -1 if `work` is too small. O(s^2).

    Parameters
    ----------
    G : (q, q) array
        Matrix.
    members : int array
        Columns of the node.
    partition : KindsOfColumns
        Partition.
    kappa : float
        k minus the number of columns with z = 1.
    work : (cap, cap) array
        Array to fill.
    index : int array
        Array to fill.
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
    """Solve the stationarity system of a partition; return False if it is singular.

    On z = 1: `(G b)_j + b_j = c_j`; on the fractional set `(G b)_j + sign_j mu = c_j` with `mu = sum sign_j b_j /
    kappa`. O(s^3 / 3), s the columns not out.

    Parameters
    ----------
    form : Form
        Problem.
    members : int array
        Columns of the node.
    partition : KindsOfColumns
        Partition.
    kappa : float
        k minus the number of columns with z = 1.
    factor : Factor
        Work arrays.
    b : (q,) array
        Array to fill on the members.
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
    """Partition the columns like the proximal map of this step at `b + step g`; return k minus the number with z = 1.

    O(count).

    Parameters
    ----------
    b, g : (q,) arrays
        Point and its slope.
    node : Node
        Node.
    step : float
        Step.
    partition : KindsOfColumns
        Partition to fill on the node.
    buffer : array
        Work array for the free columns.
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
def partition_columns(z, b, node, partition):
    """Partition the columns by z; return k minus the number with z = 1, and the number of fractional columns.

    Parameters
    ----------
    z, b : (q,) arrays
        Weights and point.
    node : Node
        Node.
    partition : KindsOfColumns
        Partition to fill on the node.
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


SMOOTH_STEPS = 60  # maximum number of projected Newton steps in one call
NEWTON_COLUMNS = 1000  # columns with z > 0 above which a factorisation costs more than many proximal gradient steps


@njit(cache=True, nogil=True)
def gradient(G, c, members, b, g):
    """Fill `g = c - G b` on the members; return `b'G b`. O(members nnz(b)).

    Parameters
    ----------
    G, c : (q, q), (q,)
        Matrix and vector.
    members : int array
        Columns of the node; b is zero outside of it.
    b, g : (q,) arrays
        Point, and array to fill.
    """
    count = members.shape[0]
    copy_entries(c, g, members)
    for a in range(count):
        j = members[a]
        x = b[j]
        if x != 0.0:
            row = G[j]
            for i in range(count):
                g[members[i]] -= row[members[i]] * x
    s = 0.0
    for a in range(count):
        j = members[a]
        if b[j] != 0.0:
            s += b[j] * (c[j] - g[j])
    return s


@njit(cache=True, nogil=True)
def dual_value(yy, quad, g, node, buffer, heap):
    """Return the D of the module from `quad = b'G b` and g; `heap[:k]` gets the k largest g^2 over F.

    No rounding is subtracted; the caller that compares D with an f subtracts its allowance (docs/theory/bounds.md,
    section 7; `keep` and `slack` of a tree).

    Parameters
    ----------
    yy, quad : float
        y'y and `b'G b`.
    g : (q,) array
        Slope.
    node : Node
        Node.
    buffer, heap : arrays
        Work arrays for its free columns and k of them.
    """
    s = yy - quad
    for a in range(node.count_inside):
        s -= g[node.inside[a]] * g[node.inside[a]]
    for a in range(node.count_free):
        buffer[a] = g[node.free[a]] * g[node.free[a]]
    return s - largest(buffer, node.count_free, node.k, heap)


@njit(cache=True, nogil=True)
def primal_value(form, quad, b, node, buffer, heap):
    """Return the value of the relaxation at b, an upper bound on every dual value.

    Parameters
    ----------
    form : Form
        Problem.
    quad : float
        `b'G b`.
    b : (q,) array
        Point.
    node : Node
        Node.
    buffer, heap : arrays
        Work arrays for its free columns and k of them.
    """
    c = form.c
    s = form.yy + quad
    for a in range(node.count_inside):
        j = node.inside[a]
        s += b[j] * b[j] - 2.0 * c[j] * b[j]
    for a in range(node.count_free):
        j = node.free[a]
        s -= 2.0 * c[j] * b[j]
        buffer[a] = abs(b[j])
    return s + support_norm(buffer, node.count_free, node.k, heap)


@njit(cache=True, nogil=True)
def proximal_step(y, g, step, node, buffer, b):
    """Fill b with one proximal gradient step from y with gradient g. O(count).

    Parameters
    ----------
    y, g : (q,) arrays
        Point and slope.
    step : float
        Step.
    node : Node
        Node.
    buffer : array
        Work array for the free columns.
    b : (q,) array
        Array to fill on the node.
    """
    for a in range(node.count_free):
        buffer[a] = abs(y[node.free[a]] + step * g[node.free[a]])
    t = prox_scale(buffer, node.count_free, node.k, step)
    for a in range(node.count_free):
        j = node.free[a]
        z = min(max(buffer[a] * t - step, 0.0), 1.0) if buffer[a] > 0.0 else 0.0
        b[j] = (y[j] + step * g[j]) * z / (z + step)
    for a in range(node.count_inside):
        j = node.inside[a]
        b[j] = (y[j] + step * g[j]) / (1.0 + step)


# what made the present point, and so which step follows
NEWTON, WEIGHTS, PROBE, DESCENT = range(4)
WEIGHT_STEPS_LEFT, FRACTIONAL, SIZE, BURST, BURST_LEFT = range(5)  # entries of `counts`
SHARE, KAPPA, PHI, THETA = range(4)  # entries of `values`


class Search(NamedTuple):
    """State of `relax`.

    Attributes
    ----------
    members : int array
        Columns of the node.
    buffer : array
        Work array for them.
    factor : Factor
        Work arrays of a linear system.
    partition : KindsOfColumns
        Partition last proposed.
    z : (q,) array
        Weights of projected Newton.
    low_b, low_g : (q,) arrays
        Point with the smallest primal value, and its slope.
    momentum, previous : (q,) arrays
        Points of accelerated proximal gradient.
    counts : (5,) int array
        Number of steps left with weights, number of fractional columns of the last partition, size of the last fit,
        length of the next burst of proximal gradient steps, number of steps left in the present one.
    values : (4,) array
        Share of Newton's step that the present point is; kappa of the last partition; phi of the last fit; theta of
        the acceleration.
    """

    members: np.ndarray
    buffer: np.ndarray
    factor: Factor
    partition: KindsOfColumns
    z: np.ndarray
    low_b: np.ndarray
    low_g: np.ndarray
    momentum: np.ndarray
    previous: np.ndarray
    counts: np.ndarray
    values: np.ndarray


@njit(cache=True, nogil=True)
def _new_search(q, node):
    """Return the state before the first step."""
    count = node.count_inside + node.count_free
    members = np.empty(count, dtype=np.int64)
    copy_vector(node.inside[: node.count_inside], members)
    copy_vector(node.free[: node.count_free], members[node.count_inside :])
    factor = new_factor(count, min(count, 4 * (node.count_inside + node.k) + 60 + min(count // 2, NEWTON_COLUMNS)))
    z = np.zeros(q)
    for a in range(node.count_inside):
        z[node.inside[a]] = 1.0
    return Search(
        members, np.empty(max(count, 1)), factor, new_partition(q), z, np.zeros(q), np.zeros(q), np.zeros(q),
        np.zeros(q), np.array([SMOOTH_STEPS, -1, 0, 10, 0]), np.array([1.0, 0.0, np.inf, 1.0]),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _to_newton_point(form, node, search, share, b):
    """Move to the Newton point of the partition that the best point proposes; to the best point if it is singular."""
    search.values[SHARE] = share
    kappa = propose_partition(search.low_b, search.low_g, node, 1.0, search.partition, search.buffer)
    if not newton_point(form, search.members, search.partition, kappa, search.factor, b):
        search.values[SHARE] = 0.0
        copy_entries(search.low_b, b, search.members)
    return NEWTON


@njit(cache=True, nogil=True)
def _to_point_of_weights(form, search, b):
    """Move to the point of the weights z."""
    search.values[PHI], size = fit(form, search.z, search.members, search.factor)
    search.counts[SIZE] = size
    fill_point(search.factor, size, search.members, b)
    return WEIGHTS


@njit(cache=True, nogil=True)
def _after_descent(form, node, search, b, g):
    """Take an accelerated proximal gradient step, or return to Newton's method at the end of the burst."""
    counts, values, members = search.counts, search.values, search.members
    momentum, previous = search.momentum, search.previous
    if counts[BURST_LEFT] == 0:
        return _to_newton_point(form, node, search, 1.0, b)
    counts[BURST_LEFT] -= 1
    turn = 0.0
    for a in range(members.shape[0]):
        j = members[a]
        turn += (momentum[j] - b[j]) * (b[j] - previous[j])
    theta = 1.0 if counts[BURST_LEFT] == counts[BURST] - 1 or turn > 0.0 else values[THETA]
    values[THETA] = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * theta * theta))
    w = (theta - 1.0) / values[THETA]
    for a in range(members.shape[0]):
        j = members[a]
        momentum[j] = b[j] + w * (b[j] - previous[j])
    copy_entries(b, previous, members)
    if w != 0.0:
        gradient(form.G, form.c, members, momentum, g)
    proximal_step(momentum, g, 1.0 / form.lipschitz, node, search.buffer, b)
    return DESCENT


@njit(cache=True, nogil=True)
def _after_newton(form, node, search, lower, b, g):
    """Repeat Newton's step while the value falls; otherwise shorten it, or turn to weights, or to proximal gradient."""
    counts, values, members = search.counts, search.values, search.members
    if lower:
        return _to_newton_point(form, node, search, 1.0, b)
    if counts[WEIGHT_STEPS_LEFT] == 0 and values[SHARE] > 0.1:
        # the Newton point overshot: search between it and the best point
        values[SHARE] *= 0.3
        for a in range(members.shape[0]):
            j = members[a]
            b[j] = search.low_b[j] + 0.3 * (b[j] - search.low_b[j])
        return NEWTON
    if counts[WEIGHT_STEPS_LEFT] > 0:
        fill_weights(search.low_b, search.low_g, node, search.z, search.buffer)
        _to_point_of_weights(form, search, b)
        if counts[SIZE] > 0:
            return WEIGHTS
        counts[WEIGHT_STEPS_LEFT] = 0
    counts[BURST_LEFT] = counts[BURST]
    counts[BURST] = min(2 * counts[BURST], 200)
    values[THETA] = 1.0
    copy_entries(search.low_b, b, members)
    copy_entries(search.low_g, g, members)
    copy_entries(search.low_b, search.previous, members)
    return _after_descent(form, node, search, b, g)


@njit(cache=True, nogil=True)
def _after_weights(form, node, search, b, g):
    """Take a projected Newton step of the weights; try the stationary point of a partition that comes twice."""
    counts, values = search.counts, search.values
    counts[WEIGHT_STEPS_LEFT] -= 1
    at = (values[PHI], counts[SIZE])
    values[PHI], size = newton_step(form, node, search.members, search.factor, at, search.z, g, b)
    counts[SIZE] = size
    if size == 0 or counts[WEIGHT_STEPS_LEFT] == 0:
        return _to_newton_point(form, node, search, 0.0, b)
    kappa, fractional = partition_columns(search.z, b, node, search.partition)
    if fractional != counts[FRACTIONAL] or kappa != values[KAPPA]:
        counts[FRACTIONAL] = fractional
        values[KAPPA] = kappa
        return WEIGHTS
    # the partition is the same twice: its stationary point is exact if the partition is right
    counts[FRACTIONAL] = -1
    if not newton_point(form, search.members, search.partition, kappa, search.factor, b):
        copy_entries(search.low_b, b, search.members)
    return PROBE


@njit(cache=True, nogil=True)
def relax(form, node, stop, b, g, best_b, best_g):
    """Maximise the dual of a node until it reaches the cutoff `bar` or cannot reach it.

    Parameters
    ----------
    form : Form
        Problem.
    node : Node
        Node of the supports of tau columns; k = tau - |I|.
    stop : Accuracy
        Stopping rule.
    b : (q,) array
        Point to start from, zero outside the node; overwritten.
    g, best_b, best_g : (q,) arrays
        Work array, and arrays to fill with the b and g of the best dual value.

    Returns
    -------
    dual : float
        Certified lower bound for every support of the node.
    primal : float
        Smallest value of the relaxation seen.
    steps : int
        Number of steps.

    Notes
    -----
    A step costs O(|A| nnz(b)) plus, for Newton, O(s^3 / 3) with s about tau plus the fractional columns.
    """
    yy = form.yy
    heap = np.empty(max(node.k, 1))
    search = _new_search(form.c.shape[0], node)
    members, buffer = search.members, search.buffer
    dual, primal = -np.inf, np.inf
    made_by, steps = NEWTON, 0
    while True:
        quad = gradient(form.G, form.c, members, b, g)
        d = dual_value(yy, quad, g, node, buffer, heap)
        v = primal_value(form, quad, b, node, buffer, heap)
        # above 2 yy (0 has the value yy) b has a large part in the null space of G: D may be good, but b is a bad start
        if d > dual and (v <= 2.0 * yy or dual == -np.inf):
            dual = d
            copy_entries(b, best_b, members)
            copy_entries(g, best_g, members)
        lower = v < primal - 1e-3 * max(primal - dual, 0.0) or primal == np.inf
        if v < primal:
            primal = v
            copy_entries(b, search.low_b, members)
            copy_entries(g, search.low_g, members)
        if (
            dual >= stop.bar
            or steps >= stop.steps
            or primal - dual <= stop.near * max(stop.bar - dual, 0.0) + 1e-13 * yy
        ):
            return dual, primal, steps
        steps += 1
        if made_by == NEWTON:
            made_by = _after_newton(form, node, search, lower, b, g)
        elif made_by == WEIGHTS:
            made_by = _after_weights(form, node, search, b, g)
        elif made_by == PROBE:  # the partition of z was not the right one yet: return to z, whose factor is overwritten
            made_by = _to_point_of_weights(form, search, b)
        else:
            made_by = _after_descent(form, node, search, b, g)
