"""The ball around the ridge solution, which holds every candidate (theory section 2, docs/theory/bounds.md 5).

With b0 the ridge fit on all columns, `(b - b0)'M (b - b0) = f(b) - f(b0)` for every b, so every candidate lies in the
ball `d'M d <= ubar - f(b0)`, `d = b - b0`. Valid for every size at once.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from sparsecv_mio.kernels.conic import allowance
from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, solve_lower

OUTWARD = 1e-9  # relative, of eigenvalues and of the bounds computed from them


@njit(cache=True, nogil=True)
def leverages(fold):
    """`X M^{-1} X'`, `M^{-1}c` and False if M is not positive definite. O(f^3 / 3 + N f^2 + N^2 f)."""
    M, X = fold.M, fold.X
    f = M.shape[0]
    N = X.shape[0]
    L = M.copy()
    Z = X.copy()
    K = np.zeros((N, N))
    beta = fold.c.copy()
    if not cholesky_in_place(L, f):
        return K, beta, False
    cholesky_solve(L, beta, f)
    for e in range(N):
        solve_lower(L, Z[e], f)
    for e in range(N):
        for a in range(e + 1):
            s = 0.0
            for i in range(f):
                s += Z[e, i] * Z[a, i]
            K[e, a] = s
            K[a, e] = s
    return K, beta, True


@njit(cache=True, nogil=True)
def squares_over_ball(K, e, rho):
    """Least and largest `||e - y||^2` over `y = X d, d'M d <= rho`, with `K = X M^{-1} X'`. O(N^3).

    Weak duality: with K = P diag(l) P', a = P'e, every `v > max l` gives the upper and every `v >= 0` the lower bound

        v rho + sum_i a_i^2 v / (v - l_i),        sum_i a_i^2 v / (v + l_i) - v rho,

    and the best v, found by bisection on the slope, make them exact.

    Parameters
    ----------
    K : (N, N) array
    e : (N,) array
        Residuals of the centre.
    rho : float
        Square of the radius.
    """
    N = e.shape[0]
    lever, P = np.linalg.eigh(K)
    top = 0.0
    total = 0.0
    a2 = np.zeros(N)
    for i in range(N):
        lever[i] = max(lever[i], 0.0) * (1.0 + OUTWARD)
        for h in range(N):
            a2[i] += P[h, i] * e[h]
        a2[i] *= a2[i]
        total += a2[i]
        top = max(top, lever[i])
    for i in range(N):
        lever[i] += 1e-14 * top
    top *= 1.0 + 1e-14
    if rho <= 0.0 or top <= 0.0:
        return total * (1.0 - OUTWARD), total * (1.0 + OUTWARD)
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
    return max(lower * (1.0 - OUTWARD) - 1e-13 * total, 0.0), upper * (1.0 + OUTWARD)


@njit(cache=True, nogil=True)
def largest_leverage(K):
    """At least the largest eigenvalue of `X M^{-1} X'`, rounded up by 1e-9 and 1e-14 of the trace. O(N^3)."""
    trace = 0.0
    for i in range(K.shape[0]):
        trace += K[i, i]
    return np.linalg.eigvalsh(K)[-1] * (1.0 + OUTWARD) + 1e-14 * trace + 1e-300


@njit(cache=True, nogil=True)
def squares_of_candidates(fold, ridge, K, ubar, rounding):
    """Least and largest `||u - X b||^2` of the candidates, from what `leverages` returned.

    Rounding: the radius gains the allowance of a comparison of f at the computed ridge fit with f of a candidate.

    Parameters
    ----------
    fold : Fold
    ridge : (q,) array
    K : (N, N) array
    ubar : float
    rounding : Rounding
        In the units of the fold.
    """
    radius = ubar + allowance(rounding, ridge) - (fold.yy - np.dot(fold.c, ridge))
    residual = np.dot(fold.X, ridge)
    for i in range(residual.shape[0]):
        residual[i] = fold.u[i] - residual[i]
    return squares_over_ball(K, residual, max(radius, 0.0))
