"""IACV, iterative approximate cross-validation (Luo, Ren and Barber 2023): held-out fits at each step of a solver.

The results of IACV are estimates, never certificates. They may determine the order of a search, but they cannot exclude
a model (docs/oracles/iacv.md). The steps of the held-out fits, approximate or exact, follow equations (5), (9) and (11)
of the paper.

The objective F is split into two terms, `F = g + h`. A step of the solver is a gradient step on g over a batch of rows,
followed by a proximal step on h. Gradient descent (GD) and stochastic gradient descent (SGD) have g = F and h = 0. For
proximal gradient descent, g is the summed loss and `h = lam * pi`, where pi is the penalty.

For each fold, the module also computes one Newton step, the infinitesimal jackknife and the exact held-out fit. Newton
steps and jackknives are defined at the minimiser of the full-data problem. In a comparison along the iterations of a
solver, Newton steps and jackknives start from the current iterate instead (section 6 of the paper). The baseline of
this comparison is the full-data iterate, which ignores the fold.

For squared-error loss the Taylor step of IACV is exact, so the iterates of IACV are those of the exact held-out fits
(theory section 8). A step for all folds takes one matrix product `Theta Q - C` and a correction by the rows of each
fold. Theta has one row for each fold; Q and C are moments of the full data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Event
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.arrays import CACHED_NUMBERS, FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.declared_options import check_whole
from sparsecv_mio.errors import BadInput, match_keyword
from sparsecv_mio.oracles import SOLVERS
from sparsecv_mio.oracles.answers import ProgressHook, binary_labels, design_matrix
from sparsecv_mio.oracles.losses import SMOOTH, Logistic, Poisson, SmoothLoss, Squared
from sparsecv_mio.oracles.penalties import KSupport, Penalty, Regularizer, run_proximal_gradient
from sparsecv_mio.units import TINY
from sparsecv_mio.words import Intercept

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "EarlyStop", "Erm", "FoldFits", "IacvReport", "Iterate", "KSupport", "Logistic", "METHODS", "MethodTrace",
    "Penalty", "Poisson", "Regularizer", "SmoothLoss", "Solver", "Squared", "default_step", "exact_step", "fold_fits",
    "full_step", "gd", "iacv_step", "infinitesimal_jackknife", "log_spaced", "make_erm", "make_solver", "newton_step",
    "proxgd", "run", "sgd", "start",
]  # fmt: skip

PENALTIES = {"ridge": (2.0, 0.0), "l1": (0.0, 1.0)}
"""Two weights for each penalty: of the sum of squares and of the sum of absolute values of the coefficients."""


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
        raise BadInput("a Newton step met a singular Hessian; give lam > 0 or drop redundant columns") from None


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


DEFAULT_BATCH = 100  # the smaller of the paper's two
BLOCK_FITS = 16


@dataclass(frozen=True)
class Solver:
    """A first-order method: step lengths, batches, and the treatment of the penalty.

    :func:`gd`, :func:`sgd` and :func:`proxgd` return solvers.

    Parameters
    ----------
    alpha : float
        Step length.
    proximal : bool
        True for a proximal step on `lam * pi`, False for a step along its gradient.
    batch : int, optional
        Number of rows drawn for each step, without replacement; all rows by default.
    seed : int
        Seed of the batches; the batch of step t depends on (seed, t) only.
    scale_penalty : bool
        True to weight the penalty of a batch of K rows by K / n. The paper's (7) takes the whole penalty, so its steps
        minimise `(K/n) sum l + lam pi` on average. With the weight they minimise the objective itself.
    doubling : int, optional
        Number of steps of length alpha, followed by twice as many of alpha / 2, and so on (paper section 6.2).

    Examples
    --------
    >>> solver = Solver(1.0, doubling=2)
    >>> [solver.step(t) for t in range(1, 8)]
    [1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.25]
    """

    alpha: float
    proximal: bool = False
    batch: int | None = None
    seed: int = 0
    scale_penalty: bool = False
    doubling: int | None = None

    def step(self, t: int) -> float:
        """Return the step length at iteration t = 1, 2, ..."""
        epochs = 1 if self.doubling is None else (t - 1) // self.doubling + 1
        return self.alpha / float(1 << (epochs.bit_length() - 1))

    def rows(self, t: int, n: int) -> IntArray | None:
        """Return the rows of the batch of step t, ascending, or None for all."""
        if self.batch is None or self.batch >= n:
            return None
        rng = np.random.Generator(np.random.Philox(key=self.seed, counter=t))
        return np.sort(rng.choice(n, size=self.batch, replace=False, shuffle=False)).astype(np.int64)

    def weight(self, erm: Erm) -> float:
        """Return the weight of the penalty in one step."""
        if self.scale_penalty and self.batch is not None:
            return erm.lam * min(self.batch, erm.n) / erm.n
        return erm.lam

    def check(self, erm: Erm) -> None:
        """Raise :class:`BadInput` if the penalty does not suit the method, or the batch does not suit the data."""
        if self.proximal and not erm.penalty.proximable:
            raise BadInput(f"penalty {erm.penalty.name} has no proximal map; use --solver gd or sgd")
        if not self.proximal and not erm.penalty.is_smooth:
            raise BadInput(f"penalty {erm.penalty.name} is not differentiable; use --solver proxgd")
        if self.batch is not None and not 1 <= self.batch <= erm.n:
            raise BadInput(f"--batch must lie between 1 and the number of rows, {erm.n}, not {self.batch}")


def gd(alpha: float) -> Solver:
    """Return gradient descent (6) with a fixed step."""
    return Solver(alpha)


def proxgd(alpha: float) -> Solver:
    """Return proximal gradient descent (8) with a fixed step."""
    return Solver(alpha, proximal=True)


def sgd(alpha: float, batch: int, seed: int = 0, *, scale_penalty: bool = False, doubling: int | None = None) -> Solver:
    """Return stochastic gradient descent (7) on batches of a fixed size.

    Parameters
    ----------
    alpha : float
        Step length.
    batch : int
        Number of rows of a batch.
    seed : int
        Seed of the batches.
    scale_penalty, doubling
        Options of :class:`Solver`.
    """
    return Solver(alpha, batch=batch, seed=seed, scale_penalty=scale_penalty, doubling=doubling)


@dataclass(frozen=True, eq=False)
class Iterate:
    """Iteration t: the full fit, and the approximate held-out fits as offsets from it.

    Attributes
    ----------
    t : int
        Number of steps taken.
    theta : (p,) array
        Iterate on all rows.
    offset : (k, p) array
        Approximate held-out iterates minus theta.
    """

    t: int
    theta: FloatArray
    offset: FloatArray

    @property
    def approx(self) -> FloatArray:
        """Approximate held-out iterates (k, p)."""
        return self.theta + self.offset


def start(erm: Erm, theta: FloatArray | None = None) -> Iterate:
    """Return state 0, in which all fits are at the same point, by default the origin."""
    first = np.zeros(erm.p) if theta is None else np.array(theta, dtype=np.float64)
    return Iterate(0, first, np.zeros((erm.k, erm.p)))


def iacv_step(erm: Erm, solver: Solver, state: Iterate) -> Iterate:
    """Return the state after one step of the full fit (5) and of all approximate held-out fits (11).

    With g_i, H_i the gradient and Hessian of row i at theta, `D_i` the offset, and G, H the sums of the g_i and H_i
    over the batch,

        theta+   = theta - a G,
        theta_i+ = theta_i - a ( G - g_i + (H - H_i) D_i )      i in the batch, no correction otherwise.

    So the offsets obey `D+ = D (I - a H) + a (g_i + H_i D_i)`, which takes one k x p by p x p product for all fits.

    Parameters
    ----------
    erm : Erm
        Problem with k held-out fits.
    solver : Solver
        Method, which determines the batch and the length of step t + 1.
    state : Iterate
        Iterates after t steps.

    Returns
    -------
    Iterate
        Iterates after t + 1 steps. A batch of m rows takes O(m p^2 + k p^2) time and O(k p + p^2) memory (the paper's
        Table 1).
    """
    t = state.t + 1
    alpha, weight, rows = solver.step(t), solver.weight(erm), solver.rows(t, erm.n)
    X, y, labels = erm.batch(rows)
    taylor = Expansion(erm.loss, X, y, state.theta)
    gradient = taylor.total()
    bent = taylor.apply(state.offset)
    if not solver.proximal and weight > 0.0:
        gradient = gradient + weight * erm.penalty.gradient(state.theta)
        bent += weight * erm.penalty.hessian_times(state.theta, state.offset)
    erm.take_out(bent, taylor.rows(own_rows(state.offset, labels)), rows)
    theta = state.theta - alpha * gradient
    offset = state.offset - alpha * bent
    if solver.proximal and weight > 0.0:
        moved = erm.penalty.prox(theta, alpha * weight)
        offset = erm.penalty.prox(theta + offset, alpha * weight) - moved
        theta = moved
    return Iterate(t, theta, offset)


def full_step(erm: Erm, solver: Solver, t: int, theta: FloatArray) -> FloatArray:
    """Return the iterate after step t + 1 of the full fit alone (5). O(m p).

    Parameters
    ----------
    erm : Erm
        Problem.
    solver : Solver
        Method, which determines the batch and the length of step t + 1.
    t : int
        Number of steps taken.
    theta : (p,) array
        Iterate after t steps.

    Returns
    -------
    (p,) array
    """
    X, y, _ = erm.batch(solver.rows(t + 1, erm.n))
    Theta = theta[None, :]
    return _descend_left_out(erm, solver, t + 1, Theta, np.asarray(erm.loss.derivative(Theta @ X.T, y) @ X))[0]


def exact_step(erm: Erm, solver: Solver, t: int, Theta: FloatArray) -> FloatArray:
    """Return the iterates after step t + 1 of every held-out fit, exactly (9), for comparison with the approximation.

    All k fits advance together, because their predictors are matrix products, formed in blocks that stay in the cache.

    Parameters
    ----------
    erm : Erm
        Problem.
    solver : Solver
        Method, with the same batches as in :func:`iacv_step`.
    t : int
        Number of steps taken.
    Theta : (k, p) array
        Held-out iterates after t steps.

    Returns
    -------
    (k, p) array
        Held-out iterates after t + 1 steps. O(k m p) time for a batch of m rows, O(k p) memory.
    """
    rows = solver.rows(t + 1, erm.n)
    X, y, fits = erm.batch(rows)
    size = max(BLOCK_FITS, CACHED_NUMBERS // max(X.shape[0], 1))
    gradient = np.empty_like(Theta)
    for lo in range(0, erm.k, size):
        hi = min(lo + size, erm.k)
        out = np.flatnonzero((fits >= lo) & (fits < hi))
        slopes = erm.loss.derivative(Theta[lo:hi] @ X.T, y)
        slopes[fits[out] - lo, out] = 0.0
        gradient[lo:hi] = slopes @ X
    return _descend_left_out(erm, solver, t + 1, Theta, gradient)


def _descend_left_out(erm: Erm, solver: Solver, t: int, Theta: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return (b, p) after a gradient step on g and a proximal step on h; `gradient` is that of the summed loss."""
    alpha, weight = solver.step(t), solver.weight(erm)
    if solver.proximal:
        moved = Theta - alpha * gradient
        return erm.penalty.prox(moved, alpha * weight) if weight > 0.0 else moved
    if weight > 0.0:
        gradient = gradient + weight * erm.penalty.gradient(Theta)
    return np.asarray(Theta - alpha * gradient)


