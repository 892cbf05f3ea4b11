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
    assert report.ok and "only within recomputed bounds: upper bounds, standard errors" in report.verdict
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
    assert report.ok and "tie widths and rounding allowances" in report.verdict
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
