"""Lists of near-optimal supports of one size, found by an external solver.

A solver returns one support and a lower bound on the objective. The bound is assumed to be correct up to 2e-6 times the
scale of the objective. One support does not determine the held-out error, because another support may have the same
objective. Therefore the problem is solved again with one constraint for each support found so far: at most tau - 1
columns of this support may be chosen. This step is repeated until the lower bound is clearly above the smallest
objective. Every support found may be the optimum.

The solver receives results of the relaxations of this package (theory sections 1 and 2). The solution of the relaxation
gives the first cut. The columns with the largest coefficients in this solution give another initial support. The dual
value is the first lower bound. Safe screening for this size, with a margin for ties, fixes columns before the model is
built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.closed_form import ROWS_ROUNDING
from sparsecv_mio.bounds.relaxation import Relaxation, relax_problem, screen_by_relaxation
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.outcome import KnownBounds, Limits, Outcome, Start, Stop, StopRequest
from sparsecv_mio.kernels.nodes import DROPPED, INSIDE
from sparsecv_mio.parallel import Clock
from sparsecv_mio.problem.constraints import FREE, SideConstraints
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.thresholds import VENDOR_RELAXED_COLUMNS
from sparsecv_mio.trees.allowed_supports import complete_support
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments, objective_rounding, tie_margin
from sparsecv_mio.trees.normal_form import normal_form
from sparsecv_mio.trees.restricted_tree import solve_with_constraints
from sparsecv_mio.trees.subsets import MOST_NODES, BestSubset, BestSubsets
from sparsecv_mio.units import KEEP_RTOL, PROVED_RTOL, TIE_RTOL
from sparsecv_mio.words import NATIVE

UNFINISHED = (Stop.TIME, Stop.NODES, Stop.INTERRUPTED)  # stops of an MIO without a proof
MAX_EXCLUDED_SUPPORTS = 12  # maximum number of near ties that a solver excludes; with more, the list is incomplete


class StoppableClock(Clock, Protocol):
    """The time limit of a solver, with a request to stop earlier."""

    @property
    def stop(self) -> StopRequest:
        """Request to end, which a solver checks from time to time."""


@dataclass(frozen=True)
class SolverClock:
    """The clock of a step, with the interface that solvers read.

    Attributes
    ----------
    deadline : Clock
        Deadline of the search.
    is_expired : callable
        Function that returns True once the step has to end.
    """

    deadline: Clock
    is_expired: Callable[[], bool]

    @property
    def remaining_seconds(self) -> float:
        """Remaining seconds."""
        return self.deadline.remaining_seconds

    @property
    def stop(self) -> SolverClock:
        """Stop request, which solvers check."""
        return self

    def is_set(self) -> bool:
        """Return True once a solver has to end."""
        return self.is_expired()

    def has_expired(self) -> bool:
        """Return True once a list has to end."""
        return self.is_expired()


@dataclass(frozen=True)
class MioSettings:
    """Backend and limits for the mixed-integer problems (MIOs) of a search.

    Attributes
    ----------
    backend : str
        Name of the backend.
    formulation : str, optional
        Name of one of the backend's models; its first by default.
    budget : int, optional
        Maximum number of MIOs.
    options : tuple of str
        Options of the backend's solver, `NAME=VALUE` each.
    """

    backend: str = NATIVE
    formulation: str | None = None
    budget: int | None = None
    options: tuple[str, ...] = ()

    @property
    def uses_native_backend(self) -> bool:
        """True for the engine of this package."""
        return self.backend == NATIVE

    def solve(self, problem: SparseProblem, size: int, clock: StoppableClock, **how: Any) -> Outcome:
        """Solve one MIO in the time that is left; return its outcome.

        Parameters
        ----------
        problem : SparseProblem
            Problem of one training set.
        size : int
            Maximum support size.
        clock : StoppableClock
            Time limit.
        **how
            Keywords of `Backend.solve`.
        """
        limits = Limits(gap=PROVED_RTOL, seconds=clock.remaining_seconds, options=self.options, cancel=clock.stop)
        backend = get_backend(self.backend)
        return backend.solve(problem, size, limits=limits, formulation=self.formulation, **how)


class VendorListing:
    """Lists of near-optimal supports of problems without side constraints.

    Parameters
    ----------
    mio : MioSettings
        Backend and limits.
    clock : StoppableClock
        Time limit.
    """

    def __init__(self, mio: MioSettings, clock: StoppableClock) -> None:
        self.mio, self.clock = mio, clock

    def solve(self, problem: SparseProblem, tau: int, starts: Sequence[IntArray]) -> BestSubsets:
        """Solve one size repeatedly, excluding the supports found, until the others are clearly worse.

        Parameters
        ----------
        problem : SparseProblem
            Problem of one training set.
        tau : int
            Maximum support size.
        starts : sequence of int arrays
            Supports to try as incumbents.

        Returns
        -------
        BestSubsets
            Supports and bounds, complete if every near-optimal support was found.
        """
        useful = normal_form(problem).columns
        size = min(tau, len(useful))
        relaxation = solve_relaxation(problem, size)
        if relaxation is not None:
            starts = [*starts, np.argsort(-np.abs(relaxation.slope**2 / relaxation.w), kind="stable")[:size]]
        value, best = _best_of_starts(problem, starts, size, useful)
        fixed, advice = screen_columns(problem, relaxation, value)
        outside = np.union1d(fixed.forced_out, np.setdiff1d(np.arange(problem.q), useful)).astype(np.int64)
        fixed = replace(fixed, forced_out=tuple(outside.tolist()))
        start = Start(best, "incumbent") if np.isfinite(value) or best else None
        supports, nodes, lower, complete, is_last = list[IntArray](), 0, 0.0, False, False
        while len(supports) <= MAX_EXCLUDED_SUPPORTS and not (is_last or self.clock.has_expired()):
            excluded = tuple((size - 1, tuple(support.tolist())) for support in supports)
            outcome = self.mio.solve(
                problem, size, self.clock, start=start, constraints=replace(fixed, at_most=excluded), advice=advice
            )
            start, advice = None, KnownBounds(points=advice.points)
            nodes += outcome.nodes
            lower = lower if supports else max(outcome.lower, 0.0)
            complete = bool(supports) and _is_clearly_worse(problem, outcome.lower, supports)
            support = None
            if not complete and outcome.incumbent is not None and outcome.stop not in UNFINISHED:
                support = _new_support(np.array(outcome.incumbent, dtype=np.int64), size, useful, supports)
            if support is not None:
                supports.append(support)
                complete = size in (0, len(useful))
            is_last = complete or support is None
        is_finished = bool(supports) and not self.clock.has_expired()
        if not supports:
            supports, lower = [np.array(best, dtype=np.int64)], 0.0
        return BestSubsets({tau: _best_subset(problem, tau, supports, lower, complete)}, nodes, is_finished)

    def bound(self, problem: SparseProblem, tau: int, starts: Sequence[IntArray]) -> BestSubsets:
        """Return bounds on the optimum of one size by one MIO; near ties stay unknown, because nothing is excluded.

        Parameters
        ----------
        problem : SparseProblem
            Problem of one training set.
        tau : int
            Maximum support size.
        starts : sequence of int arrays
            Supports to try as incumbents.
        """
        useful = normal_form(problem).columns
        size = min(tau, len(useful))
        outcome = self.mio.solve(problem, size, self.clock)
        supports = [*starts, np.array(outcome.incumbent or (), dtype=np.int64)]
        value, best = _best_of_starts(problem, supports, size, useful)
        lower = max(outcome.lower - ROWS_ROUNDING * problem.size, 0.0)
        subset = BestSubset.from_bounds(tau, np.array(best, dtype=np.int64), value, min(lower, value))
        return BestSubsets({tau: subset}, outcome.nodes, not self.clock.has_expired())


def _best_of_starts(
    problem: SparseProblem, starts: Sequence[IntArray], size: int, useful: IntArray
) -> tuple[float, tuple[int, ...]]:
    """Return the objective and the columns of the best support of `size` useful columns that contains a start."""
    whole = [_new_support(np.intersect1d(s, useful), size, useful, []) for s in starts if len(s) <= size]
    return min([(objective_upper(problem, s), tuple(s.tolist())) for s in whole if s is not None], default=(np.inf, ()))


def screen_columns(
    problem: SparseProblem, relaxation: Relaxation | None, value: float
) -> tuple[SideConstraints, KnownBounds]:
    """Return the columns that safe screening fixes for every support that may be optimal or tied, and known bounds.

    Parameters
    ----------
    problem : SparseProblem
        Problem of one training set.
    relaxation : Relaxation or None
        Relaxation of one size.
    value : float
        Training objective of the incumbent; inf if there is none.
    """
    if relaxation is None or not np.isfinite(value):
        return FREE, KnownBounds()
    status = screen_by_relaxation(relaxation, value * (1.0 + KEEP_RTOL + TIE_RTOL) + objective_rounding(problem))
    advice = KnownBounds(lower=float(relaxation.dual), points=(relaxation.beta,))
    inside, outside = (tuple(np.flatnonzero(status == kind).tolist()) for kind in (INSIDE, DROPPED))
    return SideConstraints(forced_in=inside, forced_out=outside), advice


def solve_relaxation(problem: SparseProblem, size: int) -> Relaxation | None:
    """Return the perspective relaxation of one size; None if it cannot help."""
    if not 0 < size < problem.q <= VENDOR_RELAXED_COLUMNS or not problem.yy > 0.0:
        return None
    try:
        return relax_problem(problem, [size])[0]
    except ValueError:
        return None


def objective_upper(problem: SparseProblem, support: IntArray) -> float:
    """Return an upper bound on f of a support, rounding included; inf if its moments have no accurate digit."""
    fit = fit_from_moments(problem, [support])
    value, slack = float(fit.value[0]) + float(fit.value_error[0]), objective_rounding(problem)
    return value if -slack <= value <= problem.yy + slack else float("inf")


def _is_clearly_worse(problem: SparseProblem, lower: float, found: list[IntArray]) -> bool:
    """Return True if no support with f above `lower` can be tied with the best one found."""
    best = min(objective_upper(problem, support) for support in found)
    return lower > best * (1.0 + KEEP_RTOL) + objective_rounding(problem)


def _new_support(support: IntArray, size: int, useful: IntArray, found: list[IntArray]) -> IntArray | None:
    """Return a new support of `size` useful columns that contains `support`; adding columns never raises f."""
    others, n_missing = np.setdiff1d(useful, support), size - len(support)
    seen = {tuple(s.tolist()) for s in found}
    for shift in range(max(len(others), 1) if n_missing > 0 else 1):
        whole = np.sort(np.append(support, np.roll(others, -shift)[: max(n_missing, 0)])).astype(np.int64)
        if tuple(whole.tolist()) not in seen:
            return whole
    return None


def _best_subset(
    problem: SparseProblem, tau: int, supports: list[IntArray], lower: float, is_complete: bool
) -> BestSubset:
    """Return a list with a lower bound on the optimum in the form of the results of the package's own trees."""
    values = [objective_upper(problem, support) for support in supports]
    best = int(np.argmin(values))
    complete = is_complete and bool(np.isfinite(values).all())
    margin = tie_margin(problem, values[best])
    ties = [i for i, value in enumerate(values) if value <= values[best] + margin] if complete else []
    return BestSubset(
        tau=tau,
        support=supports[best],
        lower=max(values[best] - margin, 0.0) if complete else min(lower, values[best]),
        upper=values[best],
        candidates=tuple(supports[i] for i in ties),
        values=tuple(values[i] for i in ties),
        margin=margin,
        complete=complete,
        branched=True,
    )


