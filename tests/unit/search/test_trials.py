"""Searches for k successes of n trials: equal to searches with a row for each trial, and to GLM of statsmodels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.batch.batch_plan import Task, make_tasks
from sparsecv_mio.batch.one_task import run_task, task_rows
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.loss_targets import expand_trials
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.criteria import glm_criteria
from sparsecv_mio.fits.fit_options import PathOptions
from sparsecv_mio.inference.draws import find_units
from sparsecv_mio.model_space import Restrictions

FEATURES = list("abcd")
GRID: dict[str, Any] = {"loss": "logistic", "gammas": [0.1, 1.0], "taus": [1, 2], "threads": 1}


def table(m: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(rng.normal(size=(m, 4)), columns=FEATURES).assign(o=0.5 * rng.normal(size=m))
    frame["n"] = rng.integers(1, 9, m)
    frame["k"] = rng.binomial(frame["n"], 1.0 / (1.0 + np.exp(-frame["o"] - frame["a"] + 0.8 * frame["c"])))
    return frame


def plain() -> pd.DataFrame:
    return table().drop(columns="o")


def by_trial(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each trial, with the position of its case."""
    case = np.repeat(np.arange(len(frame)), frame["n"])
    rows = frame.iloc[case].reset_index(drop=True).assign(case=case)
    first = np.concatenate([np.arange(n) for n in frame["n"]])
    return rows.assign(y=(first < rows["k"]).astype(float)).drop(columns=["n", "k"])


@pytest.fixture(scope="module")
def record() -> Record:
    return sc.solve(plain(), "k", trials="n", folds="5", **GRID)


def test_a_search_equals_that_of_single_trials(record: Record) -> None:
    frame = table()
    labels = sc.make_folds("5", Dataset.from_frame(plain(), "k", aux=("n",))).labels
    trials = by_trial(frame).assign(fold=lambda rows: labels[rows["case"]]).drop(columns=["o", "case"])
    single = sc.solve(trials, "y", folds="column:fold", **GRID)
    assert record.status == single.status == "proved" and record.support == single.support
    for name in ("cv_error", "lower", "upper", "intercept", "r_squared", "null_error"):
        assert getattr(record, name) == pytest.approx(getattr(single, name), rel=1e-9), name
    assert record.coefficients == pytest.approx(single.coefficients, rel=1e-8)
    for name in ("accuracy", "auc", "brier"):
        assert getattr(record.classes, name) == pytest.approx(getattr(single.classes, name), rel=1e-9), name
    assert record.data.total_weight == frame["n"].sum() == single.data.n and record.data.trials == "n"


def test_default_grids_depend_on_the_number_of_trials() -> None:
    made = sc.solve(plain(), "k", loss="logistic", trials="n", folds=3, time_limit=1e-3)
    single = sc.solve(by_trial(table()).drop(columns=["o", "case"]), "y", loss="logistic", folds=3, time_limit=1e-3)
    assert made.request.taus == single.request.taus
    assert made.request.gammas == pytest.approx(single.request.gammas, rel=0.1)


@pytest.mark.parametrize("folds", ["loo", "stratified:4", "2x3", "forward:4", "groups:c:6", "holdout:0.3"])
def test_the_outcomes_of_a_case_share_a_fold(folds: str) -> None:
    data = Dataset.from_frame(plain(), "k", aux=("n",))
    expanded = expand_trials(data, "n")
    cases = sc.make_folds(folds, replace(data, y=data.y / data.aux["n"], aux={"c": data.X[:, 2]}))
    plan = sc.make_folds(folds, replace(expanded, aux={**expanded.aux, "c": expanded.X[:, 2]}))
    assert plan.k == cases.k
    for fold in range(plan.k):
        held_out = expanded.places[plan.scored_rows(fold)]
        assert np.unique(held_out).tolist() == cases.scored_rows(fold).tolist()
        assert not np.isin(expanded.places[plan.train_rows(fold)], held_out).any()
    assert find_units(expanded, sc.make_folds("5", expanded)).of_row.tolist() == expanded.places.tolist()


def test_the_record_holds_and_comes_back(record: Record) -> None:
    assert Record.from_json(record.to_json()) == record
    frame = plain()
    assert verify(record, frame).ok
    for wrong in (
        replace(record, cv_error=record.cv_error * 1.001), replace(record, intercept=record.intercept + 1e-3),
        replace(record, data=replace(record.data, total_weight=100.0)),
    ):  # fmt: skip
        assert not verify(wrong, Dataset.from_frame(frame, "k", aux=("n",))).ok
    assert not verify(record, frame.assign(n=frame["n"] + 1)).ok
    with pytest.raises(BadInput, match="target 'k' has the class '0', but the classes of the model are failure and"):
        verify(replace(record, data=replace(record.data, trials=None)), frame)