def default_step(erm: Erm, *, proximal: bool = False, batch: int | None = None, iterations: int = 100) -> float:
    """Return the step length `1 / L`, with L a bound on the curvature of g over any batch.

    Without such a bound (Poisson loss), the step begins at the inverse of the curvature at the origin. It is halved
    until each of `iterations` full steps lowers the objective.

    Parameters
    ----------
    erm : Erm
        Problem.
    proximal : bool
        True if the penalty is treated by a proximal step.
    batch : int, optional
        Batch size; all rows by default.
    iterations : int
        Number of steps of the run.

    Returns
    -------
    float
        Step length.

    Raises
    ------
    BadInput
        If the curvature is zero (all columns are zero), or no step descends.
    """
    smooth = 0.0 if proximal or erm.lam == 0.0 else erm.lam * erm.penalty.bound()
    if np.isfinite(erm.loss.smoothness):
        bound = erm.loss.smoothness * _largest_square(erm.X, batch) + smooth
        if bound <= 0.0:
            raise BadInput("all columns are zero: there is nothing to fit")
        return 1.0 / bound
    curvature = float(np.linalg.eigvalsh(Expansion(erm.loss, erm.X, erm.y, np.zeros(erm.p)).hessian())[-1]) + smooth
    alpha = 1.0 / curvature
    for _ in range(60):
        if _is_monotone_descent(erm, Solver(alpha, proximal=proximal), iterations):
            return alpha
        alpha /= 2.0
    raise BadInput("no tried step length reduces the objective; rescale the columns, for example with --scale variance")


