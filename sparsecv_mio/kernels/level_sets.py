"""Bounds on held-out predictions and on sums of squared held-out errors over a level set.

The bounds are those of docs/theory/bounds.md, sections 4 and 5.

A level set contains all coefficients b whose objective f(b), or its relaxation F(b), is at most a number ubar. The
held-out rows are X and their targets u.

**Conic bound.** F is the perspective relaxation of :mod:`sparsecv_mio.kernels.node_relaxation` for k columns in normal
form `M = G + I`, with the level set `{ b : F(b) <= ubar }`:

    F(b) = yy - 2 c'b + b'G b + Omega_k(b),        g = c - G b,
    D(b; c, yy, G) = yy - b'G b - (sum of the k largest g_j^2).

Let b* be any k-sparse vector with `f(b*) <= ubar`. For every t > 0 and every b, which need not be optimal,

    ||u - X b*||^2  >=  (D(b; c + t X'u, yy + t u'u, G + t X'X) - ubar) / t
    ||u - X b*||^2  <=  (ubar - D(b; c - t X'u, yy - t u'u, G - t X'X)) / t        while G - t X'X is semidefinite

For the lower bound, let b_t minimise `F(b) + t ||u - X b||^2`; for the upper bound, `F(b) - t ||u - X b||^2`. At the
best t, b_t lies on the boundary of the level set: `F(b_t) = ubar`.

**Predictions.** Let x be a held-out row. For every t > 0 and every b,

    x'b*  <=  (ubar - D(b; c + t x / 2, yy, G)) / t.

At the best b and t, b minimises `F - t x'b` and `F(b) = ubar`. F is piecewise quadratic. In each piece, some columns
have z = 1, some z = 0 and some a fractional z. One factorisation of the matrix K of the piece solves both conditions,
because `b = K^{-1} c + t K^{-1} x / 2` and `F(b) = yy - c'K^{-1} c + t^2 x'K^{-1} x / 4`.

**Ridge ball.** With b0 the ridge fit on all columns, `(b - b0)'M (b - b0) = f(b) - f(b0)` for every b. Every b with
`f(b) <= ubar`, of any size, therefore lies in the ball `d'M d <= ubar - f(b0)`, `d = b - b0` (theory section 2).
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import cholesky_in_place, cholesky_solve, copy_vector, gershgorin, solve_lower
from sparsecv_mio.kernels.jit import NO_ITEMS, njit
from sparsecv_mio.kernels.k_support import largest, support_norm
from sparsecv_mio.kernels.node_relaxation import (
    KindsOfColumns,
    gradient,
    new_partition,
    partition_matrix,
    propose_partition,
    relax,
)
from sparsecv_mio.kernels.nodes import NODE_GAP_RTOL, Form, Node, absolute, allowance, positive_gap

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


JOINT_RTOL = 0.03  # accepted relative error of F(b) - min F, whose effect on the bound is of second order
JOINT_STEPS = 12  # maximum number of joint Newton steps
SHRINK, LEAST_STEP = 0.2, 0.03  # factor on, and minimum of, the proximal step that proposes a partition


class PredictedRows(NamedTuple):
    """Predictions to be bounded.

    Attributes
    ----------
    X, shift : (N, f), (N,) arrays
        Predictions `shift_i + x_i'b`, rows in the units of the normal form.
    u : (N,) array
        Targets: the bounds serve `||u - X b||^2`, so a bound that does not matter for it is left loose. NaN: none.
    free : (f,) int array
        Positions of the columns in `moved`.
    moved : (N, 2, q) array
        Moves from the centre divided by t at the previous size, by row and side, in units that are the same at every
        size; NaN if there is none. Filled for the next size.
    """

    X: np.ndarray
    shift: np.ndarray
    u: np.ndarray
    free: np.ndarray
    moved: np.ndarray


class Goal(NamedTuple):
    """Data of one bound of a prediction.

    Attributes
    ----------
    x : (f,) array
        Direction.
    low : float
        Value `x'b` at the centre.
    inside, enough : float
        Stopping rule: the bound is at most `enough` and a point with F at most ubar reaches `inside`.
    most : float
        `||x||` times a bound on `||b*||`.
    """

    x: np.ndarray
    low: float
    inside: float
    enough: float
    most: float


class RowWork(NamedTuple):
    """Work arrays for f columns and k of them."""

    partition: KindsOfColumns
    work: np.ndarray
    columns: np.ndarray
    v: np.ndarray
    d: np.ndarray
    g: np.ndarray
    buffer: np.ndarray
    heap: np.ndarray
    last_b: np.ndarray
    last_g: np.ndarray


@njit(cache=True, nogil=True)
def new_scratch(f, k):
    """Return work arrays for f columns and k of them."""
    return RowWork(
        new_partition(f), np.empty((f, f)), np.empty(f, dtype=np.int64), np.empty(f), np.empty(f), np.empty(f),
        np.empty(f), np.empty(max(k, 1)), np.empty(f), np.empty(f),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def centre_factor(form, node, b, factor, columns):
    """Factor K at the centre b, fill `factor` and `columns`; return the number of columns, 0 if K is singular.

    O(f^2 + s^3 / 3).

    Parameters
    ----------
    form, node : Form, Node
        Problem, and the node of all columns.
    b : (f,) array
        Centre.
    factor : (f, f) array
        Array to fill with the factor.
    columns : (f,) int array
        Array to fill with the columns of K.
    """
    f = form.c.shape[0]
    g = np.empty(f)
    partition = new_partition(f)
    gradient(form.G, form.c, node.free, b, g)
    kappa = propose_partition(b, g, node, 1.0, partition, np.empty(f))
    size = partition_matrix(form.G, node.free, partition, kappa, factor, columns)
    return size if size > 0 and cholesky_in_place(factor, size) else 0


@njit(cache=True, nogil=True)
def value_along(form, node, x, t, b, scratch):
    """Return `F(b) - t x'b - yy`. O(f nnz(b) + f k).

    Parameters
    ----------
    form, node : Form, Node
        Problem, and the node of all columns.
    x, t : (f,) array, float
        Linear form and its multiplier.
    b : (f,) array
        Point.
    scratch : RowWork
        Work arrays.
    """
    c, buffer = form.c, scratch.buffer
    f = c.shape[0]
    s = gradient(form.G, c, node.free, b, scratch.g)
    for j in range(f):
        s -= b[j] * (2.0 * c[j] + t * x[j])
        buffer[j] = abs(b[j])
    return s + support_norm(buffer, f, node.k, scratch.heap)


@njit(cache=True, nogil=True)
def joint_newton(form, node, candidates, goal, t, rounding, scratch, points):
    """Take Newton steps on b and t together, each iterate of which gives a bound.

    Parameters
    ----------
    form, node : Form, Node
        Problem, and the node with all columns free.
    candidates : Candidates
        Level set that contains the candidates.
    goal : Goal
        Requested bound.
    t : float
        Initial multiplier.
    rounding : Rounding
        Rounding allowance; the bound gains that of D against f divided by t, and that of `x'b`.
    scratch : RowWork
        Work arrays.
    points : pair of (f,) arrays
        Start, overwritten; on return the point of the bound.

    Returns
    -------
    bound, t : float
        Upper bound of `x'b*` and its multiplier.
    done : bool
        True if no further gain is possible.

    Notes
    -----
    At most JOINT_STEPS steps of O(f^2 + s^3 / 3). A step that gives no better bound is undone, and the next partition
    is proposed by a shorter proximal step.
    """
    G, c, yy = form.G, form.c, form.yy
    x, ubar = goal.x, candidates.ubar
    partition, work, index, v, d, g, buffer, heap, last_b, last_g = scratch
    b, best_b = points
    f = c.shape[0]
    gap = positive_gap(candidates, yy)
    bound = np.inf
    best_t = last_t = t
    least = np.inf
    shrink = 1.0
    for step in range(JOINT_STEPS):
        quad = gradient(G, c, node.free, b, g)
        reach = 0.0
        error = goal.most
        primal = yy + quad
        for j in range(f):
            g[j] += 0.5 * t * x[j]
            reach += x[j] * b[j]
            error += abs(x[j] * b[j])
            primal -= 2.0 * c[j] * b[j]
            buffer[j] = abs(b[j])
        primal += support_norm(buffer, f, node.k, heap)
        for j in range(f):
            buffer[j] = g[j] * g[j]
        dual = yy - quad - largest(buffer, f, node.k, heap)
        value = (ubar - dual + allowance(rounding, b)) / t + rounding.unit * error
        better = value < bound
        if better:
            bound = value
            best_t = t
            copy_vector(b, best_b)
        if bound <= goal.enough:
            # F is convex, so at this share of the way from the centre it is below ubar
            share = min(1.0, gap / max(primal - ubar + gap, 1e-300))
            if goal.low + share * (reach - goal.low) >= goal.inside:
                return bound, best_t, True
        apart = primal - t * reach - dual
        if apart <= NODE_GAP_RTOL * gap and abs(primal - ubar) <= JOINT_RTOL * gap:
            return bound, best_t, True
        if better or apart < least:
            least = apart
            last_t = t
            copy_vector(b, last_b)
            copy_vector(g, last_g)
        else:
            shrink *= SHRINK
            if shrink < LEAST_STEP:
                break
        if step == JOINT_STEPS - 1:
            break
        kappa = propose_partition(last_b, last_g, node, shrink, partition, buffer)
        size = partition_matrix(G, node.free, partition, kappa, work, index)
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
def bound_rows(form, candidates, rows, b, effort, rounding, ends):
    """Fill the bounds of `shift_i + x_i'b*` for every row, over all candidates b*.

    Parameters
    ----------
    form : Form
        Problem on the free columns.
    candidates : Candidates
        Level set that contains the candidates.
    rows : PredictedRows
        Predictions.
    b : (f,) array
        Point near the minimiser of F.
    effort : Effort
        Limits of one bound.
    rounding : Rounding
        Rounding allowance.
    ends : (N, 2) array
        Array to fill.

    Notes
    -----
    The first t and b come from the centre's partition, one factorisation for all rows, or from the move of the same row
    and side at the previous size if that is nearer. If joint Newton steps stall, a relaxation at fixed t helps.
    O(s^3 / 3), then for every row and side some steps of `joint_newton` and up to `rounds` relaxations.
    """
    G, c, yy = form.G, form.c, form.yy
    X, shift, u, free, moved = rows
    level, root, k = candidates.ubar, rounding.length, candidates.k
    f = c.shape[0]
    N = X.shape[0]
    gap = positive_gap(candidates, yy)
    stop = absolute(yy, NODE_GAP_RTOL * gap, effort.steps)
    every = np.arange(f)
    node = Node(every, NO_ITEMS, every, f, k)
    direction, shifted, start, trial, x = np.empty(f), np.empty(f), np.empty(f), np.empty(f), np.empty(f)
    scratch = new_scratch(f, k)
    factor, columns = np.empty((f, f)), np.empty(f, dtype=np.int64)
    size = centre_factor(form, node, b, factor, columns)
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
        most = np.sqrt(square) * rounding.norm
        far = 1 if u[e] < centre else 0
        distance = np.inf
        for turn in range(2):
            side = far if turn == 0 else 1 - far
            sign = 1.0 if side == 1 else -1.0
            # the bound farther from u bounds the error from above; the other one matters if as far, or if it excludes u
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
                near = value_along(form, node, direction, first, start, scratch)
                if value_along(form, node, direction, first, trial, scratch) < near:
                    copy_vector(trial, start)
            goal = Goal(direction, sign * centre, inside, enough, most)
            bound = np.inf
            t = first
            ratio = 1.0
            for attempt in range(effort.rounds):
                copy_vector(start, trial)
                value, new, done = joint_newton(form, node, candidates, goal, t, rounding, scratch, (trial, start))
                bound = min(bound, value)
                stuck = attempt > 0 and new == t
                t = new
                if done or attempt == effort.rounds - 1:
                    break
                if stuck:
                    # F - min F is approximately quadratic along the ray from the centre
                    scale = np.sqrt(min(ratio, 100.0))
                    if abs(scale - 1.0) < 0.5 * JOINT_RTOL:
                        break
                    t *= scale
                    for j in range(f):
                        start[j] = b[j] + scale * (start[j] - b[j])
                for j in range(f):
                    shifted[j] = c[j] + 0.5 * t * direction[j]
                copy_vector(start, trial)
                along = Form(G, shifted, yy, form.lipschitz)
                _, primal, _ = relax(along, node, stop, trial, scratch.g, start, scratch.buffer)
                for j in range(f):
                    primal += t * direction[j] * start[j]
                ratio = gap / max(primal - level + gap, 1e-4 * gap)
            moved[e, side, :] = 0.0
            for j in range(f):
                moved[e, side, free[j]] = (start[j] - b[j]) / t * root[j]
            distance = bound - sign * u[e]
            ends[e, side] = shift[e] + sign * (bound + rounding.unit * (abs(shift[e]) + 0.1 * rounding.prior))
