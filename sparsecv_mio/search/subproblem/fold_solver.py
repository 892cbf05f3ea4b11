"""One fold, every gamma and tau that is wanted: branch-and-bound, then intervals of the held-out errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.formulation.backends.native.path import SMALL, PathResult, solve_path
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.state.state import SearchState
from sparsecv_mio.search.subproblem.cell_intervals import CellIntervals
from sparsecv_mio.search.subproblem.fold_problem import FoldProblem
from sparsecv_mio.search.subproblem.presolve import Solver


class FoldAccelerators(Protocol):
    """What a fold solver uses before, or instead of, a tree of its own."""

    def training_moments(self, wanted: Sequence[int] | None = None) -> Iterator[tuple[int, Moments]]:
        """Training moments of some folds, of all by default."""

    def proposed(self, g: int, tau: int, fold: int) -> list[IntArray]:
        """Supports worth trying in a cell.

        Parameters
        ----------
        g : int
            Index of the gamma.
        tau : int
        fold : int

        Returns
        -------
        list of int arrays
        """

    def solve(
        self,
        problem: SparseProblem,
        g: int,
        taus: Sequence[int],
        starts: Sequence[IntArray],
        solver: Solver,
        by_vendor: bool,
    ) -> PathResult:
        """Answer as `solver` would, asking it only for what is not known without it.

        Parameters
        ----------
        problem : SparseProblem
            Training rows of a fold.
        g : int
            Index of its gamma.
        taus : sequence of int
        starts : sequence of int arrays
            Supports to try first.
        solver : callable
            `(problem, taus, starts) -> PathResult`.
        by_vendor : bool
            Whether it is a vendor's solver, which takes much longer than a test whether it is needed and fixes columns
            itself.

        Returns
        -------
        PathResult
        """


class FoldSolver:
    """Solves cells of one fold after the other. Safe to use from several threads, each at a fold of its own.

    Parameters
    ----------
    state : SearchState
        Its cells are written for the fold at hand; the best supports on all rows are the first to try.
    accelerators : FoldAccelerators
    """

    def __init__(self, state: SearchState, accelerators: FoldAccelerators) -> None:
        self.context, self.cells, self.all_rows = state.context, state.cells, state.all_rows
        self.accelerators, self.intervals = accelerators, CellIntervals(state)

    def run(self, fold: int, moments: Moments, wanted: BoolArray, effort: int) -> int:
        """Work on some cells of a fold until the limit.

        Parameters
        ----------
        fold : int
        moments : Moments
            Of its training rows.
        wanted : (G, T) bool array
        effort : int
            Nodes that branch-and-bound may spend on one tau.

        Returns
        -------
        int
            Nodes spent.
        """
        nodes = 0
        found: list[IntArray] = []  # at the gamma before
        for g, which, here in self._each_gamma(fold, moments, wanted):
            if self.context.deadline.expired():
                break
            starts = self.best_on_all_rows(g) + found + self._shown(g, which, fold)
            result = self.branch_and_bound(here, g, which, starts, effort)
            self.intervals.write_outcome(here, g, which, result)
            found = [cell.support for cell in result.cells.values()]
            nodes += result.nodes
        return nodes

    def bound(self, fold: int, moments: Moments, wanted: BoolArray) -> None:
        """Give some cells of a fold an incumbent and the bounds that need no branching, whatever the time.

        Parameters
        ----------
        fold : int
        moments : Moments
            Of its training rows.
        wanted : (G, T) bool array
        """
        for g, which, here in self._each_gamma(fold, moments, wanted):
            starts = self.best_on_all_rows(g) + self._shown(g, which, fold)
            taus = self.context.grid.taus[which].tolist()
            result = solve_path(here.problem, taus, starts=starts, effort=0, expired=lambda: True)
            self.intervals.write_outcome(here, g, which, result)

    def branch_and_bound(
        self, here: FoldProblem, g: int, which: IntArray, starts: Sequence[IntArray], effort: int
    ) -> PathResult:
        """Solve some tau of a fold and gamma by our own trees, but for what the accelerators spare.

        Parameters
        ----------
        here : FoldProblem
            The fold at the gamma of index `g`.
        g : int
        which : int array
            Indices of tau.
        starts : sequence of int arrays
            Supports to try first.
        effort : int
            Nodes that one tau may cost.

        Returns
        -------
        PathResult
        """

        def trees(problem: SparseProblem, taus: list[int], starts: list[IntArray]) -> PathResult:
            return self.context.trees.grow(problem, taus, starts, effort, self.context.deadline)

        taus = self.context.grid.taus[which].tolist()
        proposed = [support for tau in taus for support in self.accelerators.proposed(g, tau, here.fold)]
        return self.accelerators.solve(here.problem, g, taus, [*proposed, *starts], trees, by_vendor=False)

    def at_gamma(self, fold_problem: FoldProblem, g: int) -> FoldProblem:
        """Return a fold at the gamma of index `g`."""
        return fold_problem.with_gamma(float(self.context.grid.gammas[g]))

    def best_on_all_rows(self, g: int) -> list[IntArray]:
        """Return the best supports known on all rows at a gamma, of every tau."""
        return [cell.support for cell in self.all_rows.best[g].cells.values()]

    def _each_gamma(
        self, fold: int, moments: Moments, wanted: BoolArray
    ) -> Iterator[tuple[int, IntArray, FoldProblem]]:
        """Yield the gammas with cells that are wanted, the largest first, with their taus and the fold there."""
        fold_problem = FoldProblem.of(self.context.data, self.context.folds, fold, moments)
        for g in np.argsort(-self.context.grid.gammas, kind="stable").tolist():
            if wanted[g].any():
                yield g, np.flatnonzero(wanted[g]), self.at_gamma(fold_problem, g)

    def _shown(self, g: int, which: IntArray, fold: int) -> list[IntArray]:
        """Supports that the table holds for some tau of a fold, where folds have searched by themselves."""
        if self.context.data.q <= SMALL:
            return []
        numbers = np.unique(self.cells.support[g, which, fold])
        return [self.cells.pool.supports[number] for number in numbers[numbers > 0].tolist()]
