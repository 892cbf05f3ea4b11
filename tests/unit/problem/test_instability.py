"""Residuals of every row under the models without each fold, against the definition, with bounds on their rounding."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.problem.instability import residuals_without
from sparsecv_mio.problem.objective import fit


def drawn(seed: int) -> tuple[Dataset, str, str, float]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 40))
    X = rng.normal(size=(n, 4))
    if seed % 3 == 1:  # nearly dependent columns
        X[:, 1] = X[:, 0] + 10.0 ** -rng.integers(2, 9) * rng.normal(size=n)
    if seed % 3 == 2:  # large offsets
        X = X * 10.0 ** rng.integers(-3, 4, size=4) + 10.0 ** rng.integers(-2, 5, size=4)
    data = Dataset.from_arrays(X, X @ rng.normal(size=4) + rng.normal(size=n) * 10.0 ** rng.integers(-6, 2))
    if seed % 4 == 3:
        data = weighted_rows(data, rng.uniform(0.1, 3.0, size=n), "w")
    how = str(rng.choice(["length", "variance", "none"])), str(rng.choice(["fold", "global", "none"]))
    return data, *how, float(10.0 ** rng.integers(-8, 3))


@pytest.mark.parametrize("block", range(4))
def test_residuals_are_those_of_the_definition_within_their_bounds(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        data, scale, intercept, gamma = drawn(seed)
        standard, plan = standardize(data, scale, intercept), make_folds("5", data)
        support = np.arange(min(3, standard.q))
        found = residuals_without(standard, support, gamma, [plan.left_out(fold) for fold in range(5)])
        for fold in range(5):
            model = fit(
                data.X, data.y, standard.columns[support].tolist(), gamma, scale=scale, intercept=intercept,
                rows=plan.train_rows(fold), weights=data.row_weights,
            )  # fmt: skip
            true = model.residuals(data.X, data.y, np.arange(data.n)) * model.coordinates.y_unit / standard.y_unit
            if data.row_weights is not None:
                true = true * np.sqrt(data.row_weights)
            assert (np.abs(true - found.values[:, fold]) <= found.doubt[:, fold]).all()
            assert found.doubt[:, fold].max() <= 1e-7 * np.abs(standard.rows(slice(0, data.n))[1]).max()


def test_equations_that_cannot_be_solved_are_in_doubt() -> None:
    X = np.repeat(np.arange(6.0)[:, None], 2, axis=1)
    standard = standardize(Dataset.from_arrays(X, np.arange(6.0) ** 2))
    found = residuals_without(standard, np.array([0, 1]), 1e-300, [np.array([0])])
    assert np.isinf(found.doubt).all() or found.doubt.max() < 1.0
    full = residuals_without(standard, np.array([0]), 1.0, [np.zeros(0, dtype=np.int64)])
    change, doubt = found.changes(full)
    assert change[0] >= 0.0 and doubt[0] >= 0.0
