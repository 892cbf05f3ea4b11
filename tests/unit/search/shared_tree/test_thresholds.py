"""The list that speaks for every fold: no winner is missing from it."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.search.shared_tree import thresholds as module
from sparsecv_mio.search.shared_tree.root_node import RootNode
from sparsecv_mio.search.shared_tree.thresholds import EVERY_FOLD, enumerate_below_thresholds, fold_thresholds

from .enumerated import VARIANTS, Enumerated


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_the_winner_of_a_fold_is_below_its_threshold(
    spec: str, intercept: str, single: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if single:
        monkeypatch.setattr(module, "SINGLE_PRECISION_FOLDS", 1)
    for seed in range(5):
        case = Enumerated(seed, spec=spec, intercept=intercept)
        limit = fold_thresholds(RootNode(case.leave_out, 0, [0, 1, 2]))
        assert limit.dtype == (np.float32 if single else np.float64)
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
