"""Minimum and maximum of a sum of squared held-out errors over a level set (docs/theory/bounds.md, sections 4 and 5).

A level set contains all coefficients b whose objective, or its relaxation, is at most a number ubar. The held-out rows
are X and their targets u.

**Conic bound.** F is the perspective relaxation of :mod:`sparsecv_mio.kernels.node_relaxation` for k columns in normal
form `M = G + I`, with the level set `{ b : F(b) <= ubar }`:

    F(b) = yy - 2 c'b + b'G b + Omega_k(b),        D(b; c, yy, G) = yy - b'G b - (k largest g_j^2),   g = c - G b.

For every t > 0 and every b, which need not be optimal,

    ||u - X b*||^2  >=  (D(b; c + t X'u, yy + t u'u, G + t X'X) - ubar) / t
    ||u - X b*||^2  <=  (ubar - D(b; c - t X'u, yy - t u'u, G - t X'X)) / t        while G - t X'X is semidefinite

for every k-sparse b* with `f(b*) <= ubar`. The best t puts the minimiser on the boundary, `F(b_t) = ubar`.
:mod:`sparsecv_mio.kernels.fold_rows` has the bound for single predictions.

**Ridge ball.** With b0 the ridge fit on all columns, `(b - b0)'M (b - b0) = f(b) - f(b0)` for every b. So every b with
`f(b) <= ubar`, of any size, lies in the ball `d'M d <= ubar - f(b0)`, `d = b - b0` (theory section 2).
"""

import numpy as np

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, copy_vector, gershgorin, solve_lower
from sparsecv_mio.kernels.jit import NO_ITEMS, njit
from sparsecv_mio.kernels.node_relaxation import relax
from sparsecv_mio.kernels.nodes import Form, Node, absolute, allowance, positive_gap

TARGET = 0.15  # accepted relative error of F(b_t) - zeta, whose effect on the bound is of second order
LEAST_EXCESS = 1e-8  # minimum of the divisor, as a share of the gap


@njit(cache=True, nogil=True)
def next_weight(t, ratio, low, high):
    """Return the next weight t at which `F(b_t) - min F` should equal the gap.

    Near the centre it is quadratic in t; between weights that were too small and too large, their geometric mean is
    used.

    Parameters
    ----------
    t : float
        Present weight.
    ratio : float
        Gap divided by `F(b_t) - min F`.
    low, high : float
        Largest weight known to be too small (0: none), and smallest one too large (inf: none).
    """
    new = t * np.sqrt(min(max(ratio, 1e-4), 1e4))
    if low < new < high:
        return new
    if low > 0.0 and high < np.inf:
        return np.sqrt(low * high)
    return 0.3 * high if new >= high else 3.0 * low


@njit(cache=True, nogil=True)
def add_rows(G, c, yy, X, u, t, G_t, c_t):
    """Add t times the rows (X, u) to a problem; return `yy + t u'u`. O(N f^2).

    Parameters
    ----------
    G, c, yy : (f, f), (f,), float
        Problem.
    X, u : (N, f), (N,) arrays
        Rows.
    t : float
        Weight of the rows; a negative weight subtracts them.
    G_t, c_t : (f, f), (f,) arrays
        Arrays to fill.
    """
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
    """Return `||u - X b||^2`. O(N f).

    Parameters
    ----------
    X, u : (N, f), (N,) arrays
        Rows.
    b : (f,) array
        Point.
    """
    s = 0.0
    for i in range(X.shape[0]):
        e = u[i]
        for j in range(b.shape[0]):
            e -= X[i, j] * b[j]
        s += e * e
    return s


