"""Best-subset logistic regression as a task for solvers, with the log loss of each row.

    min  sum_i v_i s_i + sum_j ridge_j t_j     s.t.  s_i >= log(1 + exp(-r_i)),   r_i = y_i (a + x_i'b),
                                                     b_j^2 <= t_j z_j,   lo z <= b <= hi z,   sum z <= tau,  z binary

Here v_i is the weight of row i and r_i its margin, with y_i = -1 or 1. Columns are centred (`GlmProblem.centred`), and
the objective is divided by the mean weight of a row, so that a row has a weight of about 1.

Bounds on coefficients and margins hold for every solution at least as good as the initial one. The bounds come from a
quadratic that is below the objective F wherever F is at most that of the initial solution (docs/theory/glm.md, section
3). The perspective relaxation of this quadratic is the first lower bound.

The upper bounds of every backend are computed by `fit_glm`, the fit of one support in plain numpy. For squared-error
loss, `refit_moments` computes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.formulation.feasible_start import feasible_start
from sparsecv_mio.formulation.outcome import KnownBounds
from sparsecv_mio.formulation.task import LEVEL_MARGIN, ModelTask, ScaledProblem, scaled_problem
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.glm import GlmProblem, Minorant, eliminate_intercept, minorant
from sparsecv_mio.problem.glm_refit import RefitRows, bound_distance_to_optimum, newton
from sparsecv_mio.problem.moment_fits import Fit
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.units import SHAVED

EXPANSIONS = 8  # maximum number of expansions of F about a fit
EVEN = 3e-3  # minimum mean loss of the null model: at 3e-5 a bound of HiGHS was wrong by 1e-4 of that loss


@dataclass(frozen=True, eq=False)
class ScaledLosses(ScaledProblem):
    """The problem `phi = F / unit^2`, unit^2 the mean weight of a row; a point u has coefficients, then any intercept.

    Of the parent's attributes, G and g are empty and zero: the only quadratic part is that of the penalty, `w`.

    Attributes
    ----------
    classes : GlmProblem
        Problem in centred columns.
    low, high : (n,) arrays
        Bounds on the margins of every fit as good as the start.
    """

    classes: GlmProblem
    low: FloatArray
    high: FloatArray

    @property
    def free(self) -> int:
        """Number of intercepts, 1 or 0."""
        return self.classes.first_coefficient

    @property
    def span(self) -> float:
        """Value of phi without columns."""
        return self.value(self.yy)

    @property
    def has_uneven_weights(self) -> bool:
        """True if a solver tolerance of every row, by its weight, is large compared with the loss of the null model."""
        return bool(self.yy < EVEN * self.classes.v.sum())

    @cached_property
    def factor(self) -> FloatArray:
        """Rows of the margins, (n, q + free)."""
        return np.asarray(np.roll(self.classes.rows, -self.free, axis=1) * self.classes.y[:, None])

    @property
    def row_weights(self) -> FloatArray:
        """Row weights divided by their mean, (n,)."""
        return np.asarray(self.classes.v / self.unit**2)

    def losses_and_slopes(self, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log losses of margins, and their slopes."""
        return np.logaddexp(0.0, -r), -expit(-r)

    def row_ranges(self, upper: float) -> tuple[FloatArray, FloatArray]:
        """Return the middle and half the width of the range of every margin."""
        low = np.maximum(self.low, -WIDEST)
        high = np.maximum(np.minimum(self.high, WIDEST), low)
        return 0.5 * (low + high), 0.5 * (high - low)

    def fit_support(self, z: FloatArray) -> tuple[FloatArray, float]:
        """Return the fit of the support of a 0/1 point, and its phi."""
        fit = fit_glm(self.classes, tuple(np.flatnonzero(z).tolist()))
        return self.scaled_coefficients(fit), self.value(fit.objective)

    def scaled_coefficients(self, fit: Fit) -> FloatArray:
        """Return coefficients and intercept of a fit."""
        assert isinstance(fit, GlmFit)
        return np.roll(fit.theta(self.classes), -self.free)

    def to_u(self, beta: FloatArray) -> FloatArray:
        """Return coefficients unchanged."""
        return beta

    def value(self, objective: float) -> float:
        """Return the phi of an F."""
        return objective / self.unit**2

    def objective(self, value: float) -> float:
        """Return the F of a phi."""
        return value * self.unit**2


WIDEST = 40.0  # absolute margin beyond which the loss equals its asymptote to the last digit


