"""Reading of survival times: every bad input gives one line that names the column and says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import check_training, prepare_for_loss
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.survival import Survival
from sparsecv_mio.errors import BadInput
from sparsecv_mio.targets import Loss, TargetColumns, Ties
from sparsecv_mio.words import Intercept


def data(**aux: Any) -> Dataset:
    return Dataset.from_arrays(np.arange(6.0)[:, None], [5.0, 3.0, 3.0, 8.0, 1.0, 2.0], target="days", aux=aux)


def read(event: str = "died", dataset: Dataset | None = None, **columns: Any) -> Dataset:
    rows = (
        data(died=[1, 0, 1, 1, 0, 1], begin=[0.0, 1, 1, 2, 0, 0], centre=list("aabbab")) if dataset is None else dataset
    )
    return prepare_for_loss(rows, Loss.COX, columns=TargetColumns(event=event, **columns))


def test_events_entry_times_and_strata() -> None:
    rows = read(entry="begin", strata="centre")
    assert rows.survival is not None and rows.survival.entry is not None and rows.survival.stratum is not None
    assert rows.survival.is_event.tolist() == [True, False, True, True, False, True]
    assert rows.survival.stratum.tolist() == [0, 0, 1, 1, 0, 1] and rows.ties == Ties.EFRON
    assert rows.weight_of(slice(0, 6)) == 4.0 and rows.row_weight_of(slice(0, 6)) == 6.0
    part = rows.take(np.array([0, 1, 5]))
    assert part.survival is not None and part.survival.is_event.tolist() == [True, False, True]
    assert len({rows.fingerprint, read().fingerprint, read(entry="begin").fingerprint, data().fingerprint}) == 4
    assert prepare_for_loss(rows, Loss.COX, columns=TargetColumns(event="died")) is rows
    with pytest.raises(BadInput, match="'other' is given, but the data already have died"):
        prepare_for_loss(rows, Loss.COX, columns=TargetColumns(event="other"))


@pytest.mark.parametrize(
    ("event", "values"),
    [("died=2", [1, 2]), ("died=TRUE", ["FALSE", "TRUE"]), ("died", [False, True]), ("died = dead", ["alive", "dead"])],
)
def test_codes_of_events(event: str, values: list[Any]) -> None:
    rows = read(event, data(died=[values[is_event] for is_event in (1, 0, 1, 1, 0, 1)]))
    assert rows.survival is not None and rows.survival.is_event.tolist() == [True, False, True, True, False, True]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, 2, 1, 2, 2, 1], 'has the values 1, 2; name the value that means an event, for example event="died=2"'),
        (["dead", "alive"] * 3, 'has the values alive, dead; .* event="died=dead"'),
        (["TRUE", "FALSE"] * 3, 'has the values FALSE, TRUE; .* event="died=TRUE"'),
        ([0] * 6, "has no event, and its values are 0; give data with at least two events"),
        ([0, 1, 0, 0, 0, 0], "has one event, and its values are 0, 1; give data with at least two events"),
        ([0, 1, np.nan, 0, 1, 1], 'is empty in row 3; give na="drop", or remove the row'),
        (["0", "1", "NA", "0", "1", "1"], 'is empty in row 3; give na="drop", or remove the row'),
    ],
)
def test_events_that_are_not_guessed(values: list[Any], words: str) -> None:
    with pytest.raises(BadInput, match=f"^event: column 'died' {words}") as caught:
        read(dataset=data(died=values))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"event": None}, 'event: loss cox needs the column that marks events; give event="COLUMN" or "COLUMN=VALUE"'),
        ({"event": "died=3"}, "event: column 'died' has no value '3'; its values are 0, 1; name"),
        ({"event": "x0"}, "event: 'x0' is a feature; the column of option event cannot be a feature or the target"),
        ({"event": "other"}, "event: 'other' is not stored with these data"),
        (
            {"entry": "late"},
            "entry: column 'late' is 9 in row 2; give a time before that of 'days' \\(3\\), or remove the row",
        ),
        ({"strata": "holes"}, "strata: column 'holes' is empty in row 2; give na="),
        ({"entry": "died"}, "entry: column 'died' is that of option event too; give another column"),
        ({"strata": "person"}, "event: no other row is at risk at any event of column 'died', so the data determine"),
    ],
)
def test_columns_that_do_not_suit(columns: dict[str, Any], words: str) -> None:
    rows = data(
        died=[1, 0, 1, 1, 0, 1], late=[0.0, 9, 0, 0, 0, 0], holes=["a", "", "b", "a", "b", "a"], person=range(6),
    )  # fmt: skip
    with pytest.raises(BadInput, match=f"^{words}"):
        read(**{"dataset": rows, "event": "died"} | columns)


@pytest.mark.parametrize(
    ("times", "words"),
    [([1.0, -2.0, 3.0, 4.0], "time: column 'days' is -2 in row 2; give times of at least 0, or remove the row")],
)  # fmt: skip
def test_times_that_do_not_suit(times: list[float], words: str) -> None:
    rows = Dataset.from_arrays(np.arange(4.0)[:, None], times, target="days", aux={"died": [1, 1, 0, 1]})
    with pytest.raises(BadInput, match=f"^{words}"):
        read(dataset=rows)


def test_matched_sets_have_equal_times_and_ids_are_not_rounded() -> None:
    rows = Dataset.from_arrays(np.arange(6.0)[:, None], np.ones(6), target="days", aux={
        "case": [1, 0, 0, 1, 0, 0], "number": [12345678901234567 + (i > 2) for i in range(6)],
        "text": ["007"] * 3 + ["7"] * 3,
    })  # fmt: skip
    for strata in ("number", "text"):
        survival = read("case", rows, strata=strata).survival
        assert survival is not None and survival.stratum is not None
        assert survival.stratum.tolist() == [0, 0, 0, 1, 1, 1]
        assert survival.count_at_risk(rows.y).tolist() == [3] * 6


def test_some_of_the_matched_sets_are_matched_sets() -> None:
    sets, times = np.array([0, 0, 1, 1, 2, 2]), np.array([1.0, 1.0, 2.0, 2.0, 3.0, 3.0])
    whole = Survival(np.array([True, False] * 3), stratum=sets)
    assert whole.n_strata == 3 and whole.are_matched_sets(times)
    for rows in (np.array([0, 1, 4, 5]), np.array([5, 4, 2, 3])):
        part = whole.take(rows)
        assert part.n_strata == 2 and part.are_matched_sets(times[rows])
        assert np.array_equal(part.stratum[part.first_of_stratum], part.stratum)
        assert not part.are_matched_sets(times[rows] + np.arange(4))


def test_rows_at_risk_are_counted_by_definition() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        time = rng.integers(2, 8, 15).astype(float)
        entry = None if seed % 2 else time - rng.integers(1, 6, 15)
        survival = Survival(np.ones(15, dtype=bool), entry, None if seed % 3 else rng.integers(0, 3, 15))
        stratum = np.zeros(15) if survival.stratum is None else survival.stratum
        is_at_risk = (time >= time[:, None]) & (stratum == stratum[:, None])
        is_at_risk &= True if entry is None else entry < time[:, None]
        assert survival.count_at_risk(time).tolist() == is_at_risk.sum(axis=1).tolist()


def test_times_that_are_text_or_missing() -> None:
    frame = pd.DataFrame({"x": np.arange(6.0), "days": ["1", "two", "3", "4", "5", "6"], "died": [1, 0, 1, 1, 0, 1]})
    with pytest.raises(BadInput, match="column 'days' holds text 'two' in row 2"):
        sc.solve(frame, time="days", loss="cox", event="died")
    with pytest.raises(BadInput, match="column 'days' is empty in row 2"):
        sc.solve(frame.assign(days=[1.0, np.nan, 3, 4, 5, 6]), time="days", loss="cox", event="died")
    with pytest.raises(BadInput, match="^time: 'days' is the target, but target 'x' is given too"):
        sc.solve(frame, target="x", time="days", loss="cox", event="died")


def test_rows_without_an_outcome_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = [
        "1,3,1,0,a",
        "2,4,,0,a",
        "3,5,1,1,",
        "4,,1,0,b",
        "5,2,0,,b",
        "6,6,9,0,b",
        "7,7,1,0,a",
        ",8,0,0,b",
        "9,9,1,0,b",
    ]
    file = tmp_path / "d.csv"
    file.write_text("\n".join(["x,days,died,start,site", *rows]) + "\n")
    how = {"event": "died=1", "entry": "start", "strata": "site", "na_values": ["died=9"]}
    kept = read_dataset(file, "days", na="drop", **how)
    assert kept.places.tolist() == [0, 6, 8] and kept.reading is not None and kept.reading.left_out == 6
    assert kept.reading.notes[-1] == "4 rows with a missing outcome dropped ('died': 2, 'start': 1, 'site': 1)"
    assert kept.survival is not None and kept.survival.is_event.all() and kept.event == "died=1"
    assert read_dataset(pd.read_csv(file), "days", na="drop", **how).fingerprint == kept.fingerprint
    with pytest.raises(BadInput, match="^event: column 'died' is empty in row 1; give na=\"drop\", or remove the row"):
        read_dataset(pd.DataFrame({"x": [1.0, 2.0], "days": [1.0, 2.0], "died": [None, 1.0]}), "days", event="died")


def test_the_data_and_folds_of_a_record_are_read_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    frame = frame.assign(days=rng.integers(1, 60, 60), status=rng.integers(1, 3, 60))
    frame.to_csv(tmp_path / "d.csv", index=False)
    how = {"event": "status=2", "ties": "breslow"}
    record = sc.solve(frame, time="days", loss="cox", gammas=[0.3], taus=[1], folds=4, **how)  # type: ignore[arg-type]
    data = sc.read_dataset(tmp_path / "d.csv", "days", **how)
    plan = sc.make_folds(record.folds.spec, data, record.folds.seed or 0)
    assert data.fingerprint == record.data.fingerprint and sc.verify(record, data, folds=plan).ok
    assert sc.solve(data, loss="cox", gammas=[0.3], taus=[1], folds=4).cv_error == record.cv_error
    with pytest.raises(BadInput, match="event: 'status=1' is given, but the data already have status=2"):
        sc.solve(data, loss="cox", event="status=1")


def test_times_in_words_and_no_time(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text("x,days,died\n1,306 days,1\n2,1 days,0\n3,12 days,1\n")
    note = "column 'days': durations such as '306 days' are read as numbers of days"
    assert note in read_dataset(file, "days", event="died").reading.notes  # type: ignore[union-attr]
    with pytest.raises(BadInput, match="^time: no column is given; name the column of the survival times by time=NAME"):
        sc.solve(pd.read_csv(file), loss="cox", event="died")
    with pytest.raises(BadInput, match="^time: no column is given; name the column of the survival times$"):
        sc.solve(str(file), loss="cox", event="died")


def test_best_and_near_optimal_subsets_take_the_time_as_the_target() -> None:
    frame = pd.DataFrame({"x": np.arange(12.0) % 5, "z": np.arange(12.0) % 7, "days": 1.0 + np.arange(12) % 6})
    frame["died"] = np.arange(12) % 2
    options = dict(loss="cox", event="died", taus=1)
    for solve, more in ((sc.best_subsets, {"gammas": 0.1}), (sc.near_optimal, {"gamma": 0.1, "within": 0.1})):
        given = solve(frame, target="days", **options, **more)  # type: ignore[operator]
        assert given.data == solve(frame, time="days", **options, **more).data  # type: ignore[operator]
        with pytest.raises(BadInput, match="^time: 'days' is the target, but target 'x' is given too"):
            solve(frame, target="x", time="days", **options, **more)  # type: ignore[operator]


def test_folds_split_the_events_evenly_and_train_on_some() -> None:
    rows = read()
    plan = make_folds("2", rows)
    assert rows.survival is not None
    assert [int(rows.survival.is_event[plan.scored_rows(fold)].sum()) for fold in range(2)] == [2, 2]
    for labels, words in (
        ([0, 1, 0, 0, 1, 0], "folds: the training rows of fold 1 of 2 have no event; give other folds"),
    ):
        with pytest.raises(BadInput, match=f"^{words}"):
            check_training(rows, make_folds(labels, rows), Intercept.NONE, Loss.COX)
