"""Methods that hand cells to branch-and-bound one by one: their orders, the joint search, and restrictions.

`OneByOne` finds supports of all rows and first bounds of every cell, and then takes cells in one of these orders.

* Algorithm 1 of the paper. Phase one brackets every h_j(gamma, tau) by the certified bounds of
  :mod:`sparsecv_mio.bounds`. Phase two takes the pair with the least lower bound, its fold with the widest interval,
  and hands that cell to branch-and-bound, until `(UB - LB) / UB <= gap` or the budget of MIOs is spent.
* Grid search, the baseline of the papers: every cell of the grid is an MIO of its own; no bounds, no early stop.
* Bounds without branching alone: Algorithm 1 that stops before its first MIO. Proved where the intervals decide the
  best pair to the gap; a limit with a valid interval otherwise.
* The joint search (`WinnerFirst`): decide the likely winner, and prove of the others no more than that they lose. It is
  made for solvers that take long for any MIO, and counts MIOs, not seconds.

Which pair the joint search takes next (`aim`): the one that is likely to win, by the held-out errors of the supports at
hand, is decided. These are estimates, which order the search and never prune. Its upper bound, less the gap, is the
*goal*: a pair whose lower bound reaches it cannot win and is left in all its remaining folds (racing). Of the pairs
below the goal the one with the least lower bound is next. What is done for it (`step`) is the first of these that was
not done yet: bounds without branching for the whole gamma; where it is only to be raised, one MIO on all rows, which
bounds all folds by the training loss (:mod:`sparsecv_mio.bounds.closed_form`); one MIO in each of the folds that are
left, first in those that promise to raise the pair most.

`Restricted` searches under limits on groups, parents and signs. Every cell begins with a few nodes of a tree of its
own, which decide most of them; the others come in the order of Algorithm 1 or of the grid. Nothing that holds for the
best support of all sizes alone is used: no relaxation that is screened by an incumbent of its own, no oracle, no
support that was found without the restrictions. What holds for any family of supports and any set of coefficients is:
the training-loss bound with the restricted optimum of all rows, the ridge ball around every b with `f(b) <= u`, the
exact refit of a support (docs/theory.md, "Restrictions").
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.closed_form import ROWS_ROUNDING
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.formulation.near_ties import MioSettings, RestrictedListing, VendorListing, check_available
from sparsecv_mio.problem.constraints import constraints_of
from sparsecv_mio.search import cell_by_cell
from sparsecv_mio.search.accounts import BoundSource, mios_of
from sparsecv_mio.search.all_rows import solve_any
from sparsecv_mio.search.cells import Where
from sparsecv_mio.search.estimates import OpenCellEstimates, score_reported_pair
from sparsecv_mio.search.fold_solver import FoldSolver
from sparsecv_mio.search.loss_bounds import LowerOnAllRows, bounded_in_closed_form
from sparsecv_mio.search.pairs import Aim, Pair, aim_at, cells_to_raise
from sparsecv_mio.search.run import ROUND_EFFORT, Run, StoredPart, best_on_all_rows, fit_all_rows
from sparsecv_mio.search.shared_trees import SharedTrees
from sparsecv_mio.search.sources.all_rows_trees import LossBounds
from sparsecv_mio.trees.subsets import UNLIMITED, BestSubset, BestSubsets
from sparsecv_mio.words import Method


def widest_of_least(method: cell_by_cell.CellMethod) -> list[Where]:
    """Return the widest open cells of the pair with the least lower bound, or of the reported one where that is done.

    None once the certificate is closed.
    """
    cells, context, now = method.run.cells, method.context, method.run.bounds()
    if now.proved(context.gap):
        return []
    least = np.unravel_index(int(np.argmin(now.lower)), now.lower.shape)
    for g, t in ((int(least[0]), int(least[1])), now.best):
        folds = np.flatnonzero(method.open[g, t])
        if len(folds):
            width = cells.upper[g, t, folds] - cells.lower[g, t, folds]
            order = np.argsort(-width, kind="stable")[: context.threads]
            return [(g, t, int(folds[i])) for i in order]
    return []


def next_in_grid(method: cell_by_cell.CellMethod) -> list[Where]:
    """Return the next cells of one pair, in the order of (gamma, tau, fold)."""
    unsolved = np.flatnonzero(~method.submitted)[: method.context.threads]
    ahead = [tuple(int(i) for i in np.unravel_index(cell, method.submitted.shape)) for cell in unsolved]
    return [(g, t, fold) for g, t, fold in ahead if (g, t) == ahead[0][:2]]


def no_cell(method: cell_by_cell.CellMethod) -> list[Where]:
    """Return nothing: no cell is an MIO."""
    return []


def aimed_at(method: cell_by_cell.CellMethod) -> list[Where]:
    """Return the cells that the joint search aims at."""
    assert isinstance(method, OneByOne) and method.aid is not None
    return method.aid.next_cells()


ORDERS = {
    Method.ALGORITHM1: cell_by_cell.Order("algorithm 1", widest_of_least),
    Method.GRID: cell_by_cell.Order("grid", next_in_grid, brackets=False),
    Method.BOUNDS: cell_by_cell.Order("bounds", no_cell, goes_beyond_proof=False),
    Method.JOINT: cell_by_cell.Order("joint", aimed_at, brackets=False),
}


class WinnerFirst(StoredPart):
    """What is done before the next cells, and which these are: the answer of Algorithm 1 with a fraction of its MIOs.

    Parameters
    ----------
    method : OneByOne

    Attributes
    ----------
    bracketed : (G,) bool array
        Gammas that were bounded without branching.
    solved : (G, T) bool array
        Pairs at which all rows were handed to branch-and-bound.
    """

    stored_as: ClassVar = {"bracketed": ("bracketed", 0, 1), "solved": ("solved", 0, 1)}

    def __init__(self, method: OneByOne) -> None:
        self.method, self.run = method, method.run
        self.loss = LossBounds(self.run)
        self.bracketed = np.zeros(self.run.context.shape[0], dtype=bool)
        self.solved = np.zeros(self.run.context.shape[:2], dtype=bool)

    def bound_every_cell(self) -> None:
        """Bound every cell by the fits on all rows: in closed form where there is one, else fold by fold."""
        refitted = bounded_in_closed_form(self.run, self.method.trees)
        if refitted:
            self.method.bound_every_cell(refitted)

    def aim(self) -> Aim | None:
        """Return the pair that is next, as `aim_at` says."""
        return aim_at(self.run.bounds(), self.run.context.gap, self.method.open)

    def next_cells(self) -> list[Where]:
        """Return open folds of the pair aimed at that promise to raise its lower bound most."""
        aim = self.aim()
        if aim is None:
            return []
        return cells_to_raise(self.run.cells, aim, self.method.open[aim.pair])[: self.run.context.threads]

    def step(self) -> bool:
        """Do what may help the pair aimed at before its cells are solved; returns whether there was anything."""
        aim = self.aim()
        if aim is None:
            return False
        if not self.bracketed[aim.pair[0]]:
            g = np.array([aim.pair[0]])
            cell_by_cell.bracket(self.method, g, np.flatnonzero(self.method.open[g[0]].any(axis=1)))
            self.bracketed[g] = not self.run.context.deadline.expired()
        elif self._may_solve_all_rows(aim):
            self._solve_all_rows(aim.pair)
        else:
            return False
        self.run.signals.progressed()
        self.run.signals.safe_point()
        return True

    def _may_solve_all_rows(self, aim: Aim) -> bool:
        """Whether all rows were not solved at a pair whose bounds are to be raised in more than one fold."""
        return np.isfinite(aim.goal) and not self.solved[aim.pair] and int(self.method.open[aim.pair].sum()) > 1

    def _solve_all_rows(self, pair: Pair) -> None:
        """Solve all rows at a pair, and bound its folds by what that proves."""
        all_rows, mio, tau = self.run.all_rows, self.method.mio, int(self.run.context.grid.taus[pair[1]])
        reduced = all_rows.eliminated(pair[0])
        problem, size = reduced.problem, reduced.choice.size(tau)
        with self.run.accounts.of(BoundSource.ALL_ROWS if mio.native else mios_of(mio.backend)):
            outcome = mio.solve(problem, min(size, problem.q), self.run.context.deadline)
            self.run.counts.add(outcome.nodes, problems=1)
            lower = np.zeros(self.solved.shape)
            lower[pair] = max(outcome.lower - ROWS_ROUNDING * problem.size, 0.0)
            self.loss.apply(lower)
        self.solved[pair] = not self.run.context.deadline.expired()


class OneByOne(cell_by_cell.CellMethod):
    """Without restrictions: folds and all rows are bounded first, cells come in any order.

    Parameters
    ----------
    run : Run
    method : Method
        Which order.
    mio : MioSettings

    Attributes
    ----------
    aid : WinnerFirst or None
        What is done beside solving cells, so that fewer need it.
    """

    def __init__(self, run: Run, method: Method, mio: MioSettings) -> None:
        vendor = None if mio.native else VendorListing(mio, run.context.deadline)
        super().__init__(run, mio, ORDERS[method], cell_by_cell.CellSolver(FoldSolver(run, run.accelerators), vendor))
        self.trees = SharedTrees(run)
        self.aid = WinnerFirst(self) if method is Method.JOINT else None
        if self.aid is not None:
            self.parts = (self, self.aid, self.aid.loss, LowerOnAllRows(run, "loss_lower"))
        self.estimates = OpenCellEstimates(run, self.trees)

    def asked(self) -> int:
        """Return the number of cells handed to branch-and-bound, and of other mixed-integer problems solved."""
        return super().asked() + (0 if self.aid is None else int(self.aid.solved.sum()))

    def begin(self) -> None:
        """Find supports on all rows and in every fold, and bound every cell as far as the order asks for it."""
        check_available(self.mio.backend)
        self.estimates.before_all()
        self._fit_all_rows()
        self.estimates.before_proof()
        gammas, taus = (np.arange(size) for size in self.context.shape[:2])
        if self.aid is None:
            self.bound_every_cell(gammas.tolist())
        else:
            self.aid.bound_every_cell()
        self.end_first_steps()
        if self.order.brackets:
            cell_by_cell.bracket(self, gammas, taus)
            self.end_first_steps()

    def _fit_all_rows(self) -> None:
        fit_all_rows(self.run, range(len(self.context.grid.gammas)), 0)

    def step(self) -> None:
        """Do what may help before the next cells are solved, else solve these."""
        if self.aid is None or not self.aid.step():
            super().step()

    def finish(self) -> None:
        """Decide what is asked for beyond the proof, and estimate what stays open."""
        if self.order.goes_beyond_proof:
            super().finish()
        self.estimates.at_end()

    def score_reported_pair(self) -> None:
        """See to it that the pair to report is scored in every fold."""
        score_reported_pair(self.run, self.trees)

    def best_on_all_rows(self, g: int, tau: int) -> BestSubset:
        """Return the best subset on all rows at a pair, solved while there is time."""
        return best_on_all_rows(self.run, g, tau, UNLIMITED)

    def recompute(self) -> None:
        """Find supports on all rows again; what the folds found first is among the cells."""
        check_available(self.mio.backend)
        self.estimates.resume()
        self._fit_all_rows()


class Restricted(cell_by_cell.CellMethod):
    """One tree or MIO for each cell, under restrictions.

    Parameters
    ----------
    run : Run
    method : Method
        `algorithm1` or `grid`, for the order of the cells.
    mio : MioSettings
    """

    def __init__(self, run: Run, method: Method, mio: MioSettings) -> None:
        constraints = constraints_of(run.context.data)
        get_backend(mio.backend).check_takes(mio.formulation, constraints)
        vendor = None if mio.native else RestrictedListing(mio, run.context.deadline, constraints)
        super().__init__(run, mio, ORDERS[method], cell_by_cell.CellSolver(FoldSolver(run, run.accelerators), vendor))
        self.name = f"restricted {self.order.name}"

    def begin(self) -> None:
        """Find supports on all rows, and give every cell its first nodes."""
        check_available(self.mio.backend)
        self._fit_all_rows()
        self.run.signals.progressed()
        self.bound_every_cell(range(len(self.context.grid.gammas)))
        self.end_first_steps()

    def _fit_all_rows(self) -> None:
        best: dict[int, BestSubsets] = {}
        starts: list[IntArray] = []
        gammas = len(self.context.grid.gammas)
        with self.run.accounts.of(BoundSource.ALL_ROWS):
            for g in range(gammas):
                if best and self.context.deadline.expired():
                    break
                self.run.signals.doing("best subsets on all rows: gamma", g + 1, gammas)
                best[g] = self._on_all_rows(g, self.context.grid.taus.tolist(), starts, ROUND_EFFORT)
                starts = [cell.support for cell in best[g].by_size.values()]
            self.run.all_rows.keep(best)

    def _on_all_rows(self, g: int, taus: list[int], starts: list[IntArray], effort: int) -> BestSubsets:
        """Find the best supports of all rows at a gamma, by so many nodes a tau."""
        context, problem = self.context, self.run.all_rows.problem(g)
        best = solve_any(context.data, problem, taus, starts, effort, context.deadline.expired)
        self.run.counts.add(best.nodes, problems=1)
        return best

    def recompute(self) -> None:
        """Find supports on all rows again."""
        check_available(self.mio.backend)
        self._fit_all_rows()

    def score_reported_pair(self) -> None:
        """See to it that some pair is scored in every fold."""
        nominal = self.run.cells.nominal
        missing = ~np.isfinite(nominal)
        if not self.run.all_rows.best or missing.sum(axis=2).min() == 0:
            return
        g = int(missing.sum(axis=(1, 2)).argmin())
        for fold in np.flatnonzero(missing[g].any(axis=0)).tolist():
            if self.context.deadline.abandoned.is_set():
                break
            self.run.counts.add(self.solver.first_bounds(g, fold))

    def best_on_all_rows(self, g: int, tau: int) -> BestSubset:
        """Return the best support on all rows at a pair, solved while there is time."""
        cell = self.run.all_rows.best[g].by_size[tau]
        if cell.complete or self.context.deadline.expired():
            return cell
        again = self._on_all_rows(g, [tau], [cell.support], UNLIMITED).by_size[tau]
        return again if again.complete else replace(again, lower=max(again.lower, cell.lower))

    def mios(self) -> int:
        """Return the number of cells handed to branch-and-bound, or decided by the first nodes of their trees."""
        cells = self.run.cells
        return int((self.submitted | (cells.decided & cells.branched)).sum())
