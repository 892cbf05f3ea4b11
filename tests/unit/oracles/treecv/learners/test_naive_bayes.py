"""Naive Bayes against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.oracles.treecv import (
    BernoulliNaiveBayes,
    GaussianNaiveBayes,
)

from .samples import SIGNS, data


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
    change = learner.update_saving(X[:30], y[:30])
    learner.update(X[30:], y[30:])
    prior = np.log([(np.sum(y == c) + 1) / 82 for c in SIGNS])
    other = BernoulliNB(class_prior=np.exp(prior)).fit(X, y)
    Z, _, _ = data(1)
    assert np.array_equal(learner.predict(Z), other.predict(Z))
    twin = BernoulliNaiveBayes(4, SIGNS)
    twin.update(X[30:], y[30:])
    learner.revert(change)
    assert np.array_equal(learner.counts, twin.counts)
