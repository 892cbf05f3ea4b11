"""`--weights`: rows that count more than once, or not at all; `verify` repeats them as the record says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from repository import INSTANCES

from sparsecv_mio.certificate.reading import read_record
from sparsecv_mio.certificate.record import Record
from sparsecv_mio.cli import run

SMALL = ["--target", "lpsa", "--gamma", "0.1", "--tau", "1:3", "--weights", "w", "--quiet"]
Said = pytest.CaptureFixture[str]


@pytest.fixture
def frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """The prostate data with groups and weights, as `rows.csv` in the working folder."""
    monkeypatch.chdir(tmp_path)
    frame = pd.read_csv(INSTANCES / "prostate.csv").assign(g=np.arange(97) % 5, w=np.arange(97) % 3)
    frame.to_csv("rows.csv", index=False)
    Path("folds.csv").write_text("".join(f"{row % 4}\n" for row in range(97)))
    return frame


@pytest.mark.parametrize("folds", ["4", "loo", "groups:g", "file:folds.csv"])
def test_rows_count_as_often_as_their_weight_says(folds: str, frame: pd.DataFrame, capsys: Said) -> None:
    assert run(["solve", "rows.csv", *SMALL, "--folds", folds, "--json", "r.json"]) == 0
    record = read_record("r.json")
    assert isinstance(record, Record) and record.data.weights == "w" and record.data.n == int(frame.w.sum())
    assert "w" not in record.data.names and record.folds.spec == f"{folds} weighted"
    assert run(["verify", "r.json", "rows.csv"]) == 0
    frame.assign(w=frame.w.replace(2, 1)).to_csv("other.csv", index=False)
    assert run(["verify", "r.json", "other.csv"]) == 1
    assert "data.fingerprint" in capsys.readouterr().out


@pytest.mark.parametrize(("weights", "code"), [("g", 1), (None, 1), ("", 1), ("nobody", 2)])
def test_a_record_of_other_weights_is_not_verified(weights: str | None, code: int, frame: pd.DataFrame) -> None:
    assert run(["solve", "rows.csv", *SMALL, "--drop", "g", "--folds", "4", "--json", "r.json"]) == 0
    record = json.loads(Path("r.json").read_text())
    record["data"]["weights"] = weights
    Path("r.json").write_text(json.dumps(record))
    assert run(["verify", "r.json", "rows.csv", "--quiet"]) == code


def test_rows_of_a_path_count_too(frame: pd.DataFrame) -> None:
    assert run(["path", "rows.csv", *SMALL, "--json", "p.json"]) == run(["verify", "p.json", "rows.csv"]) == 0
    assert read_record("p.json").data.n == int(frame.w.sum())


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("age", "'age' gives the folds or weights"),
        ("half", "half is 0.5 in row 1: give how often"),
        ("v", "weight column 'v' is not in"),
        ("text", "text is 'x' in row 1: give how often"),
    ],
)
def test_what_is_no_weight_is_refused(column: str, said: str, frame: pd.DataFrame, capsys: Said) -> None:
    frame.assign(half=0.5, text="x").to_csv("rows.csv", index=False)
    words = [word if word != "w" else column for word in SMALL]
    assert run(["solve", "rows.csv", *words, "--features", "age,lcavol,svi"]) == 2
    assert said in capsys.readouterr().err
