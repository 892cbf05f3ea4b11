"""Losses of rows: the general definitions against the batched ones."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.oracles.iacv import LinearLoss, Logistic

from .iacv.rows import LOSS, data


@pytest.mark.parametrize("name", ["logistic", "squared", "poisson"])
def test_derivatives_by_differences(name):
    loss = LOSS[name]
    assert isinstance(loss, LinearLoss)
    eta = np.linspace(-3, 3, 41)
    y = np.where(np.arange(41) % 2, 1.0, -1.0) if name == "logistic" else np.arange(41) % 4 + 0.0
    h = 1e-5
    assert np.allclose(loss.slopes(eta, y), (loss.value(eta + h, y) - loss.value(eta - h, y)) / (2 * h), atol=1e-7)
    assert np.allclose(
        loss.curvatures(eta, y), (loss.slopes(eta + h, y) - loss.slopes(eta - h, y)) / (2 * h), atol=1e-7
    )
    assert np.all(loss.curvatures(eta, y) <= loss.smoothness + 1e-15)
    assert np.allclose(loss.slopes(eta, y), loss.derivative(eta, y), rtol=1e-14, atol=0.0)
    assert np.allclose(loss.curvatures(eta, y), loss.curvature(eta, y), rtol=1e-14, atol=0.0)


def test_logistic_is_stable_far_out():
    eta = np.array([-800.0, 800.0])
    assert np.isfinite(Logistic().value(eta, np.ones(2))).all()
    assert np.isfinite(Logistic().slopes(eta, -np.ones(2))).all()


def test_batch_bound_holds():
    rng = np.random.default_rng(3)
    X, y = data("logistic", rng, 40, 3)
    top = Logistic().bound(X, y, 7)
    for _ in range(200):
        rows = rng.choice(40, 7, replace=False)
        assert np.linalg.eigvalsh(X[rows].T @ X[rows])[-1] / 4.0 <= top + 1e-12
