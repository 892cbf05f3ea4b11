"""Centred rows have the moments of the problem, and the rows that the data keep are left as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsecv_mio.data import standard
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.problem import training_moments as accumulate
from sparsecv_mio.problem.training_moments import (
    CentredRows,
    TrainingMoments,
    row_moments,
    training_moments,
)
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_moments_are_those_of_the_problem(intercept: str, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not kept:
        monkeypatch.setattr(standard, "STORE_BYTES", 0)
    rng = np.random.default_rng(3)
    data = standard.standardize(
        Dataset.from_arrays(rng.normal(5.0, 2.0, (17, 4)), rng.normal(9.0, 1.0, 17)), "variance", intercept
    )
    folds = make_folds("3", data.dataset, 0)
    before = data.rows(slice(0, data.n))[0].copy()
    for rows in (slice(0, data.n), *map(folds.train_rows, range(folds.k))):
        made, problem = CentredRows.from_data(data, rows), row_moments(data, rows).problem(data, 0.5)
        assert np.allclose(made.V.T @ made.V, problem.Q, rtol=1e-9, atol=1e-9)
        assert made.V.T @ made.r == pytest.approx(problem.c)
        assert made.r @ made.r == pytest.approx(problem.yy)
        assert made.v_mean == pytest.approx(problem.v_mean) and made.r_mean == pytest.approx(problem.r_mean)
        made.V[:] = np.nan
    assert np.array_equal(data.rows(slice(0, data.n))[0], before)


def sample(intercept: str = "fold", n: int = 23) -> tuple[StandardData, FoldPlan]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)) * [1.0, 5.0, 0.1, 1.0] + 3.0
    data = Dataset.from_arrays(X, X[:, 0] + rng.normal(size=n) + 100.0)
    return standardize(data, "length", intercept), folds_from_labels(np.r_[np.arange(n - 3) % 5, -1, -1, -1])


def plain(data: StandardData, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    v, r = data.rows(rows)
    block = np.column_stack([v, r])
    mean = block.mean(axis=0)
    return mean, (block - mean).T @ (block - mean)


def same(found: TrainingMoments, data: StandardData, rows: np.ndarray) -> None:
    mean, scatter = plain(data, rows)
    assert found.n == len(rows)
    assert found.mean == pytest.approx(mean, abs=1e-13) and found.scatter == pytest.approx(scatter, abs=1e-12)


@pytest.mark.parametrize("elements", [1, 12, 1 << 21])
def test_chunks_change_nothing(elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulate, "CHUNK_ELEMENTS", elements)
    data, _ = sample()
    same(row_moments(data, slice(2, 20)), data, np.arange(2, 20))
    same(row_moments(data, np.array([5, 1, 7])), data, np.array([5, 1, 7]))
    assert row_moments(data, slice(4, 4)).n == 0


def test_a_target_that_is_constant_in_training_leaves_nothing_to_explain() -> None:
    y = np.full(10, 1e6 + 0.1)
    y[9] += 1.0
    data = standardize(Dataset.from_arrays(np.random.default_rng(0).normal(size=(10, 2)), y))
    problem = row_moments(data, slice(0, 9)).problem(data, 1.0)
    assert problem.yy == 0.0 and not problem.c.any()


@pytest.mark.parametrize("spec", ["3x5", "6xholdout:0.3", "forward:6"])
def test_training_sets_of_folds_that_overlap(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = sample()
    folds, read = make_folds(spec, data.dataset), list[int]()

    def count(data: StandardData, rows: slice | np.ndarray) -> TrainingMoments:
        read.append(len(np.arange(data.n)[rows]))
        return row_moments(data, rows)

    with monkeypatch.context() as patch:
        patch.setattr(accumulate, "row_moments", count)
        every = dict(training_moments(data, folds))
    assert list(every) == list(range(folds.k))
    for fold, moments in every.items():
        same(moments, data, folds.train_rows(fold))
    assert spec != "forward:6" or sum(read) == len(folds.train_rows(5))  # each row once
    assert spec != "3x5" or sum(read) <= 3 * 23 * np.ceil(np.log2(5))
    some = dict(training_moments(data, folds, [1, 4]))  # whatever else is asked for, to the last bit
    assert list(some) == [1, 4]
    for fold, moments in some.items():
        assert np.array_equal(moments.scatter, every[fold].scatter) and np.array_equal(moments.mean, every[fold].mean)


@pytest.mark.parametrize("intercept", ["fold", "global"])
def test_what_rounding_leaves_of_a_column_that_stands_still_is_not_fitted(intercept: str) -> None:
    """A column that varies in one row alone, without that row and without a penalty to speak of."""
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(11, 2)), rng.uniform(0.5, 2.0, 11)
    X[:, 1] = np.where(np.arange(11) == 1, 1e71, 0.0)
    dataset = replace(Dataset.from_arrays(X, rng.normal(1.0, 1e-3, 11)), row_weights=weights)
    data = standardize(dataset, "none", intercept)
    for fold, moments in training_moments(data, folds_from_labels(np.arange(11))):
        problem = moments.problem(data, 5e-5)
        if fold == 1 and intercept == "fold":
            assert not problem.Q[1].any() and not problem.Q[:, 1].any() and problem.c[1] == 0.0
            one, both = fit_from_moments(problem, [np.array([0]), np.array([0, 1])]).value
            assert one == both
        else:
            assert problem.Q[1, 1] > 0.0
