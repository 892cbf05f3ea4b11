"""One cell (gamma, tau, fold) as one mixed-integer problem, on any backend."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.formulation.backends.native.cell import UNLIMITED, PathResult
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.state.cells import Where
from sparsecv_mio.search.subproblem.fold_problem import FoldProblem, FoldStore
from sparsecv_mio.search.subproblem.fold_solver import FoldSolver
from sparsecv_mio.search.subproblem.vendor_listing import VendorListing

NEAR_TIES_NODES = 1 << 20  # of our own trees, where a vendor's solver leaves near ties


class CellSolver:
    """Solves cells one at a time and writes what is found into the table. Safe to use from several threads.

    Parameters
    ----------
    fold_solver : FoldSolver
        Solves by our own trees; its table is the one written.
    vendor : VendorListing, optional
        Solves in place of our own trees.

    Attributes
    ----------
    intervals : CellIntervals
        Those of `fold_solver`.
    store : FoldStore
        Folds at gamma 1.
    """

    def __init__(self, fold_solver: FoldSolver, vendor: VendorListing | None = None) -> None:
        self.fold_solver, self.vendor = fold_solver, vendor
        self.context, self.cells = fold_solver.context, fold_solver.cells
        self.intervals = fold_solver.intervals
        self.store = FoldStore(self.context.data, self.context.folds, fold_solver.accelerators.training_moments)

    def at(self, g: int, fold: int) -> FoldProblem:
        """Return a fold at the gamma of index `g`. O(n q^2) where the store does not hold it."""
        return self.fold_solver.at_gamma(self.store.get(fold), g)

    def first_bounds(self, g: int, fold: int) -> None:
        """Give every tau of a fold and gamma an incumbent, and its interval the bounds that hold without branching."""
        here, which = self.at(g, fold), np.arange(len(self.context.grid.taus))
        result = self.fold_solver.branch_and_bound(here, g, which, self.fold_solver.best_on_all_rows(g), 0)
        self.intervals.write_outcome(here, g, which, result, relax=False)

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
            one = slice(i, i + 1)
            self.intervals.decide(here, (g, int(which[i]), fold), supports[one], fits.at(one), branched=False)

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
        g, t, fold = where
        if self.cells.final[where]:
            return 0
        here, which = self.at(g, fold), np.array([t])
        if self.vendor is None:
            result = self.fold_solver.branch_and_bound(here, g, which, starts, UNLIMITED)
        else:
            result = self._by_vendor(self.vendor, here, where, starts)
        self.intervals.write_outcome(here, g, which, result)
        return result.nodes

    def _by_vendor(self, vendor: VendorListing, here: FoldProblem, where: Where, starts: list[IntArray]) -> PathResult:
        """Solve a cell by a vendor's solver; near ties that it leaves are listed by our own trees."""
        g, t, fold = where
        tau = int(self.context.grid.taus[t])

        def solved(problem: SparseProblem, taus: list[int], starts: list[IntArray]) -> PathResult:
            return vendor.solve(problem, taus[0], starts)

        accelerators = self.fold_solver.accelerators
        starts = accelerators.proposed(g, tau, fold) + starts
        result = accelerators.solve(here.problem, g, [tau], starts, solved, by_vendor=True)
        cell = result.cells[tau]
        if cell.complete or not result.finished:
            return result
        own = self.fold_solver.branch_and_bound(here, g, np.array([t]), [cell.support, *starts], NEAR_TIES_NODES)
        return PathResult(own.cells, result.nodes + own.nodes, own.finished)

    def starts(self, where: Where) -> list[IntArray]:
        """Supports known for the cell, for its neighbours in tau and gamma, and for the next folds at the same pair."""
        table = self.cells.support
        numbers = [int(table[where])]
        for step in ((0, 1, 0), (0, -1, 0), (1, 0, 0), (-1, 0, 0), (0, 0, 1), (0, 0, -1)):
            near = tuple(place + by for place, by in zip(where, step, strict=True))
            if all(0 <= place < size for place, size in zip(near, table.shape, strict=True)):
                numbers.append(int(table[near]))
        known = [self.cells.pool.supports[number] for number in dict.fromkeys(numbers)]
        return known + self.fold_solver.best_on_all_rows(where[0])
