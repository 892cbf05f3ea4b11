"""Each loss of IACV by the definition of one row, and data for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsecv_mio.oracles.iacv import Logistic, Poisson, Regularizer, SmoothLoss, Squared

# value, gradient, Hessian of one row, written from the definitions and not from the package
ROW: dict[str, tuple[Callable, Callable, Callable]] = {
    "logistic": (
        lambda x, y, t: np.log1p(np.exp(-y * (x @ t))),
        lambda x, y, t: -y * x / (1.0 + np.exp(y * (x @ t))),
        lambda x, y, t: np.outer(x, x) * np.exp(x @ t) / (1.0 + np.exp(x @ t)) ** 2,
    ),
    "squared": (
        lambda x, y, t: (y - x @ t) ** 2,
        lambda x, y, t: -2.0 * (y - x @ t) * x,
        lambda x, y, t: 2.0 * np.outer(x, x),
    ),
    "poisson": (
        lambda x, y, t: np.exp(x @ t) - y * (x @ t),
        lambda x, y, t: (np.exp(x @ t) - y) * x,
        lambda x, y, t: np.exp(x @ t) * np.outer(x, x),
    ),
    "cosh": (
        lambda x, y, t: np.log(np.cosh(y - x @ t)),
        lambda x, y, t: -np.tanh(y - x @ t) * x,
        lambda x, y, t: np.outer(x, x) / np.cosh(y - x @ t) ** 2,
    ),
}


class LogCosh(SmoothLoss):
    """A user's loss: only the three methods of the protocol."""

    def value(self, t, y):
        return np.log(np.cosh(y - t))

    def derivative(self, t, y):
        return -np.tanh(y - t)

    def curvature(self, t, y):
        return 1.0 / np.cosh(y - t) ** 2


LOSS = {"logistic": Logistic(), "squared": Squared(2.0), "poisson": Poisson(), "cosh": LogCosh()}
PENALTY = {"ridge": Regularizer(2.0), "l1": Regularizer(0.0, 1.0)}


def data(loss, rng, n, p):
    X = rng.standard_normal((n, p)) * rng.uniform(0.3, 1.5, p)
    eta = X @ rng.standard_normal(p) * 0.5
    if loss == "logistic":
        return X, np.where(rng.random(n) < 1 / (1 + np.exp(-eta)), 1.0, -1.0)
    if loss == "poisson":
        return X, rng.poisson(np.exp(np.clip(eta, -2, 2))).astype(float)
    return X, eta + 0.3 * rng.standard_normal(n)