def _largest_square(X: FloatArray, rows: int | None) -> float:
    """Return a bound on `||X_B v||^2` over unit vectors v and batches B of `rows` rows, by default all rows."""
    gram = X.T @ X if X.shape[1] <= X.shape[0] else X @ X.T
    largest = float(np.linalg.eigvalsh(gram)[-1])
    if rows is not None and rows < X.shape[0]:
        lengths = np.einsum("ij,ij->i", X, X)
        largest = min(largest, float(np.partition(lengths, -rows)[-rows:].sum()))
    return max(largest, 0.0)


def _is_monotone_descent(erm: Erm, solver: Solver, iterations: int) -> bool:
    theta, value = np.zeros(erm.p), erm.objective(np.zeros(erm.p))
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(iterations):
            theta = full_step(erm, solver, t, theta)
            new = erm.objective(theta)
            if not new <= value + 1e-12 * abs(value):
                return False
            value = new
    return True


def make_solver(
    erm: Erm,
    kind: str,
    *,
    iterations: int,
    step: float | None = None,
    batch: int | None = None,
    doubling: int | None = None,
    seed: int = 0,
    scale_penalty: bool = False,
) -> Solver:
    """Return a method with its default step, one over the Lipschitz constant of the gradient.

    Parameters
    ----------
    erm : Erm
        Problem.
    kind : {"gd", "sgd", "proxgd"}
        Method.
    iterations : int
        Number of steps of the run, used if the loss has no Lipschitz constant.
    step : float, optional
        Step length; by default one over the Lipschitz constant.
    batch : int, optional
        Number of rows per step of `sgd`; by default 100, or all rows if fewer.
    doubling : int, optional
        Epoch doubling: number of steps at the first length, followed by twice as many at half of it, and so on.
    seed : int
        Seed of the batches.
    scale_penalty : bool
        Option of :class:`~sparsecv_mio.oracles.iacv.Solver`.

    Returns
    -------
    Solver
        Method, checked against the problem.

    Raises
    ------
    BadInput
        If an option does not suit the method, the penalty or the data.
    """
    kind = match_keyword(kind, SOLVERS, "--solver")
    if batch is not None and kind != "sgd":
        raise BadInput("--batch: requires --solver sgd, because gd and proxgd use all rows")
    if step is not None and not (np.isfinite(step) and step > 0.0):
        raise BadInput(f"--step must be a number > 0, not {step}")
    check_whole("--doubling", doubling, 1)
    check_whole("--seed", seed, 0)
    size = min(DEFAULT_BATCH, erm.n) if kind == "sgd" and batch is None else batch
    bare = Solver(1.0, kind == "proxgd", size, seed, scale_penalty, doubling)
    bare.check(erm)
    return replace(bare, alpha=step or default_step(erm, proximal=bare.proximal, batch=size, iterations=iterations))


