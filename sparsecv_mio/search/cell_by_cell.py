"""Cells handed to branch-and-bound one by one: by our own trees, or by a vendor's solver, which lists near ties.

`CellMethod` says which cells are next and remembers them; `CellSolver` solves one and writes what it finds.

A vendor's solver returns one support and a lower bound that is trusted to 2e-6 of the objective's scale. That says
little of the held-out error: another support may be as good. So the problem is solved again without the supports found
(`at most tau - 1` columns of each), until the lower bound of what is left is clearly above the best; every support
found on the way is a candidate (`VendorListing`).

What our own relaxations know of the cell is passed to the solver as data (theory sections 1 and 2):

* the relaxation of the cell: its solution is the first cut, its dual value the first lower bound, its largest columns
  one more start;
* safe screening fixes columns before the model is built, for this tau, with room for ties;
* the coefficients of supports found in earlier cells are further points to cut at: the dual cut of *any* coefficients
  is valid, and computed from the moments of the problem at hand.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.bounds.cv_error import BoundsHooks, KnownBefore, compute_bounds
from sparsecv_mio.bounds.relaxation import Relaxation, relax_problem, screened
from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.formulation.backends import NATIVE, get_backend
from sparsecv_mio.formulation.outcome import KnownBounds, Limits, Outcome, Start, Stop
from sparsecv_mio.kernels.nodes import DROPPED, INSIDE
from sparsecv_mio.parallel import on_threads
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search import fold_fits
from sparsecv_mio.search.accounts import BoundSource, mios_of
from sparsecv_mio.search.cells import Archive, Where, filled_up
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.fold_solver import FoldSolver
from sparsecv_mio.search.run import GridMethod, Run
from sparsecv_mio.thresholds import VENDOR_RELAXED_COLUMNS
from sparsecv_mio.trees.normal_form import normal_form
from sparsecv_mio.trees.subsets import FIRST_NODES, MOST_NODES, UNLIMITED, BestSubset, BestSubsets
from sparsecv_mio.units import KEEP_RTOL, PROVED_RTOL, TIE_RTOL

MOST_EXCLUDED = 12  # near ties a solver is asked about before the cell is left undecided


@dataclass(frozen=True)
class MioSettings:
    """Which backend solves the mixed-integer problems of a method, and how many at most.

    Attributes
    ----------
    backend : str
    formulation : str, optional
        Which of the backend's models; its first by default.
    budget : int, optional
        Most MIOs to solve.
    options : tuple of str
        Of the backend's solver, `NAME=VALUE` each.
    """

    backend: str = NATIVE
    formulation: str | None = None
    budget: int | None = None
    options: tuple[str, ...] = ()

    @property
    def native(self) -> bool:
        """Whether it is our own engine."""
        return self.backend == NATIVE

    def solve(self, problem: SparseProblem, size: int, deadline: Deadline, **how: Any) -> Outcome:
        """Solve one MIO in what is left of the time of a search.

        Parameters
        ----------
        problem : SparseProblem
        size : int
        deadline : Deadline
        **how
            As `Backend.solve` takes it.
        """
        limits = Limits(gap=PROVED_RTOL, seconds=deadline.left, options=self.options, cancel=deadline.stop)
        backend = get_backend(self.backend)
        return backend.solve(problem, size, limits=limits, formulation=self.formulation, **how)


@dataclass(frozen=True, eq=False)
class Fixed:
    """Columns inside and outside of every support that may be optimal or tied, and what else is known of a cell."""

    inside: IntArray
    outside: IntArray
    advice: KnownBounds


@dataclass(frozen=True, eq=False)
class Listed:
    """Supports found one after the other, a lower bound of f, whether they are all that matter, and the nodes spent."""

    supports: list[IntArray]
    lower: float
    complete: bool
    nodes: int


class VendorListing:
    """Lists the near-optimal supports of cells by a vendor's solver.

    Parameters
    ----------
    mio : MioSettings
    deadline : Deadline
    """

    def __init__(self, mio: MioSettings, deadline: Deadline) -> None:
        self.mio, self.deadline = mio, deadline

    def solve(self, problem: SparseProblem, tau: int, starts: Sequence[IntArray]) -> BestSubsets:
        """Solve one tau, and exclude supports until what is left is out of reach.

        Parameters
        ----------
        problem : SparseProblem
        tau : int
        starts : sequence of int arrays
            Supports to try as incumbents.

        Returns
        -------
        BestSubsets
            Its only cell is complete where every near-optimal support was found.
        """
        useful = normal_form(problem).columns
        size = min(tau, len(useful))
        relaxation = relaxation_of(problem, size)
        if relaxation is not None:
            starts = [*starts, np.argsort(-np.abs(relaxation.slope**2 / relaxation.w), kind="stable")[:size]]
        whole = [_new_support(np.intersect1d(s, useful), size, useful, []) for s in starts if len(s) <= size]
        incumbents = [(_value(problem, s), tuple(s.tolist())) for s in whole if s is not None]
        value, best = min(incumbents) if incumbents else (np.inf, ())
        fixed = self.fixed(problem, relaxation, value)
        start = Start(best, "incumbent") if incumbents else None
        listed = self._exclude(problem, useful, size, fixed, start)
        if not listed.supports:
            unproved = Listed([np.array(best, dtype=np.int64)], 0.0, False, listed.nodes)
            return BestSubsets({tau: _as_cell(problem, tau, unproved)}, listed.nodes, False)
        return BestSubsets({tau: _as_cell(problem, tau, listed)}, listed.nodes, not self.deadline.expired())

    def _exclude(
        self, problem: SparseProblem, useful: IntArray, size: int, fixed: Fixed, start: Start | None
    ) -> Listed:
        """Solve again and again, each time without the supports found before."""
        outside = np.union1d(fixed.outside, np.setdiff1d(np.arange(problem.q), useful))
        fixed = Fixed(fixed.inside, outside, fixed.advice)
        supports: list[IntArray] = []
        nodes, lower, complete = 0, 0.0, False
        while len(supports) <= MOST_EXCLUDED and not self.deadline.expired() and not complete:
            outcome = self._ask(problem, size, fixed, supports, start)
            start, fixed = None, Fixed(fixed.inside, fixed.outside, KnownBounds(points=fixed.advice.points))
            nodes += outcome.nodes
            lower = lower if supports else max(outcome.lower, 0.0)
            if supports and _out_of_reach(problem, outcome.lower, supports):
                return Listed(supports, lower, True, nodes)
            if outcome.incumbent is None or outcome.stop in (Stop.TIME, Stop.NODES, Stop.INTERRUPTED):
                break
            support = _new_support(np.array(outcome.incumbent, dtype=np.int64), size, useful, supports)
            if support is None:
                break
            supports.append(support)
            complete = size in (0, len(useful))
        return Listed(supports, lower, complete, nodes)

    def _ask(
        self, problem: SparseProblem, size: int, fixed: Fixed, found: list[IntArray], start: Start | None
    ) -> Outcome:
        """Solve the problem without the supports found."""
        constraints = SideConstraints(
            forced_in=tuple(fixed.inside.tolist()),
            forced_out=tuple(fixed.outside.tolist()),
            at_most=tuple((size - 1, tuple(support.tolist())) for support in found),
        )
        return self.mio.solve(problem, size, self.deadline, start=start, constraints=constraints, advice=fixed.advice)

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
        if relaxation is None or not np.isfinite(value):
            return Fixed(nothing, nothing, KnownBounds())
        status = screened(relaxation, value * (1.0 + KEEP_RTOL + TIE_RTOL) + fold_fits.objective_rounding(problem))
        advice = KnownBounds(lower=float(relaxation.dual), points=(relaxation.beta,))
        return Fixed(np.flatnonzero(status == INSIDE), np.flatnonzero(status == DROPPED), advice)


def relaxation_of(problem: SparseProblem, size: int) -> Relaxation | None:
    """Return the perspective relaxation of one size; None where it cannot help."""
    if not 0 < size < problem.q <= VENDOR_RELAXED_COLUMNS or not problem.yy > 0.0:
        return None
    try:
        return relax_problem(problem, [size])[0]
    except ValueError:
        return None


def _value(problem: SparseProblem, support: IntArray) -> float:
    """At least f of a support, by the rounding of its moments; +inf (unknown) where they have lost their digits."""
    fit = fold_fits.fit_from_moments(problem, [support])
    value, slack = float(fit.value[0]) + float(fit.value_error[0]), fold_fits.objective_rounding(problem)
    return value if -slack <= value <= problem.yy + slack else float("inf")


def _out_of_reach(problem: SparseProblem, lower: float, found: list[IntArray]) -> bool:
    """Whether no support with f above `lower` can be tied with the best one found."""
    return lower > min(_value(problem, s) for s in found) * (1.0 + KEEP_RTOL) + fold_fits.objective_rounding(problem)


def _new_support(support: IntArray, size: int, useful: IntArray, found: list[IntArray]) -> IntArray | None:
    """Return a support of exactly `size` useful columns that holds `support` and is new; more columns never raise f."""
    others = np.setdiff1d(useful, support)
    seen = {tuple(s.tolist()) for s in found}
    for shift in range(max(len(others), 1) if len(support) < size else 1):
        whole = filled_up(support, size, np.roll(others, -shift))
        if tuple(whole.tolist()) not in seen:
            return whole
    return None


def _as_cell(problem: SparseProblem, tau: int, listed: Listed) -> BestSubset:
    """Put what was listed into the form the native engine answers in."""
    supports = listed.supports
    values = [_value(problem, s) for s in supports]
    best = int(np.argmin(values))
    complete = listed.complete and bool(np.isfinite(values).all())
    margin = fold_fits.near_tie_margin(problem, values[best])
    ties = [i for i, value in enumerate(values) if value <= values[best] + margin] if complete else []
    return BestSubset(
        tau=tau,
        support=supports[best],
        lower=max(values[best] - margin, 0.0) if complete else min(listed.lower, values[best]),
        upper=values[best],
        candidates=tuple(supports[i] for i in ties),
        values=tuple(values[i] for i in ties),
        margin=margin,
        complete=complete,
        branched=True,
    )


def check_available(backend: str) -> None:
    """Raise `BackendUnavailable` where a backend cannot be used here, saying why and what would help."""
    if backend == NATIVE:
        return
    usable = get_backend(backend).available()
    if not usable.usable:
        hint = f"; {usable.hint}" if usable.hint else ""
        raise BackendUnavailable(f"backend {backend} cannot be used: {usable.why}{hint}")


class CellListing(Protocol):
    """Lists the near-optimal supports of cells by a vendor's solver."""

    def solve(self, problem: SparseProblem, tau: int, starts: list[IntArray]) -> BestSubsets:
        """Solve one tau; complete where every near-optimal support was found."""


