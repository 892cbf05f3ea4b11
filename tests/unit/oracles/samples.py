"""One linear sample."""

from __future__ import annotations

import numpy as np


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    return X, X @ [1.0, -0.5, 0.0] + 0.3 * rng.standard_normal(40)