METHODS = ("iacv", "ns", "ij", "baseline")
EXACT = "exact"


@dataclass(frozen=True)
class EarlyStop:
    """Rule that stops when the approximate loss has not fallen by `tolerance` (relative) in `patience` steps."""

    patience: int = 50
    tolerance: float = 0.0

    def to_beat(self, least: float, iteration: int) -> float:
        """Return the loss below which a step is progress: `least`, minus the tolerance unless it is of iteration 0."""
        return least - (self.tolerance * abs(least) if iteration else 0.0)


@dataclass(frozen=True, eq=False)
class MethodTrace:
    """One method along the recorded iterations.

    Attributes
    ----------
    cv : (m,) array
        Cross-validation loss at the method's held-out iterates.
    err_approx : (m,) array or None
        `(1/k) sum_i ||approx_i - exact_i||_2` (the paper's (15)); None if the exact iterates were not computed.
    cv_exact : (m,) array or None
        Cross-validation loss at the exact held-out iterates.
    """

    cv: FloatArray
    err_approx: FloatArray | None
    cv_exact: FloatArray | None

    @property
    def err_cv(self) -> FloatArray | None:
        """Absolute error `|cv - exact cv|` (16)."""
        return None if self.cv_exact is None else np.abs(self.cv - self.cv_exact)

    @property
    def rel_err_cv(self) -> FloatArray | None:
        """The error (16) relative to the exact loss; 0 / 0 is 0."""
        if self.err_cv is None or self.cv_exact is None:
            return None
        whole = np.abs(self.cv_exact)
        return np.divide(self.err_cv, whole, out=np.where(self.err_cv > 0.0, np.inf, 0.0), where=whole > 0.0)


