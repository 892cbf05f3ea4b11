"""Best subsets without a ridge weight, by least squares on all of them, and the criteria of R's leaps."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from repository import INSTANCES

import sparsecv_mio as sc
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.criteria import criteria


def residual_sum(X: Any, y: Any, S: tuple[int, ...], free: int, weights: Any) -> float:
    """RSS of a weighted least-squares fit."""
    A = np.column_stack([X[:, list(S)], np.ones((len(y), free))]) * np.sqrt(weights)[:, None]
    b = y * np.sqrt(weights)
    return float(np.sum((b - A @ np.linalg.lstsq(A, b, rcond=None)[0]) ** 2)) if A.shape[1] else float(b @ b)


@pytest.mark.parametrize("seed", range(8))
def test_without_a_ridge_weight_it_is_least_squares_on_the_best_of_all_subsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p, free = int(rng.integers(9, 40)), int(rng.integers(2, 7)), int(seed % 2)
    X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-4, 5, p)
    y = X[:, 0] / np.std(X[:, 0]) + rng.normal(size=n) + free
    weights = rng.uniform(0.5, 2.0, n) if seed > 3 else np.ones(n)
    data = sc.Dataset.from_arrays(X, y)
    if seed > 3:
        data = weighted_rows(data, weights, "w")
    record = sc.best_subsets(data, gammas="0", taus=range(p + 1), intercept="fold" if free else "none")
    assert record.status == "proved" and record.request.gammas == (0.0,)
    level = free * np.average(y, weights=weights)
    total, whole = float(weights @ (y - level) ** 2), residual_sum(X, y, tuple(range(p)), free, weights)
    for row, found in zip(record.path, criteria(record.path, data, bool(free)), strict=True):
        best = min(combinations(range(p), row.tau), key=lambda S: residual_sum(X, y, S, free, weights))
        rss, d = residual_sum(X, y, best, free, weights), row.tau
        assert row.support == tuple(f"x{j}" for j in best)
        assert row.lower <= rss * (1 + 1e-12) and row.upper >= rss * (1 - 1e-12)
        assert row.objective == pytest.approx(rss, rel=1e-9)
        assert found.r_squared == pytest.approx(1 - rss / total, rel=1e-9, abs=1e-12)
        left = n - d - free
        assert found.adjusted == pytest.approx(1 - rss / left / (total / (n - free)), rel=1e-9, abs=1e-12)
        cp = rss / (whole / (n - p - free)) - n + 2 * (d + free)
        assert found.cp == pytest.approx(cp, rel=1e-8, abs=1e-8)
        bic = n * math.log(rss / total) + (d + free) * math.log(n)
        assert found.bic == pytest.approx(bic, rel=1e-9, abs=1e-9)
    assert sc.verify(record, data).ok


@pytest.mark.parametrize("weighed", [False, True])
def test_an_offset_of_the_target_takes_no_digits(weighed: bool) -> None:
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(30, 4)), 2)
    y = np.round(64.0 * (X[:, 0] - X[:, 2] + rng.normal(size=30))) / 64.0  # which 2^40 leaves as they are
    tables = []
    for offset in (0.0, 2.0**40):
        data = sc.Dataset.from_arrays(X, y + offset)
        data = weighted_rows(data, np.arange(1.0, 31.0), "w") if weighed else data
        tables.append(criteria(sc.best_subsets(data, gammas=0, taus=range(5)).path, data, True))
    assert np.array(tables[1]) == pytest.approx(np.array(tables[0]), rel=1e-9, abs=1e-9)


def test_the_table_of_the_textbook() -> None:
    """James, Witten, Hastie and Tibshirani, section 6.5.1, to the digits that are printed there."""
    frame = pd.read_csv(INSTANCES / "hitters.csv")
    frame["Salary"] = 10 ** frame.pop("log10_salary")
    data = sc.Dataset.from_frame(frame, "Salary")
    table = sc.best_subsets(data, gammas=0, taus=range(1, 20)).to_frame(data)
    said = [0.321, 0.425, 0.451, 0.475, 0.491, 0.509, 0.514, 0.529, 0.535, 0.540]
    assert table.proved.all() and table.r_squared.round(3).tolist()[:10] == said
    best = [table.adjusted.idxmax(), table.cp.idxmin(), table.bic.idxmin()]
    assert [int(table.tau[at]) for at in best] == [11, 10, 6]


def test_what_cannot_be_is_not_a_number() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 7))
    data = sc.Dataset.from_arrays(X, X[:, 0] * 2.0)
    found = criteria(sc.best_subsets(data, gammas=1e-9, taus=[1, 6, 7]).path, data, True)
    assert math.isnan(found[0].cp) and math.isnan(found[-1].adjusted) and found[0].r_squared == pytest.approx(1.0)


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("intercept", ["fold", "none"])
def test_criteria_of_a_residual_that_is_rounding_error_are_undefined(offset: float, intercept: str) -> None:
    rng = np.random.default_rng(7)
    X = np.round(rng.normal(size=(40, 5)), 1) * [1.0, 10.0, 1e3, 1.0, 1.0] + offset
    y = 0.1 * X[:, 0] + 0.3 * X[:, 1] - 0.7 * X[:, 2]
    tables = []
    for noise in (0.0, 1e-4):
        data = sc.Dataset.from_arrays(X, y + noise * rng.normal(size=40))
        tables.append(sc.best_subsets(data, gammas=0, taus=range(1, 6), intercept=intercept).to_frame(data))
    exact, noisy = tables
    assert exact.cp.isna().all() and exact.bic.isna().tolist() == [False, False, True, True, True]
    assert exact.r_squared.tolist()[2:] == exact.adjusted.tolist()[2:] == [1.0] * 3
    assert (
        noisy.cp.notna().all()
        and noisy.bic.notna().all()
        and noisy.cp.iloc[-1] == pytest.approx(5 + (intercept == "fold"))
    )


def test_dependent_subsets_need_a_ridge_weight_and_others_do_not() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    wide = rng.normal(size=(20, 25))
    for columns, most, zeros in ((np.column_stack([X, X.sum(axis=1)]), 4, (0, 0.0, "0", " 0.0")), (wide, 20, (0,))):
        data = sc.Dataset.from_arrays(columns, rng.normal(size=20))
        for zero in zeros:
            with pytest.raises(
                BadInput, match="^gamma 0: [^\n]* linearly dependent; [^\n]*, or give a gamma of at least 1e-08$"
            ):
                sc.best_subsets(data, gammas=zero, taus=[1, most])
        assert sc.best_subsets(data, gammas=1e-9, taus=[1]).status == "proved"
        record = sc.best_subsets(data, gammas=0, taus=[1, 2])
        for row in record.path:
            least = min(residual_sum(columns, data.y, S, 1, np.ones(20)) for S in combinations(range(data.p), row.tau))
            assert row.proved and row.lower <= least * (1 + 1e-9) and row.upper >= least * (1 - 1e-9)
        assert sc.verify(record, data).ok
