"""Rows by fold, the interfaces of learners, and what an estimate says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.treecv import (
    BernoulliNaiveBayes,
    GaussianNaiveBayes,
    LeastSquaresSgd,
    PartialFitLearner,
    PegasosLearner,
    RidgeLearner,
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
