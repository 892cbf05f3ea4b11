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
