"""Standard cross-validation: every fold's model from scratch, in the order of the folds or shuffled."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.oracles.treecv import LeastSquaresSgd, RidgeLearner, standard_cv


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 3))
    return X, X @ [1.0, 0.5, -1.0] + rng.standard_normal(24)


def test_scores_are_those_of_single_trainings() -> None:
    X, y = rows()
    labels = np.where(np.arange(24) < 20, np.arange(24) % 4, -1)
    seen = []
    found = standard_cv(
        RidgeLearner(0.5), X, y, folds_from_labels(labels), progress=lambda done, k: seen.append((done, k))
    )
    for j in range(4):
        keep = labels != j
        b = np.linalg.solve(X[keep].T @ X[keep] + 0.5 * np.eye(3), X[keep].T @ y[keep])
        assert found.scores[j] == pytest.approx(np.mean((y[~keep] - X[~keep] @ b) ** 2))
    assert found.updates == 4 * 24 - 20 and seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_seed_shuffles_and_repeats() -> None:
    X, y = rows()
    folds = folds_from_labels(np.arange(24) % 3)
    plain, one, again, other = (
        standard_cv(LeastSquaresSgd(3, 0.1), X, y, folds, shuffle_seed=seed).scores for seed in (None, 1, 1, 2)
    )
    assert np.array_equal(one, again) and not np.allclose(one, other) and not np.allclose(one, plain)
