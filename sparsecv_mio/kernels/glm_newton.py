"""Fits of a smooth convex loss with ridge penalty by Newton's method, with certified lower bounds on the minimum.

For rows `z_i = (1, x_i)` of weights v_i, on the columns S,

    F(a, b) = sum_i v_i l_i(m_i) + sum_{j in S} r_j b_j^2,    m_i = sign_i (a + x_i'b),

with l_i a loss of :mod:`sparsecv_mio.kernels.smooth_losses`. The lower bound comes from a ball that contains the
optimum (docs/theory/glm.md, section 2). Let g be the gradient and H the Hessian at the centre of the ball,
`delta^2 = g'H^{-1}g`, `s^2` the largest `z_i'H^{-1}z_i`, and `kappa = 2 (exp(-t) + t - 1) / t^2` at `t = rho s` for a
radius rho. If `rho >= 2 delta / kappa`, the optimum is within rho of the centre, and the minimum of F is at most
`delta^2 / (2 kappa)` below the value of F at the centre. The rounding error of every sum is bounded.

Columns that are equal up to sign have the same coefficient: m of them with ridge r are equivalent to one column with
ridge r / m.

**Bounds on coefficients.** For points theta and t within the bounds, `g'(t - theta)` is at least the same product with
a projected gradient: an entry counts as 0 if the coefficient is at a bound and the entry keeps it there. With the
projected gradient, the ball contains the minimiser within the bounds, and the lower bound holds for its F. Newton's
method steps to the minimum of the quadratic within the bounds, by active sets.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import (
    EPS,
    add_multiple,
    cholesky_in_place,
    cholesky_solve,
    copy_vector,
    dot,
    invert_lower,
    solve_lower,
    solve_upper,
)
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.smooth_losses import Response, curvatures, fill, multiply_by_signs, new_state, roundings

MAX_NEWTON_STEPS = 200  # maximum number of Newton steps
FAR_OFF = 0.5  # squared decrement, as a share of F, above which longer steps are tried
STALLED = 1e-10  # squared decrement, as a share of F, below which one that does not halve counts as rounding
ROUGH_DECREMENT, LAST_DECREMENT = 1e-14, 1e-28  # squared decrements, as shares of F, at which a last step is taken
PROOF_DECREMENTS = 0.3, 1e-3, 0.0  # squared decrements at which F is tested against the cutoff; 0: the full fit
TIGHT = 1e-13  # distance of bounds, as a share of F and in addition to rounding, above which more steps are taken
LARGEST_DOUBT = 0.1  # maximum relative rounding of the Hessian for any proof
MAX_RADII = 60  # maximum number of radii tried
MAX_ACTIVE_SETS = 6  # maximum number of active sets of a step within bounds, for each coefficient
SUMMED_ROWS = 64  # rows whose losses are summed before they are added to the other sums
PART = 32 * SUMMED_ROWS  # rows that are processed together, so that their numbers stay in the cache
BY_BLAS = 24  # minimum number of coefficients for which the Hessian is computed by a matrix product


class Rows(NamedTuple):
    """Training rows in the form that kernels take.

    Attributes
    ----------
    W : (first + p, n) array
        Rows as columns, with a one first if there is an intercept.
    response : Response
        Weights, targets and loss.
    penalty : (first + p,) array
        Ridge, 0 for the intercept.
    copy_of : (first + p,) int array
        Position of the first copy of each column: equal up to sign, with the same ridge; its own if there is none
        before.
    first : int
        Number of intercepts, 1 or 0; an intercept comes first.
    origin : float
        Intercept of the fit without columns.
    ends : (2, first + p) array
        Lower and upper bounds on coefficients; (2, 0) if there are none. With bounds, no column is a copy.
    """

    W: np.ndarray
    response: Response
    penalty: np.ndarray
    copy_of: np.ndarray
    first: int
    origin: float
    ends: np.ndarray = np.empty((2, 0))


class Columns(NamedTuple):
    """Some columns of a larger array, without a copy.

    Attributes
    ----------
    W : (c, n) array
        Rows, as columns.
    places : (k,) int array
        Positions of the columns.
    ends : (2, k) array
        Lower and upper bounds on coefficients; (2, 0) if there are none.
    """

    W: np.ndarray
    places: np.ndarray
    ends: np.ndarray = np.empty((2, 0))


@njit(cache=True, nogil=True, error_model="numpy")
def worst_ratio(t):
    """Return a lower bound of `2 (exp(-t) + t - 1) / t^2`, t >= 0, the mean share of curvature kept over a range t.

    Parameters
    ----------
    t : float
        Length of the range.
    """
    if t < 1e-3:
        return 1.0 - t / 3.0
    return 2.0 * (np.expm1(-t) + t) / (t * t) * (1.0 - 1e-11)


@njit(cache=True, nogil=True, error_model="numpy")
def take_columns(rows, places):
    """Return some columns of rows, with their bounds."""
    ends = np.empty((2, places.shape[0] if rows.ends.shape[1] else 0))
    for a in range(ends.shape[1]):
        ends[0, a], ends[1, a] = rows.ends[0, places[a]], rows.ends[1, places[a]]
    return Columns(rows.W, places, ends)


@njit(cache=True, nogil=True, error_model="numpy")
def clip_to_ends(ends, theta):
    """Move coefficients to the nearest point within their bounds."""
    for a in range(ends.shape[1]):
        theta[a] = min(max(theta[a], ends[0, a]), ends[1, a])


@njit(cache=True, nogil=True, error_model="numpy")
def find_bounded_target(curved, slope, theta, ends, least, H, target):
    """Fill `target` with the minimum of a quadratic within bounds, by active sets; False if rounding prevents it.

    Parameters
    ----------
    curved : (k, k) array
        Hessian of the quadratic.
    slope : (k,) array
        Negative gradient at theta, overwritten by that at the target.
    theta : (k,) array
        Point within the bounds.
    ends : (2, k) array
        Bounds.
    least : float
        A coefficient leaves its bound only if this alone, by the diagonal, lowers the quadratic by half of `least`.
    H : (k, k) array
        Array to fill with the factor of the Hessian of the coefficients off their bounds; other entries are diagonal.
    target : (k,) array
        Array to fill.
    """
    k = theta.shape[0]
    fixed, p, releases = np.empty(k, dtype=np.bool_), np.empty(k), True
    copy_vector(theta, target)
    for count in range(MAX_ACTIVE_SETS * (k + 1)):
        n_released = 0
        for a in range(k if releases else 0):
            below, above = target[a] <= ends[0, a], target[a] >= ends[1, a]
            is_kept = (below and slope[a] <= 0.0) or (above and slope[a] >= 0.0)
            is_kept |= (below or above) and slope[a] * slope[a] <= least * curved[a, a]
            n_released += int(fixed[a] and not is_kept)
            fixed[a] = is_kept
        if releases and n_released == 0 and count > 0:
            return True
        for a in range(k):
            for b in range(k):
                H[a, b] = 0.0 if a != b and (fixed[a] or fixed[b]) else curved[a, b]
            p[a] = 0.0 if fixed[a] else slope[a]
        if not cholesky_in_place(H, k):
            return False
        cholesky_solve(H, p, k)
        share, stop = 1.0, -1
        for a in range(k):
            room = abs((ends[1, a] if p[a] > 0.0 else ends[0, a]) - target[a])
            if not fixed[a] and room < share * abs(p[a]):
                share, stop = room / abs(p[a]), a
        for a in range(k):
            target[a] += share * p[a]
            for b in range(k):
                slope[a] -= share * curved[a, b] * p[b]
        releases = stop < 0
        if stop >= 0:
            fixed[stop], target[stop] = True, ends[1, stop] if p[stop] > 0.0 else ends[0, stop]
        clip_to_ends(ends, target)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _project_gradient(ends, theta, g, noise):
    """Leave in a gradient what may lower F within the bounds, with its rounding, for coefficients at a bound."""
    for a in range(ends.shape[1]):
        below, above = theta[a] <= ends[0, a], theta[a] >= ends[1, a]
        if below or above:
            down, up = 0.0 if below else max(g[a] + noise[a], 0.0), 0.0 if above else min(g[a] - noise[a], 0.0)
            g[a], noise[a] = down + up, 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def merge_copies(rows, mask):
    """Return the positions in W of the columns of a support, with copies merged, and their ridge.

    Parameters
    ----------
    rows : Rows
        Rows.
    mask : (p,) bool array
        Support.
    """
    k, width = rows.first, rows.penalty.shape[0]
    places, count = np.zeros(width, dtype=np.int64), np.ones(width)
    for j in range(mask.shape[0]):
        if mask[j]:
            place, at = rows.copy_of[rows.first + j], -1
            if place != rows.first + j:
                for a in range(rows.first, k):
                    if places[a] == place:
                        at = a
            if at < 0:
                places[k] = place
                k += 1
            else:
                count[at] += 1.0
    penalty = np.empty(k)
    for a in range(k):
        penalty[a] = rows.penalty[places[a]] / count[a]
    return places[:k], penalty


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(Z, response, penalty, theta, state):
    """Return the computed value at theta; write margins, losses and their slopes to the state."""
    k, n, v = Z.places.shape[0], Z.W.shape[1], response.v
    margins, losses = state.margins, state.losses
    for begin in range(0, n, PART):
        part = margins[begin : begin + PART]
        part[:] = 0.0
        for a in range(k):
            add_multiple(theta[a], Z.W[Z.places[a], begin : begin + PART], part)
    multiply_by_signs(response, margins)
    fill(response, margins, state)
    f = 0.0
    for begin in range(0, n, SUMMED_ROWS):
        part = losses[begin : begin + SUMMED_ROWS]
        f += dot(v[begin : begin + SUMMED_ROWS], part, part.shape[0])
    for a in range(k):
        f += penalty[a] * theta[a] ** 2
    return f


@njit(cache=True, nogil=True, error_model="numpy")
def _value_rounding(n, k):
    return (SUMMED_ROWS + n // SUMMED_ROWS + k + 24) * EPS


@njit(cache=True, nogil=True, error_model="numpy")
def gram(Z, weights, H):
    """Fill H with the weighted products of columns, computed by parts of the rows.

    Parameters
    ----------
    Z : Columns
        Columns.
    weights : (n,) array
        Weights of the rows.
    H : (k, k) array
        Array to fill.
    """
    k, n = Z.places.shape[0], Z.W.shape[1]
    size = min(n, PART)
    H[:, :] = 0.0
    if k < BY_BLAS:
        row = np.empty(size)
        for begin in range(0, n, PART):
            part = weights[begin : begin + PART]
            for a in range(k):
                column = Z.W[Z.places[a], begin : begin + PART]
                for i in range(part.shape[0]):
                    row[i] = part[i] * column[i]
                for b in range(a + 1):
                    H[a, b] += dot(row, Z.W[Z.places[b], begin : begin + PART], part.shape[0])
        for a in range(k):
            for b in range(a):
                H[b, a] = H[a, b]
        return
    part, scaled = np.empty((k, size)), np.empty((k, size))
    for begin in range(0, n, PART):
        rows = min(size, n - begin)
        for a in range(k):
            column = Z.W[Z.places[a]]
            for i in range(rows):
                part[a, i] = column[begin + i]
                scaled[a, i] = part[a, i] * weights[begin + i]
            for i in range(rows, size):
                part[a, i], scaled[a, i] = 0.0, 0.0
        H += np.dot(scaled, part.T)


@njit(cache=True, nogil=True, error_model="numpy")
def pulls(Z, response, state, g):
    """Fill g with `sum_i v_i s_i z_i` of every column, `s = -l'` of predictors; return `sum_i v_i |s_i|`."""
    n, work, total = Z.W.shape[1], state.work, 0.0
    for i in range(n):
        work[i] = response.v[i] * state.falls[i]
        total += abs(work[i])
    multiply_by_signs(response, work)
    for a in range(Z.places.shape[0]):
        g[a] = dot(Z.W[Z.places[a]], work, n)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def hessian(Z, response, penalty, state, H):
    """Fill H with the Hessian of F at the state."""
    curvatures(response, state, state.work)
    gram(Z, state.work, H)
    for a in range(penalty.shape[0]):
        H[a, a] += 2.0 * penalty[a]


@njit(cache=True, nogil=True, error_model="numpy")
def gradient(Z, response, penalty, theta, state, g):
    """Fill g with the gradient of F at the state."""
    pulls(Z, response, state, g)
    for a in range(penalty.shape[0]):
        g[a] = 2.0 * penalty[a] * theta[a] - g[a]


@njit(cache=True, nogil=True, error_model="numpy")
def newton(Z, response, penalty, theta, near, bar, close):
    """Overwrite theta by the fit of some columns, starting from theta; return the computed value.

    Parameters
    ----------
    Z : Columns
        Columns.
    response : Response
        Weights, targets and loss.
    penalty : (k,) array
        Ridge.
    theta : (k,) array
        Start, then fit.
    near : float
        Squared decrement, as a share of the value, at which a last step is taken.
    bar, close : float, float
        Early end: at a squared decrement up to `close`, if the point may prove that the minimum is above `bar`.
    """
    k, n, is_bounded = Z.places.shape[0], Z.W.shape[1], Z.ends.shape[1] > 0
    state = new_state(n)
    clip_to_ends(Z.ends, theta)
    f = evaluate(Z, response, penalty, theta, state)
    d, H, ahead, last = np.empty(k), np.empty((k, k)), np.empty(k), np.inf
    target, curved = np.empty(k), np.empty((k if is_bounded else 0, k))
    for _ in range(MAX_NEWTON_STEPS if k else 0):
        gradient(Z, response, penalty, theta, state, d)
        hessian(Z, response, penalty, state, H)
        if is_bounded:
            curved[:, :] = H
            if not find_bounded_target(curved, -d, theta, Z.ends, near * f, H, target):
                break
            decrement = dot(d, theta - target, k)
        else:
            if not cholesky_in_place(H, k):
                break
            solve_lower(H, d, k)
            decrement = dot(d, d, k)
        if decrement <= close and f - decrement > bar:
            break
        if is_bounded:
            copy_vector(theta - target, d)
        else:
            solve_upper(H, d, k)
        step = 1.0
        while step > 1e-12:
            copy_vector(target if is_bounded and step == 1.0 else theta - step * d, ahead)
            value = evaluate(Z, response, penalty, ahead, state)
            if value <= f - 1e-4 * step * decrement or (decrement < STALLED * f and value <= f * (1.0 + 1e-13)):
                break
            step *= 0.5
        if not step > 1e-12:
            break
        while step >= 1.0 and decrement > FAR_OFF * f:  # with separable classes a step moves margins by 1 of hundreds
            copy_vector(theta - 2.0 * step * d, ahead)
            clip_to_ends(Z.ends, ahead)
            farther = evaluate(Z, response, penalty, ahead, state)
            if not farther < value:
                copy_vector(target if is_bounded and step == 1.0 else theta - step * d, ahead)
                clip_to_ends(Z.ends, ahead)
                evaluate(Z, response, penalty, ahead, state)
                break
            step, value = 2.0 * step, farther
        copy_vector(ahead, theta)
        clip_to_ends(Z.ends, theta)
        f = value
        if decrement <= near * f or 0.5 * last < decrement < STALLED * f:
            break
        last = decrement
    return f


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate_with_rounding(Z, response, penalty, theta, state, rounded):
    """Return F at a point, a bound on its rounding, and the largest rounding of a margin.

    O(k n). The arrays of `rounded` are filled with the rounding of margins (n,) and of the gradient (k,).

    Parameters
    ----------
    Z, response, penalty, theta
        Data and point, as in `newton`.
    state : State
        State, written.
    rounded : (n,), (k,) arrays
        Arrays to fill.
    """
    k, n = Z.places.shape[0], Z.W.shape[1]
    off, noise = rounded
    value = evaluate(Z, response, penalty, theta, state)
    for begin in range(0, n, PART):
        part = off[begin : begin + PART]
        part[:] = 0.0
        for a in range(k):
            t, column = abs(theta[a]), Z.W[Z.places[a], begin : begin + PART]
            for i in range(part.shape[0]):
                part[i] += t * abs(column[i])
        for i in range(part.shape[0]):
            part[i] *= (k + 5) * EPS
    loose = 1.01 * roundings(response, state, off, state.work) + _value_rounding(n, k) * value
    widest = 0.0
    for i in range(n):
        widest = max(widest, off[i])
    for a in range(k):
        s, column = 0.0, Z.W[Z.places[a]]
        for i in range(n):
            s += abs(column[i]) * state.work[i]
        noise[a] = s + 32.0 * EPS * penalty[a] * abs(theta[a])
    return value, loose, widest


@njit(cache=True, nogil=True, error_model="numpy")
def factor(Z, response, penalty, theta, state, noise):
    """Return `(value, its rounding, relative rounding of H, g, inverse factor)` at a point.

    `noise` is filled with the rounding of the gradient; the relative rounding is inf if nothing can be proved.
    """
    k, n = Z.places.shape[0], Z.W.shape[1]
    g, H, inverse = np.empty(k), np.empty((k, k)), np.zeros((k, k))
    value, off, widest = evaluate_with_rounding(Z, response, penalty, theta, state, (np.empty(n), noise))
    if not (widest <= 0.5 and value < np.inf):
        return np.inf, 0.0, np.inf, g, inverse
    gradient(Z, response, penalty, theta, state, g)
    hessian(Z, response, penalty, state, H)
    diagonal, trace = np.empty(k), 0.0
    for a in range(k):
        diagonal[a] = H[a, a]
    if not cholesky_in_place(H, k):
        return value, off, np.inf, g, inverse
    invert_lower(H, inverse, k)
    for a in range(k):
        square = 0.0
        for b in range(a, k):
            square += inverse[b, a] ** 2
        trace += diagonal[a] * square
    doubt = k * (2.0 * widest + (n + 2 * k + 40) * EPS) * trace
    return value, off, doubt if doubt <= LARGEST_DOUBT else np.inf, g, inverse


@njit(cache=True, nogil=True, error_model="numpy")
def fill_squared_lengths(inverse, Z, out):
    """Fill `out` with the squared lengths `z'H^{-1}z` of rows, given an inverse factor of H.

    Parameters
    ----------
    inverse : (k, k) array
        Inverse factor.
    Z : Columns
        Columns.
    out : (n,) array
        Array to fill.
    """
    k, n = Z.places.shape[0], Z.W.shape[1]
    t = np.empty(min(n, PART))
    for begin in range(0, n, PART):
        part = out[begin : begin + PART]
        part[:] = 0.0
        for b in range(k):
            t[:] = 0.0
            for a in range(b + 1):
                add_multiple(inverse[b, a], Z.W[Z.places[a], begin : begin + PART], t[: part.shape[0]])
            for i in range(part.shape[0]):
                part[i] += t[i] * t[i]


@njit(cache=True, nogil=True, error_model="numpy")
def bound_norm(inverse, noise):
    """Return a bound on the length of `inverse w` for all w with `|w_a| <= noise_a`."""
    k, total = noise.shape[0], 0.0
    for a in range(k):
        s = 0.0
        for b in range(a, k):
            s += inverse[b, a] ** 2
        total += noise[a] * np.sqrt(s)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def bound_minimum(Z, response, penalty, theta):
    """Return bounds on F at theta and on its minimum over some columns: `(upper, lower, radius)`.

    Parameters
    ----------
    Z, response, penalty, theta
        Data and point, as in `newton`; theta is any point within the bounds on coefficients, and the results are good
        if it is nearly the optimum.

    Returns
    -------
    upper, lower : float
        Upper bound on F at theta, and lower bound on the minimum; 0, which is always valid, if nothing is proved.
    radius : float
        Radius of a ball in the norm of the Hessian that contains the optimum; inf if nothing is proved.
    """
    k, n = Z.places.shape[0], Z.W.shape[1]
    state, noise = new_state(n), np.empty(k)
    value, off, doubt, g, inverse = factor(Z, response, penalty, theta, state, noise)
    _project_gradient(Z.ends, theta, g, noise)
    if k == 0:
        return value + off, max(value - off, 0.0), 0.0
    if not doubt < np.inf:
        return value + off, 0.0, np.inf
    square = 0.0
    for b in range(k):
        square += dot(inverse[b], g, b + 1) ** 2
    delta = (np.sqrt(square) * (1.0 + doubt) + bound_norm(inverse, noise)) * (1.0 + doubt)
    fill_squared_lengths(inverse, Z, state.work)
    longest = 0.0
    for i in range(n):
        longest = max(longest, state.work[i] if response.v[i] > 0.0 else 0.0)
    longest = np.sqrt(longest) * (1.0 + doubt)
    rho = 2.0 * delta
    for _ in range(MAX_RADII):
        kappa = worst_ratio(rho * longest) * (1.0 - 2.0 * doubt)
        if not kappa > 1e-9:
            break
        if rho * kappa >= 2.0 * delta:
            drop = 0.5 * delta * delta / kappa * (1.0 + 1e-9)
            return value + off, max(value - off - drop, 0.0), rho
        rho = 2.0 * delta / kappa * 1.001
    return value + off, 0.0, np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def fit_and_prove(Z, response, penalty, theta, start, bar):
    """Return the result of `proved` at a fit by `newton`, with more steps or another start if it proves little.

    Parameters
    ----------
    Z, response, penalty, theta
        Data and point, as in `newton`; theta is overwritten by the fit.
    start : (k,) array
        Point for a second attempt.
    bar : float
        Cutoff: a minimum that is proved to be above it need not be known more accurately.
    """
    for close in PROOF_DECREMENTS:
        newton(Z, response, penalty, theta, ROUGH_DECREMENT if close > 0.0 else LAST_DECREMENT, bar, close)
        upper, lower, radius = bound_minimum(Z, response, penalty, theta)
        rounded = (TIGHT + 3.0 * _value_rounding(Z.W.shape[1], Z.places.shape[0])) * upper
        if lower > bar or upper - lower <= rounded < np.inf:
            return upper, lower, radius
    if radius < np.inf:
        return upper, lower, radius
    again = start.copy()
    newton(Z, response, penalty, again, LAST_DECREMENT, np.inf, 0.0)
    high, low, reach = bound_minimum(Z, response, penalty, again)
    if high < upper or reach < radius:
        copy_vector(again, theta)
        return high, low, reach
    return upper, lower, radius


@njit(cache=True, nogil=True, error_model="numpy")
def refit(rows, masks, points, bar, sure, ends):
    """Fit supports one by one, and write proved bounds on each minimum.

    Parameters
    ----------
    rows : Rows
        Rows.
    masks : (L, p) bool array
        Supports.
    points : (L, first + p) array
        Points where each fit begins, copies merged; then the fits.
    bar : float
        Cutoff, as in `fit_and_prove`.
    sure : bool
        True if a value above the cutoff must be proved; otherwise the bounds of such a support are 0 and inf.
    ends : (L,), (L,), (L,) arrays
        Arrays to fill with lower and upper bounds and radii.
    """
    lower, upper, radius = ends
    for row in range(masks.shape[0]):
        places, penalty = merge_copies(rows, masks[row])
        Z = take_columns(rows, places)
        theta, start = np.empty(places.shape[0]), np.zeros(places.shape[0])
        for a in range(places.shape[0]):
            theta[a] = points[row, places[a]]
        if rows.first:
            start[0] = rows.origin
        tested = not sure and bar < np.inf
        if tested and newton(Z, rows.response, penalty, theta, ROUGH_DECREMENT, bar, PROOF_DECREMENTS[0]) > bar:
            upper[row], lower[row], radius[row] = np.inf, 0.0, np.inf
            continue
        upper[row], lower[row], radius[row] = fit_and_prove(Z, rows.response, penalty, theta, start, bar)
        points[row] = 0.0
        for a in range(places.shape[0]):
            points[row, places[a]] = theta[a]


@njit(cache=True, nogil=True, error_model="numpy")
def decisions(rows, masks, points, radii, outside, ends):
    """Fill bounds on the linear predictor `a + x'b` of other rows at the exact fits of some supports.

    Parameters
    ----------
    rows : Rows
        Training rows.
    masks : (L, p) bool array
        Supports.
    points, radii : (L, first + p), (L,) arrays
        Results of `refit`.
    outside : (first + p, m), (first + p,) arrays
        Columns of the other rows, with a row of ones first if there is an intercept, and signs: -1 if a column is the
        negative of the column that it copies, else 1.
    ends : (L, m), (L, m) arrays
        Arrays to fill.
    """
    low, high = ends
    columns, sign = outside
    n, m, first = rows.W.shape[1], columns.shape[1], rows.first
    state, length, size = new_state(n), np.empty(m), np.empty(m)
    for row in range(masks.shape[0]):
        places, penalty = merge_copies(rows, masks[row])
        k = places.shape[0]
        Z, theta, out, count = take_columns(rows, places), np.empty(k), np.zeros((k, m)), np.zeros(k)
        for a in range(k):
            theta[a] = points[row, places[a]]
        size[:] = abs(theta[0]) if first else 0.0
        if first:
            out[0], count[0] = columns[0], 1.0
        for j in range(masks.shape[1]):
            if masks[row, j]:
                for a in range(first, k):
                    if places[a] == rows.copy_of[first + j]:
                        count[a] += 1.0
                        for i in range(m):
                            out[a, i] += sign[first + j] * columns[first + j, i]
                            size[i] += abs(theta[a] * columns[first + j, i])
        most = 1.0
        for a in range(k):
            most = max(most, count[a])
            for i in range(m):
                out[a, i] /= count[a]
        _, _, doubt, _, inverse = factor(Z, rows.response, penalty, theta, state, np.empty(k))
        fill_squared_lengths(inverse, Columns(out, np.arange(k), np.empty((2, 0))), length)
        for i in range(m):
            middle, half = 0.0, (k + most + 8.0) * EPS * size[i]
            for a in range(k):
                middle += theta[a] * out[a, i]
            if k > 0:
                half += radii[row] * np.sqrt(length[i]) * (1.0 + 2.0 * doubt) * (1.0 + 1e-12)
            known = half < np.inf
            low[row, i], high[row, i] = middle - half if known else -np.inf, middle + half if known else np.inf