@njit(cache=True, nogil=True)
def size_of_rows(X, u, b, norm):
    """Return at least `(||u|| + sum_j ||X_.j|| |b_j|)^2` for this b and every candidate up to this norm. O(N f).

    Parameters
    ----------
    X, u : (N, f), (N,) arrays
        Rows.
    b : (f,) array
        Point.
    norm : float
        Upper bound on the norm of every candidate.
    """
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
def least_squares(form, candidates, X, u, centre, effort, rounding):
    """Return a lower bound of `||u - X b*||^2`; t = 1 comes first and gives the training-loss bound.

    Parameters
    ----------
    form : Form
        Problem.
    candidates : Candidates
        Level set that contains the candidates.
    X, u : (N, f), (N,) arrays
        Rows in the units of the normal form, and their targets.
    centre : (f,) array
        Point near the minimiser of F.
    effort : Effort
        Limits.
    rounding : Rounding
        Rounding allowance: that of D against f divided by t, and that of the rows' own sums, are subtracted.

    Notes
    -----
    O(rounds (N f^2 + a relaxation)).
    """
    k, ubar, zeta = candidates.k, candidates.ubar, candidates.zeta
    f = form.c.shape[0]
    free = np.arange(f)
    node = Node(free, NO_ITEMS, free, f, k)
    G_t = np.empty((f, f))
    c_t = np.empty(f)
    b = np.empty(f)
    copy_vector(centre, b)
    g = np.empty(f)
    best_b = np.empty(f)
    copy_vector(centre, best_b)
    best_g = np.empty(f)
    gap = positive_gap(candidates, form.yy)
    bound = 0.0
    low = 0.0
    high = np.inf
    t = 1.0
    for _ in range(effort.rounds):
        total = add_rows(form.G, form.c, form.yy, X, u, t, G_t, c_t)
        moved = Form(G_t, c_t, total, gershgorin(G_t))
        d, p, _ = relax(moved, node, absolute(total, 0.003 * gap, effort.steps), b, g, best_b, best_g)
        slip = allowance(rounding, best_b)
        bound = max(bound, (d - ubar - slip) / t - rounding.unit * size_of_rows(X, u, best_b, rounding.norm))
        excess = p - t * squares(X, u, best_b) - zeta
        ratio = gap / max(excess, LEAST_EXCESS * gap)
        if abs(ratio - 1.0) < TARGET:
            break
        if excess < gap:
            low = t
        else:
            high = t
        t = next_weight(t, ratio, low, high)
        if t > 1e8 or t < 1e-8:
            break
        copy_vector(best_b, b)
    return bound


@njit(cache=True, nogil=True)
def most_squares(fold, candidates, reach, centre, shares, steps, rounding):
    """Return an upper bound of `||u - X b*||^2`.

    Parameters
    ----------
    fold : Fold
        Problem, not normalised.
    candidates : Candidates
        Level set that contains the candidates.
    reach : float
        Upper bound on the largest eigenvalue of `X M^{-1} X'`.
    centre : (f,) array
        Point near the minimiser of F.
    shares : array
        Values in (0, 1) to try for `s = t reach`; then `(1 - s) w` is valid for `M - t X'X`.
    steps : int
        Maximum number of steps of a relaxation.
    rounding : Rounding
        Rounding allowance in the units of the fold.

    Notes
    -----
    `M - t X'X - (1 - s) diag(w) = (1 - s)(M - diag(w)) + s (M - X'X / reach)`, both semidefinite. O(N f^2 + a
    relaxation) for each share.
    """
    yy, X, u = fold.yy, fold.X, fold.u
    ubar = candidates.ubar
    f = fold.c.shape[0]
    free = np.arange(f)
    node = Node(free, NO_ITEMS, free, f, candidates.k)
    G_t = np.empty((f, f))
    c_t = np.empty(f)
    start = np.empty(f)
    copy_vector(centre, start)
    b = np.empty(f)
    g = np.empty(f)
    best_b = np.empty(f)
    best_g = np.empty(f)
    root = np.empty(f)
    gap = positive_gap(candidates, yy)
    bound = np.inf
    rising = 0
    for a in range(shares.shape[0]):
        s = shares[a]
        t = s / reach
        total = add_rows(fold.M, fold.c, yy, X, u, -t, G_t, c_t)
        lift = yy - min(total, 0.0)  # `relax` requires a positive constant
        for j in range(f):
            root[j] = 1.0 / np.sqrt((1.0 - s) * fold.w[j])
        for i in range(f):
            for j in range(f):
                G_t[i, j] *= root[i] * root[j]
            G_t[i, i] -= 1.0
            c_t[i] *= root[i]
            b[i] = start[i] / root[i]
        now = squares(X, u, start)
        moved = Form(G_t, c_t, total + lift, gershgorin(G_t))
        d, p, _ = relax(moved, node, absolute(total + lift, 0.003 * (gap + t * now), steps), b, g, best_b, best_g)
        for j in range(f):
            best_b[j] *= root[j]
        slip = allowance(rounding, best_b) + rounding.unit * (abs(total) + lift)
        value = (ubar - (d - lift) + slip) / t + rounding.unit * size_of_rows(X, u, best_b, rounding.norm)
        if value < bound:
            bound = value
            rising = 0
            copy_vector(best_b, start)
        else:
            rising += 1
            if rising == 2:
                break
    return bound


