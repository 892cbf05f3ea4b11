"""Every row by the model fitted without it: as the definition says, and their errors are the CV error."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import problems
import pytest
from frames import read_csv
from repository import INSTANCES
from sklearn.model_selection import KFold, cross_val_predict

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run
from sparsecv_mio.data.folds import inner_folds, make_folds, outer_folds
from sparsecv_mio.errors import BadInput, OutOfTime, SparseCVWarning
from sparsecv_mio.problem.objective import fit
from sparsecv_mio.report.publication import make_publication
from sparsecv_mio.report.record_report import report_text
from sparsecv_mio.search import api, running_search
from sparsecv_mio.search.answer import fold_models
from sparsecv_mio.search.answer.fold_models import held_out_predictions, predictions_by_fold
from sparsecv_mio.search.answer.outer_models import STABILITY_WEIGHTS
from sparsecv_mio.search.api import OUTER
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.observers import Progress
from sparsecv_mio.search.options import Hooks, SearchOptions
from sparsecv_mio.search.question import Question

DATA = sc.read_dataset(INSTANCES / "prostate.csv", "lpsa")


@pytest.mark.parametrize("folds", ["loo", "5", "holdout:0.3"])
@pytest.mark.parametrize(
    "options", [{}, {"scale": "none", "intercept": "none"}, {"scale": "variance", "intercept": "global"}, {"taus": 0}]
)
def test_predictions_are_those_of_the_definition(folds: str, options: dict[str, Any]) -> None:
    record = sc.solve(DATA, folds=folds, **{"gammas": 0.1, "taus": 3, **options})
    plan = sc.make_folds(folds, DATA)
    predicted = held_out_predictions(record, DATA, plan)
    words = {"scale": record.data.scale, "intercept": record.data.intercept}
    for fold in (0, plan.k - 1):
        support = [DATA.names.index(name) for name in record.chosen_folds[fold].support]
        model = fit(DATA.X, DATA.y, support, record.gamma, rows=plan.train_rows(fold), **words)
        test = plan.scored_rows(fold)
        assert predicted[test] == pytest.approx(model.predict(DATA.X[test]), rel=1e-9)
    held = plan.labels >= 0
    assert np.mean((DATA.y - predicted)[held] ** 2) == pytest.approx(record.cv_error, rel=1e-9)
    assert np.isnan(predicted[~held]).all()
    assert record.mae == pytest.approx(np.mean(np.abs(DATA.y - predicted)[held]), rel=1e-6)
    report = sc.verify(record, DATA)
    assert report.ok and sc.verify(replace(record, mae=1.2 * record.rmse), DATA).failures[0].field == "mae"
    assert sc.verify(replace(record, mae=1e-3 * record.rmse), DATA).failures[0].field == "mae"


@pytest.mark.parametrize("rule", [{"one_se": True}, {"stability": 5.0}])
def test_predictions_and_errors_are_of_the_pair_that_a_rule_chose(rule: dict[str, Any]) -> None:
    record = sc.solve(DATA, folds="10", gammas="0.01,0.1,1", **rule)
    assert record.least is not None and (record.gamma, record.tau) != (record.least.gamma, record.least.tau)
    predicted = held_out_predictions(record, DATA, "10")
    assert np.mean((DATA.y - predicted) ** 2) == pytest.approx(record.cv_error, rel=1e-9)
    assert record.mae == pytest.approx(np.mean(np.abs(DATA.y - predicted)), rel=1e-6)
    assert record.least.cv_error < record.cv_error == record.own_row.cv_error  # type: ignore[union-attr]
    assert sc.verify(record, DATA).failures == ()


def test_a_mean_absolute_error_is_found_where_it_is_soon_found(monkeypatch: pytest.MonkeyPatch) -> None:
    repeated = sc.solve(DATA, folds="3x2", gammas=0.1, taus=2)
    rows, predicted = predictions_by_fold(repeated, DATA, "3x2")
    assert len(rows) == 3 * DATA.n and repeated.mae == pytest.approx(np.mean(np.abs(DATA.y[rows] - predicted)))
    monkeypatch.setattr(fold_models, "FOLDS_ONE_BY_ONE", 4)
    assert sc.solve(DATA, folds="5", gammas=0.1, taus=2).mae is None
    monkeypatch.undo()
    many = sc.solve(DATA, folds="30", gammas=0.1, taus=2)
    rows, predicted = predictions_by_fold(many, DATA, "30")
    assert many.mae == pytest.approx(np.mean(np.abs(DATA.y[rows] - predicted)))
    assert sc.verify(many, DATA).failures == ()
    monkeypatch.setattr(fold_models, "QUICK_WORK", 30 * DATA.X.size - 1)
    assert sc.solve(DATA, folds="30", gammas=0.1, taus=2).mae is None
    assert sc.solve(DATA, folds="loo", gammas=0.1, taus=2).mae is not None
    weighted = sc.Dataset.from_arrays(DATA.X, DATA.y, DATA.names, "lpsa", {"w": np.ones(DATA.n)})
    assert sc.solve(weighted, folds="4", gammas=0.1, taus=2).mae is not None


@pytest.mark.parametrize("folds", ["3x4", "forward:4"])
def test_rows_scored_by_several_folds_get_the_mean_of_their_predictions(folds: str) -> None:
    record, plan = sc.solve(DATA, folds=folds, gammas=0.1, taus=2), sc.make_folds(folds, DATA)
    predicted, squares = held_out_predictions(record, DATA, plan), []
    each: list[list[float]] = [[] for _ in range(DATA.n)]
    for fold in range(plan.k):
        support = [DATA.names.index(name) for name in record.chosen_folds[fold].support]
        model = fit(DATA.X, DATA.y, support, record.gamma, rows=plan.train_rows(fold))
        rows = plan.scored_rows(fold)
        for row, value in zip(rows.tolist(), model.predict(DATA.X[rows]).tolist(), strict=True):
            each[row].append(value)
            squares.append((DATA.y[row] - value) ** 2)
    assert predicted == pytest.approx([np.mean(one) if one else np.nan for one in each], rel=1e-9, nan_ok=True)
    assert np.mean(squares) == pytest.approx(record.cv_error, rel=1e-9)
    rows, single = predictions_by_fold(record, DATA, plan)
    assert np.mean((DATA.y[rows] - single) ** 2) == pytest.approx(record.cv_error, rel=1e-9)


def test_other_data_or_folds_are_refused() -> None:
    record = sc.solve(DATA, folds="5", gammas=0.1, taus=2)
    with pytest.raises(sc.SparseCVError, match="not the folds of the record"):
        held_out_predictions(record, DATA, "6")
    with pytest.raises(sc.SparseCVError, match="not the data of the record"):
        held_out_predictions(record, sc.Dataset.from_arrays(DATA.X, DATA.y + 1.0), "5")


def drawn() -> sc.Dataset:
    return problems.linear(5, 30, 4, {0: 1.0, 2: -0.5})


def solved(data: sc.Dataset, **given: Any) -> Record:
    return sc.solve(data, **{"folds": "5", "gammas": "0.05,1", "threads": 1, **given})


def test_it_is_what_a_search_of_every_weight_gives() -> None:
    data = drawn()
    plan = sc.make_folds("5", data)
    record, outer = solved(data, stability="nested"), outer_folds(OUTER, plan, data)
    assert record.stability is not None and record.stability.chosen is not None
    chosen = record.stability.chosen
    assert tuple(one.weight for one in chosen.tried) == STABILITY_WEIGHTS and chosen.proved
    for tried in chosen.tried:
        errors = []
        for fold in range(OUTER):
            training = data.take(outer.train_rows(fold))
            inner = inner_folds(plan, outer.train_rows(fold), training)
            one = sc.cross_validate(training, inner, gammas="0.05,1", taus=None, threads=1, stability=tried.weight)
            test = data.take(outer.scored_rows(fold))
            errors += ((test.y - one.predict(test)) ** 2).tolist()
        assert tried.error == pytest.approx(np.mean(errors), rel=1e-9)
    assert chosen.weight == min(chosen.tried, key=lambda one: (one.error, one.weight)).weight
    again = solved(data, stability=chosen.weight)
    assert (again.coefficients, again.support) == (record.coefficients, record.support)
    assert sc.verify(record, data).ok and Record.from_json(record.to_json()) == record


def test_a_limit_keeps_an_answer() -> None:
    record = solved(drawn(), stability="nested", time_limit=1e-3)
    assert record.request.time_limit == 1e-3 and record.stability is None or record.refit.tau == record.tau
    assert any("no weight was tried" in warning for warning in record.warnings)


@pytest.mark.parametrize("wrong", [-1.0, "soon", float("nan"), (), 1e300, [1.0, -2.0]])
def test_what_is_no_weight_is_refused(wrong: Any) -> None:
    with pytest.raises(BadInput, match="stability"):
        SearchOptions.of(stability=wrong)


def test_the_seconds_of_a_limit_are_counted_with_those_of_the_outer_folds() -> None:
    record = solved(drawn(), stability="nested", time_limit=0.3)
    assert record.status == "proved" or record.work.seconds >= 0.95 * 0.3


GAMMAS = "0.05,1"


def drawn_nested(seed: int = 0, n: int = 30) -> sc.Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] - X[:, 2] + rng.normal(size=n)
    return sc.Dataset.from_arrays(X, y, aux={"g": np.arange(n) // 3})


def solved_nested(**given: Any) -> Record:
    return sc.solve(drawn_nested(), **{"folds": "5", "gammas": GAMMAS, "nested": 3, "threads": 1, **given})


def test_it_is_what_cross_val_predict_makes_of_the_estimator() -> None:
    data, record = drawn_nested(), solved_nested(one_se=True)
    outer = outer_folds(3, sc.make_folds("5", data), data)
    splits = [(outer.train_rows(j), outer.scored_rows(j)) for j in range(3)]
    model = sc.BestSubsetRidgeCV(gammas=GAMMAS, cv=5, one_se=True)
    predicted = cross_val_predict(model, data.X, data.y, cv=splits)
    assert record.nested is not None and record.least is not None
    assert record.nested.error == pytest.approx(np.mean((data.y - predicted) ** 2), rel=1e-12)
    assert record.nested.optimism == pytest.approx(100.0 * (record.nested.error / record.cv_error - 1.0))
    assert [one.fold for one in record.nested.folds] == [0, 1, 2]


def test_a_stop_keeps_the_main_answer_and_the_folds_that_are_done() -> None:
    stop, stages = threading.Event(), []

    def watch(state: Progress) -> None:
        stages.append(state.stage)
        if "outer fold 2 of 3" in state.stage:
            stop.set()

    record = solved_nested(stop=stop, progress=watch)
    assert record.status == "proved" and record.nested is not None
    assert [one.fold for one in record.nested.folds] == [0] and record.nested.standard_error is None
    assert any("outer fold 1 of 3" in stage for stage in stages) and sc.verify(record, drawn_nested()).ok
    stop.clear()
    early = solved_nested(stop=stop, progress=lambda state: stop.set())
    assert early.nested is None and early.cv_error > 0.0
    for found, words in (
        (record, "after 1 of 3 outer folds, so"),
        (early, "before the first of 3 outer folds was done"),
    ):
        (said,) = [line for line in found.warnings if line.startswith("nested: ")]
        assert f"the run was interrupted {words}" in said and "limit" not in said
        page = report_text(found, "md", "R", None, "D")
        assert f"N{said[1:]}." in page[page.index("The answer") : page.index("What is certified")]
    assert not any("outer folds" in line for line in solved_nested().warnings)


@pytest.fixture
def plain_interrupts() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, whatever handler the test run has."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("plain_interrupts")
def test_outer_folds_state_that_missing_values_were_imputed_from_all_rows() -> None:
    """The warning is true: with the columns of all rows, already imputed, the nested error is the same."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "c"])
    frame["y"] = frame.a + 0.3 * rng.normal(size=30)
    frame.loc[[2, 9, 17], "a"] = np.nan
    how: dict[str, Any] = {"target": "y", "folds": "5", "gammas": [0.1], "taus": [1, 2], "nested": 3}
    said = (
        "missing values were imputed once by the median of all rows; the imputation is not repeated without each outer"
    )
    with pytest.warns(SparseCVWarning, match="imputed by the median"):
        record = sc.solve(frame, **how, na="median", stability="nested")
    filled = sc.solve(frame.fillna({"a": frame.a.median()}), **how)
    assert record.nested is not None and filled.nested is not None
    assert [words for words in record.warnings if said in words] == [
        f"{what}: {said} fold" for what in ("stability nested", "nested")
    ]
    page = report_text(record, "md", "R", None, "D")
    assert f"Nested: {said} fold." in page[page.index("The answer") : page.index("What is certified")]
    assert not any("outer fold" in words for words in filled.warnings)
    assert sc.solve(frame, **how, na="median").nested == filled.nested


