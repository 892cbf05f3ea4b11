"""Rows by fold, the interfaces of learners, and what an estimate says."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.treecv import (
    BernoulliNaiveBayes,
    CvResult,
    Learner,
    PegasosLearner,
    Recursive,
    Revertible,
    RidgeLearner,
    RowsByFold,
)


def test_every_fold_is_a_slice() -> None:
    labels = np.array([2, -1, 0, 1, 0, 2])
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    rows = RowsByFold.of(X, y, folds_from_labels(labels))
    assert (rows.n, rows.k) == (6, 3) and rows.starts.tolist() == [0, 2, 3, 5]
    for j in range(3):
        part = slice(int(rows.starts[j]), int(rows.starts[j + 1]))
        assert rows.y[part].tolist() == np.flatnonzero(labels == j).tolist()
        assert np.array_equal(rows.X[part], X[labels == j])
    assert rows.y[5:].tolist() == [1.0]
    sorted_already = RowsByFold.of(X, y, folds_from_labels([0, 0, 1, 1, 2, 2]))
    assert sorted_already.X is X and sorted_already.y is y
    with pytest.raises(BadInput, match="folds are of 6 rows"):
        RowsByFold.of(X[:5], y[:5], folds_from_labels(labels))


def test_what_learners_can_do() -> None:
    pegasos, ridge, bayes = PegasosLearner(2), RidgeLearner(1.0), BernoulliNaiveBayes(2, np.array([-1.0, 1.0]))
    assert all(isinstance(learner, Learner) and isinstance(learner, Revertible) for learner in (pegasos, ridge, bayes))
    assert isinstance(pegasos, Recursive) and not isinstance(ridge, Recursive)


def test_folds_count_alike_in_the_estimate_and_rows_alike_in_the_pooled_one() -> None:
    found = CvResult(np.array([1.0, 4.0]), np.array([3, 1]), 8, 0.1)
    assert found.estimate == 2.5 and found.pooled == 1.75
