"""Problems that several tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from sparsecv_mio.oracles.glru import (
    ConjugateLoss,
    DualFit,
    Huber,
    Logistic,
    Problem,
    Regularizer,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    assess,
    make_problem,
    train,
)

LOSSES = (Squared(1.0), Huber(0.8), SquaredHinge(), SmoothedHinge(0.7), Logistic())


def random_problem(loss: Any, regularizer: Regularizer, n: int = 40, d: int = 12, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0.0, 1.0, -1.0)
    return make_problem(X, y, loss, regularizer)


RIDGES = (Regularizer(0.3), Regularizer(0.3, 0.1))


def fitted(
    loss: ConjugateLoss, regularizer: Regularizer, seed: int = 0, n: int = 14, d: int = 6, sparse: bool = False
) -> DualFit:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    problem = make_problem(sp.csr_array(X) if sparse else X, y, loss, regularizer)
    return assess(problem, train(problem, tol=1e-3).w)
