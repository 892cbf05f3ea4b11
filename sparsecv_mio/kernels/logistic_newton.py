"""Logistic regression with ridge on given supports by Newton's method, and how far its least value can lie below.

For rows `z_i = (1, x_i)`, labels y_i = -1 or 1 and weights v_i, on the columns S,

    F(a, b) = sum_i v_i log(1 + exp(-m_i)) + sum_{j in S} r_j b_j^2,    m_i = y_i (a + x_i'b).

The lower end is proved by the ball that verifies itself (docs/theory/logistic.md, section 2): with the Hessian H at the
point, `delta^2 = g'H^{-1}g`, `s^2` the largest `z_i'H^{-1}z_i` and `kappa = 2 (exp(-t) + t - 1) / t^2` at `t = rho s`,
the optimum is within rho where `rho >= 2 delta / kappa`, and the least F at most `delta^2 / (2 kappa)` below.
Every sum carries a bound on its rounding.
"""

import numpy as np

from sparsecv_mio.kernels.dense import cholesky_in_place, solve_lower
from sparsecv_mio.kernels.jit import njit

EPS = 2.220446049250313e-16
STEPS = 200  # of Newton
ENOUGH = 1e-28  # of the value: squared decrement at which a last step is taken
LARGEST_DOUBT = 0.1  # share of the Hessian that rounding may be worth where anything is proved by it
TRIES = 60  # radii tried


@njit(cache=True, nogil=True)
def worst_ratio(t):
    """Lower bound of `2 (exp(-t) + t - 1) / t^2`, t >= 0: what curvature keeps of itself, on average, over a range t.

    Parameters
    ----------
    t : float
    """
    if t < 1e-3:
        return 1.0 - t / 3.0
    return 2.0 * (np.expm1(-t) + t) / (t * t) * (1.0 - 1e-11)


@njit(cache=True, nogil=True)
def _margin(X, y, columns, theta, first, i):
    m = theta[0] if first else 0.0
    for a in range(columns.shape[0]):
        m += X[i, columns[a]] * theta[first + a]
    return y[i] * m


@njit(cache=True, nogil=True)
def _loss(m):
    return np.log1p(np.exp(-m)) if m > 0.0 else -m + np.log1p(np.exp(m))


@njit(cache=True, nogil=True)
def _share(m):
    """1 / (1 + exp(m)), without overflow."""
    if m > 0.0:
        e = np.exp(-m)
        return e / (1.0 + e)
    return 1.0 / (1.0 + np.exp(m))


@njit(cache=True, nogil=True)
def _value(X, y, v, ridge, columns, theta, first):
    f = 0.0
    for i in range(X.shape[0]):
        f += v[i] * _loss(_margin(X, y, columns, theta, first, i))
    for a in range(columns.shape[0]):
        f += ridge[columns[a]] * theta[first + a] ** 2
    return f


@njit(cache=True, nogil=True)
def _derivatives(X, y, v, ridge, columns, theta, first, filled):
    """Gradient and the lower triangle of the Hessian, into the two arrays of `filled`."""
    g, H = filled
    k = columns.shape[0] + first
    z = np.ones(k)
    g[:k] = 0.0
    H[:k, :k] = 0.0
    for i in range(X.shape[0]):
        m = _margin(X, y, columns, theta, first, i)
        s = _share(m)
        h, u = v[i] * s * _share(-m), v[i] * y[i] * s
        for a in range(first, k):
            z[a] = X[i, columns[a - first]]
        for a in range(k):
            g[a] -= u * z[a]
            hz = h * z[a]
            for b in range(a + 1):
                H[a, b] += hz * z[b]
    for a in range(first, k):
        j = columns[a - first]
        g[a] += 2.0 * ridge[j] * theta[a]
        H[a, a] += 2.0 * ridge[j]


@njit(cache=True, nogil=True)
def _solve_upper(L, b, k):
    """Overwrite b by the solution of `L'x = b`."""
    for i in range(k - 1, -1, -1):
        s = b[i]
        for j in range(i + 1, k):
            s -= L[j, i] * b[j]
        b[i] = s / L[i, i]


@njit(cache=True, nogil=True)
def newton(X, y, v, ridge, columns, theta, first):
    """Overwrite theta by the fit on some columns, from where it is; returns its value, as rounded.

    Parameters
    ----------
    X : (n, p) array
    y, v : (n,) arrays
        Labels -1 and 1, and weights >= 0.
    ridge : (p,) array
    columns : (k,) int array
    theta : (first + k,) array
    first : int
        1 with an intercept, which comes first, else 0.
    """
    k = columns.shape[0] + first
    f = _value(X, y, v, ridge, columns, theta, first)
    g, d, H = np.empty(k), np.empty(k), np.empty((k, k))
    for _ in range(STEPS if k else 0):
        _derivatives(X, y, v, ridge, columns, theta, first, (g, H))
        for a in range(k):
            d[a] = -g[a]
        if not cholesky_in_place(H, k):
            break
        solve_lower(H, d, k)
        decrement = 0.0
        for a in range(k):
            decrement += d[a] * d[a]
        _solve_upper(H, d, k)
        step, moved, ahead = 1.0, False, np.empty(k)
        while step > 1e-12:
            for a in range(k):
                ahead[a] = theta[a] + step * d[a]
            value = _value(X, y, v, ridge, columns, ahead, first)
            if value <= f - 1e-4 * step * decrement or (decrement < 1e-10 * f and value <= f * (1.0 + 1e-13)):
                moved = True
                break
            step *= 0.5
        if not moved:
            break
        for a in range(k):
            theta[a] = ahead[a]
        f = value
        if decrement <= ENOUGH * f:
            break
    return f