EIGENVALUE_MARGIN = 1e-9  # relative, of eigenvalues and of the bounds computed from them


@njit(cache=True, nogil=True)
def leverages(fold):
    """Return `X M^{-1} X'`, `M^{-1}c`, and False if M is not positive definite. O(f^3 / 3 + N f^2 + N^2 f)."""
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
    """Return the smallest and largest `||e - y||^2` over `y = X d, d'M d <= rho`, with `K = X M^{-1} X'`. O(N^3).

    Weak duality: with K = P diag(l) P', a = P'e, every `v > max l` gives the upper and every `v >= 0` the lower bound

        v rho + sum_i a_i^2 v / (v - l_i),        sum_i a_i^2 v / (v + l_i) - v rho,

    and the best v, found by bisection on the slope, makes them exact.

    Parameters
    ----------
    K : (N, N) array
        Matrix K.
    e : (N,) array
        Residuals of the centre.
    rho : float
        Squared radius.
    """
    N = e.shape[0]
    lever, P = np.linalg.eigh(K)
    top = 0.0
    total = 0.0
    a2 = np.zeros(N)
    for i in range(N):
        lever[i] = max(lever[i], 0.0) * (1.0 + EIGENVALUE_MARGIN)
        for h in range(N):
            a2[i] += P[h, i] * e[h]
        a2[i] *= a2[i]
        total += a2[i]
        top = max(top, lever[i])
    for i in range(N):
        lever[i] += 1e-14 * top
    top *= 1.0 + 1e-14
    if rho <= 0.0 or top <= 0.0:
        return total * (1.0 - EIGENVALUE_MARGIN), total * (1.0 + EIGENVALUE_MARGIN)
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
    return max(lower * (1.0 - EIGENVALUE_MARGIN) - 1e-13 * total, 0.0), upper * (1.0 + EIGENVALUE_MARGIN)


@njit(cache=True, nogil=True)
def largest_leverage(K):
    """Return at least the largest eigenvalue of `X M^{-1} X'`, raised by 1e-9 and 1e-14 of the trace. O(N^3)."""
    trace = 0.0
    for i in range(K.shape[0]):
        trace += K[i, i]
    return np.linalg.eigvalsh(K)[-1] * (1.0 + EIGENVALUE_MARGIN) + 1e-14 * trace + 1e-300


@njit(cache=True, nogil=True)
def squares_of_candidates(fold, ridge, K, ubar, rounding):
    """Return the smallest and largest `||u - X b||^2` of the candidates, given the results of `leverages`.

    The radius gains the allowance of a comparison of f at the computed ridge fit with f of a candidate.

    Parameters
    ----------
    fold : Fold
        Problem.
    ridge : (q,) array
        Ridge fit.
    K : (N, N) array
        Matrix `X M^{-1} X'`.
    ubar : float
        Level.
    rounding : Rounding
        Rounding allowance in the units of the fold.
    """
    radius = ubar + allowance(rounding, ridge) - (fold.yy - np.dot(fold.c, ridge))
    residual = np.dot(fold.X, ridge)
    for i in range(residual.shape[0]):
        residual[i] = fold.u[i] - residual[i]
    return squares_over_ball(K, residual, max(radius, 0.0))
