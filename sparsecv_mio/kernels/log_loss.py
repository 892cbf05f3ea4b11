"""The log loss of rows, `l(m) = log(1 + exp(-m))` of a margin m: values, slopes, curvatures and rounding errors."""

import numpy as np

from sparsecv_mio.kernels.jit import njit

EPS = 2.220446049250313e-16
FARTHEST = 700.0  # margin whose loss is 0 in floating point
LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUNDER = 6755399441055744.0  # 1.5 * 2^52: what is added to it loses its fraction


@njit(cache=True, nogil=True, error_model="numpy")  # no branch for divisions by zero, which cannot occur
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
    """Compute `row_losses.roundings`: `|l(m + e) - l(m)| <= 2 e s`, s the share `1 / (1 + exp(m))`.

    The share s moves by at most 2 e s.
    """
    n, total = off.shape[0], 0.0
    for i in range(n):
        e, s = off[i], state.falls[i]
        total += v[i] * (2.0 * e * s + 10.0 * EPS * state.losses[i])
        out[i] = v[i] * s * (2.0 * e + (n + 16) * EPS)
    return total