@pytest.mark.parametrize("nested", [None, 3])
def test_ctrl_c_returns_the_best_answer_so_far(nested: int | None, capfd: pytest.CaptureFixture[str]) -> None:
    data, sent = problems.linear(0, 60, 30, {0: 1.0, 1: -1.0, 2: 0.5}, noise=4.0), list[int]()

    def interrupt(state: Progress) -> None:
        if state.best is not None and not sent:
            sent.append(1)
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    record = sc.solve(data, folds="5", gap=1e-9, nested=nested, progress=interrupt, threads=1)
    assert sent and record.status == "interrupted" and record.support
    assert record.lower <= record.upper and sc.verify(record, data).ok
    assert signal.getsignal(signal.SIGINT) is before and "press Ctrl-C again to quit" in capfd.readouterr().err


def test_a_search_that_reaches_its_limit_warns_with_its_bounds_and_a_remedy() -> None:
    data = problems.linear(0, 60, 30, {0: 1.0, 1: -1.0, 2: 0.5}, noise=4.0)
    with pytest.warns(SparseCVWarning, match="^the search reached its limit before the answer was certified") as caught:
        record = sc.solve(data, folds="5", gap=0.0, gammas="1e-3:10:15", time_limit=0.5)
    said = str(caught[0].message)
    assert record.status == "limit" and "certified bounds: lower " in said and "time_limit" in said
    assert "--" not in said and not any("reached its limit" in words for words in record.warnings)


