"""Fits as functions of lam: slopes, bounds on rounding, bounds on the second derivative."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from interval_problem import interval_problem


def sample(seed: int, spec: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    one = interval_problem(seed, spec)
    fold = np.sort(rng.integers(0, one.folds.k, size=40))
    return fold, np.array([np.sort(rng.choice(6, size, replace=False)) for _ in fold], dtype=np.int64).reshape(40, size)


@pytest.mark.parametrize("size", [0, 1, 3, 6])
@pytest.mark.parametrize("spec", ["loo", "5"])
def test_factors_and_solves_agree_within_their_bounds(spec: str, size: int) -> None:
    fold, support = sample(3, spec, size)
    sets = interval_problem(3, spec).sets
    fits = sets.fits(fold, support)
    for lam in (1e-4, 0.03, 5.0):
        a, b = fits.values(lam), sets.values(fold, support, lam)
        assert np.all(np.abs(a.f - b.f) <= a.f_error + b.f_error)
        assert np.all(np.abs(a.h - b.h) <= a.h_error + b.h_error)
        assert np.allclose(a.slope, b.slope, rtol=1e-8)
        assert a.f_error.max() < 1e-8 * a.f.max()


@pytest.mark.parametrize("seed", range(4))
def test_the_curvature_bounds_second_differences(seed: int) -> None:
    fold, support = sample(seed, "4", 3)
    fits = interval_problem(seed, "4").sets.fits(fold, support)
    for low, high in ((1e-4, 2e-4), (0.01, 0.3), (1.0, 1.01)):
        bound, step = fits.curvature(low, high), (high - low) / 40.0
        for lam in np.linspace(low + step, high - step, 20):
            h = [fits.values(lam + shift).h for shift in (-step, 0.0, step)]
            second = (h[0] - 2.0 * h[1] + h[2]) / step**2
            assert np.all(second <= bound + 1e-6 * np.abs(bound) + 1e-12 * h[1] / step**2)


def test_some_of_the_fits() -> None:
    fold, support = sample(5, "5", 2)
    fits = interval_problem(5, "5").sets.fits(fold, support)
    some = fits.at(np.array([3, 7]))
    assert len(some) == 2 and np.array_equal(some.values(0.1).at(np.array([1])).f, fits.values(0.1).f[[7]])


def test_a_matrix_that_is_singular_to_rounding_is_factorised() -> None:
    """At a lam below the rounding of columns that are copies."""
    one = interval_problem(3, "5").sets
    G = np.array(one.G)
    G[:, :, 1], G[:, 1, :] = G[:, :, 0], G[:, 0, :]
    G[:, 1, 1] = G[:, 0, 0]
    sets = replace(one, G=G, c=np.ones_like(one.c))
    fold, support = np.arange(2), np.array([[0, 1], [0, 1]])
    values = sets.values(fold, support, 1e-30)
    assert np.all(np.isfinite(values.f)) and np.array_equal(values.f, sets.fits(fold, support).values(1e-30).f)
