"""Fits as functions of lam: slopes, bounds on rounding, bounds on the second derivative."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from interval_problem import interval_problem

from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.search.every_gamma import gamma_fits
from sparsecv_mio.search.every_gamma.gamma_fits import (
    Envelope,
    FitsAtLam,
    LeftOutRows,
    TrainingSets,
    kinks,
    row_keys,
)


def sample(seed: int, spec: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    one = interval_problem(seed, spec)
    fold = np.sort(rng.integers(0, one.folds.k, size=40))
    return fold, np.array([np.sort(rng.choice(6, size, replace=False)) for _ in fold], dtype=np.int64).reshape(40, size)


@pytest.mark.parametrize("spec", ["4", "loo"])
@pytest.mark.parametrize("seed", range(4))
def test_the_curvature_bounds_second_differences(seed: int, spec: str) -> None:
    one, (fold, support) = interval_problem(seed, spec), sample(seed, spec, 3)
    fits = (one.lister().evaluated if spec == "loo" else one.sets).fits(fold, support)
    for low, high in ((1e-4, 2e-4), (0.01, 0.3), (1.0, 1.01)):
        bound, step = fits.curvature(low, high), (high - low) / 40.0
        for lam in np.linspace(low + step, high - step, 20):
            h = [fits.values(lam + shift).h for shift in (-step, 0.0, step)]
            second = (h[0] - 2.0 * h[1] + h[2]) / step**2
            assert np.all(second <= bound + 1e-6 * np.abs(bound) + 1e-12 * h[1] / step**2)


def test_some_of_the_fits() -> None:
    fold, support = sample(5, "5", 2)
    fits = interval_problem(5, "5").sets.fits(fold, support)
    some = fits.select(np.array([3, 7]))
    assert len(some) == 2 and np.array_equal(some.values(0.1).select(np.array([1])).f, fits.values(0.1).f[[7]])


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


def test_tangents_of_a_parabola_meet_in_the_middle() -> None:
    share, excess = kinks((0.0, 2.0), (np.zeros(1), np.zeros(1)), (np.ones(1) * 4.0, -np.ones(1) * 4.0))
    assert share.tolist() == [0.5] and excess.tolist() == [4.0]


@pytest.mark.parametrize("seed", range(20))
def test_no_winner_is_dropped(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, mu = rng.normal(size=(30, 3)) ** 2, rng.random(size=(30, 3)) * 0.3
    yy = 10.0 + 2.0 * rng.random(30) + (a / (mu + 1.0)).sum(axis=1)
    fold, zero = np.repeat([0, 1, 2], 10), np.zeros(30)

    def values(lam: float) -> FitsAtLam:
        f, slope = yy - (a / (mu + lam)).sum(axis=1), (a / (mu + lam) ** 2).sum(axis=1)
        return FitsAtLam(f, zero, slope, zero, zero)

    low, high = 1.0, 1.0 + 2.0 * rng.random()
    left, right = values(low), values(high)
    envelope = Envelope.from_fits((low, high), fold, left, right)
    kept = envelope.may_win(left, right)
    for lam in np.linspace(low, high, 101):
        f = values(lam).f.reshape(3, 10)
        assert kept[f.argmin(axis=1) + np.array([0, 10, 20])].all()
        share = (lam - low) / (high - low)
        chord = (1.0 - share) * envelope.left + share * envelope.right
        assert np.all(f.min(axis=1) <= chord + envelope.excess + 1e-12)


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


def test_keys_tell_supports_apart() -> None:
    few, many = np.array([[0, 61], [1, 2], [0, 61]]), np.array([[0, 99], [1, 2], [0, 99]])
    for table in (few, many):
        first, second, third = row_keys(table).tolist()
        assert first == third != second


SUPPORT = np.array([1, 3, 4])


@pytest.mark.parametrize("spec", ["loo", "5", "blocks:7"])
def test_values_are_those_of_the_definition(spec: str) -> None:
    one = interval_problem(1, spec)
    data, folds = one.data.dataset, one.folds
    unit = one.data.y_unit**2
    found = one.sets.values(np.arange(folds.k), np.tile(SUPPORT, (folds.k, 1)), 0.05)
    for fold in range(folds.k):
        model = fit(data.X, data.y, SUPPORT.tolist(), 0.1, rows=folds.train_rows(fold))
        assert abs(found.f[fold] * unit - model.objective) <= found.f_error[fold] * unit
        held = held_out_error(model, data.X, data.y, folds.scored_rows(fold))
        assert abs(found.h[fold] * unit - held) <= found.h_error[fold] * unit


def test_all_rows_hold_nothing_out() -> None:
    one = interval_problem(2, "3")
    sets = TrainingSets.from_full_data(one.data)
    model = fit(one.data.dataset.X, one.data.dataset.y, SUPPORT.tolist(), 2.0)
    found = sets.values(np.zeros(1, dtype=np.int64), SUPPORT[None], 1.0)
    assert np.isclose(found.f[0] * one.data.y_unit**2, model.objective, rtol=1e-12) and found.h[0] == 0.0


def test_too_many_folds_are_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gamma_fits, "LARGEST_BYTES", 1000)
    with pytest.raises(BadInput, match="more than 2 GB"):
        interval_problem(1, "loo")