def test_a_long_search_without_limit_and_progress_warns_once_of_its_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running_search, "SILENT_SECONDS", 0.0)
    data = problems.linear(0, 40, 12, {0: 1.0, 1: -1.0, 2: 0.5}, noise=4.0)
    how: dict[str, Any] = {"folds": "5", "gammas": [0.1, 1.0]}
    said = "^no time limit: after . s the minimum CV error is in .*; time_limit=300 ends a search .*; fewer `taus` or"
    with pytest.warns(SparseCVWarning, match=said) as caught:
        record = sc.solve(data, **how, nested=3)
    assert sum("no time limit" in str(one.message) for one in caught) == 1
    with pytest.warns(SparseCVWarning, match=said) as caught:
        sc.bootstrap(record, data, 3)
    assert sum("no time limit" in str(one.message) for one in caught) == 1
    with warnings.catch_warnings(record=True) as caught_otherwise:
        warnings.simplefilter("always")
        sc.solve(data, **how, time_limit=60)
        sc.solve(data, **how, progress=lambda state: None)
    assert not any("no time limit" in str(one.message) for one in caught_otherwise)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "no time limit")
        assert sc.solve(data, **how).status == "proved"


def test_a_second_ctrl_c_while_the_answer_is_built_quits() -> None:
    data, sent = problems.linear(0, 60, 30, {0: 1.0, 1: -1.0, 2: 0.5}, noise=4.0), list[int]()

    def press(*_given: object) -> None:
        sent.append(1)
        time.sleep(1.1 * (len(sent) - 1))  # the second one comes more than a second later
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        sc.solve(data, folds="5", gap=1e-9, progress=lambda state: sent or press(), found=press, threads=1)
    assert len(sent) == 2


