"""Fits of a support with held-out rows removed, and certified bounds on their errors, from one pass over the rows.

Let theta be a point near the full-data fit, with Hessian H = L L'. For the signed rows z_i let `t_i = L^{-1} z_i`. Let
v_i be the weight of row i. Let c_i be v_i times the curvature of the loss of row i, and s_i be -v_i times its slope.
Without the rows N the Hessian is L (I - A A') L', where A has the columns `sqrt(c_i) t_i`, and one Newton step moves
theta by L^{-T} d,

    d = -(I - A A')^{-1} u,    u = sum over N of s_i t_i,    (I - A A')^{-1} = I + A (I - A'A)^{-1} A'.

The gradient after the step is a sum of third-order terms. The margin of row j changes by `D_j = t_j'd`. As
`|l'''| <= l''`, the slope of the loss of row j differs from its linear approximation by at most
`c_j D_j^2 / 2 (1 + ...)`. In the norm of the inverse Hessian, the gradient is therefore at most half of
`sqrt(sum c_j D_j^4) <= |d| sqrt(d'B d)`, `B = sum c_j |t_j|^2 t_j t_j'`. Hence a ball about the new point contains the
fit without N, which gives an interval for every margin (docs/theory/glm.md, section 9). With k coefficients, the cost
for one removed row is O(k^2), independently of the number of rows.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import EPS, cholesky_in_place, dot, invert_lower, solve_lower, solve_upper
from sparsecv_mio.kernels.glm_newton import (
    LAST_DECREMENT,
    MAX_RADII,
    Columns,
    bound_minimum,
    bound_norm,
    evaluate_with_rounding,
    factor,
    fill_squared_lengths,
    gradient,
    newton,
)
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.smooth_losses import Response, curvatures, margin_sign, new_state

MOST_GROWN = 8.0  # maximum growth of the inverse Hessian without the rows; beyond, fits move too far for these steps
MOST_MOVE = 1.5  # maximum move of a margin in a step, and in the ball
MOST_DOUBT = 1e-3  # maximum relative rounding of the Hessian
NOISY = 1e-7  # accepted error of a margin if rounding prevents a smaller one
MAX_GRADIENT_STEPS = 8  # maximum number of steps with gradients over all rows
MOVED_ROWS = 128  # rows whose t_i are computed together


class AllRows(NamedTuple):
    """A support at a point near its full-data fit.

    Attributes
    ----------
    Z : Columns
        Columns of the support.
    response : Response
        Weights, targets and loss.
    penalty, theta : (k,) arrays
        Ridge, and the point.
    margins, falls, curved, losses : (n,) arrays
        Values at theta: margins, weighted negative slopes, weighted curvatures, and losses.
    inverse : (k, k) array
        L^{-1}.
    B : (k, k) array
        Matrix B of the module.
    value, off : float
        F at theta, and its rounding.
    doubt : float
        Relative rounding of H; inf if nothing can be proved.
    delta : float
        Bound on the gradient, rounding included, in the norm of H^{-1}.
    noise : float
        Rounding part of `delta`.
    longest, next_longest, at : float, float, int
        The largest `|t_i|`, and the largest one of all rows except `at`.
    """

    Z: Columns
    response: Response
    penalty: np.ndarray
    theta: np.ndarray
    margins: np.ndarray
    falls: np.ndarray
    curved: np.ndarray
    losses: np.ndarray
    inverse: np.ndarray
    B: np.ndarray
    value: float
    off: float
    doubt: float
    delta: float
    noise: float
    longest: float
    next_longest: float
    at: int


@njit(cache=True, nogil=True, error_model="numpy")
def prepare_row_removal(Z, response, penalty, theta):
    """Return the data of a support that removing rows requires. O(n k^2), without an array of n times k numbers.

    Parameters
    ----------
    Z : Columns
        Columns of the support.
    response : Response
        Weights, targets and loss.
    penalty, theta : (k,) arrays
        Ridge, and a point near the fit.
    """
    k, n = Z.places.shape[0], Z.W.shape[1]
    state, noises = new_state(n), np.empty(k)
    value, off, doubt, g, inverse = factor(Z, response, penalty, theta, state, noises)
    curved, falls = state.work, state.falls
    curvatures(response, state, curved)
    for i in range(n):
        falls[i] *= response.v[i]
    B, longest, next_longest, at = np.zeros((k, k)), 0.0, 0.0, -1
    delta, noise = 0.0, 0.0
    if doubt <= MOST_DOUBT:
        for b in range(k):
            s = dot(inverse[b], g, b + 1)
            delta += s * s
        noise = bound_norm(inverse, noises) * (1.0 + doubt)
        delta = np.sqrt(delta) * (1.0 + doubt) ** 2 + noise
        rows, scaled = np.empty((k, MOVED_ROWS)), np.empty((k, MOVED_ROWS))
        for begin in range(0, n if k else 0, MOVED_ROWS):
            size = min(MOVED_ROWS, n - begin)
            for a in range(k):
                column = Z.W[Z.places[a]]
                for i in range(MOVED_ROWS):
                    rows[a, i] = column[begin + i] if i < size else 0.0
            t = np.dot(inverse, rows)
            for i in range(size):
                s = 0.0
                for a in range(k):
                    s += t[a, i] ** 2
                w = s * curved[begin + i]
                for a in range(k):
                    scaled[a, i] = w * t[a, i]
                s = np.sqrt(s) * (1.0 + 4.0 * doubt)
                if s > longest:
                    longest, next_longest, at = s, longest, begin + i
                else:
                    next_longest = max(next_longest, s)
            for i in range(size, MOVED_ROWS):
                for a in range(k):
                    scaled[a, i] = 0.0
            B += np.dot(scaled, t.T)
    else:
        doubt = np.inf
    return AllRows(
        Z, response, penalty, theta, state.margins, falls, curved, state.losses, inverse, B, value, off, doubt, delta,
        noise, longest, next_longest, at,
    )  # fmt: skip


class Out(NamedTuple):
    """Removed rows, in the coordinates of L.

    Attributes
    ----------
    t : (b, k) array
        Vectors t_i.
    c : (b,) array
        Curvatures times weights.
    few : bool
        True if there are fewer rows than coefficients.
    factor : (b, b) or (k, k) array
        Lower factor of `I - A'A` if few, else of `I - A A'`.
    known : bool
        True if the remaining Hessian is certainly not singular.
    grown : float
        Upper bound on `(I - A A')^{-1}`.
    longest : float
        Upper bound on `|t_j|` of the other rows.
    """

    t: np.ndarray
    c: np.ndarray
    few: bool
    factor: np.ndarray
    known: bool
    grown: float
    longest: float


@njit(cache=True, nogil=True, error_model="numpy")
def _factor_held_out_rows(whole, rows):
    k, b = whole.Z.places.shape[0], rows.shape[0]
    few = b < k
    size = b if few else k
    t, c, G, z = np.empty((b, k)), np.empty(b), np.zeros((size, size)), np.empty(k)
    longest = whole.longest
    for i in range(b):
        row = rows[i]
        if row == whole.at:
            longest = whole.next_longest
        for a in range(k):
            z[a] = margin_sign(whole.response, row) * whole.Z.W[whole.Z.places[a], row]
        for a in range(k):
            t[i, a] = dot(whole.inverse[a], z, a + 1)
        c[i] = whole.curved[row]
    if few:
        for i in range(b):
            for j in range(i + 1):
                G[i, j] = (1.0 if i == j else 0.0) - np.sqrt(c[i] * c[j]) * dot(t[i], t[j], k)
    else:
        for a in range(k):
            G[a, a] = 1.0
        for i in range(b):
            for a in range(k):
                s = c[i] * t[i, a]
                for e in range(a + 1):
                    G[a, e] -= s * t[i, e]
    if not cholesky_in_place(G, size):
        return Out(t, c, few, G, False, np.inf, longest)
    inverse, trace = np.zeros((size, size)), 0.0
    invert_lower(G, inverse, size)
    for a in range(size):
        trace += dot(inverse[a], inverse[a], a + 1)
    slip = 8.0 * (whole.doubt + (b + k + 16) * EPS) * trace
    grown = (max(trace - size, 0.0) + 1.0) * (1.0 + 4.0 * slip) + slip  # the other eigenvalues are at least 1
    return Out(t, c, few, G, slip <= MOST_DOUBT and grown <= MOST_GROWN, grown, longest)


@njit(cache=True, nogil=True, error_model="numpy")
def _solve_system(out, x):
    """Return `(I - A A')^{-1} x`."""
    b, k = out.t.shape
    y = x.copy()
    if not out.few:
        solve_lower(out.factor, y, k)
        solve_upper(out.factor, y, k)
        return y
    p = np.empty(b)
    for i in range(b):
        p[i] = np.sqrt(out.c[i]) * dot(out.t[i], x, k)
    solve_lower(out.factor, p, b)
    solve_upper(out.factor, p, b)
    for i in range(b):
        s = np.sqrt(out.c[i]) * p[i]
        for a in range(k):
            y[a] += s * out.t[i, a]
    return y


@njit(cache=True, nogil=True, error_model="numpy")
def _radius(delta, moved, longest):
    """Return the radius of a ball that contains the fit, and the share of curvature kept within it; inf and 0 if none.

    `rho >= delta exp(moved + rho longest)`: on its boundary F rises outward, because its curvature is at least
    `exp(-(moved + rho longest))` times that at theta.
    """
    rho = delta * np.exp(moved)
    for _ in range(MAX_RADII):
        span = moved + rho * longest
        if not span <= 2.0 * MOST_MOVE:
            break
        need = delta * np.exp(span)
        if rho >= need:
            return rho, np.exp(-span)
        rho = need * 1.001
    return np.inf, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _step(whole, rows, out):
    """Return `(d, |d|, its length in the Hessian without the rows, bound on the rounding of the gradient there)`."""
    k, b = whole.Z.places.shape[0], rows.shape[0]
    u, size = np.zeros(k), 0.0
    for i in range(b):
        s = whole.falls[rows[i]]
        for a in range(k):
            u[a] += s * out.t[i, a]
        size += abs(s) * np.sqrt(dot(out.t[i], out.t[i], k))
    d = _solve_system(out, u)
    inner = dot(d, u, k)
    for a in range(k):
        d[a] = -d[a]
    room = 1.0 + 4.0 * whole.doubt
    slip = 16.0 * (whole.doubt + (k + b + 16) * EPS) * size * out.grown**1.5 * np.sqrt(1.0 * min(b, k))
    slip += 2.0 * whole.noise * out.grown  # from the slopes of the removed rows
    return d, np.sqrt(dot(d, d, k)) * room + slip, np.sqrt(max(inner, 0.0)) * room + slip, slip


@njit(cache=True, nogil=True, error_model="numpy")
def _one_step(whole, rows, margins):
    """Bound the fit without some rows by one step: fill (b, 3) margins of these rows; return a row of `values`."""
    k, b = whole.Z.places.shape[0], rows.shape[0]
    out = _factor_held_out_rows(whole, rows)
    if not out.known:
        return 0.0, np.inf, np.inf
    d, length, inner, slip = _step(whole, rows, out)
    moved = length * out.longest
    if not moved <= MOST_MOVE:
        return 0.0, np.inf, np.inf
    square, own = 0.0, 0.0
    for a in range(k):
        square += d[a] * dot(whole.B[a], d, k)
    for i in range(b):
        own += out.c[i] * dot(out.t[i], out.t[i], k) * dot(out.t[i], d, k) ** 2
    crude = out.longest * length
    square = (
        max(square - own, 0.0) * (1.0 + 8.0 * whole.doubt)
        + 32.0 * (whole.doubt + (k + 40) * EPS) * (whole.longest * length) ** 2
    )
    bent = min(np.sqrt(square), crude)
    second = 1.0 + moved / 3.0 + moved * moved / 12.0 * np.exp(moved)  # an upper bound of 2 (exp(m) - 1 - m) / m^2
    third = 1.0 + moved / 4.0 + moved * moved / 20.0 * np.exp(moved)  # 6 (exp(m) - 1 - m - m^2 / 2) / m^3
    grown = np.sqrt(out.grown)
    delta = 0.5 * second * length * bent + whole.delta * grown + slip
    rho, left = _radius(delta, moved, out.longest * grown)
    if not left > 0.0:
        return 0.0, np.inf, np.inf
    widest, fall, doubt = 0.0, 0.0, 3.0 * whole.off + whole.delta * length + third / 6.0 * length * length * bent
    for i in range(b):
        row = rows[i]
        held = whole.margins[row] + dot(out.t[i], d, k)
        t = _solve_system(out, out.t[i])
        reach = np.sqrt(max(dot(t, out.t[i], k), 0.0)) * (1.0 + 8.0 * whole.doubt)
        half = (rho + slip) * reach * (1.0 + 1e-12) + 2.0 * whole.doubt / max(k * k, 1) + 16.0 * EPS * abs(held)
        margins[i, 0], margins[i, 1], margins[i, 2] = held - half, held + half, held
        widest = max(widest, half)
        fall += whole.response.v[row] * whole.losses[row]
    value = whole.value - fall - 0.5 * inner * inner
    doubt += 4.0 * slip * inner + 16.0 * whole.doubt * inner * inner + 8.0 * (b + 2) * EPS * whole.value
    return max(value - doubt - 0.5 * delta * delta / left, 0.0), value + doubt, widest


@njit(cache=True, nogil=True, error_model="numpy")
def bound_held_out_fits(whole, rows, ends, margins, values):
    """Bound the fits of a support without the rows of every fold, by one step each.

    Parameters
    ----------
    whole : AllRows
        Support on all rows.
    rows : (m,) int array
        Held-out rows, fold by fold.
    ends : (K + 1,) int array
        Bounds of the folds: `rows[ends[fold] : ends[fold + 1]]` are the rows of a fold.
    margins : (m, 3) array
        Array to fill: bounds and estimate of the margin of each row at its fold's fit; -inf, inf and nan if unknown.
    values : (K, 3) array
        Array to fill: bounds on the minimum objective of each fold's other rows, 0 and inf if unknown, and a bound on
        the errors of the estimated margins.
    """
    for fold in range(ends.shape[0] - 1):
        begin, end = ends[fold], ends[fold + 1]
        for i in range(begin, end):
            margins[i, 0], margins[i, 1], margins[i, 2] = -np.inf, np.inf, np.nan
        values[fold, 0], values[fold, 1], values[fold, 2] = 0.0, np.inf, np.inf
        if whole.doubt < np.inf:
            low, high, off = _one_step(whole, rows[begin:end], margins[begin:end])
            values[fold, 0], values[fold, 1], values[fold, 2] = low, high, off


@njit(cache=True, nogil=True, error_model="numpy")
def _more_steps(whole, rows, margins, enough, scratch):
    """Bound like `_one_step`, with gradients summed over all rows; return a row of `values`. O(n k) for each step."""
    state, response, noises = scratch
    k, n = whole.Z.places.shape[0], whole.Z.W.shape[1]
    Z, out, off_margins = whole.Z, _factor_held_out_rows(whole, rows), np.empty(n)
    if not out.known:
        return 0.0, np.inf, np.inf
    d, _, _, slip = _step(whole, rows, out)
    room, grown = 1.0 + 8.0 * whole.doubt, np.sqrt(out.grown)
    g, along, theta = np.empty(k), np.empty(k), np.empty(k)
    furthest = 0.0
    for i in range(rows.shape[0]):
        t = _solve_system(out, out.t[i])
        furthest = max(furthest, np.sqrt(max(dot(t, out.t[i], k), 0.0)) * room)
    for left in range(MAX_GRADIENT_STEPS - 1, -1, -1):
        for a in range(k):
            theta[a] = whole.theta[a]
        for b in range(k):
            for a in range(b + 1):
                theta[a] += whole.inverse[b, a] * d[b]
        value, off, widest = evaluate_with_rounding(Z, response, whole.penalty, theta, state, (off_margins, noises))
        gradient(Z, response, whole.penalty, theta, state, g)
        for b in range(k):
            along[b] = dot(whole.inverse[b], g, b + 1)
        step = _solve_system(out, along)
        first = np.sqrt(max(dot(step, along, k), 0.0)) * room
        noise = bound_norm(whole.inverse, noises) * grown * room
        slip = 16.0 * (whole.doubt + (k + 16) * EPS) * first * out.grown
        moved = (np.sqrt(dot(d, d, k)) + np.sqrt(dot(step, step, k))) * room * out.longest + whole.doubt
        if not (moved <= MOST_MOVE and widest <= 0.5):
            return 0.0, np.inf, np.inf
        rho, _ = _radius(np.expm1(moved) * first * (1.0 + 1e-12) + noise + slip, moved, out.longest * grown)
        _, curved = _radius(first + noise + slip, moved, out.longest * grown)
        if rho * furthest <= enough or left == 0 or rho <= 4.0 * (noise + slip):
            break
        for a in range(k):
            d[a] -= step[a]
    if not (rho < np.inf and curved > 0.0):
        return 0.0, np.inf, np.inf
    for i in range(rows.shape[0]):
        held = state.margins[rows[i]] - dot(out.t[i], step, k)
        t = _solve_system(out, out.t[i])
        reach = np.sqrt(max(dot(t, out.t[i], k), 0.0)) * room
        size = 0.0
        for a in range(k):
            size += abs(Z.W[Z.places[a], rows[i]] * theta[a])
        half = (rho + slip) * reach * (1.0 + 1e-12) + (k + 8) * EPS * size + 16.0 * EPS * abs(held)
        margins[i, 0], margins[i, 1], margins[i, 2] = held - half, held + half, held
    low = max(value - off - 0.5 * (first + noise + slip) ** 2 / curved, 0.0)
    return low, value + off, rho * furthest


@njit(cache=True, nogil=True, error_model="numpy")
def refine_held_out_fits(whole, rows, ends, which, enough, margins, values):
    """Bound like `left_out`, for some folds, by more steps or, if these do not suffice, a fit of the fold's other rows.

    O(n k) for each step, O(n k^2) for each step of a fit.

    Parameters
    ----------
    whole, rows, ends, margins, values
        Data and arrays as in `left_out`; bounds that are written only tighten.
    which : (f,) int array
        Folds.
    enough : float
        Maximum distance of margins from the middle of their intervals.
    """
    k, n = whole.Z.places.shape[0], whole.Z.W.shape[1]
    state, v, noises = new_state(n), whole.response.v.copy(), np.empty(k)
    scratch = (state, Response(v, whole.response.y, whole.response.loss), noises)
    for fold in which:
        here = rows[ends[fold] : ends[fold + 1]]
        for row in here:
            v[row] = 0.0
        found, off = np.empty((here.shape[0], 3)), np.inf
        if whole.doubt < np.inf:
            ahead = _more_steps(whole, here, found, enough, scratch)
            off = ahead[2]
            if off < np.inf:
                _take(found, ahead, margins[ends[fold] : ends[fold + 1]], values[fold])
        if not off <= max(enough, NOISY):
            ahead = _refit_without_rows(whole, here, found, scratch)
            _take(found, ahead, margins[ends[fold] : ends[fold + 1]], values[fold])
        for row in here:
            v[row] = whole.response.v[row]


@njit(cache=True, nogil=True, error_model="numpy")
def _take(found, ahead, margins, value):
    """Narrow intervals by new ones, and replace the estimated margins."""
    value[0], value[1], value[2] = max(value[0], ahead[0]), min(value[1], ahead[1]), min(value[2], ahead[2])
    for i in range(found.shape[0]):
        margins[i, 0], margins[i, 1] = max(margins[i, 0], found[i, 0]), min(margins[i, 1], found[i, 1])
        margins[i, 2] = min(max(found[i, 2], margins[i, 0]), margins[i, 1])


@njit(cache=True, nogil=True, error_model="numpy")
def _longest_move(Z, step, moves):
    """Return the largest move of a margin in a step."""
    for i in range(moves.shape[0]):
        moves[i] = 0.0
    for a in range(step.shape[0]):
        column = Z.W[Z.places[a]]
        for i in range(moves.shape[0]):
            moves[i] += step[a] * column[i]
    return np.abs(moves).max()


@njit(cache=True, nogil=True, error_model="numpy")
def _refit_without_rows(whole, rows, margins, scratch):
    """Bound like `_more_steps`, by Newton's method without the rows, and steps with the last factor.

    If columns are nearly dependent, nothing is proved about margins, and the error estimate is the last step.
    """
    state, response, noises = scratch
    k, b, Z, theta = whole.Z.places.shape[0], rows.shape[0], whole.Z, whole.theta.copy()
    newton(Z, response, whole.penalty, theta, LAST_DECREMENT, np.inf, 0.0)
    outside, held, off = np.empty((k, b)), np.empty(b), np.inf
    for i in range(b):
        for a in range(k):
            outside[a, i] = margin_sign(response, rows[i]) * Z.W[Z.places[a], rows[i]]
    for _ in range(MAX_GRADIENT_STEPS if k else 0):
        _, _, _, g, inverse = factor(Z, response, whole.penalty, theta, state, noises)
        step = np.dot(inverse.T, np.dot(inverse, g))
        moved = _longest_move(Z, step, state.work)
        if not (moved < off and inverse[0, 0] > 0.0):  # without a factor there is no step
            break
        off = moved
        theta -= step
    upper, lower, radius = bound_minimum(Z, response, whole.penalty, theta)
    _, _, doubt, _, inverse = factor(Z, response, whole.penalty, theta, state, noises)
    reach, widest = np.empty(b), 0.0
    fill_squared_lengths(inverse, Columns(outside, np.arange(k), Z.ends), reach)
    for i in range(b):
        size, half = 0.0, np.inf
        held[i] = 0.0
        for a in range(k):
            held[i] += theta[a] * outside[a, i]
            size += abs(theta[a] * outside[a, i])
        if radius < np.inf and doubt < np.inf:
            half = radius * np.sqrt(reach[i]) * (1.0 + 2.0 * doubt) * (1.0 + 1e-12) + (k + 9.0) * EPS * size
        margins[i, 0], margins[i, 1], margins[i, 2] = held[i] - half, held[i] + half, held[i]
        widest = max(widest, half)
    return lower, upper, min(off, widest)
