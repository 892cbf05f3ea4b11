"""Rows and untrained learners from the words of the command line."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.treecv import RidgeLearner, make_task, standard_cv
from sparsecv_mio.oracles.treecv.setup import CLASSIFIERS, LEARNERS


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
