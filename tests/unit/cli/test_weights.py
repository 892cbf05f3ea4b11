"""`--weights`: rows that count more than others, or not at all; `verify` weighs them as the record says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from frames import read_csv
from repository import INSTANCES

from sparsecv_mio.certificate.read_back import read_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run

SMALL = ["--target", "lpsa", "--gamma", "0.1", "--tau", "1:3", "--weights", "w", "--quiet"]
Said = pytest.CaptureFixture[str]


@pytest.fixture
def frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """The prostate data with groups and weights, as `rows.csv` in the working folder."""
    monkeypatch.chdir(tmp_path)
    frame = read_csv(INSTANCES / "prostate.csv").assign(g=np.arange(97) % 5, w=np.arange(97) % 3)
    frame.to_csv("rows.csv", index=False)
    Path("folds.csv").write_text("".join(f"{row % 4}\n" for row in range(97)))
    return frame


@pytest.mark.parametrize("folds", ["4", "loo", "groups:g", "file:folds.csv"])
def test_rows_count_as_much_as_their_weight_says(folds: str, frame: pd.DataFrame, capsys: Said) -> None:
    assert run(["solve", "rows.csv", *SMALL, "--folds", folds, "--json", "r.json"]) == 0
    record = read_record("r.json")
    assert isinstance(record, Record) and record.data.weights == "w" and record.data.n == int((frame.w > 0).sum())
    assert record.data.total_weight == float(frame.w.sum())
    assert "w" not in record.data.names and record.folds.spec == f"{folds} weighted"
    assert run(["verify", "r.json", "rows.csv"]) == 0
    frame.assign(w=frame.w.replace(2, 1)).to_csv("other.csv", index=False)
    assert run(["verify", "r.json", "other.csv"]) == 1
    assert "data.fingerprint" in capsys.readouterr().out


def test_weights_of_a_file_and_bounds(frame: pd.DataFrame) -> None:
    Path("w.txt").write_text("".join(f"{weight / 3.0}\n" for weight in frame.w))
    frame.drop(columns=["w", "g"]).to_csv("rows.csv", index=False)
    words = ["rows.csv", *SMALL[:-3], "--weights", "file:w.txt", "--quiet", "--folds", "4"]
    assert run(["solve", *words, "--json", "r.json"]) == run(["verify", "r.json", "rows.csv", "--quiet"]) == 0
    record = read_record("r.json")
    assert run(["bounds", *words, "--json", "b.json"]) == 0
    table = json.loads(Path("b.json").read_text())
    assert table["options"]["weights"] == "file:w.txt" and table["data"]["fingerprint"] == record.data.fingerprint
    assert isinstance(record, Record)
    for pair, row in zip(table["table"], record.table, strict=True):
        assert pair["lower"] <= row.cv_error * (1 + 1e-9) and row.cv_error <= pair["upper"] * (1 + 1e-9)
    Path("w.txt").write_text("1\n" * 97)
    assert run(["verify", "r.json", "rows.csv", "--quiet"]) == 1


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("age", "'age' gives folds, weights, exposures, offsets or ids"),
        ("below", "below is -0.5 in row 1; give a weight of at least 0"),
        ("v", "--weights: column 'v' is not in"),
        ("text", "text is 'x' in row 1; give a weight of at least 0"),
    ],
)
def test_what_is_no_weight_is_refused(column: str, said: str, frame: pd.DataFrame, capsys: Said) -> None:
    frame.assign(below=-0.5, text="x").to_csv("rows.csv", index=False)
    words = [word if word != "w" else column for word in SMALL]
    assert run(["solve", "rows.csv", *words, "--features", "age,lcavol,svi"]) == 2
    assert said in capsys.readouterr().err
