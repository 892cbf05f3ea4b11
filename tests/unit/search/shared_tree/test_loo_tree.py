"""One tree for all rows left out: the cells it decides, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.search.shared_tree import loo_tree as module
from sparsecv_mio.search.shared_tree.loo_tree import is_applicable, run_alive_folds
from sparsecv_mio.search.shared_tree.root_node import RootNode

from .enumerated import Enumerated


@pytest.mark.parametrize(("group", "threads"), [(192, 1), (7, 1), (7, 2)])
@pytest.mark.parametrize("intercept", ["fold", "none"])
def test_cells_decided_by_one_tree(
    intercept: str, group: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROUP", group)
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
