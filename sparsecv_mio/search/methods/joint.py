"""Joint search over all (gamma, tau): decide the likely winner, and prove of the others no more than that they lose.

Made for solvers that take long for any MIO: it counts MIOs, not seconds. Supports of all rows and first bounds of every
cell come first. There is no phase one over the whole grid as in Algorithm 1.

Which pair next (`aim`). The pair that is likely to win, by the held-out errors of the supports at hand, is decided:
these are estimates, which order the search and never prune. Its upper bound, less the gap, is the *goal*: a pair whose
lower bound reaches it cannot win and is left in all its remaining folds (racing). Of the pairs below the goal the one
with the least lower bound is next.

What is done for it (`step`), the first of these that was not done yet:

1. bounds without branching for the whole gamma (:mod:`sparsecv_mio.bounds`);
2. where it is only to be raised, all rows are solved at the pair: one MIO, which bounds all folds by the training loss
   (:mod:`sparsecv_mio.bounds.training_loss`);
3. one MIO in each of the folds that are left, first in those that promise to raise the pair most.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from sparsecv_mio.bounds.training_loss import ROWS_ROUNDING
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search.methods.orders import Order
from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell, bracket
from sparsecv_mio.search.methods.parts.loss_bounds import LossBounds
from sparsecv_mio.search.shared_tree.dual_screening import decide_by_reuse
from sparsecv_mio.search.shared_tree.engines import SharedTrees
from sparsecv_mio.search.shared_tree.first_intervals import first_intervals
from sparsecv_mio.search.state.cells import Archive, Where
from sparsecv_mio.search.state.pairs import likely_winner
from sparsecv_mio.search.subproblem.vendor_listing import limits_of

Pair = tuple[int, int]


class Aim(NamedTuple):
    """The pair to work on next, and the sum of lower bounds at which it is left; inf: when every fold is decided."""

    pair: Pair
    goal: float


class WinnerFirst:
    """What is done before the next cells, and which these are: the answer of Algorithm 1 with a fraction of its MIOs.

    Parameters
    ----------
    by_cell : CellByCell
    trees : SharedTrees

    Attributes
    ----------
    bracketed : (G,) bool array
        Gammas that were bounded without branching.
    solved : (G, T) bool array
        Pairs at which all rows were handed to branch-and-bound.
    """

    def __init__(self, by_cell: CellByCell, trees: SharedTrees) -> None:
        self.by_cell, self.trees, self.run = by_cell, trees, by_cell.run
        self.loss = LossBounds(self.run)
        self.bracketed = np.zeros(self.run.context.shape[0], dtype=bool)
        self.solved = np.zeros(self.run.context.shape[:2], dtype=bool)

    @property
    def order(self) -> Order:
        """The order of cells that goes with it."""
        return Order("joint", self.next_cells, brackets=False)

    def bound_every_cell(self) -> None:
        """Bound every cell by the fits on all rows: in closed form where there is one, else fold by fold."""
        left = []
        for g in range(len(self.bracketed)):
            root = None if self.run.context.deadline.expired() else self.trees.root(g)
            if root is None:
                left.append(g)
            else:
                first_intervals(root)
                self.run.accelerators.decide_in_every_fold(g, partial(decide_by_reuse, root))
        if left:
            self.by_cell.bound_every_cell(left)

    def aim(self) -> Aim | None:
        """Return the likely winner to be decided, then the others to be raised to the goal; None once all is proved."""
        now, gap, still_open = self.run.state.bounds(), self.run.context.gap, self.by_cell.open
        if now.proved(gap):
            return None
        winner = likely_winner(now)
        goal = now.upper[winner] * (1.0 - gap)
        others = (now.lower < goal) & still_open.any(axis=2)
        others[winner] = False
        nearly_closed = now.upper[winner] * (1.0 - 0.5 * gap) <= now.lower[winner] < np.inf
        if still_open[winner].any() and not (nearly_closed and others.any()):
            return Aim(winner, np.inf)
        if not others.any():
            return None
        # the pair furthest below the goal holds the lower bound of the whole grid
        g, t = np.unravel_index(int(np.argmin(np.where(others, now.lower, np.inf))), others.shape)
        return Aim((int(g), int(t)), float(goal))

    def next_cells(self, by_cell: CellByCell) -> list[Where]:
        """Return open folds of the pair aimed at that promise to raise its lower bound most."""
        aim = self.aim()
        if aim is None:
            return []
        g, t = aim.pair
        cells, folds = self.run.state.cells, np.flatnonzero(by_cell.open[aim.pair])
        top = cells.upper[g, t, folds]
        if np.isfinite(aim.goal):
            top = np.minimum(cells.nominal[g, t, folds], top)
        order = np.argsort(cells.lower[g, t, folds] - top, kind="stable")
        return [(g, t, int(folds[i])) for i in order[: self.run.context.threads]]

    def step(self) -> bool:
        """Do what may help the pair aimed at before its cells are solved; returns whether there was anything."""
        aim = self.aim()
        if aim is None:
            return False
        if not self.bracketed[aim.pair[0]]:
            g = np.array([aim.pair[0]])
            bracket(self.by_cell, g, np.flatnonzero(self.by_cell.open[g[0]].any(axis=1)))
            self.bracketed[g] = True
        elif self._may_solve_all_rows(aim):
            self._solve_all_rows(aim.pair)
        else:
            return False
        self.run.signals.progressed()
        self.run.signals.safe_point()
        return True

    def _may_solve_all_rows(self, aim: Aim) -> bool:
        """Whether all rows were not solved at a pair whose bounds are to be raised in more than one fold."""
        return np.isfinite(aim.goal) and not self.solved[aim.pair] and int(self.by_cell.open[aim.pair].sum()) > 1

    def _solve_all_rows(self, pair: Pair) -> None:
        """Solve all rows at a pair, and bound its folds by what that proves."""
        all_rows, mio, tau = self.run.state.all_rows, self.by_cell.mio, int(self.run.context.grid.taus[pair[1]])
        part, limits = all_rows.eliminated(pair[0]), limits_of(self.run.context.deadline)
        problem, size = part.problem, part.choice.size(tau)
        outcome = get_backend(mio.backend).solve(
            problem, min(size, problem.q), limits=limits, formulation=mio.formulation
        )
        self.run.state.counts.add(outcome.nodes)
        lower = np.zeros(self.solved.shape)
        lower[pair] = max(outcome.lower - ROWS_ROUNDING * problem.size, 0.0)
        self.loss.apply(lower)
        self.solved[pair] = True

    def mios(self) -> int:
        """Return the number of solves on all rows."""
        return int(self.solved.sum())

    def archive(self) -> Archive:
        """Return where it stands."""
        return {"bracketed": self.bracketed, "solved": self.solved} | self.loss.archive()

    def check(self, stored: Archive) -> None:
        """Raise `CorruptStore` for numbers that cannot be such; any masks of the grid's shape may be."""
        self.loss.check(stored)

    def restore(self, stored: Archive) -> None:
        """Go to where `stored` was archived."""
        self.bracketed[...], self.solved[...] = stored["bracketed"], stored["solved"]
        self.loss.restore(stored)
