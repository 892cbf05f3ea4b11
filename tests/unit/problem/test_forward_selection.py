"""Forward selection of several folds at once, against the kernel that works on one Gram matrix."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.kernels import starts
from sparsecv_mio.problem.moment_fits import ForwardSelection, WeightedRows
from sparsecv_mio.problem.training_moments import row_moments

LABELS = np.arange(24) % 3
FOLDS = folds_from_labels(LABELS)
TOP = 5


def random_data(seed: int, p: int = 60, intercept: str = "fold") -> StandardData:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((24, p)) + 0.7 * rng.standard_normal((24, 1))
    y = X[:, 0] + X[:, p // 3] - X[:, 2 * p // 3] + 0.5 * rng.standard_normal(24)
    return standardize(Dataset.from_arrays(X, y), "length", intercept)


def selected(data: StandardData, late: bool = False) -> ForwardSelection:
    rows = WeightedRows(data, FOLDS)
    forward = ForwardSelection(rows, [0, 1, 2], *rows.squares_and_slopes([0, 1, 2]), 0.05, TOP)
    forward.pick_columns(lambda: late)
    return forward


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_it_picks_what_a_fold_alone_would_pick(seed: int, intercept: str) -> None:
    data = random_data(seed, intercept=intercept)
    for fold, picked in enumerate(selected(data).picked):
        problem = row_moments(data, FOLDS.train_rows(fold)).problem(data, 0.1)
        best, masks = np.full(data.q + 1, np.inf), np.zeros((data.q + 1, data.q), dtype=bool)
        starts.forward_selection(problem.M, problem.c, problem.yy, TOP, best, masks)
        for size in range(1, TOP + 1):
            assert sorted(picked[:size]) == np.flatnonzero(masks[size]).tolist()


def test_one_column_is_picked_even_where_the_time_is_over() -> None:
    assert [len(picked) for picked in selected(random_data(0), late=True).picked] == [1, 1, 1]
