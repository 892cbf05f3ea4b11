"""What `verify` says of lists of two classes that were altered."""

from __future__ import annotations

from typing import Any

import problems
import pytest
from altered_fields import set_fields

from sparsecv_mio import Dataset, near_optimal, verify
from sparsecv_mio.certificate import glm_design, near_records
from sparsecv_mio.certificate.fit_records import NearRecord
from sparsecv_mio.certificate.refits import make_design
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.near.common_subset import best_common_subset


@pytest.fixture(scope="module")
def data() -> Dataset:
    return problems.classes(5, 60, 7, {0: 1.0, 1: -1.0})


@pytest.fixture(scope="module")
def record(data: Dataset) -> NearRecord:
    return near_optimal(data, gamma=0.1, taus=[2, 3], loss="logistic", within=0.02)


def test_a_summary_has_a_line_for_each_size(record: NearRecord) -> None:
    first, *sizes, last = record.summary().splitlines()
    assert first.startswith(f"{record.status}: {len(record.models)} models within") and last == "60 rows, gamma=0.1"
    best = min((model for model in record.models if model.tau == 2), key=lambda model: model.value)
    assert len(sizes) == 2 and sizes[0].startswith("tau=2: minimum in [")
    assert sizes[0].endswith(f"all listed; best model: {', '.join(best.support)}")


def test_a_list_as_it_is(data: Dataset, record: NearRecord) -> None:
    report = verify(record, data)
    assert report.ok and "completeness of the lists, by branching over all supports" in report.verified


@pytest.mark.parametrize(
    "fields",
    [
        {"models.2.value": lambda value: value * 1.00001},
        {"models": lambda models: tuple(m for m in models if m is not [n for n in models if n.tau == 2][-1]),
         "sizes.0.models": lambda count: count - 1},
        {"sizes.0.lower": lambda value: value * 1.001},
        {"sizes.0.always": ("x2",), "sizes.0.never": lambda names: names[1:]},
        {"classes": None},
    ],
)  # fmt: skip
def test_altered_lists_are_refused(data: Dataset, record: NearRecord, fields: dict[str, Any]) -> None:
    assert not verify(set_fields(record, fields), data).ok


def test_a_model_outside_the_restrictions_has_features_of_the_data(data: Dataset) -> None:
    found = near_optimal(data, gamma=0.1, taus=[2], within=0.05, force_in=["x2"])
    kept = next(name for name in data.names if name not in {n for model in found.models for n in model.support})
    support = (*(name for name in found.models[0].support if name != "x2"), kept)
    failures = verify(set_fields(found, {"models.0.support": support}), data).failures
    assert [str(failure) for failure in failures if failure.field == "models[0].support"] == [
        "models[0].support does not contain x2, which is forced in"
    ]


def test_altered_common_subsets_are_refused(data: Dataset) -> None:
    found = best_common_subset(data, "4", gammas=[0.1, 1.0], taus=[1, 2], loss="logistic", gap=0.0)
    assert verify(found, data).ok
    ends = {"lower": 0.9 * found.lower, "gap": 1.0 - 0.9 * found.lower / found.upper}
    more = {"upper": 1.01 * found.upper, "gap": 1.0 - found.lower / (1.01 * found.upper), "status": "limit"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"cv_error": found.cv_error * 1.0001, "upper": found.upper * 1.0001}, ""),
        ({"table.0.lower": found.table[0].cv_error * 1.01}, ""),
        ({f"coefficients.{found.support[0]}": lambda value: value * 1.001}, ""),
        ({"intercept": found.intercept + 0.01}, "intercept"),
        ({"classes": None}, ""),
        ({"gap": found.gap + 1e-6}, "gap"),
        (ends, "status"),
        ({**ends, "status": "limit", "cv_error": 0.95 * found.cv_error}, "cv_error"),
        (more, "upper"),
    ]
    for fields, alone in cases:
        failures = [failure.field for failure in verify(set_fields(found, fields), data).failures]
        assert failures == [alone] if alone else failures


def test_what_takes_long_is_said(data: Dataset, record: NearRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (near_records, glm_design):
        monkeypatch.setattr(module, "MOST_FITS", 3)
    report = verify(record, data)
    assert report.ok and "more than 3 fits" in report.caveat
    failures = verify(set_fields(record, {"sizes.0.lower": lambda value: value * 1.001}), data).failures
    assert [failure.field for failure in failures] == ["sizes[0].lower"]


@pytest.mark.parametrize(
    ("folds", "gamma", "tau"), [("4", 0.1, 1), ("4", 0.1, 4), ("4", 3.0, 2), ("4", 30.0, 6), ("loo", 1.0, 1)]
)
def test_branching_finds_the_least_error_of_a_size(data: Dataset, folds: str, gamma: float, tau: int) -> None:
    """As the values of all supports have it; a level that is below all is returned."""
    found = best_common_subset(data, "4", gammas=[0.1], taus=[2], loss="logistic")
    design = make_design(found, data, make_folds(folds, data))
    assert isinstance(design, glm_design.GlmDesign)
    values = near_records.make_values(design, gamma, design.plan)
    least = values.evaluate_all(design.supports(tau)).min()
    design.store.count = 0
    assert values.lowest(tau, 1.2 * least) == pytest.approx(least, rel=1e-12)
    assert values.lowest(tau, 0.999 * least) == 0.999 * least


def test_common_subsets_of_many_fits_are_not_verified_to_be_the_best(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = best_common_subset(data, "4", gammas=[0.1], taus=[1, 2], loss="logistic")
    monkeypatch.setattr(near_records, "FITS_OF_FOLDS", 0)
    report = verify(found, data)
    assert report.ok and "too many fits in every fold" in report.caveat
