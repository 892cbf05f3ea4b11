"""Drawings of a trace: of every method."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_lines import changed
from repository import INSTANCES

from sparsecv_mio.cli import run as main
from sparsecv_mio.report.course_plots import plot_trace
from sparsecv_mio.search.observers import read_trace

SERVO = str(INSTANCES / "servo.csv")
ASK = ["solve", SERVO, "--target", "class", "--folds", "blocks:20", "--gamma", "0.1,1", "--tau", "1:5"]
ASK += ["--threads", "1"]


def test_drawings_of_a_descent(tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    how = ["--method", "descent", "--folds", "4", "--tau", "1:3", "--trace", str(trace), "-q"]
    assert main(changed(ASK, how)) in (0, 3)
    plot_trace(*read_trace(trace), str(tmp_path / "a.png"))
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_drawings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "run.jsonl"
    assert main([*ASK, "--method", "algorithm1", "--trace", str(trace), "-q"]) == 0
    for name, magic in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
        assert main(["plot", str(trace), "--out", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes().startswith(magic)
    assert main(["plot", str(trace), "--out", str(tmp_path / "a.txt")]) == 2
    assert "--out" in capsys.readouterr().err
    assert main(["plot", SERVO, "--out", str(tmp_path / "b.png")]) == 2
    assert "was not written by `sparsecv collect`" in capsys.readouterr().err
