"""The perspective relaxation of one node, certified by its own dual (theory sections 1 and 4).

Normal form: `M = G + I`, G positive semidefinite. For a node (I, F) and `k = tau - |I|`,

    min_b  yy - 2 c'b + b'G b + sum_I b_j^2 + Omega_k(b_F)  >=  D(b) = yy - b'G b - sum_I g_j^2 - (k largest g_j^2 in F)

with `g = c - G b`: the right side is a valid lower bound on f(S) for every b, so no step below needs to be exact.
Steps: semismooth Newton on the partition (z = 1, fractional, z = 0) that the proximal map proposes, exact once the
partition is right; projected Newton on z, which lowers the value from any start, when that stalls; accelerated proximal
gradient should both stall.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.k_support import largest, prox_scale, support_norm
from sparsecv_mio.kernels.partition import new_partition, newton_point, partition_of, propose_partition
from sparsecv_mio.kernels.perspective_newton import NONE, fit, new_factor, newton_step, point_of, weights_of

SMOOTH_STEPS = 60  # of projected Newton in one call
NEWTON_COLUMNS = 1000  # with z > 0, about; beyond, a factorisation costs more than many steps of proximal gradient


@njit(cache=True, nogil=True)
def gradient(G, c, members, b, g):
    """Fill `g = c - G b` on the members; return `b'G b`. O(members nnz(b)).

    Parameters
    ----------
    G, c : (q, q), (q,)
    members : int array
        Columns of the node; b is zero outside of it.
    b, g : (q,) arrays
    """
    count = members.shape[0]
    for a in range(count):
        g[members[a]] = c[members[a]]
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
    """`D` of the module's head from `quad = b'G b` and g; `heap[:k]` holds the k largest g^2 over F.

    Rounding: none is taken off; whoever compares D with an f takes its allowance (`conic.allowance`, or `keep` and
    `slack` of a tree).

    Parameters
    ----------
    yy, quad : float
        y'y and `b'G b`.
    g : (q,) array
    node : Node
    buffer, heap : arrays
        Work for its free columns and k of them.
    """
    s = yy - quad
    for a in range(node.count_inside):
        s -= g[node.inside[a]] * g[node.inside[a]]
    for a in range(node.count_free):
        buffer[a] = g[node.free[a]] * g[node.free[a]]
    return s - largest(buffer, node.count_free, node.k, heap)


@njit(cache=True, nogil=True)
def primal_value(form, quad, b, node, buffer, heap):
    """Value of the relaxation at b; an upper bound on what any dual step can reach.

    Parameters
    ----------
    form : Form
    quad : float
        `b'G b`.
    b : (q,) array
    node : Node
    buffer, heap : arrays
        Work for its free columns and k of them.
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
    """One proximal gradient step from y with gradient g into b. O(count).

    Parameters
    ----------
    y, g : (q,) arrays
    step : float
    node : Node
    buffer : array
        Work for the free columns.
    b : (q,) array
        Filled on the node.
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


@njit(cache=True, nogil=True)
def relax(form, node, stop, b, g, best_b, best_g):
    """Maximise the dual of a node until it passes `bar` or cannot any more.

    Parameters
    ----------
    form : Form
    node : Node
        Of the supports of tau columns; k = tau - |I|.
    stop : Stop
    b : (q,) array
        Warm start, zero outside the node; overwritten.
    g, best_b, best_g : (q,) arrays
        Work, and on return the b and g of the best dual value.

    Returns
    -------
    dual : float
        Certified lower bound for every support of the node.
    primal : float
        Smallest relaxation value seen.
    steps : int

    Notes
    -----
    A step costs O(|A| nnz(b)) plus, for Newton, O(s^3 / 3) with s about tau plus the fractional columns.
    """
    G, c, yy = form.G, form.c, form.yy
    bar, k = stop.bar, node.k
    q = c.shape[0]
    count = node.count_inside + node.count_free
    members = np.empty(count, dtype=np.int64)
    for a in range(node.count_inside):
        members[a] = node.inside[a]
    for a in range(node.count_free):
        members[node.count_inside + a] = node.free[a]
    buffer = np.empty(max(count, 1))
    heap = np.empty(max(k, 1))
    factor = new_factor(count, min(count, 4 * (node.count_inside + k) + 60 + min(count // 2, NEWTON_COLUMNS)))
    partition = new_partition(q)
    low_b = np.zeros(q)  # point of the smallest primal value
    low_g = np.zeros(q)
    momentum = np.zeros(q)
    previous = np.zeros(q)
    dual = -np.inf
    primal = np.inf
    newton, search, smooth, descent = 0, 1, 2, 3
    mode = newton
    alpha = 1.0
    smooth_left = SMOOTH_STEPS
    probed = False
    last_fractional = -1
    last_kappa = 0.0
    phi = np.inf
    size = NONE
    z = np.empty(0)
    burst = 10
    left = 0
    theta = 1.0
    step = 1.0 / form.lipschitz
    steps = 0
    while True:
        quad = gradient(G, c, members, b, g)
        d = dual_value(yy, quad, g, node, buffer, heap)
        v = primal_value(form, quad, b, node, buffer, heap)
        # beyond 2 yy (0 has value yy) b carries a part that G does not see: its D may be good, but no start is
        if d > dual and (v <= 2.0 * yy or dual == -np.inf):
            dual = d
            for a in range(count):
                best_b[members[a]] = b[members[a]]
                best_g[members[a]] = g[members[a]]
        lower = v < primal - 1e-3 * max(primal - dual, 0.0) or primal == np.inf
        if v < primal:
            primal = v
            for a in range(count):
                low_b[members[a]] = b[members[a]]
                low_g[members[a]] = g[members[a]]
        gap = primal - dual
        if dual >= bar or steps >= stop.steps or gap <= stop.near * max(bar - dual, 0.0) + 1e-13 * yy:
            break
        steps += 1
        if mode == smooth:
            if probed:
                # the partition of z was not the right one yet: back to z, whose factor is gone
                probed = False
                phi, size = fit(form, z, members, factor)
                point_of(factor, size, members, b)
                continue
            smooth_left -= 1
            phi, size = newton_step(form, node, members, factor, (phi, size), z, g, b)
            if size > 0 and smooth_left > 0:
                kappa, fractional = partition_of(z, b, node, partition)
                if fractional == last_fractional and kappa == last_kappa:
                    # twice the same: its own stationary point, exact if the partition is right
                    last_fractional = -1
                    probed = True
                    if not newton_point(form, members, partition, kappa, factor, b):
                        for a in range(count):
                            b[members[a]] = low_b[members[a]]
                else:
                    last_fractional = fractional
                    last_kappa = kappa
                continue
            mode = search
            alpha = 0.0
        elif mode != descent:
            if lower:
                mode = newton
            elif smooth_left == 0 and (mode == newton or alpha > 0.1):
                # the Newton point overshot: look between it and the best point
                alpha = 0.3 if mode == newton else 0.3 * alpha
                mode = search
                for a in range(count):
                    j = members[a]
                    b[j] = low_b[j] + 0.3 * (b[j] - low_b[j])
                continue
            else:
                if smooth_left > 0:
                    if z.shape[0] == 0:
                        z = np.zeros(q)
                        for a in range(node.count_inside):
                            z[node.inside[a]] = 1.0
                    weights_of(low_b, low_g, node, z, buffer)
                    phi, size = fit(form, z, members, factor)
                    if size > 0:
                        point_of(factor, size, members, b)
                        mode = smooth
                        continue
                    smooth_left = 0
                mode = descent
                left = burst
                burst = min(2 * burst, 200)
                theta = 1.0
                for a in range(count):
                    j = members[a]
                    b[j] = low_b[j]
                    g[j] = low_g[j]
                    previous[j] = b[j]
        if mode == descent:
            if left == 0:
                mode = newton
            else:
                left -= 1
                turn = 0.0
                for a in range(count):
                    j = members[a]
                    turn += (momentum[j] - b[j]) * (b[j] - previous[j])
                if left == burst - 1 or turn > 0.0:
                    theta = 1.0
                new_theta = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * theta * theta))
                w = (theta - 1.0) / new_theta
                theta = new_theta
                for a in range(count):
                    j = members[a]
                    momentum[j] = b[j] + w * (b[j] - previous[j])
                    previous[j] = b[j]
                if w != 0.0:
                    gradient(G, c, members, momentum, g)
                proximal_step(momentum, g, step, node, buffer, b)
                continue
        kappa = propose_partition(low_b, low_g, node, 1.0, partition, buffer)
        if not newton_point(form, members, partition, kappa, factor, b):
            mode = search
            alpha = 0.0
            for a in range(count):
                b[members[a]] = low_b[members[a]]
    return dual, primal, steps
