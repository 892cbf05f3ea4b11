"""Incremental learners against fits of all rows at once."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.treecv import (
    BernoulliNaiveBayes,
    GaussianNaiveBayes,
    LeastSquaresSgd,
    PartialFitLearner,
    PegasosLearner,
    RidgeLearner,
    make_task,
    standard_cv,
    tree_cv,
)


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


def test_gaussian_naive_bayes_equals_scikit_learn():
    from sklearn.naive_bayes import GaussianNB

    X, _, y = data(n=80)
    learner = GaussianNaiveBayes(4, SIGNS)
    for rows in (slice(0, 3), slice(3, 41), slice(41, 80)):
        learner.update(X[rows], y[rows])
    other = GaussianNB().fit(X, y)
    Z, _, sign = data(1)
    assert learner.log_joint(Z) == pytest.approx(other.predict_joint_log_proba(Z), rel=1e-9)
    assert learner.score(Z, sign) == pytest.approx(1.0 - other.score(Z, sign))


def test_gaussian_naive_bayes_with_an_absent_class_and_constant_columns():
    learner = GaussianNaiveBayes(2, SIGNS)
    learner.update(np.array([[1.0, 2.0], [1.0, 3.0]]), np.ones(2))
    assert learner.predict(np.array([[1.0, 2.0], [5.0, 0.0]])).tolist() == [1.0, 1.0]


def test_bernoulli_naive_bayes_equals_scikit_learn():
    from sklearn.naive_bayes import BernoulliNB

    X, _, y = data(n=80)
    learner = BernoulliNaiveBayes(4, SIGNS)
    learner.update(X[:30], y[:30])
    learner.update(X[30:], y[30:])
    prior = np.log([(np.sum(y == c) + 1) / 82 for c in SIGNS])
    other = BernoulliNB(class_prior=np.exp(prior)).fit(X, y)
    Z, _, _ = data(1)
    assert np.array_equal(learner.predict(Z), other.predict(Z))


def test_partial_fit_adapter():
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.linear_model import LinearRegression, Perceptron, SGDRegressor

    X, y, sign = data(n=90)
    folds = folds_from_labels(np.arange(90) % 6)
    wrong = tree_cv(PartialFitLearner(Perceptron(), classes=SIGNS), X, sign, folds)
    assert 0.0 < wrong.estimate < 0.4
    squared = tree_cv(PartialFitLearner(SGDRegressor(random_state=0)), X, y, folds)
    assert squared.estimate < np.var(y)
    clusters = PartialFitLearner(
        MiniBatchKMeans(3, random_state=0, n_init=1), loss=lambda labels, y: np.asarray(labels == 0, dtype=float)
    )
    assert 0.0 <= tree_cv(clusters, X, y, folds).estimate <= 1.0
    with pytest.raises(BadInput, match="partial_fit"):
        PartialFitLearner(LinearRegression())


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: PegasosLearner(2, 0.0), "lam > 0"),
        (lambda: LeastSquaresSgd(2, float("nan")), "step > 0"),
        (lambda: RidgeLearner(-1.0), "lam >= 0"),
        (lambda: GaussianNaiveBayes(2, SIGNS, smoothing=-1.0), "smoothing"),
        (lambda: RidgeLearner(1.0).fit(), "no training rows"),
    ],
)
def test_refusals(make, word):
    with pytest.raises(BadInput, match=word):
        make()


@pytest.mark.parametrize("intercept", [False, True])
def test_ridge(intercept):
    X, y, _ = data()
    learner = RidgeLearner(0.7, intercept=intercept)
    for rows in (slice(0, 9), slice(9, 10), slice(10, 50)):
        learner.update(X[rows], y[rows] + 5.0)
    A = np.column_stack([X, np.ones(50)]) if intercept else X
    penalty = np.diag([0.7] * 4 + [0.0] * intercept)
    b = np.linalg.solve(A.T @ A + penalty, A.T @ (y + 5.0))
    got, b0 = learner.fit()
    assert got == pytest.approx(b[:4], rel=1e-11)
    assert b0 == pytest.approx(b[4] if intercept else 0.0, rel=1e-11)


def test_ridge_far_from_the_origin_keeps_its_digits():
    X, y, _ = data()
    near, far = (RidgeLearner(0.1, intercept=True) for _ in range(2))
    near.update(X, y)
    for rows in np.array_split(np.arange(50), 10):
        far.update(X[rows] + 1e6, y[rows])
    assert far.fit()[0] == pytest.approx(near.fit()[0], rel=1e-8)


def test_singular_ridge_is_named():
    learner = RidgeLearner(0.0)
    learner.update(np.ones((3, 2)) * np.array([1.0, 0.0]), np.ones(3))
    with pytest.raises(BadInput, match="not unique"):
        learner.fit()


SIGNS = np.array([-1.0, 1.0])


def data(seed=0, n=50, p=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = X @ rng.standard_normal(p) + 0.4 * rng.standard_normal(n)
    return X, y, np.where(y > 0, 1.0, -1.0)


def sample() -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    return Dataset.from_arrays(X, np.where(X[:, 0] > 0.0, 4.0, 1.0))


def test_where_the_intercept_goes() -> None:
    data = sample()
    free = make_task(data, "ridge", intercept="fold", lam=0.5)
    assert isinstance(free.learner, RidgeLearner) and free.learner.intercept and free.X is data.X
    assert make_task(data, "lsqsgd", intercept="fold").X[:, -1].tolist() == [1.0] * 20
    plain = make_task(data, "lsqsgd")
    assert plain.X is data.X and isinstance(plain.learner, LeastSquaresSgd) and plain.learner.rate == 20**-0.5
    shifted = make_task(Dataset.from_arrays(data.X + 100.0, data.y), "ridge", intercept="fold", lam=0.5)
    folds = folds_from_labels(np.arange(20) % 5)
    here, there = (standard_cv(task.learner, task.X, task.y, folds).estimate for task in (free, shifted))
    assert here == pytest.approx(there, rel=1e-9)
    assert make_task(data, "ridge", intercept="global").y.mean() == pytest.approx(0.0, abs=1e-12)
