"""The penalised empirical risk, the rows that each fit holds out, and held-out fits at one point.

The held-out fits at one point are Newton steps, infinitesimal jackknives, and the exact solutions of all folds.

Newton steps and jackknives are meant for the minimiser of the full-data problem. In a comparison along the iterations
of a solver, they start from the current iterate instead (section 6 of the IACV paper, Luo, Ren and Barber 2023). As a
baseline without information about the fold, that comparison uses the full-data iterate.

For squared-error loss the Taylor step of IACV is exact, so its iterates are the held-out iterates (theory section 8). A
step for all folds takes one matrix product `Theta Q - C` and a correction by the rows of each fold. Theta has one row
for each fold; Q and C are moments of the full data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput, match_keyword
from sparsecv_mio.oracles.answers import binary_labels, design_matrix
from sparsecv_mio.oracles.losses import SMOOTH, SmoothLoss, Squared
from sparsecv_mio.oracles.penalties import Penalty, Regularizer, run_proximal_gradient
from sparsecv_mio.units import TINY
from sparsecv_mio.words import Intercept

__all__ = ["Erm", "FoldFits", "fold_fits", "infinitesimal_jackknife", "make_erm", "newton_step"]

if TYPE_CHECKING:
    from scipy.sparse import csr_array


PENALTIES = {"ridge": (2.0, 0.0), "l1": (0.0, 1.0)}
"""Words of the penalties, with their ridge and l1 weight: the sum of squares and of absolute values."""


class Expansion:
    """Second-order Taylor data of `sum_i l(Z_i; .)` at one base point that all held-out iterates share.

    The method saves its time here. Gradients and Hessians are computed at one point instead of n (the paper's (10)),
    and for a loss of the linear prediction they are two numbers for each row.
    """

    def __init__(self, loss: SmoothLoss, X: FloatArray, y: FloatArray, theta: FloatArray) -> None:
        self.X, self.loss, self.t, self.y = X, loss, X @ theta, y

    @cached_property
    def slopes(self) -> FloatArray:
        """Derivatives (m,) of the loss with respect to the predictions."""
        return self.loss.derivative(self.t, self.y)

    @cached_property
    def curvatures(self) -> FloatArray:
        """Second derivatives (m,)."""
        return self.loss.curvature(self.t, self.y)

    def total(self) -> FloatArray:
        """Gradient (p,), summed over the rows."""
        return np.asarray(self.slopes @ self.X)

    def hessian(self) -> FloatArray:
        """Hessian (p, p), summed over the rows."""
        return np.asarray((self.X.T * self.curvatures) @ self.X)

    def row_hessians(self) -> FloatArray:
        """Hessians (m, p, p) of the losses of the rows."""
        return (self.curvatures[:, None] * self.X)[:, :, None] * self.X[:, None, :]

    def rows(self, own: FloatArray) -> FloatArray:
        """Return (m, p), for row i `grad l_i + hess l_i own_i`: the linearised gradient at base + own_i."""
        return (self.slopes + self.curvatures * np.einsum("ij,ij->i", self.X, own))[:, None] * self.X

    def row_times(self, own: FloatArray) -> FloatArray:
        """Return (m, p), for row i `hess l_i own_i`."""
        return (self.curvatures * np.einsum("ij,ij->i", self.X, own))[:, None] * self.X

    def apply(self, D: FloatArray) -> FloatArray:
        """Return (k, p), the rows d of D times the summed Hessian H. O(k p^2)."""
        m, p = self.X.shape
        k = D.shape[0]
        if 2 * k * m < (k + m) * p:  # few rows, wide data: never form the p x p Hessian
            return np.asarray(((D @ self.X.T) * self.curvatures) @ self.X)
        return np.asarray(D @ self.hessian())


@dataclass(frozen=True, eq=False)
class Erm:
    """The problem `F(Z; theta) = sum_i l(Z_i; theta) + lam * pi(theta)` and k fits, each without some of the rows.

    The objective is the paper's sum, which is not divided by n.

    Parameters
    ----------
    X : (n, p) array
        Columns without further scaling; append a column of ones for an intercept.
    y : (n,) array
        Responses.
    loss : SmoothLoss
        Loss of a row, one of :mod:`sparsecv_mio.oracles.losses`.
    penalty : Penalty
        Penalty on the coefficients, one of :mod:`sparsecv_mio.oracles.penalties`.
    lam : float
        Weight of the penalty, >= 0.
    labels : (n,) int array, optional
        Number of the fit that holds the row out, -1 for none. By default fit i holds row i out (the paper's setting).

    Raises
    ------
    BadInput
        If shapes differ, a number is not finite, lam is negative, a label is missing, or y is outside of the loss's
        domain.
    """

    X: FloatArray
    y: FloatArray
    loss: SmoothLoss
    penalty: Penalty
    lam: float
    labels: IntArray | None = None

    def __post_init__(self) -> None:
        if self.X.ndim != 2 or self.y.shape != self.X.shape[:1] or self.X.shape[0] < 2:
            raise BadInput(f"X {self.X.shape} and y {self.y.shape} must be (n, p) and (n,) with n >= 2")
        if not (np.isfinite(self.X).all() and np.isfinite(self.y).all()):
            raise BadInput("X and y must be finite")
        if not (np.isfinite(self.lam) and self.lam >= 0.0):
            raise BadInput(f"lam must be a number >= 0, not {self.lam}")
        if self.labels is not None:
            used = np.unique(self.labels[self.labels >= 0])
            if self.labels.shape != self.y.shape or used.size == 0 or used[-1] != used.size - 1:
                raise BadInput(
                    "labels must give every row a fold 0 .. k-1, each used at least once, or -1 for rows that are "
                    "never held out"
                )
        self.loss.check(self.y)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def p(self) -> int:
        """Number of parameters."""
        return int(self.X.shape[1])

    @cached_property
    def fold(self) -> IntArray:
        """Number (n,) of the fit that holds each row out, -1 for none."""
        return np.arange(self.n) if self.labels is None else self.labels

    @cached_property
    def k(self) -> int:
        """Number of fits."""
        return int(self.fold.max()) + 1

    def objective(self, theta: FloatArray) -> float:
        """Return `F(Z; theta)` at one theta (p,)."""
        penalty = self.lam * float(self.penalty.value(theta)) if self.lam > 0.0 else 0.0
        return float(self._values(slice(None), theta).sum()) + penalty

    def held_out_loss(self, Theta: FloatArray) -> float:
        """Return the cross-validation loss: the mean over held-out rows of `l(Z_i; theta of the fit without i)`.

        Parameters
        ----------
        Theta : (k, p) or (p,) array
            Parameters of the fits, or one vector for all of them.

        Returns
        -------
        float
            Loss; with leave-one-out, the paper's (2). O(n p).
        """
        rows = np.flatnonzero(self.fold >= 0)
        return float(self._values(rows, Theta if Theta.ndim == 1 else Theta[self.fold[rows]]).mean())

    def _values(self, rows: IntArray | slice, Theta: FloatArray) -> FloatArray:
        X = self.X[rows]
        return self.loss.value(X @ Theta if Theta.ndim == 1 else np.einsum("ij,ij->i", X, Theta), self.y[rows])

    def batch(self, rows: IntArray | None) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return `(X, y, fold)` of a batch, by default of all rows."""
        return (self.X, self.y, self.fold) if rows is None else (self.X[rows], self.y[rows], self.fold[rows])

    def take_out(self, target: FloatArray, per_row: FloatArray, rows: IntArray | None = None) -> None:
        """Subtract the terms of the held-out rows of each fit from its row of `target` (k, p).

        Parameters
        ----------
        target : (k, p) array
            Sums over the batch, one for each fit; changed in place.
        per_row : (m, p) array
            Terms of the rows of the batch.
        rows : (m,) int array, optional
            Rows of the batch; all rows by default.
        """
        batch = slice(None) if rows is None else rows
        if self.labels is None:  # each row by a fit of its own
            target[batch] -= per_row
        else:
            target -= fold_indicator(self.fold[batch], self.k) @ per_row


def own_rows(D: FloatArray, labels: IntArray) -> FloatArray:
    """Return for each of m rows the row of D (k, p) of the fit that holds it out, or zeros if no fit does."""
    own = D[labels]
    own[labels < 0] = 0.0
    return own


def fold_indicator(labels: IntArray, k: int) -> csr_array:
    """Return the sparse matrix (k, m) with a one where fit j holds row i out; `indicator @ M` sums rows by fold."""
    from scipy.sparse import csr_array

    rows = np.flatnonzero(labels >= 0)
    return csr_array((np.ones(rows.size), (labels[rows], rows)), shape=(k, labels.size))


def make_erm(
    dataset: Dataset, loss: str, penalty: str, lam: float, *, scale: str = "none", intercept: str = "none"
) -> Erm:
    """Return the leave-one-out problem on the columns of a data set, by default without scaling or centring.

    Parameters
    ----------
    dataset : Dataset
        Columns and target.
    loss : {"logistic", "squared", "poisson"}
        Loss of a row; `logistic` maps the two values of the target to -1 (the smaller) and +1.
    penalty : {"ridge", "l1"}
        Penalty, `sum theta_j^2` or `sum |theta_j|`.
    lam : float
        Weight of the penalty, relative to the sum of losses, which is not divided by n.
    scale : {"none", "length", "variance"}
        Column scale.
    intercept : {"none", "global", "fold"}
        Kind of intercept. `global` centres the columns once on all rows, and for the squared loss also the target.
        `fold` appends a column of ones without penalty to the centred columns. Centring does not change the minimiser
        then, but allows longer steps.

    Returns
    -------
    Erm
        Problem whose fit i holds row i out.

    Raises
    ------
    BadInput
        If a word is unknown, lam is negative, or the target does not suit the loss.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0], [1.0], [5.0]], [2.0, 5.0, 5.0])
    >>> make_erm(data, "logistic", "ridge", 0.1, intercept="fold").X.tolist()
    [[-2.0, 1.0], [-1.0, 1.0], [3.0, 1.0]]
    """
    loss, penalty = match_keyword(loss, SMOOTH, "--loss"), match_keyword(penalty, PENALTIES, "--penalty")
    free = intercept == Intercept.FOLD
    X = design_matrix(dataset, scale, Intercept.GLOBAL if free else intercept)
    y = binary_labels(dataset)[0] if loss == "logistic" else dataset.y
    if loss == "squared" and intercept == Intercept.GLOBAL:
        y = y - y.mean()
    if free:
        X = np.column_stack([X, np.ones(dataset.n)])
    return Erm(X, y, SMOOTH[loss](), Regularizer(*PENALTIES[penalty], intercept=free), lam)


MAX_PROXIMAL_STEPS = 20_000
PROXIMAL_TOLERANCE = 1e-13  # relative size of the last proximal step of a held-out quadratic


def newton_step(erm: Erm, theta: FloatArray, *, proximal: bool = False) -> FloatArray:
    """Return a Newton step on every held-out problem (the paper's (3)), or a proximal Newton step (17).

    The step is `theta - H_i^{-1} grad F(Z_-i; theta)`, with `H_i` the Hessian without the held-out rows. The proximal
    step adds the minimiser of `grad g(Z_-i)'z + 1/2 z' H_i z + h(theta + z)` to theta.

    Parameters
    ----------
    erm : Erm
        Problem with k held-out fits.
    theta : (p,) array
        Point of expansion.
    proximal : bool
        True to treat the penalty by its proximal map (needed for l1).

    Returns
    -------
    (k, p) array
        Approximate held-out fits. O(k p^3); proximal: O(k p^2) per inner step.

    Raises
    ------
    BadInput
        If a held-out Hessian is singular.
    """
    taylor = Expansion(erm.loss, erm.X, erm.y, theta)
    gradients = _left_out_gradients(erm, taylor, theta, proximal)
    if proximal and erm.lam > 0.0:
        return _proximal_quadratics(erm, taylor, theta, -gradients)
    return np.asarray(theta - _solve_left_out(erm, taylor, theta, gradients))


def infinitesimal_jackknife(erm: Erm, theta: FloatArray, *, proximal: bool = False) -> FloatArray:
    """Return the step of the infinitesimal jackknife (4): a Newton step with the full Hessian for every held-out one.

    The proximal version (19) uses the full Hessian inside and the held-out Hessian as the metric of the proximal map,
    as printed (theory, Errata).

    Parameters
    ----------
    erm : Erm
        Problem with k held-out fits.
    theta : (p,) array
        Point of expansion.
    proximal : bool
        True to treat the penalty by its proximal map.

    Returns
    -------
    (k, p) array
        Approximate held-out fits. O(p^3 + k p^2); proximal: O(k p^2) per inner step.

    Raises
    ------
    BadInput
        If the Hessian is singular.
    """
    taylor = Expansion(erm.loss, erm.X, erm.y, theta)
    gradients = _left_out_gradients(erm, taylor, theta, proximal)
    H = taylor.hessian()
    if not proximal and erm.lam > 0.0:
        H = H + erm.lam * erm.penalty.hessian_times(theta, np.eye(erm.p))
    steps = -_solve_each(H, gradients.T).T
    if proximal and erm.lam > 0.0:
        return _proximal_quadratics(erm, taylor, theta, _left_out_times(erm, taylor, steps))
    return np.asarray(theta + steps)


def _left_out_gradients(erm: Erm, taylor: Expansion, theta: FloatArray, proximal: bool) -> FloatArray:
    """Return the gradients (k, p) of the smooth part without the held-out rows of each fit, at theta."""
    total = taylor.total()
    if not proximal and erm.lam > 0.0:
        total = total + erm.lam * erm.penalty.gradient(theta)
    out = np.tile(total, (erm.k, 1))
    erm.take_out(out, taylor.rows(np.zeros_like(erm.X)))
    return out


def _left_out_times(erm: Erm, taylor: Expansion, D: FloatArray) -> FloatArray:
    """Return (k, p), row i of D times the Hessian of the summed loss of fit i."""
    out = taylor.apply(D)
    erm.take_out(out, taylor.row_times(own_rows(D, erm.fold)))
    return out


def _solve_each(H: FloatArray, right: FloatArray) -> FloatArray:
    try:
        return np.asarray(np.linalg.solve(H, right))
    except np.linalg.LinAlgError:
        raise BadInput("a Newton step met a singular Hessian: give lam > 0 or drop redundant columns") from None


def _solve_left_out(erm: Erm, taylor: Expansion, theta: FloatArray, right: FloatArray) -> FloatArray:
    """Return the rows `H_i^{-1} right_i` (k, p), in blocks of about max(n, p) p numbers."""
    H = taylor.hessian()
    if erm.lam > 0.0:
        H = H + erm.lam * erm.penalty.hessian_times(theta, np.eye(erm.p))
    out = np.empty_like(right)
    size = max(1, erm.n // erm.p)
    order = np.argsort(erm.fold, kind="stable")
    labels = erm.fold[order]
    for lo in range(0, erm.k, size):
        hi = min(lo + size, erm.k)
        if erm.labels is None:
            hessians = Expansion(erm.loss, erm.X[lo:hi], erm.y[lo:hi], theta).row_hessians()
        else:
            cuts = np.searchsorted(labels, np.arange(lo, hi + 1))
            groups = [order[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
            hessians = np.stack([Expansion(erm.loss, erm.X[rows], erm.y[rows], theta).hessian() for rows in groups])
        out[lo:hi] = _solve_each(H - hessians, right[lo:hi, :, None])[:, :, 0]
    return out


def _proximal_quadratics(erm: Erm, taylor: Expansion, theta: FloatArray, linear: FloatArray) -> FloatArray:
    """Return the minimisers (k, p) of `1/2 d' H_i d - linear_i' d + lam pi(theta + d)`, plus theta."""
    step = 1.0 / max(float(np.linalg.eigvalsh(taylor.hessian())[-1]), TINY)
    z, _ = run_proximal_gradient(
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
        Coefficients; row j is the fit without fold j.
    intercept : (k,) array
        Intercepts of the fits; zeros without an intercept.
    steps : int
        Number of proximal gradient steps.
    """

    theta: FloatArray
    intercept: FloatArray
    steps: int


def fold_fits(
    erm: Erm, *, intercept: bool = False, steps: int = 500, tolerance: float = 1e-10, begin: FloatArray | None = None
) -> FoldFits:
    """Return minimisers of `sum_(i not in N_j) (y_i - b0 - x_i' theta)^2 + lam pi(theta)` for every fold j.

    The method is proximal gradient descent. With :class:`~sparsecv_mio.oracles.iacv.KSupport` the problems are the
    perspective relaxations (P) of theory section 1. The points are estimates, which may order a search or propose
    supports. Only the dual value of their residuals may prune.

    Parameters
    ----------
    erm : Erm
        Rows, folds, a penalty with a proximal map, and the squared loss, in the formula with smoothness 2.
    intercept : bool
        True to profile out an unpenalised intercept by the means of each training set.
    steps : int
        Maximum number of steps.
    tolerance : float
        Relative size of a step below which the descent stops.
    begin : (k, p) array, optional
        Starting points; zeros by default.

    Returns
    -------
    FoldFits
        Fits of all folds. A step takes O(k p^2 + n p) time; memory is O((n + k) p + p^2).

    Raises
    ------
    BadInput
        If the penalty has no proximal map, or the loss is not the squared one.

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
        raise BadInput(f"penalty {penalty.name} has no proximal map, which this solver needs; use another solver")
    if not isinstance(erm.loss, Squared):
        raise BadInput(f"fitting all folds at once requires squared-error loss, not {erm.loss.name}")
    smoothness = erm.loss.smoothness
    labels = erm.fold
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
    Theta, taken = run_proximal_gradient(gradient, lambda V: penalty.prox(V, step * lam), Theta, step, steps, tolerance)
    level = y_mean + m_y - np.einsum("ij,ij->i", x_mean + m_x, Theta) if intercept else np.zeros(k)
    return FoldFits(Theta, level, taken)