@dataclass(frozen=True, eq=False)
class IacvReport:
    """The result of :func:`run`.

    Attributes
    ----------
    iterations : (m,) int array
        Recorded iterations.
    traces : mapping of str to MethodTrace
        Traces of `iacv` and of the requested baselines.
    cv_exact : (m,) array or None
        Exact cross-validation loss at the recorded iterations.
    seconds : (m,) array
        Time of the full fit and the approximate held-out fits up to each recorded iteration, without evaluations.
    seconds_exact : (m,) array or None
        Time of the exact held-out fits up to each recorded iteration.
    best : int
        Recorded iteration with the smallest approximate loss.
    theta, approx : (p,), (k, p) array
        Full and approximate held-out iterates: the last ones, or those of `best` after an early stop.
    stopped_early : bool
        True if :class:`EarlyStop` ended the run.
    """

    iterations: np.ndarray
    traces: Mapping[str, MethodTrace]
    cv_exact: FloatArray | None
    seconds: FloatArray
    seconds_exact: FloatArray | None
    best: int
    theta: FloatArray
    approx: FloatArray
    stopped_early: bool

    @property
    def chosen(self) -> int:
        """Position in `iterations` of the returned iterate: the last, or the best after an early stop."""
        return int(np.flatnonzero(self.iterations == self.best)[0]) if self.stopped_early else len(self.iterations) - 1

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the chosen iterate for IACV and every other method of the run, as JSON types."""
        at, trace = self.chosen, self.traces["iacv"]

        def pick(values: FloatArray | None) -> float | None:
            return float(values[at]) if values is not None and np.isfinite(values[at]) else None

        others = {
            name: {key: pick(getattr(other, key)) for key in ("cv", "err_approx", "rel_err_cv")}
            for name, other in self.traces.items() if name != "iacv"
        }  # fmt: skip
        return {
            "iteration": int(self.iterations[at]),
            **{name: pick(getattr(trace, name)) for name in ("cv", "cv_exact", "err_approx", "err_cv", "rel_err_cv")},
            "best_iteration": self.best, "best_cv": float(trace.cv.min()), "stopped_early": self.stopped_early,
            "seconds": float(self.seconds[-1]),
            "seconds_exact": None if self.seconds_exact is None else float(self.seconds_exact[-1]), **others,
        }  # fmt: skip


def log_spaced(iterations: int, count: int = 60) -> list[int]:
    """Return about `count` iterations from 1 to `iterations`, evenly spaced in the logarithm."""
    return sorted({int(round(t)) for t in np.geomspace(1, iterations, count)})


def _evaluate(
    name: str, erm: Erm, solver: Solver, state: Iterate, Theta: FloatArray | None
) -> tuple[float, float]:  # fmt: skip
    """Return the loss at the held-out iterates of a method, and their mean distance to the exact ones."""
    with np.errstate(over="ignore", invalid="ignore"):
        if name == "iacv":
            guess = state.approx
        elif name == "baseline":
            guess = np.broadcast_to(state.theta, state.offset.shape)
        else:
            one_step = newton_step if name == "ns" else infinitesimal_jackknife
            guess = one_step(erm, state.theta, proximal=solver.proximal)
        distance = np.nan if Theta is None else float(np.linalg.norm(guess - Theta, axis=1).mean())
        return erm.held_out_loss(guess), distance


def run(
    erm: Erm,
    solver: Solver,
    iterations: int,
    *,
    record: Iterable[int] | None = None,
    methods: Sequence[str] = ("iacv",),
    early_stop: EarlyStop | None = None,
    progress: ProgressHook | None = None,
    stop: Event | None = None,
) -> IacvReport:
    """Return a report of the full fit and all approximate held-out fits over a number of steps from the origin.

    Parameters
    ----------
    erm : Erm
        Penalised risk and the held-out rows of each fit.
    solver : Solver
        Method: :func:`gd`, :func:`sgd` or :func:`proxgd`.
    iterations : int
        Number of steps, at least 1.
    record : iterable of int, optional
        Iterations to evaluate. The default is about sixty log-spaced iterations, or all of them with `early_stop`.
    methods : sequence of str
        Methods to evaluate: any of `iacv`, `ns` (Newton step), `ij` (infinitesimal jackknife), `baseline` (the full
        fit) and `exact`. With `exact` the exact held-out fits are computed as well, and the report contains the errors
        (15) and (16). `iacv` is always included.
    early_stop : EarlyStop, optional
        Rule that ends the run by the approximate loss; the report then contains the best iterate.
    progress : callable, optional
        Function called with (steps done, total steps).
    stop : Event, optional
        Event that ends the run and its report after the current step, once it is set.

    Returns
    -------
    IacvReport
        Errors, losses and times along the trajectory.

    Raises
    ------
    BadInput
        If an option is not valid, or the iterates are not finite (the step is too long).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> y = np.where(rng.random(200) < 1 / (1 + np.exp(-X[:, 0])), 1.0, -1.0)
    >>> erm = Erm(X, y, Logistic(), Regularizer(2.0), lam=0.1)
    >>> report = run(erm, gd(default_step(erm)), 50, methods=("baseline", "exact"))
    >>> bool(report.traces["iacv"].err_approx[-1] < 0.05 * report.traces["baseline"].err_approx[-1])
    True
    """
    if unknown := set(methods) - {*METHODS, EXACT}:
        raise BadInput(f"unknown method {min(unknown)!r}; choose among {', '.join((*METHODS, EXACT))}")
    check_whole("--iterations", iterations, 1)
    if early_stop is not None:
        check_whole("--early-stop", early_stop.patience, 1)
    solver.check(erm)
    names = ("iacv", *(name for name in METHODS[1:] if name in methods))
    recorded = set(range(1, iterations + 1) if early_stop else record if record is not None else log_spaced(iterations))
    recorded.add(iterations)
    state = start(erm)
    best_state, best, stopped = state, (np.inf, 0), False
    Theta = np.tile(state.theta, (erm.k, 1)) if EXACT in methods else None
    clock, times, exact = [0.0, 0.0], list[tuple[float, ...]](), list[float]()
    numbers: list[list[tuple[float, float]]] = []
    for t in range(iterations):
        begin = perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):  # a step that is too long is reported below
            state = iacv_step(erm, solver, state)
            middle = perf_counter()
            clock[0] += middle - begin
            if Theta is not None:
                Theta = exact_step(erm, solver, t, Theta)
                clock[1] += perf_counter() - middle
        ended = stop is not None and stop.is_set()
        if ended or t + 1 in recorded:
            times.append((t + 1, *clock))
            if Theta is not None:
                exact.append(erm.held_out_loss(Theta))
            numbers.append([_evaluate(name, erm, solver, state, Theta) for name in names])
            cv = numbers[-1][0][0]
            if not np.isfinite(cv):
                raise BadInput(f"the iterates are not finite after iteration {t + 1}; give a smaller --step")
            if cv < (early_stop.to_beat(*best) if early_stop is not None else best[0]):
                best, best_state = (cv, t + 1), state
            stopped = early_stop is not None and t + 1 - best[1] >= early_stop.patience
        if progress is not None:
            progress(t + 1, iterations)
        if stopped or ended:
            break
    chosen, seconds, cv_exact = best_state if stopped else state, np.array(times), np.array(exact) if exact else None
    traces = {
        name: MethodTrace(cv, None if cv_exact is None else distance, cv_exact)
        for name, (cv, distance) in zip(names, np.array(numbers).transpose(1, 2, 0), strict=True)
    }
    return IacvReport(
        seconds[:, 0].astype(np.int64), traces, cv_exact, seconds[:, 1], None if cv_exact is None else seconds[:, 2],
        best[1], chosen.theta, chosen.approx, stopped,
    )  # fmt: skip
