"""`solve` is the command of that name: same defaults, same numbers; whatever form its arguments have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from repository import INSTANCES
from sklearn.model_selection import KFold

import sparsecv_mio as sc
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.cli import run

PROSTATE = INSTANCES / "prostate.csv"
QUICK: dict[str, Any] = {"gammas": 0.1, "taus": "1:3"}


def test_the_defaults_are_those_of_the_command(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    assert run(["solve", str(PROSTATE), "--target", "lpsa", "--json", str(file), "--quiet"]) == 0
    theirs, ours = sc.read_record(file), sc.solve(PROSTATE, target="lpsa")
    assert isinstance(theirs, Record)
    for field in ("gamma", "tau", "cv_error", "lower", "upper", "table", "coefficients", "intercept", "data", "folds"):
        assert getattr(ours, field) == getattr(theirs, field), field


def test_files_frames_and_data_give_one_answer() -> None:
    answers = [
        sc.solve(str(PROSTATE), "lpsa", **QUICK),
        sc.solve(pd.read_csv(PROSTATE), "lpsa", **QUICK),
        sc.solve(sc.read_dataset(PROSTATE, "lpsa"), **QUICK),
    ]
    assert len({(record.cv_error, record.data.fingerprint) for record in answers}) == 1


def test_folds_of_any_form() -> None:
    splitter = KFold(4)
    data = sc.read_dataset(PROSTATE, "lpsa")
    labels = np.concatenate([np.full(len(test), j) for j, (_, test) in enumerate(splitter.split(data.X))])
    forms = (splitter, list(splitter.split(data.X)), labels, labels.tolist(), sc.make_folds("4", data), 4, "4")
    errors = [sc.solve(data, folds=folds, **QUICK).cv_error for folds in forms]
    assert len(set(errors[:4])) == len(set(errors[4:])) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"target": None}, "target is missing: name the column to predict"),
        ({"target": "nobody"}, "target 'nobody' is not in the data"),
        ({"data": [[1.0]]}, "data are list: give a file, a pandas frame or"),
        ({"data": pd.DataFrame({"a": [1.0]}), "target": None}, "target is missing"),
        ({"data": sc.Dataset.from_arrays([[1.0]], [1.0])}, "these data have the target 'y' already"),
        ({"folds": [0, 1]}, "folds: 2 labels for 97 rows"),
        ({"folds": "4", "gammas": [[0.1]]}, "is not a finite number"),
        ({"folds": 3.5}, "folds 3.5: give a number"),
        ({"folds": "often"}, "folds 'often' are unknown"),
        ({"gammas": "much"}, "gammas: 'much' is not a number"),
        ({"gammas": 0.0}, "gamma 0 is out of range"),
        ({"taus": 9}, "tau 9 is out of range: use 0 to 8"),
    ],
)
def test_bad_input_is_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(sc.SparseCVError, match=f"^[^\n]*{said}[^\n]*$"):
        sc.solve(**{"data": PROSTATE, "target": "lpsa"} | QUICK | given)


@pytest.mark.parametrize(("wrong", "meant"), [("tau", "taus"), ("gamma", "gammas"), ("time_limt", "time_limit")])
def test_a_wrong_keyword_is_named_with_the_right_one(wrong: str, meant: str) -> None:
    with pytest.raises(TypeError, match=rf"^solve\(\) got .* '{wrong}' \(did you mean '{meant}'\?\)$"):
        sc.solve("no.csv", target="y", **{wrong: 3})  # type: ignore[arg-type]


MESSY = pd.DataFrame({
    "id": [f"r{k}" for k in range(12)], "a": [f"{500 * k + 100:,}" for k in range(12)],
    "b": [None if k == 3 else float(k % 5) for k in range(12)], "c": [("u", "v", "w")[k % 3] for k in range(12)],
    "y": [1.5 * k + (k % 4) for k in range(12)],
})  # fmt: skip


def test_options_of_reading_are_keywords(tmp_path: Path) -> None:
    path, cures = tmp_path / "messy.csv", {"thousands": ",", "na": "drop", "encode": "onehot", "drop": ["id"]}
    MESSY.to_csv(path, index=False)
    given: dict[str, Any] = {**QUICK, "folds": "3"}
    records = [sc.solve(data, "y", **cures, **given) for data in (path, str(path), MESSY)]  # type: ignore[arg-type]
    assert len({(one.cv_error, one.data.fingerprint) for one in records}) == 1
    assert records[0].data.names == ("a", "b", "c=u", "c=v", "c=w") and records[0].data.n == 11
    assert records[0].data.reading is not None and records[0].data.reading.thousands == ","
    report = sc.verify(records[0], sc.read_dataset(path, "y", **cures))  # type: ignore[arg-type]
    assert report.ok
    other = tmp_path / "other.csv"
    MESSY.to_csv(other, index=False, sep=";")
    two = sc.solve(other, "y", sep="semicolon", features=["a", "b"], na="mean", thousands=",", **given | {"taus": 1})
    assert two.data.names == ("a", "b")


def test_messages_name_keywords(tmp_path: Path) -> None:
    path, options = tmp_path / "messy.csv", dict[str, Any]()
    MESSY.to_csv(path, index=False)
    with pytest.raises(sc.SparseCVError) as caught:
        sc.solve(path, "y", drop=["id"], **QUICK)
    assert "--" not in str(caught.value) and "\n" not in str(caught.value)
    for word in ('thousands=","', 'na="drop" or na="mean"', 'encode="onehot"'):
        assert word in str(caught.value)
    both = 'is 1100 with thousands="," and 1.1 with decimal="," and thousands="none": say which'
    with pytest.raises(sc.SparseCVError, match=both):
        sc.solve(MESSY, "y", features=["a"], **QUICK)
    with pytest.raises(sc.SparseCVError, match="^na: goes with a file or a frame, and these data are read already"):
        sc.solve(sc.read_dataset(PROSTATE, "lpsa"), na="drop", **QUICK)
    with pytest.raises(sc.SparseCVError, match="^sep: goes with files, not with frames"):
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
    frame = pd.read_csv(PROSTATE)
    frame.to_json(tmp_path / "data.json")
    with pytest.raises(sc.SparseCVError) as caught:
        sc.solve(tmp_path / "data.json", "lpsa")
    path = str(tmp_path / "data.json")
    assert f"sc.solve(pd.read_json({path!r}), target=...)" in str(caught.value)
    ours, theirs = sc.solve(pd.read_json(path), target="lpsa", **QUICK), sc.solve(PROSTATE, "lpsa", **QUICK)
    assert ours.cv_error == pytest.approx(theirs.cv_error, rel=1e-8)  # JSON keeps ten digits
