"""The fit of one support of a `GlmProblem`: an upper bound on its objective F, and the curvature of F around it.

Every backend takes its upper bounds from this module, or from `refit_moments` for squared-error loss. The module uses
plain numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.problem.glm import GlmProblem, eliminate_intercept
from sparsecv_mio.problem.glm_refit import RefitRows, accuracy, newton
from sparsecv_mio.problem.moment_fits import Fit
from sparsecv_mio.problem.problem import SparseProblem


@dataclass(frozen=True, eq=False)
class GlmFit(Fit):
    """A support with its coefficients and the intercept, which is 0 if the problem has none."""

    intercept: float

    def theta(self, problem: GlmProblem) -> FloatArray:
        """Return the (first + p,) point of all columns, in the coordinates of the problem."""
        return np.concatenate([np.full(problem.first_coefficient, self.intercept), self.spread(problem.p)])


def fit_glm(problem: GlmProblem, support: tuple[int, ...]) -> GlmFit:
    """Return the minimiser of F over the coefficients of one support and the intercept.

    Parameters
    ----------
    problem : GlmProblem
        Problem with centred columns.
    support : tuple of int
        Columns of the support.

    Returns
    -------
    GlmFit
        The fit; its objective is F at the returned coefficients, rounded up.

    Notes
    -----
    Approximately six steps of O(n s^2).

    Examples
    --------
    >>> X, y = np.array([[-1.0], [0.0], [0.0], [1.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> fit = fit_glm(GlmProblem(X, y, np.ones(4), np.ones(1), 1.0), (0,))
    >>> round(float(fit.beta[0]), 6), round(fit.objective, 6)
    (0.674832, 2.437209)
    """
    narrow = problem.select_columns(np.array(sorted(support), dtype=np.int64))
    start, blur = narrow.start(), np.zeros(narrow.first_coefficient + narrow.p)
    rows = RefitRows(narrow.rows, narrow.y, narrow.v, narrow.penalty, narrow.loss)
    theta, point = newton(rows, start, blur)
    _, drop = accuracy(narrow.rows, point)
    intercept = float(theta[0]) if narrow.first_coefficient else 0.0
    value, off = point.value, point.value_off
    return GlmFit(tuple(sorted(support)), theta[narrow.first_coefficient :], value + off, 2.0 * off + drop, intercept)


def expand_around_fit(problem: GlmProblem, fit: GlmFit) -> SparseProblem:
    """Return the second-order expansion of F around a fit as a squared-error problem without the intercept.

    The expansion is not a bound on F; its best subset is a good candidate.

    Parameters
    ----------
    problem : GlmProblem
        Problem.
    fit : GlmFit
        Fit.

    Notes
    -----
    O(n p^2).

    Examples
    --------
    >>> X, y = np.array([[-1.0], [0.0], [0.0], [1.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> problem = GlmProblem(X, y, np.ones(4), np.ones(1), 1.0)
    >>> around = expand_around_fit(problem, fit_glm(problem, (0,)))
    >>> round(float(around.c[0] / around.M[0, 0]), 6)
    0.674832
    """
    Z, theta = problem.rows, fit.theta(problem)
    margins, loss, y, v = problem.signs * (Z @ theta), problem.loss, problem.y, problem.v
    H = (Z.T * loss.curvatures(margins, y, v)) @ Z + np.diag(2.0 * problem.penalty)
    linear = 2.0 * problem.penalty * theta - Z.T @ loss.falls(margins, y, v * problem.signs) - H @ theta
    M, c, _ = eliminate_intercept(H, linear, 0.0, problem.first_coefficient)
    ridge, M = problem.ridge, 0.5 * (M + M.T)
    drop = float(c @ np.linalg.lstsq(M, c, rcond=None)[0])
    Q = M - np.diag(ridge)
    return SparseProblem(Q, c, drop + fit.objective, ridge, 1.0, len(problem.y), np.zeros(len(c)), 0.0)
