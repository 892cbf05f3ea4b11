"""Supports fitted on all rows, and when two of their objectives cannot be tied."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.search.problems.left_out_folds import (
    LARGEST_LEVERAGE,
    WIDEST_LEVERAGE,
    clear_of_ties,
    held_out_ceiling,
    is_best_untied,
    is_well_known,
    largest_decrease,
    objective_threshold,
)
from sparsecv_mio.units import ACCURATE_RTOL

from .enumerated import VARIANTS, Enumerated


def test_near_ties_are_not_clear() -> None:
    best = np.ones(4)
    second = 1.0 + np.array([0.0, 1e-10, 1e-6, 1.0])
    assert is_best_untied(best, second, 1e-12).tolist() == [False, False, True, True]
    assert is_best_untied(best, second, 1e-3).tolist() == [False, False, False, True]
    form = Enumerated().all_rows.normal_form(0)
    assert clear_of_ties(best, np.append(second[:3], np.inf), form).tolist()[0] is False
    assert bool(clear_of_ties(np.ones(1), np.array([np.inf]), form)[0])


CASES = [(seed, *variant) for seed in range(3) for variant in VARIANTS]


def raised_by(case: Enumerated) -> float:
    """What leverages are raised by."""
    return ACCURATE_RTOL + case.all_rows.normal_form(0).keep


def measured(case: Enumerated) -> tuple[float, np.ndarray, np.ndarray]:
    """The objective of all columns on all rows, and residual and leverage of every fold."""
    everything = tuple(range(case.p))
    leverage, residual = case.left_out.leverages(0)
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
        exact = largest_decrease(residual, (leverage - raised_by(case)) / (1.0 + raised_by(case)))
        np.testing.assert_allclose(decrease, exact, rtol=1e-9, atol=rounding)


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


def test_a_support_whose_error_is_not_known_is_not_shown() -> None:
    case = Enumerated()
    root = case.full_fit([0, 1])
    scores = root.scores(0, case.folds.k).copy()
    scores.error[0, 3] = scores.held_out[0, 3] + 1.0
    known = is_well_known(root, scores)
    assert not known[0, 3] and known[0, :3].all() and not known[2].any()  # nothing was asked of the last row
