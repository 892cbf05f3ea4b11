"""Each loss of IACV by the definition of one row, and data for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsecv_mio.oracles.iacv import (
    Logistic,
    Poisson,
    Regularizer,
    SmoothLoss,
    Squared,
)

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
    "tangent": (
        lambda x, y, t: (y - np.tanh(x @ t) - 0.1 * (t @ t)) ** 2,
        lambda x, y, t: -2.0 * (y - np.tanh(x @ t) - 0.1 * (t @ t)) * (x / np.cosh(x @ t) ** 2 + 0.2 * t),
        lambda x, y, t: (
            2.0 * np.outer(x / np.cosh(x @ t) ** 2 + 0.2 * t, x / np.cosh(x @ t) ** 2 + 0.2 * t)
            - 2.0
            * (y - np.tanh(x @ t) - 0.1 * (t @ t))
            * (-2.0 * np.tanh(x @ t) / np.cosh(x @ t) ** 2 * np.outer(x, x) + 0.2 * np.eye(t.size))
        ),
    ),
}


class Tangent(SmoothLoss):
    """A user's loss that is no function of a linear predictor: only the four methods of the protocol."""

    name = "tangent"

    def values(self, X, y, theta):
        thetas = np.broadcast_to(theta, X.shape)
        return np.array([ROW["tangent"][0](x, v, t) for x, v, t in zip(X, y, thetas, strict=True)])

    def gradients(self, X, y, theta):
        return np.array([ROW["tangent"][1](x, v, theta) for x, v in zip(X, y, strict=True)]).reshape(X.shape)

    def hessian(self, X, y, theta):
        start = np.zeros((theta.size, theta.size))
        return sum((ROW["tangent"][2](x, v, theta) for x, v in zip(X, y, strict=True)), start=start)

    def hessian_times(self, X, y, theta, D):
        return np.array([ROW["tangent"][2](x, v, theta) @ d for x, v, d in zip(X, y, D, strict=True)])


LOSS: dict[str, SmoothLoss] = {
    "logistic": Logistic(),
    "squared": Squared(2.0),
    "poisson": Poisson(),
    "tangent": Tangent(),
}
PENALTY = {"ridge": Regularizer(2.0), "l1": Regularizer(0.0, 1.0)}


def data(loss, rng, n, p):
    X = rng.standard_normal((n, p)) * rng.uniform(0.3, 1.5, p)
    eta = X @ rng.standard_normal(p) * 0.5
    if loss == "logistic":
        return X, np.where(rng.random(n) < 1 / (1 + np.exp(-eta)), 1.0, -1.0)
    if loss == "poisson":
        return X, rng.poisson(np.exp(np.clip(eta, -2, 2))).astype(float)
    return X, eta + 0.3 * rng.standard_normal(n)
