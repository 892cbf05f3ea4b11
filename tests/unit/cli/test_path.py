"""`path`: every tau's best subset on all rows, checked, and the record that `verify` reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from repository import INSTANCES

from sparsecv_mio.cli import run

PROSTATE = str(INSTANCES / "prostate.csv")
SMALL = ["--gamma", "0.1,1", "--tau", "0:3", "--threads", "1"]


def test_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "path.json"
    assert run(["path", PROSTATE, "--target", "lpsa", *SMALL, "--json", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "0.1 .. 1" in shown and "lcavol" in shown and "--full" in shown
    assert run(["path", PROSTATE, "--target", "lpsa", *SMALL, "--full"]) == 0
    assert "gamma = 0.1" in capsys.readouterr().out
    record = json.loads(path.read_text())
    assert [(row["gamma"], row["tau"]) for row in record["path"]] == [(g, t) for g in (0.1, 1.0) for t in range(4)]
    assert run(["verify", str(path), PROSTATE]) == 0
    record["path"][2]["objective"] *= 1.01
    path.write_text(json.dumps(record))
    assert run(["verify", str(path), PROSTATE]) == 1
    assert "path[2].objective" in capsys.readouterr().err


def test_a_path_keeps_to_forced_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "path.json"
    ask = ["path", PROSTATE, "--target", "lpsa", "--gamma", "0.1", "--force-in", "age,0", "--force-out", "svi"]
    assert run([*ask, "--json", str(path)]) == 0
    assert "models compared: with lcavol, age; without svi" in capsys.readouterr().out
    record = json.loads(path.read_text())
    assert [row["tau"] for row in record["path"]] == list(range(2, 8))
    assert all({"lcavol", "age"} <= set(row["support"]) and "svi" not in row["support"] for row in record["path"])
    assert run(["verify", str(path), PROSTATE]) == 0
    record["request"]["restrictions"]["force_in"].append("gleason")
    path.write_text(json.dumps(record))
    assert run(["verify", str(path), PROSTATE]) == 1
    assert run([*ask, "--tau", "1:3"]) == 2
    assert "tau 1 is below the number of features that are forced in: use 2 to 7" in capsys.readouterr().err
