"""Fits of Cox regression with ridge penalty by Newton's method, with certified lower bounds on the minimum.

For rows x_j of weights w_j and the terms t of a partial likelihood, with weights omega_t and risk sets R_t,

    F(b) = sum_t omega_t log(sum_{j in R_t} f_tj w_j exp(x_j'b)) - sum_events w_e x_e'b - constant + sum_a r_a b_a^2.

f_tj is 1, or the share of Efron's method on tied events. Sums over risk sets are sums along paths of a forest
(`problem/risk_sets`), each relative to the largest exponent of its path, so that no sum underflows. The weights of a
risk set, `f_tj w_j exp(x_j'b)` divided by their sum, have the mean `mean_t` and a covariance matrix. The Hessian of F
is the sum over t of omega_t times this matrix, plus the penalty.

A term of one event e, `log(1 + sum_{j != e} w_j exp(x_j'b) / (w_e exp(x_e'b)))`, may be far smaller than the numbers in
it. Values, gradients and Hessians of such terms are sums over the other rows, so that nothing cancels, and their
rounding errors are relative to the share of the other rows.

The lower bound comes from a ball that contains the optimum (docs/theory/cox.md). Let g be the gradient and H the
Hessian at its centre, `delta^2 = g'H^{-1}g`, and s the largest length `sqrt(x_j'H^{-1}x_j)`. In a ball of radius rho,
no `(mean_t - x_j)'d` exceeds `2 rho s`. With `kappa = worst_ratio(2 rho s)` and `rho >= 2 delta / kappa`, the optimum
is in the ball, and F falls by at most `delta^2 / (2 kappa)`. The rounding error of every sum is bounded.
"""

from typing import Any, NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import (
    EPS,
    cholesky_in_place,
    copy_vector,
    dot,
    invert_lower,
    solve_lower,
    solve_upper,
)
from sparsecv_mio.kernels.glm_newton import (
    LARGEST_DOUBT,
    LAST_DECREMENT,
    MAX_NEWTON_STEPS,
    MAX_RADII,
    PROOF_DECREMENTS,
    ROUGH_DECREMENT,
    STALLED,
    TIGHT,
    Columns,
    bound_norm,
    fill_squared_lengths,
    gram,
    merge_copies,
    worst_ratio,
)
from sparsecv_mio.kernels.jit import njit

LEAST_SIZE = 1e-280  # size of the numbers in a term of one event, for sums that underflow
LARGEST_ROUNDING = 0.1  # largest error of an exponent, or relative error of a sum, for any proof


class CoxRows(NamedTuple):
    """Training rows in the form that kernels take.

    Attributes
    ----------
    W : (p, n) array
        Rows as columns.
    sets : RiskSets
        Risk sets of `problem/risk_sets`.
    penalty : (p,) array
        Ridge.
    copy_of : (p,) int array
        Position of the first copy of each column, its own if there is none before.
    first : int
        Number of intercepts: 0.
    origin : float
        Intercept of the fit without columns: 0.
    """

    W: np.ndarray
    sets: Any
    penalty: np.ndarray
    copy_of: np.ndarray
    first: int
    origin: float


class CoxState(NamedTuple):
    """Work arrays of a fit.

    Attributes
    ----------
    eta, pull, fall : (n,) arrays
        Exponents `x_j'b`, and weights of rows (`fill_row_weights`).
    peak, total, backward : (V,) arrays
        Largest exponent on the path of each node, sum of the weights relative to it, and a work array.
    block_peak, before, own : (B,) arrays
        Largest exponent of the risk set of a block, and relative sums over the other rows and over its events.
    curvature : (B,) array
        Factors on the covariance matrices of the terms of each block; 1 for the Hessian.
    """

    eta: np.ndarray
    pull: np.ndarray
    fall: np.ndarray
    peak: np.ndarray
    total: np.ndarray
    backward: np.ndarray
    block_peak: np.ndarray
    before: np.ndarray
    own: np.ndarray
    curvature: np.ndarray


