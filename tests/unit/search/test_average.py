"""The averaged model: what goes into it, under every kind of folds, weights and restrictions, and within limits."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.certificate.parts import NOT_AVERAGED
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.objective import distances_of_pairs, fit
from sparsecv_mio.problem.training_moments import fits_of_all_rows, squared_errors_of_all_columns
from sparsecv_mio.search import api
from sparsecv_mio.search.answer import average
from sparsecv_mio.search.api import cross_validate, solve
from sparsecv_mio.search.options import SearchOptions

GRID: dict[str, Any] = {"gammas": [0.02, 0.3, 4.0], "taus": range(1, 6)}


@cache
def data(n: int = 40, p: int = 7) -> Dataset:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, p)) + 0.7 * rng.normal(size=(n, 1))
    y = 2.0 * X[:, 0] - X[:, 2] + 0.5 * X[:, 4] + rng.normal(size=n)
    return Dataset.from_arrays(X, y, aux={"g": np.arange(n) // 4})


def never() -> bool:
    return False


@pytest.mark.parametrize("how", [
    {"folds": "loo"}, {"folds": "holdout:0.3"}, {"folds": "forward:4", "scale": "variance"},
    {"folds": "3x4", "scale": "none", "intercept": "none"}, {"folds": "groups:g", "intercept": "global"},
    {"folds": "5", "force_in": "x3", "force_out": "x0"}, {"folds": "4", "at_most": "1:x0,x2,x4"},
    {"folds": "4", "nonnegative": "all", "taus": "0:2"}, {"folds": "4", "hierarchy": "x0=x1,x3"},
    {"folds": "5", "method": "joint"}, {"folds": "5", "method": "grid"}, {"folds": "2xblocks:5", "refine": True},
])  # fmt: skip
def test_it_goes_with_folds_units_restrictions_and_methods(how: dict[str, Any]) -> None:
    """A record is verified, and its model keeps to what was asked for."""
    how = {**GRID, **how}
    folds = make_folds(how.pop("folds"), data())
    record = cross_validate(data(), folds, **how, model="average", threads=1)
    found = record.average
    assert record.status == "proved" and found is not None and found.model.proved
    report = verify(record, data(), folds)
    assert report.ok, report.failures
    assert len(found.model.support) <= found.model.tau <= max(record.request.taus)
    assert sum(pair.weight for pair in found.pairs) == pytest.approx(1.0)
    limits = record.request.restrictions
    if limits is not None:
        assert set(limits.force_in) <= set(found.model.support)
        assert all(found.model.coefficients[name] >= 0.0 for name in set(limits.nonnegative) & set(found.model.support))
        assert len({"x0", "x2", "x4"} & set(found.model.support)) <= 1 or not limits.at_most
        assert "x0" not in found.model.support or not limits.hierarchy or {"x1", "x3"} <= set(found.model.support)


@pytest.mark.parametrize(("how", "words"), [
    ({"one_se": True}, "one_se: requires model pair, not average"),
    ({"stability": 0.5}, "stability 0.5: requires model pair, not average"),
    ({"method": "bounds"}, "model average: requires method auto, rounds, joint, algorithm1 or grid, not bounds"),
    ({"method": "descent"}, "model average: requires method auto, rounds, joint, algorithm1 or grid, not descent"),
    ({"model": "mean"}, "model: unknown word 'mean'"),
    ({"model": "pair", "own_error": True}, "own_error: requires model average"),
])  # fmt: skip
def test_what_it_does_not_go_with_is_refused_in_one_line(how: dict[str, Any], words: str) -> None:
    """The message names the option."""
    with pytest.raises(BadInput, match=words) as error:
        SearchOptions.of(**{"model": "average", **how})
    assert "\n" not in str(error.value)


def test_an_interval_of_gamma_is_refused() -> None:
    """One gamma is left of an interval: there is nothing to average."""
    with pytest.raises(BadInput, match="model requires a grid"):
        solve(data(), folds="5", gammas="0.01..1", model="average")


@pytest.mark.parametrize(("n", "p", "folds", "units"), [
    (40, 7, "loo", {}), (40, 7, "forward:4", {"intercept": "global"}), (24, 30, "2x5", {}), (24, 30, "loo", {}),
    (24, 30, "forward:4", {"scale": "variance"}), (24, 22, "4", {"scale": "none", "intercept": "none"}),
])  # fmt: skip
def test_fits_of_all_columns_are_plain_ridge_fits(n: int, p: int, folds: str, units: dict[str, Any]) -> None:
    """Held-out errors and fits of more and of fewer columns than rows, against refits."""
    rows, gammas = data(n, p), np.array([0.02, 3.0])
    plan, there = make_folds(folds, rows), standardize(rows, **units)
    errors = squared_errors_of_all_columns(there, plan, gammas, never)
    assert errors is not None
    found = fits_of_all_rows(there, gammas)
    for g, gamma in enumerate(gammas.tolist()):
        expected, times = np.zeros(n), np.zeros(n)
        for fold in range(plan.k):
            scored = plan.scored_rows(fold)
            model = fit(rows.X, rows.y, range(p), gamma, rows=plan.train_rows(fold), **units)
            expected[scored] += (rows.y[scored] - model.predict(rows.X[scored])) ** 2
            times[scored] += 1.0
        assert errors[g] * there.y_unit**2 == pytest.approx(expected / np.maximum(times, 1.0), rel=1e-8, abs=1e-14)
        coefficients, intercept = there.coefficients(np.arange(p), found.beta[g], found.v_mean, found.r_mean)
        predicted = rows.X @ np.array([coefficients[name] for name in rows.names]) + intercept
        assert predicted == pytest.approx(fit(rows.X, rows.y, range(p), gamma, **units).predict(rows.X), rel=1e-8)


def test_fits_of_all_columns_keep_their_digits_where_rows_are_nearly_alike() -> None:
    """Fewer rows than columns, these next to constant, and no intercept: products of rows have half the digits."""
    rng = np.random.default_rng(4)
    X = 1e6 + rng.normal(size=(11, 12))
    rows = Dataset.from_arrays(X, X[:, 0] - X[:, 5] + rng.normal(size=11))
    there = standardize(rows, "none", "none")
    found = fits_of_all_rows(there, np.array([1e-3]))
    beta, _ = there.coefficients(np.arange(12), found.beta[0], found.v_mean, found.r_mean)
    exact = fit(rows.X, rows.y, range(12), 1e-3, scale="none", intercept="none").beta
    assert list(beta.values()) == pytest.approx(exact, rel=1e-6, abs=1e-7 * np.abs(exact).max())


def test_fits_of_all_columns_are_left_out_where_no_size_is_near_their_average() -> None:
    """Where all of 60 columns count a little, a ridge fit predicts as well as any pair, unlike any two columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 60))
    dense, grid = Dataset.from_arrays(X, X.sum(axis=1) + rng.normal(size=40)), {"gammas": [1.0, 9.0], "taus": [1, 2]}
    folds = make_folds("5", dense)
    record = cross_validate(dense, folds, **grid, model="average", threads=1)
    assert record.average is not None and verify(record, dense).ok
    whole = [pair for pair in record.average.pairs if pair.tau == 60]
    assert [(pair.weight, pair.distance, pair.folds) for pair in whole] == [(0.0, math.inf, ())] * 2
    errors = squared_errors_of_all_columns(standardize(dense), folds, np.array(grid["gammas"]), never)
    assert errors is not None and errors.mean(axis=1).min() < record.cv_error  # they would have had a weight


