"""Many more columns than rows: synthetic data always, riboflavin where its file is at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.bounds.wide import WideFold
from sparsecv_mio.bounds.wide_rows import WideRows, is_wide
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.accumulate import training_moments

FILE = Path(os.environ.get("SPARSECV_INSTANCES", "instances")) / "riboflavin.csv"


def test_rows_and_moments_agree() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 80))
    data = standardize(Dataset.from_arrays(X, X[:, :3].sum(1) + 0.3 * rng.standard_normal(30)))
    folds = make_folds("5", data.dataset)
    for fold, moments in training_moments(data, folds):
        V, r = data.rows(folds.scored_rows(fold))
        one = FoldBounds(moments.problem(data, 1.0), V, r)
        two = WideFold(WideRows.of(data, folds.train_rows(fold), folds.scored_rows(fold), 1.0))
        one.search([2, 3], swap_rounds=3)
        two.search([2, 3], swap_rounds=3)
        for a, b in zip(one.cells([0, 2, 3]), two.cells([0, 2, 3]), strict=True):
            assert a.lower <= b.upper * (1 + 1e-9) and b.lower <= a.upper * (1 + 1e-9)
            assert np.isclose(a.objective_upper, b.objective_upper, rtol=0.05)
            assert a.objective_lower <= b.objective_upper and b.objective_lower <= a.objective_upper


def test_a_planted_support_is_found_without_branching() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 1000))
    data = standardize(Dataset.from_arrays(X, 3.0 * X[:, [5, 700, 900]].sum(1) + 0.2 * rng.standard_normal(60)))
    assert is_wide(data)
    table = compute_bounds(data, make_folds("4", data.dataset), [0.5], [1, 3])
    ends = table.cv_interval(0, 1)
    assert table.decided(0, 1) == 4 and ends.upper - ends.lower < 1e-6 * ends.upper
    printed = compute_bounds(data, make_folds("4", data.dataset), [0.5], [1, 3], "as-printed")
    assert np.isfinite(printed.upper).all()


def test_more_features_than_the_working_set_began_with() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((8, 1100))
    X -= X.mean(axis=0)
    fold = WideFold(WideRows(X[:6], X[:6, 0] - X[:6, 0].mean(), X[6:], X[6:, 0]))
    fold.try_supports([np.arange(300)])
    seen = fold.survivors(300)
    assert 0.0 <= seen.lower <= seen.upper < np.inf
    assert len(fold.relaxation.columns.arrays.chosen) == min(1100, 4 * 300 + 80)


@pytest.mark.slow
@pytest.mark.skipif(not FILE.exists(), reason="riboflavin.csv is not committed: SPARSECV_INSTANCES names its folder")
def test_riboflavin() -> None:
    data = standardize(read_dataset(FILE, "y"))
    table = compute_bounds(data, make_folds("5", data.dataset), [1.0], range(2, 25))
    assert ((table.objective_upper - table.objective_lower) / table.objective_upper).max() <= 0.12
    assert np.isfinite(table.upper).all()