@pytest.mark.usefixtures("plain_interrupts")
def test_ctrl_c_before_any_answer_is_a_keyboard_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: Any, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        raise OutOfTime("no answer yet")

    monkeypatch.setattr("sparsecv_mio.search.api.cross_validate", interrupted)
    with pytest.raises(KeyboardInterrupt, match="no answer yet"):
        sc.solve(DATA)
    with pytest.raises(KeyboardInterrupt):  # the handler of the program
        sc.solve(DATA, stop=threading.Event())


def test_what_is_wrong_inside_says_where() -> None:
    with pytest.raises(BadInput, match="^nested: 1 is out of range"):
        solved_nested(nested=1)
    data = drawn_nested()
    flat = sc.Dataset.from_arrays(data.X, np.where(np.arange(30) == 4, 1.0, 0.0))
    with pytest.raises(BadInput, match="^nested, with outer fold . held out: target 'y' is constant"):
        sc.solve(flat, folds="5", gammas=GAMMAS, nested=3)


def test_an_outer_fold_that_fails_leaves_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(question: Any, outer: Any, fold: int, *given: Any, **options: Any) -> None:
        raise BadInput(f"nested, with outer fold {fold + 1} held out: no fit")

    whole = solved_nested()
    monkeypatch.setattr("sparsecv_mio.search.api.answer_outer_fold", fail)
    record = solved_nested()
    assert (record.status, record.cv_error, record.nested) == (whole.status, whole.cv_error, None)
    assert "nested: left out of the answer: with outer fold 1 held out: no fit" in record.warnings
    assert "The requested nested cross-validation gave no results: left out of" in make_publication(record).methods


