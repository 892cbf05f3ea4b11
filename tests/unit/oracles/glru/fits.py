"""Fits stopped early, on random data."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from sparsecv_mio.oracles.glru import (
    Fit,
    Huber,
    Logistic,
    Loss,
    Regularizer,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    assess,
    make_problem,
    train,
)

LOSSES = (Squared(), Huber(0.8), SquaredHinge(), SmoothedHinge(0.7), Logistic())
RIDGES = (Regularizer(0.3), Regularizer(0.3, 0.1))


def fitted(loss: Loss, regularizer: Regularizer, seed: int = 0, n: int = 14, d: int = 6, sparse: bool = False) -> Fit:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    problem = make_problem(sp.csr_array(X) if sparse else X, y, loss, regularizer)
    return assess(problem, train(problem, tol=1e-3).w)
