"""One best-subset problem in scaled units, with bounds on every coefficient and an initial solution.

Let M be the matrix, c the vector and yy the constant of the objective `f(b) = yy - 2 c'b + b'M b`. With `m_j =
sqrt(M_jj)`, the ridge value `f_r = f(all columns)` and the scaled coefficients `u_j = m_j b_j / sqrt(yy - f_r)`,

    (f(b) - yy) / (yy - f_r)  =  u'Gu + sum_j w_j u_j^2 - 2 g'u  =:  phi(u),      -1 <= min phi <= 0,

where `G + diag(w)` is M scaled to a unit diagonal, and g is c in the same units. Any w with a positive semidefinite G
is valid. Here w is the scaled penalty plus the smallest eigenvalue of the remaining matrix. This eigenvalue is the
largest multiple of the identity that the perspective terms can take (theory section 4). The perspective relaxation
replaces `w_j u_j^2` by `w_j u_j^2 / z_j`, where z_j is 1 for a chosen column.

Bounds on coefficients, which are the big-M values of the models, hold for every b at least as good as the initial
solution. Let b_r be the ridge fit on all columns. For every b with `f(b) <= ubar` and any support,

    (b_r - b)' M (b_r - b) <= ubar - f(b_r)     =>     |b_j - b_r,j| <= sqrt((ubar - f(b_r)) (M^{-1})_jj)

(theory section 2, the safe ellipsoid with eps = lam; :mod:`sparsecv_mio.problem.problem`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.outcome import KnownBounds
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.moment_fits import Fit
from sparsecv_mio.problem.problem import SparseProblem, level_set_radius, shift_penalty
from sparsecv_mio.units import TINY

if TYPE_CHECKING:
    from sparsecv_mio.problem.glm import GlmProblem

SOLVER_ROUNDING = 1e-11  # allowance, in units of yy, for the rounding of a bound computed here


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

    def row_ranges(self, upper: float) -> tuple[FloatArray, FloatArray]:
        """Return the middle and half the width of the range of each r, over every u with phi at most `upper`."""
        middle = self.factor @ self.ridge
        return middle, np.full(len(middle), math.sqrt(max(upper - self.floor, 0.0)))

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
        w = shift_penalty(w, spare)
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


LEVEL_MARGIN = 1e-6  # widening of the level, in units of yy - f_r: the start must stay feasible to solver tolerances


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
    rho = level_set_radius(max(upper - scaled.floor, 0.0) + margin, scaled.doubt)
    with np.errstate(invalid="ignore"):
        radius = rho * np.sqrt(scaled.inverse) * (1 + 1e-6) + 1e-9
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
            f"gamma is so small that the columns are collinear up to rounding and {backend} has no valid big-M; "
            "use a larger gamma or the native backend"
        )


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

    @property
    def widest_coefficient_range(self) -> float:
        """Width of the widest range of a scaled coefficient; 0 without columns, inf if one is not bounded."""
        return float(np.max(self.hi - self.lo, initial=0.0))

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


def unscaled_task(
    problem: SparseProblem, tau: int, constraints: SideConstraints, start: Fit, advice: KnownBounds
) -> ModelTask:
    """Return a task for a solver that uses neither scaled units nor bounds on the coefficients; O(q).

    Parameters
    ----------
    problem : SparseProblem
        Problem in standard coordinates.
    tau : int
        Maximum support size.
    constraints : SideConstraints
        Side constraints; such a solver takes no constraints on z or on a coefficient.
    start : Fit
        Feasible support with its exact refit.
    advice : KnownBounds
        Bounds known in advance.
    """
    q = problem.q
    none, unknown = np.zeros(q), np.full(q, np.inf)
    empty = np.zeros((0, 0))
    scaled = ScaledProblem(
        empty, problem.penalty, problem.c, none, unknown, -problem.yy, np.inf, np.ones(q), 1.0, problem.yy
    )
    floor = max(scaled.floor, advice.lower - problem.yy)
    return ModelTask(problem, scaled, tau, constraints, start, -unknown, unknown, none, np.ones(q), floor, ())
