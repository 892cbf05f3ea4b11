"""How far a sum of squares can move over `{ b : F(b) <= ubar }` (docs/theory/bounds.md 4 and 5).

F is the perspective relaxation of :mod:`sparsecv_mio.kernels.perspective` in normal form (`M = G + I`, k of f columns):

    F(b) = yy - 2 c'b + b'G b + Omega_k(b),        D(b; c, yy, G) = yy - b'G b - (k largest g_j^2),   g = c - G b.

For every t > 0 and every b, with no exactness anywhere,

    ||u - X b*||^2  >=  (D(b; c + t X'u, yy + t u'u, G + t X'X) - ubar) / t
    ||u - X b*||^2  <=  (ubar - D(b; c - t X'u, yy - t u'u, G - t X'X)) / t        while G - t X'X is semidefinite

for every k-sparse b* with `f(b*) <= ubar`. The best t puts the minimiser on the boundary, `F(b_t) = ubar`. Linear
forms: :mod:`sparsecv_mio.kernels.fold_rows`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.dense import put
from sparsecv_mio.kernels.perspective import relax
from sparsecv_mio.kernels.perspective_newton import NONE

NEAR = 0.01  # accuracy of a relaxation, of the gap
TARGET = 0.15  # accepted relative error of F(b_t) - zeta: second order in the bound
FAR = 1e6


@njit(cache=True, nogil=True)
def absolute(yy, accuracy):
    """Bar and relative accuracy that make `relax` solve to an absolute accuracy."""
    far = FAR * max(yy, 1e-300)
    return far, accuracy / far


@njit(cache=True, nogil=True)
def gershgorin(G):
    """Bound the largest eigenvalue from above: by the smaller of the largest row sum and the trace. O(f^2)."""
    f = G.shape[0]
    top = 0.0
    trace = 0.0
    for i in range(f):
        s = 0.0
        for j in range(f):
            s += abs(G[i, j])
        top = max(top, s)
        trace += G[i, i]
    return max(min(top, trace), 1e-12)


@njit(cache=True, nogil=True)
def allowance(rounding, prior, length, b):
    """Return the rounding allowance of a comparison of D at b with f of any candidate (docs/theory/bounds.md 7). O(f).

    `rounding (prior + sum_j length_j |b_j|)^2`: `length_j = sqrt(M_jj)` in b's units, `prior` at least `||y|| + sum_S
    length_j |b*_j|` for every candidate b*.
    """
    s = prior
    for j in range(b.shape[0]):
        s += length[j] * abs(b[j])
    return rounding * s * s


@njit(cache=True, nogil=True)
def augmented(G, c, yy, X, u, t, G_t, c_t):
    """Add t times the rows (X, u) to a problem; returns `yy + t u'u`. O(N f^2)."""
    f = c.shape[0]
    for j in range(f):
        c_t[j] = c[j]
        for e in range(f):
            G_t[j, e] = G[j, e]
    total = yy
    for i in range(X.shape[0]):
        total += t * u[i] * u[i]
        for j in range(f):
            a = t * X[i, j]
            if a != 0.0:
                c_t[j] += a * u[i]
                for e in range(f):
                    G_t[j, e] += a * X[i, e]
    return total


@njit(cache=True, nogil=True)
def squares(X, u, b):
    """`||u - X b||^2`. O(N f)."""
    s = 0.0
    for i in range(X.shape[0]):
        e = u[i]
        for j in range(b.shape[0]):
            e -= X[i, j] * b[j]
        s += e * e
    return s


@njit(cache=True, nogil=True)
def size_of_rows(X, u, b, norm):
    """At least `(||u|| + sum_j ||X_.j|| |b_j|)^2` for this b and for every candidate up to this norm. O(N f)."""
    total = 0.0
    s = 0.0
    for i in range(X.shape[0]):
        s += u[i] * u[i]
    s = np.sqrt(s)
    for j in range(X.shape[1]):
        a = 0.0
        for i in range(X.shape[0]):
            a += X[i, j] * X[i, j]
        total += a
        s += np.sqrt(a) * abs(b[j])
    s += np.sqrt(total) * norm
    return s * s


@njit(cache=True, nogil=True)
def least_squares(G, c, yy, k, X, u, ubar, zeta, centre, rounds, max_steps, length, prior, norm, rounding):
    """Lower bound of `||u - X b*||^2`; t = 1 comes first and is the training-loss bound.

    Parameters
    ----------
    G, c, yy, k : normal form
    X, u : (N, f), (N,) arrays
        Rows in the units of the normal form, and their targets.
    ubar, zeta : float
        Level and (about) the minimum of F.
    centre : (f,) array
        A point near the minimiser of F.
    rounds, max_steps : int
    length, prior, rounding : as in `allowance`
    norm : float
        At least `||b*||` in these units.

    Notes
    -----
    O(rounds (N f^2 + a relaxation)).
    """
    f = c.shape[0]
    free = np.arange(f)
    G_t = np.empty((f, f))
    c_t = np.empty(f)
    b = np.empty(f)
    put(centre, b)
    g = np.empty(f)
    best_b = np.empty(f)
    put(centre, best_b)
    best_g = np.empty(f)
    gap = max(ubar - zeta, 1e-14 * yy)
    bound = 0.0
    low = 0.0
    high = np.inf
    t = 1.0
    for _ in range(rounds):
        total = augmented(G, c, yy, X, u, t, G_t, c_t)
        far, near = absolute(total, 0.003 * gap)
        d, p, _ = relax(
            G_t, c_t, total, gershgorin(G_t), free, NONE, free, f, k, far, near, max_steps, b, g, best_b, best_g
        )
        slip = allowance(rounding, prior, length, best_b)
        bound = max(bound, (d - ubar - slip) / t - rounding * size_of_rows(X, u, best_b, norm))
        excess = p - t * squares(X, u, best_b) - zeta
        ratio = gap / max(excess, 1e-8 * gap)
        if abs(ratio - 1.0) < TARGET:
            break
        if excess < gap:
            low = t
        else:
            high = t
        new = t * np.sqrt(min(max(ratio, 1e-4), 1e4))
        if new >= high:
            new = np.sqrt(low * high) if low > 0.0 else 0.3 * high
        elif new <= low:
            new = np.sqrt(low * high) if high < np.inf else 3.0 * low
        t = new
        if t > 1e8 or t < 1e-8:
            break
        put(best_b, b)
    return bound