@pytest.mark.parametrize(
    "more",
    [
        {"weights": "w"}, {"class_weight": "balanced"}, {"offset": "o"}, {"nested": 3}, {"scale_within": "folds"},
        {"intercept": "none"}, {"weights": "w", "class_weight": "balanced", "offset": "o", "folds": "loo"},
        {"na": "median", "weights": "w"},
    ],
    ids=str,
)  # fmt: skip
def test_records_with_other_options_verify(more: dict[str, Any]) -> None:
    frame = table().assign(w=np.arange(30) % 3)
    frame = frame[[*FEATURES, "n", "k", *(name for name in ("w", "o") if name in more.values())]]
    if "na" in more:
        frame.loc[[2, 3, 5], "a"] = np.nan
    record = sc.solve(frame, "k", trials="n", **{"folds": "4", **GRID, **more})
    assert record.status == "proved" and verify(record, frame).ok


def test_weights_multiply_trials() -> None:
    frame = plain()
    doubled = sc.solve(frame.assign(w=2), "k", trials="n", weights="w", folds="5", **GRID)
    twice = sc.solve(frame.assign(n=2 * frame["n"], k=2 * frame["k"]), "k", trials="n", folds="5", **GRID)
    assert doubled.cv_error == pytest.approx(twice.cv_error, rel=1e-12)
    assert doubled.coefficients == pytest.approx(twice.coefficients, rel=1e-9)


@pytest.mark.parametrize("offset", [None, "o"])
def test_a_fit_with_tiny_gamma_is_the_glm_of_statsmodels(offset: str | None) -> None:
    models = pytest.importorskip("statsmodels.api")
    frame = table()
    how = PathOptions.of(loss="logistic", trials="n", offset=offset, restrictions=Restrictions(force_out=("b", "d")))
    data = Dataset.from_frame(frame[[*FEATURES, "n", "k", *([offset] if offset else [])]], "k",
                              aux=("n", *([offset] if offset else [])))  # fmt: skip
    made = best_subsets(data, gammas=[1e-9], taus=[2], options=how).path[0]
    design = np.column_stack([np.ones(30), frame[["a", "c"]]])
    theirs = models.GLM(
        np.column_stack([frame["k"], frame["n"] - frame["k"]]), design, family=models.families.Binomial(),
        offset=None if offset is None else frame[offset],
    ).fit(tol=1e-13)  # fmt: skip
    assert [made.intercept, *made.coefficients.values()] == pytest.approx(theirs.params, rel=1e-5)
    record = best_subsets(data, gammas=[1e-9], taus=[2], options=how)
    (found,) = glm_criteria(record.path, data, True, record)
    assert found.deviance == pytest.approx(theirs.deviance, rel=1e-9)
    assert found.mcfadden == pytest.approx(1.0 - theirs.deviance / theirs.null_deviance, rel=1e-9)
    assert found.scatter is not None
    assert found.scatter.ratio == pytest.approx(theirs.pearson_chi2 / theirs.df_resid, rel=1e-5)


def test_class_weights_have_no_dispersion() -> None:
    frame = plain()
    record = sc.solve(frame, "k", trials="n", class_weight="balanced", folds="4", **GRID)
    with pytest.raises(BadInput, match="pearson: requires a record with Poisson loss or trials, not class weights"):
        record.pearson(frame)
    plain_record = sc.solve(frame, "k", trials="n", folds="4", **GRID)
    chance, n = plain_record.predict(frame[FEATURES]), frame["n"]
    squares = (frame["k"] - n * chance) ** 2 / (n * chance * (1.0 - chance))
    ratio = squares.sum() / (30 - 1 - len(plain_record.support))
    assert plain_record.pearson(frame).ratio == pytest.approx(ratio, rel=1e-9)


def test_predictions_need_no_trials_and_errors_do(record: Record, tmp_path: Path, capsys: Any) -> None:
    frame, answer = table(), tmp_path / "r.json"
    answer.write_text(record.to_json())
    odds = frame[list(record.coefficients)] @ np.array(list(record.coefficients.values())) + record.intercept
    assert record.predict(frame[FEATURES]) == pytest.approx(1.0 / (1.0 + np.exp(-odds)))
    frame.drop(columns="o").to_csv(tmp_path / "all.csv", index=False)
    frame[[*FEATURES, "k"]].to_csv(tmp_path / "successes.csv", index=False)
    frame[FEATURES].to_csv(tmp_path / "new.csv", index=False)
    said = {}
    for name in ("all", "successes", "new"):
        assert run(["predict", str(answer), str(tmp_path / f"{name}.csv"), "-o", str(tmp_path / "p.csv")]) == 0
        said[name] = capsys.readouterr()
    from sklearn.metrics import log_loss

    trials, chances = by_trial(frame), record.predict(frame[FEATURES])
    loss = log_loss(trials["y"], chances[trials["case"]])
    assert f"errors: log loss {loss:.6g}" in "".join(said["all"]) and "training errors" in "".join(said["all"])
    assert "no errors are computed: the file has no column 'n' (trials)" in "".join(said["successes"])
    assert "errors" not in "".join(said["new"])


