"""Cells under restrictions: at most so many of a group, parents, signs. Each is a tree, or an MIO, of its own.

Nothing that holds for the best support of all sizes alone is used here: no relaxation of the held-out error that is
screened by an incumbent of its own, no oracle, no support that was found without the restrictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.formulation.backends import NATIVE, get_backend
from sparsecv_mio.formulation.backends.native.cell import UNLIMITED, PathCell, PathResult
from sparsecv_mio.formulation.backends.native.family import completed
from sparsecv_mio.formulation.backends.native.path import solve_path
from sparsecv_mio.formulation.backends.native.restricted import solve_restricted
from sparsecv_mio.formulation.constraints import SideConstraints, constraints_of
from sparsecv_mio.formulation.outcome import Start, Stop
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.state.cells import Where
from sparsecv_mio.search.state.state import SearchState
from sparsecv_mio.search.subproblem.cell_intervals import CellIntervals
from sparsecv_mio.search.subproblem.fold_problem import FoldProblem, FoldStore, MomentSource
from sparsecv_mio.search.subproblem.vendor_listing import MOST_EXCLUDED, limits_of

FIRST_NODES = 16  # of every cell, before any is chosen
ALL_ROWS_NODES = 2_000  # of every pair on all rows, before any fold
NEAR_TIES_NODES = 1 << 20  # of our own trees, where a vendor's solver leaves near ties


def solve_any(
    data: StandardData,
    problem: SparseProblem,
    taus: list[int],
    starts: list[IntArray],
    effort: int,
    expired: Callable[[], bool],
) -> PathResult:
    """Find the best supports of some sizes by our own trees, whatever restrictions the data have.

    Parameters
    ----------
    data : StandardData
    problem : SparseProblem
        Of these data.
    taus : list of int
    starts : list of int arrays
        Supports to try first.
    effort : int
        Nodes that a tau may cost.
    expired : callable
        True ends the search with what it has.
    """
    if not data.restrictions.beyond_forcing:
        return solve_path(problem, taus, starts=starts, effort=effort, expired=expired)
    return solve_restricted(problem, taus, constraints_of(data), starts=starts, effort=effort, expired=expired)


class RestrictedCells:
    """Solves cells one at a time and writes what is found into the table. Safe to use from several threads.

    Parameters
    ----------
    state : SearchState
    constraints : SideConstraints
        In the columns of the data.
    source : callable
        Yields the training moments of some folds.
    backend : str
        Who solves the cells that the first nodes of our own trees leave.
    formulation : str, optional
        Which of the backend's models.

    Attributes
    ----------
    store : FoldStore
        Folds at gamma 1.
    """

    def __init__(
        self,
        state: SearchState,
        constraints: SideConstraints,
        source: MomentSource,
        backend: str = NATIVE,
        formulation: str | None = None,
    ) -> None:
        self.state, self.context, self.constraints = state, state.context, constraints
        self.backend, self.formulation = backend, formulation
        self.intervals = CellIntervals(state)
        self.store = FoldStore(self.context.data, self.context.folds, source)

    def tree(
        self, problem: SparseProblem, taus: list[int], starts: list[IntArray], effort: int, inside: tuple[int, ...] = ()
    ) -> PathResult:
        """Solve some taus of a problem by our own trees.

        Parameters
        ----------
        problem : SparseProblem
        taus : list of int
        starts : list of int arrays
            Supports to try first.
        effort : int
            Nodes that a tau may cost.
        inside : tuple of int
            Columns of every support, beside those that are forced in.
        """
        more = tuple(sorted({*self.constraints.forced_in, *inside}))
        asked = replace(self.constraints, forced_in=more) if inside else self.constraints
        return solve_restricted(
            problem, taus, asked, starts=starts, effort=effort, expired=self.context.deadline.expired
        )

    def on_all_rows(self, g: int, taus: list[int], starts: list[IntArray], effort: int = ALL_ROWS_NODES) -> PathResult:
        """Find the best supports of all rows at a gamma.

        Parameters
        ----------
        g : int
            Index of the gamma.
        taus : list of int
        starts : list of int arrays
        effort : int
            Nodes that a tau may cost.
        """
        found = self.tree(self.state.all_rows.problem(g), taus, starts, effort)
        self.state.counts.add(found.nodes)
        return found

    def at(self, g: int, fold: int) -> FoldProblem:
        """Return a fold at the gamma of index `g`. O(n q^2) where the store does not hold it."""
        return self.store.get(fold).with_gamma(float(self.context.grid.gammas[g]))

    def first_bounds(self, g: int, fold: int) -> None:
        """Give every tau of a fold and gamma an incumbent and an interval; most cells are decided here."""
        here, which = self.at(g, fold), np.arange(len(self.context.grid.taus))
        starts = [cell.support for cell in self.state.all_rows.best[g].cells.values()]
        result = self.tree(here.problem, self.context.grid.taus.tolist(), starts, FIRST_NODES)
        if self.backend != NATIVE:  # which is asked of every cell that is left, whatever our trees can do
            result = replace(result, finished=False)
        self.intervals.write_outcome(here, g, which, result, relax=False)
        self.state.counts.add(result.nodes)

    def starts(self, where: Where) -> list[IntArray]:
        """Supports known for the cell, and for its neighbours in tau and gamma."""
        table, (g, t, fold) = self.state.cells.support, where
        near = [table[where], *table[g, max(t - 1, 0) : t + 2, fold], *table[max(g - 1, 0) : g + 2, t, fold]]
        return [self.state.cells.pool.supports[number] for number in dict.fromkeys(int(number) for number in near)]

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
        if self.state.cells.final[where]:
            return 0
        here, tau = self.at(g, fold), int(self.context.grid.taus[t])
        if self.backend == NATIVE:
            result = self.tree(here.problem, [tau], starts, UNLIMITED)
        else:
            result = self._by_vendor(here.problem, tau, starts)
        self.intervals.write_outcome(here, g, np.array([t]), result, relax=False)
        return result.nodes

    # -- a vendor's solver --------------------------------------------------------------------------------------------

    def _by_vendor(self, problem: SparseProblem, tau: int, starts: list[IntArray]) -> PathResult:
        """Ask a vendor's solver again and again, each time without the supports that hold those found.

        A support that it returns has active columns; all supports that hold these are listed by our own tree, which has
        few columns left to choose.
        """
        first = self.tree(problem, [tau], starts, 1).cells[tau]
        if first.complete:
            return PathResult({tau: first}, 1, True)
        cells, lower, nodes, excluded = [first], -np.inf, 1, list(self.constraints.at_most)
        while len(cells) <= MOST_EXCLUDED and not self.context.deadline.expired():
            asked = replace(self.constraints, at_most=tuple(excluded))
            outcome = get_backend(self.backend).solve(
                problem, min(tau, problem.q), start=self._start(problem, tau, cells),
                limits=limits_of(self.context.deadline), constraints=asked, formulation=self.formulation,
            )  # fmt: skip
            nodes += outcome.nodes
            lower = max(lower, outcome.lower) if len(cells) == 1 else lower
            best = min(cells, key=lambda cell: cell.upper)
            if outcome.stop is Stop.INFEASIBLE or (len(cells) > 1 and outcome.lower > best.upper + best.margin):
                return PathResult({tau: _joined(cells)}, nodes, True)
            if outcome.incumbent is None or outcome.stop in (Stop.TIME, Stop.NODES, Stop.INTERRUPTED):
                break
            active = self._active(outcome.incumbent, outcome.beta)
            inner = self.tree(problem, [tau], [], NEAR_TIES_NODES, active)
            nodes += inner.nodes
            cells.append(inner.cells[tau])
            if not active or not inner.cells[tau].complete:
                break
            excluded.append((len(active) - 1, active))
        best = min(cells, key=lambda cell: cell.upper)
        if cells[-1].complete and not self._active(tuple(cells[-1].support.tolist()), None):
            return PathResult({tau: cells[-1]}, nodes, True)
        own = self.tree(problem, [tau], [best.support, *starts], NEAR_TIES_NODES)
        cell = own.cells[tau]
        if not cell.complete:
            cell = replace(cell, lower=min(max(cell.lower, lower), cell.upper))
        return PathResult({tau: cell}, nodes + own.nodes, own.finished)

    def _start(self, problem: SparseProblem, tau: int, cells: list[PathCell]) -> Start:
        """Return the best support found, with what it needs."""
        best = min(cells, key=lambda cell: cell.upper)
        signed = [j for j, _, _ in self.constraints.box]
        return Start(completed(problem.q, tau, self.constraints, best.support, signed), "incumbent")

    def _active(self, support: tuple[int, ...], beta: tuple[float, ...] | None) -> tuple[int, ...]:
        """Return the columns of a support but for those that a sign holds at zero."""
        if beta is None:
            return support
        signed = {j for j, _, _ in self.constraints.box}
        return tuple(j for j, b in zip(support, beta, strict=True) if b != 0.0 or j not in signed)


def _joined(cells: list[PathCell]) -> PathCell:
    """Return one complete cell of lists that together hold every support within their margin."""
    best = min(cells, key=lambda cell: cell.upper)
    kept = {
        tuple(support.tolist()): (support, value)
        for cell in cells
        for support, value in zip(cell.candidates, cell.values, strict=True)
        if value <= best.upper + best.margin
    }
    return replace(
        best, candidates=tuple(support for support, _ in kept.values()), values=tuple(f for _, f in kept.values()),
        lower=max(best.upper - best.margin, 0.0), complete=True, branched=True,
    )  # fmt: skip
