"""Predictions of left-out folds, and learners by their names."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.treecv import (
    GaussianNaiveBayes,
    RidgeLearner,
    TreeCvOracle,
    held_out_predictions,
    make_task,
    standard_cv,
)
from sparsecv_mio.oracles.treecv.oracle import CLASSIFIERS, LEARNERS

from ..samples import data


def test_treecv_predictions():
    X, y = data()
    folds = folds_from_labels(np.where(np.arange(40) < 35, np.arange(40) % 5, -1))
    found = held_out_predictions(RidgeLearner(0.5), X, y, folds)
    oracle = TreeCvOracle(RidgeLearner(0.5), X, y, folds)
    for j in range(5):
        rows, keep = folds.scored_rows(j), folds.train_rows(j)
        b = np.linalg.solve(X[keep].T @ X[keep] + 0.5 * np.eye(3), X[keep].T @ y[keep])
        assert found[rows] == pytest.approx(X[rows] @ b, rel=1e-10)
        assert oracle.leave_out(rows[::-1]).value == pytest.approx(X[rows[::-1]] @ b, rel=1e-10)
    assert np.isnan(found[35:]).all()
    for rows in (np.array([0]), np.array([38]), np.array([], dtype=np.int64)):
        with pytest.raises(BadInput, match="whole folds"):
            oracle.leave_out(rows)
    classes = held_out_predictions(GaussianNaiveBayes(3, np.array([-1.0, 1.0])), X, np.sign(y), folds)
    assert set(np.unique(classes[:35])) <= {-1.0, 1.0}


def sample() -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    return Dataset.from_arrays(X, np.where(X[:, 0] > 0.0, 4.0, 1.0))


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_can_be_cross_validated(learner: str) -> None:
    task = make_task(sample(), learner)
    found = standard_cv(task.learner, task.X, task.y, folds_from_labels(np.arange(20) % 4))
    assert 0.0 <= found.estimate < 2.0 * np.mean(task.y**2)
    assert (task.loss == "misclassification") == (learner in CLASSIFIERS)
    assert set(task.y) == ({-1.0, 1.0} if learner in CLASSIFIERS else {1.0, 4.0})


def test_where_the_intercept_goes() -> None:
    data = sample()
    free = make_task(data, "ridge", intercept="fold", lam=0.5)
    assert isinstance(free.learner, RidgeLearner) and free.learner.intercept and free.X is data.X
    assert make_task(data, "lsqsgd", intercept="fold").X[:, -1].tolist() == [1.0] * 20
    assert make_task(data, "ridge", intercept="global").y.mean() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"learner": "tree"}, "tree"),
        ({"learner": "naive-bayes", "lam": 1.0}, "--lam"),
        ({"learner": "ridge", "step": 1.0}, "--step"),
        ({"learner": "bernoulli-nb", "intercept": "fold"}, "--intercept"),
    ],
)
def test_what_does_not_go_together(options: dict[str, object], word: str) -> None:
    with pytest.raises(BadInput, match=word):
        make_task(sample(), **options)  # type: ignore[arg-type]
