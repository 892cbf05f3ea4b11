"""The perspective relaxation on the rows themselves, for many more columns than rows (docs/theory/bounds.md 2).

Only a working set of columns is solved for, by the Gram kernel; the dual value is taken over *all* columns, so it is a
bound whatever the working set. Columns whose `|g_j|` is large join it until primal and dual meet.

Columns come divided by the root of their penalty: `f(b) = ||y - X b||^2 + ||b||^2`. Shift s adds `-2 s'b`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.dense import put, times
from sparsecv_mio.kernels.k_support import top_sum
from sparsecv_mio.kernels.perspective import relax
from sparsecv_mio.kernels.perspective_newton import NONE


@njit(cache=True, nogil=True)
def extend_gram(Xt, chosen, start, count, gram):
    """Rows and columns start..count-1 of `X_W'X_W`. O((count - start) count n)."""
    n = Xt.shape[1]
    for a in range(start, count):
        u = Xt[chosen[a]]
        for e in range(a + 1):
            v = Xt[chosen[e]]
            s = 0.0
            for i in range(n):
                s += u[i] * v[i]
            gram[a, e] = s
            gram[e, a] = s


@njit(cache=True, nogil=True)
def slope_of(Xt, residual, shift, g):
    """Fill `g = X' residual + shift`. O(q n)."""
    product = np.dot(Xt, residual)
    for j in range(g.shape[0]):
        g[j] = product[j] + shift[j]


@njit(cache=True, nogil=True)
def largest_outside(g, inside, count, take, found):
    """Fill `found` with up to `take` columns outside of the working set with the largest |g|. O(q + take log take)."""
    q = g.shape[0]
    size = np.empty(q)
    for j in range(q):
        size[j] = 0.0 if inside[j] else abs(g[j])
    take = min(take, q - count)
    if take <= 0:
        return 0
    order = np.argsort(-size)
    for a in range(take):
        found[a] = order[a]
    return take


@njit(cache=True, nogil=True)
def relax_rows(Xt, y, shift, k, lipschitz, accuracy, max_steps, chosen, inside, ctrl, gram, b, g):
    """Solve to `primal - dual <= accuracy`, as far as it goes.

    Parameters
    ----------
    Xt : (q, n) array
        Columns of X as rows.
    y, shift : (n,), (q,)
    k : int
        0 < k < q.
    lipschitz : float
        At least the largest eigenvalue of X'X.
    accuracy : float
        Absolute.
    chosen, inside, ctrl, gram : working set
        Columns, membership (q,), `ctrl[0]` their number, Gram matrix (cap, cap); kept between calls.
    b, g : (q,) arrays
        Start; on return the point of the best dual value and its `g = X'(y - X b) + s`.

    Returns
    -------
    dual, primal : float

    Notes
    -----
    A round costs a relaxation on the working set and O(n q) for g.
    """
    q, n = Xt.shape
    cap = gram.shape[0]
    yy = 0.0
    for i in range(n):
        yy += y[i] * y[i]
    found = np.empty(q, dtype=np.int64)
    c = np.empty(cap)
    point = np.empty(cap)
    best_point = np.empty(cap)
    slope = np.empty(cap)
    best_slope = np.empty(cap)
    residual = np.empty(n)
    trial = np.empty(q)
    best_b = np.empty(q)
    put(b, best_b)
    for j in range(q):
        if best_b[j] != 0.0 and not inside[j]:
            if ctrl[0] < cap:
                chosen[ctrl[0]] = j
                inside[j] = True
                extend_gram(Xt, chosen, ctrl[0], ctrl[0] + 1, gram)
                ctrl[0] += 1
            else:
                best_b[j] = 0.0
    dual = -np.inf
    primal = np.inf
    far = 1e6 * max(yy, 1e-300)
    if ctrl[0] < min(2 * k + 20, q):
        slope_of(Xt, y, shift, trial)
        fresh = largest_outside(trial, inside, ctrl[0], min(2 * k + 40, cap - ctrl[0]), found)
        for a in range(fresh):
            chosen[ctrl[0] + a] = found[a]
            inside[found[a]] = True
        extend_gram(Xt, chosen, ctrl[0], ctrl[0] + fresh, gram)
        ctrl[0] += fresh
    for _ in range(60):
        count = ctrl[0]
        for a in range(count):
            j = chosen[a]
            s = shift[j]
            for i in range(n):
                s += Xt[j, i] * y[i]
            c[a] = s
            point[a] = best_b[j]
        free = np.arange(count)
        _, p, _ = relax(
            gram, c[:count], yy, lipschitz, free, NONE, free, count, k, far, 0.3 * accuracy / far, max_steps,
            point[:count], slope[:count], best_point[:count], best_slope[:count],
        )  # fmt: skip
        primal = min(primal, p)
        put(y, residual)
        for a in range(count):
            if best_point[a] != 0.0:
                for i in range(n):
                    residual[i] -= Xt[chosen[a], i] * best_point[a]
        slope_of(Xt, residual, shift, trial)
        quad = 0.0
        for i in range(n):
            quad += (y[i] - residual[i]) ** 2
        d = yy - quad - top_sum(times(trial, trial), k)
        for a in range(count):
            best_b[chosen[a]] = best_point[a]
        if d > dual:
            dual = d
            put(best_b, b)
            put(trial, g)
        if primal - dual <= accuracy or count == q:
            break
        # only columns that would enter the largest change the dual value
        fresh = largest_outside(trial, inside, count, min(10 + k, cap), found)
        if fresh == 0:
            break
        if count + fresh > cap:
            kept = NONE
            for a in range(count):
                j = chosen[a]
                if best_b[j] != 0.0 and kept + fresh < cap:
                    chosen[kept] = j
                    kept += 1
                else:
                    inside[j] = False
                    best_b[j] = 0.0
            extend_gram(Xt, chosen, NONE, kept, gram)
            count = kept
        for a in range(fresh):
            chosen[count + a] = found[a]
            inside[found[a]] = True
        extend_gram(Xt, chosen, count, count + fresh, gram)
        ctrl[0] = count + fresh
    return dual, primal


@njit(cache=True, nogil=True)
def farthest_rows(
    Xt, y, x, k, lipschitz, ubar, zeta, centre, t, rounds, max_steps, prior, norm, rounding, chosen, inside, ctrl, gram
):
    """Upper bound of `x'b*` and its t: the conic spread of :mod:`sparsecv_mio.kernels.fold_rows` on rows.

    t moves by the root of `(ubar - zeta) / (F(b_t) - zeta)`. O(rounds) relaxations.
    """
    q, n = Xt.shape
    b = np.empty(q)
    put(centre, b)
    g = np.empty(q)
    gap = max(ubar - zeta, 1e-14 * ubar)
    most = np.sqrt(np.dot(x, x)) * norm
    bound = np.inf
    best_t = t
    for _ in range(rounds):
        d, p = relax_rows(
            Xt, y, 0.5 * t * x, k, lipschitz, 0.01 * gap, max_steps, chosen, inside, ctrl, gram, b, g
        )  # fmt: skip
        reach = 0.0
        error = most
        size = prior
        for j in range(q):
            if b[j] != 0.0:
                reach += x[j] * b[j]
                error += abs(x[j] * b[j])
                s = 1.0
                for i in range(n):
                    s += Xt[j, i] * Xt[j, i]
                size += np.sqrt(s) * abs(b[j])
        value = (ubar - d + rounding * size * size) / t + rounding * error
        if value < bound:
            bound = value
            best_t = t
        ratio = gap / max(p + t * reach - zeta, 1e-4 * gap)
        if abs(ratio - 1.0) < 0.2:
            break
        t *= np.sqrt(min(ratio, 100.0))
    return bound, best_t
