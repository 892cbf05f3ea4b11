"""Data of three folds with correlated columns."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.data.standard import StandardData, standardize

LABELS = np.arange(24) % 3
FOLDS = folds_from_labels(LABELS)
TOP = 5


def random_data(seed: int, p: int = 60, intercept: str = "fold", held_out: float = 0.0) -> StandardData:
    """24 rows; `held_out` scales what is added to the response of fold 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((24, p)) + 0.7 * rng.standard_normal((24, 1))
    y = X[:, 0] + X[:, p // 3] - X[:, 2 * p // 3] + 0.5 * rng.standard_normal(24)
    y[LABELS == 0] += held_out * rng.standard_normal(8)
    return standardize(Dataset.from_arrays(X, y), "length", intercept)
