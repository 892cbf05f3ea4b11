"""The recursion against the algorithm of the paper, and incremental learners against fits of all rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


class Diary:
    """A learner that writes down the rows it was fed; a row's first column is its number."""

    alive = 0
    most = 0
    scored: list[tuple[list[int], list[int]]] = []

    def __init__(self, seen=()):
        self.seen = list(seen)
        Diary.alive += 1
        Diary.most = max(Diary.most, Diary.alive)

    def __del__(self):
        Diary.alive -= 1

    def update(self, X, y):
        self.seen += X[:, 0].astype(int).tolist()

    def copy(self):
        return Diary(self.seen)

    def score(self, X, y):
        Diary.scored.append((list(self.seen), X[:, 0].astype(int).tolist()))
        return 0.0

    @classmethod
    def clear(cls):
        cls.scored, cls.most = [], 0


def numbered(n):
    return np.arange(n, dtype=float)[:, None], np.zeros(n)


def random_labels(rng, n, k, fixed=0):
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n - k - fixed), np.full(fixed, -1)])
    rng.shuffle(labels)
    return labels


def algorithm_1(order, starts, seen, s, e, out):
    """The paper's Algorithm 1 with chunks s .. e, both counted, from 0; what each model has seen, in order."""
    if s == e:
        out.append(seen)
        return
    m = (s + 1 + e + 1) // 2 - 1
    algorithm_1(order, starts, seen + order[starts[m + 1] : starts[e + 1]], s, m, out)
    algorithm_1(order, starts, seen + order[starts[s] : starts[m + 1]], m + 1, e, out)


