"""TreeCV as an oracle: predictions of whole folds."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.treecv import GaussianNaiveBayes, RidgeLearner, TreeCvOracle, held_out_predictions

from ..samples import data


def test_treecv_predictions():
    X, y = data()
    folds = folds_from_labels(np.where(np.arange(40) < 35, np.arange(40) % 5, -1))
    found = held_out_predictions(RidgeLearner(0.5), X, y, folds)
    oracle = TreeCvOracle(RidgeLearner(0.5), X, y, folds)
    for j in range(5):
        rows, keep = folds.scored_rows(j), folds.train_rows(j)
        b = np.linalg.solve(X[keep].T @ X[keep] + 0.5 * np.eye(3), X[keep].T @ y[keep])
        assert found[rows] == pytest.approx(X[rows] @ b, rel=1e-10)
        assert oracle.leave_out(rows[::-1]).value == pytest.approx(X[rows[::-1]] @ b, rel=1e-10)
    assert np.isnan(found[35:]).all()
    for rows in (np.array([0]), np.array([38]), np.array([], dtype=np.int64)):
        with pytest.raises(BadInput, match="whole folds"):
            oracle.leave_out(rows)
    classes = held_out_predictions(GaussianNaiveBayes(3, np.array([-1.0, 1.0])), X, np.sign(y), folds)
    assert set(np.unique(classes[:35])) <= {-1.0, 1.0}
