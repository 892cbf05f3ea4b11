"""One linear sample with its signs as classes."""

from __future__ import annotations

import numpy as np

SIGNS = np.array([-1.0, 1.0])


def data(seed=0, n=50, p=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = X @ rng.standard_normal(p) + 0.4 * rng.standard_normal(n)
    return X, y, np.where(y > 0, 1.0, -1.0)