@pytest.mark.parametrize("na_within", ["all", "folds"])
def test_columns_without_a_penalty_are_checked_in_outer_folds_before_the_search(
    na_within: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rows of the rare level have each class: without two rows of one class, the level separates the classes."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.normal(size=40), "rare": [1.0] * 4 + [0.0] * 36, "y": [0, 0, 1, 1, *[0, 1] * 18]})
    frame.loc[20, "a"] = np.nan
    asked = {"loss": "logistic", "na": "mean", "na_within": na_within, "adjust": "rare", "gammas": 0.1, "taus": [0, 1]}
    monkeypatch.setattr("sparsecv_mio.search.api._solve_grid", lambda *given: pytest.fail("the search began"))
    with pytest.raises(BadInput, match="^nested, with outer fold . held out: adjust: on .*'rare' separates the two cl"):
        sc.solve(frame, "y", folds="loo", nested=2, **asked)


def test_the_command_prints_and_stores_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path, out = drawn_nested(), tmp_path / "data.csv", tmp_path / "out.json"
    head = ",".join((*data.names, "y"))
    np.savetxt(path, np.column_stack([data.X, data.y]), delimiter=",", header=head, comments="", fmt="%.17g")
    ask = ["solve", str(path), "--target", "y", "--folds", "5", "--gamma", GAMMAS, "--threads", "1", "--nested", "3"]
    assert run([*ask, "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert (
        "nested CV error of the whole procedure: " in printed
        and ", over 3 outer folds (drawn with --seed 0)" in printed
    )
    assert "models chosen with one outer fold held out" in printed
    record, ours = Record.from_json(out.read_text()), solved_nested()
    assert record.nested == ours.nested
    assert run(["verify", str(out), str(path)]) == 0
    assert "held-out errors of 3 models, each chosen with one outer fold held out" in capsys.readouterr().out


@pytest.mark.parametrize("folds", ["groups:g", "groups:g:4", "loo", "column:g", "labels"])
def test_the_seed_draws_the_outer_folds_of_any_folds(folds: str) -> None:
    """Groups stay together in them, and `verify` draws them again from the record."""
    data = drawn_nested()
    given: Any = data.aux["g"] if folds == "labels" else folds
    digests = set()
    for seed in (0, 5):
        record = solved_nested(folds=given, seed=seed, taus=1, gammas=1.0)
        assert record.nested is not None and record.nested.outer.seed == seed
        digests.add(record.nested.outer.digest)
        plan = make_folds(given, data, seed)
        assert sc.verify(record, data, plan if folds == "labels" else None).ok
        if folds != "loo":
            assert record.nested.outer.spec == f"3 of whole groups ({plan.spec})"
            older = replace(record.nested.outer, spec="3")
            of_older = replace(record, nested=replace(record.nested, outer=older))
            assert sc.verify(of_older, data, plan if folds == "labels" else None).ok
            outer = outer_folds(3, plan, data)
            assert all(len(set(outer.labels[data.aux["g"] == group])) == 1 for group in range(10))
    assert len(digests) == 2


def test_folds_of_groups_are_split_by_groups_in_nested_folds() -> None:
    """As many outer folds as folds of groups are possible: the units are the 10 groups, not the 3 folds."""
    data = drawn_nested()
    plan = sc.make_folds("groups:g:3", data)
    outer = outer_folds(5, plan, data)
    assert outer.k == 5 and outer.sizes.tolist() == [6] * 5
    inner = inner_folds(plan, outer.train_rows(0), data.take(outer.train_rows(0)))
    assert inner.spec == "groups:g:3" and inner.k == 3
    record = solved_nested(folds="groups:g:3", taus=1, gammas=1.0)
    old = outer_folds(2, plan, data, by_fold=True)
    assert record.nested is not None and sc.verify(record, data).ok
    with pytest.raises(BadInput, match="form 10 groups \\(each stays in one fold\\), so at most 9 outer folds are"):
        outer_folds(10, plan, data)
    assert len({tuple(set(plan.labels[old.scored_rows(j)])) for j in range(2)}) == 2


PROSTATE = INSTANCES / "prostate.csv"
QUICK: dict[str, Any] = {"gammas": 0.1, "taus": "1:3"}


def test_the_defaults_are_those_of_the_command(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    assert run(["solve", str(PROSTATE), "--target", "lpsa", "--json", str(file), "--quiet"]) == 0
    theirs, ours = sc.read_record(file), sc.solve(PROSTATE, target="lpsa")
    assert isinstance(theirs, Record)
    for field in ("gamma", "tau", "cv_error", "lower", "upper", "table", "coefficients", "intercept", "data", "folds"):
        assert getattr(ours, field) == getattr(theirs, field), field


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"target": None}, "target: no column is given; name the column to predict"),
        ({"target": "nobody"}, "target 'nobody' is not in the data"),
        ({"data": [[1.0]]}, "data: a list is not a table in memory; give a table of pandas, polars"),
        ({"data": pd.DataFrame({"a": [1.0]}), "target": None}, "target: no column is given"),
        ({"data": sc.Dataset.from_arrays([[1.0]], [1.0])}, "but the data already have the target 'y'"),
        ({"folds": [0, 1]}, "folds: 2 labels for 97 rows"),
        ({"folds": "4", "gammas": [[0.1]]}, "is not a finite number"),
        ({"folds": 3.5}, "folds 3.5 are unknown; give a number"),
        ({"folds": "often"}, "folds 'often' are unknown"),
        ({"gammas": "much"}, "gammas: 'much' is not a number"),
        ({"gammas": -0.1}, "gamma -0.1 is out of range"),
        ({"taus": 9}, "tau 9 is out of range; give a number from 0 to 8"),
    ],
)
def test_bad_input_is_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(sc.SparseCVError, match=f"^[^\n]*{said}[^\n]*$"):
        sc.solve(**{"data": PROSTATE, "target": "lpsa"} | QUICK | given)


MESSY = pd.DataFrame({
    "id": [f"r{k}" for k in range(12)], "a": [f"{500 * k + 100:,}" for k in range(12)],
    "b": [None if k == 3 else float(k % 5) for k in range(12)], "c": [("u", "v", "w")[k % 3] for k in range(12)],
    "y": [1.5 * k + (k % 4) for k in range(12)],
})  # fmt: skip


