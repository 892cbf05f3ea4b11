"""What would complete a proof."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import problems
import pytest
from runs import drawn_run, record_of, to_end

from sparsecv_mio import model_space
from sparsecv_mio.certificate.parts import SearchRequest, relative_gap
from sparsecv_mio.certificate.records import Region
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import Inconsistent
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.model_space import AtMost, Restrictions
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.search.answer.result import (
    LONGEST,
    UNWEIGHED,
    advice,
    build_record,
    check_cells,
    check_intervals,
    longer_limit,
    take_best_known_support,
)
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.pairs import pair_bounds, proved_part
from sparsecv_mio.trees.subsets import BestSubset

REQUEST = SearchRequest((0.01, 0.1, 1.0, 10.0), tuple(range(1, 31)), 1e-4)


def region(up_to_tau: int | None, from_gamma: float | None) -> Region:
    return Region(up_to_tau, from_gamma, 0.1, 3, 1.0, 1.0, 1.0, 0.0, 0.0)


def test_only_parts_with_the_reported_pair_are_advised() -> None:
    inside, outside = (advice(REQUEST, 20.0, region(9, 0.1), *pair, {}) for pair in ((0.1, 9), (0.01, 10)))
    assert (inside.tau, inside.gamma) == ("1:9", "0.1:10:3") and (outside.tau, outside.gamma) == (None, None)
    nothing = advice(REQUEST, 20.0, None, 0.1, 3, {})
    assert (nothing.tau, nothing.gamma, nothing.time_limit) == (None, None, None)


def test_what_is_advised_is_proved_by_itself() -> None:
    gap, gammas, taus, advised = 0.05, np.array([0.1, 1.0, 10.0]), np.arange(1, 5), 0
    for seed in range(600):
        rng, cells = np.random.default_rng(seed), CellTable.empty(3, 4, 1)
        h, width = rng.uniform(1.0, 1.2, size=(3, 4, 1)), rng.choice([0.0, 0.1], size=(3, 4, 1), p=[0.4, 0.6])
        cells.narrow(np.s_[:, :, :], h * (1.0 - width * rng.random(h.shape)), h * (1.0 + width * rng.random(h.shape)))
        cells.offer(np.s_[:, :, :], np.zeros(h.shape, dtype=np.int32), h, np.ones(h.shape))
        now = pair_bounds(cells, gammas, taus)
        part = proved_part(now, gap, gammas, taus)
        if part is None or now.is_certified(gap):
            continue
        ends = int(taus[part.taus - 1]) if part.taus else None, float(gammas[-part.gammas]) if part.gammas else None
        (g, t), (best_g, best_t) = now.reported_pair(gap, gammas, taus), part.bounds.best
        where = Region(*ends, float(gammas[best_g]), int(taus[best_t]), 1.0, 1.0, 1.0, 0.0, 0.0)
        asked = SearchRequest(tuple(gammas.tolist()), tuple(taus.tolist()), gap)
        found = advice(asked, None, where, float(gammas[g]), int(taus[t]), {})
        every = np.ones((3, 4), dtype=bool)
        small = every & np.isin(taus, model_space.taus(found.tau or "0", 4))
        large = every & np.isin(gammas, model_space.gammas(found.gamma or "99"))[:, None]
        for pairs in (small, large):
            assert not pairs.any() or now.restrict(pairs, gammas, taus).is_certified(gap), seed
            advised += int(pairs.any())
    assert advised > 40


@pytest.mark.parametrize("growth", [1.05, 1.2, 1.4])
def test_a_limit_follows_the_growth_of_the_costs(growth: float) -> None:
    seconds = {tau: 20.0 * growth ** (tau - 20) for tau in range(4, 21)}
    found = longer_limit(20.0, 30, seconds)
    exact = max(20.0 * growth**10, 30.0)
    assert found is not None and exact <= found * (1.0 + 1e-9) and found <= 2.0 * exact


def test_no_limit_is_advised_without_grounds() -> None:
    steep = {tau: 20.0 * 8.0 ** (tau - 10) for tau in range(4, 11)}
    assert LONGEST < 20.0 * 8.0**20 and longer_limit(20.0, 30, steep) is None
    assert longer_limit(20.0, 30, {1: 0.5, 8: 1.0}) is None
    assert longer_limit(None, 30, {tau: float(tau) for tau in range(1, 9)}) is None
    # taus that came together cost nothing more: half as long again
    assert longer_limit(20.0, 30, dict.fromkeys((5, 6, 7), 2.0)) == 30.0


def test_what_may_still_win_elsewhere_is_no_proof() -> None:
    run = to_end(drawn_run())
    record = build_record(replace(run.snapshot(), complete=False))
    assert record.status == "limit"


def test_the_interval_of_the_grid_ends_at_the_least_upper_bound_of_all_pairs() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(24, 7))
    X[:, 4] = X[:, 0] + 0.3 * rng.normal(size=24)
    data = Dataset.from_arrays(X, X[:, 0] + 0.5 * X[:, 2] + rng.normal(size=24))
    record = cross_validate(data, "4", gammas=[0.02, 0.5, 5.0], taus=range(1, 6), method="bounds", threads=1)
    own, least = record.own_row, min(row.upper for row in record.table)
    assert own is not None and own.upper > 1.05 * least
    assert record.cv_error <= record.upper == least and record.gap == relative_gap(record.lower, least)
    assert verify(record, data).failures == ()
    wider = replace(record, upper=own.upper, gap=relative_gap(record.lower, own.upper))
    assert [failure.field for failure in verify(wider, data).failures] == ["upper"]


def test_a_number_outside_of_its_interval_is_refused() -> None:
    run = to_end(drawn_run())
    record = record_of(run)
    with pytest.raises(Inconsistent, match="cv_error"):
        check_intervals(replace(record, cv_error=record.upper * 2.0))
    cells = run.state.cells.copy()
    cells.nominal[0, 0, 0] = cells.upper[0, 0, 0] * 2.0 + 1.0
    with pytest.raises(Inconsistent, match="fold 0"):
        check_cells(cells)


def test_a_limit_that_leaves_no_time_to_weigh_stability_is_said() -> None:
    run = to_end(drawn_run(stability=1.0))
    assert record_of(run).stability is not None and record_of(run).warnings == ()
    run.context.deadline.abandoned.set()
    record = record_of(run)
    assert record.stability is None and record.status == "limit"
    assert verify(record, run.context.data.dataset, run.context.folds).ok
    assert record.warnings == (UNWEIGHED,) and "stability" in UNWEIGHED


@pytest.mark.parametrize("intercept", ["none", "fold"])
def test_errors_that_a_limit_leaves_open_keep_their_digits_at_any_offset(intercept: str) -> None:
    """By moments alone those of columns far from zero would be wrong by up to a thousandth of their value."""
    rng, scored = np.random.default_rng(5), 0
    for case in range(12):
        n, p = int(rng.integers(9, 25)), int(rng.integers(2, 6))
        X = rng.normal(size=(n, p)) + 10.0 ** rng.uniform(1, 6) * rng.choice([-1.0, 0.5, 1.0], size=p)
        y = X[:, 0] - X[:, 1] + rng.normal(size=n) * 10.0 ** rng.uniform(-3, 0)
        data, gamma = Dataset.from_arrays(X, y), float(10.0 ** rng.uniform(-4, 1))
        folds = make_folds(("loo", "4", "3x2")[case % 3], data)
        method = ("auto", "joint", "grid")[case // 3 % 3]
        record = cross_validate(
            data, folds, gammas=[gamma], taus=range(1, p + 1), intercept=intercept, method=method,
            time_limit=0.02, threads=1,
        )  # fmt: skip
        for fold in record.chosen_folds:
            columns = [data.names.index(name) for name in fold.support]
            model = fit(X, y, columns, record.gamma, intercept=intercept, rows=folds.train_rows(fold.fold))
            true, size = held_out_error(model, X, y, folds.scored_rows(fold.fold)), int(folds.sizes[fold.fold])
            scored += 1
            assert abs(fold.error - true) <= 1e-8 * (true + size * record.cv_error)
    assert scored > 100


@pytest.mark.parametrize("seed", [0, 15, 17])
def test_the_best_of_many_supports_that_moments_cannot_tell_apart_is_reported(seed: int) -> None:
    """Offsets of 1e5 and no intercept: moments tie nearly all of 126 supports; the best by rows is the model."""
    rng = np.random.default_rng(seed)
    E = rng.normal(size=(9, 9))
    X = 1e5 * rng.normal(size=9) + E
    data = Dataset.from_arrays(X, E[:, 1] - E[:, 2] + E[:, 4] + rng.normal(size=9))
    folds = make_folds("holdout:0.3", data)
    record = cross_validate(data, folds, gammas=[1e-3], taus=[5], intercept="none", threads=1)
    every = (fit(data.X, data.y, S, 1e-3, intercept="none").objective for S in combinations(range(9), 5))
    assert record.refit.objective == pytest.approx(min(every), rel=1e-6) and record.refit.proved
    assert verify(record, data).ok


def test_the_model_has_the_first_of_equal_columns_as_the_folds_have() -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 4))
        late = X[:, 0] if seed % 2 else 3.0 - 2.0 * X[:, 0]
        data = Dataset.from_arrays(np.column_stack([X, late]), X[:, :3] @ [1.0, -2.0, 0.5] + rng.standard_normal(40))
        record = cross_validate(data, make_folds("5", data), gammas=(0.01, 0.1), taus=(2, 3))
        assert "x0" in record.coefficients and "x4" not in record.coefficients
        assert verify(record, data).ok
    forced = cross_validate(data, make_folds("5", data), gammas=(0.1,), taus=(2,), force_in=("x4",))
    assert "x4" in forced.coefficients and verify(forced, data).ok


def with_open_model(restrict: dict[str, Any], supports: list[list[int]], tau: int, start: list[int]) -> list[int]:
    data = problems.linear(3, 40, 6, {0: 1.0, 1: 1.0, 2: -1.0}, noise=0.1)
    std = standardize(data, restrictions=Restrictions(**restrict).resolve_names(data.names))
    cell = BestSubset.from_bounds(tau, np.array(start))
    counts = [3] + [1] * (len(supports) - 1)
    better = take_best_known_support(std, 0.1, cell, [np.array(support) for support in supports], counts)
    return [int(j) for j in better.support]


def test_an_open_model_of_all_rows_begins_with_the_supports_of_its_folds() -> None:
    assert with_open_model({}, [[0, 1], [1, 2], [2, 4]], 3, [3, 4, 5]) == [0, 1, 2]  # those that most folds choose
    assert with_open_model({}, [[3, 4], [0, 2]], 2, [4, 5]) == [0, 2]  # one of them
    assert with_open_model({}, [[3, 4]], 2, [0, 1]) == [0, 1]  # what is known stays where it is better
    assert with_open_model({"nonnegative": ["x2"]}, [[0, 2], [1, 2]], 2, [3, 4]) == [
        1
    ]  # x2 has a wrong sign and leaves
    assert with_open_model({"at_most": [AtMost(1, ("x0", "x1"))]}, [[0, 2], [1, 2]], 3, [3, 4, 5]) != [0, 1, 2]


def test_estimates_of_a_budget_are_accurate_where_moments_lose_their_digits() -> None:
    """Without an intercept, columns of 1.4e9 leave no digit of the losses by moments: rows are fitted instead."""
    rng = np.random.default_rng(0)
    X = 1.39e9 + np.array([5.0, 500.0]) * rng.normal(size=(11, 2))
    data = Dataset.from_arrays(X, 0.5 * X[:, 0] + rng.normal(size=11))
    record = cross_validate(
        data, make_folds("4", data), gammas=[2745.0], taus=[0, 2], intercept="none", method="joint", mio_budget=1,
        sources="weighted-trees,enclosures",
    )  # fmt: skip
    assert record.status == "limit" and record.tau == 2 and verify(record, data).ok


@pytest.mark.parametrize("gamma", [1e-8, 1e-16, 1e-300])
def test_coefficients_after_a_limit_have_the_required_signs(gamma: float) -> None:
    x = np.array([2.0, 1.0, 0.0, -2.0])
    data = Dataset.from_arrays(np.column_stack([x, x + [2.0**-30, 0, 0, 0]]), x - [1.0, 2.0, 2.0, 2.0])
    how: dict[str, Any] = {"gammas": [gamma], "taus": [2], "nonnegative": ["x0", "x1"], "time_limit": 1e-9}
    path = best_subsets(data, **how)
    for row in (cross_validate(data, "2", **how), *path.path):
        assert row.support and min(row.coefficients.values()) >= 0.0
    assert verify(path, data).ok
