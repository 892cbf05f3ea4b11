r"""Leaving a fold out of a ridge fit in closed form: what the fit on all rows says of the fold's own fit.

Notation of docs/theory.md, section 5. `f` is the training objective on all rows, `f^(-N)` that without the rows of the
fold N. For a support S, with `e_N` the residuals of the held-out rows in the fit of S on all rows and `H_NN` their
block of the hat matrix (plus `1/n` in every entry where an intercept is profiled out, or, of weighted rows, which are
times the roots of their weights, the product of these over the weight of all rows),

    f^(-N)(S) = f(S) - e_N' (I - H_NN)^{-1} e_N,        held-out residuals = (I - H_NN)^{-1} e_N.

:mod:`sparsecv_mio.kernels.leave_out` evaluates these for listed supports. The functions here need no support: they use
the fit on *all* columns only, `residual = ||e_N||` and `leverage`, the largest eigenvalue of `H_NN`, both rounded up.
"""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.bounds.ridge_ball import ball_of_left_out

WIDEST_LEVERAGE = 0.45  # of a fold, beyond which `objective_threshold` says nothing: it diverges at one half
LARGEST_LEVERAGE = 0.99  # of a fold, beyond which dividing by `1 - leverage` loses too many digits
OUTWARD = 1e-8  # relative, of bounds computed from leverages and residuals


def largest_decrease(residual: FloatArray, leverage: FloatArray) -> FloatArray:
    """Most by which leaving the fold out lowers the objective of the fit on all columns.

    `f(A) - f^(-N)(A) = e_N' (I - H_NN)^{-1} e_N <= ||e_N||^2 / (1 - leverage)`, A all columns.

    Parameters
    ----------
    residual, leverage : arrays of one shape

    Returns
    -------
    array
        inf where the leverage is 1 or more.

    Examples
    --------
    >>> largest_decrease(np.array([3.0, 1.0]), np.array([0.1, 1.0])).tolist()
    [10.0, inf]
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = residual**2 / (1.0 - leverage)
    return np.where(leverage < 1.0, found, np.inf)


def objective_threshold(excess: FloatArray, residual: FloatArray, leverage: FloatArray) -> FloatArray:
    """Largest `f(S) - f(A)`, on all rows, of a support that may still win a fold; A all columns.

    A support wins the fold only if `f^(-N)(S) <= cutoff`, and (joint bound of section 5) `f(S) - f^(-N)(S) <=
    (||e_N|| + sqrt(leverage (f(S) - f(A))))^2 / (1 - leverage)`. With `u^2 = f(S) - f(A)` and `excess = cutoff - f(A)`

        u^2 - (residual + sqrt(leverage) u)^2 / (1 - leverage) <= excess,

    a quadratic in u whose larger root bounds u where the leverage is below one half.

    Parameters
    ----------
    excess : array
        `cutoff - f(A)`, at least; broadcast against the other two.
    residual, leverage : arrays of one shape

    Returns
    -------
    array
        `u^2`, as computed: the caller rounds it up. inf where the leverage is `WIDEST_LEVERAGE` or more; where the
        quadratic has no root (no support can win) it is evaluated at discriminant 0.

    Examples
    --------
    >>> objective_threshold(np.array([3.0]), np.array([1.0]), np.array([0.0])).tolist()
    [4.0]
    """
    safe = np.where(leverage < WIDEST_LEVERAGE, leverage, 0.0)
    a = (1.0 - 2.0 * safe) / (1.0 - safe)
    b = residual * np.sqrt(safe) / (1.0 - safe)
    c = residual**2 / (1.0 - safe) + excess
    with np.errstate(invalid="ignore"):
        u = (b + np.sqrt(np.maximum(b * b + a * c, 0.0))) / a
    return np.where(leverage < WIDEST_LEVERAGE, u * u, np.inf)


def held_out_ceiling(cutoff: FloatArray, lower: float, residual: FloatArray, leverage: FloatArray) -> FloatArray:
    """Upper bound of the held-out error of every b with `f^(-N)(b) <= cutoff`: the fold's ridge ball, from all rows.

    See :func:`sparsecv_mio.bounds.ridge_ball.ball_of_left_out`; with b0 the fold's ridge fit on all columns,
    `f^(-N)(b0) >= f(A) - largest_decrease`.

    Parameters
    ----------
    cutoff : array
        Broadcast against `residual` and `leverage`.
    lower : float
        At most `f(A)`, the objective of all columns on all rows.
    residual, leverage : arrays of one shape

    Returns
    -------
    array
        Rounded up by `OUTWARD`; inf where the leverage is `LARGEST_LEVERAGE` or more.

    Examples
    --------
    >>> held_out_ceiling(np.array([5.0]), 1.0, np.array([1.0]), np.array([0.0])).round(6).tolist()
    [1.0]
    """
    with np.errstate(invalid="ignore", over="ignore"):
        room = cutoff - (lower - largest_decrease(residual, leverage))
        most = ball_of_left_out(room, residual, leverage) * (1.0 + OUTWARD)
    return np.where(leverage < LARGEST_LEVERAGE, most, np.inf)
