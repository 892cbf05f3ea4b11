"""One best-subset problem in scaled units, with bounds on every coefficient and an initial solution.

**Squared-error loss.** Let M be the matrix, c the vector and yy the constant of the objective `f(b) = yy - 2 c'b + b'M
b`. With `m_j = sqrt(M_jj)`, the ridge value `f_r = f(all columns)` and the scaled coefficients `u_j = m_j b_j / sqrt(yy
- f_r)`,

    (f(b) - yy) / (yy - f_r)  =  u'Gu + sum_j w_j u_j^2 - 2 g'u  =:  phi(u),      -1 <= min phi <= 0,

where `G + diag(w)` is M scaled to a unit diagonal, and g is c in the same units. Any w with a positive semidefinite G
is valid. Here w is the scaled penalty plus the smallest eigenvalue of the scaled M without the penalty. This eigenvalue
is the largest multiple of the identity that can be moved to the perspective terms (theory section 4). The perspective
relaxation replaces `w_j u_j^2` by `w_j u_j^2 / z_j`, where z_j is 1 for a chosen column.

The bounds on the coefficients are the big-M values of the models. They hold for every b whose objective is at most
ubar, the objective of the initial solution. Let b_r be the ridge fit on all columns. For every b with `f(b) <= ubar`
and any support,

    (b_r - b)' M (b_r - b) <= ubar - f(b_r)     =>     |b_j - b_r,j| <= sqrt((ubar - f(b_r)) (M^{-1})_jj)

(theory section 2, the safe ellipsoid with eps = lam; :mod:`sparsecv_mio.problem.problem`).

**Logistic loss.**

    min  sum_i v_i s_i + sum_j ridge_j t_j     s.t.  s_i >= log(1 + exp(-r_i)),   r_i = y_i (a + x_i'b),
                                                     b_j^2 <= t_j z_j,   lo z <= b <= hi z,   sum z <= tau,  z binary

Here v_i is the weight of row i and r_i its margin, with y_i = -1 or 1. Columns are centred
(`GlmProblem.centre_columns`), and the objective is divided by the mean weight of a row, so that a row has a weight of
about 1. Let F be the objective, and ubar its value at the initial solution. A quadratic function q is constructed that
is at most F wherever F is at most ubar (docs/theory/glm.md, section 3). This function gives the bounds on coefficients
and margins. The perspective relaxation of q gives the first lower bound on the minimum.

The upper bounds of every backend come from `refit_support`, the exact fit of one support in plain numpy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BackendFailed, BadInput
from sparsecv_mio.formulation.outcome import KnownBounds
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.glm import GlmProblem, Minorant, eliminate_intercept, minorant
from sparsecv_mio.problem.glm_refit import RefitRows, bound_distance_to_optimum, newton
from sparsecv_mio.problem.moment_fits import Fit, refit_moments, select_forward
from sparsecv_mio.problem.problem import SparseProblem, level_set_radius
from sparsecv_mio.problem.row_losses import LOG_LOSS
from sparsecv_mio.units import SHAVED, TINY

SOLVER_ROUNDING = 1e-11  # allowance, in units of yy, for the rounding of a bound computed here
LEVEL_MARGIN = 1e-6  # widening of the level, in units of yy - f_r: the start must stay feasible to solver tolerances
EXPANSIONS = 8  # maximum number of expansions of F about a fit
EXCHANGE_ROUNDS = 20  # maximum number of exchanges of columns of the initial support
EVEN = 3e-3  # minimum mean loss of the null model: at 3e-5 a bound of HiGHS was wrong by 1e-4 of that loss
WIDEST = 40.0  # absolute margin beyond which the loss equals its asymptote to the last digit


@dataclass(frozen=True, eq=False)
class ScaledProblem:
    """The problem `min phi(u)`, with the conversions between u and standard coefficients.

    Attributes
    ----------
    G : (q, q) array
        Positive semidefinite part outside of the perspective.
    w : (q,) array
        Diagonal in the perspective, all > 0 if gamma > 0.
    g : (q,) array
        Linear part.
    ridge : (q,) array
        Minimiser of phi with every column in.
    inverse : (q,) array
        Upper bounds on the diagonal of `(G + diag(w))^{-1}`; inf if the matrix is singular to working precision.
    floor : float
        Certified lower bound on min phi: the computed ridge value, about -1, minus its rounding error.
    doubt : float
        Bound on `||residual of the ridge solve||` in the norm of the inverse.
    column : (q,) array
        Column scales m_j.
    unit : float
        Unit in `b = u * unit / column`; `unit^2 = yy - f_r` (1 if that is zero).
    yy : float
        Squared length `y'y` of the problem's target.
    """

    G: FloatArray
    w: FloatArray
    g: FloatArray
    ridge: FloatArray
    inverse: FloatArray
    floor: float
    doubt: float
    column: FloatArray
    unit: float
    yy: float

    @property
    def free(self) -> int:
        """Number of coefficients without an indicator; they come after those of the columns in a point u."""
        return 0

    @property
    def span(self) -> float:
        """Approximate decrease of phi from no column to all columns."""
        return 1.0

    @property
    def has_uneven_weights(self) -> bool:
        """True if few rows have so large weights that a solver's tolerances exceed the trust in its bound."""
        return False

    @property
    def q(self) -> int:
        """Number of columns."""
        return int(self.g.shape[0])

    @property
    def row_weights(self) -> FloatArray:
        """Weights (r,) of the terms of the smooth part, whose rows are in `factor`."""
        return np.ones(len(self.factor))

    def losses_and_slopes(self, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the terms of the smooth part at `r = factor u`, and their slopes."""
        return r**2, 2.0 * r

    @property
    def bend(self) -> float:
        """Maximum change of the slope of a term of the smooth part over a range of length 1."""
        return 2.0

    def level_radius(self, upper: float, margin: float) -> float:
        """Return the radius of the ball around the ridge fit that contains every u with phi at most `upper`."""
        return level_set_radius(max(upper - self.floor, 0.0) + margin, self.doubt)

    def row_ranges(self, upper: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds on each r over every u with phi at most `upper`."""
        middle, radius = self.factor @ self.ridge, self.level_radius(upper, LEVEL_MARGIN) * (1.0 + SHAVED) + 1e-9
        return middle - radius, middle + radius

    def fit_support(self, z: FloatArray) -> tuple[FloatArray, float]:
        """Return the minimiser of phi on the support of a 0/1 point, and its phi."""
        u = self.fractional_fit(z)
        return u, float(u @ (self.G @ u) + self.w @ u**2 - 2.0 * self.g @ u)

    def scaled_coefficients(self, fit: Fit) -> FloatArray:
        """Return the scaled coefficients of a fit."""
        return self.to_u(fit.spread(self.q))

    def value(self, objective: float) -> float:
        """Return phi of an `f`."""
        return (objective - self.yy) / self.unit**2

    def objective(self, value: float) -> float:
        """Return the `f` of a phi."""
        return self.yy + self.unit**2 * value

    @cached_property
    def factor(self) -> FloatArray:
        """Matrix R, (r, q), with `R'R = G` to rounding, rows by falling weight; rank r <= q."""
        values, vectors = np.linalg.eigh(self.G)
        keep = values > 1e-14 * max(float(values[-1]), TINY)
        return np.ascontiguousarray((vectors[:, keep] * np.sqrt(values[keep])).T[::-1])

    def dual_cut(self, u: FloatArray) -> tuple[float, FloatArray]:
        """Return `(a, s)` with `phi >= a - s'z` for every support indicator z (theory section 1).

        `a = -u'Gu`, `s_j = (g - Gu)_j^2 / w_j`, for any u; tight at z if u minimises phi over the support of z.
        """
        Gu = self.G @ u
        return float(-u @ Gu), (self.g - Gu) ** 2 / self.w

    def fractional_fit(self, z: FloatArray) -> FloatArray:
        """Return the minimiser of `u'Gu - 2g'u + sum w_j u_j^2 / z_j` at fixed z in [0, 1]^q; O(s^3) for s nonzeros."""
        used = np.flatnonzero(z > 1e-9)
        u = np.zeros(self.q)
        if used.size:
            A = self.G[np.ix_(used, used)] + np.diag(self.w[used] / z[used])
            u[used] = _solve_definite(A, self.g[used])
        return u

    def own_lower(self, tau: int) -> float:
        """Return a lower bound on min phi by the ridge fit's dual cut, rounded down (theory section 4)."""
        a, s = self.dual_cut(self.ridge)
        best = a - float(np.sort(s)[::-1][:tau].sum()) - 4.0 * _rounding(self.G, self.w, self.g, self.ridge)
        return max(self.floor, best) - SOLVER_ROUNDING * self.yy / self.unit**2

    def clipped_cut(self, u: FloatArray, floor: float) -> tuple[float, FloatArray]:
        """Return the dual cut with its slopes clipped at `a - floor`, for a valid `phi >= floor`.

        At a 0/1 point that chooses a clipped column, the clipped cut is at most the floor, which is valid; at all other
        points it is unchanged. So it is valid at every 0/1 point, and stronger between them, with coefficients of order
        one.
        """
        a, s = self.dual_cut(u)
        return a, np.minimum(s, max(a - floor, 0.0))

    def magnify(self, factor: float) -> ScaledProblem:
        """Return the same problem with u multiplied by `factor` and phi by its square."""
        return replace(
            self,
            g=self.g * factor,
            ridge=self.ridge * factor,
            floor=self.floor * factor**2,
            doubt=self.doubt * factor,
            unit=self.unit / factor,
        )

    def to_u(self, beta: FloatArray) -> FloatArray:
        """Return scaled coefficients."""
        return beta * self.column / self.unit


def scaled_problem(problem: SparseProblem) -> ScaledProblem:
    """Return one inner problem in scaled units; O(q^3).

    Parameters
    ----------
    problem : SparseProblem
        Problem in standard coordinates.

    Returns
    -------
    ScaledProblem
        Problem in scaled units.
    """
    q = problem.q
    diagonal = problem.M.diagonal()
    column = np.where(diagonal > 0, np.sqrt(np.maximum(diagonal, 0.0)), 1.0)
    A = problem.M / column[:, None] / column
    A = 0.5 * (A + A.T)
    root = problem.yy**0.5 if problem.yy > 0 else 1.0
    g = problem.c / column / root
    w = problem.penalty / column**2
    G = problem.Q / column[:, None] / column
    spare = float(np.linalg.eigvalsh(G)[0]) - 1e-12 * q if q else 0.0
    if spare > 0:
        w = w + spare
        G = G - spare * np.eye(q)
    ridge, inverse = _ridge(A, g)
    drop = float(g @ ridge)
    unit = drop**0.5 if drop > 1e-30 else 1.0
    u = ridge / unit
    g = g / unit
    slop = _rounding(G, w, g, u)
    doubt = float(np.linalg.norm(A @ u - g) + 1e-16 * q) * float(np.sum(inverse)) ** 0.5 if q else 0.0
    floor = float(u @ (A @ u) - 2.0 * (g @ u)) - slop - doubt**2 if np.isfinite(doubt) else -np.inf
    yy_floor = -problem.yy / (unit * root) ** 2  # f is a sum of squares
    return ScaledProblem(G, w, g, u, inverse, max(floor, yy_floor), doubt, column, unit * root, problem.yy)


def _rounding(G: FloatArray, w: FloatArray, g: FloatArray, u: FloatArray) -> float:
    """Return a bound on the rounding error of `u'Gu + w'u^2 - 2g'u` in float64."""
    size = np.abs(u)
    return float(2e-15 * (size @ (np.abs(G) @ size) + w @ size**2 + 2.0 * np.abs(g) @ size))


def _ridge(A: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the solution of `A u = g` and upper bounds on the diagonal of `A^{-1}`.

    The bound is the inverse of `A - delta I`, with delta well above the rounding of a Cholesky factorisation; if that
    matrix is not positive definite, the bound is infinite.
    """
    q = len(g)
    if q == 0:
        return np.zeros(0), np.zeros(0)
    ridge = _solve_definite(A, g)
    try:
        shifted = cho_factor(A - 4e-15 * q * np.eye(q))
        inverse = np.asarray(cho_solve(shifted, np.eye(q)), dtype=np.float64).diagonal() * (1 + 1e-6)
    except LinAlgError:
        inverse = np.full(q, np.inf)
    return ridge, np.maximum(inverse, 0.0)


def _solve_definite(A: FloatArray, g: FloatArray) -> FloatArray:
    """Return the solution of `A u = g`, by least squares if rounding leaves A not positive definite."""
    try:
        return np.asarray(cho_solve(cho_factor(A), g), dtype=np.float64)
    except LinAlgError:
        return np.asarray(np.linalg.lstsq(A, g, rcond=None)[0], dtype=np.float64)


def level_set_interval(
    scaled: ScaledProblem, upper: float, margin: float = LEVEL_MARGIN
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on every scaled coefficient of every u with `phi(u) <= upper`.

    Parameters
    ----------
    scaled : ScaledProblem
        Problem in scaled units.
    upper : float
        Value phi of the start.
    margin : float, optional
        Amount added to the level.

    Returns
    -------
    lo, hi : (q,) arrays
        Bounds; infinite if the matrix is singular to working precision.
    """
    with np.errstate(invalid="ignore"):
        radius = scaled.level_radius(upper, margin) * np.sqrt(scaled.inverse) * (1 + 1e-6) + 1e-9
    return scaled.ridge - radius, scaled.ridge + radius


def link_bounds(
    scaled: ScaledProblem, upper: float, box: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds (lo, hi) of the rows `lo_j z_j <= u_j <= hi_j z_j`.

    Parameters
    ----------
    scaled : ScaledProblem
        Problem in scaled units.
    upper : float
        Value phi of the start.
    box : pair of (q,) arrays
        The user's bounds in standard coordinates, used unchanged. The interval of the level set is widened to contain
        zero, the value of a column that is not chosen.

    Returns
    -------
    lo, hi : (q,) arrays
        Bounds; infinite if unknown.
    """
    lo, hi = level_set_interval(scaled, upper)
    lo, hi = np.minimum(lo, 0.0), np.maximum(hi, 0.0)
    return np.maximum(lo, scaled.to_u(box[0])), np.minimum(hi, scaled.to_u(box[1]))


def require_finite(lo: FloatArray, hi: FloatArray, backend: str) -> None:
    """Raise an error if a coefficient has no finite bound, for models that need big-M values.

    Parameters
    ----------
    lo, hi : (q,) arrays
        Bounds on the coefficients.
    backend : str
        Name of the backend, for the message.

    Raises
    ------
    BadInput
        If a bound is infinite.
    """
    if not (np.isfinite(lo).all() and np.isfinite(hi).all()):
        raise BadInput(
            f"with this gamma the columns are collinear up to rounding, so {backend} has no valid big-M; "
            "use a larger gamma, scaled columns or the native backend"
        )


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
        labels = np.ones(len(r))  # the signs of the rows are in r
        return LOG_LOSS.losses(r, labels), -LOG_LOSS.negative_gradient(r, labels)

    @property
    def bend(self) -> float:
        """Maximum curvature of the log loss."""
        return 0.25

    def row_ranges(self, upper: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds on every margin, within the range in which the loss differs from its asymptote."""
        low = np.maximum(self.low, -WIDEST)
        return low, np.maximum(np.minimum(self.high, WIDEST), low)

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


@dataclass(frozen=True, eq=False)
class ModelTask:
    """One solve in scaled units, with the phi defined in the module.

    Attributes
    ----------
    problem : SparseProblem or GlmProblem
        Problem in standard coordinates, or in centred columns.
    scaled : ScaledProblem
        The same problem in scaled units.
    tau : int
        Maximum number of features of a support, as the side constraints count them.
    constraints : SideConstraints
        Side constraints.
    start : Fit
        Feasible support with its exact refit.
    lo, hi : (q,) arrays
        Bounds `lo_j z_j <= u_j <= hi_j z_j` for every u at least as good as the start; infinite if unknown.
    z_lo, z_hi : (q,) arrays of 0 / 1
        Columns fixed in or out, by the user or because no value in their box can beat the start.
    floor : float
        Certified lower bound on phi.
    points : tuple of (q,) arrays
        Scaled coefficients whose dual cuts come first.
    """

    problem: SparseProblem | GlmProblem
    scaled: ScaledProblem
    tau: int
    constraints: SideConstraints
    start: Fit
    lo: FloatArray
    hi: FloatArray
    z_lo: FloatArray
    z_hi: FloatArray
    floor: float
    points: tuple[FloatArray, ...]

    @property
    def q(self) -> int:
        """Number of columns."""
        return self.scaled.q

    def magnify(self, factor: float) -> ModelTask:
        """Return the task with u multiplied by `factor` and phi by its square, for solvers with absolute tolerances."""
        return replace(
            self,
            scaled=self.scaled.magnify(factor),
            lo=self.lo * factor,
            hi=self.hi * factor,
            floor=self.floor * factor**2,
            points=tuple(point * factor for point in self.points),
        )

    @property
    def start_u(self) -> FloatArray:
        """Scaled coefficients of the start."""
        return self.scaled.scaled_coefficients(self.start)

    @property
    def squares(self) -> SparseProblem:
        """The problem, if it has squared-error loss."""
        assert isinstance(self.problem, SparseProblem)
        return self.problem

    @property
    def start_z(self) -> FloatArray:
        """Indicator (q,) of the start."""
        z = np.zeros(self.q)
        z[list(self.start.support)] = 1.0
        return z


def model_task(
    problem: SparseProblem, tau: int, constraints: SideConstraints, start: Fit, advice: KnownBounds
) -> ModelTask:
    """Return the task of a problem, scaled and with bounds on its coefficients; O(q^3).

    Parameters
    ----------
    problem : SparseProblem
        Problem in standard coordinates.
    tau : int
        Maximum number of features of a support, as the side constraints count them.
    constraints : SideConstraints
        Side constraints.
    start : Fit
        Feasible support with its exact refit.
    advice : KnownBounds
        Bounds known in advance.

    Returns
    -------
    ModelTask
        The task.
    """
    scaled = scaled_problem(problem)
    q = problem.q
    level = scaled.value(start.objective) - scaled.floor
    if level > 2.0:  # boxes force a fit worse than the null model: scale by the value of the start instead
        scaled = scaled.magnify(level**-0.5)
    upper = scaled.value(start.objective)
    lo, hi = link_bounds(scaled, upper, constraints.interval(q))
    start_u = scaled.to_u(start.spread(q))
    # the start satisfies every valid bound, so a bound that rounding made too narrow is widened
    lo, hi = np.minimum(lo, np.where(start_u < 0, start_u, lo)), np.maximum(hi, np.where(start_u > 0, start_u, hi))
    z_lo, z_hi = constraints.fixed(q)
    # if a box does not meet the level set, choosing the column cannot beat the start
    unreachable = lo > hi
    z_hi[unreachable] = 0.0
    lo, hi = np.where(unreachable, 0.0, lo), np.where(unreachable, 0.0, hi)
    lower = scaled.value(advice.lower) if np.isfinite(advice.lower) else -np.inf
    floor = max(scaled.own_lower(constraints.columns(tau)), lower)
    points = (scaled.ridge, *(scaled.to_u(point) for point in advice.points))
    return ModelTask(problem, scaled, tau, constraints, start, lo, hi, z_lo, z_hi, floor, points)


def unbounded_task(
    problem: SparseProblem | GlmProblem, tau: int, constraints: SideConstraints, start: Fit, advice: KnownBounds
) -> ModelTask:
    """Return the task for a solver that uses no bounds on coefficients; O(q) with squared-error loss.

    Parameters
    ----------
    problem : SparseProblem or GlmProblem
        Problem in standard coordinates, or in centred columns.
    tau : int
        Maximum support size.
    constraints : SideConstraints
        Side constraints.
    start : Fit
        Feasible support with its exact refit.
    advice : KnownBounds
        Bounds known in advance; its points are not used.
    """
    q = len(problem.weight)
    none, unknown, empty = np.zeros(q), np.full(q, np.inf), np.zeros((0, 0))
    if isinstance(problem, SparseProblem):
        scaled = ScaledProblem(
            empty, problem.penalty, problem.c, none, unknown, -problem.yy, np.inf, np.ones(q), 1.0, problem.yy
        )
    else:
        mean, yy = float(problem.v.mean()), fit_glm(problem, ()).objective
        theta, anywhere = np.zeros(problem.first_coefficient + q), np.full(len(problem.y), np.inf)
        scaled = ScaledLosses(
            empty, problem.ridge / mean, none, theta, unknown, 0.0, np.inf, np.ones(q), mean**0.5, yy,
            classes=problem, low=-anywhere, high=anywhere,
        )  # fmt: skip
    floor = max(scaled.floor, scaled.value(advice.lower))
    return ModelTask(problem, scaled, tau, constraints, start, -unknown, unknown, *constraints.fixed(q), floor, ())


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


def make_task(
    problem: SparseProblem | GlmProblem, tau: int, constraints: SideConstraints, start: Fit, advice: KnownBounds
) -> ModelTask:
    """Return the task of a problem by `model_task` or `loss_task`, which have the same parameters."""
    make = model_task if isinstance(problem, SparseProblem) else loss_task
    return make(problem, tau, constraints, start, advice)  # type: ignore[arg-type]


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
    rows = RefitRows(narrow.rows, narrow.y, narrow.v, narrow.penalty, narrow.loss, narrow.ends_of_point)
    theta, point = newton(rows, start, blur)
    _, drop = bound_distance_to_optimum(narrow.rows, point)
    intercept = float(theta[0]) if narrow.first_coefficient else 0.0
    value, off = point.value, point.value_off
    return GlmFit(tuple(sorted(support)), theta[narrow.first_coefficient :], value + off, 2.0 * off + drop, intercept)


def refit_support(problem: SparseProblem | GlmProblem, support: tuple[int, ...], constraints: SideConstraints) -> Fit:
    """Return the exact fit of a support, inside its boxes if there are any.

    Parameters
    ----------
    problem : SparseProblem or GlmProblem
        Problem of one training set.
    support : tuple of int
        Columns.
    constraints : SideConstraints
        Side constraints.
    """
    if isinstance(problem, SparseProblem):
        return refit_moments(problem, support, constraints.boxes(problem.q))
    return fit_glm(problem, support)


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
    linear = 2.0 * problem.penalty * theta - Z.T @ loss.negative_gradient(margins, y, v * problem.signs) - H @ theta
    M, c, _ = eliminate_intercept(H, linear, 0.0, problem.first_coefficient)
    ridge, M = problem.ridge, 0.5 * (M + M.T)
    drop = float(c @ np.linalg.lstsq(M, c, rcond=None)[0])
    Q = M - np.diag(ridge)
    return SparseProblem(Q, c, drop + fit.objective, ridge, 1.0, len(problem.y), np.zeros(len(c)), 0.0)


def feasible_start(problem: SparseProblem | GlmProblem, tau: int, constraints: SideConstraints) -> Fit | None:
    """Return a feasible fit, good but not optimal; None if the side constraints exclude every support.

    Parameters
    ----------
    problem : SparseProblem or GlmProblem
        Problem in standard coordinates, or in centred columns.
    tau : int
        Maximum support size.
    constraints : SideConstraints
        Side constraints.

    Returns
    -------
    Fit or None
        Fit of the support.

    Raises
    ------
    BackendFailed
        If the 0/1 program below could not be decided.

    Notes
    -----
    Feasibility depends on z alone (a box binds chosen columns only). Without side constraints: forward selection,
    O(tau q^2), then exchanges of columns. With them: a 0/1 program with unit coefficients that maximises the marginal
    scores of the chosen columns, a check of its support, then the exchanges that stay feasible. With another loss than
    squared error, these steps find a support for the expansion of F about a fit. Its fit is the centre of the next
    expansion, until there is no improvement.
    """
    if not isinstance(problem, SparseProblem):
        return _start_by_expansions(problem, tau, constraints)
    if not constraints.needs - {"sign", "box"}:
        support = tuple(select_forward(problem.M, problem.c, min(tau, problem.q)).tolist())
    else:
        allowed = _feasible(problem, tau, constraints)
        if allowed is None:
            return None
        support = allowed
    best = refit_support(problem, support, constraints)
    for _ in range(EXCHANGE_ROUNDS):
        better = _best_move(problem, best, tau, constraints)
        if better is None:
            break
        best = better
    return best


def _feasible(problem: SparseProblem, tau: int, constraints: SideConstraints) -> tuple[int, ...] | None:
    from scipy.optimize import Bounds, LinearConstraint, milp

    q = problem.q
    score = np.asarray(problem.c**2 / np.maximum(problem.M.diagonal(), TINY))
    lo, hi = constraints.fixed(q)
    if np.any(lo > hi):
        return None
    _, rows, low, high = zip(*constraints.linear_rows(q, tau), strict=True)
    gain = score / max(float(score.max(initial=0.0)), TINY)
    solved = milp(
        -gain,
        constraints=LinearConstraint(np.array(rows), low, high),
        integrality=np.ones(q, dtype=np.int64),
        bounds=Bounds(lo, hi),
    )
    if solved.status == 2:
        return None
    support = () if solved.x is None else tuple(int(j) for j in np.flatnonzero(solved.x > 0.5))
    if solved.x is None or not constraints.allows(support, tau):
        raise BackendFailed(
            f"the solver could not decide whether the side constraints are feasible: {solved.message}",
            str(solved.status),
        )
    return support


def _best_move(problem: SparseProblem, fit: Fit, tau: int, constraints: SideConstraints) -> Fit | None:
    """Return the best fit with a column exchanged or dropped; None if none is better. O(tau) refits."""
    slope = problem.c - problem.M @ fit.spread(problem.q)
    reach = slope**2 / np.maximum(problem.M.diagonal(), TINY)
    reach[list(fit.support)] = -1.0
    enter = [int(j) for j in np.argsort(-reach)[:5] if reach[j] >= 0]
    best: Fit | None = None
    for i in fit.support:
        base = set(fit.support) - {i}
        for new in [base, *(base | {j} for j in enter)]:
            if not constraints.allows(new, tau):
                continue
            trial = refit_support(problem, tuple(sorted(new)), constraints)
            if trial.objective < (best or fit).objective * (1 - 1e-12):
                best = trial
    return best


def _start_by_expansions(problem: GlmProblem, tau: int, constraints: SideConstraints) -> GlmFit | None:
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
