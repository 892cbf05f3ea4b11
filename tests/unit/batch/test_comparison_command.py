"""`sparsecv compare`: several files, folds, and mistakes in its options."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from repository import INSTANCES

from sparsecv_mio.batch.comparison_command import OUTPUTS
from sparsecv_mio.cli import run
from sparsecv_mio.formulation.backends import get_backend

DIABETES = str(INSTANCES / "diabetes.csv")


def test_compare_says_which_file_lacks_the_target_and_takes_one_for_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name in ("y", "z"):
        files.append(str(tmp_path / f"{name}.csv"))
        Path(files[-1]).write_text(f"a,b,{name}\n1,2,3\n2,1,4\n3,3,5\n4,1,1\n")
    args = ["compare", *files, "--tau", "1", "--gamma", "1", "--backends", "native", "--repeats", "1"]
    args += ["--out", str(tmp_path / "out"), "--target"]
    assert run([*args, "y"]) == 2
    error = capsys.readouterr().err
    assert f"{files[1]}: target 'y' is not in the data" in error and "--target takes one for each file" in error
    assert run([*args, "y,z"]) == 0
    with open(tmp_path / "out" / "compare.csv") as stream:
        first, second = csv.DictReader(stream)
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(OUTPUTS)
    assert (first["data"], second["data"]) == ("y", "z") and first["objective"] == second["objective"]


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