@pytest.mark.parametrize(("n", "p", "spec", "how"), [
    (40, 7, "5", {}), (40, 7, "loo", {"gammas": [0.3]}), (40, 7, "forward:4", {}),
    (40, 7, "2x4", {"nonnegative": "all"}),
    (24, 30, "5", {"taus": [1, 2], "scale": "variance", "intercept": "global", "force_in": "x3"}),
])  # fmt: skip
def test_own_error_is_that_of_the_rule_within_every_fold(n: int, p: int, spec: str, how: dict[str, Any]) -> None:
    """From the pairs' weights and supports: the average of each fold, its features refitted to that, rows scored."""
    rows, how = data(n, p), {**GRID, "taus": [1, 2, 3], **how}
    folds = make_folds(spec, rows)
    record = cross_validate(rows, folds, **how, gap=0.0, threads=1, model="average", own_error=True)
    found = record.average
    assert found is not None and found.within_folds is not None and verify(record, rows, folds).ok
    units: dict[str, Any] = {name: how[name] for name in ("scale", "intercept") if name in how}
    total = 0.0
    for fold, place in enumerate(found.within_folds.folds):
        train, scored, target = folds.train_rows(fold), folds.scored_rows(fold), np.zeros(n)
        for pair in found.used:
            columns = [rows.names.index(name) for name in found.supports[pair.folds[fold]]]
            model = fit(rows.X, rows.y, columns, pair.gamma, rows=train, **units)
            target += pair.weight * model.predict(rows.X)
        columns = [rows.names.index(name) for name in found.supports[place]]
        model = fit(rows.X[train], target[train], columns, 1e-6, **units)
        total += float(((rows.y[scored] - model.predict(rows.X[scored])) ** 2).sum())
        missed = float(((target[train] - model.predict(rows.X[train])) ** 2).mean())
        assert missed <= found.allowed * (1.0 + 1e-6) or len(columns) == 3 or len(how["taus"]) == 2
    assert found.within_folds.error == pytest.approx(total / folds.scored, rel=1e-6)
    plain = cross_validate(rows, folds, **how, gap=0.0, threads=1, model="average").average
    assert plain == replace(found, within_folds=None, supports=plain.supports if plain else ())


