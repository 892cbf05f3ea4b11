"""Inference by splits: tests on the other half, the record that states them, and its verification."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.digits import several
from sparsecv_mio.errors import BadInput, SparseCVWarning
from sparsecv_mio.inference import split_tests
from sparsecv_mio.inference.draws import half_draws
from sparsecv_mio.inference.repetitions import infer, request_splits
from sparsecv_mio.report.journal_numbers import format_p_value
from sparsecv_mio.report.optional_parts import summarise_draws
from sparsecv_mio.report.publication import make_publication
from sparsecv_mio.targets import Loss

sm: Any = pytest.importorskip("statsmodels.api")

RNG = np.random.default_rng(65)
N = 72
X = RNG.normal(size=(N, 4))
GROUPS = np.arange(N) // 3
SIGNAL = 1.5 * X[:, 0] - X[:, 1]
TARGETS = {
    Loss.SQUARED: SIGNAL + RNG.normal(size=N),
    Loss.LOGISTIC: (SIGNAL + RNG.logistic(size=N) > 0.0).astype(float),
    Loss.POISSON: RNG.poisson(np.exp(1.0 + 0.5 * SIGNAL)).astype(float),
}
GRID: dict[str, Any] = {"gammas": [0.01], "taus": [1, 2], "threads": 1}


def make_data(loss: Loss = Loss.SQUARED, columns: Any = X) -> Dataset:
    return Dataset.from_arrays(columns, TARGETS[loss], aux={"g": GROUPS})


def solve_case(name: str) -> tuple[Record, Dataset]:
    """Return a record of a kind, and its data."""
    if name in ("logistic", "poisson"):
        data = make_data(Loss(name))
        return sc.solve(data, folds="4", loss=name, **GRID), data
    if name == "trials":
        trials = 1 + np.arange(N) % 4
        data = Dataset.from_arrays(X, RNG.binomial(trials, 1.0 / (1.0 + np.exp(-SIGNAL))), aux={"n": trials})
        return sc.solve(data, folds="4", loss="logistic", trials="n", **GRID), data
    if name == "weights":
        data = weighted_rows(make_data(), RNG.uniform(0.5, 2.0, size=N), "w")
        return sc.cross_validate(data, sc.make_folds("4", data), **GRID), data
    data = make_data()
    given: dict[str, Any] = {"groups": {"folds": "groups:g:4"}, "adjust": {"adjust": "x3", "intercept": "none"}}.get(
        name, {}
    )
    return sc.solve(data, **{"folds": "4"} | GRID | given), data


@pytest.mark.parametrize("name", ["squared", "logistic", "poisson", "weights", "trials", "groups", "adjust"])
def test_the_record_states_the_tests_and_verify_recomputes_them(name: str) -> None:
    record, data = solve_case(name)
    given = infer(record, data, "splits:3", seed=1)
    assert infer(record, data, 3, seed=1).inference.plan == given.inference.plan
    assert given.inference is not None and len(given.inference.splits) == 3
    found = Record.from_json(given.to_json())
    assert found == given and found.warnings == record.warnings
    report = sc.verify(found, data)
    assert report.ok, report.failures
    assert "models chosen on halves of the rows" in report.verdict
    assert given.inference.plan.units == ("groups of g" if name == "groups" else "rows")
    assert all(test.term != "x3" for split in given.inference.splits for test in split.tests) or name != "adjust"
    first = given.inference.splits[0]
    for change in (
        replace(first, tests=(replace(first.tests[0], p_value=first.tests[0].p_value * 0.5 + 1e-9), *first.tests[1:])),
        replace(first, support=(*first.support[1:], "x2" if "x2" not in first.support else "x3")),
        replace(first, tests=(replace(first.tests[0], df=first.tests[0].df + 1), *first.tests[1:])),
    ):
        changed = replace(given.inference, splits=(change, *given.inference.splits[1:]))
        assert not sc.verify(replace(given, inference=changed), data).ok


def test_the_other_half_tests_the_model() -> None:
    record, data = solve_case("squared")
    inference = infer(record, data, "splits:4", seed=3).inference
    assert inference is not None
    for split, draw in zip(inference.splits, half_draws(data, sc.make_folds("4", data), 4, 3), strict=True):
        rows = np.setdiff1d(np.arange(N), draw.rows)
        columns = [data.names.index(name) for name in split.support]
        fit = sm.OLS(data.y[rows], sm.add_constant(X[rows][:, columns])).fit(cov_type="HC3")
        assert split.n_test == len(rows)
        assert [test.estimate for test in split.tests] == pytest.approx(fit.params[1:])
        error = fit.bse[1:] * np.sqrt(1.0 - 1.0 / len(rows))
        assert [test.standard_error for test in split.tests] == pytest.approx(error)


def test_altered_combinations_do_not_hold() -> None:
    record, data = solve_case("squared")
    given = infer(record, data, "splits:3")
    inference = given.inference
    assert inference is not None and inference.terms[0].interval_lower is not None
    first, *others = inference.terms
    for name in ("p_value", "estimate", "interval_lower", "interval_upper"):
        terms = (replace(first, **{name: getattr(first, name) * (1.0 + 1e-5)}), *others)
        assert (
            not sc.verify(replace(given, inference=replace(inference, terms=terms)), data).ok or first.p_value < 1e-12
        )
    old = tuple(replace(term, n_tested=None) for term in inference.terms)  # as in records of development versions
    assert sc.verify(replace(given, inference=replace(inference, terms=old)), data).ok
    assert first.n_tested == first.n_chosen
    for change in (
        {"terms": (replace(first, n_tested=first.n_chosen - 1), *others)}, {"terms": (old[0], *others)},
        {"terms": tuple(others)}, {"level": 0.9}, {"level": 2.0},
        {"plan": replace(inference.plan, units="groups")}, {"plan": replace(inference.plan, seed=5)},
        {"splits": inference.splits[::-1]}, {"splits": ()}, 
        {"plan": replace(inference.plan, truncated=1)},
        {"plan": replace(inference.plan, requested=1)}, {"plan": replace(inference.plan, requested=10**9)},
    ):  # fmt: skip
        assert not sc.verify(replace(given, inference=replace(inference, **change)), data).ok, change


def test_splits_may_be_missing_only_with_a_warning() -> None:
    record, data = solve_case("squared")
    given = infer(record, data, "splits:6")
    assert given.inference is not None
    splits = given.inference.splits[1:4]
    few = replace(given.inference, splits=splits, terms=split_tests.combine_splits(splits, 0.95))
    report = sc.verify(replace(given, inference=few), data)
    assert [str(one) for one in report.failures] == [
        "inference omits the requested draws 0, 4, 5, and no warning states that a limit ended the run"
    ]
    warned = ("infer: the time limit was reached after 3 of 6 draws; give a longer time limit",)
    assert sc.verify(replace(given, inference=few, warnings=warned), data).ok
    assert not sc.verify(replace(given, inference=few, warnings=(warned[0].replace("3", "4"),)), data).ok


def test_without_statsmodels_the_tests_are_only_read(monkeypatch: pytest.MonkeyPatch) -> None:
    record, data = solve_case("squared")
    given = infer(record, data, "splits:2")
    monkeypatch.setattr(split_tests, "find_spec", lambda package: None)
    report = sc.verify(given, data)
    assert report.ok and "read but not checked: inference" in report.verdict
    assert any(line.startswith("inference (its tests were not recomputed; install") for line in report.reread)


def test_halves_without_a_model_count_as_p_value_1() -> None:
    six = np.arange(N) // 12
    y = ((six < 4) & (X[:, 0] > 0.5)).astype(float)  # a half with one of the first four groups has a fold of one class
    data = Dataset.from_arrays(X, y, aux={"h": six})
    record = sc.solve(data, folds="groups:h", loss="logistic", **GRID)
    with pytest.warns(SparseCVWarning, match=r"infer: no model .* halves, whose p-values count as 1 \("):
        given = infer(record, data, "splits:6", seed=2)
    assert given.inference is not None
    failed = [split for split in given.inference.splits if split.status == "failed"]
    assert 0 < len(failed) < 6 and all(split.note and not split.tests for split in failed)
    report = sc.verify(Record.from_json(given.to_json()), data)
    assert report.ok and f"(p-value 1 for {several(len(failed), 'split')} without a model)" in str(report.verified)
    assert given.inference.n_chosen == given.inference.n_certified == 6 - len(failed)
    with pytest.warns(SparseCVWarning, match="stability_selection: no model could be chosen from"):
        made = sc.stability_selection(record, data, pairs=3, seed=2, threads=1)
    halves = made.stability_selection
    assert halves is not None and halves.failed and sc.verify(made, data).ok
    report = sc.verify(replace(made, stability_selection=replace(halves, failed=())), data)
    assert any("stability_selection omits the requested draws" in str(one) for one in report.failures)


def test_levels_of_a_factor_are_one_term() -> None:
    level = RNG.integers(3, size=N)
    table = {"y": TARGETS[Loss.SQUARED] + 3.0 * (level == 1), "a": X[:, 0], "f": np.array(["u", "v", "w"])[level]}
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(table)
    record = sc.solve(frame, "y", encode="onehot", count="factors", folds="4", gammas=[0.01], taus=[2], threads=1)
    found = infer(record, frame, "splits:3")
    assert found.inference is not None
    assert {term.term for term in found.inference.terms} == {"a", "f"}
    assert [term.estimate is None for term in found.inference.terms if term.term == "f"] == [True]
    (p_value,) = [term.p_value for term in found.inference.terms if term.term == "f"]
    for reference in (None, "f=u"):
        shown = replace(found, request=replace(found.request, reference=reference and (reference,)))
        paper = make_publication(shown)
        cells = {name: row[-1] for name, *row in paper.table.rows if name.startswith("f")}
        assert {name for name, cell in cells.items() if cell} == {"f"} and cells["f"] == format_p_value(p_value)
        assert "joint test of its levels, which have no split interval" in paper.notes
    (summary,) = summarise_draws(found)
    assert [row[-2:] for row in summary.tables[0].rows if row[0] == "f"] == [("joint test", "none")]
    assert sc.verify(found, frame).ok


def test_finished_splits_are_stored_and_kept_at_a_limit(tmp_path: Path) -> None:
    record, data = solve_case("squared")
    store = str(tmp_path / "splits")
    stop = threading.Event()
    stop.set()
    with pytest.warns(SparseCVWarning, match="interrupted after 0 of 2 draws"):
        none = infer(record, data, "splits:2", stop=stop)
    assert none.inference is None and none.warnings[-1] == "infer: the run was interrupted after 0 of 2 draws"
    few = infer(record, data, "splits:2", store=store)
    more = infer(record, data, "splits:4", store=store)
    assert more.inference is not None and few.inference is not None
    assert more.inference.splits[:2] == few.inference.splits
    assert more == infer(record, data, "splits:4")
    with pytest.raises(BadInput, match="infer: file .* has draws of other data, options"):
        infer(sc.solve(data, folds="5", **GRID), data, store=store)
    with pytest.warns(SparseCVWarning, match="time limit was reached after 0 of 3 draws"):
        late = infer(record, data, "splits:3", time_limit=1e-6)
    assert late.inference is None


@pytest.mark.parametrize("text", ["splits", "splits:0", "splits:x", "splits:-1", "splits:100001", ""])
def test_other_methods_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="infer: .* is not of the form splits:B .*give splits:50"):
        request_splits(text)


def test_naive_p_values_are_refused_with_the_reason() -> None:
    with pytest.raises(BadInput, match="infer: 'naive' is not offered: the rows that chose .* give splits:50"):
        request_splits("naive")


def test_procedures_that_cannot_be_repeated_are_refused() -> None:
    data = make_data()
    ordered = sc.solve(data, folds="forward:4", **GRID)
    with pytest.raises(BadInput, match="order of time"):
        infer(ordered, data)
    with pytest.raises(BadInput, match="level: 95 is out of range; give a number between 0 and 1"):
        infer(ordered, data, level=95)


def test_models_whose_term_cannot_be_tested_are_counted() -> None:
    """A half with at most one row of a level has no test of it; a level of missing values is not tested."""
    pd = pytest.importorskip("pandas")
    words = np.full(N, "u", dtype=object)
    words[[1, 2, 5, 9]] = ["v", "v", None, None]
    frame = pd.DataFrame({"y": TARGETS[Loss.SQUARED] + 9.0 * (words == "v"), "a": X[:, 0], "f": words})
    how: dict[str, Any] = {"encode": "onehot", "na": "mean", "count": "factors", "folds": "4", "threads": 1}
    with pytest.warns(SparseCVWarning, match="level"):
        record = sc.solve(frame, "y", gammas=[0.01], taus=[2], **how)
        found = infer(record, frame, "splits:8")
    assert found.inference is not None
    (term,) = [one for one in found.inference.terms if one.term == "f"]
    can = [test.df > 0.0 for split in found.inference.splits for test in split.tests if test.term == "f"]
    draws = half_draws(make_data(), sc.make_folds("4", make_data()), 8, 0)
    halves = [np.isin([1, 2], draw.rows).sum() for draw in draws]
    chosen = [any(name.startswith("f=") for name in split.support) for split in found.inference.splits]
    assert can == [n_rows == 0 for n_rows, has_f in zip(halves, chosen, strict=True) if has_f] and 0 < sum(can) < len(
        can
    )
    assert (term.n_chosen, term.n_tested) == (len(can), sum(can)) and sc.verify(found, frame).ok
    (summary,) = summarise_draws(found)
    stated = f"f in {len(can) - sum(can)} of {len(can)} models"
    assert f"terms that the other half cannot test (their p-value is then 1): {stated}" in summary.lines
    assert 'tested without their level "(missing)": f' in summary.lines
    notes = make_publication(found).notes
    assert f"which counts as p = 1: {stated}." in notes and "tests of f leave out the level of missing" in notes
    old = tuple(replace(one, n_tested=None) for one in found.inference.terms)
    report = sc.verify(replace(found, inference=replace(found.inference, terms=old)), frame)
    assert report.ok and "read but not checked: inference" in report.verdict
    never = tuple(replace(one, n_tested=0, p_value=1.0) for one in found.inference.terms)
    shown = replace(found, inference=replace(found.inference, terms=never))
    assert {row[2] for row in summarise_draws(shown)[0].tables[0].rows} == {"not tested"}
    assert {row[-1] for row in make_publication(shown).table.rows} <= {"not tested", ""}