def test_messages_name_keywords(tmp_path: Path) -> None:
    path, options = tmp_path / "messy.csv", dict[str, Any]()
    MESSY.to_csv(path, index=False)
    with pytest.raises(sc.SparseCVError) as caught:
        sc.solve(path, "y", drop=["id"], **QUICK)
    assert "--" not in str(caught.value) and "\n" not in str(caught.value)
    for word in ('thousands=","', 'na="drop" or na="mean"', 'encode="onehot"'):
        assert word in str(caught.value)
    both = 'give thousands="," .1100. or decimal="," and thousands="none" .1.1.'
    with pytest.raises(sc.SparseCVError, match=both):
        sc.solve(MESSY, "y", features=["a"], **QUICK)
    with pytest.raises(
        sc.SparseCVError, match="^na: applies to a file or a frame, and these data have been read already"
    ):
        sc.solve(sc.read_dataset(PROSTATE, "lpsa"), na="drop", **QUICK)
    with pytest.raises(sc.SparseCVError, match="^sep: requires a file; omit it for frames"):
        sc.solve(MESSY, "y", sep=";", **options)
    with pytest.raises(TypeError, match=r"'thousand' \(did you mean 'thousands'\?\)"):
        sc.solve(MESSY, "y", thousand=",")  # type: ignore[call-arg]


@pytest.mark.parametrize(("suffix", "call"), [
    ("xlsx", "pd.read_excel("), ("xls", "pd.read_excel("), ("ods", "pd.read_excel("), ("dta", "pd.read_stata("),
    ("sav", "pd.read_spss("), ("sas7bdat", "pd.read_sas("), ("json", "pd.read_json("), ("jsonl", "lines=True"),
    ("db", "pd.read_sql("), ("sqlite", "sqlite3.connect("), ("rds", "pyreadr.read_r("), ("RData", "pyreadr.read_r("),
    ("pkl", "pd.read_pickle("), ("h5", "pd.read_hdf("), ("orc", "pd.read_orc("),
])  # fmt: skip
def test_files_that_pandas_reads_are_refused_with_its_call(
    tmp_path: Path, suffix: str, call: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"data.{suffix}"
    path.write_bytes(b"x")
    for command in (["solve", str(path), "-t", "y"], ["inspect", str(path)]):
        assert run(command) == 2
        said = capfd.readouterr().err
        assert f"in Python give sc.solve({call.partition('(')[0]}" in said or call in said
        assert said.count("\n") == 1 and "target=...)" in said


def test_the_call_that_is_named_works(tmp_path: Path) -> None:
    frame = read_csv(PROSTATE)
    frame.to_json(tmp_path / "data.json")
    with pytest.raises(sc.SparseCVError) as caught:
        sc.solve(tmp_path / "data.json", "lpsa")
    path = str(tmp_path / "data.json")
    assert f"sc.solve(pd.read_json({path!r}), target=...)" in str(caught.value)
    ours, theirs = sc.solve(pd.read_json(path), target="lpsa", **QUICK), sc.solve(PROSTATE, "lpsa", **QUICK)
    assert ours.cv_error == pytest.approx(theirs.cv_error, rel=1e-8)  # JSON keeps ten digits


@pytest.mark.parametrize("folds", ["4", 4, KFold(4), "labels"])
def test_weights_of_solve_are_those_of_the_command_line(tmp_path: Path, folds: Any) -> None:
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "y"]).round(3)
    frame["w"] = rng.choice([0.0, 1.0, 2.5], 30)
    data = sc.Dataset.from_frame(frame, "y", aux=("w",))
    folds = np.arange(30) % 4 if isinstance(folds, str) and folds == "labels" else folds
    how: dict[str, Any] = {"folds": folds, "gammas": [0.1, 1.0], "taus": [1, 2], "weights": "w"}
    record = sc.solve(frame, "y", **how)
    assert record.data.names == ("a", "b") and record.data.weights == "w" and record.data.n == int((frame.w > 0).sum())
    assert sc.solve(data, **how).cv_error == record.cv_error
    if isinstance(folds, str):
        assert sc.verify(record, data).ok
        file, stored = tmp_path / "rows.csv", tmp_path / "record.json"
        frame.to_csv(file, index=False)
        line = ["solve", str(file), "-t", "y", "--folds", "4", "--gamma", "0.1,1", "--tau", "1:2", "--weights", "w"]
        assert run([*line, "--json", str(stored)]) == 0
        assert json.loads(stored.read_text())["cv_error"] == record.cv_error
    with pytest.raises(BadInput, match="weights: 'w' is not stored with these data"):
        sc.solve(sc.Dataset.from_frame(frame.drop(columns="w"), "y"), **how)
    with pytest.raises(BadInput, match="weights: the value is not a text; name a column"):
        sc.solve(data, **how | {"weights": frame.w})


def test_a_frame_is_refused_where_a_dataset_is_needed() -> None:
    with pytest.raises(
        BadInput,
        match=r"cross_validate needs a Dataset, but the data are DataFrame; solve takes a frame or a file, ",
    ):
        sc.cross_validate(pd.DataFrame({"x": [1.0], "y": [1.0]}), "y", gammas=None, taus=None)  # type: ignore[arg-type]


