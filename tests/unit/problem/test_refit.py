"""Refits from the rows and from the moments against the definition, with their own bounds on rounding."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.problem.moment_refit import refit_moments
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.problem.refit import refit_rows

EPS = float(np.finfo(float).eps)


@pytest.mark.parametrize("seed", range(60))
def test_the_three_fits_agree_within_their_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(8, 40)), int(rng.integers(2, 7))
    X = rng.normal(size=(n, p)) + rng.choice([0.0, 1e3, 1e6])
    X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-6, 0) * rng.normal(size=n)
    X *= 10.0 ** rng.uniform(-3, 3, size=p)
    y = X @ (rng.normal(size=p) / X.std(axis=0)) + rng.choice([1e-6, 1e-2, 1.0]) * rng.normal(size=n)
    scale, intercept = str(rng.choice(["length", "variance", "none"])), str(rng.choice(["fold", "global", "none"]))
    data = standardize(Dataset.from_arrays(X, y), scale, intercept)
    support = np.sort(rng.choice(data.q, int(rng.integers(1, data.q + 1)), replace=False)).astype(np.int64)
    test = rng.choice(n, 3, replace=False)
    train, gamma, unit = np.setdiff1d(np.arange(n), test), 10.0 ** rng.uniform(-4, 2), data.y_unit**2

    columns = data.columns[support].tolist()
    truth = fit(X, y, columns, gamma, scale=scale, intercept=intercept, rows=train)
    made = refit_rows(data, train, support, gamma)
    assert abs(made.objective * unit - truth.objective) <= made.objective_error * unit + 1e-10 * truth.objective
    said, _ = data.coefficients(support, made.beta, np.zeros(data.q), 0.0)
    reach = made.spread * data.y_unit / data.divisor[support]
    assert np.all(np.abs(np.array(list(said.values())) - truth.beta) <= reach + 1e-9 * np.abs(truth.beta).max())
    total, rounding = made.held_out(data, test)
    expected = held_out_error(truth, X, y, test)
    assert abs(total * unit - expected) <= rounding * unit + 1e-9 * expected

    problem = row_moments(data, train).problem(data, gamma)
    again = refit_moments(problem, tuple(support.tolist()))
    lost = 1e3 * EPS * problem.yy * problem.n  # what the moments themselves have lost
    assert abs(again.objective - made.objective) <= made.objective_error + again.shortfall + lost


def test_a_support_whose_columns_are_one_has_no_error_bound() -> None:
    data = standardize(Dataset.from_arrays(np.outer(np.arange(6.0), [1.0, 2.0]), np.arange(6.0) ** 2))
    assert refit_rows(data, slice(0, 6), np.array([0, 1]), 1e-30).objective_error == np.inf
    assert np.isfinite(refit_rows(data, slice(0, 6), np.array([0]), 1e-30).objective_error)
