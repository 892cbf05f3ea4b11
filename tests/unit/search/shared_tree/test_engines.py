"""Which engine serves which cells of a gamma."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn
from runs import new_run

from sparsecv_mio.search.shared_tree import engines as module
from sparsecv_mio.search.shared_tree.engines import SharedTrees
from sparsecv_mio.search.state.state import Counts
from sparsecv_mio.words import Engine

from .enumerated import VARIANTS, Enumerated


@pytest.mark.parametrize("engine", [Engine.AUTO, Engine.ENUMERATE, Engine.SHARED])
@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_every_engine_decides_cells_as_enumeration_does(spec: str, intercept: str, engine: Engine) -> None:
    for seed in range(3):
        case = Enumerated(seed, n=48, spec=spec, intercept=intercept)
        SharedTrees(case.state, engine).decide_gamma(0)
        nodes, decided = case.state.counts.nodes, case.state.counts.by_engine
        assert sum(decided.values()) == case.cells.decided.sum() and (nodes > 0) >= bool(decided)
        assert set(decided) <= {"enumerate", "shared"} and not (engine is Engine.SHARED and "enumerate" in decided)
        case.check_cells()
        if spec == "loo":
            assert case.cells.decided.mean() > 0.9


def test_where_one_tree_for_all_folds_is_no_use(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Enumerated()
    assert SharedTrees(case.state, Engine.AUTO).root(0) is not None
    assert SharedTrees(case.state, Engine.PER_FOLD).root(0) is None
    SharedTrees(case.state, Engine.PER_FOLD).decide_gamma(0)
    assert case.state.counts == Counts()
    few = Enumerated(n=12)
    assert SharedTrees(few.state, Engine.AUTO).root(0) is None  # few folds
    assert SharedTrees(few.state, Engine.ENUMERATE).root(0) is not None
    assert SharedTrees(Enumerated(n=140, spec="2").state, Engine.ENUMERATE).root(0) is None  # large ones
    monkeypatch.setattr(module, "PATH_TREE_COLUMNS", 3)
    assert SharedTrees(case.state, Engine.AUTO).root(0) is None


def test_high_leverages_are_left_to_the_folds() -> None:
    case = Enumerated(n=25, p=24, gamma=1e-6)
    assert SharedTrees(case.state, Engine.AUTO).root(0) is None
    assert SharedTrees(case.state, Engine.ENUMERATE).root(0) is not None


def test_nothing_is_left_to_do() -> None:
    case = Enumerated()
    case.cells.final[0] = True
    assert SharedTrees(case.state, Engine.SHARED).root(0) is None


def test_only_rows_that_are_wanted() -> None:
    case = Enumerated(n=40)
    assert SharedTrees(case.state).decide_taus(0, [1], 100) > 0
    assert sum(case.state.counts.by_engine.values()) > 0 and not case.cells.decided[0, [0, 2]].any()
    assert np.array_equal(case.cells.decided[0, 1], case.cells.final[0, 1])


def test_a_root_is_made_once_and_decides_rows() -> None:
    run = new_run(*drawn(n=40, folds="loo"))
    run.method._fit_all_rows()
    trees = SharedTrees(run.run.state, Engine.ENUMERATE)
    assert trees.root(0) is trees.root(0) and trees.leave_out is trees.leave_out
    assert trees.decide_taus(0, [1], 100) > 0
    assert run.run.state.cells.decided[0, 1].any() and not run.run.state.cells.decided[0, 2].any()
    assert run.run.state.counts.by_engine["enumerate"] == int(run.run.state.cells.decided.sum())


def test_no_root_where_every_fold_has_a_tree_of_its_own() -> None:
    run = new_run(*drawn(n=40, folds="loo"))
    run.method._fit_all_rows()
    trees = SharedTrees(run.run.state, Engine.PER_FOLD)
    assert trees.root(0) is None and trees.decide_taus(0, [0], 100) == 0
