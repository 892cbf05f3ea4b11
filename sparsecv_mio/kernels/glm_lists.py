"""Supports of a smooth convex loss that are all above a level, of which few are fitted.

A quadratic about any point that is below F wherever the margins of fits of interest lie bounds F of every support
(docs/theory/glm.md, sections 3 and 5). About the fit of a listed support it is exact there, and near it for the
supports that differ by few columns: these are above the level too, without a fit. So one support is fitted, the
quadratic about its fit bounds all the others, and the one with the least bound is next.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import cholesky_in_place, gram_of_lower, invert_lower, support_value
from sparsecv_mio.kernels.glm_newton import fit_and_prove, gathered, look_around, merged
from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.row_losses import EPS, least_curvatures, new_state

OPEN, ABOVE, WITHIN = 0, 1, 2  # what is known of a support: nothing, that F is above the level, that it may not be
LARGEST_DOUBT = 1e-2  # share of the curvature that rounding may be worth
FEW = 6  # supports that are fitted one by one; and after a quadratic that has shown fewer than that to be above


class Quadratic(NamedTuple):
    """Moments of a quadratic below F: `f(S) = constant - c_S'M_S^{-1}c_S`, and `f(S) - shift <= F_S`.

    Attributes
    ----------
    M : (q, q) array
        Columns in units of its diagonal.
    c : (q,) array
    constant, shift : float
        The first is at least 0.
    keep, slack : float
        `f(S) (1 + keep) + slack` holds what f is computed as.
    """

    M: np.ndarray
    c: np.ndarray
    constant: float
    shift: float
    keep: float
    slack: float


class FitsOfInterest(NamedTuple):
    """Fits of some columns with F at most a level.

    Attributes
    ----------
    columns : (q,) int array
        First columns, of copies.
    penalty : (first + q,) array
        Ridge of these, of all copies together.
    ranges : (2, n) array
        That hold the margins of every such fit.
    level : float
    keep : float
        The least that `Quadratic.keep` may be.
    """

    columns: np.ndarray
    penalty: np.ndarray
    ranges: np.ndarray
    level: float
    keep: float


@njit(cache=True, nogil=True, error_model="numpy")
def quadratic_about(W, response, theta, fits, first):
    """Make a quadratic below F about a point, for all points whose margins lie within ranges: `(there is one, it)`.

    O(n k^2 + k^3), k = first + q.

    Parameters
    ----------
    W : (first + q, n) array
        Rows times their signs, as columns.
    response : Response
    theta : (first + q,) array
    fits : FitsOfInterest
    first : int
        1 with an intercept, else 0.
    """
    k, n = W.shape
    q, penalty, level = k - first, fits.penalty, fits.level
    none = Quadratic(np.empty((0, 0)), np.empty(0), 0.0, 0.0, np.inf, 0.0)
    state, off, noise = new_state(n), np.empty(n), np.empty(k)
    value, loose, widest = look_around(W, response, penalty, theta, state, (off, noise))
    if not widest <= 0.25:
        return False, none
    g = np.empty(k)
    for i in range(n):
        state.work[i] = response.v[i] * state.falls[i]
    for a in range(k):
        s = 0.0
        for i in range(n):
            s += W[a, i] * state.work[i]
        g[a] = 2.0 * penalty[a] * theta[a] - s
    weights = np.empty(n)
    least_curvatures(response, state, fits.ranges.copy(), off, weights)
    for i in range(n):
        weights[i] *= response.v[i] * (1.0 - 2.0 * off[i])
    H = np.dot(W * weights, W.T)
    for a in range(k):
        H[a, a] += 2.0 * penalty[a]
    factored, inverse, doubt, trace = _inverse(H, widest, n)
    if not factored:
        return False, none
    step, fall = np.zeros(k), 0.0
    for a in range(k):
        for b in range(k):
            step[a] -= inverse[a, b] * g[b]
        fall -= g[a] * step[a]
    fall = max(fall, 0.0)
    room, lost = level - value + loose + 0.5 * fall * (1.0 + 4.0 * doubt), 1e-13 * value + loose
    reach, settled = np.empty(k), False
    for _ in range(3):  # the rounding of the gradient is worth `lost` within the level set that is `lost` larger
        s = 0.0
        spread = np.sqrt(2.0 * max(room + lost, 0.0)) + 4.0 * doubt * np.sqrt(fall)
        for a in range(k):
            reach[a] = abs(step[a]) + np.sqrt(inverse[a, a]) * (1.0 + 4.0 * doubt) * spread
            s += noise[a] * reach[a]
        if s <= lost:
            settled = True
            break
        lost = 2.0 * s
    if not settled:
        return False, none
    for a in range(k):
        for b in range(k):
            H[a, b] *= 1.0 - doubt
    low = value - loose - lost
    M, c, constant, lost = _moments(H, g, theta, reach, low, first)
    shift = max(0.5 * fall * (1.0 + 4.0 * doubt) - low, 0.0) * (1.0 + 1e-9) + lost
    rounding = 50.0 * EPS * q * trace
    slack = max(1e-13, 0.1 * rounding) * (abs(constant) + shift)
    return True, Quadratic(M, c, constant + shift, shift, max(fits.keep, rounding), slack)


@njit(cache=True, nogil=True, error_model="numpy")
def _inverse(H, widest, n):
    """Invert a matrix: `(done, its inverse, share that rounding may be worth, trace in units of the diagonal)`."""
    k = H.shape[0]
    unit, scaled, inner = np.empty(k), np.empty((k, k)), np.zeros((k, k))
    for a in range(k):
        unit[a] = np.sqrt(H[a, a])
        if not (unit[a] > 0.0 and unit[a] < np.inf):
            return False, scaled, np.inf, np.inf
    for a in range(k):
        for b in range(k):
            scaled[a, b] = H[a, b] / unit[a] / unit[b]
    if not cholesky_in_place(scaled, k):
        return False, scaled, np.inf, np.inf
    invert_lower(scaled, inner, k)
    gram_of_lower(inner, scaled)
    trace = 0.0
    for a in range(k):
        trace += scaled[a, a]
    doubt = k * (2.0 * widest + (n + 4 * k + 64) * EPS) * trace
    if not doubt <= LARGEST_DOUBT:
        return False, scaled, np.inf, np.inf
    for a in range(k):
        for b in range(k):
            scaled[a, b] /= (1.0 - doubt) * unit[a] * unit[b]
    return True, scaled, doubt, trace


@njit(cache=True, nogil=True, error_model="numpy")
def _moments(H, g, theta, reach, low, first):
    """Expand about 0 and eliminate the intercept: `(M, c, constant, what rounding is worth in the level set)`."""
    k = H.shape[0]
    q = k - first
    linear, size, constant, off = np.empty(k), np.empty(k), low, abs(low)
    for a in range(k):
        s, t = 0.0, 0.0
        for b in range(k):
            s += H[a, b] * theta[b]
            t += abs(H[a, b] * theta[b])
        linear[a], size[a] = g[a] - s, abs(g[a]) + t
        constant += (0.5 * s - g[a]) * theta[a]
        off += (2.0 * abs(theta[a]) + reach[a]) * size[a]
    M, c = np.empty((q, q)), np.empty(q)
    for a in range(q):
        c[a] = -0.5 * linear[first + a]
        for b in range(q):
            M[a, b] = 0.5 * H[first + a, first + b]
    if first:
        moved = 0.0
        for a in range(q):
            beside = H[0, 1 + a] / H[0, 0]
            moved += abs(beside) * (abs(theta[1 + a]) + reach[1 + a])
            c[a] += 0.5 * beside * linear[0]
            for b in range(q):
                M[a, b] -= 0.5 * beside * H[0, 1 + b]
        constant -= 0.5 * linear[0] ** 2 / H[0, 0]
        off += size[0] * moved + 0.5 * size[0] ** 2 / H[0, 0]
    lost = 4.0 * (k + 12) * EPS * off
    unit = np.empty(q)
    for a in range(q):
        unit[a] = 1.0 / np.sqrt(M[a, a])
        c[a] *= unit[a]
    for a in range(q):
        for b in range(a + 1):
            M[a, b] = 0.5 * (M[a, b] + M[b, a]) * unit[a] * unit[b]
            M[b, a] = M[a, b]
    return M, c, constant - lost, lost


@njit(cache=True, nogil=True, error_model="numpy")
def raise_bounds(quadratic, members, sizes, level, bounds, known):
    """Raise bounds of F of open supports by a quadratic; returns how many are above the level by that.

    O(L size^3 / 3).

    Parameters
    ----------
    quadratic : Quadratic
    members : (L, size) int array
        Columns of each support, by their places in the quadratic.
    sizes : (L,) int array
    level : float
    bounds, known : (L,), (L,) arrays
        Written.
    """
    q = quadratic.c.shape[0]
    work, x, above = np.empty((q, q)), np.empty(q), 0
    for row in range(members.shape[0]):
        if known[row] == OPEN:
            f = support_value(
                quadratic.M, 0.0, quadratic.c, quadratic.constant, members[row], sizes[row], work, x
            )  # fmt: skip
            if f < np.inf:
                f = (f - quadratic.slack) / (1.0 + quadratic.keep) - quadratic.shift
                bounds[row] = max(bounds[row], f)
                if bounds[row] > level:
                    known[row] = ABOVE
                    above += 1
    return above


@njit(cache=True, nogil=True)
def screen(rows, masks, fits, start, most, bounds, known):
    """Find out which supports are above a level; returns how many are still open after so many fits.

    O(most (n q^2 + L size^3)).

    Parameters
    ----------
    rows : Rows
    masks : (L, p) bool array
        Copies of a column all together.
    fits : FitsOfInterest
        Of columns among which all supports are.
    start : (first + p,) array
        Where every fit begins.
    most : int
        Supports to fit.
    bounds : (L,) array
        Lower bounds of F, raised.
    known : (L,) array
        OPEN, ABOVE or WITHIN, written: WITHIN is every support whose fit has not shown F to be above the level.
    """
    columns, level, first, count = fits.columns, fits.level, rows.first, masks.shape[0]
    q = columns.shape[0]
    places, place_of = np.empty(first + q, dtype=np.int64), np.full(rows.penalty.shape[0], -1, dtype=np.int64)
    for a in range(first):
        places[a] = a
    for a in range(q):
        places[first + a] = first + columns[a]
        place_of[first + columns[a]] = first + a
    W, theta = gathered(rows.W, places), np.empty(first + q)
    members, sizes = np.zeros((count, q), dtype=np.int64), np.zeros(count, dtype=np.int64)
    waiting = 0
    for row in range(count):
        waiting += known[row] == OPEN
        for a in range(q):
            if masks[row, columns[a]]:
                members[row, sizes[row]] = a
                sizes[row] += 1
    alone = 0
    for _ in range(most):
        if waiting == 0:
            break
        at = -1
        for row in range(count):
            if known[row] == OPEN and (at < 0 or bounds[row] < bounds[at]):
                at = row
        own, ridge = merged(rows, masks[at])
        Z, point, begin = gathered(rows.W, own), np.empty(own.shape[0]), np.zeros(own.shape[0])
        for a in range(own.shape[0]):
            point[a] = start[own[a]]
        if first:
            begin[0] = rows.origin
        _, lower, _ = fit_and_prove(Z, rows.response, ridge, point, begin, level)
        known[at] = ABOVE if lower > level else WITHIN
        waiting -= 1
        alone -= 1
        if waiting <= FEW or alone > 0:
            continue
        theta[:] = 0.0
        for a in range(own.shape[0]):
            theta[place_of[own[a]]] = point[a]
        made, quadratic = quadratic_about(W, rows.response, theta, fits, first)
        above = raise_bounds(quadratic, members, sizes, level, bounds, known) if made else 0
        waiting -= above
        if above < FEW:
            alone = FEW
    return waiting
