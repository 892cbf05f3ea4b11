"""Ridge fits from moments, against fits from the rows: within the bounds they state."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments, objective_rounding, tie_margin


@pytest.mark.parametrize("seed", range(20))
def test_values_and_coefficients_are_within_their_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, noise = 5, 10.0 ** rng.uniform(-5, 0)
    X = rng.normal(size=(25, p)) + 10.0 ** rng.uniform(-2, 3) * rng.normal(size=(25, 1))  # nearly collinear
    data = standardize(Dataset.from_arrays(X, X[:, 0] + noise * rng.normal(size=25)))
    gamma = 10.0 ** rng.uniform(-4, 1)
    supports = [np.arange(0), np.array([2]), np.array([0, 3]), np.arange(p)]
    fits = fit_from_moments(full_problem(data, gamma), supports)
    for row, support in enumerate(supports):
        exact = refit_rows(data, slice(0, data.n), support, gamma)
        error = fits.value_error[row] + exact.objective_error
        assert abs(fits.value[row] - exact.objective) <= error
        spread = fits.spread[row, : len(support)] + exact.spread
        assert np.all(np.abs(fits.coefficients(row) - exact.beta) <= spread)


@pytest.mark.parametrize("ends", [None, (np.zeros(1), np.full(1, np.inf)), (np.full(1, -np.inf), np.zeros(1))])
def test_bounds_hold_if_the_product_of_column_and_target_cancels(ends: tuple[np.ndarray, np.ndarray] | None) -> None:
    """The product is 0 in exact arithmetic up to 1e-17, of terms of size 0.1."""
    X, y, gamma = np.array([[1.0], [1.0], [2.0], [0.5]]), np.array([0.1, 0.2, -0.15, 3e-17]), 0.5
    data = standardize(Dataset.from_arrays(X, y), "none", "none")
    fits = fit_from_moments(full_problem(data, gamma), [np.zeros(1, dtype=np.int64)], ends)
    x, t = list(map(Fraction, X[:, 0].tolist())), list(map(Fraction, y.tolist()))
    b = sum(v * r for v, r in zip(x, t, strict=True)) / (sum(v * v for v in x) + Fraction(gamma) / 2)
    if ends is not None:
        b = max(b, Fraction(0)) if ends[0][0] == 0.0 else min(b, Fraction(0))
    value = sum((r - v * b) ** 2 for v, r in zip(x, t, strict=True)) + Fraction(gamma) / 2 * b * b
    unit = Fraction(float(data.divisor[0])) / Fraction(data.y_unit)
    assert abs(Fraction(float(fits.beta[0, 0])) - b * unit) <= fits.spread[0, 0] <= 1e-13
    assert abs(Fraction(float(fits.value[0])) - value / Fraction(data.y_unit) ** 2) <= fits.value_error[0] <= 1e-13


def test_a_singular_support_has_no_value() -> None:
    problem = SparseProblem(np.full((3, 3), 1e16), np.full(3, 1e8), 2.0, np.ones(3), 1e-3, 4, np.zeros(3), 0.0)
    fits = fit_from_moments(problem, [np.array([1]), np.array([0, 1])])
    assert np.isfinite(fits.value_error[0]) and fits.value_error[1] == np.inf


def test_margins_grow_with_the_value() -> None:
    problem = SparseProblem(np.eye(1), np.ones(1), 2.0, np.ones(1), 1.0, 4, np.zeros(1), 0.0)
    assert 0.0 < objective_rounding(problem) == tie_margin(problem, 0.0) < tie_margin(problem, 1.0) < 1e-7


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_effects_of_a_share_of_1e24_separate_supports_with_factors(seed: int) -> None:
    """All fits are perfect up to 1e-24 of the target; their residuals decide which column is second."""
    rng = np.random.default_rng(seed)
    a = 1e11 + 0.1 * rng.normal(size=14)
    X = np.column_stack([a, rng.normal(size=(14, 3)), np.eye(3)[rng.integers(0, 3, 14)]])
    levels = ("f=u", "f=v", "f=w")
    data = Dataset.from_arrays(X, 7.39 * a + rng.normal(size=14), ["a", "b", "c", "d", *levels])
    record = cross_validate(data, "2", gammas=[1e-3], taus=[2], intercept="none", count=[levels])
    assert record.status == "proved" and verify(record, data).ok
