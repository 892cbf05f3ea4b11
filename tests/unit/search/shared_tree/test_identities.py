"""Bounds that follow from the fit of all columns on all rows, against every support in every fold."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.search.shared_tree.identities import (
    LARGEST_LEVERAGE,
    WIDEST_LEVERAGE,
    held_out_ceiling,
    largest_decrease,
    objective_threshold,
)

from .enumerated import VARIANTS, Enumerated

CASES = [(seed, *variant) for seed in range(3) for variant in VARIANTS]


def measured(case: Enumerated) -> tuple[float, np.ndarray, np.ndarray]:
    """The objective of all columns on all rows, and residual and leverage of every fold."""
    everything = tuple(range(case.p))
    leverage, residual = case.leave_out.leverages(case.all_rows.problem(0), 1e-12)
    return case.f[everything], residual, leverage


@pytest.mark.parametrize(("seed", "spec", "intercept"), CASES)
def test_largest_decrease(seed: int, spec: str, intercept: str) -> None:
    case = Enumerated(seed, spec=spec, intercept=intercept)
    value, residual, leverage = measured(case)
    decrease = value - case.inside[tuple(range(case.p))]
    bound = largest_decrease(residual, leverage)
    rounding = 1e-13 * value
    assert np.all(decrease <= bound * (1.0 + 1e-9) + rounding)
    if spec == "loo":  # one row: the leverage is all there is
        np.testing.assert_allclose(decrease, bound, rtol=1e-9, atol=rounding)


@pytest.mark.parametrize(("seed", "spec", "intercept"), CASES)
def test_no_winner_lies_above_its_threshold(seed: int, spec: str, intercept: str) -> None:
    case = Enumerated(seed, spec=spec, intercept=intercept)
    value, residual, leverage = measured(case)
    rng = np.random.default_rng(seed)
    winners = 0
    for size in case.taus.tolist():
        inside = np.array([case.inside[s] for s in case.of_size(size)])
        cutoff = inside.min(axis=0) + rng.uniform(0.0, 2.0, case.folds.k) * np.ptp(inside, axis=0)
        threshold = value + objective_threshold(cutoff - value, residual, leverage) * (1.0 + 1e-9)
        f = np.array([case.f[s] for s in case.of_size(size)])[:, None]
        below = inside <= cutoff
        assert np.all(f <= np.where(below, threshold, np.inf))
        winners += int((below & np.isfinite(threshold)).sum())
    assert winners > 0


@pytest.mark.parametrize(("seed", "spec", "intercept"), CASES)
def test_held_out_errors_stay_below_the_ceiling(seed: int, spec: str, intercept: str) -> None:
    case = Enumerated(seed, spec=spec, intercept=intercept)
    value, residual, leverage = measured(case)
    rng = np.random.default_rng(seed)
    for size in case.taus.tolist():
        inside, error = (np.array([table[s] for s in case.of_size(size)]) for table in (case.inside, case.error))
        cutoff = inside.min(axis=0) + rng.uniform(0.0, 1.0, case.folds.k) * np.ptp(inside, axis=0)
        ceiling = held_out_ceiling(cutoff, value, residual, leverage)
        assert np.all(error[inside <= cutoff] <= np.broadcast_to(ceiling, error.shape)[inside <= cutoff])
        assert np.isfinite(ceiling).any()


def test_leverages_beyond_which_nothing_is_said() -> None:
    one = np.ones(2)
    assert np.isinf(largest_decrease(0.0 * one, np.array([1.0, 1.5]))).all()
    assert np.isinf(objective_threshold(one, one, np.array([WIDEST_LEVERAGE, 1.0]))).all()
    assert np.isinf(held_out_ceiling(one, 0.0, one, np.array([LARGEST_LEVERAGE, 1.0]))).all()


def test_a_threshold_is_the_larger_root() -> None:
    rng = np.random.default_rng(0)
    excess, residual, leverage = rng.uniform(0, 5, 50), rng.uniform(0, 2, 50), rng.uniform(0, 0.44, 50)
    square = objective_threshold(excess, residual, leverage)

    def left(square: np.ndarray) -> np.ndarray:
        return square - (residual + np.sqrt(leverage * square)) ** 2 / (1.0 - leverage)

    np.testing.assert_allclose(left(square), excess, atol=1e-9)
    for factor in (1.01, 2.0, 100.0):
        assert np.all(left(square * factor) > excess)