def test_own_error_where_a_column_is_constant_without_a_fold() -> None:
    """A rare category: ridge fits of all columns have it, the fold that holds all its rows has not."""
    rows = data()
    folds = make_folds("5", rows)
    rare = np.zeros(40)
    rare[folds.scored_rows(2)] = np.linspace(0.1, 0.7, len(folds.scored_rows(2)))
    more = Dataset.from_arrays(np.column_stack([rows.X, rare]), rows.y + rare)
    grid: dict[str, Any] = {"gammas": [0.3, 4.0], "taus": [1, 2, 3]}
    record = cross_validate(more, folds, **grid, gap=0.0, threads=1, model="average", own_error=True)
    found = record.average
    assert found is not None and found.within_folds is not None
    assert any("x7" in found.supports[pair.folds[2]] for pair in found.used)
    report = verify(record, more, folds)
    assert report.ok, report.failures


def test_the_reported_pair_is_no_estimate_where_its_model_is_proved() -> None:
    """Its part in the average is proved as its fit on all rows is."""
    record = cross_validate(data(), make_folds("5", data()), **GRID, threads=1, model="average")
    assert record.average is not None and record.refit.proved
    (own,) = (one for one in record.average.pairs if (one.gamma, one.tau) == (record.gamma, record.tau))
    assert not own.estimate and own.fit is not None and record.average.supports[own.fit] == record.support


def test_the_pair_stays_what_it_is_and_the_average_predicts() -> None:
    """Table, interval and model of the pair are those of a search without; only predictions change."""
    folds = make_folds("5", data())
    plain = cross_validate(data(), folds, **GRID, threads=1)
    record = cross_validate(data(), folds, **GRID, threads=1, model="average")
    same = ("tau", "gamma", "cv_error", "lower", "upper", "table", "coefficients", "support", "refit", "status")
    assert all(getattr(record, name) == getattr(plain, name) for name in same)
    found = record.average
    assert found is not None and record.predictor is found.model and plain.predictor is plain
    columns = [data().names.index(name) for name in found.model.coefficients]
    expected = data().X[:, columns] @ np.array(list(found.model.coefficients.values())) + found.model.intercept
    assert record.predict(data()) == pytest.approx(expected)
    assert cross_validate(data(), folds, **GRID, threads=2, model="average").average == found


def test_after_a_stop_estimates_enter_and_without_time_the_pair_predicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that ends at once has open folds: they are estimates; no time at all leaves the pair, and says so."""
    stop = threading.Event()
    stop.set()
    large = data(60, 45)
    monkeypatch.setattr(api, "GRACE", 20.0)
    record = cross_validate(large, make_folds("5", large), **GRID, threads=1, stop=stop, model="average")
    found = record.average
    assert record.status == "interrupted" and found is not None
    assert all(pair.estimate for pair in found.used) and verify(record, large).ok

    def slow(*_given: Any) -> Any:
        threading.Event().wait(2.0)

    monkeypatch.setattr(api, "GRACE", 0.01)
    monkeypatch.setattr(average, "with_average", slow)
    record = cross_validate(large, make_folds("5", large), **GRID, threads=1, stop=stop, model="average")
    assert record.average is None and record.warnings[-1] == NOT_AVERAGED and verify(record, large).ok
    assert record.predict(large) == pytest.approx(replace(record, average=None).predict(large))


@pytest.mark.parametrize("seed", range(6))
def test_whole_weights_are_repeated_rows_of_one_fold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p, folds = 24, 4, 4
    X, labels, weights = rng.normal(size=(n, p)), np.arange(n) % folds, rng.integers(0, 4, size=n).astype(float)
    y, many = X @ rng.normal(size=p) + rng.normal(size=n), np.repeat(np.arange(n), weights.astype(int))
    scale = ("length", "variance", "none")[seed % 3]
    ask: dict[str, Any] = {"gammas": [0.01, 1.0], "taus": [1, 2, 3], "model": "average", "scale": scale}
    rows = Dataset.from_arrays(X, y)
    data, plan = weighted(rows, weights, lambda _: folds_from_labels(labels), name="w", by_row=True)
    one = cross_validate(data, plan, **ask)
    assert verify(one, Dataset.from_arrays(X, y, aux={"w": weights}), plan).ok
    other = cross_validate(Dataset.from_arrays(X[many], y[many]), folds_from_labels(labels[many]), **ask)
    assert one.average is not None and other.average is not None
    said = [[pair.distance for pair in record.average.pairs] for record in (one, other)]
    assert said[0] == pytest.approx(said[1], rel=1e-6, abs=1e-6)
    assert one.predictor.support == other.predictor.support
    assert one.predictor.coefficients == pytest.approx(other.predictor.coefficients, rel=1e-6)


def test_the_unit_of_weights_that_are_not_whole_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    errors, weights = rng.random((5, 30)), rng.random(30) + 0.1  # weights of no number of rows
    errors[1:] += 0.1
    plain = distances_of_pairs(errors, errors[0], np.ones(30), weights)
    assert distances_of_pairs(errors, errors[0], np.ones(30), weights / weights.sum()) == pytest.approx(plain)
    assert distances_of_pairs(errors, errors[0], np.ones(30), np.full(30, 2.0)) == pytest.approx(
        distances_of_pairs(np.repeat(errors, 2, axis=1), np.repeat(errors[0], 2), np.ones(60))
    )
