"""`report`: a record becomes a page or tables; what stands in them is tested in `tests/unit/report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from repository import INSTANCES

import sparsecv_mio as sc
from sparsecv_mio.cli import run

PROSTATE = INSTANCES / "prostate.csv"
Said = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "answer.json"
    sc.solve(PROSTATE, "lpsa", gammas=[0.1, 1.0], taus="1:3").write_record(file)
    return file


def test_the_format_is_that_of_the_file(record: Path, tmp_path: Path, capsys: Said) -> None:
    assert run(["report", str(record)]) == 0
    page = record.with_suffix(".html")
    assert capsys.readouterr().out == f"report: {page}\n"
    assert page.read_text().startswith("<!DOCTYPE html>") and f"sparsecv verify {record} DATA" in page.read_text()
    named = ("a.md", [], "# Best"), ("a.tex", [], "% Best"), ("a.txt", ["--format", "MD"], "# Best")
    for name, extra, start in named:
        assert run(["report", str(record), "--data", str(PROSTATE), "-o", str(tmp_path / name), *extra]) == 0
        assert (tmp_path / name).read_text().startswith(start)
    assert "MAE of held-out rows" in (tmp_path / "a.md").read_text()
    assert run(["report", str(record), "-o", "-", "--format", "md"]) == 0
    assert capsys.readouterr().out.startswith("# Best-subset")


def test_what_takes_long_is_said_before(record: Path, tmp_path: Path, capsys: Said, monkeypatch: Any) -> None:
    drawn = [str(record), "--data", str(PROSTATE), "-o"]
    for few, said in ((30, False), (3, True)):
        monkeypatch.setattr("sparsecv_mio.cli.session.MANY_TO_DRAW", few)
        for command, out in (("report", "a.html"), ("plot", "a.png")):
            assert run([command, *drawn, str(tmp_path / out)]) == 0
            assert ("best subsets of every size on all rows" in capsys.readouterr().err) == said


def test_bad_input_is_one_line_and_leaves_nothing(record: Path, tmp_path: Path, capsys: Said) -> None:
    out = tmp_path / "a.html"
    servo = str(INSTANCES / "servo.csv")
    for arguments, said in (
        ([str(record), "-o", str(tmp_path / "a.doc")], "must end in .html"),
        ([str(record), "--format", "latx", "-o", str(out)], "did you mean 'latex'"),
        ([str(record), "--data", servo, "-o", str(out)], "'lpsa' is not in the data"),
        ([servo, "-o", str(out)], "not a JSON file"),
        ([str(record), servo, "-o", str(out)], "the data of the record are given as --data FILE"),
        ([str(record), "-o", str(record), "--format", "md"], "is the data too"),
    ):
        assert run(["report", *arguments]) == 2
        told = capsys.readouterr().err
        assert said in told and told.count("\n") == 1 and not out.exists()