def feasible_classes(problem: GlmProblem, tau: int, constraints: SideConstraints) -> GlmFit | None:
    """Return a feasible fit, good but not optimal; None if the side constraints exclude every support.

    Parameters
    ----------
    problem : GlmProblem
        Problem in centred columns.
    tau : int
        Maximum support size.
    constraints : SideConstraints
        Side constraints.

    Notes
    -----
    `feasible_start` proposes a support for the expansion of F about a fit; its fit is the centre of the next expansion,
    until there is no improvement.
    """
    best, around = None, fit_glm(problem, ())
    for _ in range(EXPANSIONS):
        proposed = feasible_start(expand_around_fit(problem, around), tau, constraints)
        if proposed is None:
            return None
        fit = fit_glm(problem, proposed.support)
        if best is not None and fit.objective >= best.objective:
            break
        best = around = fit
    return best


def unbounded_task(
    problem: GlmProblem, tau: int, constraints: SideConstraints, start: Fit, advice: KnownBounds
) -> ModelTask:
    """Return the task for a solver that needs no bounds on coefficients.

    Parameters
    ----------
    problem : GlmProblem
        Problem in centred columns.
    tau : int
        Maximum support size.
    constraints : SideConstraints
        Side constraints.
    start : Fit
        Feasible support with its exact refit.
    advice : KnownBounds
        Bounds known in advance; its points are not used.
    """
    q, n, none = problem.p, len(problem.y), fit_glm(problem, ())
    scaled = ScaledLosses(
        G=np.zeros((0, 0)),
        w=problem.ridge / problem.v.mean(),
        g=np.zeros(q),
        ridge=np.zeros(problem.first_coefficient + q),
        inverse=np.full(q, np.inf),
        floor=0.0,
        doubt=np.inf,
        column=np.ones(q),
        unit=float(problem.v.mean()) ** 0.5,
        yy=none.objective,
        classes=problem,
        low=np.full(n, -np.inf),
        high=np.full(n, np.inf),
    )
    floor = scaled.value(max(advice.lower, 0.0))
    unknown, fixed = np.full(q, np.inf), constraints.fixed(q)
    return ModelTask(problem, scaled, tau, constraints, start, -unknown, unknown, *fixed, floor, ())


def loss_task(
    problem: GlmProblem, tau: int, constraints: SideConstraints, start: Fit, advice: KnownBounds
) -> ModelTask:
    """Return the task with scaled units and bounds on coefficients and margins; about ten rounds of O(n q^2).

    Parameters
    ----------
    problem : GlmProblem
        Problem in centred columns.
    tau : int
        Maximum support size.
    constraints : SideConstraints
        Side constraints.
    start : Fit
        Feasible support with its exact refit.
    advice : KnownBounds
        Bounds known in advance; its points are not used.
    """
    plain = unbounded_task(problem, tau, constraints, start, advice)
    level = start.objective + LEVEL_MARGIN * plain.scaled.yy
    best = fit_glm(problem, tuple(range(problem.p)))
    lo, hi, low, high = _crude(problem, level)
    floor = plain.floor
    below = minorant(problem, best.theta(problem), level)
    if below is not None:
        first = problem.first_coefficient
        middle, reach = below.ellipsoid.centre[first:], below.reach[first:] * (1.0 + SHAVED) + SHAVED
        lo, hi = np.maximum(lo, middle - reach), np.minimum(hi, middle + reach)
        low, high = np.maximum(low, below.ranges.low), np.minimum(high, below.ranges.high)
        floor = max(floor, plain.scaled.value(_relaxation_bound(below, constraints.columns(tau))))
    assert isinstance(plain.scaled, ScaledLosses)
    at = plain.scaled.scaled_coefficients(start)[: problem.p]
    lo, hi = np.minimum(np.minimum(lo, 0.0), at), np.maximum(np.maximum(hi, 0.0), at)
    ridge = plain.scaled.scaled_coefficients(best)
    scaled = replace(plain.scaled, ridge=ridge, low=low, high=high)
    return replace(plain, scaled=scaled, lo=lo, hi=hi, floor=floor, points=(ridge,))


def _crude(problem: GlmProblem, level: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return bounds on coefficients from their penalties alone, and on margins from the losses of their rows alone."""
    reach = np.sqrt(level / problem.ridge) * (1.0 + SHAVED)
    share = level / problem.v * (1.0 + SHAVED)
    low = -(share + np.log(-np.expm1(-share))) - SHAVED  # log(1 + exp(-r)) <= share
    return -reach, reach, low, np.full(len(low), math.inf)


def _relaxation_bound(below: Minorant, size: int) -> float:
    """Return a lower bound of F over all supports of a number of columns, by the quadratic below F."""
    squares = scaled_problem(below.moments)
    return float(min(squares.objective(squares.own_lower(size)) - below.shift, below.level))


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
    _, drop = bound_distance_to_optimum(narrow.rows, point)
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
