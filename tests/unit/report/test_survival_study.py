"""Studies of survival times: new rows without outcome, matched sets, whole strata, nested folds, warnings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.certificate.read_back import adapt_to_record_loss, data_of
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import prepare_for_loss
from sparsecv_mio.data.survival import Survival
from sparsecv_mio.data.survival_columns import collect_survival_warnings
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.cox_objective import Terms
from sparsecv_mio.problem.survival_curves import find_median_follow_up
from sparsecv_mio.report.record_plots import draw_panel, figure_of
from sparsecv_mio.report.record_report import report_text
from sparsecv_mio.report.record_words import NULL_IS_BETTER, event_lines
from sparsecv_mio.targets import Loss, TargetColumns


def drawn(n: int = 60) -> pd.DataFrame:
    """Return survival times of three hospitals."""
    rng = np.random.default_rng(5)
    rows = pd.DataFrame(rng.normal(size=(n, 3)).round(2), columns=list("abc"))
    died, left = rng.exponential(size=n) * np.exp(-1.2 * rows["a"]), rng.exponential(1.5, size=n)
    number = np.arange(n)
    return rows.assign(
        years=np.ceil(20.0 * np.minimum(died, left)) / 20.0, dead=(died <= left) * 1,
        site=np.array(list("ABC"))[number % 3],
    )  # fmt: skip


def matched(sets: int = 30) -> pd.DataFrame:
    """Return matched sets of a case and two controls."""
    rng = np.random.default_rng(6)
    number = np.arange(3 * sets)
    rows = pd.DataFrame(rng.normal(size=(3 * sets, 2)).round(2), columns=list("ab"))
    rows.loc[number % 3 == 0, "a"] += 1.0
    return rows.assign(time=1.0, case=(number % 3 == 0) * 1, set=number // 3)


STUDY = {"time": "years", "event": "dead", "folds": "4"}
SETS = {"time": "time", "event": "case", "strata": "set", "folds": "groups:set:5"}


def solve(frame: pd.DataFrame, how: dict[str, Any], **given: Any) -> Record:
    asked: dict[str, Any] = {"gammas": [0.1, 1.0], "taus": [1, 2], "threads": 1, **how, **given}
    return sc.solve(frame, loss="cox", **{"features": [x for x in "abc" if x in frame], **asked})


@cache
def study() -> Record:
    return solve(drawn(), STUDY)


@cache
def sets() -> Record:
    return solve(matched(), SETS)


Reader = Callable[..., str]


@pytest.fixture
def predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Reader:
    """Return a function that predicts a frame with a record, and returns the notes."""

    def predict(record: Record, frame: pd.DataFrame) -> str:
        record.write_record(tmp_path / "r.json")
        frame.to_csv(tmp_path / "new.csv", index=False)
        assert run(["predict", str(tmp_path / "r.json"), str(tmp_path / "new.csv")]) == 0
        told = capsys.readouterr()
        numbers = [float(line.split(",")[1]) for line in told.out.splitlines()[1:]]
        assert numbers == pytest.approx(record.predict(frame))
        return told.err

    return predict


def test_new_rows_need_the_columns_of_the_model_only(predicted: Reader) -> None:
    for record in (study(), solve(drawn(), STUDY, strata="site")):
        assert "errors" not in predicted(record, drawn()[["a", "b", "c"]])
        told = predicted(record, drawn().drop(columns="dead"))
        assert "no errors are computed: the file has no column 'dead' (event)" in told
    told = predicted(record, drawn().drop(columns="site"))
    assert "no errors are computed: the file has no column 'site' (strata)" in told


def test_errors_of_new_rows_are_their_own_likelihood(predicted: Reader) -> None:
    told = predicted(study(), drawn())
    data = prepare_for_loss(
        Dataset.from_arrays(drawn()[["a", "b", "c"]], drawn()["years"], names=["a", "b", "c"], target="years",
                            aux={"dead": drawn()["dead"].to_numpy()}),
        Loss.COX, columns=TargetColumns(event="dead"),
    )  # fmt: skip
    terms, n_events = Terms(data, np.arange(data.n)), drawn()["dead"].sum()
    own, null = (terms.loss(eta)[0] / n_events for eta in (study().predict(drawn()), np.zeros(data.n)))
    assert f"negative log partial likelihood {own:.6g} per event, gain {null - own:#.3g}" in told
    assert "concordance 0." in told and f"CV error {study().cv_error:.6g}" in told


def test_survival_at_a_time_is_known_for_observed_times_and_strata(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = "r.json", "train.csv", "new.csv"
    record, train, new = (str(tmp_path / name) for name in names)
    frame = drawn()
    solve(frame, STUDY, strata="site").write_record(record)
    frame.to_csv(train, index=False)
    is_other = np.arange(60) % 2 == 1
    frame.assign(site=np.where(is_other, "elsewhere", frame["site"])).to_csv(new, index=False)
    last = frame.groupby("site")["years"].max().sort_values()
    told = {}
    for time in (0.9 * last.iloc[0], 0.5 * last.iloc[0] + 0.5 * last.iloc[1], 1.1 * last.iloc[-1], -1.0):
        code = run(["predict", record, new, "--at", str(time), "--train", train])
        told[code] = [*told.get(code, []), capsys.readouterr()]
    known, ended = told[0]
    words = "survival: NA for 30 rows of a stratum (site elsewhere) which the training rows do not have"
    assert words in known.err and known.out.count(",NA") == 30 and "end before" not in known.err
    assert words in ended.err and f"(site {last.index[0]}) whose training rows end before" in ended.err
    assert f"give a number of at most {last.iloc[-1]:g}" in told[2][0].err and "of at least 0" in told[2][1].err


def test_whole_strata_that_are_held_out_have_no_calibration() -> None:
    frame = drawn()
    record = solve(frame, STUDY, strata="site", folds="groups:site")
    text = report_text(record, "html", "r.json", data_of(record, frame), "d.csv")
    assert "Calibration is not shown: each fold holds out whole strata" in text
    assert "Kaplan-Meier curves of three risk groups" in text and "Calibration of held-out rows" not in text
    figure_of(record, data_of(record, frame))
    draw_panel(record, "calibration", data_of(record, frame))


def test_matched_sets_are_reported_as_conditional_logistic_regression() -> None:
    record, data = sets(), data_of(sets(), matched())
    assert record.data.has_matched_sets and record.data.n_events == 30
    assert record.null_error == pytest.approx(np.log(3.0))
    text = report_text(record, "md", "r.json", data, "d.csv")
    assert "odds ratio" in text and "hazard ratio" not in text and "Matched sets have one time each" in text
    assert "Kaplan-Meier" not in text and "nan" not in text and "(intercept)" not in text
    with pytest.raises(BadInput, match="panel hazards: matched sets have one time each"):
        draw_panel(record, "hazards", data)
    figure_of(record, data)
    assert not study().data.has_matched_sets


def test_matched_sets_that_are_held_out_whole_have_a_nested_error() -> None:
    record = solve(matched(), SETS, nested=3)
    assert record.nested is not None and [fold.status for fold in record.nested.folds] == ["proved"] * 3
    assert record.nested.null_error == pytest.approx(np.log(3.0)) and record.nested.optimism is None
    assert sc.verify(record, matched()).ok


def test_split_sets_are_reported() -> None:
    split = solve(matched(), SETS, folds="5")
    (note,) = (words for words in split.warnings if words.startswith("strata: "))
    assert "of the 30 strata of 'set', which have 1.0 events on average" in note and "--folds groups:set:10" in note
    assert not any(words.startswith("strata: ") for words in sets().warnings)
    hospitals = solve(drawn(), STUDY, strata="site")
    assert not any(words.startswith("strata: ") for words in hospitals.warnings)


def test_nested_errors_are_compared_by_gains() -> None:
    record = solve(drawn(), STUDY, nested=3)
    nested = record.nested
    assert nested is not None and nested.optimism is None and nested.null_error is not None
    again = solve(drawn(), STUDY, folds="3")
    assert nested.null_error == pytest.approx(again.null_error) and nested.null_error < record.null_error  # type: ignore[operator]
    text = report_text(record, "md", "r.json", None, "d.csv")
    assert f"gain {nested.null_error - nested.error:#.3g} (standard error" in text
    assert "smaller than the CV error" not in text and "larger than the CV error" not in text
    report = sc.verify(record, drawn())
    assert report.ok, report.failures


def test_a_paper_names_only_measures_that_it_has() -> None:
    frame = drawn()
    record = solve(frame, STUDY, folds=[(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))])
    assert "Harrell" not in report_text(record, "md", "r.json", data_of(record, frame), "d.csv", "publication")


def test_events_per_coefficient_follow_up_and_rows_at_risk() -> None:
    data = adapt_to_record_loss(study(), data_of(study(), drawn()))
    n_events, n_terms = int(drawn()["dead"].sum()), len(study().coefficients)
    line = event_lines(study(), data)[0]
    assert f"{n_events / n_terms:.1f} events per coefficient of the model; median follow-up " in line
    half = Dataset.from_arrays(np.arange(4.0)[:, None], [1.0, 2.0, 3.0, 4.0])
    half = replace(half, survival=Survival(np.array([True, False, False, True])))
    assert find_median_follow_up(half) == 3.0
    (axes,) = draw_panel(study(), "risk-groups", data).axes
    labels = [tick.get_text().split("\n") for tick in axes.get_xticklabels()]
    assert labels[0][0] == "0" and sum(map(int, labels[0][1:])) == 60
    assert int(labels[1][1]) < int(labels[0][1])


def test_models_of_a_path_have_no_intercept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn().to_csv(tmp_path / "d.csv", index=False)
    how = ["--time", "years", "--event", "dead", "--loss", "cox", "--features", "a,b", "--gamma", "0.3", "--tau", "0:1"]
    assert run(["path", str(tmp_path / "d.csv"), *how]) == 0
    shown = capsys.readouterr().out
    assert "no features" in shown and "   0  +" not in shown and "   0  -" not in shown


def test_a_negative_gain_is_called_worse_than_no_features() -> None:
    frame = drawn(40).assign(a=np.random.default_rng(5).normal(size=40), c=np.random.default_rng(6).normal(size=40))
    frame = frame.assign(dead=(np.arange(40) % 4 == 0) * 1)
    record = solve(frame, STUDY, gammas=[0.001], taus=[3], nested=4)
    assert record.nested is not None and record.nested.error > (record.nested.null_error or 0.0)
    for kind in ("html", "md"):
        assert "worse than no features: gain -" in report_text(record, kind, "r.json", data_of(record, frame), "d.csv")
    paper = report_text(record, "md", "r.json", data_of(record, frame), "d.csv", "publication")
    assert "the procedure predicts worse than the model without features: the gain" in paper


def test_the_model_without_features_has_no_gain() -> None:
    record = solve(drawn(), STUDY, taus=[0])
    assert record.accuracy_line().startswith("gain 0 per event over the model without features")


def test_the_standard_error_of_the_gain_is_that_of_paired_folds() -> None:
    record, data = study(), adapt_to_record_loss(study(), data_of(study(), drawn()))
    assert record.gain_error is not None and record.own_row is not None
    plan, losses = make_folds("4", data), []
    for fold in range(4):
        terms = Terms(data, np.arange(data.n)), Terms(data, plan.train_rows(fold))
        losses.append(terms[0].loss(np.zeros(data.n))[0] - terms[1].loss(np.zeros(data.n))[0])
    n_events = np.array([drawn()["dead"].to_numpy()[plan.scored_rows(fold)].sum() for fold in range(4)])
    gains = (np.array(losses) - record.chosen_folds.error) / n_events
    mean = np.average(gains, weights=n_events)
    expected = np.sqrt(np.average((gains - mean) ** 2, weights=n_events) / 3.0)
    assert record.gain_error == pytest.approx(expected)
    assert mean == pytest.approx(record.null_error - record.cv_error)  # type: ignore[operator]


def warnings_of(frame: pd.DataFrame, folds: str = "4", columns: str = "abc", **given: str) -> list[str]:
    """Return the warnings about a model with some columns."""
    aux = {name: frame[name].to_numpy() for name in frame if name not in ("a", "b", "c", "years")}
    data = Dataset.from_arrays(frame[["a", "b", "c"]], frame["years"], names=["a", "b", "c"], target="years", aux=aux)
    data = prepare_for_loss(data, Loss.COX, columns=TargetColumns(**{"event": "dead", **given}))
    used = {name: frame[name].to_numpy(dtype=float) for name in columns}
    return collect_survival_warnings(data, make_folds(folds, data), used)


def test_doubtful_data_are_reported() -> None:
    frame = drawn()
    assert warnings_of(frame) == []
    assert "every row of 'dead' is an event" in warnings_of(frame.assign(dead=1))[0]
    few = frame.assign(dead=(np.arange(60) < 3) * 1)
    assert "of 10 folds have none of the 3 events" in warnings_of(few, "10")[0]
    assert warnings_of(few, "loo") == []
    assert "feature 'b' orders all events" in warnings_of(frame.assign(b=-2.0 * frame["years"]))[0]
    assert "feature 'b' separates all events" in warnings_of(frame.assign(b=frame["dead"] + 0.1))[0]
    half = pd.concat([frame.assign(start=0.0, years=frame["years"] + 1.0, dead=0)] * 2).sort_index(kind="stable")
    second = np.arange(120) % 2 == 1
    half.loc[:, "start"] = np.where(second, half["years"], 0.0)
    half.loc[:, "years"] += np.where(second, 2.0, 0.0)
    half.loc[:, "dead"] = second * 1
    half["person"] = np.arange(120) // 2
    assert "60 rows begin when the row before them ends" in warnings_of(half, entry="start")[0]
    assert warnings_of(half, "groups:person:5", entry="start") == []
    idle = warnings_of(frame.assign(dead=np.where(frame["site"] == frame["site"][0], 0, frame["dead"])), strata="site")
    assert "1 of the " in idle[0] and "have no event; their " in idle[0] and "are in no risk set" in idle[0]
    assert warnings_of(half.assign(person=np.arange(120)), "groups:person:5", entry="start") == []
    other = frame.assign(dead=np.where(np.arange(60) % 9 == 2, 2, frame["dead"]))
    counts = other.loc[other["dead"] != 1, "dead"].value_counts()
    (note,) = warnings_of(other, event="dead=1")
    assert f"count as censored (0: {counts[0]} rows, 2: {counts[2]} rows)" in note and "competing risk" in note


def test_the_texts_of_a_paper_state_events_ties_and_strata() -> None:
    record = solve(drawn(), STUDY, strata="site", ties="breslow")
    text = report_text(record, "md", "r.json", data_of(record, drawn()), "d.csv", "publication")
    n_events = drawn()["dead"].sum()
    for words in (
        f"{n_events} rows had an event (dead; {n_events / 3:.1f} events per candidate term, "
        f"{n_events / len(record.coefficients):.1f} per coefficient of the chosen model), and {60 - n_events} rows",
        "Each stratum of site had its own baseline hazard.", "method of Breslow (Breslow 1974)", "; Cox 1972;",
        "(Verweij and van Houwelingen 1993)", "gain over it per event", "Harrell's concordance 0.",
        "smallest p-value of the check of proportional hazards", "the survival time (years)",
        "median follow-up ",
    ):  # fmt: skip
        assert words in text, words
    assert "intercept" not in text
    with_cases = report_text(sets(), "md", "r.json", data_of(sets(), matched()), "d.csv", "publication")
    assert "Each of the 30 matched sets (set) had one case (case)" in with_cases and "Odds ratio" in with_cases
    assert "conditional logistic regression of case" in with_cases and "hazard" not in with_cases.partition("##")[0]


def test_inspect_proposes_the_model_of_survival_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "d.csv"

    def inspect(frame: pd.DataFrame, *options: str) -> str:
        frame.to_csv(place, index=False)
        assert run(["inspect", str(place), *options]) == 0
        return capsys.readouterr().out

    told = inspect(
        drawn().assign(a=np.nan).assign(a=drawn()["a"].where(drawn()["a"] < 1.0)),
        "--time",
        "years",
        "--event",
        "dead=1",
    )
    assert "--loss cox --event dead=1" in told and "--na-within" not in told
    told = inspect(matched(), "--time", "time", "--event", "case", "--strata", "set")
    assert "--loss cox --event case --strata set --folds groups:set:10" in told
    assert "name the value that means an event" in inspect(
        drawn().assign(dead=drawn()["dead"] + 1), "--time", "years", "--event", "dead"
    )
    assert "if 'dead' marks the events of survival times" in inspect(drawn(), "--time", "years")


def test_a_gain_of_at_most_one_standard_error_is_reported() -> None:
    (hint,) = (words for words in solve(drawn(), STUDY, taus=1, features=["c"]).warnings if "without features" in words)
    assert NULL_IS_BETTER in hint and "--tau 0:1 includes it" in hint
    assert not any("without features" in words for words in study().warnings)


def test_messages_name_the_value_and_the_remedy() -> None:
    for given, words in (
        ({"event": ("dead", 1)}, r"event: \('dead', 1\) is not the name of a column; give a text, event=COLUMN"),
        ({"strata": 3}, "strata: 3 is not the name of a column"),
        ({"entry": "late"}, r"entry: column 'late' is 99 in row 1 .index 0.; give a time before that of 'years' \(0"),
    ):
        with pytest.raises(BadInput, match=words):
            solve(drawn().assign(late=99.0), {**STUDY, **given})
    y = np.array([(1, 2.0), (2, 3.0), (1, 4.0)], dtype=[("status", int), ("time", float)])
    with pytest.raises(BadInput, match="y: neither of the fields status and time is boolean"):
        sc.BestSubsetCox().fit(np.eye(3), y)


def test_survival_at_a_time_is_that_of_the_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, moment = drawn(), 0.4
    record, new = solve(frame, STUDY, strata="site"), frame.drop(columns=["dead", "years"])
    record.write_record(tmp_path / "r.json")
    for name, table in {"d.csv": frame, "new.csv": new, "none.csv": new.drop(columns="site")}.items():
        table.to_csv(tmp_path / name, index=False)
    files = [str(tmp_path / "r.json"), str(tmp_path / "new.csv"), "--at", str(moment)]
    assert run(["predict", *files, "--train", str(tmp_path / "d.csv")]) == 0
    found = [float(line.split(",")[2]) for line in capsys.readouterr().out.splitlines()[1:]]
    risk = np.exp(record.predict(frame))
    for row, survival in enumerate(found):
        inside = (frame["site"] == frame["site"][row]).to_numpy()
        hazard = sum(
            1.0 / risk[inside & (frame["years"] >= time).to_numpy()].sum()
            for time, dead in zip(frame["years"][inside], frame["dead"][inside], strict=True) if dead and time <= moment
        )  # fmt: skip
        assert survival == pytest.approx(np.exp(-hazard * risk[row]))
    for arguments, words in (
        (files, "--at: also give --train DATA"),
        ([files[0], str(tmp_path / "none.csv"), *files[2:], "--train", str(tmp_path / "d.csv")], "needs the strata"),
    ):
        assert run(["predict", *arguments]) == 2
        assert words in capsys.readouterr().err