@njit(cache=True, nogil=True, error_model="numpy")
def new_state(sets):
    """Return the work arrays of fits to some risk sets."""
    n, nodes, blocks = sets.weight.shape[0], sets.parent.shape[0], sets.node.shape[0]
    return CoxState(
        np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(nodes), np.zeros(nodes), np.zeros(nodes), np.zeros(blocks),
        np.zeros(blocks), np.zeros(blocks), np.ones(blocks),
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _sum_nodes(sets, state):
    """Fill the largest exponents and relative sums of all nodes and blocks."""
    eta, peak, total = state.eta, state.peak, state.total
    for v in range(sets.parent.shape[0]):
        parent, most, s = sets.parent[v], -np.inf, 0.0
        if parent >= 0:
            most, s = peak[parent], total[parent]
        before = most
        for at in range(sets.start[v], sets.start[v + 1]):
            most = max(most, eta[sets.rows[at]])
        if s > 0.0 and most > before:
            s *= np.exp(before - most)
        for at in range(sets.start[v], sets.start[v + 1]):
            j = sets.rows[at]
            s += sets.weight[j] * np.exp(eta[j] - most)
        peak[v], total[v] = most, s
    for b in range(sets.node.shape[0]):
        v, most, s = sets.node[b], peak[sets.node[b]], 0.0
        for at in range(sets.block_start[b], sets.block_start[b + 1]):
            most = max(most, eta[sets.block_rows[at]])
        for at in range(sets.block_start[b], sets.block_start[b + 1]):
            j = sets.block_rows[at]
            s += sets.weight[j] * np.exp(eta[j] - most)
        state.block_peak[b], state.own[b] = most, s
        state.before[b] = total[v] * np.exp(peak[v] - most) if total[v] > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _share_of_others(sets, state, b):
    """Return the share of the other rows in the term of a block of one event; 1 for a block of tied events."""
    if sets.block_start[b + 1] - sets.block_start[b] > 1:
        return 1.0
    return state.before[b] / (state.before[b] + state.own[b]) if state.before[b] > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _evaluate_block(sets, state, b):
    """Return the value of a block, and the size of the numbers that add up or cancel."""
    first, last, m = sets.block_start[b], sets.block_start[b + 1], sets.n_terms[b]
    omega, v = sets.omega[b], sets.node[b]
    if last - first == 1:
        if not state.total[v] > 0.0:
            return 0.0, 0.0
        j = sets.block_rows[first]
        log_sum, log_weight = np.log(state.total[v]), np.log(sets.weight[j])
        x = (log_sum - log_weight) + (state.peak[v] - state.eta[j])
        value = np.log1p(np.exp(x)) if x < 0.0 else x + np.log1p(np.exp(-x))
        numbers = abs(log_sum) + abs(log_weight) + abs(state.peak[v]) + abs(state.eta[j])
        return omega * value, omega * (value + _share_of_others(sets, state, b) * numbers) + LEAST_SIZE
    value, size = 0.0, 0.0
    for term in range(m):
        log_sum = np.log(state.before[b] + (1.0 - term / m) * state.own[b])
        value += omega * log_sum
        size += omega * abs(log_sum)
    for at in range(first, last):
        j = sets.block_rows[at]
        log_unit = np.log(omega if m > 1 else sets.weight[j])
        value += sets.weight[j] * ((state.block_peak[b] - state.eta[j]) - log_unit)
        size += sets.weight[j] * (abs(state.block_peak[b]) + abs(state.eta[j]) + abs(log_unit))
    return value, size


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(Z, sets, penalty, theta, state):
    """Return the computed value at theta, and the size of the numbers that add up or cancel; fill the state."""
    k, n, eta = Z.places.shape[0], Z.W.shape[1], state.eta
    for i in range(n):
        eta[i] = 0.0
    for a in range(k):
        t, column = theta[a], Z.W[Z.places[a]]
        for i in range(n):
            eta[i] += t * column[i]
    _sum_nodes(sets, state)
    value, lost, size = 0.0, 0.0, 0.0
    for b in range(sets.node.shape[0]):
        part, numbers = _evaluate_block(sets, state, b)
        size += numbers
        added = value + part  # compensated, because the error of a sum of n numbers grows with n
        lost += (value - added) + part if abs(value) >= abs(part) else (part - added) + value
        value = added
    value += lost
    for a in range(k):
        value += penalty[a] * theta[a] ** 2
    return value if value < np.inf else np.inf, size


@njit(cache=True, nogil=True, error_model="numpy")
def fill_row_weights(sets, state):
    """Fill `pull` with `sum_t omega_t c_t` times the share of each row in term t, c the curvature factors.

    `fall` is filled with the weights of the events: `pull - fall` is the gradient by the exponents. The share of an
    event in a term of its own is left out of both.
    """
    eta, pull, fall, backward = state.eta, state.pull, state.fall, state.backward
    for i in range(pull.shape[0]):
        pull[i], fall[i] = 0.0, 0.0
    for v in range(backward.shape[0]):
        backward[v] = 0.0
    for b in range(sets.node.shape[0]):
        others, own, m, v = 0.0, 0.0, sets.n_terms[b], sets.node[b]
        for term in range(m):
            share = 1.0 - term / m
            c = 1.0 / (state.before[b] + share * state.own[b])
            others += c
            own += share * c
        own *= sets.omega[b] * state.curvature[b]
        if sets.block_start[b + 1] - sets.block_start[b] == 1:
            fall[sets.block_rows[sets.block_start[b]]] = (
                sets.omega[b] * state.curvature[b] * _share_of_others(sets, state, b)
            )
        else:
            for at in range(sets.block_start[b], sets.block_start[b + 1]):
                j = sets.block_rows[at]
                pull[j] += sets.weight[j] * np.exp(eta[j] - state.block_peak[b]) * own
                fall[j] = sets.weight[j] * state.curvature[b]
        if state.before[b] > 0.0:
            backward[v] += others * sets.omega[b] * state.curvature[b] * np.exp(state.peak[v] - state.block_peak[b])
    for v in range(backward.shape[0] - 1, -1, -1):
        c, parent = backward[v], sets.parent[v]
        if c > 0.0:
            for at in range(sets.start[v], sets.start[v + 1]):
                j = sets.rows[at]
                pull[j] += sets.weight[j] * np.exp(eta[j] - state.peak[v]) * c
            if parent >= 0 and state.total[parent] > 0.0:
                backward[parent] += c * np.exp(state.peak[parent] - state.peak[v])


@njit(cache=True, nogil=True, error_model="numpy")
def gradient(Z, sets, penalty, theta, state, g):
    """Fill g with the gradient of F at the state, whose curvature factors are 1; fill `pull` and `fall`."""
    fill_row_weights(sets, state)
    n = Z.W.shape[1]
    work = np.empty(n)
    for i in range(n):
        work[i] = state.pull[i] - state.fall[i]
    for a in range(g.shape[0]):
        g[a] = 2.0 * penalty[a] * theta[a] + dot(Z.W[Z.places[a]], work, n)


@njit(cache=True, nogil=True, error_model="numpy")
def _sum_columns(Z, sets, state):
    """Return (V, k) sums of the columns over the risk sets of the nodes, relative to their peaks."""
    k, nodes = Z.places.shape[0], sets.parent.shape[0]
    sums = np.zeros((nodes, k))
    for v in range(nodes):
        parent, own = sets.parent[v], sums[v]
        if parent >= 0 and state.total[parent] > 0.0:
            ratio = np.exp(state.peak[parent] - state.peak[v])
            for a in range(k):
                own[a] = ratio * sums[parent, a]
        for at in range(sets.start[v], sets.start[v + 1]):
            j = sets.rows[at]
            c = sets.weight[j] * np.exp(state.eta[j] - state.peak[v])
            for a in range(k):
                own[a] += c * Z.W[Z.places[a], j]
    return sums


@njit(cache=True, nogil=True, error_model="numpy")
def _sum_block(Z, sets, state, sums, b, before, own):
    """Fill the relative sums of the columns over the other rows of a risk set and over the events of its block."""
    v, k = sets.node[b], before.shape[0]
    ratio = np.exp(state.peak[v] - state.block_peak[b]) if state.before[b] > 0.0 else 0.0
    for a in range(k):
        before[a], own[a] = ratio * sums[v, a], 0.0
    for at in range(sets.block_start[b], sets.block_start[b + 1]):
        j = sets.block_rows[at]
        c = sets.weight[j] * np.exp(state.eta[j] - state.block_peak[b])
        for a in range(k):
            own[a] += c * Z.W[Z.places[a], j]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_hessian(Z, sets, penalty, state, H, diagonal):
    """Fill H with the Hessian at the state, with curvature factors; return its rounding per unit of `diagonal`.

    `diagonal` is filled with the second moments of the columns, before the squares of the means are subtracted, plus
    the penalty. With the share s and the mean m of the other rows, the covariance matrix of a term of one event e is s
    times that of the other rows, plus `s (1 - s) (m - x_e)(m - x_e)'`.
    """
    k = Z.places.shape[0]
    fill_row_weights(sets, state)
    gram(Z, state.pull, H)
    for a in range(k):
        diagonal[a] = H[a, a] + 2.0 * penalty[a]
    sums = _sum_columns(Z, sets, state)
    before, own, mean = np.empty(k), np.empty(k), np.empty(k)
    for b in range(sets.node.shape[0]):
        m, weight = sets.n_terms[b], sets.omega[b] * state.curvature[b]
        _sum_block(Z, sets, state, sums, b, before, own)
        if sets.block_start[b + 1] - sets.block_start[b] == 1:
            others = _share_of_others(sets, state, b)
            if others > 0.0:
                weight *= others
                for a in range(k):
                    mean[a] = before[a] / state.before[b]
                    own[a] = mean[a] - own[a] / state.own[b] if state.own[b] > 0.0 else 0.0
                for a in range(k):
                    t, apart = weight * mean[a], weight * (1.0 - others) * own[a]
                    diagonal[a] += apart * own[a]
                    for e in range(a + 1):
                        H[a, e] += apart * own[e] - t * mean[e]
            continue
        for term in range(m):
            share = 1.0 - term / m
            c = 1.0 / (state.before[b] + share * state.own[b])
            for a in range(k):
                mean[a] = (before[a] + share * own[a]) * c
            for a in range(k):
                t = weight * mean[a]
                for e in range(a + 1):
                    H[a, e] -= t * mean[e]
    for a in range(k):
        H[a, a] += 2.0 * penalty[a]
        for e in range(a):
            H[e, a] = H[a, e]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_end_means(Z, sets, state, means):
    """Fill (2 B, k) means of the columns in the first and the last term of each block, between which the others lie."""
    k = Z.places.shape[0]
    sums = _sum_columns(Z, sets, state)
    before, own = np.empty(k), np.empty(k)
    for b in range(sets.node.shape[0]):
        m = sets.n_terms[b]
        _sum_block(Z, sets, state, sums, b, before, own)
        for end in range(2):
            share = 1.0 if end == 0 else 1.0 / m
            c = 1.0 / (state.before[b] + share * state.own[b])
            for a in range(k):
                means[2 * b + end, a] = (before[a] + share * own[a]) * c


@njit(cache=True, nogil=True, error_model="numpy")
def fill_drops(sets, lengths, drop, mean_lengths, mean_drops, radius, drops):
    """Fill (B,) bounds on `(mean_t - x_j)'d` over the rows of the risk sets and over an ellipsoid.

    The ellipsoid is `d = c + e` with `e'H e <= radius^2`. For each pair of a mean and a row the bound is exact.

    Parameters
    ----------
    sets : RiskSets
        Risk sets.
    lengths, drop : (k, n), (n,) arrays
        Columns times the inverse factor of H, and `x_j'c`.
    mean_lengths, mean_drops : (2 B, k), (2 B,) arrays
        The same for the means of `fill_end_means`.
    radius : float
        Radius.
    drops : (B,) array
        Array to fill.
    """
    k = lengths.shape[0]
    for b in range(sets.node.shape[0]):
        most = 0.0
        for end in range(2 if sets.n_terms[b] > 1 else 1):
            t, v = 2 * b + end, sets.node[b]
            for at in range(sets.block_start[b], sets.block_start[b + 1]):
                j, s = sets.block_rows[at], 0.0
                for a in range(k):
                    s += (mean_lengths[t, a] - lengths[a, j]) ** 2
                most = max(most, mean_drops[t] - drop[j] + radius * np.sqrt(s))
            while v >= 0:
                for at in range(sets.start[v], sets.start[v + 1]):
                    j, s = sets.rows[at], 0.0
                    for a in range(k):
                        s += (mean_lengths[t, a] - lengths[a, j]) ** 2
                    most = max(most, mean_drops[t] - drop[j] + radius * np.sqrt(s))
                v = sets.parent[v]
        drops[b] = most


@njit(cache=True, nogil=True, error_model="numpy")
def fill_wide_drops(sets, reach, mean_reach, drops):
    """Fill the same bounds, up to twice as wide, from separate bounds on rows and means by maxima along paths.

    Parameters
    ----------
    sets : RiskSets
        Risk sets.
    reach, mean_reach : (n,), (2 B,) arrays
        Bounds on `-x_j'd` and on `mean_t'd`.
    drops : (B,) array
        Array to fill.
    """
    nodes = sets.parent.shape[0]
    most = np.empty(nodes)
    for v in range(nodes):
        most[v] = most[sets.parent[v]] if sets.parent[v] >= 0 else -np.inf
        for at in range(sets.start[v], sets.start[v + 1]):
            most[v] = max(most[v], reach[sets.rows[at]])
    for b in range(sets.node.shape[0]):
        largest = most[sets.node[b]]
        for at in range(sets.block_start[b], sets.block_start[b + 1]):
            largest = max(largest, reach[sets.block_rows[at]])
        drops[b] = max(max(mean_reach[2 * b], mean_reach[2 * b + 1]) + largest, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def count_pairs(sets):
    """Return the number of pairs of a block and a row of its risk set."""
    nodes, total = sets.parent.shape[0], 0
    size = np.zeros(nodes, dtype=np.int64)
    for v in range(nodes):
        size[v] = sets.start[v + 1] - sets.start[v]
        if sets.parent[v] >= 0:
            size[v] += size[sets.parent[v]]
    for b in range(sets.node.shape[0]):
        total += size[sets.node[b]] + sets.block_start[b + 1] - sets.block_start[b]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def newton(Z, sets, penalty, theta, near, bar, close):
    """Overwrite theta by the fit of some columns, starting from theta; return the computed value.

    Parameters
    ----------
    Z : Columns
        Columns.
    sets : RiskSets
        Risk sets.
    penalty : (k,) array
        Ridge.
    theta : (k,) array
        Start, then fit.
    near : float
        Squared decrement, as a share of the value, at which a last step is taken.
    bar, close : float, float
        Early end: at a squared decrement up to `close`, if the point may prove that the minimum is above `bar`.
    """
    k = Z.places.shape[0]
    state = new_state(sets)
    f, size = evaluate(Z, sets, penalty, theta, state)
    d, H, ahead, diagonal, last = np.empty(k), np.empty((k, k)), np.empty(k), np.empty(k), np.inf
    for _ in range(MAX_NEWTON_STEPS if k else 0):
        gradient(Z, sets, penalty, theta, state, d)
        fill_hessian(Z, sets, penalty, state, H, diagonal)
        if not cholesky_in_place(H, k):
            break
        solve_lower(H, d, k)
        decrement = dot(d, d, k)
        if decrement <= close and f - decrement > bar:
            break
        solve_upper(H, d, k)
        step = 1.0
        while step > 1e-12:
            copy_vector(theta - step * d, ahead)
            value, _ = evaluate(Z, sets, penalty, ahead, state)
            rounding = 1e-13 * f + 16.0 * EPS * size
            if value <= f - 1e-4 * step * decrement or (decrement < STALLED * f and value <= f + rounding):
                break
            step *= 0.5
        if not step > 1e-12:
            break
        copy_vector(ahead, theta)
        f = value
        if decrement <= near * f or 0.5 * last < decrement < STALLED * f:
            break
        last = decrement
    return f


class CoxPoint(NamedTuple):
    """F about one point.

    Attributes
    ----------
    value, off : float
        Value, and a bound on its rounding error.
    doubt : float
        Relative rounding error of the Hessian; inf if nothing can be proved.
    g, noise : (k,) arrays
        Gradient, and bounds on its rounding errors.
    inverse : (k, k) array
        Inverse of the lower Cholesky factor of the Hessian.
    """

    value: float
    off: float
    doubt: float
    g: np.ndarray
    noise: np.ndarray
    inverse: np.ndarray


@njit(cache=True, nogil=True, error_model="numpy")
def bound_value_rounding(Z, sets, theta, size, state):
    """Return bounds on the rounding error of a value, of exponents, and of the relative weights of rows.

    The sums of a path have at most `depth` additions and changes of the peak, which add up to the range of exponents.
    The terms of a block are added one by one, and the blocks with compensation. An error of an exponent or a sum moves
    a term of one event by at most the share of the other rows.
    """
    k, n = Z.places.shape[0], Z.W.shape[1]
    low, high, widest = np.inf, -np.inf, 0.0
    off = np.zeros(n)
    for a in range(k):
        t, column = abs(theta[a]), Z.W[Z.places[a]]
        for i in range(n):
            off[i] += t * abs(column[i])
    for i in range(n):
        if sets.weight[i] > 0.0:
            low, high, widest = min(low, state.eta[i]), max(high, state.eta[i]), max(widest, off[i])
    most, moved = 0, 0.0
    for b in range(sets.node.shape[0]):
        most = max(most, sets.block_start[b + 1] - sets.block_start[b])
        moved += sets.omega[b] * sets.n_terms[b] * _share_of_others(sets, state, b)
    widest *= (k + 5) * EPS
    relative = (2.0 * sets.depth + 2.0 * max(high - low, 0.0) + 24.0) * EPS
    return 2.02 * moved * widest + moved * relative + (12.0 + 2.0 * most) * EPS * size, widest, relative


@njit(cache=True, nogil=True, error_model="numpy")
def look(Z, sets, penalty, theta, state):
    """Return F about a point, with bounds on all rounding errors; fill the state, with `pull` for the gradient."""
    k, n = Z.places.shape[0], Z.W.shape[1]
    g, noise, H, inverse, diagonal = np.empty(k), np.empty(k), np.empty((k, k)), np.zeros((k, k)), np.empty(k)
    value, size = evaluate(Z, sets, penalty, theta, state)
    off, widest, relative = bound_value_rounding(Z, sets, theta, size, state)
    off += (k + 8.0) * EPS * abs(value)
    for a in range(k):
        off += 8.0 * EPS * penalty[a] * theta[a] ** 2
    if not (widest <= LARGEST_ROUNDING and relative <= LARGEST_ROUNDING and value < np.inf):
        return CoxPoint(np.inf, 0.0, np.inf, g, noise, inverse)
    fill_hessian(Z, sets, penalty, state, H, diagonal)
    gradient(Z, sets, penalty, theta, state, g)
    error = 3.0 * relative + 2.2 * widest + (n + 8) * EPS
    for a in range(k):
        s, column = 0.0, Z.W[Z.places[a]]
        for i in range(n):
            s += abs(column[i]) * (state.pull[i] + state.fall[i])
        noise[a] = error * s + 32.0 * EPS * penalty[a] * abs(theta[a])
    if not cholesky_in_place(H, k):
        return CoxPoint(value, off, np.inf, g, noise, inverse)
    invert_lower(H, inverse, k)
    trace = 0.0
    for a in range(k):
        square = 0.0
        for b in range(a, k):
            square += inverse[b, a] ** 2
        trace += diagonal[a] * square
    doubt = k * (5.0 * error + (2 * k + 40) * EPS) * trace
    return CoxPoint(value, off, doubt if doubt <= LARGEST_DOUBT else np.inf, g, noise, inverse)


@njit(cache=True, nogil=True, error_model="numpy")
def bound_minimum(Z, sets, penalty, theta):
    """Return bounds on F at theta and on its minimum over some columns: `(upper, lower, radius, rounding)`.

    Parameters
    ----------
    Z, sets, penalty, theta
        Data and point, as in `newton`; theta is any point, and the bounds are good if it is nearly the optimum.

    Returns
    -------
    upper, lower : float
        Upper bound on F at theta, and lower bound on the minimum; 0, which is always valid, if nothing is proved.
    radius : float
        Radius of a ball in the norm of the Hessian that contains the optimum; inf if nothing is proved.
    rounding : float
        Bound on the rounding error of the value.
    """
    k, n = Z.places.shape[0], Z.W.shape[1]
    state = new_state(sets)
    at = look(Z, sets, penalty, theta, state)
    if k == 0:
        return at.value + at.off, max(at.value - at.off, 0.0), 0.0, at.off
    if not at.doubt < np.inf:
        return at.value + at.off, 0.0, np.inf, at.off
    square = 0.0
    for b in range(k):
        square += dot(at.inverse[b], at.g, b + 1) ** 2
    delta = (np.sqrt(square) * (1.0 + at.doubt) + bound_norm(at.inverse, at.noise)) * (1.0 + at.doubt)
    fill_squared_lengths(at.inverse, Z, state.pull)
    longest = 0.0
    for i in range(n):
        longest = max(longest, state.pull[i] if sets.weight[i] > 0.0 else 0.0)
    longest = 2.0 * np.sqrt(longest) * (1.0 + at.doubt)
    rho = 2.0 * delta
    for _ in range(MAX_RADII):
        kappa = worst_ratio(rho * longest) * (1.0 - 2.0 * at.doubt)
        if not kappa > 1e-9:
            break
        if rho * kappa >= 2.0 * delta:
            drop = 0.5 * delta * delta / kappa * (1.0 + 1e-9)
            return at.value + at.off, max(at.value - at.off - drop, 0.0), rho, at.off
        rho = 2.0 * delta / kappa * 1.001
    return at.value + at.off, 0.0, np.inf, at.off


@njit(cache=True, nogil=True, error_model="numpy")
def fit_and_prove(Z, sets, penalty, theta, bar):
    """Return `(upper, lower, radius)` at a fit by `newton`, with more steps or from 0 if it proves little.

    Parameters
    ----------
    Z, sets, penalty, theta
        Data and point, as in `newton`; theta is overwritten by the fit.
    bar : float
        Cutoff: a minimum that is proved to be above it need not be known more accurately.
    """
    for close in PROOF_DECREMENTS:
        newton(Z, sets, penalty, theta, ROUGH_DECREMENT if close > 0.0 else LAST_DECREMENT, bar, close)
        upper, lower, radius, rounding = bound_minimum(Z, sets, penalty, theta)
        if lower > bar or upper - lower <= TIGHT * upper + 4.0 * rounding < np.inf:
            return upper, lower, radius
    if radius < np.inf:
        return upper, lower, radius
    again = np.zeros(theta.shape[0])
    newton(Z, sets, penalty, again, LAST_DECREMENT, np.inf, 0.0)
    high, low, reach, _ = bound_minimum(Z, sets, penalty, again)
    if high < upper or reach < radius:
        copy_vector(again, theta)
        return high, low, reach
    return upper, lower, radius


@njit(cache=True, nogil=True, error_model="numpy")
def refit(rows, masks, points, bar, sure, ends):
    """Fit supports one by one, and write proved bounds on each minimum.

    Parameters
    ----------
    rows : CoxRows
        Rows.
    masks : (L, p) bool array
        Supports.
    points : (L, p) array
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
        Z = Columns(rows.W, places)
        theta = np.empty(places.shape[0])
        for a in range(places.shape[0]):
            theta[a] = points[row, places[a]]
        tested = not sure and bar < np.inf
        if tested and newton(Z, rows.sets, penalty, theta, ROUGH_DECREMENT, bar, PROOF_DECREMENTS[0]) > bar:
            upper[row], lower[row], radius[row] = np.inf, 0.0, np.inf
            continue
        upper[row], lower[row], radius[row] = fit_and_prove(Z, rows.sets, penalty, theta, bar)
        points[row] = 0.0
        for a in range(places.shape[0]):
            points[row, places[a]] = theta[a]


@njit(cache=True, nogil=True, error_model="numpy")
def bound_held_out(rows, every, mask, point, radius):
    """Return bounds on `l_all - l_train` at the exact fit of a support, and its value at the point.

    The exact fit is in a ball of the given radius about the point, in the norm of the Hessian of the training rows. In
    it no exponent changes by more than `c = radius * s`, so each partial likelihood differs from its linear part by at
    most `c^2 / 2` for each event.

    Parameters
    ----------
    rows : CoxRows
        Training rows.
    every : RiskSets
        Risk sets of the training and the scored rows.
    mask, point, radius : (p,) bool array, (p,) array, float
        Support with its result of `refit`.
    """
    places, penalty = merge_copies(rows, mask)
    Z, k, n = Columns(rows.W, places), places.shape[0], rows.W.shape[1]
    theta, nothing = np.empty(k), np.zeros(k)
    for a in range(k):
        theta[a] = point[places[a]]
    whole, part = new_state(every), new_state(rows.sets)
    at = look(Z, rows.sets, penalty, theta, part)
    fill_row_weights(rows.sets, part)
    value, size = evaluate(Z, every, nothing, theta, whole)
    off, widest, relative = bound_value_rounding(Z, every, theta, size, whole)
    fill_row_weights(every, whole)
    trained, train_size = evaluate(Z, rows.sets, nothing, theta, part)
    train_off, train_widest, train_relative = bound_value_rounding(Z, rows.sets, theta, train_size, part)
    held_out = value - trained
    off += train_off + 4.0 * EPS * (abs(value) + abs(trained))
    if k == 0:
        return held_out - off, held_out + off, held_out
    if not (at.doubt < np.inf and radius < np.inf and widest <= LARGEST_ROUNDING and relative <= LARGEST_ROUNDING):
        return 0.0, np.inf, held_out
    slope, noise, work = np.empty(k), np.empty(k), np.empty(n)
    error = 3.0 * (relative + train_relative) + 2.2 * (widest + train_widest) + (2 * n + 16) * EPS
    for i in range(n):
        work[i] = (whole.pull[i] - part.pull[i]) - (whole.fall[i] - part.fall[i])
    for a in range(k):
        column, s = Z.W[places[a]], 0.0
        slope[a] = dot(column, work, n)
        for i in range(n):
            s += abs(column[i]) * (whole.pull[i] + part.pull[i] + whole.fall[i] + part.fall[i])
        noise[a] = error * s
    square = 0.0
    for b in range(k):
        square += dot(at.inverse[b], slope, b + 1) ** 2
    fill_squared_lengths(at.inverse, Z, work)
    longest = 0.0
    for i in range(n):
        longest = max(longest, work[i] if every.weight[i] > 0.0 else 0.0)
    reach, doubt = radius * np.sqrt(longest) * (1.0 + 2.0 * at.doubt), 1.0 + 2.0 * at.doubt
    half = radius * (np.sqrt(square) + bound_norm(at.inverse, noise)) * doubt
    weight = 0.0
    for i in range(n):
        weight += every.event_weight[i] + rows.sets.event_weight[i]
    half += 0.5 * weight * reach * reach + off
    half *= 1.0 + 1e-9
    return held_out - half, held_out + half, held_out
