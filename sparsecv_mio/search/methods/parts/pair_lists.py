"""Near-optimal supports on all rows, listed for one pair, and what the list says of all its folds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell
from sparsecv_mio.search.methods.parts.cell_costs import CellCosts
from sparsecv_mio.search.shared_tree.engines import SharedTrees
from sparsecv_mio.search.shared_tree.list_bounds import (
    apply_by_refits,
    apply_in_closed_form,
    incumbent_values,
    least_threshold,
)
from sparsecv_mio.search.shared_tree.near_optimal import NearOptimal, SupportList
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.subproblem.vendor_listing import limits_of

Pair = tuple[int, int]

DECIDED_SHARES = (0.5, 0.6, 1.0)  # of the open folds that a list should decide, in turn
ESTIMATED_SHARE = 0.9  # of the folds of the likely winner that a first list should serve
LIST_NODES = 1024  # that any list may cost
FEWEST_FOLDS = 2  # a list costs what a cell costs
MOST_FOLDS, LOW_LEVERAGE = 0.95, 0.25  # share of larger folds whose leverage must be low for a tree for all to pay


class Aim(NamedTuple):
    """The pair to work on next, and the sum of lower bounds at which it is left; inf: when every fold is decided."""

    pair: Pair
    goal: float


class PairLists:
    """What serves all folds of a pair at once: lists of near-optimal supports on all rows, and trees for all folds.

    Parameters
    ----------
    by_cell : CellByCell
    trees : SharedTrees
    costs : CellCosts

    Attributes
    ----------
    attempts : (G, T) int array
        Lists tried for a pair since its gamma was last bounded without branching.
    shared : (G, T) bool array
        Pairs for which a tree for all folds was grown.
    bracketed : (G,) bool array
        Gammas that were bounded without branching.
    count : int
        Lists and trees for all folds so far.
    """

    def __init__(self, by_cell: CellByCell, trees: SharedTrees, costs: CellCosts) -> None:
        self.by_cell, self.trees, self.costs = by_cell, trees, costs
        self.run = by_cell.run
        shape = self.run.context.shape
        self.attempts = np.zeros(shape[:2], dtype=np.int64)
        self.shared = np.zeros(shape[:2], dtype=bool)
        self.bracketed = np.zeros(shape[0], dtype=bool)
        self.count = 0
        self._near_optimal: dict[int, NearOptimal] = {}

    @property
    def native(self) -> bool:
        """Whether our own engine makes the lists."""
        return self.by_cell.mio.native

    # -- trees for all folds -----------------------------------------------------------------------------------------

    def may_share(self, pair: Pair) -> bool:
        """Whether a tree for all folds of the pair is worth a try."""
        if not self.native or self.shared[pair]:
            return False
        root = self.trees.root(pair[0])
        if root is None:
            return False
        single_rows = bool(self.run.context.folds.sizes.max() == 1)
        return single_rows or float(np.quantile(root.leverage, MOST_FOLDS)) < LOW_LEVERAGE

    def share(self, g: int, which: list[int]) -> None:
        """Decide what one tree for all folds can decide of some tau of a gamma."""
        nodes = self.trees.decide_taus(g, which, int(self.costs.expected(np.arange(1))[0]))
        self.shared[g, which] = True
        self.count += int(nodes > 0)

    # -- lists -------------------------------------------------------------------------------------------------------

    def may_list(self, aim: Aim, open_cells: BoolArray) -> bool:
        """Whether a list is worth a try: to raise a pair's lower sum, or to decide one of which upper bounds are known.

        Parameters
        ----------
        aim : Aim
        open_cells : (G, T, K) bool array
        """
        pair = aim.pair
        if (self.attempts[pair] or not np.isfinite(aim.goal)) and self.may_share(pair):
            return False
        tries = len(DECIDED_SHARES) if self.native else 1
        if self.attempts[pair] >= tries or int(open_cells[pair].sum()) < FEWEST_FOLDS:
            return False
        informed = not self.attempts[pair] or self.bracketed[pair[0]]
        if not np.isfinite(aim.goal) and not (self.native and informed):
            return False
        return not self.native or self.near_optimal(pair[0]).usable

    def note_bracketed(self, g: int, which: IntArray) -> None:
        """Take note that some tau of a gamma were bounded without branching: now another list may be worth it."""
        self.bracketed[g] = True
        self.attempts[g, which] = 0

    def near_optimal(self, g: int) -> NearOptimal:
        """All rows at one gamma, ready to be listed."""
        if g not in self._near_optimal:
            self._near_optimal[g] = NearOptimal(self.run.state.all_rows, g)
        return self._near_optimal[g]

    def list_pair(self, aim: Aim, open_cells: BoolArray) -> None:
        """List near-optimal supports of all rows, and write what they say of every open fold of the pair.

        Parameters
        ----------
        aim : Aim
        open_cells : (G, T, K) bool array
        """
        context = self.run.context
        (g, t), tau = aim.pair, int(context.grid.taus[aim.pair[1]])
        folds = np.flatnonzero(open_cells[aim.pair])
        listed: SupportList | None
        if self.native:
            threshold, served = self._threshold(aim, folds)
            if not served:
                self.attempts[aim.pair] = len(DECIDED_SHARES)
                return
            budget = max(LIST_NODES, int(self.costs.expected(folds).mean() * served) // 2)
            listed, nodes = self.near_optimal(g).below(tau, threshold, budget)
        else:
            listed, nodes = self._by_vendor(g, tau)
        self.attempts[aim.pair] += 1 if listed is not None else len(DECIDED_SHARES)
        self.count += 1
        self.run.state.counts.add(nodes)
        if listed is None:
            return
        root = self.trees.root(g) if np.isfinite(aim.goal) else None
        if root is not None:
            folds = folds[~apply_in_closed_form(root, t, listed)[folds]]
            if self.may_share(aim.pair):  # quicker than a refit in every fold with a tie
                return
        apply_by_refits(self.by_cell.solver, aim.pair, folds, listed, aim.goal)

    def _threshold(self, aim: Aim, folds: IntArray) -> tuple[float, int]:
        """Objective on all rows up to which a list should go for the goal, and how many trees of folds it spares."""
        g, t = aim.pair
        cells = self.run.state.cells
        root = self.trees.root(g) if np.isfinite(aim.goal) else None
        if root is not None:
            ubar = root.cutoffs(0, self.run.context.folds.k)[t, folds]
        else:
            ubar = incumbent_values(self.by_cell.solver, aim.pair, folds)
        clear = np.isfinite(ubar + cells.nominal[g, t, folds])
        folds, ubar = folds[clear], ubar[clear]
        if not len(folds):
            return -np.inf, 0
        if np.isfinite(aim.goal):
            closed = float(cells.lower[g, t].sum() - cells.lower[g, t, folds].sum())
            need = aim.goal * (1.0 + 1e-7) - closed
            least = least_threshold(cells.lower[g, t, folds], cells.nominal[g, t, folds], ubar, need)
            if np.isfinite(least):
                return least + self.near_optimal(g).margin(least), len(folds)
        # what a first list says of h in most folds is an estimate to go by
        needed, share = np.sort(ubar + cells.nominal[g, t, folds]), ESTIMATED_SHARE
        if self.bracketed[g]:
            needed = np.sort(ubar + cells.upper[g, t, folds])
            share = DECIDED_SHARES[min(int(self.attempts[aim.pair]), len(DECIDED_SHARES) - 1)]
        needed = needed[np.isfinite(needed)]
        if not len(needed):
            return -np.inf, 0
        served = max(int(np.ceil(share * len(needed))), 1)
        return float(needed[served - 1]) + self.near_optimal(g).margin(float(needed[served - 1])), served

    def _by_vendor(self, g: int, tau: int) -> tuple[SupportList, int]:
        """Solve all rows by a vendor: a list without supports, below its dual bound."""
        all_rows, mio = self.near_optimal(g), self.by_cell.mio
        problem, limits = all_rows.problem, limits_of(self.run.context.deadline)
        outcome = get_backend(mio.backend).solve(
            problem, min(tau, problem.q), limits=limits, formulation=mio.formulation
        )
        return SupportList((), max(outcome.lower, 0.0) - all_rows.allowance), outcome.nodes

    def archive(self) -> Archive:
        """Return where it stands."""
        return {
            "attempts": self.attempts, "shared": self.shared, "bracketed": self.bracketed,
            "lists": np.array(self.count),
        }  # fmt: skip

    def check(self, stored: Archive) -> None:
        """Any counts of the grid's shape are such."""

    def restore(self, stored: Archive) -> None:
        """Go to where `stored` was archived."""
        self.attempts[...] = stored["attempts"]
        self.shared[...] = stored["shared"]
        self.bracketed[...] = stored["bracketed"]
        self.count = int(stored["lists"])