@pytest.mark.parametrize(
    ("given", "change", "said"),
    [
        ("--trials nn", {}, "--trials: column 'nn' is not in the data"),
        ("--trials n", {"n": 0}, "--trials: column 'n' is 0 in row 3; give whole numbers from 1 to 1e9"),
        ("--trials n", {"n": 2.5}, "--trials: column 'n' is 2.5 in row 3; give whole numbers"),
        ("--trials n", {"n": "x"}, "--trials: column 'n' is 'x' in row 3; give a whole number of trials"),
        ("--trials n", {"k": 99}, "--trials: target 'k' is 99 in row 3; give the number of successes, a whole number"),
        ("--trials n", {"k": -1}, "--trials: target 'k' is -1 in row 3; give the number of successes"),
        ("--trials n --positive 1", {}, r"--positive 1: not supported with --trials \(the positive class of trials"),
        ("--trials n --na mean --na-within folds", {}, "--na-within folds: not supported with --trials"),
        ("--trials n --proof P", {}, "--proof: not supported with --trials"),
    ],
)
def test_bad_input_is_one_line(given: str, change: dict[str, Any], said: str, tmp_path: Path, capsys: Any) -> None:
    file, frame = tmp_path / "rows.csv", plain().astype(object)
    for name, value in change.items():
        frame.loc[2, name] = value
    frame.to_csv(file, index=False)
    words = given.replace("P", str(tmp_path / "proof.txt")).split()
    loss = ["--loss", "logistic", "--gamma", "0.1", "--tau", "1", "--folds", "3"]
    assert run(["solve", str(file), "--target", "k", *loss, *words]) == 2
    printed = capsys.readouterr().err.strip().splitlines()
    assert len([line for line in printed if not line.startswith("sparsecv: note")]) == 1
    assert pd.Series(printed[-1]).str.contains(said).all(), printed


def test_other_losses_and_features_have_no_trials() -> None:
    with pytest.raises(BadInput, match=r"trials n: requires loss logistic, not poisson \(no other loss has successes"):
        sc.solve(plain(), "k", trials="n", loss="poisson")
    data = Dataset.from_frame(plain(), "k")
    with pytest.raises(BadInput, match="trials: 'n' is a feature; the trials cannot be a feature or the target"):
        expand_trials(data, "n")
    with pytest.raises(BadInput, match="trials: 'm' is not stored with these data"):
        expand_trials(data, "m")
    none = Dataset.from_frame(plain().assign(k=0), "k", aux=("n",))
    with pytest.raises(BadInput, match="trials: target 'k' has no success; give rows of both outcomes"):
        expand_trials(none, "n")
    again = expand_trials(Dataset.from_frame(plain(), "k", aux=("n",)), "n")
    with pytest.raises(BadInput, match="trials: 'm' is given, but the data already have the trials 'n'"):
        expand_trials(again, "m")


@pytest.mark.parametrize("command", ["path", "near", "fit", "bounds"])
def test_other_commands_have_trials(command: str, tmp_path: Path, capsys: Any) -> None:
    file, answer = tmp_path / "rows.csv", tmp_path / "r.json"
    plain().to_csv(file, index=False)
    how = ["--target", "k", "--loss", "logistic", "--trials", "n", "--gamma", "0.1", "--tau", "2"]
    record = [] if command == "bounds" else ["--json", str(answer)]
    assert run([command, str(file), *how, *record]) == 0
    if record:
        assert run(["verify", str(answer), str(file)]) == 0
        assert sc.read_record(answer).data.trials == "n"
    capsys.readouterr()
    assert run(["inspect", str(file), "--target", "k", "--trials", "n"]) == 0
    assert "solve" in (shown := capsys.readouterr().out) and "--trials n" in shown and "the trials" in shown


def test_batches_have_trials(tmp_path: Path) -> None:
    plain().to_csv(tmp_path / "rows.csv", index=False)
    vary = {"loss": "logistic", "trials": "n", "gamma": "0.1", "tau": "1:2", "folds": "4"}
    plan = {"data": [{"file": str(tmp_path / "rows.csv"), "target": "k"}], "vary": vary}
    task = make_tasks(plan)[0]
    found = run_task(task)
    assert found.state == "done", found.reason
    lasso = run_task(Task(task.source, {**task.settings, "estimator": "lasso"}))
    assert (
        lasso.state == "failed"
        and lasso.reason == "trials: requires estimator sparsecv, not lasso; leave one of the two out"
    )
    with pytest.raises(BadInput, match="test: not supported with trials, because the trials of a row could be in both"):
        task_rows(Task(task.source, {**task.settings, "test": 0.25}))
