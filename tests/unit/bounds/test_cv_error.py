"""compute_bounds: the truth inside, families, one fold by itself, misuse."""

from __future__ import annotations

import numpy as np
import pytest
from every_support import brute_force_cv_error

from sparsecv_mio.bounds.all_folds import Known
from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.bounds.fold import FoldBounds, Origin, Which
from sparsecv_mio.bounds.table import BoundsTable
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.accumulate import training_moments

from .drawn import random_data


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
@pytest.mark.parametrize("spec", ["loo", "5", "blocks:8", "holdout:0.3"])
def test_intervals_in_units_of_the_file(intercept: str, spec: str) -> None:
    data = random_data()
    folds = make_folds(spec, data)
    taus, gammas = (0, 1, 3, 6), (0.1, 2.0)
    standard = standardize(data, "length", intercept)
    table = compute_bounds(standard, folds, gammas, taus)
    assert isinstance(table, BoundsTable) and table.certified
    for g, gamma in enumerate(gammas):
        for t, tau in enumerate(taus):
            low, high = brute_force_cv_error(data.X, data.y, folds.labels, tau, gamma, intercept=intercept)
            ends = table.cv_interval(g, t)
            assert ends.lower <= low * (1 + 1e-9) and high * (1 - 1e-9) <= ends.upper
            if tau in (0, 6):
                assert table.decided(g, t) == folds.k and ends.upper - ends.lower < 1e-7 * ends.upper
    least = table.minimum()
    assert least.lower <= least.upper == table.cv_interval(*table.best()).upper


def test_families_nest_and_supports_help() -> None:
    data = random_data(1)
    standard, folds = standardize(data), make_folds("5", data)
    tables = {which: compute_bounds(standard, folds, [0.05], range(1, 6), which) for which in Which}
    safe = tables[Which.SAFE]
    for which in (Which.CONIC, Which.AGGREGATED):
        assert np.all(safe.lower >= tables[which].lower * (1 - 0.02) - 1e-3)
        assert np.all(safe.upper <= tables[which].upper * (1 + 0.02))
    given = compute_bounds(standard, folds, [0.05], [2], known=Known([np.array([0, 1]), np.array([4, 2])]))
    assert np.all(given.objective_upper <= safe.objective_upper[:, 1:2] * (1 + 1e-9))


def test_one_fold_by_itself_meets_the_table() -> None:
    data = random_data(5)
    standard, folds = standardize(data), make_folds("5", data)
    table = compute_bounds(standard, folds, [0.3], [2])
    for fold, moments in training_moments(standard, folds):
        inner = moments.problem(standard, 0.3)
        V, r = standard.rows(folds.scored_rows(fold))
        alone = FoldBounds(inner, V, r)
        alone.best[2] = float(table.objective_upper[0, 0, fold])
        ends = alone.cells([2])[0].interval
        assert ends.lower <= table.upper[0, 0, fold] and table.lower[0, 0, fold] <= ends.upper
        exact = FoldBounds(inner, V, r).cells([0, 6])
        assert [cell.low_origin for cell in exact] == [Origin.EXACT] * 2


@pytest.mark.parametrize(
    ("gammas", "taus", "which", "word"),
    [
        ([], [1], "safe", "empty"),
        ([-1.0], [1], "safe", "gamma"),
        ([1.0], [99], "safe", "tau"),
        ([1.0], [1], "x", "unknown"),
    ],
)
def test_misuse_is_one_line(gammas: list[float], taus: list[int], which: str, word: str) -> None:
    data = random_data()
    with pytest.raises(BadInput, match=word) as error:
        compute_bounds(standardize(data), make_folds("5", data), gammas, taus, which)  # type: ignore[call-overload]
    assert "\n" not in str(error.value)


def test_solve_by_bounds_alone() -> None:
    from sparsecv_mio.search.api import cross_validate

    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 7))
    X[:, 1:4] += X[:, :1]
    dataset = Dataset.from_arrays(X, X[:, 0] + X[:, 4] + 2.0 * rng.standard_normal(40))
    folds = make_folds("5", dataset)
    truth = cross_validate(dataset, folds, gammas=[0.01, 0.1], taus=range(1, 7), method="rounds", gap=0.0)
    record = cross_validate(dataset, folds, gammas=[0.01, 0.1], taus=range(1, 7), method="bounds")
    assert record.status == "limit" and record.work.mios == 0
    assert record.lower <= truth.cv_error <= record.upper
    for options in ({"mio_budget": 2}, {"backend": "highs"}):
        with pytest.raises(BadInput):
            cross_validate(dataset, folds, gammas=[0.1], taus=[1], method="bounds", **options)
