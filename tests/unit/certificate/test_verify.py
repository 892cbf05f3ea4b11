"""`verify` accepts true records, made here by brute force from the definition, and names the field of any false one."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from every_support import brute_force_cell

from sparsecv_mio.certificate.parts import ChosenFolds, relative_gap
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import VerificationFailed
from sparsecv_mio.problem.objective import held_out_error, r_squared
from sparsecv_mio.search.api import cross_validate

from .enumerated import small, truth


@pytest.mark.parametrize("spec", ["loo", "4", "blocks:5", "holdout:0.3", "groups:g", "column:g"])
@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_a_true_record_passes(spec: str, intercept: str) -> None:
    data = small(0, aux=True)
    plan = make_folds(spec, data, 3)
    record = truth(data, plan, [0.05, 1.0], [0, 1, 2, 4], intercept=intercept)
    report = verify(Record.from_json(record.to_json()), data)
    assert report.failures == ()
    assert "lower and upper of all 8 pairs, by enumeration of all supports" in report.verified
    assert "optimality of the support of every solved fold, by enumeration" in report.verified


def test_real_ties_pass() -> None:
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [0.5, 0.2]])
    data = Dataset.from_arrays(rows, [1.0, -1.0, 1.0, -1.0, 1.5, 0.3], aux={"f": [1, 1, 1, 1, 0, 0]})
    plan = make_folds("column:f", data)
    record = truth(data, plan, [0.1], [1], scale="none")
    assert record.tie_width > 0.1
    assert verify(record, data).failures == ()
    train, test = plan.train_rows(0), plan.scored_rows(0)
    tied = brute_force_cell(data.X, data.y, 1, 0.1, scale="none", rows=train).fits
    luckier = min(tied, key=lambda model: held_out_error(model, data.X, data.y, test))
    errors = np.array([held_out_error(luckier, data.X, data.y, test), record.chosen_folds.error[1]])
    supports = [[data.names[luckier.support[0]]], record.chosen_folds[1].support]
    h = float(errors.sum()) / 6
    named = failing(
        record, data, chosen_folds=ChosenFolds.of(supports, errors), cv_error=h,
        r_squared=r_squared(data.y, plan.all_scored, h), table=(dataclasses.replace(record.table[0], cv_error=h),),
    )  # fmt: skip
    assert named == [], "any tied support may be the one reported, as long as upper covers the worst"
    assert failing(record, data, upper=h, gap=relative_gap(record.lower, h)) == ["upper"]


@pytest.mark.parametrize("spec", ["loo", "3"])
def test_one_standard_error_passes_and_is_checked(spec: str) -> None:
    data = small(5)
    record = truth(data, make_folds(spec, data), [0.05, 0.5, 5.0], [0, 1, 2, 3, 4], one_se=True)
    assert record.one_se is not None
    if spec == "loo":
        assert record.least is not None and (record.gamma, record.tau) == (0.5, 2)
    assert verify(record, data).failures == ()
    assert failing(record, data, one_se=dataclasses.replace(record.one_se, standard_error=9.9))[0].startswith("one_se")
    if record.least is not None:
        plain = dict(vars(record.least), chosen_folds=record.least_folds, least=None, least_folds=None)
        assert "tau" in failing(record, data, **plain), "a simpler pair is within one standard error"


def failing(record: Record, dataset: Dataset, /, **changes: Any) -> list[str]:
    report = verify(dataclasses.replace(record, **changes), dataset)
    return [failure.field for failure in report.failures]


RECORD_DATA = small(6)
RECORD = truth(RECORD_DATA, make_folds("loo", RECORD_DATA), [0.05, 1.0], [1, 2, 3])


@pytest.mark.parametrize("row", range(len(RECORD.table)))
@pytest.mark.parametrize(("field", "factor"), [("lower", 1.01), ("upper", 0.99)])
def test_a_false_bound_of_any_pair_is_found_by_enumeration(row: int, field: str, factor: float) -> None:
    table = list(RECORD.table)
    width = {"lower": 0.0, "upper": 1e9, field: getattr(table[row], field) * factor}
    table[row] = dataclasses.replace(table[row], **width)
    assert f"table[{row}].{field}" in failing(RECORD, RECORD_DATA, table=tuple(table))


def test_a_failure_raises_with_its_field() -> None:
    report = verify(dataclasses.replace(RECORD, intercept=9.0), RECORD_DATA)
    with pytest.raises(VerificationFailed, match="intercept") as caught:
        report.raise_if_failed()
    assert caught.value.field == "intercept"


def test_an_altered_coefficient_does_not_make_the_intercept_wrong() -> None:
    names = RECORD.support
    for name in names:
        altered = {**RECORD.coefficients, name: 99.0}
        assert failing(RECORD, RECORD_DATA, coefficients=altered) == [f"coefficients.{name}"]
        wrong = failing(RECORD, RECORD_DATA, coefficients=altered, intercept=RECORD.intercept + 1e-3)
        assert wrong == [f"coefficients.{name}", "intercept"]


def test_only_a_frame_of_pandas_2_is_said_to_round_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame(RECORD_DATA.X, columns=RECORD_DATA.names).assign(y=RECORD_DATA.y + 1e-6)
    for version, is_told in (("2.3.1", True), ("3.1.1", False)):
        monkeypatch.setattr(pd, "__version__", version)
        failures = verify(RECORD, frame).failures
        assert [failure.field for failure in failures] == ["data.fingerprint"]
        assert ("pandas 2" in failures[0].message) == is_told


def test_more_features_come_with_a_caveat() -> None:
    rng = np.random.default_rng(8)
    wide = Dataset.from_arrays(rng.normal(size=(20, 17)), rng.normal(size=20))
    report = verify(truth(wide, make_folds("4", wide), [1.0], [1]), wide)
    assert report.ok and report.caveat == "optimality not verified (p > 15)"
    medium = Dataset.from_arrays(wide.X[:, :14], wide.y)
    report = verify(truth(medium, make_folds("4", medium), [0.1, 1.0], [1, 2]), medium)
    assert report.ok and report.caveat.startswith("optimality over the grid not verified (p > 12)")
    narrow = Dataset.from_arrays(wide.X[:, :12], wide.y)
    assert verify(truth(narrow, make_folds("4", narrow), [0.1], [1]), narrow).caveat == ""


@pytest.mark.parametrize("intercept", ["fold", "global"])
def test_an_intercept_that_is_nothing_but_the_rounding_of_means(intercept: str) -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(8 + seed, 2))
        X, y = X - X.mean(axis=0), X[:, 0] - X[:, 0].mean()
        data = Dataset.from_arrays(X, y)
        record = cross_validate(
            data, make_folds("4", data), gammas=[0.1, 100.0], taus=[seed % 3], intercept=intercept, threads=1
        )
        assert verify(record, data).failures == ()
        moved = dataclasses.replace(record, intercept=record.intercept + 1e-13)
        assert [failure.field for failure in verify(moved, data).failures] == ["intercept"]