class CellSolver:
    """Solves cells one at a time and writes what is found into the table. Safe to use from several threads.

    Parameters
    ----------
    fold_solver : FoldSolver
        Solves by our own trees; its table is the one written.
    vendor : CellListing, optional
        Solves in place of our own trees.

    Attributes
    ----------
    store : FoldStore
        Folds at gamma 1.
    """

    def __init__(self, fold_solver: FoldSolver, vendor: CellListing | None = None) -> None:
        self.fold_solver, self.vendor, self.intervals = fold_solver, vendor, fold_solver.intervals
        self.context, self.cells = fold_solver.context, fold_solver.cells
        data, source = self.context.data, fold_solver.accelerators.training_moments
        self.store = fold_fits.FoldStore(data, self.context.folds, source)
        self.restricted = bool(data.restrictions.beyond_forcing)

    def at(self, g: int, fold: int) -> fold_fits.FoldProblem:
        """Return a fold at the gamma of index `g`. O(n q^2) where the store does not hold it."""
        return self.store.get(fold).with_gamma(float(self.context.grid.gammas[g]))

    def first_bounds(self, g: int, fold: int) -> int:
        """Give every tau of a fold and gamma an incumbent, and its interval what holds with little work.

        Without restrictions nothing is branched on; with them, a few nodes, whose number is returned.
        """
        here, which = self.at(g, fold), np.arange(len(self.context.grid.taus))
        effort = FIRST_NODES if self.restricted else 0
        result = self.fold_solver.branch_and_bound(here, g, which, self.fold_solver.best_on_all_rows(g), effort)
        if effort and self.vendor is not None:  # who is asked of every cell that is left, whatever our trees can do
            result = replace(result, finished=False)
        self.intervals.write_outcome(here, g, which, result, relax=False)
        return result.nodes if effort else 0

    def solve(self, where: Where, starts: list[IntArray]) -> int:
        """Hand one cell to branch-and-bound.

        Parameters
        ----------
        where : gamma, tau, fold
        starts : list of int arrays
            Supports to try first.

        Returns
        -------
        int
            Nodes spent; 0 where no work can change the cell any more.
        """
        if self.cells.final[where]:
            return 0
        g, t, fold = where
        here = self.at(g, fold)
        result = self._outcome(here, where, starts)
        self.intervals.write_outcome(here, g, np.array([t]), result, relax=not self.restricted)
        return result.nodes

    def try_supports(self, g: int, which: IntArray, fold: int, supports: list[IntArray], only: BoolArray) -> None:
        """Refit one support for each of some tau of a fold and offer it to its cell.

        Parameters
        ----------
        g : int
        which : (m,) int array
            Indices of tau.
        fold : int
        supports : list of m int arrays
        only : (m,) bool array
            Whether the caller has proved that no other support of the cell is optimal or tied: such a cell is decided.
        """
        here = self.at(g, fold)
        fits = here.refit(supports)
        numbers = np.array([self.cells.pool.number(support) for support in supports], dtype=np.int32)
        self.cells.offer((g, which, fold), numbers, fits.held_out, fits.value)
        for i in np.flatnonzero(only & np.isfinite(fits.value_error)).tolist():
            place = slice(i, i + 1)
            self.intervals.decide(here, (g, int(which[i]), fold), supports[place], fits.at(place), branched=False)

    def _outcome(self, here: fold_fits.FoldProblem, where: Where, starts: list[IntArray]) -> BestSubsets:
        """Solve one cell by our own trees, or by the vendor's solver."""
        if self.vendor is not None:
            return self._by_vendor(self.vendor, here, where, starts)
        return self.fold_solver.branch_and_bound(here, where[0], np.array([where[1]]), starts, UNLIMITED)

    def _by_vendor(
        self, vendor: CellListing, here: fold_fits.FoldProblem, where: Where, starts: list[IntArray]
    ) -> BestSubsets:
        """Solve a cell by a vendor's solver; near ties that it leaves are listed by our own trees."""
        g, t, _ = where
        tau = int(self.context.grid.taus[t])

        def solved(problem: SparseProblem, taus: list[int], starts: list[IntArray]) -> BestSubsets:
            return vendor.solve(problem, taus[0], starts)

        if self.restricted:
            result = vendor.solve(here.problem, tau, starts)
        else:
            result = self.fold_solver.accelerators.solve(here.problem, g, [tau], starts, solved, by_vendor=True)
        cell = result.by_size[tau]
        if cell.complete or not result.finished:
            return result
        own = self.fold_solver.branch_and_bound(here, g, np.array([t]), [cell.support, *starts], MOST_NODES)
        own_cell = own.by_size[tau]
        if not own_cell.complete:
            own_cell = replace(own_cell, lower=min(max(own_cell.lower, cell.lower), own_cell.upper))
        return BestSubsets({tau: own_cell}, result.nodes + own.nodes, own.finished)

    def starts(self, where: Where) -> list[IntArray]:
        """Supports known for the cell, for its neighbours in tau and gamma, and for the next folds at the same pair."""
        return self.cells.shown_near(where) + self.fold_solver.best_on_all_rows(where[0])


