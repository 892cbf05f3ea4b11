"""One row left out in closed form: the same numbers and bounds as from the fold's own moments."""

from __future__ import annotations

import numpy as np
import pytest
from interval_problem import interval_problem

from sparsecv_mio.search.continuous.left_out import LeftOutRows, row_keys


@pytest.mark.parametrize("size", [0, 2, 5, 6])
def test_closed_forms_agree_with_fits_of_the_fold(size: int) -> None:
    one = interval_problem(4, "loo")
    rows, rng = one.lister().evaluated, np.random.default_rng(0)
    assert isinstance(rows, LeftOutRows) and rows.scored_whole.all()
    fold = np.sort(rng.integers(0, rows.k, size=50))
    support = np.array([np.sort(rng.choice(6, size, replace=False)) for _ in fold], dtype=np.int64).reshape(50, size)
    for lam in (1e-4, 0.02, 5.0):
        a, b = rows.values(fold, support, lam), one.sets.values(fold, support, lam)
        assert np.all(np.abs(a.f - b.f) <= a.f_error + b.f_error)
        assert np.all(np.abs(a.h - b.h) <= a.h_error + b.h_error)
        assert np.allclose(a.slope, b.slope, rtol=1e-7)
        assert a.h_error.max() < 1e-5 * a.h.max()


@pytest.mark.parametrize("seed", range(4))
def test_the_curvature_bounds_second_differences(seed: int) -> None:
    one, rng = interval_problem(seed, "loo"), np.random.default_rng(seed)
    fold = np.sort(rng.integers(0, one.folds.k, size=40))
    support = np.array([np.sort(rng.choice(6, 3, replace=False)) for _ in fold], dtype=np.int64)
    fits = one.lister().evaluated.fits(fold, support)
    for low, high in ((1e-4, 2e-4), (0.01, 0.3), (1.0, 1.01)):
        bound, step = fits.curvature(low, high), (high - low) / 40.0
        for lam in np.linspace(low + step, high - step, 20):
            h = [fits.values(lam + shift).h for shift in (-step, 0.0, step)]
            second = (h[0] - 2.0 * h[1] + h[2]) / step**2
            assert np.all(second <= bound + 1e-6 * np.abs(bound) + 1e-12 * h[1] / step**2)


def test_keys_tell_supports_apart() -> None:
    few, many = np.array([[0, 61], [1, 2], [0, 61]]), np.array([[0, 99], [1, 2], [0, 99]])
    for table in (few, many):
        first, second, third = row_keys(table).tolist()
        assert first == third != second
