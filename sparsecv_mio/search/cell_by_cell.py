"""Cells handed to branch-and-bound one by one: by our own trees, or by a vendor's solver, which lists near ties.

`CellMethod` says which cells are next and remembers them; `CellSolver` solves one and writes what it finds.

How a vendor's solver lists near ties: :mod:`sparsecv_mio.formulation.near_ties`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.bounds.cv_error import BoundsHooks, KnownBefore, compute_bounds
from sparsecv_mio.formulation.near_ties import MioSettings
from sparsecv_mio.parallel import on_threads
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search import fold_fits
from sparsecv_mio.search.accounts import BoundSource, mios_of
from sparsecv_mio.search.cells import Archive, Where
from sparsecv_mio.search.fold_solver import FoldSolver
from sparsecv_mio.search.run import GridMethod, Run
from sparsecv_mio.trees.subsets import FIRST_NODES, MOST_NODES, UNLIMITED, BestSubsets


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