@dataclass(frozen=True)
class Order:
    """An order of cells.

    Attributes
    ----------
    name : str
        The word of the method.
    pick : callable
        Returns the cells to solve next, all of one pair; none ends the run.
    brackets : bool
        Whether every cell is bounded without branching first.
    goes_beyond_proof : bool
        Whether cells that the proof leaves open are solved where they are asked for all the same.
    """

    name: str
    pick: Callable[[CellMethod], list[Where]]
    brackets: bool = True
    goes_beyond_proof: bool = True


class CellMethod(GridMethod):
    """Hands cells to branch-and-bound in some order and remembers which; as many at once as there are threads.

    Parameters
    ----------
    run : Run
    mio : MioSettings
    order : Order
    solver : CellSolver
        Solves a cell and writes what it finds into the table of cells.

    Attributes
    ----------
    submitted : (G, T, K) bool array
        Cells that were handed to branch-and-bound.
    begun : bool
        Whether the first steps came to their end; a run that was stored before is begun anew.
    """

    stored_as: ClassVar = {"asked": ("submitted", 0, 1), "begun": ("begun", 0, 1)}

    def __init__(self, run: Run, mio: MioSettings, order: Order, solver: CellSolver) -> None:
        super().__init__(run, (self,))
        self.mio, self.order, self.name, self.solver = mio, order, order.name, solver
        self.submitted = np.zeros(run.context.shape, dtype=bool)
        self.begun = False

    @property
    def source(self) -> str:
        """The source of bounds that a cell is handed to."""
        return BoundSource.FOLD_TREES if self.mio.native else mios_of(self.mio.backend)

    def end_first_steps(self) -> None:
        """Take note that the first steps came to their end, unless the time did."""
        self.begun = not self.context.deadline.expired()
        self.run.signals.progressed()

    def bound_every_cell(self, gammas: Sequence[int]) -> None:
        """Give every cell of some gammas a heuristic support of its fold and the bounds at the root of its tree."""
        with self.run.accounts.of(BoundSource.FOLD_ROOTS):
            self._bound_in_folds(gammas)

    def _bound_in_folds(self, gammas: Sequence[int]) -> None:
        expired = self.context.deadline.expired
        for done, (fold, moments) in enumerate(self.run.accelerators.training_moments(), start=1):
            self.run.signals.doing("bounds of every cell: fold", done, self.context.folds.k)
            self.solver.store.keep(fold, moments)
            for g in gammas:
                self.run.counts.add(self.solver.first_bounds(g, fold), problems=1)
                if expired():
                    return

    @property
    def open(self) -> BoolArray:
        """(G, T, K): cells that are not decided and were not handed to branch-and-bound."""
        return ~(self.run.cells.final | self.submitted)

    def asked(self) -> int:
        """Return the number of mixed-integer problems that were handed over, which the budget counts."""
        return int(self.submitted.sum())

    @property
    def exhausted(self) -> bool:
        """Whether the time or the budget of MIOs is spent."""
        return self.context.deadline.expired() or (self.mio.budget is not None and self.asked() >= self.mio.budget)

    @property
    def finished(self) -> bool:
        """Whether the order has come to its end, or the time or the budget is spent."""
        return self.exhausted or not self.order.pick(self)

    def step(self) -> None:
        """Solve the next cells."""
        self.solve(self.order.pick(self))

    def work_on(self, pairs: BoolArray) -> None:
        """Solve the next open cells of the first of some pairs (G, T)."""
        g, t = (int(i) for i in np.argwhere(pairs)[0])
        self.solve([(g, t, fold) for fold in np.flatnonzero(self.open[g, t])[: self.context.threads].tolist()])

    def solve(self, cells: list[Where]) -> None:
        """Hand cells of one pair to branch-and-bound, as many as the budget allows, on threads where there are some."""
        if self.mio.budget is not None:
            cells = cells[: self.mio.budget - self.asked()]
        if cells:
            tau = self.context.said_taus[cells[0][1]]
            self.run.signals.doing(f"{'trees' if self.mio.native else 'MIOs'}: tau {tau}")
        # what a cell starts from must not depend on which of its neighbours is done first
        work = [(where, self.solver.starts(where)) for where in cells]
        with self.run.accounts.of(self.source):
            spent = on_threads(lambda given: self.solver.solve(*given), work, len(work))
            for where, nodes in zip(cells, spent, strict=True):
                self.submitted[where] = True
                self.run.counts.add(nodes, problems=1)
        self.run.signals.progressed()
        self.run.signals.safe_point()

    def mios(self) -> int:
        """Return the number of mixed-integer problems that were solved."""
        return self.asked()

    def engine(self) -> str:
        """Return the method and its solver, in words."""
        return f"{self.name} on {self.mio.backend}" + (f", {self.mio.formulation}" if self.mio.formulation else "")

    def archive(self) -> Archive:
        """Return where it stands; cells that the end of the time cut short are open again."""
        over = self.context.deadline.expired()
        submitted = self.submitted & self.run.cells.final if over else self.submitted
        return super().archive() | {"asked": submitted}