@njit(cache=True, nogil=True)
def proved(X, y, v, ridge, columns, theta, first):
    """Bound F at theta and the least F on some columns: `(F from above, least F from below, radius)`.

    Parameters
    ----------
    X, y, v, ridge, columns, theta, first
        As in `newton`; theta is any point, and good where it is nearly the optimum.

    Returns
    -------
    upper, lower : float
        `lower` is 0 where nothing is proved, as no F is below it.
    radius : float
        The optimum is within it in the norm of the Hessian; inf where nothing is proved.
    """
    n, k = X.shape[0], columns.shape[0] + first
    g, H, noise, z = np.empty(k), np.empty((k, k)), np.zeros(k), np.ones(k)
    value = off = widest = 0.0
    for i in range(n):
        size = abs(theta[0]) if first else 0.0
        for a in range(first, k):
            z[a] = X[i, columns[a - first]]
            size += abs(z[a] * theta[a])
        m = _margin(X, y, columns, theta, first, i)
        e, s, loss = (k + 3) * EPS * size, _share(m), _loss(m)
        if e > 0.5:
            return np.inf, 0.0, np.inf
        widest = max(widest, e)
        value += v[i] * loss
        off += v[i] * (2.0 * e * s + 8.0 * EPS * loss)
        for a in range(k):
            noise[a] += v[i] * abs(z[a]) * s * (2.0 * e + (n + 12) * EPS)
    for a in range(first, k):
        r = ridge[columns[a - first]]
        value += r * theta[a] ** 2
        noise[a] += 8.0 * EPS * r * abs(theta[a])
    off = 1.01 * off + (n + k + 12) * EPS * value
    if k == 0:
        return value + off, max(value - off, 0.0), 0.0
    _derivatives(X, y, v, ridge, columns, theta, first, (g, H))
    diagonal = np.empty(k)
    for a in range(k):
        diagonal[a] = H[a, a]
    if not cholesky_in_place(H, k):
        return value + off, 0.0, np.inf
    delta, trace, unit = 0.0, 0.0, np.empty(k)
    for a in range(k):
        unit[:] = 0.0
        unit[a] = 1.0
        solve_lower(H, unit, k)
        square = 0.0
        for b in range(k):
            square += unit[b] * unit[b]
        trace += diagonal[a] * square
        delta += noise[a] * np.sqrt(square)
    doubt = k * (2.0 * widest + (n + 2 * k + 24) * EPS) * trace  # of the Hessian, as a share of itself
    if not doubt <= LARGEST_DOUBT:
        return value + off, 0.0, np.inf
    solve_lower(H, g, k)
    square = 0.0
    for a in range(k):
        square += g[a] * g[a]
    delta = (np.sqrt(square) * (1.0 + doubt) + delta) * (1.0 + doubt)
    longest = 0.0
    for i in range(n):
        for a in range(k):
            z[a] = 1.0 if a < first else X[i, columns[a - first]]
        solve_lower(H, z, k)
        square = 0.0
        for a in range(k):
            square += z[a] * z[a]
        longest = max(longest, square)
    longest = np.sqrt(longest) * (1.0 + doubt)
    rho = 2.0 * delta
    for _ in range(TRIES):
        kappa = worst_ratio(rho * longest) * (1.0 - 2.0 * doubt)
        if not kappa > 1e-9:
            break
        if rho * kappa >= 2.0 * delta:
            drop = 0.5 * delta * delta / kappa * (1.0 + 1e-9)
            return value + off, max(value - off - drop, 0.0), rho
        rho = 2.0 * delta / kappa * 1.001
    return value + off, 0.0, np.inf


@njit(cache=True, nogil=True)
def fit_and_prove(X, y, v, ridge, columns, theta, first, origin):
    """`newton` from theta, and again from the origin where that proves nothing, then `proved`.

    Parameters
    ----------
    X, y, v, ridge, columns, theta, first
        As in `newton`.
    origin : float
        The intercept of the fit without columns.
    """
    newton(X, y, v, ridge, columns, theta, first)
    upper, lower, radius = proved(X, y, v, ridge, columns, theta, first)
    if radius < np.inf:
        return upper, lower, radius
    again = np.zeros(theta.shape[0])
    if first:
        again[0] = origin
    newton(X, y, v, ridge, columns, again, first)
    high, low, reach = proved(X, y, v, ridge, columns, again, first)
    if high < upper or reach < radius:
        for a in range(theta.shape[0]):
            theta[a] = again[a]
        return high, low, reach
    return upper, lower, radius


@njit(cache=True, nogil=True)
def refit(X, y, v, ridge, supports, first, origin, ends):
    """Fit supports one by one, each from a point on all columns; writes proved bounds of each least value.

    Parameters
    ----------
    X, y, v, ridge, first, origin
        As in `fit_and_prove`.
    supports : (L, p) bool array, (first + p,) array
        Which they are, and where each fit begins, without the columns that it does not have.
    ends : (L,), (L,) arrays
        Lower and upper bounds, written.
    """
    (masks, point), (lower, upper) = supports, ends
    for row in range(masks.shape[0]):
        columns = np.flatnonzero(masks[row])
        theta = np.empty(columns.shape[0] + first)
        if first:
            theta[0] = point[0]
        for a in range(columns.shape[0]):
            theta[first + a] = point[first + columns[a]]
        upper[row], lower[row], _ = fit_and_prove(X, y, v, ridge, columns, theta, first, origin)
