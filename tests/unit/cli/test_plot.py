"""`plot`: a trace becomes a figure; the drawings themselves are tested in `tests/unit/report/test_trace_plots.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsecv_mio.cli import run


@pytest.mark.parametrize(
    ("trace", "out", "word"),
    [("none.jsonl", "a.png", "none.jsonl"), ("data.csv", "a.png", "not a trace"), ("data.csv", "data.csv", "the data")],
)
def test_what_is_no_trace_or_would_be_lost(
    trace: str, out: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    assert run(["plot", trace, "--out", out]) == 2
    told = capsys.readouterr()
    assert told.err.count("\n") == 1 and word in told.err
    assert (tmp_path / "data.csv").read_text() == "a,b\n1,2\n" and not (tmp_path / "a.png").exists()
