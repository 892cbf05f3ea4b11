"""IACV and TreeCV through the oracles' protocol: estimates, never certificates."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.base import EstimateOracle, Guarantee, Guess
from sparsecv_mio.oracles.iacv import Erm, IacvOracle, Logistic, Ridge, Squared, default_step, exact_step, gd
from sparsecv_mio.oracles.treecv import GaussianNaiveBayes, RidgeLearner, TreeCvOracle, held_out_predictions


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    return X, X @ [1.0, -0.5, 0.0] + 0.3 * rng.standard_normal(40)


def test_iacv_single_rows_and_groups():
    X, y = data()
    erm = Erm(X, y, Squared(), Ridge(), 0.5)
    oracle = IacvOracle(erm, gd(default_step(erm)), 600)
    for rows in (np.array([4]), np.array([7]), np.array([1, 9, 30])):
        keep = np.setdiff1d(np.arange(40), rows)
        b = np.linalg.solve(X[keep].T @ X[keep] + 0.5 * np.eye(3), X[keep].T @ y[keep])
        found = oracle.leave_out(rows)
        assert isinstance(found, Guess)
        assert found.value == pytest.approx(X[rows] @ b, abs=1e-9)
    with pytest.raises(BadInput, match="labels"):
        IacvOracle(Erm(X, y, Squared(), Ridge(), 0.5, np.arange(40) % 4), gd(0.01), 5)


def test_iacv_logistic_is_near_the_exact_fit():
    X, y = data()
    erm = Erm(X, np.sign(y), Logistic(), Ridge(), 0.5)
    method = gd(default_step(erm))
    oracle, Theta = IacvOracle(erm, method, 100), np.zeros((40, 3))
    for t in range(100):
        Theta = exact_step(erm, method, t, Theta)
    for i in range(40):
        assert oracle.leave_out(np.array([i])).value[0] == pytest.approx(X[i] @ Theta[i], abs=0.1)


def test_treecv_predictions():
    X, y = data()
    folds = folds_from_labels(np.where(np.arange(40) < 35, np.arange(40) % 5, -1))
    found = held_out_predictions(RidgeLearner(0.5), X, y, folds)
    oracle = TreeCvOracle(RidgeLearner(0.5), X, y, folds)
    for j in range(5):
        rows, keep = folds.test_rows(j), folds.train_rows(j)
        b = np.linalg.solve(X[keep].T @ X[keep] + 0.5 * np.eye(3), X[keep].T @ y[keep])
        assert found[rows] == pytest.approx(X[rows] @ b, rel=1e-10)
        assert oracle.leave_out(rows[::-1]).value == pytest.approx(X[rows[::-1]] @ b, rel=1e-10)
    assert np.isnan(found[35:]).all()
    for rows in (np.array([0]), np.array([38]), np.array([], dtype=np.int64)):
        with pytest.raises(BadInput, match="whole folds"):
            oracle.leave_out(rows)
    classes = held_out_predictions(GaussianNaiveBayes(3, np.array([-1.0, 1.0])), X, np.sign(y), folds)
    assert set(np.unique(classes[:35])) <= {-1.0, 1.0}


def test_they_are_estimates():
    X, y = data()
    erm = Erm(X, y, Squared(), Ridge(), 0.5)
    iacv = IacvOracle(erm, gd(0.01), 3)
    tree = TreeCvOracle(RidgeLearner(0.5), X, y, folds_from_labels(np.arange(40)))
    for oracle in (iacv, tree):
        assert isinstance(oracle, EstimateOracle)
        assert oracle.guarantee is Guarantee.ESTIMATE
        assert isinstance(oracle.leave_out(np.array([3])), Guess)
