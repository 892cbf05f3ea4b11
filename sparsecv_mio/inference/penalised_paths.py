"""Paths of penalised models on the rows of one fit: lasso, ridge, elastic net, and best subsets by abess.

Let l_i be the loss of row i, v_i the weight of this loss and V the sum of the row weights. A penalised model minimises

    (1/V) sum_i v_i l_i(t_i) + alpha (r ||b||_1 + (1 - r) / 2 ||b||^2),   t = Z c + X b.

With squared-error loss, l_i is half the squared error. The intercept and the adjustment columns Z are not penalised; r
is 1 for the lasso and 0 for ridge regression. With exposures e_i, v_i is the row weight times e_i, and V does not
contain the exposures. Numeric targets are divided by their standard deviation, as in glmnet, so that a path does not
depend on the unit of the target. Squared-error fits are those of scikit-learn. With other losses, a Newton step
replaces the loss by a weighted sum of squares, and scikit-learn minimises this sum plus the penalty (Friedman, Hastie
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

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.errors import BackendUnavailable, advise_extra
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
L1_RATIOS = {"lasso": (1.0,), "ridge": (0.0,), "elasticnet": (0.1, 0.5, 0.9)}  # shares of the absolute values
ABESS_MODELS = {
    Values.NUMBERS: "LinearRegression", Values.CLASSES: "LogisticRegression", Values.COUNTS: "PoissonRegression"
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class FitRows:
    """The rows of one fit in the form of the loss.

    Attributes
    ----------
    design : (m, 1 + p) array
        The constant 1, followed by the columns of the data, divided by their scales.
    free, penalised : int arrays
        Positions in `design` of the unpenalised columns (0 is the intercept) and of the penalised columns.
    y, v : (m,) arrays
        Targets and weights of the losses.
    total : float
        Sum of the row weights.
    loss : RowLoss
        Loss of a row.
    is_quadratic : bool
        True for squared-error loss.
    """

    design: FloatArray
    free: IntArray
    penalised: IntArray
    y: FloatArray
    v: FloatArray
    total: float
    loss: RowLoss
    is_quadratic: bool

    def curvatures(self, t: FloatArray) -> FloatArray:
        """Return (m,) weighted curvatures of the losses at linear predictors."""
        return np.asarray(self.loss.curvatures(self.loss.signs(self.y) * t, self.y, self.v))

    def negative_gradients(self, t: FloatArray) -> FloatArray:
        """Return (m,) weighted negative slopes of the losses at linear predictors."""
        signs = self.loss.signs(self.y)
        return np.asarray(signs * self.loss.negative_gradient(signs * t, self.y, self.v))

    def objective(self, theta: FloatArray, alpha: float, l1_ratio: float) -> float:
        """Return the penalised mean loss of a model; not for squared-error loss, which is halved."""
        b = theta[self.penalised]
        with np.errstate(over="ignore", invalid="ignore"):
            losses = self.loss.losses(self.loss.signs(self.y) * (self.design @ theta), self.y)
            penalty = l1_ratio * np.abs(b).sum() + (1.0 - l1_ratio) / 2.0 * (b @ b)
            return float(self.v @ losses / self.total + alpha * penalty)


def make_penalties(rows: FitRows, l1_ratio: float) -> FloatArray:
    """Return the descending penalties of a path, from all rows.

    Parameters
    ----------
    rows : FitRows
        All rows.
    l1_ratio : float
        Share of the absolute values in the penalty. Unless it is 0, all coefficients are zero at the first penalty.
    """
    (unpenalised,) = fit_path(replace(rows, penalised=rows.penalised[:0]), 1.0, np.zeros(1))
    t, X = rows.design @ unpenalised, rows.design[:, rows.penalised]
    total, count = (2.0 * rows.total, N_ALPHAS) if rows.is_quadratic else (rows.total, N_SMOOTH_ALPHAS)
    if l1_ratio == 0.0:
        scale = float(rows.curvatures(t) @ (X**2).mean(axis=1)) / total
        return np.geomspace(*RIDGE_RANGE, count) * max(scale, TINY)
    largest = float(np.abs(X.T @ rows.negative_gradients(t)).max(initial=TINY)) / total / l1_ratio
    ratio = LASSO_RANGES[X.shape[1] >= len(rows.y)]
    return np.geomspace(1.0, ratio, count) * (largest * (1.0 + SHAVED))  # rounding selects no column at the first


def make_paths(rows: FitRows, method: str) -> list[tuple[float, FloatArray]]:
    """Return the paths of a method: shares of the absolute values in the penalty, with descending penalties.

    Parameters
    ----------
    rows : FitRows
        All rows.
    method : str
        Key of `L1_RATIOS`.
    """
    return [(l1_ratio, make_penalties(rows, l1_ratio)) for l1_ratio in L1_RATIOS[method]]


def fit_paths(
    rows: FitRows, paths: Sequence[tuple[float, FloatArray]], check_time: Callable[[], None] = lambda: None
) -> FloatArray:
    """Return the models of several paths, one after the other; see `fit_path`."""
    return np.vstack([fit_path(rows, *path, check_time) for path in paths])


def fit_path(
    rows: FitRows, l1_ratio: float, alphas: FloatArray, check_time: Callable[[], None] = lambda: None
) -> FloatArray:
    """Return the (A, 1 + p) models of a path of penalties: intercepts and coefficients of the columns of `design`.

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
    """
    from sklearn import config_context

    # Checks of arguments take longer than small fits. Fits that have not converged are models with held-out errors too.
    with warnings.catch_warnings(), config_context(assume_finite=True, skip_parameter_validation=True):
        warnings.simplefilter("ignore")
        theta, models = np.zeros(rows.design.shape[1]), list[FloatArray]()
        if rows.is_quadratic:
            return _solve_squares(rows, rows.v, rows.y, l1_ratio, alphas, theta)
        if 0 in rows.free:
            theta[0] = rows.loss.origin(rows.y, rows.v)
        for alpha in alphas.tolist():
            check_time()
            theta = _minimise_objective(rows, l1_ratio, alpha, theta)
            models.append(theta)
        return np.array(models)


def _minimise_objective(rows: FitRows, l1_ratio: float, alpha: float, theta: FloatArray) -> FloatArray:
    """Return the model of one penalty, by Newton steps from a model."""
    value = rows.objective(theta, alpha, l1_ratio)
    for _ in range(NEWTON_STEPS):
        t = rows.design @ theta
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
    rows: FitRows, weights: FloatArray, targets: FloatArray, l1_ratio: float, alphas: FloatArray, start: FloatArray
) -> FloatArray:
    """Return the (A, 1 + p) minimisers of half the weighted squared errors over `total`, plus the penalty."""
    from sklearn.linear_model import enet_path, ridge_regression

    m, slopes = len(targets), np.zeros((len(alphas), len(rows.penalised)))
    root = np.sqrt(weights * (m / rows.total))
    Z, X = (root[:, None] * rows.design[:, columns] for columns in (rows.free, rows.penalised))
    U, sizes, _ = np.linalg.svd(Z, full_matrices=False)
    U = U[:, sizes > INDEPENDENT * sizes.max(initial=0.0)]
    apart, y = X - U @ (U.T @ X), root * targets
    residuals = y - U @ (U.T @ y)
    if X.size and l1_ratio == 0.0:
        solver = "svd" if len(alphas) > 1 else "cholesky"
        slopes[:] = ridge_regression(apart, np.tile(residuals[:, None], len(alphas)), alphas * m, solver=solver)
    elif X.size:
        slopes = enet_path(
            np.asfortranarray(apart), residuals, l1_ratio=l1_ratio, alphas=alphas, coef_init=start[rows.penalised],
            max_iter=MOST_SWEEPS, tol=SWEEP_TOL, check_input=False, precompute=False,
        )[1].T  # fmt: skip
    models = np.zeros((len(alphas), len(start)))
    models[:, rows.penalised] = slopes
    models[:, rows.free] = lstsq(Z, y[:, None] - X @ slopes.T, cond=INDEPENDENT)[0].T
    return models


def import_abess() -> Any:
    """Return the package abess; raise `BackendUnavailable` if it is not installed."""
    try:
        import abess
    except ImportError:
        raise BackendUnavailable(f"abess is not installed: {advise_extra('abess', 'peers')}") from None
    return abess


def fit_subsets(rows: FitRows, values: Values, sizes: Sequence[int], check_time: Callable[[], None]) -> FloatArray:
    """Return the (A, 1 + p) models of best subsets that abess finds, without a certificate and without a penalty.

    Parameters
    ----------
    rows : FitRows
        Rows; the only unpenalised column is the intercept, if there is one.
    values : Values
        Values of the target.
    sizes : sequence of int
        Numbers of features.
    check_time : callable
        Function that raises an error to end the fit.
    """
    make_model, has_intercept = getattr(import_abess(), ABESS_MODELS[values]), rows.free.size > 0
    models = np.zeros((len(sizes), rows.design.shape[1]))
    for theta, size in zip(models, sizes, strict=True):
        check_time()
        model = make_model(support_size=size, fit_intercept=has_intercept, thread=1)
        model.fit(rows.design[:, rows.penalised], rows.y, sample_weight=rows.v)
        theta[rows.free], theta[rows.penalised] = np.ravel(model.intercept_)[: rows.free.size], np.ravel(model.coef_)
    return models
