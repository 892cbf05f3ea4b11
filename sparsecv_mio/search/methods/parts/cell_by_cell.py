"""Cells (gamma, tau, fold) handed to branch-and-bound one by one, on any backend, or bounded without branching."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.bounds.all_folds import BoundsHooks, Known
from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.formulation.backends import NATIVE, get_backend
from sparsecv_mio.parallel import on_threads
from sparsecv_mio.search.methods.parts.all_rows import fit_all_rows
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.state.cells import Archive, Where
from sparsecv_mio.search.state.state import SearchState
from sparsecv_mio.search.subproblem.cell_solver import CellSolver
from sparsecv_mio.search.subproblem.fold_problem import FoldStore
from sparsecv_mio.search.subproblem.fold_solver import FoldSolver
from sparsecv_mio.search.subproblem.vendor_listing import VendorListing


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
    """

    backend: str = NATIVE
    formulation: str | None = None
    budget: int | None = None

    @property
    def native(self) -> bool:
        """Whether it is our own engine."""
        return self.backend == NATIVE


def check_available(backend: str) -> None:
    """Raise `BackendUnavailable` where a backend cannot be used here, saying why and what would help."""
    if backend == NATIVE:
        return
    usable = get_backend(backend).available()
    if not usable.usable:
        hint = f"; {usable.hint}" if usable.hint else ""
        raise BackendUnavailable(f"backend {backend} cannot be used: {usable.why}{hint}")


class Cells(Protocol):
    """Who solves a cell and writes what is found into the table of cells."""

    @property
    def store(self) -> FoldStore:
        """Folds at gamma 1."""

    def first_bounds(self, g: int, fold: int) -> None:
        """Give every tau of a fold and gamma an incumbent, and its interval what holds with little work."""

    def starts(self, where: Where) -> list[IntArray]:
        """Supports to try first in a cell."""

    def solve(self, where: Where, starts: list[IntArray]) -> int:
        """Hand one cell to branch-and-bound; returns the nodes spent."""


