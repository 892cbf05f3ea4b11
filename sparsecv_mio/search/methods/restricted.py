"""Searches under restrictions beyond forced columns: limits on groups, parents, signs.

Every cell (gamma, tau, fold) begins with a few nodes of a tree of its own, which decide most of them; the rest is
handed to branch-and-bound cell by cell, in the order of Algorithm 1 (what may still win first) or of the grid. What
holds for any family of supports and any set of coefficients holds here: the training-loss bound with the restricted
optimum of all rows, the ridge ball around every b with `f(b) <= u`, the exact refit of a support (docs/theory.md,
"Restrictions").
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.backends.native.cell import UNLIMITED, PathCell, PathResult
from sparsecv_mio.formulation.backends.native.family import Family
from sparsecv_mio.formulation.constraints import constraints_of
from sparsecv_mio.search.checks import shown
from sparsecv_mio.search.methods.by_rows import by_rows
from sparsecv_mio.search.methods.orders import ORDERS
from sparsecv_mio.search.methods.parts.beyond_proof import decide_beyond_proof
from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell, MioSettings, check_available
from sparsecv_mio.search.methods.parts.run import Run, Stored
from sparsecv_mio.search.subproblem.restricted_cells import RestrictedCells
from sparsecv_mio.words import Method


def check_restrictions(data: StandardData, taus: list[int], folds: int) -> None:
    """Raise `BadInput` for restrictions that cannot be searched under, or that no model of some size keeps to.

    Parameters
    ----------
    data : StandardData
    taus : list of int
    folds : int
    """
    kinds = data.restrictions.beyond_forcing
    if kinds and by_rows(data, folds):
        raise BadInput(f"{shown(kinds[0])}: is not for {data.q} features, whose products are never formed")
    for tau in taus if kinds else []:
        Family.some(data.q, tau, constraints_of(data))


class Restricted:
    """One tree or MIO for each cell, under restrictions.

    Parameters
    ----------
    run : Run
    method : Method
        `algorithm1` or `grid`, for the order of the cells.
    mio : MioSettings
    """

    def __init__(self, run: Run, method: Method, mio: MioSettings) -> None:
        self.run, self.context, self.order = run, run.context, ORDERS[method]
        self.name = f"restricted {self.order.name}"
        constraints = constraints_of(self.context.data)
        get_backend(mio.backend).check_takes(mio.formulation, constraints)
        self.cells = RestrictedCells(
            run.state, constraints, run.accelerators.training_moments, mio.backend, mio.formulation
        )
        self.by_cell = CellByCell(run, mio, self.cells)
        self.parts: tuple[Stored, ...] = (self.by_cell,)

    @property
    def open(self) -> BoolArray:
        """(G, T, K): cells that are not decided and were not handed to branch-and-bound."""
        return self.by_cell.open

    @property
    def exhausted(self) -> bool:
        """Whether the time or the budget of MIOs is spent."""
        return self.by_cell.exhausted(self.by_cell.mios)

    def begin(self) -> None:
        """Find supports on all rows, and give every cell its first nodes."""
        check_available(self.by_cell.mio.backend)
        self._fit_all_rows()
        self.run.signals.progressed()
        self.by_cell.bound_every_cell(range(len(self.context.grid.gammas)))
        self.by_cell.end_first_steps()

    def _fit_all_rows(self) -> None:
        found: dict[int, PathResult] = {}
        starts: list[IntArray] = []
        gammas = len(self.context.grid.gammas)
        for g in range(gammas):
            if found and self.context.deadline.expired():
                break
            self.run.signals.doing("best subsets on all rows: gamma", g + 1, gammas)
            found[g] = self.cells.on_all_rows(g, self.context.grid.taus.tolist(), starts)
            starts = [cell.support for cell in found[g].cells.values()]
        self.run.state.all_rows.keep(found)

    def recompute(self) -> None:
        """Find supports on all rows again."""
        check_available(self.by_cell.mio.backend)
        self._fit_all_rows()

    def step(self) -> None:
        """Solve the next cells."""
        self.by_cell.solve(self.order.pick(self.by_cell), self.by_cell.mios)

    @property
    def finished(self) -> bool:
        """Whether the order has come to its end, or the time or the budget is spent."""
        return self.exhausted or not self.order.pick(self.by_cell)

    def work_on(self, pairs: BoolArray) -> None:
        """Solve the next open cells of one of some pairs (G, T)."""
        self.by_cell.solve(self.by_cell.next_of(pairs), self.by_cell.mios)

    def finish(self) -> None:
        """Decide what is asked for beyond the proof."""
        decide_beyond_proof(self, self.context.one_se)

    def score_reported_pair(self) -> None:
        """See to it that some pair is scored in every fold."""
        nominal = self.run.state.cells.nominal
        missing = ~np.isfinite(nominal)
        if not self.run.state.all_rows.best or missing.sum(axis=2).min() == 0:
            return
        g = int(missing.sum(axis=(1, 2)).argmin())
        for fold in np.flatnonzero(missing[g].any(axis=0)).tolist():
            if self.context.deadline.abandoned.is_set():
                break
            self.cells.first_bounds(g, fold)

    def best_on_all_rows(self, g: int, tau: int) -> PathCell:
        """Return the best support on all rows at a pair, solved while there is time."""
        cell = self.run.state.all_rows.best[g].cells[tau]
        if cell.complete or self.context.deadline.expired():
            return cell
        again = self.cells.on_all_rows(g, [tau], [cell.support], UNLIMITED).cells[tau]
        return again if again.complete else replace(again, lower=max(again.lower, cell.lower))

    def mios(self) -> int:
        """Return the number of cells handed to branch-and-bound, or decided by the first nodes of their trees."""
        cells = self.run.state.cells
        return int((self.by_cell.submitted | (cells.decided & cells.branched)).sum())

    def engine(self) -> str:
        """Return the method and its solver, in words."""
        return self.by_cell.words(self.name)
