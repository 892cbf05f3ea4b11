"""Rows that count several times, or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsecv_mio.data.counts import repeated, repeated_folds, row_counts, weighted
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.errors import BadInput

DATA = Dataset.from_arrays([[1.0, 0.0], [2.0, 1.0], [3.0, 5.0]], [0.0, 1.0, 2.0], aux={"g": ["a", "b", "c"]})


def test_rows_are_repeated_with_all_that_belongs_to_them() -> None:
    many = repeated(DATA, np.array([2, 0, 1]))
    assert many.X.tolist() == [[1.0, 0.0], [1.0, 0.0], [3.0, 5.0]] and many.y.tolist() == [0.0, 0.0, 2.0]
    assert many.aux["g"].tolist() == ["a", "a", "c"] and many.names == DATA.names and not many.X.flags.writeable


def test_rows_are_dealt_once_each_and_then_repeated() -> None:
    data, plan = weighted(DATA, ["2", "1", "2"], lambda rows: make_folds("3", rows, seed=5), name="w")
    assert (data.n, data.weights, plan.spec, plan.seed, plan.n) == (5, "w", "3 weighted", 5, 5)
    four = Dataset.from_arrays(np.eye(4), np.arange(4.0))
    few = [2, 0, 1, 1]
    assert weighted(four, few, lambda rows: make_folds("loo", rows), name="w")[1].labels.tolist() == [0, 0, 1, 2]
    file = folds_from_labels([0, 1, 2, 2])
    assert weighted(four, few, lambda rows: file, name="w", by_row=True)[1].labels.tolist() == [0, 0, 1, 1]


def test_copies_stay_in_one_fold_and_folds_without_rows_are_gone() -> None:
    plan = repeated_folds(folds_from_labels([2, 1, 0, -1, 0]), np.array([3, 0, 1, 2, 1]))
    assert plan.labels.tolist() == [1, 1, 1, 0, -1, -1, 0] and plan.k == 2 and plan.spec == "labels"
    assert repeated_folds(make_folds("holdout:0.4", DATA), np.array([2, 2, 2])).k == 1


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1.0, 2.0], r"w has the shape \(2,\) but the data has 3 rows"),
        ([1.0, 0.5, 1.0], "w is 0.5 in row 2: give how often"),
        ([1.0, 1.0, -1.0], "w is -1 in row 3"),
        ([np.nan, 1.0, 1.0], "w is nan in row 1"),
        ([np.inf, 1.0, 1.0], "w is inf in row 1"),
        (["1", "x", "2"], "w is 'x' in row 2: give how often"),
        ([[1.0], [2.0, 3.0]], "w must hold numbers only"),
        ({}, "w is {} in row 1"),
        ([0.0, 0.0, 0.0], "w: the weights are all zero"),
        ([1e9, 1.0, 1.0], r"w: the weights make 1e\+09 rows of 2 numbers"),
    ],
)
def test_what_is_no_count_is_refused_in_one_line(weights: Any, said: str) -> None:
    with pytest.raises(BadInput, match=f"^{said}[^\n]*$"):
        row_counts(weights, DATA, "w")
