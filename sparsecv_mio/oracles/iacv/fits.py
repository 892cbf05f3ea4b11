"""Left-out fits without a path: Newton step and infinitesimal jackknife from one point, and all folds solved at once.

The first two are meant for the minimiser of the full problem; along a trajectory they take the current iterate in its
place (the paper's section 6). The non-informative baseline is the full iterate itself.

For the squared loss the Taylor step of the method is exact, so its iterates are the left-out iterates (theory section
8). A step takes one matrix product for all folds, `Theta Q - C`, and a correction by each fold's own rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv.erm import Erm, Expansion, fold_indicator, own_rows
from sparsecv_mio.oracles.losses import Squared
from sparsecv_mio.oracles.penalties import accelerated
from sparsecv_mio.units import TINY

MAX_PROXIMAL_STEPS = 20_000
PROXIMAL_TOLERANCE = 1e-13  # relative size of the last proximal step of a left-out quadratic


def newton_step(erm: Erm, theta: FloatArray, *, proximal: bool = False) -> FloatArray:
    """Take a Newton step on every left-out problem (the paper's (3)), or a proximal Newton step (17).

    `theta - H_i^{-1} grad F(Z_-i; theta)`, `H_i` the left-out Hessian; proximal: the minimiser of
    `grad g(Z_-i)'z + 1/2 z' H_i z + h(theta + z)`, added to theta.

    Parameters
    ----------
    erm : Erm
        Problem with k left-out fits.
    theta : (p,) array
        Where to expand.
    proximal : bool
        Treat the penalty by its proximal map (needed for l1).

    Returns
    -------
    (k, p) array
        Approximate left-out fits. O(k p^3); proximal: O(k p^2) per inner step.

    Raises
    ------
    BadInput
        A left-out Hessian is singular.
    """
    taylor = Expansion(erm.loss, erm.X, erm.y, theta)
    gradients = _left_out_gradients(erm, taylor, theta, proximal)
    if proximal and erm.lam > 0.0:
        return _proximal_quadratics(erm, taylor, theta, -gradients)
    return np.asarray(theta - _solve_left_out(erm, taylor, theta, gradients))


def infinitesimal_jackknife(erm: Erm, theta: FloatArray, *, proximal: bool = False) -> FloatArray:
    """Take the step of the infinitesimal jackknife (4): a Newton step with the full Hessian for every left-out one.

    Its proximal version (19) takes the full Hessian inside and the left-out Hessian as the metric of the proximal map;
    this is as printed (theory, Errata).

    Parameters
    ----------
    erm : Erm
        Problem with k left-out fits.
    theta : (p,) array
        Where to expand.
    proximal : bool
        Treat the penalty by its proximal map.

    Returns
    -------
    (k, p) array
        Approximate left-out fits. O(p^3 + k p^2); proximal: O(k p^2) per inner step.

    Raises
    ------
    BadInput
        The Hessian is singular.
    """
    taylor = Expansion(erm.loss, erm.X, erm.y, theta)
    gradients = _left_out_gradients(erm, taylor, theta, proximal)
    H = taylor.hessian()
    if not proximal and erm.lam > 0.0:
        H = H + erm.lam * erm.penalty.hessian_times(theta, np.eye(erm.p))
    steps = -_solve(H, gradients.T).T
    if proximal and erm.lam > 0.0:
        return _proximal_quadratics(erm, taylor, theta, _left_out_times(erm, taylor, steps))
    return np.asarray(theta + steps)


def _left_out_gradients(erm: Erm, taylor: Expansion, theta: FloatArray, proximal: bool) -> FloatArray:
    """(k, p) gradient of the smooth part without each fit's rows, at theta."""
    total = taylor.total()
    if not proximal and erm.lam > 0.0:
        total = total + erm.lam * erm.penalty.gradient(theta)
    out = np.tile(total, (erm.k, 1))
    erm.take_out(out, taylor.rows(np.zeros_like(erm.X)))
    return out


def _left_out_times(erm: Erm, taylor: Expansion, D: FloatArray) -> FloatArray:
    """(k, p) row i of D times the left-out Hessian of the summed loss of fit i."""
    out = taylor.apply(D)
    erm.take_out(out, taylor.row_times(own_rows(D, erm.labels)))
    return out


def _solve(H: FloatArray, right: FloatArray) -> FloatArray:
    try:
        return np.asarray(np.linalg.solve(H, right))
    except np.linalg.LinAlgError:
        raise BadInput("a Newton step met a singular Hessian: give lam > 0 or drop redundant columns") from None


def _solve_left_out(erm: Erm, taylor: Expansion, theta: FloatArray, right: FloatArray) -> FloatArray:
    """(k, p) rows `H_i^{-1} right_i`, in blocks of about max(n, p) p numbers."""
    H = taylor.hessian()
    if erm.lam > 0.0:
        H = H + erm.lam * erm.penalty.hessian_times(theta, np.eye(erm.p))
    out = np.empty_like(right)
    size = max(1, erm.n // erm.p)
    order = np.arange(erm.n) if erm.labels is None else np.argsort(erm.labels, kind="stable")
    labels = order if erm.labels is None else erm.labels[order]
    for lo in range(0, erm.k, size):
        hi = min(lo + size, erm.k)
        if erm.labels is None:
            held = Expansion(erm.loss, erm.X[lo:hi], erm.y[lo:hi], theta).row_hessians()
        else:
            cuts = np.searchsorted(labels, np.arange(lo, hi + 1))
            groups = [order[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
            held = np.stack([Expansion(erm.loss, erm.X[rows], erm.y[rows], theta).hessian() for rows in groups])
        out[lo:hi] = _solve(H - held, right[lo:hi, :, None])[:, :, 0]
    return out


def _proximal_quadratics(erm: Erm, taylor: Expansion, theta: FloatArray, linear: FloatArray) -> FloatArray:
    """(k, p) minimisers of `1/2 d' H_i d - linear_i' d + lam pi(theta + d)`, plus theta."""
    step = 1.0 / max(float(np.linalg.eigvalsh(taylor.hessian())[-1]), TINY)
    z, _ = accelerated(
        lambda z: _left_out_times(erm, taylor, z - theta) - linear,
        lambda v: erm.penalty.prox(v, step * erm.lam),
        np.tile(theta, (erm.k, 1)),
        step,
        MAX_PROXIMAL_STEPS,
        PROXIMAL_TOLERANCE,
    )
    return z


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

    With :class:`~sparsecv_mio.oracles.iacv.KSupport` these are the perspective relaxations (P) of theory
    section 1. The points are estimates: they may order a search or propose supports; the dual value of their
    residuals is what may prune.

    Parameters
    ----------
    erm : Erm
        Rows, folds and a proximable penalty; the loss is the squared one, in the formula with smoothness 2.
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
    >>> from sparsecv_mio.oracles.iacv import Regularizer
    >>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 4.0])
    >>> fits = fold_fits(Erm(X, y, Squared(2.0), Regularizer(2.0), 0.0))
    >>> fits.theta.ravel().round(6).tolist()
    [1.230769, 1.3, 1.0]
    """
    penalty, lam, k, p = erm.penalty, erm.lam, erm.k, erm.p
    if not penalty.proximable:
        raise BadInput(f"penalty {penalty.name} has no proximal map")
    if not isinstance(erm.loss, Squared):
        raise BadInput(f"the fits of all folds at once are those of the squared loss, not of {erm.loss.name}")
    smoothness = erm.loss.smoothness
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
        return smoothness * half

    step = 1.0 / (smoothness * max(float(np.linalg.eigvalsh(Q)[-1]), np.finfo(float).tiny))
    Theta = np.zeros((k, p)) if begin is None else begin
    Theta, taken = accelerated(gradient, lambda V: penalty.prox(V, step * lam), Theta, step, steps, tolerance)
    level = y_mean + m_y - np.einsum("ij,ij->i", x_mean + m_x, Theta) if intercept else np.zeros(k)
    return FoldFits(Theta, level, taken)
