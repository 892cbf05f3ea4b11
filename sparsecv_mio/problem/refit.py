"""Refit of one support from the rows themselves: orthogonal factorisation where the moments lose too many digits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.standard import Intercept, StandardData
from sparsecv_mio.problem.problem import FloatArray

ROUNDING = 64.0 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class RowFit:
    """A fit in standard coordinates: prediction of a row v is `r_mean + (v_S - v_mean)' beta`.

    `spread` bounds the rounding error of each coefficient, `objective_error` that of the objective.
    """

    beta: FloatArray
    spread: FloatArray
    objective: float
    objective_error: float
    v_mean: FloatArray
    r_mean: float


def refit_rows(
    data: StandardData, rows: NDArray[np.int64] | slice, support: NDArray[np.int64], gamma: float
) -> RowFit:
    """Fit `support` on training rows by QR of `[V_S; sqrt(lam weight)]`.

    Parameters
    ----------
    data : StandardData
    rows : int array or slice
        Training rows.
    support : (s,) int array
        Columns in standard coordinates.
    gamma : float

    Notes
    -----
    O(n s^2). Columns are brought to length one before the factorisation. The error bounds are first order:
    `eps (||R^{-1}|| (||y|| ...))` with the usual constants for Householder QR.
    """
    V, r = data.rows(rows)
    V = V[:, support]
    r = np.asarray(r, dtype=float)
    if data.intercept is Intercept.FOLD:
        v_mean, r_mean = V.mean(axis=0), float(r.mean())
    else:
        v_mean, r_mean = np.zeros(len(support)), 0.0
    root = np.sqrt(gamma / 2.0 * data.weight[support])
    A = np.vstack([V - v_mean, np.diag(root)])
    b = np.concatenate([r - r_mean, np.zeros(len(support))])
    size = np.linalg.norm(A, axis=0)
    size[size == 0.0] = 1.0
    A /= size
    orthogonal, R = np.linalg.qr(A)
    beta = np.linalg.solve(R, orthogonal.T @ b) if len(support) else np.zeros(0)
    residual = b - A @ beta
    if len(support):
        step = np.linalg.solve(R, orthogonal.T @ residual)
        beta = beta + step
        residual = b - A @ beta
        inverse = np.linalg.inv(R)
        reach = np.linalg.norm(inverse, axis=1)
        tail = float(np.linalg.norm(inverse, 2)) * float(np.linalg.norm(residual))
        spread = ROUNDING * reach * (float(np.linalg.norm(b)) + float(np.abs(beta).sum()) + tail)
    else:
        spread = np.zeros(0)
    objective = float(residual @ residual)
    norm = float(np.abs(residual) @ (np.abs(b) + np.abs(A) @ np.abs(beta)))
    return RowFit(beta / size, spread / size, objective, ROUNDING * norm, v_mean, r_mean)
