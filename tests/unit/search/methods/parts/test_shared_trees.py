"""Trees for all folds, made when first asked for and then kept."""

from __future__ import annotations

from drawn_search import drawn
from runs import new_run

from sparsecv_mio.search.methods.parts.shared_trees import SharedTrees
from sparsecv_mio.words import Engine


def test_a_root_is_made_once_and_decides_rows() -> None:
    run = new_run(*drawn(n=40, folds="loo"))
    run.method._fit_all_rows()
    trees = SharedTrees(run.run, Engine.ENUMERATE)
    assert trees.root(0) is trees.root(0) and trees.leave_out is trees.leave_out
    assert trees.decide_taus(0, [1], 100) > 0
    assert run.run.state.cells.decided[0, 1].any() and not run.run.state.cells.decided[0, 2].any()
    assert run.run.state.counts.by_engine["enumerate"] == int(run.run.state.cells.decided.sum())


def test_no_root_where_every_fold_has_a_tree_of_its_own() -> None:
    run = new_run(*drawn(n=40, folds="loo"))
    run.method._fit_all_rows()
    trees = SharedTrees(run.run, Engine.PER_FOLD)
    assert trees.root(0) is None and trees.decide_taus(0, [0], 100) == 0
