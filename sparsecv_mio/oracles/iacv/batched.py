"""Squared loss: proximal gradient descent of every fold at once, exactly (theory section 8).

The Taylor step of the method is exact for a quadratic, so its iterates are the left-out iterates. A step takes one
matrix product for all folds, `Theta Q - C`, and a correction by each fold's own rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv.erm import Erm, fold_indicator
from sparsecv_mio.oracles.iacv.losses import Squared
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
    erm: Erm,
    *,
    intercept: bool = False,
    steps: int = 500,
    tolerance: float = 1e-10,
    begin: FloatArray | None = None,
) -> FoldFits:
    """Run proximal gradient descent on `sum_(i not in N_j) (y_i - b0 - x_i' theta)^2 + lam pi(theta)`, every fold j.

    With :class:`~sparsecv_mio.oracles.iacv.penalties.KSupport` these are the perspective relaxations (P) of theory
    section 1. The points are estimates: they may order a search or propose supports; the dual value of their
    residuals is what may prune.

    Parameters
    ----------
    erm : Erm
        Rows, folds and a proximable penalty; the loss is the squared one.
    intercept : bool
        Profile out an unpenalised intercept by the means of each training set.
    steps : int
        Most steps taken.
    tolerance : float
        Relative size of a step at which to stop.
    begin : (k, p) array, optional
        Starting points; zeros unless given.

    Returns
    -------
    FoldFits
        O(k p^2 + n p) time per step, O((n + k) p + p^2) memory.

    Raises
    ------
    BadInput
        The penalty has no proximal map, or the loss is another one.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.oracles.iacv import Ridge
    >>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 4.0])
    >>> fits = fold_fits(Erm(X, y, Squared(), Ridge(), 0.0))
    >>> fits.theta.ravel().round(6).tolist()
    [1.230769, 1.3, 1.0]
    """
    penalty, lam, k, p = erm.penalty, erm.lam, erm.k, erm.p
    if not penalty.proximable:
        raise BadInput(f"penalty {penalty.name} has no proximal map")
    if not isinstance(erm.loss, Squared):
        raise BadInput(f"the fits of all folds at once are those of the squared loss, not of {erm.loss.name}")
    labels = np.arange(erm.n) if erm.labels is None else erm.labels
    x_mean, y_mean = (erm.X.mean(axis=0), float(erm.y.mean())) if intercept else (np.zeros(p), 0.0)
    X, y = erm.X - x_mean, erm.y - y_mean
    trained = labels.size - np.bincount(labels[labels >= 0], minlength=k)
    # all rows together have mean zero, so the sum over a training set is minus the sum over its fold
    by_fold = fold_indicator(labels, k)
    m_x = -(by_fold @ X) / trained[:, None] if intercept else np.zeros((k, p))
    m_y = -(by_fold @ y) / trained if intercept else np.zeros(k)
    Q, c = X.T @ X, X.T @ y

    def gradient(Theta: FloatArray) -> FloatArray:
        own = np.einsum("ij,ij->i", X, Theta[labels]) - y
        half = Theta @ Q - c - by_fold @ (own[:, None] * X)
        if intercept:
            half -= (trained * (np.einsum("ij,ij->i", m_x, Theta) - m_y))[:, None] * m_x
        return 2.0 * half

    step = 0.5 / max(float(np.linalg.eigvalsh(Q)[-1]), np.finfo(float).tiny)
    Theta = np.zeros((k, p)) if begin is None else begin
    Theta, taken = accelerated(gradient, lambda V: penalty.prox(V, step * lam), Theta, step, steps, tolerance)
    level = y_mean + m_y - np.einsum("ij,ij->i", x_mean + m_x, Theta) if intercept else np.zeros(k)
    return FoldFits(Theta, level, taken)
