"""One tree for all folds: which engine serves which cells (theory section 5).

* `enumerate`: thresholds and one list, for n much larger than p or few candidates (`thresholds`).
* `shared`: the alive-fold tree, for leave-one-out with moderate n (`loo_tree`).
* `per-fold`: one tree per fold, for what is left and for large folds (`subproblem.fold_solver`).

`auto` decides by counted nodes, never by clocks: a list for every fold if it costs at most a few trees on all rows,
else the alive-fold tree where folds are single rows and memory allows, else a list for most folds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.search.options import PATH_TREE_COLUMNS
from sparsecv_mio.search.shared_tree.identities import WIDEST_LEVERAGE
from sparsecv_mio.search.shared_tree.leave_out import LeaveOut
from sparsecv_mio.search.shared_tree.loo_tree import is_applicable, run_alive_folds
from sparsecv_mio.search.shared_tree.near_optimal import WIDEST_KEEP
from sparsecv_mio.search.shared_tree.root_node import RootNode
from sparsecv_mio.search.shared_tree.thresholds import EVERY_FOLD, FEWER_FOLDS, enumerate_below_thresholds
from sparsecv_mio.words import Engine

LEAST_SHARE = 0.6  # of the folds that must have a leverage thresholds can use
LARGEST_FOLD = 64  # rows; larger folds have leverages near one half unless n is huge
FEWEST_FOLDS = 24  # fewer take less time one by one
LIST_BUDGET = ((1_000, 2), (20_000, 6))  # most folds, and the trees on all rows that a list for all of them may cost
FOLD_OVERHEAD = 200  # nodes' worth of work that a tree of its own costs beside its nodes


def root_node(leave_out: LeaveOut, g: int, engine: Engine) -> RootNode | None:
    """Make the root node of the trees for all folds of a gamma.

    Parameters
    ----------
    leave_out : LeaveOut
        With the best supports found on all rows.
    g : int
        Index of gamma.
    engine : Engine

    Returns
    -------
    RootNode or None
        None where no cell is open, or where trees for all folds are no use.

    Notes
    -----
    O(n q^2).
    """
    wanted = _open_taus(leave_out, g)
    folds, q = leave_out.folds, leave_out.data.q
    usable = engine is not Engine.PER_FOLD and folds.sizes.max() <= LARGEST_FOLD and q <= PATH_TREE_COLUMNS
    if engine is Engine.AUTO:
        usable = usable and folds.k >= FEWEST_FOLDS
    if not usable or not wanted:
        return None
    form = leave_out.all_rows.normal_form(g)
    if form.keep > WIDEST_KEEP or form.m == 0:
        return None
    root = RootNode(leave_out, g, wanted)
    if engine is Engine.AUTO and float(np.mean(root.leverage < WIDEST_LEVERAGE)) < LEAST_SHARE:
        return None
    return root


def _open_taus(leave_out: LeaveOut, g: int) -> list[int]:
    """Return the indices of the taus with open cells."""
    return [t for t in range(len(leave_out.taus)) if not leave_out.cells.final[g, t].all()]


def solve_all_folds(leave_out: LeaveOut, g: int, engine: Engine) -> tuple[int, dict[str, int]]:
    """Decide what can be decided for all folds at once of one gamma.

    Parameters
    ----------
    leave_out : LeaveOut
        With the best supports found on all rows.
    g : int
        Index of gamma.
    engine : Engine

    Returns
    -------
    nodes : int
    decided : dict of str to int
        Cells decided by engine.
    """
    root = None if leave_out.expired() else root_node(leave_out, g, engine)
    if root is None:
        return 0, {}
    return solve_from(root, _open_taus(leave_out, g), leave_out.all_rows.best[g].nodes, engine)


def solve_from(root: RootNode, wanted: Sequence[int], tree: int, engine: Engine) -> tuple[int, dict[str, int]]:
    """Decide what can be decided of some tau.

    Parameters
    ----------
    root : RootNode
    wanted : sequence of int
        Indices of tau with open cells.
    tree : int
        Nodes of a tree on all rows for them.
    engine : Engine

    Returns
    -------
    nodes : int
    decided : dict of str to int
        Cells decided by engine.
    """
    leave_out = root.leave_out
    folds, final = leave_out.folds, leave_out.cells.final[root.g]
    one_tree = tree + FOLD_OVERHEAD
    nodes, decided = 0, {"enumerate": 0, "shared": 0}
    shared = engine is not Engine.ENUMERATE and is_applicable(leave_out, root.form.m)
    if engine in (Engine.AUTO, Engine.ENUMERATE):
        budget = one_tree * _listing_trees(folds.k, shared)
        spent, decided["enumerate"] = enumerate_below_thresholds(root, wanted, budget, EVERY_FOLD)
        nodes += spent
    if shared and not final[list(wanted)].all():
        spent, decided["shared"] = run_alive_folds(root, wanted, folds.k * one_tree)
        nodes += spent
    if not any(decided.values()) and engine is not Engine.SHARED:
        spent, decided["enumerate"] = enumerate_below_thresholds(root, wanted, folds.k * one_tree // 16, FEWER_FOLDS)
        nodes += spent
    return nodes, {name: count for name, count in decided.items() if count}


def _listing_trees(folds: int, shared: bool) -> int:
    """Trees on all rows worth of nodes to spend on a list for every fold before another engine is tried."""
    if shared:
        for most, trees in LIST_BUDGET:
            if folds <= most:
                return trees
    return max(folds // 4, 1)
