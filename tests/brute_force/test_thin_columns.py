"""Intervals of records against exact fractions, also of columns that hardly move compared with their size."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from draws import WAYS
from exact import ExactProblem
from thin_columns import false_ends, thin_case

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.near.near_optimal import UNKNOWN, near_optimal
from sparsecv_mio.problem import refit
from sparsecv_mio.search.api import cross_validate


@pytest.mark.parametrize("seed", range(12))
def test_bounds_contain_the_exact_numbers_to_the_last_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p, tau = int(rng.integers(6, 10)), int(rng.integers(2, 4)), int(rng.integers(1, 3))
    X = np.round(rng.normal(size=(n, p)), 2)
    y = np.round(X @ rng.normal(size=p) * 3.0 + rng.normal(size=n) / 4.0, 3)
    if seed % 3 == 0:
        X[1, -1], y[1] = 1001.0, 498.617  # a row far from the others
    scale, gamma = ("none", "length", "variance")[seed % 3], (0.5, 1.0, 10.0)[seed // 4]
    data = Dataset.from_arrays(X, y)
    plan = folds_from_labels(np.arange(n) % 3 if seed % 2 else np.arange(n))
    record = cross_validate(data, plan, gammas=[gamma], taus=[tau], scale=scale, gap=0.0, time_limit=120)
    folds, whole = (ExactProblem.from_data(data, rows, (scale, "fold"), range(p)) for rows in (plan, None))
    least = min(whole.of_support(gamma, support)[0] for support in whole.supports(tau))
    assert Fraction(record.refit.lower) <= least <= Fraction(record.refit.upper)
    low, high = folds.cv_error(gamma, tau)
    for pair in (record, *record.table):
        assert Fraction(pair.lower) <= low and high <= Fraction(pair.upper)


@pytest.mark.parametrize("intercept", ["fold", "none"])
def test_a_fill_value_does_not_make_a_column_constant(intercept: str) -> None:
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    X[11, 0] = 1e20
    data = Dataset.from_arrays(X, y)
    folds = make_folds("5", data)
    record = cross_validate(data, folds, gammas=[0.1, 1.0], taus=[2], scale="none", intercept=intercept, gap=0.0)
    assert record.cv_error > 1e36 and verify(record, data, folds).ok


def test_copies_without_an_intercept_are_told_apart_by_what_moves() -> None:
    rng = np.random.default_rng(3)
    noise = 1e-13 * rng.normal(size=(20, 2))
    X = np.column_stack([5.0 * (1.0 + noise[:, 0]), 1000.0 * (1.0 + noise[:, 1]), rng.normal(size=20)])
    data = Dataset.from_arrays(X, 10.0 * (noise[:, 0] - noise[:, 1]) / 1e-13 + rng.normal(size=20))
    folds = make_folds("2", data)
    record = cross_validate(data, folds, gammas=[0.09], taus=[1, 2, 3], intercept="none", gap=0.0)
    assert verify(record, data, folds).ok
    assert set(record.support) >= {"x0", "x1"}  # which only together have what the target has


@pytest.mark.parametrize("fractions", [True, False])
def test_a_support_whose_value_rounding_hides_is_on_no_list(fractions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a few huge cells nothing is left of the rest, and a coefficient takes what the other gives."""
    if not fractions:  # as of many rows
        monkeypatch.setattr(refit, "EXACT_WORK", 0)
    rng = np.random.default_rng(11)
    X = rng.normal(size=(28, 3))
    X[:14, 0], X[[3, 17], 1], X[23, 2] = 1.03351841e11, -1e21, -1e25
    y = np.where(np.arange(28) < 14, 6.28893938e10, rng.normal(size=28))
    y[[3, 17]] = -1.24099379e20
    data = Dataset.from_arrays(X, y)
    record = near_optimal(data, "loo", gamma=2e-4, taus=[2, 3], by="cv", within=1.0, scale="none")
    exact = ExactProblem.from_data(data, make_folds("loo", data), ("none", "fold"), range(3))
    for model in record.models:
        true = float(exact.of_support(2e-4, [data.names.index(name) for name in model.support])[1])
        assert model.value == pytest.approx(true, rel=1e-6)
    assert (record.status, UNKNOWN in record.warnings) == (("proved", False) if fractions else ("limit", True))


def test_columns_that_one_cell_makes_alike_are_apart_without_its_row() -> None:
    """Both are next to nothing there beside their penalty, and predict the row left out, of 1e28, a little apart."""
    case = thin_case(602_630)
    assert not false_ends(case, case.solved())


@pytest.mark.parametrize("seed", [400_076, 400_089, 400_249, 400_331, 400_534, 400_561])
def test_verify_refuses_no_right_end(seed: int) -> None:
    """Its own refits had lost their digits here, or a changed model or an average had."""
    case = thin_case(seed)
    for more in ({}, {"model": "average"}, {"stability": 10.0}):
        record = replace(case, words=case.words | more).solved()
        assert not false_ends(case, record)
        assert verify(record, case.data, case.folds).ok


@pytest.mark.parametrize(
    ("seed", "more"),
    [*((seed, {}) for seed in (400_076, 400_134, 400_167, 400_393, 400_710)), (400_162, {"model": "average"})],
)
def test_the_allowance_of_an_open_pair_is_of_its_lower_end(
    seed: int, more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees on the rows stop at upper ends that are right and many orders of magnitude too high.

    Where rounding takes the digits of errors, it may also tell a pair from the best one that is as good.
    """
    for place in WAYS["branch on the rows"]:
        monkeypatch.setattr(*place)
    case = thin_case(seed)
    record = replace(case, words=case.words | more).solved()
    assert not false_ends(case, record)
    assert verify(record, case.data, case.folds).ok
