"""Random training problems of GLRU."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecv_mio.oracles.glru import (
    Huber,
    Logistic,
    Problem,
    Regularizer,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    make_problem,
)

LOSSES = (Squared(), Huber(0.8), SquaredHinge(), SmoothedHinge(0.7), Logistic())


def random_problem(loss: Any, regularizer: Regularizer, n: int = 40, d: int = 12, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0.0, 1.0, -1.0)
    return make_problem(X, y, loss, regularizer)
