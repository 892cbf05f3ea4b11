"""Peers that have no class in scikit-learn: both hyperparameters of the relaxed lasso, forward selection, MCP, SCAD.

Columns come centred and scaled by a pipeline; the intercept is the mean of the target. Each chooses by the mean of the
squared errors of all held-out rows and is then fitted on all rows; with `refit=False` the fit of its only
fold stays.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.linalg import lstsq
from sklearn.base import BaseEstimator
from sklearn.linear_model import lasso_path

from sparsecv_mio.arrays import FloatArray, IntArray

Splits = list[tuple[IntArray, IntArray]]
MIXES = (0.0, 0.25, 0.5, 0.75, 1.0)
ALPHAS = 100
MOST_FORWARD = 50


class _Chosen(BaseEstimator):
    """A path of models: every fold fits all of it, the least mean squared error chooses."""

    def __init__(self, splits: Splits, refit: bool = True) -> None:
        self.splits, self.refit = splits, refit

    def _path(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Return the coefficients of all models, (models, p), of centred rows."""
        raise NotImplementedError

    def fit(self, X: FloatArray, y: FloatArray) -> Self:
        """Choose by the folds, then fit all rows."""
        self._begin(X, y)
        errors, rows = np.zeros(1), 0
        for train, test in self.splits:
            mean, level = X[train].mean(axis=0), y[train].mean()
            path = self._path(X[train] - mean, y[train] - level)
            left = (y[test] - level)[:, None] - (X[test] - mean) @ path.T
            errors, rows = errors + np.sum(left**2, axis=0), rows + len(test)
        best = int(np.argmin(errors))
        self.cv_error_ = float(errors[best]) / rows
        if self.refit:
            mean, level = X.mean(axis=0), y.mean()
            path = self._path(X - mean, y - level)
        self.coef_ = path[best]
        self.intercept_ = float(level - mean @ self.coef_)
        self._keep(best)
        return self

    def _begin(self, X: FloatArray, y: FloatArray) -> None:
        """Set what all folds share."""

    def _keep(self, best: int) -> None:
        """Note the hyperparameters of the model that was chosen."""


def _alphas(X: FloatArray, y: FloatArray) -> FloatArray:
    largest = float(np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max()) / len(y)
    return largest * np.logspace(0.0, -3.0, ALPHAS)


def _least_squares(X: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(lstsq(X, y, lapack_driver="gelsy", check_finite=False)[0])  # a third of the time of an SVD


class RelaxedLassoCV(_Chosen):
    """The relaxed lasso: mixes of the lasso and of least squares on its support (Hastie and others, 2020).

    Parameters
    ----------
    splits : list of (train, test)
    refit : bool
    """

    def _begin(self, X: FloatArray, y: FloatArray) -> None:
        self.alphas_ = _alphas(X, y)

    def _path(self, X: FloatArray, y: FloatArray) -> FloatArray:
        _, lasso, _ = lasso_path(X, y, alphas=self.alphas_, max_iter=20_000)
        models, last, fitted = [], None, np.zeros(X.shape[1])
        for beta in lasso.T:
            support = np.flatnonzero(beta)
            if last is None or not np.array_equal(support, last):
                fitted = np.zeros(X.shape[1])
                if 0 < len(support) < len(y):
                    fitted[support] = _least_squares(X[:, support], y)
                else:
                    fitted = beta
                last = support
            models += [mix * beta + (1.0 - mix) * fitted for mix in MIXES]
        return np.array(models)

    def _keep(self, best: int) -> None:
        self.alpha_, self.mix_ = float(self.alphas_[best // len(MIXES)]), MIXES[best % len(MIXES)]


class ForwardSelectionCV(_Chosen):
    """Forward stepwise selection by least squares, its size by cross-validation.

    Parameters
    ----------
    splits : list of (train, test)
    refit : bool
    """

    def _begin(self, X: FloatArray, y: FloatArray) -> None:
        fewest = min(len(train) for train, _ in self.splits)
        self.most_ = max(1, min(X.shape[1], fewest - 2, MOST_FORWARD))

    def _path(self, X: FloatArray, y: FloatArray) -> FloatArray:
        n, p = X.shape
        models, basis, support = [np.zeros(p)], np.zeros((n, 0)), list[int]()
        rest, residual = X.copy(), y.copy()
        length = np.maximum(np.linalg.norm(X, axis=0), 1e-300)
        for _ in range(self.most_):
            size = np.linalg.norm(rest, axis=0)
            free = size > 1e-8 * length
            free[support] = False
            if not free.any():
                break
            gain = np.where(free, np.abs(rest.T @ residual) / np.where(free, size, 1.0), -1.0)
            j = int(np.argmax(gain))
            direction = rest[:, j] / size[j]
            basis, support = np.column_stack([basis, direction]), [*support, j]
            residual = residual - direction * (direction @ residual)
            rest -= np.outer(direction, direction @ rest)
            beta = np.zeros(p)
            beta[support] = _least_squares(X[:, support], y)
            models.append(beta)
        return np.array(models + [models[-1]] * (self.most_ + 1 - len(models)))

    def _keep(self, best: int) -> None:
        self.tau_ = best


class ConcavePenaltyCV(_Chosen):
    """MCP (gamma 3) or SCAD (gamma 3.7) by skglm along a path of alphas, warm-started.

    Parameters
    ----------
    splits : list of (train, test)
    refit : bool
    kind : {"mcp", "scad"}
    """

    def __init__(self, splits: Splits, refit: bool = True, kind: str = "mcp") -> None:
        super().__init__(splits, refit)
        self.kind = kind

    def _begin(self, X: FloatArray, y: FloatArray) -> None:
        self.alphas_ = _alphas(X, y)

    def _path(self, X: FloatArray, y: FloatArray) -> FloatArray:
        from skglm.datafits import Quadratic
        from skglm.penalties import SCAD, MCPenalty
        from skglm.solvers import AndersonCD

        penalty = MCPenalty(1.0, 3.0) if self.kind == "mcp" else SCAD(1.0, 3.7)
        solver = AndersonCD(fit_intercept=False, max_iter=200, tol=1e-5)
        _, models, _ = solver.path(np.asfortranarray(X), y, Quadratic(), penalty, self.alphas_)
        return np.asarray(models.T)

    def _keep(self, best: int) -> None:
        self.alpha_ = float(self.alphas_[best])
