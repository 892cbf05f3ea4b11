"""Which engine serves which cells of a gamma."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.search.shared_tree import engines as module
from sparsecv_mio.search.shared_tree.engines import root_node, solve_all_folds, solve_from
from sparsecv_mio.words import Engine

from .enumerated import VARIANTS, Enumerated


@pytest.mark.parametrize("engine", [Engine.AUTO, Engine.ENUMERATE, Engine.SHARED])
@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_every_engine_decides_cells_as_enumeration_does(spec: str, intercept: str, engine: Engine) -> None:
    for seed in range(3):
        case = Enumerated(seed, n=48, spec=spec, intercept=intercept)
        nodes, decided = solve_all_folds(case.leave_out, 0, engine)
        assert sum(decided.values()) == case.cells.decided.sum() and (nodes > 0) >= bool(decided)
        assert set(decided) <= {"enumerate", "shared"} and not (engine is Engine.SHARED and "enumerate" in decided)
        case.check_cells()
        if spec == "loo":
            assert case.cells.decided.mean() > 0.9


def test_where_one_tree_for_all_folds_is_no_use(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Enumerated()
    assert root_node(case.leave_out, 0, Engine.AUTO) is not None
    assert root_node(case.leave_out, 0, Engine.PER_FOLD) is None
    assert solve_all_folds(case.leave_out, 0, Engine.PER_FOLD) == (0, {})
    few = Enumerated(n=12)
    assert root_node(few.leave_out, 0, Engine.AUTO) is None  # few folds
    assert root_node(few.leave_out, 0, Engine.ENUMERATE) is not None
    assert root_node(Enumerated(n=140, spec="2").leave_out, 0, Engine.ENUMERATE) is None  # large ones
    monkeypatch.setattr(module, "PATH_TREE_COLUMNS", 3)
    assert root_node(case.leave_out, 0, Engine.AUTO) is None


def test_high_leverages_are_left_to_the_folds() -> None:
    case = Enumerated(n=25, p=24, gamma=1e-6)
    assert root_node(case.leave_out, 0, Engine.AUTO) is None
    assert root_node(case.leave_out, 0, Engine.ENUMERATE) is not None


def test_nothing_is_left_to_do() -> None:
    case = Enumerated()
    case.cells.final[0] = True
    assert root_node(case.leave_out, 0, Engine.SHARED) is None


def test_only_rows_that_are_wanted() -> None:
    case = Enumerated(n=40)
    root = root_node(case.leave_out, 0, Engine.AUTO)
    assert root is not None
    _, decided = solve_from(root, [1], 100, Engine.AUTO)
    assert sum(decided.values()) > 0 and not case.cells.decided[0, [0, 2]].any()
    assert np.array_equal(case.cells.decided[0, 1], case.cells.final[0, 1])
