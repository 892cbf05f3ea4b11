"""The Poisson loss of counts with log link, half the deviance of a row: `l(t) = exp(t) - y t - (y - y log y)`.

y is the rate of the row and t its linear predictor. With `u = t - log y` and `mu = exp(t)` the loss is `y (exp(u) - 1 -
u)`, which is accurate if mu is near y; for y = 0 it is mu. The second and the third derivative are mu.
:mod:`sparsecv_mio.problem.row_losses` computes the same loss with numpy.
"""

import numpy as np

from sparsecv_mio.kernels.jit import njit

EPS = 2.220446049250313e-16


@njit(cache=True, nogil=True, error_model="numpy")
def half_deviances(margins, y, falls, means, losses):
    """Fill `y - mu`, `mu` and the losses of rows; infinite ones if mu overflows.

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
    """Compute `row_losses.roundings`: l moves by up to `|l'| e + mu e^2` for e up to 1; e includes u's rounding."""
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
