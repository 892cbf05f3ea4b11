"""Estimators of scikit-learn as learners."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.treecv import (
    PartialFitLearner,
    tree_cv,
)

from .samples import SIGNS, data


def test_partial_fit_adapter():
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.linear_model import LinearRegression, Perceptron, SGDRegressor

    X, y, sign = data(n=90)
    folds = folds_from_labels(np.arange(90) % 6)
    wrong = tree_cv(PartialFitLearner(Perceptron(), classes=SIGNS), X, sign, folds)
    assert 0.0 < wrong.estimate < 0.4
    squared = tree_cv(PartialFitLearner(SGDRegressor(random_state=0)), X, y, folds)
    assert squared.estimate < np.var(y)
    clusters = PartialFitLearner(
        MiniBatchKMeans(3, random_state=0, n_init=1), loss=lambda labels, y: np.asarray(labels == 0, dtype=float)
    )
    assert 0.0 <= tree_cv(clusters, X, y, folds).estimate <= 1.0
    with pytest.raises(BadInput, match="partial_fit"):
        PartialFitLearner(LinearRegression())
