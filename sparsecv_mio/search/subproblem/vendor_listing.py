"""All near-optimal supports of one cell by a vendor's solver, which names only one support at a time.

A vendor's solver returns one support and a lower bound that is trusted to 2e-6 of the objective's scale. That says
little of the held-out error: another support may be as good. So the problem is solved again without the supports found
(`at most tau - 1` columns of each), until the lower bound of what is left is clearly above the best; every support
found on the way is a candidate.

What our own relaxations know of the cell is passed to the solver as data (theory section 6):

* the relaxation of the cell: its solution is the first cut, its dual value the first lower bound, its largest columns
  one more start;
* safe screening fixes columns before the model is built, for this tau, with room for ties;
* the coefficients of supports found in earlier cells are further points to cut at: the dual cut of *any* coefficients
  is valid, and computed from the moments of the problem at hand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.relaxation import Relaxation, relax_problem, screen
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.backends.native.cell import PathCell, PathResult
from sparsecv_mio.formulation.backends.native.normal_form import normal_form
from sparsecv_mio.formulation.constraints import SideConstraints
from sparsecv_mio.formulation.outcome import Advice, Limits, Outcome, Start, Stop
from sparsecv_mio.kernels.status import DROPPED, INSIDE
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.subproblem.moment_fits import fit_from_moments, near_tie_margin, objective_rounding
from sparsecv_mio.search.subproblem.supports import filled_up
from sparsecv_mio.units import KEEP_RTOL, TIE_RTOL

MOST_EXCLUDED = 12  # near ties a solver is asked about before the cell is left undecided
VENDOR_GAP = 1e-9
SHARED_POINTS = 8  # coefficients of earlier cells whose cuts come first
RELAXED_COLUMNS = 500  # beyond, a relaxation from moments costs more than it is worth here


def limits_of(deadline: Deadline) -> Limits:
    """Return what is left of the time of a search, as limits of the next solve."""
    return Limits(gap=VENDOR_GAP, seconds=deadline.left, cancel=deadline.stop)


@dataclass(frozen=True, eq=False)
class Fixed:
    """Columns inside and outside of every support that may be optimal or tied, and what else is known of a cell."""

    inside: IntArray
    outside: IntArray
    advice: Advice


@dataclass(frozen=True, eq=False)
class Listed:
    """Supports found one after the other, a lower bound of f, whether they are all that matter, and the nodes spent."""

    supports: list[IntArray]
    lower: float
    complete: bool
    nodes: int


class VendorListing:
    """Lists the near-optimal supports of cells by a vendor's solver, and remembers the coefficients it met.

    Parameters
    ----------
    backend : str
        See :data:`sparsecv_mio.formulation.backends.BACKENDS`.
    deadline : Deadline
    formulation : str, optional
        Which of the backend's models, `benders` for one; its first by default.
    """

    def __init__(self, backend: str, deadline: Deadline, formulation: str | None = None) -> None:
        self.backend, self.deadline, self.formulation = backend, deadline, formulation
        self.points: deque[FloatArray] = deque(maxlen=SHARED_POINTS)

    def solve(self, problem: SparseProblem, tau: int, starts: Sequence[IntArray]) -> PathResult:
        """Solve one tau, and exclude supports until what is left is out of reach.

        Parameters
        ----------
        problem : SparseProblem
        tau : int
        starts : sequence of int arrays
            Supports to try as incumbents.

        Returns
        -------
        PathResult
            Its only cell is complete where every near-optimal support was found.
        """
        useful = normal_form(problem).columns
        size = min(tau, len(useful))
        relaxation = relaxation_of(problem, size)
        if relaxation is not None:
            starts = [*starts, np.argsort(-np.abs(relaxation.slope**2 / relaxation.w), kind="stable")[:size]]
        whole = [_new_support(np.intersect1d(s, useful), size, useful, []) for s in starts if len(s) <= size]
        known = [(_value(problem, s), tuple(s.tolist())) for s in whole if s is not None]
        value, best = min(known) if known else (np.inf, ())
        fixed = self.fixed(problem, relaxation, value)
        start = Start(best, "incumbent") if known else None
        listed = self._exclude(problem, useful, size, fixed, start)
        if not listed.supports:
            unproved = Listed([np.array(best, dtype=np.int64)], 0.0, False, listed.nodes)
            return PathResult({tau: _as_cell(problem, tau, unproved)}, listed.nodes, False)
        self.remember(problem, listed.supports[0])
        return PathResult({tau: _as_cell(problem, tau, listed)}, listed.nodes, not self.deadline.expired())

    def _exclude(
        self, problem: SparseProblem, useful: IntArray, size: int, fixed: Fixed, start: Start | None
    ) -> Listed:
        """Solve again and again, each time without the supports found before."""
        outside = np.union1d(fixed.outside, np.setdiff1d(np.arange(problem.q), useful))
        fixed = Fixed(fixed.inside, outside, fixed.advice)
        found: list[IntArray] = []
        nodes, lower, complete = 0, 0.0, False
        while len(found) <= MOST_EXCLUDED and not self.deadline.expired() and not complete:
            outcome = self._ask(problem, size, fixed, found, start)
            start, fixed = None, Fixed(fixed.inside, fixed.outside, Advice(points=fixed.advice.points))
            nodes += outcome.nodes
            lower = lower if found else max(outcome.lower, 0.0)
            if found and _out_of_reach(problem, outcome.lower, found):
                return Listed(found, lower, True, nodes)
            if outcome.incumbent is None or outcome.stop in (Stop.TIME, Stop.NODES, Stop.INTERRUPTED):
                break
            support = _new_support(np.array(outcome.incumbent, dtype=np.int64), size, useful, found)
            if support is None:
                break
            found.append(support)
            complete = size in (0, len(useful))
        return Listed(found, lower, complete, nodes)

    def _ask(
        self, problem: SparseProblem, size: int, fixed: Fixed, found: list[IntArray], start: Start | None
    ) -> Outcome:
        """Solve the problem without the supports found."""
        constraints = SideConstraints(
            forced_in=tuple(fixed.inside.tolist()),
            forced_out=tuple(fixed.outside.tolist()),
            at_most=tuple((size - 1, tuple(support.tolist())) for support in found),
        )
        return get_backend(self.backend).solve(
            problem, size, start=start, limits=limits_of(self.deadline), constraints=constraints, advice=fixed.advice,
            formulation=self.formulation,
        )  # fmt: skip

    def fixed(self, problem: SparseProblem, relaxation: Relaxation | None, value: float) -> Fixed:
        """Fix columns by safe screening.

        Parameters
        ----------
        problem : SparseProblem
        relaxation : Relaxation or None
            Of the cell.
        value : float
            Training objective of the incumbent; inf where there is none.

        Returns
        -------
        Fixed
        """
        nothing = np.zeros(0, dtype=np.int64)
        shared = tuple(point for point in self.points if len(point) == problem.q)
        if relaxation is None or not np.isfinite(value):
            return Fixed(nothing, nothing, Advice(points=shared))
        status = screen(relaxation, value * (1.0 + KEEP_RTOL + TIE_RTOL) + objective_rounding(problem))
        advice = Advice(lower=float(relaxation.dual), points=(relaxation.beta, *shared))
        return Fixed(np.flatnonzero(status == INSIDE), np.flatnonzero(status == DROPPED), advice)

    def remember(self, problem: SparseProblem, support: IntArray) -> None:
        """Keep the coefficients of a support as a point to cut at in other cells."""
        fit, point = fit_from_moments(problem, [support]), np.zeros(problem.q)
        if np.isfinite(fit.value_error[0]):  # else singular to rounding: nothing to learn from it
            point[support] = fit.coefficients(0)
            self.points.append(point)


def relaxation_of(problem: SparseProblem, size: int) -> Relaxation | None:
    """Return the perspective relaxation of one size; None where it cannot help."""
    if not 0 < size < problem.q <= RELAXED_COLUMNS or not problem.yy > 0.0:
        return None
    try:
        return relax_problem(problem, [size])[0]
    except ValueError:
        return None


def _value(problem: SparseProblem, support: IntArray) -> float:
    """At least f of a support, by the rounding of its moments; +inf (unknown) where they have lost their digits."""
    fit = fit_from_moments(problem, [support])
    value, slack = float(fit.value[0]) + float(fit.value_error[0]), objective_rounding(problem)
    return value if -slack <= value <= problem.yy + slack else float("inf")


def _out_of_reach(problem: SparseProblem, lower: float, found: list[IntArray]) -> bool:
    """Whether no support with f above `lower` can be tied with the best one found."""
    return lower > min(_value(problem, s) for s in found) * (1.0 + KEEP_RTOL) + objective_rounding(problem)


def _new_support(support: IntArray, size: int, useful: IntArray, found: list[IntArray]) -> IntArray | None:
    """Return a support of exactly `size` useful columns that holds `support` and is new; more columns never raise f."""
    rest = np.setdiff1d(useful, support)
    known = {tuple(s.tolist()) for s in found}
    for shift in range(max(len(rest), 1) if len(support) < size else 1):
        whole = filled_up(support, size, np.roll(rest, -shift))
        if tuple(whole.tolist()) not in known:
            return whole
    return None


def _as_cell(problem: SparseProblem, tau: int, listed: Listed) -> PathCell:
    """Put what was listed into the form the native engine answers in."""
    found = listed.supports
    values = [_value(problem, s) for s in found]
    best = int(np.argmin(values))
    complete = listed.complete and bool(np.isfinite(values).all())
    margin = near_tie_margin(problem, values[best])
    kept = [i for i, value in enumerate(values) if value <= values[best] + margin] if complete else []
    return PathCell(
        tau=tau,
        support=found[best],
        lower=max(values[best] - margin, 0.0) if complete else min(listed.lower, values[best]),
        upper=values[best],
        candidates=tuple(found[i] for i in kept),
        values=tuple(values[i] for i in kept),
        margin=margin,
        complete=complete,
        branched=True,
    )
