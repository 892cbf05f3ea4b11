"""One cell by a vendor's solver: generalized Benders or a conic model, with what our own relaxations know of it.

A vendor's solver names one support and a bound that is trusted to 2e-6 of the objective's scale; that says nothing of
the held-out error until the same problem without that support (`at most tau - 1` of its columns) is shown to be worse.
Supports are excluded one after the other until the best of the others is out of reach; every one that is not goes to
the list of candidates.

The enhancements of the paper's appendix are passed in as data (theory section 6):

* the relaxation of the cell: its point is the first cut, its dual value the first lower bound, its largest columns one
  more start;
* safe screening fixes columns before the model is built, for this tau, with room for ties;
* the coefficients of every support found in a fold are cut points for its other tau and gamma, and for the next folds:
  the dual cut of *any* coefficients is valid, it is computed afresh from the moments of the problem at hand.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.bounds.relaxation import Relaxation, relax_problem
from sparsecv_mio.bounds.screening import screen
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.backends.native.normal_form import normal_form
from sparsecv_mio.formulation.backends.native.path import PathCell, PathResult
from sparsecv_mio.formulation.constraints import SideConstraints
from sparsecv_mio.formulation.outcome import Advice, Limits, Start, Stop
from sparsecv_mio.problem.problem import FloatArray, SparseProblem
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.subproblem.moment_fits import fit_from_moments
from sparsecv_mio.units import KEEP_RTOL, TIE_RTOL

IntArray = NDArray[np.int64]

MOST_EXCLUDED = 12  # near ties a solver is asked about before the cell is left undecided
VENDOR_GAP = 1e-9
SHARED_POINTS = 8  # coefficients of earlier cells whose cuts come first
RELAXED_COLUMNS = 500  # beyond, a relaxation by moments costs more than it is worth here


def limits_of(deadline: Deadline) -> Limits:
    """Return what is left of the time of a search, as limits of the next solve."""
    return Limits(gap=VENDOR_GAP, seconds=deadline.left, cancel=deadline.stop)


class VendorListing:
    """Solves cells by a backend and remembers the coefficients it met.

    Parameters
    ----------
    backend : str
    deadline : Deadline
    formulation : str, optional
        Which of the backend's models, `benders` for one; its first by default.
    """

    def __init__(
        self,
        backend: str,
        deadline: Deadline,
        formulation: str | None = None,
    ) -> None:
        self.backend, self.deadline, self.formulation = backend, deadline, formulation
        self.points: deque[FloatArray] = deque(maxlen=SHARED_POINTS)

    def solve(self, problem: SparseProblem, tau: int, first: list[IntArray]) -> PathResult:
        """Solve, then exclude supports until the rest is out of reach."""
        useful = normal_form(problem).columns
        constant = np.setdiff1d(np.arange(problem.q), useful)
        size = min(tau, len(useful))
        relaxation = self.relaxation(problem, size)
        if relaxation is not None:
            first = [*first, np.argsort(-np.abs(relaxation.slope**2 / relaxation.w), kind="stable")[:size]]
        known = [_filled(np.intersect1d(s, useful), size, useful, []) for s in first if len(s) <= size]
        fits = [(_value(problem, s), tuple(s.tolist())) for s in known if s is not None]
        start = Start(min(fits)[1], "incumbent") if fits else None
        inside, dropped, advice = self.advice(problem, relaxation, min(fits)[0] if fits else np.inf)
        dropped = np.union1d(dropped, constant)
        found: list[IntArray] = []
        nodes, lower, complete = 0, 0.0, False
        while len(found) <= MOST_EXCLUDED and not self.deadline.expired() and not complete:
            allowed = SideConstraints(
                forced_in=tuple(inside.tolist()),
                forced_out=tuple(dropped.tolist()),
                at_most=tuple((size - 1, tuple(s.tolist())) for s in found),
            )
            outcome = get_backend(self.backend).solve(
                problem, size, start=start, limits=limits_of(self.deadline), constraints=allowed, advice=advice,
                formulation=self.formulation,
            )  # fmt: skip
            start, advice = None, Advice(points=advice.points)
            nodes += outcome.nodes
            lower = lower if found else max(outcome.lower, 0.0)
            if found and outcome.lower > min(_value(problem, s) for s in found) * (1.0 + KEEP_RTOL) + slack(problem):
                complete = True
                break
            if outcome.incumbent is None or outcome.stop in (Stop.TIME, Stop.NODES, Stop.INTERRUPTED):
                break
            support = _filled(np.array(outcome.incumbent, dtype=np.int64), size, useful, found)
            if support is None:
                break
            found.append(support)
            complete = size in (0, len(useful))
        if not found:
            known_best = np.array(min(fits)[1] if fits else (), dtype=np.int64)
            return PathResult({tau: _as_cell(problem, tau, [known_best], 0.0, False)}, nodes, False)
        self.remember(problem, found[0])
        return PathResult({tau: _as_cell(problem, tau, found, lower, complete)}, nodes, not self.deadline.expired())

    @staticmethod
    def relaxation(problem: SparseProblem, size: int) -> Relaxation | None:
        """The perspective relaxation of the cell; None where it cannot help."""
        if not 0 < size < problem.q <= RELAXED_COLUMNS or not problem.yy > 0.0:
            return None
        try:
            return relax_problem(problem, [size])[0]
        except ValueError:
            return None

    def advice(
        self, problem: SparseProblem, relaxation: Relaxation | None, value: float
    ) -> tuple[IntArray, IntArray, Advice]:
        """Columns in and out of every support that may be optimal or tied, and what else is known of the cell."""
        nothing = np.zeros(0, dtype=np.int64)
        shared = tuple(point for point in self.points if len(point) == problem.q)
        if relaxation is None or not np.isfinite(value):
            return nothing, nothing, Advice(points=shared)
        room = value * (1.0 + KEEP_RTOL + TIE_RTOL) + slack(problem)
        fixed = screen(relaxation, room)
        return fixed.inside, fixed.dropped, Advice(lower=float(relaxation.dual), points=(relaxation.beta, *shared))

    def remember(self, problem: SparseProblem, support: IntArray) -> None:
        """Keep the coefficients of a support as a cut point for other cells."""
        point = np.zeros(problem.q)
        try:
            point[support] = problem.ridge(support)[0]
        except np.linalg.LinAlgError:  # singular to rounding: nothing to learn from it
            return
        self.points.append(point)


def _value(problem: SparseProblem, support: IntArray) -> float:
    """At least f of a support, by the rounding of its moments; +inf (unknown) where they have lost their digits."""
    fit = fit_from_moments(problem, [support])
    value = float(fit.value[0]) + float(fit.value_error[0])
    return value if -slack(problem) <= value <= problem.yy + slack(problem) else float("inf")


def slack(problem: SparseProblem) -> float:
    """Rounding of f from moments, generously."""
    return 1e-12 * problem.yy


def _filled(support: IntArray, size: int, useful: IntArray, found: list[IntArray]) -> IntArray | None:
    """Return a support of exactly `size` useful columns that holds `support` and is new; more columns never raise f."""
    rest = np.setdiff1d(useful, support)
    known = {tuple(s.tolist()) for s in found}
    missing = size - len(support)
    for shift in range(max(len(rest), 1) if missing else 1):
        full = np.sort(np.append(support, np.roll(rest, -shift)[:missing]))
        if tuple(full.tolist()) not in known:
            return full
    return None


def _as_cell(problem: SparseProblem, tau: int, found: list[IntArray], lower: float, complete: bool) -> PathCell:
    """Put candidates into the form the native engine answers in."""
    values = [_value(problem, s) for s in found]
    best = int(np.argmin(values))
    complete = complete and bool(np.isfinite(values).all())
    margin = values[best] * KEEP_RTOL + slack(problem)
    kept = [i for i, value in enumerate(values) if value <= values[best] + margin] if complete else []
    return PathCell(
        tau=tau,
        support=found[best],
        lower=max(values[best] - margin, 0.0) if complete else min(lower, values[best]),
        upper=values[best],
        candidates=tuple(found[i] for i in kept),
        values=tuple(values[i] for i in kept),
        margin=margin,
        complete=complete,
        branched=True,
    )
