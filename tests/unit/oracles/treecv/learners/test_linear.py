"""The linear learners against plain loops, alone and in the compiled tree."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.oracles.treecv import (
    LeastSquaresSgd,
    PegasosLearner,
    standard_cv,
    tree_cv,
)

from .samples import data


def plain_pegasos(X, y, lam):
    w = np.zeros(X.shape[1])
    for t, (x, target) in enumerate(zip(X, y, strict=True), start=1):
        eta = 1.0 / (lam * t)
        inside = target * (w @ x) < 1.0
        w = (1.0 - eta * lam) * w + (eta * target * x if inside else 0.0)
    return w


def plain_least_squares(X, y, step):
    w, total = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for x, target in zip(X, y, strict=True):
        w = w - step * 2.0 * (w @ x - target) * x
        w = w / max(1.0, float(np.linalg.norm(w)))
        total = total + w
    return total / len(y)


@pytest.mark.parametrize("lam", [1e-6, 1e-2, 1.0])
def test_pegasos(lam):
    X, _, y = data()
    learner = PegasosLearner(4, lam)
    learner.update(X[:13], y[:13])
    learner.update(X[13:], y[13:])
    w = plain_pegasos(X, y, lam)
    assert learner.coefficients == pytest.approx(w, rel=1e-9)
    Z, _, sign = data(1)
    assert learner.score(Z, sign) == np.mean(np.where(Z @ w >= 0, 1.0, -1.0) != sign)
    assert np.mean(learner.predict(Z) != sign) == learner.score(Z, sign)


@pytest.mark.parametrize("step", [0.02, 0.3])
def test_least_squares_sgd(step):
    X, y, _ = data()
    learner = LeastSquaresSgd(4, step)
    learner.update(X[:20], 3.0 * y[:20])
    learner.update(X[20:], 3.0 * y[20:])
    w = plain_least_squares(X, 3.0 * y, step)
    assert learner.coefficients == pytest.approx(w, rel=1e-12)
    assert np.linalg.norm(w) <= 1.0
    Z, target, _ = data(1)
    assert learner.score(Z, target) == pytest.approx(np.mean((Z @ w - target) ** 2), rel=1e-12)
    assert learner.predict(Z) == pytest.approx(Z @ w, rel=1e-12)


class Plain:
    """A learner behind a wall: no compiled subtree, no revert."""

    def __init__(self, inner):
        self.inner = inner

    def update(self, X, y):
        self.inner.update(X, y)

    def copy(self):
        return Plain(self.inner.copy())

    def score(self, X, y):
        return self.inner.score(X, y)


@pytest.mark.parametrize("shuffle_seed", [None, 9])
@pytest.mark.parametrize("k", [2, 3, 5, 16, 31, 50])
def test_compiled_tree_equals_the_recursion(k, shuffle_seed):
    X, y, sign = data()
    rng = np.random.default_rng(k)
    labels = np.concatenate([np.arange(k), rng.integers(-1, k, 50 - k)])
    folds = folds_from_labels(rng.permutation(labels))
    for learner, target in ((PegasosLearner(4, 1e-3), sign), (LeastSquaresSgd(4, 0.1), y)):
        whole = tree_cv(learner, X, target, folds, shuffle_seed=shuffle_seed)
        plain = tree_cv(Plain(learner), X, target, folds, shuffle_seed=shuffle_seed)
        assert whole.scores == pytest.approx(plain.scores, rel=1e-12)
        assert whole.updates == plain.updates


def test_the_prototype_stays_untrained():
    X, _, sign = data()
    learner = PegasosLearner(4, 1e-3)
    before = copy.deepcopy(learner.model)
    tree_cv(learner, X, sign, folds_from_labels(np.arange(50)))
    standard_cv(learner, X, sign, folds_from_labels(np.arange(50) % 5))
    assert np.array_equal(learner.model, before)


@pytest.mark.slow
@pytest.mark.parametrize("shuffle_seed", [None, 0])
def test_leave_one_out_at_the_papers_size(shuffle_seed):
    rng = np.random.default_rng(0)
    n, p = 581_012, 54
    X = rng.standard_normal((n, p))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    result = tree_cv(PegasosLearner(p, 1e-6), X, y, folds_from_labels(np.arange(n)), shuffle_seed=shuffle_seed)
    assert result.updates <= n * (1 + np.log2(n))
    assert 0.1 < result.estimate < 0.3
