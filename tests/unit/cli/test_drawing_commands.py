"""`sparsecv report` and `sparsecv plot`: pages and figures of records and traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_lines import changed
from repository import INSTANCES

import sparsecv_mio as sc
from sparsecv_mio.cli import run

Said = pytest.CaptureFixture[str]
PROSTATE = INSTANCES / "prostate.csv"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / "answer.json"
    sc.solve(PROSTATE, "lpsa", gammas=[0.1, 1.0], taus="1:3").write_record(file)
    return file


def test_the_format_is_that_of_the_file(record: Path, tmp_path: Path, capsys: Said) -> None:
    assert run(["report", str(record)]) == 0
    page = record.with_suffix(".html")
    assert capsys.readouterr().out == f"report: {page}\n"
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>") and f"sparsecv verify {record} DATA" in text
    for name, start in (("a.md", "# Best"), ("a.tex", "% Best")):
        assert run(["report", str(record), "--data", str(PROSTATE), "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text().startswith(start)
        assert capsys.readouterr().out == f"report: {tmp_path / name}\n"
    assert "MAE of held-out rows" in (tmp_path / "a.md").read_text()
    assert run(["report", str(record), "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")


def test_what_takes_long_is_said_before(record: Path, tmp_path: Path, capsys: Said, monkeypatch: Any) -> None:
    drawn = [str(record), "--data", str(PROSTATE), "-o"]
    for few, command, out in ((30, "plot", "a.png"), (3, "plot", "a.png"), (3, "report", "a.html")):
        monkeypatch.setattr("sparsecv_mio.cli.record_commands.FEW_FEATURES", few)
        assert run([command, *drawn, str(tmp_path / out)]) == 0
        assert ("best subset of every size on all rows" in capsys.readouterr().err) == (few == 3)


def test_bad_input_is_one_line_and_leaves_nothing(record: Path, tmp_path: Path, capsys: Said) -> None:
    out = tmp_path / "a.html"
    servo = str(INSTANCES / "servo.csv")
    for arguments, said in (
        ([str(record), "-o", str(tmp_path / "a.doc")], "must end in .html"),
        ([str(record), "--data", servo, "-o", str(out)], "'lpsa' is not in the data"),
        ([servo, "-o", str(out)], "not a JSON file"),
        ([str(record), servo, "-o", str(out)], "give the data of the record as --data FILE"),
        ([str(record), "-o", str(record)], "must end in .html"),
    ):
        assert run(["report", *arguments]) == 2
        told = capsys.readouterr().err
        assert said in told and told.count("\n") == 1 and not out.exists()


@pytest.mark.parametrize(
    ("trace", "out", "word"),
    [
        ("none.jsonl", "a.png", "none.jsonl"),
        ("data.csv", "a.png", "was not written by `sparsecv collect`"),
        ("data.txt", "a.png", "cannot be read as a trace or a record"),
        ("data.csv", "data.csv", "the data"),
    ],
)
def test_what_is_no_trace_or_would_be_lost(
    trace: str, out: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("data.csv", "data.txt"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    assert run(["plot", trace, "--out", out]) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1 and word in told.err
    assert (tmp_path / "data.csv").read_text() == "a,b\n1,2\n" and not (tmp_path / "a.png").exists()


def test_the_help_names_the_panels_that_are_not_in_the_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plot", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert told.index("coefficients;") < told.index("Other panels: sources") < told.index("inclusion and intervals")


def test_panels_and_data(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a.svg"
    for extra in (["--panel", "Grid"], ["--panel", "coefficients", "--data", str(PROSTATE)]):
        assert run(["plot", str(record), "--out", str(out), *extra]) == 0 and out.read_text().startswith("<?xml")
    servo = str(INSTANCES / "servo.csv")
    for extra, said in (
        (["--panel", "gird"], "did you mean 'grid'"), (["--out", str(tmp_path / "a.gif")], "must end in"),
        (["--data", servo], "'lpsa' is not in the data"), (["--out", str(record)], "is also the data"),
    ):  # fmt: skip
        assert run(changed(["plot", str(record), "--out", str(out)], extra)) == 2
        told = capsys.readouterr().err
        assert said in told and told.count("\n") == 1
