"""Squared loss: every fold's proximal gradient run at once, exactly (theory section 8).

The Taylor step of the method is exact for a quadratic, so its iterates are the left-out iterates. What is left is one
matrix product per step for all folds, `Theta Q - C`, and a correction by each fold's own rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.data.dataset import FloatArray, IntArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv.erm import fold_indicator
from sparsecv_mio.oracles.iacv.penalties import Penalty
from sparsecv_mio.oracles.iacv.proximal import accelerated


@dataclass(frozen=True, eq=False)
class FoldFits:
    """Fits of all folds.

    Attributes
    ----------
    theta : (k, p) array
        Coefficients of the fit without fold j.
    intercept : (k,) array
        Its intercept; zeros when none was asked for.
    steps : int
        Proximal gradient steps taken.
    """

    theta: FloatArray
    intercept: FloatArray
    steps: int


def fold_fits(
    X: FloatArray,
    y: FloatArray,
    labels: IntArray,
    penalty: Penalty,
    lam: float,
    *,
    intercept: bool = False,
    steps: int = 500,
    tolerance: float = 1e-10,
    accelerate: bool = True,
    begin: FloatArray | None = None,
) -> FoldFits:
    """Run proximal gradient on `sum_(i not in N_j) (y_i - b0 - x_i' theta)^2 + lam * pi(theta)` for every fold j.

    With :class:`~sparsecv_mio.oracles.iacv.penalties.KSupport` these are the perspective relaxations (P) of theory
    section 1. The points are estimates: they may order a search or propose supports; the dual value of their
    residuals is what may prune.

    Parameters
    ----------
    X, y : (n, p), (n,) array
        Columns and response.
    labels : (n,) int array
        Fold of each row, 0 .. k-1, or -1 for a row that is always trained on.
    penalty : Penalty
        Proximable penalty.
    lam : float
        Its weight, >= 0.
    intercept : bool
        Profile out an unpenalised intercept by the means of each training set.
    steps, tolerance : int, float
        Most steps, and the relative size of a step at which to stop.
    accelerate : bool
        Momentum with restarts; without it the iterates are those of plain proximal gradient with step `1 / (2 L)`, L
        the largest eigenvalue of X'X.
    begin : (k, p) array, optional
        Starting points; zeros unless given.

    Returns
    -------
    FoldFits
        O(k p^2 + n p) time per step, O((n + k) p + p^2) memory.

    Raises
    ------
    BadInput
        The penalty has no proximal map, or a fold is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.oracles.iacv import Ridge
    >>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 4.0])
    >>> fits = fold_fits(X, y, np.arange(3), Ridge(), 0.0)
    >>> fits.theta.ravel().round(6).tolist()
    [1.230769, 1.3, 1.0]
    """
    if not penalty.proximable:
        raise BadInput(f"penalty {penalty.name} has no proximal map")
    k = int(labels.max(initial=-1)) + 1
    held = np.bincount(labels[labels >= 0], minlength=k)
    if k == 0 or np.any(held == 0):
        raise BadInput("labels must use every fold 0 .. k-1")
    x_mean, y_mean = (X.mean(axis=0), float(y.mean())) if intercept else (np.zeros(X.shape[1]), 0.0)
    X, y = X - x_mean, y - y_mean
    trained = labels.size - held
    # the whole is centred, so what a fold takes away is minus what its training rows add up to
    by_fold = fold_indicator(labels, k)
    m_x = -(by_fold @ X) / trained[:, None] if intercept else np.zeros((k, X.shape[1]))
    m_y = -(by_fold @ y) / trained if intercept else np.zeros(k)
    Q, c = X.T @ X, X.T @ y

    def gradient(Theta: FloatArray) -> FloatArray:
        own = np.einsum("ij,ij->i", X, Theta[labels]) - y
        half = Theta @ Q - c - by_fold @ (own[:, None] * X)
        if intercept:
            half -= (trained * (np.einsum("ij,ij->i", m_x, Theta) - m_y))[:, None] * m_x
        return 2.0 * half

    step = 0.5 / max(float(np.linalg.eigvalsh(Q)[-1]), np.finfo(float).tiny)
    Theta = np.zeros((k, X.shape[1])) if begin is None else begin
    if accelerate:
        Theta, taken = accelerated(gradient, lambda V: penalty.prox(V, step * lam), Theta, step, steps, tolerance)
    else:
        taken = steps
        for _ in range(steps):
            Theta = penalty.prox(Theta - step * gradient(Theta), step * lam)
    level = y_mean + m_y - np.einsum("ij,ij->i", x_mean + m_x, Theta) if intercept else np.zeros(k)
    return FoldFits(Theta, level, taken)
