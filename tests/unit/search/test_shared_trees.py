"""The list that speaks for every fold: no winner is missing from it."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn
from engines import ENGINES
from runs import new_run

from sparsecv_mio.kernels import alive_folds
from sparsecv_mio.search import shared_trees as module
from sparsecv_mio.search.context import WorkCounts
from sparsecv_mio.search.leave_fold_out import RootNode
from sparsecv_mio.search.shared_trees import (
    EVERY_FOLD,
    SharedTrees,
    enumerate_below_thresholds,
    fold_thresholds,
    is_applicable,
    run_alive_folds,
)

from .enumerated import VARIANTS, Enumerated


@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_the_winner_of_a_fold_is_below_its_threshold(spec: str, intercept: str) -> None:
    for seed in range(5):
        case = Enumerated(seed, spec=spec, intercept=intercept)
        limit = fold_thresholds(RootNode(case.leave_out, 0, [0, 1, 2]))
        for t, size in enumerate(case.taus.tolist()):
            for fold, s in enumerate(case.best(size)):
                assert case.f[s] <= limit[t, fold]


@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_cells_decided_by_a_list(spec: str, intercept: str) -> None:
    decided = 0
    for seed in range(5):
        case = Enumerated(seed, spec=spec, intercept=intercept)
        _, count = enumerate_below_thresholds(RootNode(case.leave_out, 0, [0, 1, 2]), [0, 1, 2], 100_000, EVERY_FOLD)
        assert count == case.cells.decided.sum()
        case.check_cells()
        decided += count
    assert decided > 0


def test_a_share_of_the_folds() -> None:
    """Folds whose threshold is above what the share covers stay open."""
    case = Enumerated(n=60)
    root = RootNode(case.leave_out, 0, [0, 1, 2])
    limit = fold_thresholds(root)
    enumerate_below_thresholds(root, [0, 1, 2], 100_000, (0.5,))
    for t in range(3):
        finite = np.sort(limit[t][np.isfinite(limit[t])])
        cover = finite[30 - (60 - len(finite)) - 1]
        assert not case.cells.decided[0, t, limit[t] > cover].any()
    assert 0 < case.cells.decided.sum() <= 90
    case.check_cells()


def test_a_budget_that_does_not_suffice() -> None:
    case = Enumerated(p=6)
    nodes, decided = enumerate_below_thresholds(RootNode(case.leave_out, 0, [2]), [2], 1, EVERY_FOLD)
    assert nodes >= 1 and decided == 0 and not case.cells.decided.any()


@pytest.mark.parametrize(("group", "threads"), [(192, 1), (7, 1), (7, 2)])
@pytest.mark.parametrize("intercept", ["fold", "none"])
def test_cells_decided_by_one_tree(intercept: str, group: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alive_folds, "GROUP", group)
    for seed in range(3):
        case = Enumerated(seed, p=5, intercept=intercept, threads=threads)
        nodes, decided = run_alive_folds(RootNode(case.leave_out, 0, [0, 1, 2, 3]), [0, 1, 2, 3], 100_000)
        assert nodes > 0 and decided == case.cells.decided.sum() >= 0.9 * case.cells.decided.size
        assert case.cells.branched[case.cells.decided].all()
        case.check_cells()


def test_some_rows_of_tau() -> None:
    case = Enumerated()
    run_alive_folds(RootNode(case.leave_out, 0, [1]), [1], 100_000)
    assert case.cells.decided[0, 1].any() and not case.cells.decided[0, [0, 2]].any()


def test_nothing_is_decided_by_a_tree_that_did_not_end() -> None:
    case = Enumerated(p=6)
    nodes, decided = run_alive_folds(RootNode(case.leave_out, 0, [1, 2]), [1, 2], 0)
    assert (nodes, decided) == (0, 0) and not case.cells.decided.any()


def test_folds_that_are_decided_are_left_alone() -> None:
    case = Enumerated()
    case.cells.final[0] = True
    assert run_alive_folds(RootNode(case.leave_out, 0, [0, 1, 2]), [0, 1, 2], 100_000) == (0, 0)


def test_which_folds_fit() -> None:
    assert is_applicable(Enumerated().leave_out, 4) and not is_applicable(Enumerated(spec="blocks:2").leave_out, 4)
    assert not is_applicable(Enumerated().leave_out, np.iinfo(np.int32).max)


def only(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ENGINES[engine]:
        monkeypatch.setattr(*place)


@pytest.mark.parametrize("engine", ["", "enumerate", "shared"])
@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_every_engine_decides_cells_as_enumeration_does(
    spec: str, intercept: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine:
        only(engine, monkeypatch)
    for seed in range(3):
        case = Enumerated(seed, n=48, spec=spec, intercept=intercept)
        SharedTrees(case.state).decide_gamma(0)
        nodes, decided = case.state.counts.nodes, case.state.counts.by_engine
        assert sum(decided.values()) == case.cells.decided.sum() and (nodes > 0) >= bool(decided)
        assert set(decided) <= ({engine} if engine else {"enumerate", "shared"})
        case.check_cells()
        if spec == "loo":
            assert case.cells.decided.mean() > 0.9


def test_where_one_tree_for_all_folds_is_no_use(monkeypatch: pytest.MonkeyPatch) -> None:
    case, few = Enumerated(), Enumerated(n=12)
    assert SharedTrees(case.state).root(0) is not None
    assert SharedTrees(few.state).root(0) is None  # few folds
    with monkeypatch.context() as patch:
        only("enumerate", patch)
        assert SharedTrees(few.state).root(0) is not None
        assert SharedTrees(Enumerated(n=140, spec="2").state).root(0) is None  # large ones
        only("per-fold", patch)
        assert SharedTrees(case.state).root(0) is None
        SharedTrees(case.state).decide_gamma(0)
        assert case.state.counts == WorkCounts()
    monkeypatch.setattr(module, "PATH_TREE_COLUMNS", 3)
    assert SharedTrees(case.state).root(0) is None


def test_high_leverages_are_left_to_the_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Enumerated(n=25, p=24, gamma=1e-6)
    assert SharedTrees(case.state).root(0) is None
    only("enumerate", monkeypatch)
    assert SharedTrees(case.state).root(0) is not None


def test_nothing_is_left_to_do() -> None:
    case = Enumerated()
    case.cells.final[0] = True
    assert SharedTrees(case.state).root(0) is None


def test_only_rows_that_are_wanted() -> None:
    case = Enumerated(n=40)
    assert SharedTrees(case.state).decide_taus(0, [1], 100) > 0
    assert sum(case.state.counts.by_engine.values()) > 0 and not case.cells.decided[0, [0, 2]].any()
    assert np.array_equal(case.cells.decided[0, 1], case.cells.final[0, 1])


def test_a_root_is_made_once_and_decides_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    only("enumerate", monkeypatch)
    run = new_run(*drawn(n=40, folds="loo"))
    run._fit_all_rows()
    trees = SharedTrees(run.run)
    assert trees.root(0) is trees.root(0) and trees.leave_out is trees.leave_out
    assert trees.decide_taus(0, [1], 100) > 0
    assert run.run.cells.decided[0, 1].any() and not run.run.cells.decided[0, 2].any()
    assert run.run.counts.by_engine["enumerate"] == int(run.run.cells.decided.sum())


def test_no_root_where_every_fold_has_a_tree_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    only("per-fold", monkeypatch)
    run = new_run(*drawn(n=40, folds="loo"))
    run._fit_all_rows()
    trees = SharedTrees(run.run)
    assert trees.root(0) is None and trees.decide_taus(0, [0], 100) == 0
