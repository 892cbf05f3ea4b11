"""One tree for all folds: which engine serves which cells (theory section 5).

* `enumerate`: thresholds and one listing, for n much larger than p or few candidates (`thresholds`).
* `shared`: the alive-fold tree, for leave-one-out with moderate n (`alive`).
* `per-fold`: one tree per fold, for what is left and for large folds (`fold_job`).

`auto` decides by counted nodes, never by clocks: a listing for every fold if it costs at most a few full-data trees,
else the alive-fold tree where folds are single rows and memory allows, else a listing for most folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sparsecv_mio.formulation.backends.native.normal_form import normal_form
from sparsecv_mio.formulation.backends.native.path import PathResult
from sparsecv_mio.search.shared_tree.leave_out import WIDEST_ETA, LeaveOut
from sparsecv_mio.search.shared_tree.loo_tree import fits, run_alive_folds
from sparsecv_mio.search.shared_tree.thresholds import EVERY_FOLD, FEWER_FOLDS, enumerate_below_thresholds
from sparsecv_mio.search.shared_tree.tree_root import TreeRoot
from sparsecv_mio.words import Engine

LEAST_SHARE = 0.6  # of the folds that must have a leverage thresholds can use
LARGEST_FOLD = 64  # rows; larger folds have leverages near one half unless n is huge
SMALLEST_PLAN = 24  # folds; fewer are cheaper one by one
WIDEST_KEEP = 1e-6  # rounding of the trees beyond which leverages at all columns are not worth much
PATH_COLUMNS = 128  # beyond, the path tree rarely closes without the perspective
FULL_TREES = ((1_000, 2), (20_000, 6))  # up to so many folds: full-data trees a listing for every fold may cost
FOLD_OVERHEAD = 200  # nodes' worth of work that a tree of its own costs beside its nodes


def root_of(full: LeaveOut, g: int, gamma: float, best: PathResult, engine: Engine) -> TreeRoot | None:
    """The full-data fit that the trees for all folds start from, with its incumbents; None where they are no use.

    Parameters and errors as for `solve_all_folds`. O(n q^2).
    """
    wanted = [t for t in range(len(full.taus)) if not full.cells.final[g, t].all()]
    usable = engine is not Engine.PER_FOLD and full.folds.sizes.max() <= LARGEST_FOLD and full.data.q <= PATH_COLUMNS
    if engine is Engine.AUTO:
        usable = usable and full.folds.k >= SMALLEST_PLAN
    if not usable or not wanted:
        return None
    problem = full.base.with_gamma(gamma)
    form = normal_form(problem)
    if form.keep > WIDEST_KEEP or form.m == 0:
        return None
    root = TreeRoot(full, g, problem, form, best, wanted)
    if engine is Engine.AUTO and float(np.mean(root.eta < WIDEST_ETA)) < LEAST_SHARE:
        return None
    return root


def solve_all_folds(
    full: LeaveOut, g: int, gamma: float, best: PathResult, engine: Engine, expired: Callable[[], bool]
) -> tuple[int, dict[str, int]]:
    """Decide what can be decided for all folds at once of one gamma.

    Parameters
    ----------
    full : LeaveOut
    g, gamma : int, float
        Row of the grid and its gamma.
    best : PathResult
        Best subsets on all rows at this gamma.
    engine : Engine
    expired : callable

    Returns
    -------
    nodes : int
    decided : dict of str to int
        Cells decided by engine.
    """
    root = None if expired() else root_of(full, g, gamma, best, engine)
    if root is None:
        return 0, {}
    wanted = [t for t in range(len(full.taus)) if not full.cells.final[g, t].all()]
    return solve_from(root, wanted, best.nodes, engine, expired)


def solve_from(
    root: TreeRoot, wanted: Sequence[int], tree: int, engine: Engine, expired: Callable[[], bool]
) -> tuple[int, dict[str, int]]:
    """Decide what can be decided of some rows of tau.

    Parameters
    ----------
    root : TreeRoot
    wanted : sequence of int
        Rows of tau with open cells.
    tree : int
        Nodes of a tree on all rows for them.
    engine, expired
        As for `solve_all_folds`, and so is what is returned.
    """
    full, g = root.full, root.g
    one_tree = tree + FOLD_OVERHEAD
    nodes, decided = 0, {"enumerate": 0, "shared": 0}
    shared = engine is not Engine.ENUMERATE and fits(full, root.form.m)
    if engine in (Engine.AUTO, Engine.ENUMERATE):
        budget = one_tree * _listing_trees(full.folds.k, shared)
        spent, decided["enumerate"] = enumerate_below_thresholds(full, root, wanted, budget, EVERY_FOLD, expired)
        nodes += spent
    if shared and not full.cells.final[g][list(wanted)].all():
        spent, decided["shared"] = run_alive_folds(full, root, wanted, full.folds.k * one_tree, expired)
        nodes += spent
    if not any(decided.values()) and engine is not Engine.SHARED:
        budget = full.folds.k * one_tree // 16
        spent, decided["enumerate"] = enumerate_below_thresholds(full, root, wanted, budget, FEWER_FOLDS, expired)
        nodes += spent
    return nodes, {name: count for name, count in decided.items() if count}


def _listing_trees(folds: int, shared: bool) -> int:
    """Full-data trees' worth of nodes to spend on a listing for every fold before another engine is tried."""
    if shared:
        for most, trees in FULL_TREES:
            if folds <= most:
                return trees
    return max(folds // 4, 1)
