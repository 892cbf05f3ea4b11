"""Every outer model of a nested cross-validation is refitted, scored and compared with the record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import problems
import pytest
from altered_fields import set_fields

import sparsecv_mio as sc
from sparsecv_mio.certificate import stable_models
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.targets import Loss


def drawn() -> sc.Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    return sc.Dataset.from_arrays(X, X[:, 0] - X[:, 2] + rng.normal(size=30), aux={"g": np.arange(30) // 3})


@pytest.fixture(scope="module")
def nested() -> Record:
    return solved(force_in=["x1"])


def solved(**given: Any) -> Record:
    return sc.solve(drawn(), **{"folds": "5", "gammas": "0.05,1", "nested": 3, "threads": 1, **given})


def fields_refused(record: Record, data: Dataset, fields: dict[str, Any]) -> set[str]:
    return {failure.field for failure in sc.verify(set_fields(record, fields), data).failures}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("error", lambda error: error * 0.99),
        ("standard_error", None),
        ("optimism", 0.0),
        ("outer.seed", 1),
        ("folds", lambda folds: (folds[0], *folds)),
        ("folds.0.error", lambda error: error * 0.99),
        ("folds.0.support", ("x0",)),
        ("folds.0.status", "sure"),
        ("folds.0.gamma", 0.5),
    ],
)
def test_altered_outer_folds_are_rejected(nested: Record, field: str, value: Any) -> None:
    named = f"nested.{field}".replace(".0.", "[0].")
    assert named in fields_refused(nested, drawn(), {f"nested.{field}": value})


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_a_common_factor_of_the_weights_does_not_matter(factor: float) -> None:
    whole = drawn()
    data = weighted_rows(Dataset.from_arrays(whole.X, whole.y + 100.0), factor * (1.0 + np.arange(30) % 3), "w")
    record = sc.solve(data, folds="5", gammas=1e4, taus=0, intercept="none", threads=1)
    assert record.stability is not None and record.stability.instability_upper > 0.0  # rounding of equal models
    assert sc.verify(record, data).failures == ()


@cache
def data() -> Dataset:
    return problems.linear(1, 30, 5, {0: 1.0, 2: 0.4, 3: -0.3})


@cache
def record(kind: str) -> Record:
    given: dict[str, dict[str, Any]] = {
        "plain": {},
        "one-se": {"one_se": True},
        "weight": {"stability": 20.0},
        "weights": {"stability": (20.0, 0.0)},
        "nested": {"stability": "nested"},
        "part": {"stability": 20.0, "method": "grid", "mio_budget": 7},
    }
    return cross_validate(
        data(), make_folds("5", data()), gammas=[0.02, 0.5, 5.0], taus=range(1, 5), threads=1, **given[kind]
    )


def with_row(r: Record, i: int, **changes: Any) -> Record:
    path = f"stability.chosen.intervals.{i}."
    changed: Record = set_fields(r, {path + name: value for name, value in changes.items()})
    return changed


def other(r: Record) -> int:
    """A row of another pair with a known interval."""
    assert r.stability is not None and r.stability.chosen is not None
    pair = r.gamma, r.tau
    found = enumerate(zip(r.table, r.stability.chosen.intervals, strict=True))
    return next(i for i, (row, one) in found if one.lower > 0.0 and (row.gamma, row.tau) != pair)


def fold_error(r: Record) -> Record:
    assert r.least_folds is not None
    folds = r.least_folds
    return replace(r, least_folds=type(folds)(folds.supports, folds.which, folds.error * 1.01, folds.decided))


Change = Callable[[Record], Record] | dict[str, Any]
MODELS = "stability.chosen.models"
CASES: list[tuple[str, Change, str]] = [
    ("plain", {"stability.instability": lambda value: value * 1.001}, "stability.instability"),
    ("plain", {f"stability.instability{name}": 1e-3 for name in ("", "_lower", "_upper")}, "stability.instability"),
    ("plain", {"stability.instability_upper": 9.0}, "stability.instability"),
    ("plain", {"stability.instability_lower": 0.0}, "stability.instability"),
    ("plain", {"stability.fold": lambda fold: (fold + 1) % 5}, "stability.fold"),
    ("plain", lambda r: replace(r, least_folds=r.chosen_folds), "least_folds"),
    ("plain", {"request.stability": (1.0,)}, "stability.chosen"),
    ("one-se", {"least_folds": None}, "least_folds"),
    ("part", {"stability.estimate": False}, "stability"),
    ("weight", {"stability": None}, "stability"),
    ("weight", {"request.stability": None}, "stability.chosen"),
    ("weight", {"stability.chosen.weight": 10.0}, "stability.chosen.weight"),
    ("weight", {"stability.chosen.lower": 0.0}, "stability.chosen.lower"),
    ("weight", {"stability.chosen.upper": 99.0}, "stability.chosen.upper"),
    ("weight", {"stability.chosen.allowance": 1.0}, "stability.chosen.allowance"),
    ("weight", {"stability.chosen.intervals": lambda rows: rows[1:]}, "stability.chosen.intervals"),
    ("weight", lambda r: with_row(r, other(r), lower=9.0, upper=9.0), "stability.chosen"),
    ("weight", lambda r: with_row(r, other(r), upper=1e-6, lower=0.0), "stability.chosen"),
    ("weight", fold_error, "least_folds[0].error"),
    ("weights", {MODELS: lambda models: models[1:]}, MODELS),
    ("weights", {"request.stability": (20.0, 0.5)}, MODELS),
    ("weights", {f"{MODELS}.0.gamma": 5.0}, f"{MODELS}[0]"),
    ("weights", {f"{MODELS}.1.support": ("x9",)}, f"{MODELS}[1].support"),
    ("weights", {f"{MODELS}.1.gamma": 5.0, f"{MODELS}.1.tau": 1}, f"{MODELS}[1].proved"),
    ("nested", {"stability.chosen.tried.0.error": 0.0}, "stability.chosen.tried[0].error"),
    ("nested", {"stability.chosen.outer": None}, "stability.chosen.outer"),
    ("nested", {"stability.chosen.outer.seed": 9}, "stability.chosen.outer"),
]


@pytest.mark.parametrize("kind", ["plain", "one-se", "weight", "weights", "nested", "part"])
def test_the_records_themselves_pass(kind: str) -> None:
    true = Record.from_json(record(kind).to_json())
    assert true == record(kind) and verify(true, data()).failures == ()


@pytest.mark.parametrize(("kind", "change", "named"), CASES)
def test_an_altered_record_is_rejected(kind: str, change: Change, named: str) -> None:
    altered = change(record(kind)) if callable(change) else set_fields(record(kind), change)
    assert altered != record(kind)
    report = verify(altered, data())
    assert any(failure.field.startswith(named) for failure in report.failures), report.failures


def test_outer_folds_of_two_classes() -> None:
    two = problems.classes(2, 60, 4, {0: 1.0})
    found = sc.solve(two, folds="4", nested=3, loss="logistic", threads=1)
    nested = found.nested
    assert nested is not None and nested.classes is not None
    assert sc.verify(found, two).ok and Record.from_json(found.to_json()) == found
    altered = {
        "nested.folds.0.error": nested.folds[0].error * 0.999,
        "nested.folds.0.tau": found.request.taus[-1] + 1,
        "nested.error": nested.error * 0.999,
        "nested.classes.lower": nested.error * 1.01,
        "nested.classes.auc": 0.5,
        "nested.classes": None,
    }
    for field, wrong in altered.items():
        assert field.replace(".0.", "[0].") in fields_refused(found, two, {field: wrong}), field


def test_outer_folds_that_leave_one_class_are_refused_before_any_work() -> None:
    X = np.random.default_rng(3).normal(size=(20, 2))
    y = np.zeros(20)
    y[:2] = 1.0
    with pytest.raises(BadInput, match="nested, with outer fold"):
        sc.solve(sc.Dataset.from_arrays(X, y), folds="2", nested=2, gammas=1.0, taus=1, loss="logistic")


@pytest.mark.parametrize("loss", [Loss.LOGISTIC, Loss.POISSON])
@pytest.mark.parametrize("apart", [0.0, 1e-15, 1e-11, 2e-10, 1e-9, 1e-8, 3e-7])
def test_models_that_are_all_but_tied_may_be_told_apart(loss: Loss, apart: float) -> None:
    """Two columns with the same cells in each class, except for next to nothing: other rows, the same objective."""
    rng = np.random.default_rng(7)
    halves = [rng.normal(size=15) + 0.5, rng.normal(size=15) - 0.5]
    other = np.concatenate([rng.permutation(half) for half in halves]) + apart * rng.normal(size=30)
    data = Dataset.from_arrays(np.column_stack([np.concatenate(halves), other]), np.repeat([1.0, 0.0], 15))
    data = as_two_classes(data) if loss is Loss.LOGISTIC else data
    record = cross_validate(data, "5", gammas=[0.1], taus=[1], loss=loss, stability=(0.1,), threads=1)
    assert record.stability is not None and verify(record, data).ok
    wide = record.stability.instability_upper - record.stability.instability_lower
    assert (wide > 1e-4) == (apart < 1e-12)
    upper = record.stability.instability_upper * 1.001
    for wrong in (
        {"instability_upper": upper},
        {"instability_lower": 0.5, "instability": 0.5, "instability_upper": 0.5},
    ):
        assert fields_refused(record, data, {f"stability.{name}": value for name, value in wrong.items()})


def made_of_rows(loss: Loss) -> tuple[Record, Dataset]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(24, 3))
    y = X[:, 0] + rng.logistic(size=24)
    rows = Dataset.from_arrays(X, (y > 0.0).astype(float) if loss is Loss.LOGISTIC else np.round(np.exp(y / 3.0)))
    rows = as_two_classes(rows) if loss is Loss.LOGISTIC else rows
    given: dict[str, Any] = {"gammas": [0.1, 1.0], "taus": [1, 2], "stability": (0.3,), "gap": 0.0, "threads": 1}
    return cross_validate(rows, "4", loss=loss, **given), rows


@pytest.mark.parametrize("loss", [Loss.LOGISTIC, Loss.POISSON])
def test_every_interval_of_the_choice_is_compared(loss: Loss) -> None:
    made, rows = made_of_rows(loss)
    report = verify(made, rows)
    assert report.ok and not report.caveat
    assert made.stability is not None and made.stability.chosen is not None
    for i, interval in enumerate(made.stability.chosen.intervals):
        for wrong in ({"lower": 3.0, "upper": np.inf}, {"lower": 0.0, "upper": interval.lower / 2.0}):
            failures = verify(with_row(made, i, **wrong), rows).failures
            assert any(failure.field.startswith("stability.chosen.") for failure in failures), (i, wrong)


@pytest.mark.parametrize("kind", ["logistic", "weight"])
def test_intervals_that_are_not_compared_are_named_as_read(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, rows = made_of_rows(Loss.LOGISTIC) if kind == "logistic" else (record(kind), data())
    monkeypatch.setattr(stable_models, "MOST_ENUMERATED", 2 * made.folds.k)
    report = verify(made, rows)
    assert report.ok and report.caveat == (
        "read but not checked: stability.chosen.intervals[].lower, stability.chosen.intervals[].upper"
    )
    assert report.reread[0].startswith("stability.chosen.intervals[].lower (not checked for ")