@njit(cache=True, nogil=True)
def most_squares(M, w, c, yy, k, X, u, ubar, zeta, reach, centre, shares, max_steps, length, prior, norm, rounding):
    """Upper bound of `||u - X b*||^2`.

    Parameters
    ----------
    M, c, yy : the problem, not normalised; X, u : rows and residual targets in the same units
    w : (f,) array
        A valid diagonal: `M - diag(w)` semidefinite.
    reach : float
        At least the largest eigenvalue of `X M^{-1} X'`.
    centre : (f,) array
    shares : array
        Values in (0, 1) to try for `s = t reach`; then `(1 - s) w` is valid for `M - t X'X`.
    length : (f,) array
        For b in the units of M.
    ubar, zeta, max_steps, prior, norm, rounding : as in `least_squares`

    Notes
    -----
    `M - t X'X - (1 - s) diag(w) = (1 - s)(M - diag(w)) + s (M - X'X / reach)`, both semidefinite. O(N f^2 + a
    relaxation) a share.
    """
    f = c.shape[0]
    free = np.arange(f)
    G_t = np.empty((f, f))
    c_t = np.empty(f)
    start = np.empty(f)
    put(centre, start)
    b = np.empty(f)
    g = np.empty(f)
    best_b = np.empty(f)
    best_g = np.empty(f)
    root = np.empty(f)
    gap = max(ubar - zeta, 1e-14 * yy)
    bound = np.inf
    rising = 0
    for a in range(shares.shape[0]):
        s = shares[a]
        t = s / reach
        total = augmented(M, c, yy, X, u, -t, G_t, c_t)
        lift = yy - min(total, 0.0)  # relax wants a positive constant
        for j in range(f):
            root[j] = 1.0 / np.sqrt((1.0 - s) * w[j])
        for i in range(f):
            for j in range(f):
                G_t[i, j] *= root[i] * root[j]
            G_t[i, i] -= 1.0
            c_t[i] *= root[i]
            b[i] = start[i] / root[i]
        now = squares(X, u, start)
        far, near = absolute(total + lift, 0.003 * (gap + t * now))
        d, p, _ = relax(
            G_t, c_t, total + lift, gershgorin(G_t), free, NONE, free, f, k, far, near, max_steps, b, g, best_b, best_g
        )
        for j in range(f):
            best_b[j] *= root[j]
        slip = allowance(rounding, prior, length, best_b) + rounding * (abs(total) + lift)
        value = (ubar - (d - lift) + slip) / t + rounding * size_of_rows(X, u, best_b, norm)
        if value < bound:
            bound = value
            rising = 0
            put(best_b, start)
        else:
            rising += 1
            if rising == 2:
                break
    return bound


@njit(cache=True, nogil=True)
def squares_over_ball(K, e, rho):
    """Least and largest `||e - y||^2` over `y = X d, d'M d <= rho`, with `K = X M^{-1} X'`. O(N^3).

    Weak duality: with K = P diag(l) P', a = P'e, every `v > max l` gives the upper and every `v >= 0` the lower bound

        v rho + sum_i a_i^2 v / (v - l_i),        sum_i a_i^2 v / (v + l_i) - v rho,

    and the best v, found by bisection on the slope, make them exact.
    """
    N = e.shape[0]
    lever, P = np.linalg.eigh(K)
    top = 0.0
    total = 0.0
    a2 = np.zeros(N)
    for i in range(N):
        lever[i] = max(lever[i], 0.0) * (1.0 + 1e-9)
        for h in range(N):
            a2[i] += P[h, i] * e[h]
        a2[i] *= a2[i]
        total += a2[i]
        top = max(top, lever[i])
    for i in range(N):
        lever[i] += 1e-14 * top
    top *= 1.0 + 1e-14
    if rho <= 0.0 or top <= 0.0:
        return total * (1.0 - 1e-9), total * (1.0 + 1e-9)
    reach = np.sqrt(total * top / rho)
    lo = top * (1.0 + 1e-10)
    hi = lo + reach
    for _ in range(60):
        v = 0.5 * (lo + hi)
        s = rho
        for i in range(N):
            s -= a2[i] * lever[i] / (v - lever[i]) ** 2
        if s > 0.0:
            hi = v
        else:
            lo = v
    upper = hi * rho
    for i in range(N):
        upper += a2[i] * hi / (hi - lever[i])
    lo = 0.0
    hi = reach
    for _ in range(60):
        v = 0.5 * (lo + hi)
        s = -rho
        for i in range(N):
            s += a2[i] * lever[i] / (v + lever[i]) ** 2
        if s > 0.0:
            lo = v
        else:
            hi = v
    lower = -hi * rho
    for i in range(N):
        lower += a2[i] * hi / (hi + lever[i])
    return max(lower * (1.0 - 1e-9) - 1e-13 * total, 0.0), upper * (1.0 + 1e-9)
