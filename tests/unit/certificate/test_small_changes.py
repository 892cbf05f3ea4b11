"""`verify` refuses changes above rounding, and its first line names the numbers that are only bounded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sparsecv_mio as sc


@pytest.mark.parametrize("folds", ["5", "loo"])
def test_changes_above_rounding_are_refused(folds: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 4))
    data = sc.Dataset.from_arrays(X, X[:, 0] - X[:, 1] + rng.normal(size=24))
    record = sc.solve(data, folds=folds, gammas=[0.01, 0.1], taus=[1, 2])
    report = sc.verify(record, data)
    assert report.ok and "only compared with bounds: upper bounds, standard errors" in report.verdict
    assert record.mae is not None
    changed = replace(record, mae=record.mae * (1.0 + 1e-6))
    assert [failure.field for failure in sc.verify(changed, data).failures] == ["mae"]
    for i, row in enumerate(record.table):
        assert row.standard_error is not None
        rows = list(record.table)
        rows[i] = replace(row, standard_error=row.standard_error * (1.0 + 2e-6))
        failures = sc.verify(replace(record, table=tuple(rows)), data).failures
        assert {failure.field for failure in failures} == {f"table[{i}].standard_error"}


def test_tie_widths_and_the_chosen_method() -> None:
    """An invented tie width is refused; what is only bounded or read is named."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4))
    data = sc.Dataset.from_arrays(X, X[:, 0] + rng.normal(size=30))
    record = sc.solve(data, folds="3", gammas=[0.1, 1.0], taus=[1, 2])
    assert [failure.field for failure in sc.verify(replace(record, tie_width=1e-12), data).failures] == ["tie_width"]
    other = replace(record, warnings=("invented",), request=replace(record.request, method_used="grid"))
    report = sc.verify(other, data)
    assert report.ok and "effects of ties and rounding" in report.verdict
    read = ("request.method_used", "request.backend", "request.refine", "warnings", "versions", "stability.estimate")
    assert dict(report.fields)["read"][-6:] == read


def test_bounds_of_the_full_data_fit_enclose_its_objective_where_rounding_hides_all_digits() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 3))
    data = sc.Dataset.from_arrays(X, 1e15 * X[:, 0] + rng.normal(size=12))
    record = sc.solve(data, folds="3", gammas=[1e-12], taus=[1])
    assert sc.verify(record, data).ok
    for end, factor in (("lower", 2.0), ("upper", 0.5)):
        refit = replace(record.refit, **{end: record.refit.objective * factor})
        failures = sc.verify(replace(record, refit=refit), data).failures
        assert {failure.field for failure in failures} == {f"refit.{end}"}


@pytest.mark.parametrize(("name", "end"), [("x0", 0.5), ("x1", -0.5)])
def test_a_coefficient_beyond_its_bound_by_rounding_is_refused(name: str, end: float) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    data = sc.Dataset.from_arrays(X, X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=30), ["x0", "x1"])
    bounds = {"x0": (None, 0.5), "x1": (-0.5, None)}
    record = sc.solve(data, folds="3", gammas=[0.01], taus=[2], coef_bounds=bounds)
    assert record.coefficients[name] == end and sc.verify(record, data).ok
    beyond = {**record.coefficients, name: float(np.nextafter(end, 2.0 * end))}
    failures = sc.verify(replace(record, coefficients=beyond), data).failures
    assert [failure.field for failure in failures] == [f"coefficients.{name}"]


def test_fits_at_bounds_keep_their_digits_at_an_offset_of_the_target() -> None:
    """The target less the part of a column at its bound was rounded relative to the offset."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    data = sc.Dataset.from_arrays(X, X[:, 0] - X[:, 1] + rng.normal(size=12) + 1e9, ["x0", "x1", "x2"])
    record = sc.solve(data, folds="3", gammas=[1e-3], taus=[2], coef_bounds={"x0": (-0.2, 0.2), "x1": (-0.9, -0.5)})
    assert record.coefficients["x0"] == 0.2 and sc.verify(record, data).ok
    for name, factor in (("objective", 1.0 + 1e-8), ("lower", 1.0 + 1e-8), ("upper", 1.0 - 1e-8)):
        refit = replace(record.refit, **{name: getattr(record.refit, name) * factor})
        fields = {failure.field for failure in sc.verify(replace(record, refit=refit), data).failures}
        assert f"refit.{name}" in fields


def test_a_support_that_is_worse_in_fractions_need_not_be_covered() -> None:
    """A column that is 0 in the training rows of a fold costs only its penalty: 1e-13 of the objective."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(11, 2))
    X[:, 0] = 0.0
    X[3, 0] = 1.0
    data = sc.Dataset.from_arrays(X, X[:, 1] + rng.normal(size=11), ["x0", "x1"])
    ask = {"folds": "loo", "gammas": [1e-12], "taus": [1, 2], "coef_bounds": {"x0": (-9.0, -5.0)}, "gap": 0.0}
    record = sc.solve(data, **ask, intercept="none")
    assert sc.verify(record, data).ok
    for i, row in enumerate(record.table):
        for name, factor in (("upper", 1.0 - 1e-5), ("lower", 1.0 + 1e-5)):
            said = row.cv_error * factor
            moved = {"lower": min(row.lower, said), "upper": max(row.upper, said), "cv_error": said, name: said}
            rows = (*record.table[:i], replace(row, **moved), *record.table[i + 1 :])
            fields = {failure.field for failure in sc.verify(replace(record, table=rows), data).failures}
            assert f"table[{i}].{name}" in fields
    worse = sc.solve(data, **{**ask, "taus": [2], "force_in": "x0"}, intercept="none")  # x0 in the model of every fold
    assert worse.cv_error > record.cv_error * (1.0 + 1e-3)
    (i,) = [i for i, row in enumerate(record.table) if row.tau == 2]
    (row,) = worse.table
    rows = (*record.table[:i], replace(row, folds_decided=record.table[i].folds_decided), *record.table[i + 1 :])
    fields = {failure.field for failure in sc.verify(replace(record, table=rows), data).failures}
    assert {f"table[{i}].lower", f"table[{i}].cv_error"} <= fields
