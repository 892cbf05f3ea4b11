"""Fits in one fold, against fits from the rows: within the bounds they state."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem import objective
from sparsecv_mio.problem.training_moments import training_moments
from sparsecv_mio.search.problems.fold_fits import HeldOutFold
from sparsecv_mio.units import ACCURATE_RTOL, MOMENTS_RTOL


@pytest.mark.parametrize("rows", [24, 400])
@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
@pytest.mark.parametrize("noise", [1.0, 1e-6])
def test_errors_are_those_of_the_definition(rows: int, intercept: str, noise: float) -> None:
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 4)) + 3.0
    raw = Dataset.from_arrays(X, X[:, 0] - X[:, 3] + noise * rng.normal(size=rows))
    data, folds = standardize(raw, "length", intercept), make_folds("3", raw)
    supports = [np.arange(0), np.array([1]), np.array([0, 3])]
    for fold, moments in training_moments(data, folds):
        problem = moments.problem(data, 0.05)
        held_out = HeldOutFold(data, folds, fold, problem)
        assert held_out.by_moments == (rows == 400) and held_out.count == len(folds.scored_rows(fold))
        fits = held_out.fit(problem, supports)
        for i, support in enumerate(supports):
            columns, train = data.columns[support].tolist(), folds.train_rows(fold)
            fit = objective.fit(X, raw.y, columns, 0.05, intercept=intercept, rows=train)
            error = objective.held_out_error(fit, X, raw.y, folds.scored_rows(fold)) / data.y_unit**2
            assert fits.objective[i] == pytest.approx(fit.objective / data.y_unit**2, rel=1e-8)
            width = fits.objective_upper[i] - fits.objective_lower[i]
            assert width <= 20 * MOMENTS_RTOL * fits.objective[i] + 1e-18
            assert fits.held_out_lower[i] - 1e-8 * error <= error <= fits.held_out_upper[i] + 1e-8 * error
            width = fits.held_out_upper[i] - fits.held_out_lower[i]
            assert width <= 2e2 * ACCURATE_RTOL * fits.held_out[i] + 1e-18
