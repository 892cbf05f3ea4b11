"""compute_bounds and its tables."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from every_support import brute_force_cv_error

from sparsecv_mio.bounds.all_folds import BoundsHooks, Known
from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.bounds.fold import FoldBounds, Origin, Which
from sparsecv_mio.bounds.table import BoundsTable, PrintedTable
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.accumulate import training_moments


def problem(seed: int = 0, n: int = 40, p: int = 6) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-2, 3, p) + 5.0
    y = 100.0 * (X - X.mean(0)) @ (rng.standard_normal(p) / X.std(0)) + 50.0 * rng.standard_normal(n)
    return Dataset.from_arrays(X, y)


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
@pytest.mark.parametrize("spec", ["loo", "5", "blocks:8", "holdout:0.3"])
def test_intervals_in_units_of_the_file(intercept: str, spec: str) -> None:
    data = problem()
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
                assert table.decided(g, t) == folds.k and ends.width < 1e-7 * ends.upper
    least = table.minimum()
    assert least.lower <= least.upper == table.cv_interval(*table.best()).upper


def test_families_nest_and_supports_help() -> None:
    data = problem(1)
    standard, folds = standardize(data), make_folds("5", data)
    tables = {which: compute_bounds(standard, folds, [0.05], range(1, 6), which) for which in Which}
    safe = tables[Which.SAFE]
    for which in (Which.CONIC, Which.AGGREGATED):
        assert np.all(safe.lower >= tables[which].lower * (1 - 0.02) - 1e-3)
        assert np.all(safe.upper <= tables[which].upper * (1 + 0.02))
    given = compute_bounds(standard, folds, [0.05], [2], known=Known([np.array([0, 1]), np.array([4, 2])]))
    assert np.all(given.objective_upper <= safe.objective_upper[:, 1:2] * (1 + 1e-9))


def test_threads_and_order_of_taus_change_nothing() -> None:
    data = problem(2)
    standard, folds = standardize(data), make_folds("loo", data)
    one = compute_bounds(standard, folds, [0.1], [1, 2, 3])
    two = compute_bounds(standard, folds, [0.1], [3, 1, 2], threads=2)
    assert np.allclose(one.lower[:, [2, 0, 1]], two.lower) and np.allclose(one.upper[:, [2, 0, 1]], two.upper)


def test_stop_leaves_valid_intervals() -> None:
    data = problem(3)
    stop = threading.Event()
    stop.set()
    table = compute_bounds(standardize(data), make_folds("5", data), [1.0], [2], hooks=BoundsHooks(stop=stop))
    assert np.isinf(table.upper).any() and table.cv_interval(0, 0).upper == np.inf
    assert table.to_dict()["table"][0]["upper"] is None


def test_printed_table_is_another_type() -> None:
    data = problem(4)
    table = compute_bounds(standardize(data), make_folds("5", data), [1.0], [1, 2], "as-printed")
    assert isinstance(table, PrintedTable) and not table.certified
    assert not hasattr(table, "interval") and not hasattr(table, "cv_interval") and not hasattr(table, "minimum")
    assert table.to_dict()["certified"] is False
    low, high, middle = table.cv_estimates(0, 1)
    assert low <= middle * 1.5 and low <= high


def test_one_fold_by_itself_meets_the_table() -> None:
    data = problem(5)
    standard, folds = standardize(data), make_folds("5", data)
    table = compute_bounds(standard, folds, [0.3], [2])
    for fold, moments in training_moments(standard, folds):
        inner = moments.problem(standard, 0.3)
        V, r = standard.rows(folds.test_rows(fold))
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
    data = problem()
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
