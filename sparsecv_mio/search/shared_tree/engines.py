"""One tree for all folds: which engine serves which cells (theory section 5).

* `enumerate`: thresholds and one list, for n much larger than p or few candidates (`thresholds`).
* `shared`: the alive-fold tree, for leave-one-out with moderate n (`loo_tree`).
* `per-fold`: one tree per fold, for what is left and for large folds (`subproblem.fold_solver`).

`auto` decides by counted nodes, never by clocks: a list for every fold if it costs at most a few trees on all rows,
else the alive-fold tree where folds are single rows and memory allows, else a list for most folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from sparsecv_mio.search.options import PATH_TREE_COLUMNS
from sparsecv_mio.search.shared_tree.identities import WIDEST_LEVERAGE
from sparsecv_mio.search.shared_tree.leave_out import LeaveOut, Proposed
from sparsecv_mio.search.shared_tree.loo_tree import is_applicable, run_alive_folds
from sparsecv_mio.search.shared_tree.root_node import RootNode
from sparsecv_mio.search.shared_tree.thresholds import EVERY_FOLD, FEWER_FOLDS, enumerate_below_thresholds
from sparsecv_mio.search.state.state import SearchState
from sparsecv_mio.words import Engine

WIDEST_KEEP = 1e-6  # relative rounding of the trees beyond which a threshold on all rows means little in a fold
LEAST_SHARE = 0.6  # of the folds that must have a leverage thresholds can use
LARGEST_FOLD = 64  # rows; larger folds have leverages near one half unless n is huge
FEWEST_FOLDS = 24  # that score each row once; fewer take less time one by one
LIST_BUDGET = ((1_000, 2), (20_000, 6))  # most folds, and the trees on all rows that a list for all of them may cost
FOLD_OVERHEAD = 200  # nodes' worth of work that a tree of its own costs beside its nodes


class SharedTrees:
    """What one branch-and-bound on all rows can decide for all folds at once.

    Parameters
    ----------
    state : SearchState
        With the best supports found on all rows; decided cells are written there.
    engine : Engine
    proposed : callable, optional
        See :class:`sparsecv_mio.search.shared_tree.leave_out.LeaveOut`.
    """

    def __init__(
        self, state: SearchState, engine: Engine = Engine.AUTO, proposed: Proposed = lambda g, tau: []
    ) -> None:
        self.state, self.engine, self.proposed = state, engine, proposed
        self._roots: dict[int, RootNode | None] = {}

    @cached_property
    def leave_out(self) -> LeaveOut:
        """Closed-form leave-fold-out scores; O(n q^2) the first time."""
        return LeaveOut(self.state.all_rows, self.state.cells, self.proposed)

    def root(self, g: int) -> RootNode | None:
        """Return the fit on all rows that trees for all folds start from; None where they are no use.

        Made when first asked for, O(n q^2), and kept.
        """
        if g not in self._roots:
            self._roots[g] = self._new_root(g)
        return self._roots[g]

    def _new_root(self, g: int) -> RootNode | None:
        leave_out, engine = self.leave_out, self.engine
        wanted, folds, q = self._open_taus(g), leave_out.folds, leave_out.data.q
        usable = engine is not Engine.PER_FOLD and folds.sizes.max() <= LARGEST_FOLD and q <= PATH_TREE_COLUMNS
        usable = usable and folds.left is None  # the identities score every row that is left out
        if engine is Engine.AUTO:
            usable = usable and folds.k >= FEWEST_FOLDS * folds.times_scored
        if not usable or not wanted:
            return None
        form = leave_out.all_rows.normal_form(g)
        if form.keep > WIDEST_KEEP or form.m == 0:
            return None
        root = RootNode(leave_out, g, wanted)
        if engine is Engine.AUTO and float(np.mean(root.leverage < WIDEST_LEVERAGE)) < LEAST_SHARE:
            return None
        return root

    def _open_taus(self, g: int) -> list[int]:
        """Return the indices of the taus with open cells."""
        return np.flatnonzero(self.state.open[g].any(axis=1)).tolist()

    def decide_gamma(self, g: int) -> None:
        """Decide what can be decided of a whole gamma; nothing is kept of it."""
        root = None if self.leave_out.expired() else self._new_root(g)
        if root is not None:
            self._decide(root, self._open_taus(g), self.state.all_rows.best[g].nodes)

    def decide_taus(self, g: int, which: Sequence[int], tree: int) -> int:
        """Decide what can be decided of some tau, given the nodes of one `tree`; returns the nodes spent.

        Parameters
        ----------
        g : int
            Index of gamma.
        which : sequence of int
            Indices of tau with open cells.
        tree : int
            Nodes that one tree on all rows costs.
        """
        root = self.root(g)
        return 0 if root is None else self._decide(root, which, tree)

    def _decide(self, root: RootNode, wanted: Sequence[int], tree: int) -> int:
        """Have the engines decide what they can of some tau, and count it; returns the nodes spent."""
        engine, folds, one_tree = self.engine, self.leave_out.folds, tree + FOLD_OVERHEAD
        nodes, decided = 0, {"enumerate": 0, "shared": 0}
        shared = engine is not Engine.ENUMERATE and is_applicable(self.leave_out, root.form.m)
        if engine in (Engine.AUTO, Engine.ENUMERATE):
            budget = one_tree * _listing_trees(folds.k, shared)
            spent, decided["enumerate"] = enumerate_below_thresholds(root, wanted, budget, EVERY_FOLD)
            nodes += spent
        if shared and not self.state.cells.final[root.g][list(wanted)].all():
            spent, decided["shared"] = run_alive_folds(root, wanted, folds.k * one_tree)
            nodes += spent
        if not any(decided.values()) and engine is not Engine.SHARED:
            budget = folds.k * one_tree // 16
            spent, decided["enumerate"] = enumerate_below_thresholds(root, wanted, budget, FEWER_FOLDS)
            nodes += spent
        self.state.counts.add(nodes, {name: count for name, count in decided.items() if count})
        return nodes


def _listing_trees(folds: int, shared: bool) -> int:
    """Trees on all rows worth of nodes to spend on a list for every fold before another engine is tried."""
    if shared:
        for most, trees in LIST_BUDGET:
            if folds <= most:
                return trees
    return max(folds // 4, 1)
