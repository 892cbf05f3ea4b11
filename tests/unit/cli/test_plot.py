"""`plot`: a record or a trace becomes a figure; the drawings themselves are tested in `tests/unit/report`."""

from __future__ import annotations

from pathlib import Path

import pytest
from repository import INSTANCES

import sparsecv_mio as sc
from sparsecv_mio.cli import run

PROSTATE = INSTANCES / "prostate.csv"


@pytest.mark.parametrize(
    ("trace", "out", "word"),
    [
        ("none.jsonl", "a.png", "none.jsonl"),
        ("data.csv", "a.png", "was not written by `sparsecv collect`"),
        ("data.txt", "a.png", "neither a trace nor a record"),
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


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("plot") / "answer.json"
    sc.solve(PROSTATE, "lpsa", gammas=[0.1, 1.0], taus="1:3").write_record(file)
    return file


def test_a_record_is_drawn_beside_itself(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plot", str(record)]) == 0
    assert capsys.readouterr().out == f"figure: {record.with_suffix('.png')}\n"
    assert record.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_panels_and_data(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a.svg"
    for extra in (["--panel", "Grid"], ["--panel", "coefficients", "--data", str(PROSTATE)]):
        assert run(["plot", str(record), "--out", str(out), *extra]) == 0 and out.read_text().startswith("<?xml")
    servo = str(INSTANCES / "servo.csv")
    for extra, said in (
        (["--panel", "gird"], "did you mean 'grid'"), (["--out", str(tmp_path / "a.gif")], "must end in"),
        (["--data", servo], "'lpsa' is not in the data"), (["--out", str(record)], "is the data too"),
    ):  # fmt: skip
        assert run(["plot", str(record), "--out", str(out), *extra]) == 2
        told = capsys.readouterr().err
        assert said in told and told.count("\n") == 1