def test_warnings_of_a_record_are_issued_too() -> None:
    frame = read_csv(INSTANCES / "prostate.csv").assign(one=1.0)
    with pytest.warns(SparseCVWarning, match="'one' is constant") as caught:
        record = sc.solve(frame, "lpsa", gammas=0.1, taus=1, folds=5)
    assert {str(warning.message) for warning in caught} >= set(record.warnings)
    with pytest.warns(SparseCVWarning, match="; with `drop` alley, 12 rows remain$"):
        sc.solve(
            frame.head(12).assign(alley=[*range(6), *[None] * 6]), "lpsa", na="drop", gammas=0.1, taus=1, folds="loo"
        )


def test_defaults_and_arguments_are_those_of_solve() -> None:
    record = sc.cross_validate(DATA, "3", time_limit=60.0)
    assert record.request.taus == tuple(range(1, 9)) and len(record.request.gammas) == 15
    frame = read_csv(INSTANCES / "prostate.csv")
    assert sc.best_subsets(frame, "lpsa", gammas=0.1, taus=2).path == sc.best_subsets(DATA, gammas=0.1, taus=2).path
    held_out = record.held_out_predictions(DATA)
    assert np.mean((DATA.y - held_out) ** 2) == pytest.approx(record.cv_error, rel=1e-9)
    assert np.array_equal(record.held_out_predictions(frame), held_out)
    labels = np.arange(DATA.n) % 3
    labelled = sc.cross_validate(DATA, labels, gammas=0.1, taus=2)
    with pytest.raises(BadInput, match="made in Python"):
        labelled.held_out_predictions(DATA)
    classes = frame.assign(lpsa=(frame["lpsa"] > 2.5).astype(int))
    two = sc.solve(classes, "lpsa", loss="logistic", gammas=0.1, taus=2, folds="4")  # stratified by the classes
    chances = np.where(classes["lpsa"], two.held_out_predictions(classes), 1.0 - two.held_out_predictions(classes))
    assert -np.mean(np.log(chances)) == pytest.approx(two.cv_error, rel=1e-9)
    error = DATA.y - labelled.held_out_predictions(DATA, labels)
    assert np.mean(error**2) == pytest.approx(labelled.cv_error, rel=1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_held_out_predictions_take_the_data_of_a_record_with_row_weights(loss: str, tmp_path: Path) -> None:
    frame = read_csv(INSTANCES / "prostate.csv").assign(w=np.arange(97) % 4)
    if loss == "logistic":
        frame["lpsa"] = (frame["lpsa"] > 2.5).astype(int)
    record = sc.solve(frame, "lpsa", loss=loss, gammas=0.1, taus=2, folds=4, weights="w")
    frame.to_csv(tmp_path / "w.csv", index=False)
    aux = {"w": frame["w"].to_numpy()}
    data = sc.Dataset.from_arrays(frame.drop(columns=["w", "lpsa"]), frame["lpsa"], target="lpsa", aux=aux)
    expected = record.held_out_predictions(sc.read_dataset(frame, "lpsa", weights="w"))
    for given in (frame, tmp_path / "w.csv", data):
        assert np.array_equal(record.held_out_predictions(given), expected)
    with pytest.raises(BadInput, match=r"data with row weights; give .* aux=\{record.data.weights: w\}\)$"):
        record.held_out_predictions(sc.Dataset.from_frame(frame, "lpsa", drop=["w"]))
    kept = frame[frame["w"] > 0]
    held_out = (
        (kept["lpsa"] - expected) ** 2 if loss == "squared" else -np.log(np.where(kept["lpsa"], expected, 1 - expected))
    )
    assert np.average(held_out, weights=kept["w"]) == pytest.approx(record.cv_error, rel=1e-9)


def test_a_row_or_an_estimator_that_is_no_table_or_path_is_one_line(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["u", "v", "w"] * 6, "b": np.arange(18.0) ** 2, "y": np.arange(18.0)})
    record = sc.solve(frame, "y", encode="onehot", gammas=0.1, taus=1, folds=3)
    with pytest.raises(BadInput, match=r"^X: a Series is not a table; give a frame, such as X\.iloc\[\[0\]\] "):
        record.predict(frame.iloc[0])
    with pytest.raises(BadInput, match="^path: a dict is not a path; give the file of a record$"):
        sc.read_record({})  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="^target: must be the name or position of a column; for arrays use "):
        sc.Dataset.from_frame(frame, frame["y"])  # type: ignore[arg-type]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for rows in (frame, tmp_path / "rows.csv", sc.Dataset.from_frame(frame.drop(columns="a"), "y")):
        with pytest.raises(
            BadInput, match="^folds: 'y' is not a kind of folds; .* a column to predict, give target='y'$"
        ):
            sc.near_optimal(rows, "y", gamma=0.1, taus=1)
    with pytest.raises(BadInput, match=r"^folds: 'stratifed:3' is not a kind of folds \(did you mean 'stratified'\?\)"):
        sc.near_optimal(sc.Dataset.from_frame(frame.drop(columns="a"), "y"), "stratifed:3", gamma=0.1, taus=1)
    with pytest.raises(BadInput, match=r"^target 'y' .*; give X and y as Dataset.from_arrays\(X, y, target='y'\)$"):
        sc.verify(record, frame.drop(columns="y"))
    with pytest.raises(BadInput, match=r"^loss: unknown word 'binomial' \(did you mean 'logistic'\?\); use "):
        sc.solve(frame, "y", loss="binomial")


