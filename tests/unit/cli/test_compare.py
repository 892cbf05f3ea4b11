"""`compare`: its table, its figure, its mistakes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from sparsecv_mio.cli import run
from sparsecv_mio.formulation.backends import get_backend

from .diabetes import DIABETES, best_by_hand


def test_compare_writes_table_csv_and_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["compare", DIABETES, "--target", "y", "--tau", "2,4", "--gamma", "0.1,1", "--repeats", "2"]
    assert run([*args, "--backends", "native,gurobi,gurobi:bigm,highs,mosek", "--out", str(tmp_path / "out")]) == 0
    with open(tmp_path / "out" / "compare.csv") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 4 * 5
    for row in rows:
        assert row["backend_version"] and row["numpy"] and row["cores"]
        if row["backend"] != "mosek":
            truth, _ = best_by_hand(int(row["tau"]), float(row["gamma"]))
            assert row["status"] == "optimal" and row["same_support"] == "True"
            assert float(row["objective"]) == pytest.approx(truth, rel=1e-9)
            assert float(row["true_gap"]) <= 1e-12
    assert (tmp_path / "out" / "compare.png").read_bytes().startswith(b"\x89PNG")
    assert "performance" not in capsys.readouterr().err
    assert "| diabetes | all | 2 |" in (tmp_path / "out" / "compare.md").read_text()


def test_compare_by_folds_and_its_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["compare", DIABETES, "--target", "y", "--tau", "2", "--gamma", "1", "--repeats", "1"]
    args += ["--out", str(tmp_path)]
    assert run([*args, "--backends", "native,highs", "--folds", "3"]) == 0
    with open(tmp_path / "compare.csv") as stream:
        assert {row["fold"] for row in csv.DictReader(stream)} == {"0", "1", "2"}
    capsys.readouterr()
    for extra, message in (
        (["--backends", "native,cplex"], "there is no backend 'cplex'"),
        (["--repeats", "0"], "--repeats"),
        (["--target", "y,z"], "2 names for 1 files"),
    ):
        assert run([*args, *extra]) == 2
        assert message in capsys.readouterr().err
    assert run([*args, "--backends", "mosek"]) == (0 if get_backend("mosek").available().usable else 4)
