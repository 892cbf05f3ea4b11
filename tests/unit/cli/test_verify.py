"""`verify` of records on real data: a false field or other data fail by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from repository import INSTANCES

from sparsecv_mio.cli import run

PROSTATE = str(INSTANCES / "prostate.csv")
SMALL = ["--gamma", "0.1,1", "--tau", "0:3", "--threads", "1"]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("cv_error", lambda r: r.update(cv_error=r["cv_error"] * 1.01)),
        ("coefficients.lcavol", lambda r: r["coefficients"].update(lcavol=9.0)),
        ("chosen_folds[2].error", lambda r: r["chosen_folds"][2].update(error=0.5)),
        ("folds.digest", lambda r: r["folds"].update(seed=1)),
        ("data.fingerprint", lambda r: r["data"].update(fingerprint="sha256:0")),
        ("table[0].lower", lambda r: r["table"][0].update(lower=r["table"][0]["upper"] * 1.01, upper=9e9)),
    ],
)
def test_a_falsified_record_fails_with_its_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str, change: Callable[[dict[str, Any]], None]
) -> None:
    path = tmp_path / "record.json"
    run(["solve", PROSTATE, "--target", "lpsa", *SMALL, "--json", str(path), "--quiet"])
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    capsys.readouterr()
    assert run(["verify", str(path), PROSTATE]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("sparsecv: error: verification failed: field ")
    assert field in captured.out


def test_the_wrong_data_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "record.json"
    run(["solve", PROSTATE, "--target", "lpsa", *SMALL, "--json", str(path), "--quiet"])
    changed = tmp_path / "changed.csv"
    changed.write_text(Path(PROSTATE).read_text().replace("-0.579818495252942", "-0.579818495252943", 1))
    assert run(["verify", str(path), str(changed)]) == 1
    assert "data.fingerprint" in capsys.readouterr().err
