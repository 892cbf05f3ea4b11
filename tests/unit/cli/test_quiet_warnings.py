"""With --quiet, warnings that restrict the answer are printed, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsecv_mio.certificate.parts import NOT_AVERAGED
from sparsecv_mio.cli import run
from sparsecv_mio.cli.ending import warnings_to_print
from sparsecv_mio.search.answer.result import DOUBTFUL, UNWEIGHED


def test_a_column_that_varies_by_rounding_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "d.csv"
    rows = [f"{10**18 + 128 * (k % 2)},{k * k % 7},5,{k % 4}" for k in range(12)]
    data.write_text("\n".join(["huge,a,same,y", *rows]) + "\n")
    assert run(["solve", str(data), "--target", "y", "--folds", "3", "--gamma", "0.1", "--tau", "1", "--quiet"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "'huge' varies only by rounding errors" in lines[0], lines


def test_warnings_that_restrict_an_answer_are_kept() -> None:
    known = [DOUBTFUL, UNWEIGHED, NOT_AVERAGED]
    assert warnings_to_print([*known, "column 'a' is constant: its coefficient is zero"], quiet=True) == known
