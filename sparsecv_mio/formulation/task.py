"""What every model is built from: one problem, scaled, with bounds on its coefficients and a start."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.formulation.bigm import link_bounds
from sparsecv_mio.formulation.constraints import SideConstraints
from sparsecv_mio.formulation.outcome import Advice
from sparsecv_mio.formulation.scaled import ScaledProblem, scaled_problem
from sparsecv_mio.problem.moment_refit import Fit
from sparsecv_mio.problem.problem import SparseProblem


@dataclass(frozen=True, eq=False)
class Task:
    """One solve, in scaled units (see :mod:`sparsecv_mio.formulation.scaled`).

    Attributes
    ----------
    problem : SparseProblem
        In standard coordinates.
    scaled : ScaledProblem
        The same in scaled units.
    tau : int
        Largest support size.
    constraints : SideConstraints
        Side constraints.
    start : Fit
        A feasible support with its exact refit.
    lo, hi : (q,) arrays
        `lo_j z_j <= u_j <= hi_j z_j` for every u at least as good as the start; infinite where no bound is known.
    z_lo, z_hi : (q,) arrays of 0 / 1
        Columns fixed in or out, by the user or because no value in their box can beat the start.
    floor : float
        Certified lower bound on phi.
    points : tuple of (q,) arrays
        Scaled coefficients whose dual cuts come first.
    """

    problem: SparseProblem
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
    def reach(self) -> float:
        """Width of the widest range of a scaled coefficient; 0 without columns, inf where one is not bounded."""
        return float(np.max(self.hi - self.lo, initial=0.0))

    def magnified(self, factor: float) -> Task:
        """Return the same task with u times `factor`, phi times its square, for solvers with absolute tolerances."""
        return replace(
            self,
            scaled=self.scaled.magnified(factor),
            lo=self.lo * factor,
            hi=self.hi * factor,
            floor=self.floor * factor**2,
            points=tuple(point * factor for point in self.points),
        )

    @property
    def start_u(self) -> FloatArray:
        """(q,) scaled coefficients of the start."""
        return self.scaled.to_u(self.start.spread(self.q))

    @property
    def start_z(self) -> FloatArray:
        """(q,) indicator of the start."""
        z = np.zeros(self.q)
        z[list(self.start.support)] = 1.0
        return z


def make_task(problem: SparseProblem, tau: int, constraints: SideConstraints, start: Fit, advice: Advice) -> Task:
    """Scale a problem and bound its coefficients; O(q^3).

    Parameters
    ----------
    problem : SparseProblem
        In standard coordinates.
    tau : int
        Largest support size.
    constraints : SideConstraints
        Side constraints.
    start : Fit
        A feasible support with its exact refit.
    advice : Advice
        What is known beforehand.

    Returns
    -------
    Task
    """
    scaled = scaled_problem(problem)
    q = problem.q
    level = scaled.value(start.objective) - scaled.floor
    if level > 2.0:  # boxes force a fit worse than that of no column: scale by the answer instead
        scaled = scaled.magnified(level**-0.5)
    upper = scaled.value(start.objective)
    lo, hi = link_bounds(scaled, upper, constraints.interval(q))
    start_u = scaled.to_u(start.spread(q))
    # the start satisfies every valid bound; a bound that rounding put inside of it is widened
    lo, hi = np.minimum(lo, np.where(start_u < 0, start_u, lo)), np.maximum(hi, np.where(start_u > 0, start_u, hi))
    z_lo, z_hi = constraints.fixed(q)
    # a box that does not meet the level set: choosing the column cannot beat the start
    unreachable = lo > hi
    z_hi[unreachable] = 0.0
    lo, hi = np.where(unreachable, 0.0, lo), np.where(unreachable, 0.0, hi)
    known = scaled.value(advice.lower) if np.isfinite(advice.lower) else -np.inf
    floor = max(scaled.own_lower(tau), known)
    points = (scaled.ridge, *(scaled.to_u(point) for point in advice.points))
    return Task(problem, scaled, tau, constraints, start, lo, hi, z_lo, z_hi, floor, points)


def unscaled_task(problem: SparseProblem, tau: int, constraints: SideConstraints, start: Fit, advice: Advice) -> Task:
    """Make a task for a solver that uses neither scaled units nor bounds of the coefficients; O(q).

    Parameters
    ----------
    problem, tau, constraints, start, advice
        As for `make_task`; a constraint on z or on a coefficient is not for such a solver.
    """
    q = problem.q
    none, unknown = np.zeros(q), np.full(q, np.inf)
    empty = np.zeros((0, 0))
    scaled = ScaledProblem(
        empty, problem.penalty, problem.c, none, unknown, -problem.yy, np.inf, np.ones(q), 1.0, problem.yy
    )
    floor = max(scaled.floor, advice.lower - problem.yy)
    return Task(problem, scaled, tau, constraints, start, -unknown, unknown, none, np.ones(q), floor, ())
