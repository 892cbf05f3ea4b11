"""Estimators of two classes: what scikit-learn expects of a classifier, and the same numbers as its own."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsecv_mio.errors import BadInput
from sparsecv_mio.sklearn import BestSubsetLogistic, BestSubsetLogisticCV


def drawn(n: int = 80, p: int = 5) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, p)) * 10.0 ** np.arange(p) + 3.0
    return X, 2.0 * (X[:, 1] - 3.0) / 10.0 - (X[:, 3] - 3.0) / 1000.0 + rng.logistic(size=n) > 0


@parametrize_with_checks([BestSubsetLogistic(), BestSubsetLogisticCV(taus=[0, 1], cv=3, gammas=[0.1], gap=0.05)])
def test_what_scikit_learn_asks_of_a_classifier(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("gamma", [0.01, 1.0])
def test_all_features_are_the_fit_of_scikit_learn(gamma: float) -> None:
    X, y = drawn()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = BestSubsetLogistic(5, gamma=gamma, scale="none").fit(Z, y)
    theirs = LogisticRegression(C=1.0 / gamma, tol=1e-13, solver="newton-cholesky", max_iter=1000).fit(Z, y)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-8) and ours.intercept_ == pytest.approx(theirs.intercept_)
    assert ours.predict_proba(Z) == pytest.approx(theirs.predict_proba(Z), abs=1e-8)
    assert ours.predict_log_proba(Z) == pytest.approx(np.log(ours.predict_proba(Z)))
    assert ours.coef_.shape == theirs.coef_.shape and ours.intercept_.shape == theirs.intercept_.shape


def test_labels_of_any_kind_and_the_search() -> None:
    X, y = drawn()
    words = np.where(y, "yes", "never")
    model = BestSubsetLogisticCV(gammas=[0.01, 0.1], cv=4).fit(X, words)
    assert model.classes_.tolist() == ["never", "yes"] and set(model.predict(X)) <= {"never", "yes"}
    assert model.status_ == "proved" and model.lower_ <= model.cv_error_ <= model.upper_
    assert 1.0 / model.gamma_ == model.C_ and model.record_.classes.positive == "yes"
    assert model.record_.folds.spec == "stratified:4" and model.record_.classes.positive == "yes"
    assert model.scores_.shape == (2, 5) and model.scores_.max() == pytest.approx(-model.cv_error_, rel=1e-3)
    assert model.loss_path_.shape == (2, 5, 4) and model.coef_path_.shape == (5, 5)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_proba(X).tolist() == model.predict_proba(X).tolist()
    assert np.array_equal(again.loss_path_, model.loss_path_)
    plain = BestSubsetLogisticCV(gammas=[0.01, 0.1], cv=StratifiedKFold(4)).fit(X, y)
    assert plain.record_.folds.k == 4


def test_weights_of_rows_and_classes() -> None:
    X, y = drawn()
    rare = np.flatnonzero(y)[:20].tolist() + np.flatnonzero(~y).tolist()
    X, y = X[rare], y[rare]
    weights = np.where(y, len(y) / (2.0 * y.sum()), len(y) / (2.0 * (~y).sum()))
    given = BestSubsetLogistic(2).fit(X, y, weights)
    balanced = BestSubsetLogistic(2, class_weight="balanced").fit(X, y)
    assert balanced.coef_ == pytest.approx(given.coef_, rel=1e-9)
    chosen = BestSubsetLogisticCV(gammas=0.1, taus=[1, 2], cv=3, class_weight="balanced").fit(X, y)
    assert chosen.status_ == "proved" and chosen.record_.data.class_weight == "balanced"
    twice = BestSubsetLogistic(2, class_weight="balanced").fit(X, y, np.where(y, 2.0, 1.0))
    assert twice.coef_ == pytest.approx(given.coef_, rel=1e-9)


def test_what_is_refused() -> None:
    X, y = drawn()
    with pytest.raises(BadInput, match="Only binary classification is supported. The type of the target is multiclass"):
        BestSubsetLogistic(2).fit(X, np.arange(80) % 3)
    with pytest.raises(BadInput, match="y has only one class, 1.0; give rows of two classes"):
        BestSubsetLogistic(2).fit(X, np.ones(80))
    with pytest.raises(BadInput, match="scoring: 'accuracy' is not certified; give 'neg_log_loss'"):
        BestSubsetLogisticCV(scoring="accuracy").fit(X, y)
    chosen = BestSubsetLogisticCV(refit=False, gammas=0.1, taus=1, cv=3).fit(X, y)
    assert chosen.tau_ == 1 and not any(hasattr(chosen, name) for name in ("coef_", "predict", "predict_proba"))
    groups = np.arange(80) // 40
    with pytest.raises(BadInput, match="are all of class"):
        BestSubsetLogisticCV(cv=GroupKFold(2)).fit(X, groups, groups=groups)


def test_several_spellings_of_two_classes_are_named() -> None:
    X = np.arange(24.0).reshape(8, 3) % 5
    for labels, named in ((["yes", "Yes", "no", "no "] * 2, True), (["a", "b", "c", "a"] * 2, False)):
        with pytest.raises(ValueError, match="Only binary classification is supported") as told:
            BestSubsetLogisticCV(cv=2).fit(X, labels)
        assert ("y.str.strip().str.lower()" in str(told.value)) == named
