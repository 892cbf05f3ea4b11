"""Ends of the predictions of a fold's held-out rows: the exact conic spread (docs/theory/bounds.md 4).

With F, D and the normal form of :mod:`sparsecv_mio.kernels.conic`: for every t > 0 and every b

    x'b*  <=  (ubar - D(b; c + t x / 2, yy, G)) / t        for every k-sparse b* with f(b*) <= ubar,

and the best b and t are those where b minimises `F - t x'b` and `F(b) = ubar`. F is piecewise quadratic: while the
partition of the columns (z = 1, fractional, z = 0) stays the same, both equations are solved by one factorisation of
its matrix K: `b = K^{-1} c + t K^{-1} x / 2`, `F(b) = yy - c'K^{-1} c + t^2 x'K^{-1} x / 4`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.conic import NEAR, absolute, allowance, gershgorin
from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, put
from sparsecv_mio.kernels.k_support import largest, prox_scale, support_norm
from sparsecv_mio.kernels.perspective import gradient, partition_matrix, relax
from sparsecv_mio.kernels.perspective_newton import NONE

DONE = 0.03  # relative error of F(b) - min F from which nothing is left to gain: second order in the bound
JOINT_STEPS = 12
SHRINK, LEAST_STEP = 0.2, 0.03  # of the proximal step that proposes a partition


@njit(cache=True, nogil=True)
def propose(b, g, k, step, kind, sign, buffer):
    """Split the columns as the proximal map of this step at `b + step g` does; k less the number with z = 1. O(f)."""
    f = b.shape[0]
    for j in range(f):
        y = b[j] + step * g[j]
        buffer[j] = abs(y)
        sign[j] = 1.0 if y >= 0.0 else -1.0
    t = prox_scale(buffer, f, k, step)
    kappa = float(k)
    for j in range(f):
        z = buffer[j] * t - step
        kind[j] = 1 if z >= 1.0 else (2 if z > 0.0 else 0)
        if z >= 1.0:
            kappa -= 1.0
    return max(kappa, 1e-9)


@njit(cache=True, nogil=True)
def centre_factor(G, c, b, free, k, factor, columns):
    """Factor K at the centre b into `factor`, its columns into `columns`; returns their number, 0 if K is singular.

    O(f^2 + s^3 / 3).
    """
    f = c.shape[0]
    g = np.empty(f)
    kind = np.zeros(f, dtype=np.int8)
    sign = np.ones(f)
    gradient(G, c, free, f, b, g)
    kappa = propose(b, g, k, 1.0, kind, sign, np.empty(f))
    size = partition_matrix(G, free, f, kind, sign, kappa, factor, columns)
    return size if size > 0 and cholesky_in_place(factor, size) else 0


@njit(cache=True, nogil=True)
def value_along(G, c, x, t, b, free, k, g, buffer, heap):
    """`F(b) - t x'b - yy`. O(f nnz(b) + f k)."""
    f = c.shape[0]
    s = gradient(G, c, free, f, b, g)
    for j in range(f):
        s -= b[j] * (2.0 * c[j] + t * x[j])
        buffer[j] = abs(b[j])
    return s + support_norm(buffer, f, k, heap)


@njit(cache=True, nogil=True)
def joint_newton(
    G, c, yy, k, x, ubar, gap, t, b, low, inside, enough, most, length, prior, rounding, free, kind, sign, work, index,
    v, d, g, buffer, heap, last_b, last_g, best_b,
):  # fmt: skip
    """Newton steps on b and t together; every iterate gives a bound.

    Parameters
    ----------
    x : (f,) array
        Direction.
    ubar, gap : float
        Level, and that less the minimum of F.
    t, b : start; b is overwritten
    low, inside, enough : float
        The centre's `x'b`; stop as soon as the bound is at most `enough` and a point with F at most ubar reaches
        `inside`.
    most : float
        `||x||` times a bound of `||b*||`.
    length, prior, rounding : as in `allowance`
    free : 0 .. f-1; kind .. last_g : work
    best_b : (f,) array
        On return the point of the bound.

    Returns
    -------
    bound, t : float
        Upper bound of `x'b*` and its multiplier.
    done : bool
        Nothing left to gain.

    Notes
    -----
    At most JOINT_STEPS steps of O(f^2 + s^3 / 3). A step that brings no better bound is taken back, and the next
    partition proposed by a shorter proximal step.
    """
    f = c.shape[0]
    bound = np.inf
    best_t = last_t = t
    least = np.inf
    shrink = 1.0
    for step in range(JOINT_STEPS):
        quad = gradient(G, c, free, f, b, g)
        reach = 0.0
        error = most
        primal = yy + quad
        for j in range(f):
            g[j] += 0.5 * t * x[j]
            reach += x[j] * b[j]
            error += abs(x[j] * b[j])
            primal -= 2.0 * c[j] * b[j]
            buffer[j] = abs(b[j])
        primal += support_norm(buffer, f, k, heap)
        for j in range(f):
            buffer[j] = g[j] * g[j]
        dual = yy - quad - largest(buffer, f, k, heap)
        value = (ubar - dual + allowance(rounding, prior, length, b)) / t + rounding * error
        better = value < bound
        if better:
            bound = value
            best_t = t
            put(b, best_b)
        if bound <= enough:
            # F is convex: this share of the way from the centre it is below ubar
            share = min(1.0, gap / max(primal - ubar + gap, 1e-300))
            if low + share * (reach - low) >= inside:
                return bound, best_t, True
        apart = primal - t * reach - dual
        if apart <= NEAR * gap and abs(primal - ubar) <= DONE * gap:
            return bound, best_t, True
        if better or apart < least:
            least = apart
            last_t = t
            put(b, last_b)
            put(g, last_g)
        else:
            shrink *= SHRINK
            if shrink < LEAST_STEP:
                break
        if step == JOINT_STEPS - 1:
            break
        kappa = propose(last_b, last_g, k, shrink, kind, sign, buffer)
        size = partition_matrix(G, free, f, kind, sign, kappa, work, index)
        if size <= 0 or not cholesky_in_place(work, size):
            break
        for a in range(size):
            v[a] = c[index[a]]
            d[a] = 0.5 * x[index[a]]
        cholesky_solve(work, v, size)
        cholesky_solve(work, d, size)
        room = ubar - yy
        bend = 0.0
        for a in range(size):
            room += c[index[a]] * v[a]
            bend += 0.5 * x[index[a]] * d[a]
        if not (room > 0.0 and bend > 0.0):
            break
        t = min(max(np.sqrt(room / bend), 0.1 * last_t), 10.0 * last_t)
        b[:] = 0.0
        for a in range(size):
            b[index[a]] = v[a] + t * d[a]
    return bound, best_t, False


@njit(cache=True, nogil=True)
def bound_rows(
    G, c, yy, X, shift, u, k, level, dual, b, root, free, prior, norm, rounding, rounds, max_steps, moved, ends
):
    """Fill the ends of `shift_i + x_i'b*` for every row, for every candidate b* with `f(b*) <= level`.

    Parameters
    ----------
    G, c, yy, X : normal form on the free columns
    u : (N,) array
        Targets: `||u - X b||^2` is what the ends are for. An end that cannot tell about it is left loose. NaN: none.
    b, dual : about the minimiser of F, a lower bound of the minimum
    root : (f,) array
        `root_j b_j` is in units that are the same at every size, `root_j` the root of 1 / M_jj there.
    free : (f,) int array
        Places of the columns in `moved`.
    prior, rounding : as in `allowance`
    norm : float
        At least `||b*||` in normal form.
    rounds, max_steps : int
        Relaxations an end may take, and steps of each.
    moved : (N, 2, q) array
        By row and side the move from the centre over t at the size before, in those units; NaN where there is none.
    ends : (N, 2) array
        Filled.

    Notes
    -----
    The first t and b come from the centre's partition, one factorisation for all rows, or from the move of the same row
    and side at the size before where that is nearer. Where Newton steps on both stall, a relaxation at fixed t helps.
    O(s^3 / 3), then for every row and side some steps of `joint_newton` and up to `rounds` relaxations.
    """
    f = c.shape[0]
    N = X.shape[0]
    top = gershgorin(G)
    gap = max(level - dual, 1e-14 * yy)
    far_off, near_by = absolute(yy, NEAR * gap)
    every = np.arange(f)
    direction, shifted, start, trial, x = np.empty(f), np.empty(f), np.empty(f), np.empty(f), np.empty(f)
    g, buffer, v, d, last_b, last_g = np.empty(f), np.empty(f), np.empty(f), np.empty(f), np.empty(f), np.empty(f)
    heap = np.empty(max(k, 1))
    kind = np.zeros(f, dtype=np.int8)
    signs = np.ones(f)
    factor, work = np.empty((f, f)), np.empty((f, f))
    columns, index = np.empty(f, dtype=np.int64), np.empty(f, dtype=np.int64)
    size = centre_factor(G, c, b, every, k, factor, columns)
    for e in range(N):
        bend = 0.0
        square = 0.0
        centre = 0.0
        for j in range(f):
            square += X[e, j] * X[e, j]
            centre += X[e, j] * b[j]
        for a in range(size):
            x[a] = 0.5 * X[e, columns[a]]
        cholesky_solve(factor, x, size)
        for a in range(size):
            bend += 0.5 * x[a] * X[e, columns[a]]
        if not bend > 1e-6 * square:
            bend = 0.25 * square
            x[:] = 0.0
        first = np.sqrt(gap / max(bend, 1e-300))
        most = np.sqrt(square) * norm
        far = 1 if u[e] < centre else 0
        distance = np.inf
        for turn in range(2):
            side = far if turn == 0 else 1 - far
            sign = 1.0 if side == 1 else -1.0
            # the far end gives the upper bound of the error; the near one matters if it is as far, or excludes u
            inside, enough = np.inf, -np.inf
            if turn == 1 and not np.isnan(u[e]):
                inside, enough = sign * u[e], sign * u[e] + distance
            for j in range(f):
                direction[j] = sign * X[e, j]
                start[j] = b[j]
            for a in range(size):
                start[columns[a]] += sign * first * x[a]
            if not np.isnan(moved[e, side, 0]):
                for j in range(f):
                    trial[j] = b[j] + first * moved[e, side, free[j]] / root[j]
                near = value_along(G, c, direction, first, start, every, k, g, buffer, heap)
                if value_along(G, c, direction, first, trial, every, k, g, buffer, heap) < near:
                    put(trial, start)
            bound = np.inf
            t = first
            ratio = 1.0
            for attempt in range(rounds):
                put(start, trial)
                value, new, done = joint_newton(
                    G, c, yy, k, direction, level, gap, t, trial, sign * centre, inside, enough, most, root, prior,
                    rounding, every, kind, signs, work, index, v, d, g, buffer, heap, last_b, last_g, start,
                )  # fmt: skip
                bound = min(bound, value)
                stuck = attempt > 0 and new == t
                t = new
                if done or attempt == rounds - 1:
                    break
                if stuck:
                    # along the ray from the centre F - min F is about a square
                    scale = np.sqrt(min(ratio, 100.0))
                    if abs(scale - 1.0) < 0.5 * DONE:
                        break
                    t *= scale
                    for j in range(f):
                        start[j] = b[j] + scale * (start[j] - b[j])
                for j in range(f):
                    shifted[j] = c[j] + 0.5 * t * direction[j]
                put(start, trial)
                _, primal, _ = relax(
                    G, shifted, yy, top, every, NONE, every, f, k, far_off, near_by, max_steps, trial, g, start, buffer
                )
                for j in range(f):
                    primal += t * direction[j] * start[j]
                ratio = gap / max(primal - level + gap, 1e-4 * gap)
            moved[e, side, :] = 0.0
            for j in range(f):
                moved[e, side, free[j]] = (start[j] - b[j]) / t * root[j]
            distance = bound - sign * u[e]
            ends[e, side] = shift[e] + sign * (bound + rounding * (abs(shift[e]) + 0.1 * prior))