def bracket(method: CellMethod, gammas: IntArray, taus: IntArray) -> None:
    """Intersect cells of some gammas and taus with the bounds layer; a cell with one support left is decided.

    Parameters
    ----------
    method : CellMethod
    gammas, taus : int arrays
        Indices in the grid.
    """
    run, context = method.run, method.context
    if context.deadline.expired() or not len(gammas) or not len(taus):
        return
    with run.accounts.of(BoundSource.FOLDS_RELAXED):
        _bracket(method, gammas, taus)


def _bracket(method: CellMethod, gammas: IntArray, taus: IntArray) -> None:
    run, solver = method.run, method.solver
    context, cells = run.context, run.cells
    run.counts.add(0, problems=len(gammas) * context.folds.k)
    run.signals.doing("relaxations of every fold")
    supports = [cell.support for result in run.all_rows.best for cell in result.by_size.values()]
    block = np.ix_(gammas, taus, np.arange(context.folds.k))
    wanted = ~cells.final[block]
    incumbents: dict[tuple[int, int], list[IntArray | None]] = {}
    grid, threads = context.grid, min(context.threads, os.cpu_count() or 1)
    table = compute_bounds(
        context.data, context.folds, grid.gammas[gammas].tolist(), grid.taus[taus].tolist(), threads=threads,
        known=KnownBefore(supports, wanted, run.accelerators.training_moments(), run.accelerators.reuses),
        hooks=BoundsHooks(
            expired=context.deadline.expired, reused=run.accelerators.note_bounds,
            found=lambda g, fold, best: incumbents.update({(g, fold): best}),
        ),
    )  # fmt: skip
    cells.narrow(block, np.where(wanted, table.lower, 0.0), np.where(wanted, table.upper, np.inf))
    for (g, fold), best in incumbents.items():
        here = [t for t in np.flatnonzero(wanted[g, :, fold]).tolist() if best[t] is not None]
        supports_here = [support for t in here if (support := best[t]) is not None]
        solver.try_supports(int(gammas[g]), taus[here], fold, supports_here, table.left[g, here, fold] == 0)