class CellByCell:
    """Hands cells to branch-and-bound and remembers which; as many at once as there are threads.

    Parameters
    ----------
    run : Run
    mio : MioSettings
    cells : Cells, optional
        Who solves the cells, by default a `CellSolver`.

    Attributes
    ----------
    solver : Cells
        Solves a cell and writes what it finds into the table of cells.
    submitted : (G, T, K) bool array
        Cells that were handed to branch-and-bound.
    begun : bool
        Whether the first steps came to their end; a run that was stored before is begun anew.
    """

    def __init__(self, run: Run, mio: MioSettings, cells: Cells | None = None) -> None:
        self.run, self.mio = run, mio
        state, context = run.state, run.context
        self.submitted = np.zeros(context.shape, dtype=bool)
        self.begun = False
        self.solver = cells or self._unrestricted(state)

    def end_first_steps(self) -> None:
        """Take note that the first steps came to their end, unless the time did."""
        self.begun = not self.run.context.deadline.expired()
        self.run.signals.progressed()

    def _unrestricted(self, state: SearchState) -> CellSolver:
        mio = self.mio
        vendor = None if mio.native else VendorListing(mio.backend, state.context.deadline, mio.formulation)
        return CellSolver(FoldSolver(state, self.run.accelerators), vendor)

    def prepare(self) -> None:
        """See that the backend can be used, and find supports on all rows."""
        check_available(self.mio.backend)
        fit_all_rows(self.run, range(len(self.run.context.grid.gammas)), 0, self.run.context.deadline.expired)

    def bound_every_cell(self, gammas: Sequence[int]) -> None:
        """Give every cell of some gammas a heuristic support of its fold and the bounds at the root of its tree."""
        expired = self.run.context.deadline.expired
        k = self.run.context.folds.k
        for done, (fold, moments) in enumerate(self.run.accelerators.training_moments(), start=1):
            self.run.signals.doing("bounds of every cell: fold", done, k)
            self.solver.store.keep(fold, moments)
            for g in gammas:
                self.solver.first_bounds(g, fold)
                if expired():
                    break
            if expired():
                break

    @property
    def open(self) -> BoolArray:
        """(G, T, K): cells that are not decided and were not handed to branch-and-bound."""
        return ~(self.run.state.cells.final | self.submitted)

    @property
    def mios(self) -> int:
        """Cells handed to branch-and-bound so far."""
        return int(self.submitted.sum())

    def exhausted(self, mios: int) -> bool:
        """Whether the time, or the budget after so many MIOs, is spent."""
        return self.run.context.deadline.expired() or (self.mio.budget is not None and mios >= self.mio.budget)

    def next_of(self, pairs: BoolArray) -> list[Where]:
        """Return the next open cells of the first of some pairs (G, T)."""
        g, t = (int(i) for i in np.argwhere(pairs)[0])
        return [(g, t, fold) for fold in np.flatnonzero(self.open[g, t])[: self.run.context.threads].tolist()]

    def solve(self, cells: list[Where], mios: int) -> None:
        """Hand cells of one pair to branch-and-bound, on threads where there are several.

        Parameters
        ----------
        cells : list of (gamma, tau, fold)
        mios : int
            MIOs solved so far, of the budget.
        """
        if self.mio.budget is not None:
            cells = cells[: self.mio.budget - mios]
        if cells:
            tau = self.run.context.grid.taus[cells[0][1]]
            self.run.signals.doing(f"{'trees' if self.mio.native else 'MIOs'}: tau {tau}")
        # what a cell starts from must not depend on which of its neighbours is done first
        work = [(where, self.solver.starts(where)) for where in cells]
        spent = on_threads(lambda given: self.solver.solve(*given), work, len(work))
        for where, nodes in zip(cells, spent, strict=True):
            self.submitted[where] = True
            self.run.state.counts.add(nodes)
        self.run.signals.progressed()
        self.run.signals.safe_point()

    def words(self, name: str) -> str:
        """Return a method and its solver, in words."""
        return f"{name} on {self.mio.backend}" + (f", {self.mio.formulation}" if self.mio.formulation else "")

    def archive(self) -> Archive:
        """Return where it stands."""
        return {"asked": self.submitted, "begun": np.array(self.begun)}

    def check(self, stored: Archive) -> None:
        """Any mask of the cells is one."""

    def restore(self, stored: Archive) -> None:
        """Go to where `stored` was archived."""
        self.submitted[...] = stored["asked"]
        self.begun = True


def bracket(by_cell: CellByCell, gammas: IntArray, taus: IntArray) -> None:
    """Intersect cells of some gammas and taus with the bounds layer; a cell with one support left is decided.

    Parameters
    ----------
    by_cell : CellByCell
    gammas, taus : int arrays
        Indices in the grid.
    """
    run, solver = by_cell.run, by_cell.solver
    assert isinstance(solver, CellSolver)
    context, cells = run.context, run.state.cells
    if context.deadline.expired() or not len(gammas) or not len(taus):
        return
    run.signals.doing("relaxations of every fold")
    supports = [cell.support for result in run.state.all_rows.best for cell in result.cells.values()]
    part = np.ix_(gammas, taus, np.arange(context.folds.k))
    wanted = ~cells.final[part]
    found: dict[tuple[int, int], list[IntArray | None]] = {}
    grid, threads = context.grid, min(context.threads, os.cpu_count() or 1)
    table = compute_bounds(
        context.data, context.folds, grid.gammas[gammas].tolist(), grid.taus[taus].tolist(), threads=threads,
        known=Known(supports, wanted, run.accelerators.training_moments(), run.accelerators.reuses),
        hooks=BoundsHooks(
            expired=context.deadline.expired, reused=run.accelerators.note_bounds,
            found=lambda g, fold, best: found.update({(g, fold): best}),
        ),
    )  # fmt: skip
    cells.narrow(part, np.where(wanted, table.lower, 0.0), np.where(wanted, table.upper, np.inf))
    for (g, fold), best in found.items():
        here = [t for t in np.flatnonzero(wanted[g, :, fold]).tolist() if best[t] is not None]
        known = [support for t in here if (support := best[t]) is not None]
        solver.try_supports(int(gammas[g]), taus[here], fold, known, table.left[g, here, fold] == 0)