def joined_lists(subset: BestSubset, own: BestSubset) -> BestSubset:
    """Return the list of a tree of this package, with the larger of both lower bounds.

    Parameters
    ----------
    subset : BestSubset
        Incomplete list of a solver.
    own : BestSubset
        List of a tree of this package.
    """
    if own.complete:
        return own
    return replace(own, lower=min(max(own.lower, subset.lower), own.upper))


class RestrictedListing:
    """Lists of near-optimal supports of problems under restrictions.

    Parameters
    ----------
    mio : MioSettings
        Backend and limits.
    clock : StoppableClock
        Time limit.
    constraints : SideConstraints
        Side constraints.
    """

    def __init__(self, mio: MioSettings, clock: StoppableClock, constraints: SideConstraints) -> None:
        self.mio, self.clock, self.constraints = mio, clock, constraints

    def _grow_tree(
        self,
        problem: SparseProblem,
        tau: int,
        starts: Sequence[IntArray],
        node_limit: int,
        inside: tuple[int, ...] = (),
    ) -> BestSubsets:
        """Solve one size by a tree of this package, with given columns in every support."""
        constraints = replace(self.constraints, forced_in=tuple(sorted({*self.constraints.forced_in, *inside})))
        return solve_with_constraints(
            problem, [tau], constraints, warm_starts=starts, node_limit=node_limit, is_expired=self.clock.has_expired
        )  # fmt: skip

    def solve(self, problem: SparseProblem, tau: int, starts: Sequence[IntArray]) -> BestSubsets:
        """Solve one size repeatedly, each time without the supports that contain one found before.

        A support that the solver returns has active columns. All supports that contain these are listed by a tree of
        this package, which has few columns left to choose.

        Parameters
        ----------
        problem : SparseProblem
            Problem of one training set.
        tau : int
            Maximum support size.
        starts : sequence of int arrays
            Initial supports.
        """
        first = self._grow_tree(problem, tau, starts, 1).by_size[tau]
        if first.complete:
            return BestSubsets({tau: first}, 1, True)
        lists, lower, nodes, excluded = [first], -np.inf, 1, list(self.constraints.at_most)
        while len(lists) <= MAX_EXCLUDED_SUPPORTS and not self.clock.has_expired():
            constraints = replace(self.constraints, at_most=tuple(excluded))
            start = self._start(problem, tau, lists)
            outcome = self.mio.solve(problem, min(tau, problem.q), self.clock, start=start, constraints=constraints)
            nodes += outcome.nodes
            lower = max(lower, outcome.lower) if len(lists) == 1 else lower
            best = min(lists, key=lambda subset: subset.upper)
            if outcome.stop is Stop.INFEASIBLE or (len(lists) > 1 and outcome.lower > best.upper + best.margin):
                return BestSubsets({tau: _merge_lists(lists)}, nodes, True)
            if outcome.incumbent is None or outcome.stop in UNFINISHED:
                break
            active = self._active(outcome.incumbent, outcome.beta)
            inner = self._grow_tree(problem, tau, [], MOST_NODES, active)
            nodes += inner.nodes
            lists.append(inner.by_size[tau])
            if not active or not inner.by_size[tau].complete:
                break
            excluded.append((len(active) - 1, active))
        best = min(lists, key=lambda subset: subset.upper)
        if lists[-1].complete and not self._active(tuple(lists[-1].support.tolist()), None):
            return BestSubsets({tau: lists[-1]}, nodes, True)
        return BestSubsets({tau: BestSubset.from_bounds(tau, best.support, best.upper, lower)}, nodes, True)

    def _start(self, problem: SparseProblem, tau: int, lists: list[BestSubset]) -> Start:
        """Return the best support found, with the columns that it requires."""
        best = min(lists, key=lambda subset: subset.upper)
        signed = [j for j, _, _ in self.constraints.box]
        return Start(complete_support(problem.q, tau, self.constraints, best.support, signed), "incumbent")

    def _active(self, support: tuple[int, ...], beta: tuple[float, ...] | None) -> tuple[int, ...]:
        """Return the columns of a support except those that a sign constraint holds at zero."""
        if beta is None:
            return support
        signed = {j for j, _, _ in self.constraints.box}
        return tuple(j for j, b in zip(support, beta, strict=True) if b != 0.0 or j not in signed)


def _merge_lists(lists: list[BestSubset]) -> BestSubset:
    """Return one complete list, given lists that together contain every support within their margin."""
    best = min(lists, key=lambda subset: subset.upper)
    ties = {
        tuple(support.tolist()): (support, value)
        for subset in lists
        for support, value in zip(subset.candidates, subset.values, strict=True)
        if value <= best.upper + best.margin
    }
    return replace(
        best, candidates=tuple(support for support, _ in ties.values()), values=tuple(f for _, f in ties.values()),
        lower=max(best.upper - best.margin, 0.0), complete=True, branched=True,
    )  # fmt: skip