def test_notes_that_the_command_prints_are_warnings_too() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 3))
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(n=rng.negative_binomial(1, 0.05, size=60))
    with pytest.warns(SparseCVWarning, match="taus='0:3' includes it") as caught:
        counts = sc.solve(frame, "n", loss="poisson", folds=4, gammas=0.1, taus=[1, 2, 3])
    [words] = [words for words in counts.warnings if "the counts are overdispersed" in words]
    assert any(warning.category is SparseCVWarning and words in str(warning.message) for warning in caught)
    mu = counts.predict(frame)
    ratio = float(np.sum((frame["n"] - mu) ** 2 / mu)) / (60 - counts.tau - 1)
    assert counts.pearson(frame).ratio == pytest.approx(ratio, rel=1e-9) and f"{ratio:.4g}: " in words
    assert sc.verify(counts, frame).ok and Record.from_json(counts.to_json()).warnings == counts.warnings
    frame["n"] = (x[:, 0] - x[:, 1] > 0.0).astype(int)
    with pytest.warns(SparseCVWarning, match="`loss` logistic fits probabilities"):
        record = sc.solve(frame, "n", folds=4, gammas=[0.1, 1.0], taus=[1])
    assert record.warnings[1:] == ("the best gamma is the smallest of the grid; try --gamma 0.01:1:3",)
    with pytest.raises(BadInput, match="^pearson: requires a record with Poisson loss or trials, not squared"):
        record.pearson(frame)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gammas": [10**400]}, "gamma"),
        ({"taus": [10**400]}, "tau"),
        ({"gap": 10**400}, "gap"),
        ({"time_limit": 10**400}, "time"),
    ],
)
def test_numbers_beyond_double_precision_are_refused(options: dict[str, Any], message: str) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": [2.0, 1.0, 4.0, 3.0]})
    with pytest.raises(BadInput, match=message):
        sc.solve(frame, "y", folds="2", **options)
    with pytest.raises(BadInput, match=r"column 'a' holds a number in row 2 \(index 1\) that is too large"):
        sc.solve(frame.assign(a=pd.Series([1, 10**400, 2, 3], dtype=object)), "y", folds="2")
    with pytest.raises(BadInput, match="numbers only"):
        sc.Dataset.from_arrays([[1, 10**400], [2, 3]], [1.0, 2.0])


def test_separated_classes_have_no_hint_on_smaller_gammas() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": np.r_[rng.normal(0, 1, 30), rng.normal(9, 1, 30)], "b": rng.normal(size=60)})
    frame["ill"] = np.repeat([0, 1], 30)
    with pytest.warns(SparseCVWarning, match="give larger gammas") as caught:
        record = sc.solve(frame, "ill", folds="5", loss="logistic", gammas=[1e-3, 1e-2, 1e-1])
    assert record.gamma == 1e-3 and not any("try gammas" in str(one.message) for one in caught)


def test_a_null_model_that_may_predict_better_is_no_edge_of_the_grid() -> None:
    rng = np.random.default_rng(0)
    with pytest.warns(SparseCVWarning, match="R.2 is below 0, so the mean .* may predict better: taus='0:2'") as caught:
        sc.solve(sc.Dataset.from_arrays(rng.normal(size=(30, 3)), rng.normal(size=30)), gammas=0.01, taus=[1, 2])
    assert {one.category for one in caught if "may predict better" in str(one.message)} == {SparseCVWarning}


def test_a_search_that_compiles_kernels_does_not_warn_that_it_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    data, searches = problems.linear(0, 30, 4, {0: 1.0}, noise=1.0), list[Any]()
    monkeypatch.setattr(api, "make_first_use", lambda *given: searches.append(given[-1]))
    monkeypatch.setattr(running_search, "SILENT_SECONDS", -1.0)
    monkeypatch.setattr(api, "start_clock", lambda *given: Deadline(None, None))
    question = Question(data, make_folds("3", data), [1.0], [1], SearchOptions(), Hooks())
    api.start_question_clock(question)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        searches[0](data, question.folds, [1.0], [1], None)
    with pytest.warns(SparseCVWarning, match="no time limit"):
        sc.solve(data, folds="3", gammas=[1.0], taus=[1])
