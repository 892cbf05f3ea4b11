"""The bootstrap of the procedure against enumeration of all supports on every draw, with copied rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import sparsecv_mio as sc
from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import inner_folds, make_folds
from sparsecv_mio.errors import BadInput, SparseCVWarning
from sparsecv_mio.inference.draws import Draw, bootstrap_draws

GAMMAS, TAUS = (0.5, 5.0), (1, 2, 3)


def make_data(n: int = 18, p: int = 4) -> Dataset:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, p))
    return Dataset.from_arrays(X, X[:, 0] + 0.6 * X[:, 1] + rng.normal(size=n))


def fit(X: FloatArray, y: FloatArray, gamma: float) -> tuple[FloatArray, float, float]:
    """Return coefficients, intercept and objective of a ridge fit with penalty gamma/2 and a free intercept."""
    V, r = X - X.mean(axis=0), y - y.mean()
    beta = np.linalg.solve(V.T @ V + 0.5 * gamma * np.eye(X.shape[1]), V.T @ r)
    objective = float(((r - V @ beta) ** 2).sum() + 0.5 * gamma * beta @ beta)
    return beta, float(y.mean() - X.mean(axis=0) @ beta), objective


def best_subset(X: FloatArray, y: FloatArray, gamma: float, tau: int) -> list[int]:
    supports = [list(support) for support in combinations(range(X.shape[1]), tau)]
    return min(supports, key=lambda support: fit(X[:, support], y, gamma)[2])


def choose_by_enumeration(
    data: Dataset, folds: FoldPlan, draw: Draw
) -> tuple[float, int, list[int], FloatArray, float]:
    """Return gamma, tau, support, coefficients and intercept of the best pair over all supports of every fold."""
    rows = np.repeat(draw.rows, draw.weights)
    labels = np.repeat(inner_folds(folds, draw.rows, draw.select_rows(data)).labels, draw.weights)
    X, y = data.X[rows], data.y[rows]
    errors = {}
    for gamma in GAMMAS:
        for tau in TAUS:
            total = 0.0
            for fold in range(labels.max() + 1):
                train, test = labels != fold, labels == fold
                support = best_subset(X[train], y[train], gamma, tau)
                beta, intercept, _ = fit(X[train][:, support], y[train], gamma)
                total += float(((y[test] - X[test][:, support] @ beta - intercept) ** 2).sum())
            errors[gamma, tau] = total / len(y)
    gamma, tau = min(errors, key=errors.__getitem__)
    support = best_subset(X, y, gamma, tau)
    beta, intercept, _ = fit(X[:, support], y, gamma)
    return gamma, tau, support, beta, intercept


def solve(data: Dataset, **options: object) -> Record:
    return sc.cross_validate(data, "4", gammas=GAMMAS, taus=TAUS, gap=0.0, threads=1, scale="none", **options)  # type: ignore[arg-type]


def test_every_draw_agrees_with_enumeration() -> None:
    data = make_data()
    record = solve(data)
    made = sc.bootstrap(record, data, draws=12, seed=5, threads=1)
    found, folds = made.bootstrap, make_folds("4", data)
    assert found is not None and found.certified == 12 and found.plan.units == "rows" and found.plan.n_units == 18
    coefficients = np.zeros((12, data.p))
    for draw, chosen in zip(bootstrap_draws(data, folds, 12, 5), found.chosen, strict=True):
        gamma, tau, support, beta, intercept = choose_by_enumeration(data, folds, draw)
        assert (chosen.draw, chosen.gamma, chosen.tau) == (draw.number, gamma, tau)
        assert chosen.support == tuple(data.names[j] for j in support)
        assert list(chosen.coefficients.values()) == pytest.approx(beta, rel=1e-8)
        assert chosen.intercept == pytest.approx(intercept, rel=1e-8)
        coefficients[draw.number, support] = beta
    for row in found.features:
        values = coefficients[:, data.names.index(row.feature)]
        assert row.draws == np.count_nonzero(values) and row.frequency == row.draws / 12
        assert row.zeros == (12 - row.draws) / 12
        interval = binomtest(row.draws, 12).proportion_ci(0.95, "wilson")
        assert (row.lower, row.upper) == pytest.approx((interval.low, interval.high))
        assert (row.coefficient_low, row.coefficient_high) == pytest.approx(np.quantile(values, [0.025, 0.975]))
    sizes, models = Counter(one.tau for one in found.chosen), Counter(one.support for one in found.chosen)
    assert {one.tau: one.draws for one in found.sizes} == sizes
    assert {one.support: one.draws for one in found.models} == models
    report = sc.verify(made, data)
    assert report.ok and "read but not checked: bootstrap.chosen" in report.verdict
    assert Record.from_json(made.to_json()) == made


def test_verify_recomputes_the_numbers_from_the_models() -> None:
    data = make_data()
    made = sc.bootstrap(solve(data), data, draws=5, threads=1)
    found = made.bootstrap
    assert found is not None
    first = found.features[0]
    for altered, field in (
        (replace(found, features=(replace(first, frequency=0.5), *found.features[1:])), "bootstrap.features"),
        (replace(found, features=(replace(first, upper=0.9), *found.features[1:])), "bootstrap.features[0].upper"),
        (replace(found, features=(replace(first, coefficient_high=9.0), *found.features[1:])), "coefficient_high"),
        (replace(found, sizes=()), "bootstrap.sizes"),
        (replace(found, models=found.models[1:]), "bootstrap.models"),
        (replace(found, certified=0), "bootstrap.certified"),
        (replace(found, chosen=(*found.chosen, found.chosen[0])), "bootstrap.chosen"),
        (replace(found, chosen=(replace(found.chosen[0], gamma=0.7), *found.chosen[1:])), "bootstrap.chosen[0].tau"),
    ):
        failures = sc.verify(replace(made, bootstrap=altered), data).failures
        assert failures and field in failures[0].field


def test_draws_do_not_depend_on_their_number_and_are_stored(tmp_path: Path) -> None:
    data, store = make_data(), tmp_path / "draws.jsonl"
    record = solve(data)
    few = sc.bootstrap(record, data, draws=3, threads=1, store=store).bootstrap
    more = sc.bootstrap(record, data, draws=6, threads=1, store=store).bootstrap
    assert few is not None and more is not None and more.chosen[:3] == few.chosen
    assert len(store.read_text(encoding="utf-8").splitlines()) == 7
    alone = sc.bootstrap(record, data, draws=6, threads=1).bootstrap
    assert alone == more


def test_a_gap_of_its_own_is_stated() -> None:
    data = make_data()
    found = sc.bootstrap(solve(data), data, draws=3, threads=1, gap=0.1).bootstrap
    assert found is not None and found.plan.gap == 0.1 and all(one.gap <= 0.1 for one in found.chosen)


def test_a_limit_before_the_first_draw_leaves_the_answer() -> None:
    data = make_data()
    record = solve(data)
    with pytest.warns(SparseCVWarning, match="after 0 of 50 draws"):
        made = sc.bootstrap(record, data, draws=50, threads=1, time_limit=1e-9)
    assert made.bootstrap is None and replace(made, warnings=record.warnings) == record


def test_adjusted_columns_are_in_every_model() -> None:
    data = make_data()
    made = sc.bootstrap(solve(data, adjust="x3", force_in="x2"), data, draws=4, threads=1)
    assert made.bootstrap is not None
    rows = {one.feature: one for one in made.bootstrap.features}
    assert rows["x3"].forced and rows["x2"].forced and rows["x3"].frequency == 1.0 and not rows["x0"].forced
    assert rows["x3"].coefficient_low < rows["x3"].coefficient_high and sc.verify(made, data).ok


def test_wrong_values_are_refused_in_one_line() -> None:
    data = make_data()
    record = solve(data)
    with pytest.raises(BadInput, match="bootstrap: 0 is out of range"):
        sc.bootstrap(record, data, draws=0)
    with pytest.raises(BadInput, match="level: 1.0 is out of range"):
        sc.bootstrap(record, data, level=1.0)
    with pytest.raises(BadInput, match="gap: 2 is out of range"):
        sc.bootstrap(record, data, gap=2.0)
    with pytest.raises(TypeError, match="did you mean 'seed'"):
        sc.bootstrap(record, data, sed=1)


def test_frequencies_are_a_frame() -> None:
    data = make_data()
    record = sc.cross_validate(data, "3", gammas=0.5, taus=[1, 2])
    drawn = sc.stability_selection(sc.bootstrap(record, data, 4), data, 2)
    assert drawn.bootstrap is not None and drawn.stability_selection is not None
    frame = drawn.bootstrap.to_frame()
    assert list(frame["feature"]) == [one.feature for one in drawn.bootstrap.features]
    assert {"frequency", "lower", "coefficient_high"} <= {*frame}
    assert list(drawn.stability_selection.to_frame()) == ["feature", "draws", "frequency"]


def test_a_model_of_a_draw_without_a_rare_level_counts_for_its_factor() -> None:
    rng = np.random.default_rng(4)
    stage, a, b = np.resize(["I", "II", "III"], 30).astype(object), rng.normal(size=30), rng.normal(size=30)
    stage[5] = "IV"
    frame = pd.DataFrame({"stage": stage, "a": a, "b": b, "y": 3.0 * (stage == "III") + 2.0 * a + rng.normal(size=30)})
    record = sc.solve(frame, "y", encode="onehot", count="factors", folds="3", gammas=0.1, taus="1:3", threads=1)
    made = sc.bootstrap(record, frame, 12, seed=1, threads=1).bootstrap
    assert made is not None
    columns = {name for name in record.data.names if name.startswith("stage=")}
    supports = [set(model.support) for model in made.chosen]
    assert {"stage=III"} <= set.union(*supports) and any(
        support & columns not in (set(), columns) for support in supports
    )
    terms = [frozenset(name.partition("=")[0] for name in one.support) for one in made.models]
    assert len(set(terms)) == len(terms) and sum(one.draws for one in made.models) == 12
    assert {one.frequency for one in made.features if one.feature in columns} == {
        sum(bool(support & columns) for support in supports) / 12
    }