@given(st.integers(0, 10_000), st.integers(2, 24), st.integers(0, 20), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_each_model_learned_the_other_rows_in_the_papers_order(seed, k, more, fixed):
    rng = np.random.default_rng(seed)
    n = k + more + fixed
    if n < 4:
        return
    try:
        folds = folds_from_labels(random_labels(rng, n, k, fixed))
    except BadInput:
        return
    expected: list[list[int]] = []
    order = folds.order.tolist()
    algorithm_1(order, folds.starts.tolist(), order[folds.starts[-1] :], 0, k - 1, expected)
    Diary.clear()
    result = tree_cv(Diary(), *numbered(n), folds)
    assert [seen for seen, _ in Diary.scored] == expected
    assert [held for _, held in Diary.scored] == [folds.scored_rows(j).tolist() for j in range(k)]
    held = int(folds.starts[-1])
    assert result.updates <= fixed + held * np.ceil(np.log2(k))
    assert result.updates <= n * (1 + np.log2(k))
    if k & (k - 1) == 0 and held % k == 0 and set(result.sizes) == {held // k}:
        assert result.updates == fixed + held * np.log2(k)


@pytest.mark.parametrize("k", [8, 13, 64])
def test_memory_is_logarithmic(k):
    Diary.clear()
    tree_cv(Diary(), *numbered(k + 2), folds_from_labels(np.arange(k + 2)))
    assert Diary.most <= np.ceil(np.log2(k + 2)) + 2


def problem(seed, n=60, p=5, k=7):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = X @ rng.standard_normal(p) + 0.5 * rng.standard_normal(n)
    labels = np.arange(n) if k is None else random_labels(rng, n, k, fixed=3)
    return X, y, np.where(y > 0, 1.0, -1.0), folds_from_labels(labels)


SIGNS = np.array([-1.0, 1.0])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [2, 7, 32, None])
@pytest.mark.parametrize("randomized", [False, True])
def test_order_free_learners_equal_standard_cv(seed, k, randomized):
    shuffle_seed = seed if randomized else None
    X, y, sign, folds = problem(seed, k=k)
    for intercept in (False, True):
        tree, standard = (
            cv(RidgeLearner(0.3, intercept=intercept), X, y + 2.0, folds, shuffle_seed=shuffle_seed)
            for cv in (tree_cv, standard_cv)
        )
        assert tree.scores == pytest.approx(standard.scores, rel=1e-11)
        assert tree.estimate == pytest.approx(standard.estimate, rel=1e-12)
    for learner in (GaussianNaiveBayes(5, SIGNS), BernoulliNaiveBayes(5, SIGNS)):
        tree, standard = (cv(learner, X, sign, folds, shuffle_seed=shuffle_seed) for cv in (tree_cv, standard_cv))
        assert tree.scores.tolist() == standard.scores.tolist()
        assert tree.estimate == standard.estimate


def learners(n, p):
    from sklearn.linear_model import SGDClassifier

    return [
        PegasosLearner(p, 1e-2),
        LeastSquaresSgd(p, n**-0.5),
        RidgeLearner(0.1),
        GaussianNaiveBayes(p, SIGNS),
        BernoulliNaiveBayes(p, SIGNS),
        PartialFitLearner(SGDClassifier(random_state=0), classes=SIGNS),
    ]


@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize("shuffle_seed", [None, 3])
def test_no_manner_of_walking_changes_the_result(which, shuffle_seed):
    X, _, sign, folds = problem(1, k=13)
    learner = learners(60, 5)[which]
    base = tree_cv(learner, X, sign, folds, shuffle_seed=shuffle_seed)
    again = tree_cv(learner, X, sign, folds, shuffle_seed=shuffle_seed)
    threads = tree_cv(learner, X, sign, folds, shuffle_seed=shuffle_seed, jobs=2, progress=lambda a, b: None)
    ticked = tree_cv(learner, X, sign, folds, shuffle_seed=shuffle_seed, progress=lambda a, b: None)
    for other in (again, threads, ticked):
        assert other.scores.tolist() == base.scores.tolist()
        assert other.updates == base.updates


def test_processes_give_the_same(tmp_path):
    from joblib import parallel_config

    X, y, _, folds = problem(2, k=9)
    base = tree_cv(RidgeLearner(0.1), X, y, folds)
    with parallel_config(backend="loky", n_jobs=2, temp_folder=str(tmp_path)):
        assert tree_cv(RidgeLearner(0.1), X, y, folds, jobs=2).scores.tolist() == base.scores.tolist()


def test_estimates():
    folds = folds_from_labels([0, 0, 0, 1, 1])
    result = tree_cv(RidgeLearner(0.0), np.ones((5, 1)), np.array([1.0, 2.0, 3.0, 6.0, 8.0]), folds)
    scores = [(36 + 25 + 16) / 3, (16 + 36) / 2]
    assert result.scores == pytest.approx(scores)
    assert result.estimate == pytest.approx(sum(scores) / 2)
    assert result.pooled == pytest.approx((36 + 25 + 16 + 16 + 36) / 5)


def test_refusals():
    X, y, sign, folds = problem(0)
    with pytest.raises(BadInput, match="--jobs"):
        tree_cv(RidgeLearner(1.0), X, y, folds, jobs=0)
    with pytest.raises(BadInput, match="folds have 60 rows"):
        tree_cv(RidgeLearner(1.0), X[:5], y[:5], folds)


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 3))
    return X, X @ [1.0, 0.5, -1.0] + rng.standard_normal(24)


def test_scores_are_those_of_single_trainings() -> None:
    X, y = rows()
    labels = np.where(np.arange(24) < 20, np.arange(24) % 4, -1)
    seen = []
    found = standard_cv(
        RidgeLearner(0.5), X, y, folds_from_labels(labels), progress=lambda done, k: seen.append((done, k))
    )
    for j in range(4):
        keep = labels != j
        b = np.linalg.solve(X[keep].T @ X[keep] + 0.5 * np.eye(3), X[keep].T @ y[keep])
        assert found.scores[j] == pytest.approx(np.mean((y[~keep] - X[~keep] @ b) ** 2))
    assert found.updates == 4 * 24 - 20 and seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_seed_shuffles_and_repeats() -> None:
    X, y = rows()
    folds = folds_from_labels(np.arange(24) % 3)
    plain, one, again, other = (
        standard_cv(LeastSquaresSgd(3, 0.1), X, y, folds, shuffle_seed=seed).scores for seed in (None, 1, 1, 2)
    )
    assert np.array_equal(one, again) and not np.allclose(one, other) and not np.allclose(one, plain)


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
def test_refusals_learners(make, word):
    with pytest.raises(BadInput, match=word):
        make()


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
