"""Paths of penalised models on the rows of one fit: lasso, ridge, elastic net, and best subsets by abess.

For row losses l, weights v and their total V, a penalised model minimises

    (1/V) sum_i v_i l_i(t_i) + alpha (r ||b||_1 + (1 - r) / 2 ||b||^2),   t = Z c + X b,

where half the squared error replaces l for squared-error loss. The intercept and the adjustment columns Z are not
penalised; r is 1 for the lasso and 0 for ridge regression. Squared-error fits are those of scikit-learn. With other
losses, a Newton step replaces the loss by weighted squares, which scikit-learn fits with the penalty (Friedman, Hastie
and Tibshirani 2010, "Regularization paths for generalized linear models via coordinate descent", Journal of Statistical
Software 33(1)).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import lstsq

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.problem.row_losses import NEWTON_STEPS, RowLoss
from sparsecv_mio.targets import Values
from sparsecv_mio.units import NEWTON_RTOL, SHAVED, TINY

N_ALPHAS = 100  # penalties of a path with squared-error loss, as in glmnet
N_SMOOTH_ALPHAS = 50  # penalties of a path with another loss, each of which takes several Newton steps
MOST_SWEEPS = 20_000  # maximum sweeps of coordinate descent
LASSO_RANGES = 1e-4, 1e-3  # smallest penalty over the largest one: with more rows than columns, and otherwise
RIDGE_RANGE = 1e3, 1e-6  # largest and smallest ridge penalty over the mean curvature of a coefficient
SWEEP_TOL = 1e-9  # duality gap at which coordinate descent stops, relative to the sum of squares
MIN_SHARE = 1e-6  # smallest share of the largest curvature, for separated classes, and of a Newton step
INDEPENDENT = 1e-10  # singular value over the largest one, above which unpenalised columns are independent
ABESS_MODELS = {
    Values.NUMBERS: "LinearRegression", Values.CLASSES: "LogisticRegression", Values.COUNTS: "PoissonRegression"
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class FitRows:
    """The rows of one fit in the form of the loss.

    Attributes
    ----------
    X : (m, q) array
        Penalised columns, divided by their scales.
    Z : (m, r) array
        Unpenalised columns: the intercept, if there is one, and adjustment columns.
    y, v : (m,) arrays
        Targets and weights.
    loss : RowLoss
        Loss of a row.
    is_quadratic : bool
        True for squared-error loss.
    """

    X: FloatArray
    Z: FloatArray
    y: FloatArray
    v: FloatArray
    loss: RowLoss
    is_quadratic: bool

    @property
    def unit(self) -> float:
        """Factor of the row loss: a half for squared errors, as scikit-learn minimises them."""
        return 0.5 if self.is_quadratic else 1.0

    def predictors(self, theta: FloatArray) -> FloatArray:
        """Return (m,) linear predictors of a model: unpenalised coefficients, followed by penalised ones."""
        r = self.Z.shape[1]
        return np.asarray(self.Z @ theta[:r] + self.X @ theta[r:])

    def curvatures(self, t: FloatArray) -> FloatArray:
        """Return (m,) weighted curvatures of the losses at linear predictors."""
        return np.asarray(self.unit * self.loss.curvatures(self.loss.signs(self.y) * t, self.y, self.v))

    def negative_gradients(self, t: FloatArray) -> FloatArray:
        """Return (m,) weighted negative slopes of the losses at linear predictors."""
        signs = self.loss.signs(self.y)
        return np.asarray(self.unit * signs * self.loss.negative_gradient(signs * t, self.y, self.v))

    def objective(self, theta: FloatArray, alpha: float, l1_ratio: float) -> float:
        """Return the penalised mean loss of a model."""
        b = theta[self.Z.shape[1] :]
        with np.errstate(over="ignore", invalid="ignore"):
            losses = self.loss.losses(self.loss.signs(self.y) * self.predictors(theta), self.y)
            penalty = l1_ratio * np.abs(b).sum() + (1.0 - l1_ratio) / 2.0 * (b @ b)
            return float(self.unit * (self.v @ losses) / self.v.sum() + alpha * penalty)


def make_penalties(rows: FitRows, l1_ratio: float) -> FloatArray:
    """Return the descending penalties of a path, from all rows.

    Parameters
    ----------
    rows : FitRows
        All rows.
    l1_ratio : float
        Share of the absolute values in the penalty. Unless it is 0, all coefficients are zero at the first penalty.
    """
    t = rows.predictors(np.append(fit_unpenalised(rows), np.zeros(rows.X.shape[1])))
    total, count = rows.v.sum(), N_ALPHAS if rows.is_quadratic else N_SMOOTH_ALPHAS
    if l1_ratio == 0.0:
        scale = float(rows.curvatures(t) @ (rows.X**2).mean(axis=1)) / total
        return np.geomspace(*RIDGE_RANGE, count) * max(scale, TINY)
    largest = float(np.abs(rows.X.T @ rows.negative_gradients(t)).max(initial=TINY)) / total / l1_ratio
    ratio = LASSO_RANGES[rows.X.shape[1] >= len(rows.y)]
    return np.geomspace(1.0, ratio, count) * (largest * (1.0 + SHAVED))  # rounding selects no column at the first


def fit_unpenalised(rows: FitRows) -> FloatArray:
    """Return the (r,) coefficients of the model of the unpenalised columns alone."""
    bare = replace(rows, X=np.zeros((len(rows.y), 0)))
    return fit_path(bare, 1.0, np.zeros(1))[0]


def fit_path(
    rows: FitRows, l1_ratio: float, alphas: FloatArray, check_time: Callable[[], None] = lambda: None
) -> FloatArray:
    """Return the (A, r + q) models of a path of penalties.

    Parameters
    ----------
    rows : FitRows
        Rows.
    l1_ratio : float
        Share of the absolute values in the penalty.
    alphas : (A,) array
        Penalties, descending.
    check_time : callable
        Function that raises an error to end the fit.

    Returns
    -------
    (A, r + q) array
        Unpenalised coefficients, followed by penalised ones.
    """
    from sklearn import config_context

    # Checks of arguments take longer than small fits. Fits that have not converged are models with held-out errors too.
    with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
        warnings.simplefilter("ignore")
        if rows.is_quadratic:
            return _solve_squares(rows, rows.v, rows.y, l1_ratio, alphas)
        theta, models = np.zeros(rows.Z.shape[1] + rows.X.shape[1]), []
        if np.ptp(rows.Z[:, :1]) == 0.0 and rows.Z.size:  # an intercept
            theta[0] = rows.loss.origin(rows.y, rows.v)
        for alpha in alphas.tolist():
            check_time()
            theta = _minimise_penalised(rows, l1_ratio, alpha, theta)
            models.append(theta)
        return np.array(models)


def _minimise_penalised(rows: FitRows, l1_ratio: float, alpha: float, theta: FloatArray) -> FloatArray:
    """Return the model of one penalty, by Newton steps from a model."""
    value = rows.objective(theta, alpha, l1_ratio)
    for _ in range(NEWTON_STEPS):
        t = rows.predictors(theta)
        curvatures = rows.curvatures(t)
        curvatures = np.maximum(curvatures, MIN_SHARE * curvatures.max())
        targets = t + rows.negative_gradients(t) / curvatures
        (goal,) = _solve_squares(rows, curvatures, targets, l1_ratio, np.array([alpha]), theta)
        size, moved = 1.0, goal
        while not (new := rows.objective(moved, alpha, l1_ratio)) <= value and size > MIN_SHARE:
            size /= 2.0
            moved = theta + size * (goal - theta)
        if not value - new > NEWTON_RTOL * abs(value):
            return moved if new <= value else theta
        theta, value = moved, new
    return theta


def _solve_squares(
    rows: FitRows, weights: FloatArray, targets: FloatArray, l1_ratio: float, alphas: FloatArray,
    start: FloatArray | None = None,
) -> FloatArray:  # fmt: skip
    """Return the (A, r + q) minimisers of half the weighted squared errors over the total weight, plus the penalty."""
    from sklearn.linear_model import enet_path, ridge_regression

    m, r = len(targets), rows.Z.shape[1]
    root = np.sqrt(weights * (m / rows.v.sum()))
    Z, X, y = root[:, None] * rows.Z, root[:, None] * rows.X, root * targets
    U, sizes, _ = np.linalg.svd(Z, full_matrices=False)
    U = U[:, sizes > INDEPENDENT * sizes.max(initial=0.0)]
    apart, residuals = X - U @ (U.T @ X), y - U @ (U.T @ y)
    if not X.shape[1]:
        slopes = np.zeros((len(alphas), 0))
    elif l1_ratio == 0.0:
        solver = "svd" if len(alphas) > 1 else "cholesky"
        targets = np.tile(residuals[:, None], len(alphas))
        slopes = np.atleast_2d(ridge_regression(apart, targets, alphas * m, solver=solver))
    else:
        first = None if start is None else start[r:].copy()
        _, path, _ = enet_path(
            np.asfortranarray(apart), residuals, l1_ratio=l1_ratio, alphas=alphas, coef_init=first,
            max_iter=MOST_SWEEPS, tol=SWEEP_TOL, check_input=False,
        )  # fmt: skip
        slopes = path.T
    free = lstsq(Z, y[:, None] - X @ slopes.T, cond=INDEPENDENT)[0].T if r else np.zeros((len(alphas), 0))
    return np.hstack([free, slopes])


def import_abess() -> Any:
    """Return the package abess; raise `BackendUnavailable` if it is not installed."""
    try:
        import abess
    except ImportError:
        raise BackendUnavailable('abess is not installed: pip install "sparsecv-mio[peers]"') from None
    return abess


def fit_subsets(
    rows: FitRows, values: Values, sizes: Sequence[int], check_time: Callable[[], None] = lambda: None
) -> FloatArray:
    """Return the (A, r + q) models of best subsets that abess finds, without a certificate and without a penalty.

    Parameters
    ----------
    rows : FitRows
        Rows; the unpenalised columns are at most an intercept.
    values : Values
        Values of the target.
    sizes : sequence of int
        Numbers of features.
    check_time : callable
        Function that raises an error to end the fit.
    """
    estimator, has_intercept, models = getattr(import_abess(), ABESS_MODELS[values]), rows.Z.shape[1] > 0, []
    for size in sizes:
        check_time()
        model = estimator(support_size=size, fit_intercept=has_intercept, thread=1)
        model.fit(rows.X, rows.y, sample_weight=rows.v)
        free = np.ravel(model.intercept_)[: rows.Z.shape[1]]
        models.append(np.concatenate([free, np.ravel(model.coef_)]))
    return np.array(models)
