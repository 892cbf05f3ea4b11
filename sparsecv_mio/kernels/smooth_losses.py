"""Kernels that compute the loss of a row, a smooth convex function l >= 0 of the margin, for each kind of loss.

docs/theory/glm.md, section 11, lists the requirements on l. For each loss, one function computes values and
derivatives, and another function bounds their rounding errors. The argument `loss` of other functions selects the loss.
:mod:`sparsecv_mio.problem.row_losses` has the same losses in numpy.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.dense import EPS
from sparsecv_mio.kernels.jit import njit

FARTHEST = 700.0  # margin whose loss is 0 in floating point
LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUNDER = 6755399441055744.0  # 1.5 * 2^52: what is added to it loses its fraction
LOGISTIC, POISSON, SHIFTED_LOGISTIC = range(3)
UNKNOWN = "kernels have no loss of this code: add a line for it to kernels/smooth_losses"


class Response(NamedTuple):
    """Data of the losses of rows.

    Attributes
    ----------
    v : (n,) array
        Weights > 0.
    y : (n,) array
        Targets; with logistic loss 1 and -1, by which predictors are multiplied to give margins. If rows have offsets,
        the sign of y multiplies the predictor, and `log |y|` is added to the margin.
    loss : int
        LOGISTIC, POISSON, or SHIFTED_LOGISTIC for logistic loss with offsets.
    """

    v: np.ndarray
    y: np.ndarray
    loss: int


class State(NamedTuple):
    """Work arrays of a fit, by row: margins, `falls` -l', `others`, losses, and two work arrays.

    `others` is l'' or, with logistic loss, the factor by which falls are multiplied to give l'': 1 minus the fall.
    """

    margins: np.ndarray
    falls: np.ndarray
    others: np.ndarray
    losses: np.ndarray
    work: np.ndarray
    bits: np.ndarray


@njit(cache=True, nogil=True, error_model="numpy")
def half_deviances(margins, y, falls, means, losses):
    """Fill `y - mu`, `mu` and the losses of rows, `exp(t) - y t - (y - y log y)`; infinite ones if mu overflows.

    y is the rate of the row and t its linear predictor. With `u = t - log y` and `mu = exp(t)` the loss is `y (exp(u) -
    1 - u)`, which is accurate if mu is near y; for y = 0 it is mu. The second and the third derivative are mu.

    Parameters
    ----------
    margins, y : (n,) arrays
        Linear predictors, and counts >= 0 (divided by exposures).
    falls, means, losses : (n,) arrays
        Arrays to fill.
    """
    for i in range(margins.shape[0]):
        t, count = margins[i], y[i]
        if count > 0.0:
            u = t - np.log(count)
            if u > -0.5:
                grown = np.expm1(u)
                means[i] = count + count * grown
            else:
                means[i] = count * np.exp(u)
                grown = means[i] / count - 1.0
            falls[i] = -count * grown
            losses[i] = max(count * (grown - u), 0.0)
        else:
            means[i] = np.exp(t)
            falls[i], losses[i] = -means[i], means[i]


@njit(cache=True, nogil=True, error_model="numpy")
def half_deviance_roundings(v, y, state, off, out):
    """Compute `roundings`: l moves by up to `|l'| e + mu e^2` for e up to 1; e includes u's rounding."""
    n, total = off.shape[0], 0.0
    for i in range(n):
        t, mean, fall = state.margins[i], state.others[i], abs(state.falls[i])
        level, far = 0.0, 0.0
        if y[i] > 0.0:
            level = np.log(y[i])
            far = y[i] * abs(t - level)
        off[i] += 2.0 * EPS * (abs(t) + abs(level) + 1.0)
        e = off[i]
        total += v[i] * (fall * e + mean * e * e + 10.0 * EPS * (fall + far))
        out[i] = v[i] * (2.0 * mean * e + (n + 16) * EPS * fall)
    return total


# no branch for divisions by zero, which cannot occur; one rounding of a product and a sum cannot be less exact than two
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def log_losses(margins, shares, others, losses, rest, bits):
    """Fill `1 / (1 + exp(m))`, `1 / (1 + exp(-m))` and `log(1 + exp(-m))`, each within 8 roundings of the exact number.

    `exp(-|m|) = 2^-k exp(-r)`, `|r| <= log(2) / 2`, is computed by Taylor's polynomial, and
    `log(1 + e) = 2 artanh(e / (2 + e))` by its series: loops without calls, which compilers vectorise over rows.

    Parameters
    ----------
    margins, shares, others, losses : (n,) arrays
        Margins, and arrays to fill.
    rest : (n,) array
        Work array.
    bits : (n,) int array
        Work array.
    """
    n = margins.shape[0]
    powers = bits.view(np.float64)
    for i in range(n):
        m = min(abs(margins[i]), FARTHEST)
        k = (m * LOG2_E + ROUNDER) - ROUNDER
        rest[i] = (k * LN2_HIGH - m) + k * LN2_LOW
        bits[i] = (1023 - np.int64(np.int32(k))) << 52
    for i in range(n):
        r = rest[i]
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = (p * r * r + r) + 1.0
        e = p * powers[i]
        large = 1.0 / (1.0 + e)
        small = e * large
        s = e / (2.0 + e)
        t = s * s
        q = 1.0 / 33.0
        q = q * t + 1.0 / 31.0
        q = q * t + 1.0 / 29.0
        q = q * t + 1.0 / 27.0
        q = q * t + 1.0 / 25.0
        q = q * t + 1.0 / 23.0
        q = q * t + 1.0 / 21.0
        q = q * t + 1.0 / 19.0
        q = q * t + 1.0 / 17.0
        q = q * t + 1.0 / 15.0
        q = q * t + 1.0 / 13.0
        q = q * t + 1.0 / 11.0
        q = q * t + 1.0 / 9.0
        q = q * t + 1.0 / 7.0
        q = q * t + 1.0 / 5.0
        q = q * t + 1.0 / 3.0
        q = 2.0 * (s + s * t * q)
        m = margins[i]
        right = m > 0.0
        shares[i] = small if right else large
        others[i] = large if right else small
        losses[i] = q if right else q - m


