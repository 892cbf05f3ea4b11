"""Held-out losses of single rows, each without a fit: a Newton step from the full-data fit, with a bound on its error.

Let z_j be the features of row j, theta the full-data fit, and `z_j'theta` the predictor of row j. The weighted loss of
the row is a function of its predictor; at theta, let c_j be the curvature of this function and f_j minus its slope. Let
H = L L' be the Hessian of the objective and `t_j = L^{-1} z_j`. Without row i, and in the coordinates of L, the
gradient is `u = f_i t_i` and the Hessian is `I - c_i t_i t_i'`. A Newton step `d = -(I - c_i t_i t_i')^{-1} u` changes
the predictor of row j by `t_j'd`.

Let `longest` be the largest |t_j|, and m = longest |d|. As |l'''| <= l'' for these losses l, the gradient after the
step is at most `exp(m) / 2 * longest * |d|^2` in the norm of the inverse Hessian. Call this bound delta, and let
`grown` be the square root of `1 / (1 - c_i |t_i|^2)`. The optimum without row i is then in the ball about the new point
whose radius rho satisfies `rho >= delta exp(m + rho longest grown)`: on the boundary of this ball the objective
increases outward. Further steps compute their gradients as sums over all rows (docs/theory/glm.md, section 9). The
module uses plain numpy and no code of the search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import CHUNK_ELEMENTS, BoolArray, FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.problem.glm_objective import GlmModel, encode_all_targets

NARROW = 1e-6  # relative width of a loss interval, above which another step is taken
MAX_NEWTON_STEPS_OF_ROW, MOST_MOVED = 8, 1.0  # maximum number of steps, and maximum move of a predictor


class SingleRows(NamedTuple):
    """Held-out results of (m,) single rows: bounds on weighted losses, approximate losses, and predictors.

    If nothing is known, the bounds are 0 and inf and the other values nan.
    """

    lower: FloatArray
    upper: FloatArray
    losses: FloatArray
    predictors: FloatArray

    def wide(self) -> BoolArray:
        """Return an (m,) mask of intervals wider than NARROW or unknown."""
        return ~(np.isfinite(self.upper) & (self.upper - self.lower <= NARROW * self.upper))


class LeftOutAlone:
    """Fits without one row each, by Newton steps from the full-data fit.

    Parameters
    ----------
    model : GlmModel
        Full-data fit.
    dataset : Dataset
        Data set.
    """

    def __init__(self, model: GlmModel, dataset: Dataset) -> None:
        self.loss, self.theta, self.penalty = model.loss, model.theta, model.penalty
        self.y, self.w = encode_all_targets(dataset, self.loss)
        self.Z, self.signs = model.rows(dataset.X), self.loss.signs(self.y)
        margins = self.signs * (self.Z @ self.theta)
        self.curved = self.loss.curvatures(margins, self.y, self.w)
        H = (self.Z * self.curved[:, None]).T @ self.Z + 2.0 * np.diag(self.penalty)
        unit = np.sqrt(np.diag(H))
        factor = np.linalg.cholesky(H / unit[:, None] / unit)
        self.back = np.linalg.solve(factor, np.diag(1.0 / unit))  # L^{-1}
        self.T = self.Z @ self.back.T
        self.length = np.linalg.norm(self.T, axis=1)
        self.longest = float(self.length.max(initial=0.0))
        self.gradient = self._gradient(margins[:, None], self.theta[:, None])[:, 0]
        self.falls = self.signs * self.loss.falls(margins, self.y, self.w)

    def _gradient(self, margins: FloatArray, points: FloatArray) -> FloatArray:
        """(k, B) gradients of all rows at points, with their (n, B) margins, in the coordinates of L."""
        falls = self.loss.falls(margins, self.y[:, None], (self.w * self.signs)[:, None])
        return np.asarray(self.back @ (2.0 * self.penalty[:, None] * points - self.Z.T @ falls))

    @np.errstate(over="ignore", invalid="ignore")  # for rows without a result
    def held_out(self, rows: IntArray, tell: Callable[[int], None] = lambda done: None) -> SingleRows:
        """Return the held-out results of some rows.

        Parameters
        ----------
        rows : (m,) int array
            Rows.
        tell : callable
            Function that is called with the number of finished rows.
        """
        first, step, done = self._take_first_step(rows), max(CHUNK_ELEMENTS // max(len(self.y), 1), 1), len(rows)
        wide = np.flatnonzero(first.wide() & np.isfinite(self._smallest_eigenvalues(rows)))
        for begin in range(0, len(wide), step):
            here = wide[begin : begin + step]
            tell(done - len(wide) + begin)
            for values, more in zip(first, self._further(rows[here]), strict=True):
                values[here] = more
        return first

    def rises(self, rows: IntArray, found: SingleRows, off: float) -> FloatArray:
        """Return (m,) errors of losses due to an error `off` of the predictors."""
        y = self.y[rows]
        return self.w[rows] * self.loss.rises(self.loss.signs(y) * found.predictors, y, np.full(len(y), off))

    def _solve_without_rows(self, rows: IntArray, u: FloatArray) -> FloatArray:
        """Return (m, k) `(I - c t t')^{-1} u` of every row."""
        t, eigenvalue = self.T[rows], self._smallest_eigenvalues(rows)
        return np.asarray(u + (self.curved[rows] * (t * u).sum(axis=1) / eigenvalue)[:, None] * t)

    def _smallest_eigenvalues(self, rows: IntArray) -> FloatArray:
        """Return (m,) smallest eigenvalues of the Hessians without rows; nan if rounding hides them."""
        eigenvalue = 1.0 - self.curved[rows] * self.length[rows] ** 2
        return np.where(eigenvalue > 1e-6, eigenvalue, np.nan)

    def _take_first_step(self, rows: IntArray) -> SingleRows:
        d = -self._solve_without_rows(rows, self.gradient + self.falls[rows, None] * self.T[rows])
        size = np.linalg.norm(d, axis=1)
        moved = self.longest * size
        delta = 0.5 * np.exp(moved) * self.longest * size**2 / np.sqrt(self._smallest_eigenvalues(rows))
        return self._ends(rows, d, delta, moved)

    def _further(self, rows: IntArray) -> SingleRows:
        """Return results after further steps, whose gradients are computed from all rows."""
        own, d = (
            np.arange(len(rows)),
            -self._solve_without_rows(rows, self.gradient + self.falls[rows, None] * self.T[rows]),
        )
        for _ in range(MAX_NEWTON_STEPS_OF_ROW):
            points = self.theta[:, None] + self.back.T @ d.T
            margins = self.signs[:, None] * (self.Z @ points)
            falls = self.signs[rows] * self.loss.falls(margins[rows, own], self.y[rows], self.w[rows])
            u = self._gradient(margins, points).T + falls[:, None] * self.T[rows]
            step = self._solve_without_rows(rows, u)
            delta = np.sqrt(np.maximum((step * u).sum(axis=1), 0.0))
            results = self._ends(rows, d, delta, self.longest * np.linalg.norm(d, axis=1))
            if not results.wide().any():
                break
            d = d - step
        return results

    def _ends(self, rows: IntArray, d: FloatArray, delta: FloatArray, moved: FloatArray) -> SingleRows:
        """Return bounds on the losses of rows whose gradient is at most delta in the norm of the inverse Hessian."""
        grown = 1.0 / np.sqrt(self._smallest_eigenvalues(rows))
        rho = delta * np.exp(moved)
        for _ in range(60):
            rho = delta * np.exp(moved + rho * self.longest * grown) * (1.0 + 1e-6)
        is_known = (moved + rho * self.longest * grown <= MOST_MOVED) & (
            delta * np.exp(moved + rho * self.longest * grown) <= rho
        )
        half = rho * self.length[rows] * grown
        predictors, y, w = self.Z[rows] @ self.theta + (self.T[rows] * d).sum(axis=1), self.y[rows], self.w[rows]
        predictors = np.where(is_known, predictors, np.nan)
        low, high = self.loss.bound_losses(predictors - half, predictors + half, y)
        near = w * self.loss.losses(self.loss.signs(y) * predictors, y)
        return SingleRows(np.where(is_known, w * low, 0.0), np.where(is_known, w * high, np.inf), near, predictors)