@njit(cache=True, nogil=True, error_model="numpy")
def log_loss_roundings(v, state, off, out):
    """Compute `roundings`: `|l(m + e) - l(m)| <= 2 e s`, s the share `1 / (1 + exp(m))`.

    The share s moves by at most 2 e s.
    """
    n, total = off.shape[0], 0.0
    for i in range(n):
        e, s = off[i], state.falls[i]
        total += v[i] * (2.0 * e * s + 10.0 * EPS * state.losses[i])
        out[i] = v[i] * s * (2.0 * e + (n + 16) * EPS)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def fill_shifted(margins, y, state):
    """Fill falls, others and losses of logistic loss at margins plus `log |y|`."""
    shifted = state.losses  # `log_losses` reads each entry before it writes the loss there
    for i in range(margins.shape[0]):
        shifted[i] = margins[i] + np.log(abs(y[i]))
    log_losses(shifted, state.falls, state.others, state.losses, state.work, state.bits)


@njit(cache=True, nogil=True, error_model="numpy")
def add_shift_roundings(y, state, off):
    """Add the rounding errors of `log |y|` and of its sum with the margin to bounds on the errors of margins."""
    for i in range(off.shape[0]):
        off[i] += 2.0 * EPS * (abs(state.margins[i]) + abs(np.log(abs(y[i]))) + 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def new_state(n):
    """Return arrays for n rows."""
    return State(np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n, dtype=np.int64))


@njit(cache=True, nogil=True, error_model="numpy")
def margin_sign(response, i):
    """Return the factor from the predictor of a row to its margin."""
    if response.loss == POISSON:
        return 1.0
    return 1.0 if response.y[i] > 0.0 else -1.0


@njit(cache=True, nogil=True, error_model="numpy")
def multiply_by_signs(response, values):
    """Multiply one value for each row by its `margin_sign`, in place."""
    y = response.y
    if response.loss != POISSON:
        for i in range(values.shape[0]):
            values[i] = values[i] if y[i] > 0.0 else -values[i]


@njit(cache=True, nogil=True, error_model="numpy")
def fill(response, margins, state):
    """Fill falls, others and losses of a state at its margins, each within 8 roundings of its parts."""
    if response.loss == LOGISTIC:
        log_losses(margins, state.falls, state.others, state.losses, state.work, state.bits)
    elif response.loss == POISSON:
        half_deviances(margins, response.y, state.falls, state.others, state.losses)
    elif response.loss == SHIFTED_LOGISTIC:
        fill_shifted(margins, response.y, state)
    else:
        raise ValueError(UNKNOWN)


@njit(cache=True, nogil=True, error_model="numpy")
def curvatures(response, state, out):
    """Fill `v l''` at a state."""
    v = response.v
    if response.loss == LOGISTIC or response.loss == SHIFTED_LOGISTIC:  # noqa: PLR1714 - numba compiles no set
        for i in range(out.shape[0]):
            out[i] = v[i] * state.falls[i] * state.others[i]
    elif response.loss == POISSON:
        for i in range(out.shape[0]):
            out[i] = v[i] * state.others[i]
    else:
        raise ValueError(UNKNOWN)


@njit(cache=True, nogil=True, error_model="numpy")
def roundings(response, state, off, out):
    """Return a bound on the rounding of the weighted sum of losses; fill bounds on that of `v l'`, row by row.

    Both include the rounding of sums.

    Parameters
    ----------
    response : Response
        Data.
    state : State
        State.
    off : (n,) array
        Bounds on the errors of margins, at most 1/2; raised by the error that the loss adds.
    out : (n,) array
        Array to fill.
    """
    if response.loss == LOGISTIC:
        return log_loss_roundings(response.v, state, off, out)
    if response.loss == POISSON:
        return half_deviance_roundings(response.v, response.y, state, off, out)
    if response.loss == SHIFTED_LOGISTIC:
        add_shift_roundings(response.y, state, off)
        return log_loss_roundings(response.v, state, off, out)
    raise ValueError(UNKNOWN)
