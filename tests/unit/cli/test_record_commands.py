"""`--proof` and `check`: what they say and how they end."""

from __future__ import annotations

import io
import json
import re
import shlex
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from forged_proofs import read_lines, write_lines
from frames import read_csv
from repository import INSTANCES

import sparsecv_mio as sc
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run
from sparsecv_mio.errors import BadInput
from sparsecv_mio.proofs import proof_lines
from sparsecv_mio.proofs.proof_lines import KeptTrees, unfinished_file

PROSTATE_FILE = INSTANCES / "prostate.csv"
PROSTATE = str(PROSTATE_FILE)


COMMANDS = (
    ["solve", "--tau", "1:3", "--gamma", "0.1,1", "--folds", "loo"],
    ["path", "--tau", "0:3", "--gamma", "0.1,1"],
    ["fit", "--tau", "3", "--gamma", "1"],
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_proof_is_written_and_checked(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "p"
    name, *options = command
    assert run([name, PROSTATE, "--target", "lpsa", *options, "--proof", str(place), "--quiet"]) == 0
    assert run(["check", str(place), PROSTATE]) == 0
    assert run(["check", str(place), PROSTATE, "--mode", "exact"]) == 0
    told = capsys.readouterr().out
    assert "checked (fast)" in told and "checked (exact)" in told and "cover all supports" in told
    lines = read_lines(place)
    lines[-1]["lower"] *= 1.0 + 1e-6
    write_lines(place, lines)
    assert run(["check", str(place), PROSTATE]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and f"line {len(lines)}" in told and "lower is" in told


def test_the_text_says_where_the_proof_is_and_how_it_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "a proof"
    ask = [PROSTATE, "--target", "lpsa", "--tau", "2", "--gamma", "1", "--proof", str(place)]
    for command in ("solve", "path", "fit"):
        assert run([command, *ask]) == 0
        told = capsys.readouterr()
        assert f"writing the proof to {place}, without a time limit; Ctrl-C ends it and keeps the answer" in told.err
        last = told.out.splitlines()[-1]
        said, check = last.split("; to check it, run: sparsecv ")
        assert re.fullmatch(rf"proof: {re.escape(str(place))} \(\d+ (kB|bytes)\)", said)
        assert run(shlex.split(check)) == 0
        capsys.readouterr()
    assert run(["fit", *ask, "--json", "-"]) == 0
    told = capsys.readouterr()
    assert "; to check it, run: " in told.err and json.loads(told.out)
    assert run(["fit", *ask, "--quiet"]) == 0
    told = capsys.readouterr()
    assert "proof: " not in told.out and "writing the proof" not in told.err


def test_what_has_no_proof_is_refused_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "p"
    ask = [PROSTATE, "--target", "lpsa", "--tau", "3", "--proof", str(place)]
    for options, word in (
        (["solve", "--method", "descent"], "--method descent"),
        (["solve", "--gamma", "0.1..1"], "every gamma of an interval (--gamma LO..HI)"),
        (["path", "--force-in", "age"], "restrictions other than --adjust, --force-out and --count"),
        (["fit", "--force-in", "age"], "restrictions other than"),
        (["fit", "--together", "age,svi"], "restrictions other than"),
        (["path", "--loss", "logistic", "--force-out", "age"], "restrictions with --loss logistic"),
        (["solve", "--loss", "logistic", "--scale-within", "folds"], "--scale-within folds with --loss logistic"),
        (["fit", "--assume-box", "9"], "--assume-box"),
        (["path", "--weights", "age"], "--weights"),
        (["path", "--loss", "poisson"], "--loss poisson"),
        (["solve", "--loss", "logistic", "--class-weight", "balanced"], "--class-weight"),
    ):
        gamma = [] if "--gamma" in options else ["--gamma", "1"]
        assert run([options[0], *ask, *options[1:], *gamma]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and f"--proof: not supported with {word}" in told
    assert not place.exists()


def test_check_of_files_that_are_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "p"
    place.write_text("{}")
    for arguments in ([str(place), PROSTATE], [str(tmp_path / "none"), PROSTATE], [str(place), str(tmp_path)],
                      [str(place), PROSTATE, "--mode", "slow"]):  # fmt: skip
        assert run(["check", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_check_and_verify_name_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, proof = tmp_path / "r.json", tmp_path / "p"
    ask = ["--target", "lpsa", "--tau", "2", "--gamma", "1", "--json", str(record), "--proof", str(proof), "-q"]
    assert run(["fit", PROSTATE, *ask]) == 0
    for command, file, said in (("check", record, "sparsecv verify"), ("verify", proof, "sparsecv check")):
        assert run([command, str(file), PROSTATE]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and said in told


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ["fit", "--tau", "1", "--gamma", "1"],
            "`fit --proof PROOF` and `sparsecv check PROOF DATA` verify optimality",
        ),
        (["path", "--tau", "1", "--gamma", "1"], "`path --proof PROOF` and"),
        (["solve", "--tau", "1", "--gamma", "1", "--folds", "2"], "`solve --proof PROOF` and"),
        (["solve", "--tau", "1", "--gamma", "1..1.1", "--folds", "2"], "--proof: not supported with an interval of "),
        (
            ["solve", "--tau", "1", "--gamma", "1", "--folds", "2", "--at-most", "1:x0,x1"],
            "other than --adjust, --force-out and --count); a search with another --backend is an independent",
        ),
        (["solve", "--tau", "1", "--gamma", "1", "--folds", "2", "--weights", "w"], "not supported with --weights)"),
        (["near", "--tau", "1", "--gamma", "1", "--folds", "2"], ""),
    ],
)
def test_verify_advises_a_proof_that_the_command_of_the_record_can_write(
    command: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, place, record = np.random.default_rng(4), str(tmp_path / "d.csv"), str(tmp_path / "r.json")
    table = pd.DataFrame(rng.normal(size=(24, 16)), columns=[f"x{j}" for j in range(16)])
    table = table.assign(y=5.0 * table["x3"] + rng.normal(size=24))
    (table.assign(w=[1.0, 2.0] * 12) if "--weights" in command else table).to_csv(place, index=False)
    assert run([command[0], place, "--target", "y", *command[1:], "--threads", "1", "--json", record, "-q"]) == 0
    capsys.readouterr()
    assert run(["verify", record, place]) == 0
    hints = [line for line in capsys.readouterr().out.splitlines() if line.startswith("hint")]
    assert len(hints) == bool(words) and all(words in hint for hint in hints)
    if command[0] == "solve" and ".." not in command[4]:
        assert run(["report", record, "-o", str(tmp_path / "r.md")]) == 0
        has_proof = "writes a proof of the lower bound" in (tmp_path / "r.md").read_text("utf-8")
        assert has_proof == any("verify optimality for any" in hint for hint in hints)
    assert not any("leave out" in hint for hint in hints)  # the record exists already


GRID = ["--gamma", "0.1,1", "--tau", "1:3", "--folds", "5"]
SOLVE = ["solve", PROSTATE, "--target", "lpsa", *GRID, "--threads", "1", "-q", "--proof"]
# kills itself, as `kill -9` would, when so many trees are kept
KILLED = """
import os, signal, sys
from sparsecv_mio.cli import run
from sparsecv_mio.proofs import proof_lines
count, keep = [0], proof_lines.KeptTrees.keep
def counted(self, line):
    keep(self, line)
    count[0] += 1
    if count[0] == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
proof_lines.EVERY, proof_lines.KeptTrees.keep = 0.0, counted
run(sys.argv[2:])
"""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The trees that are made from here on, each written to the part at once."""
    count: list[Any] = []
    keep = KeptTrees.keep
    monkeypatch.setattr(proof_lines, "EVERY", 0.0)
    monkeypatch.setattr(KeptTrees, "keep", lambda self, line: (count.append(line), keep(self, line)))
    return count


def test_a_proof_that_was_killed_goes_on_where_it_was(tmp_path: Path, made: list[Any]) -> None:
    whole, place = tmp_path / "whole", tmp_path / "p"
    assert run([*SOLVE, str(whole)]) == 0 and not unfinished_file(whole).exists()
    trees = list(made)
    assert len(trees) >= 4
    ended = subprocess.run([sys.executable, "-c", KILLED, "3", *SOLVE, str(place)], capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.part", "whole"]
    assert unfinished_file(place).read_bytes().count(b"\n") == 1 + 3
    with open(unfinished_file(place), "ab") as stream:
        stream.write(b'0123456789abcdef {"half a li')
    made.clear()
    assert run([*SOLVE, str(place)]) == 0
    assert len(made) == len(trees) - 3 and not unfinished_file(place).exists()
    assert [line.get("kind") for line in read_lines(place)] == [line.get("kind") for line in read_lines(whole)]
    assert run(["check", str(place), PROSTATE]) == 0


def test_what_is_no_part_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "p"
    unfinished_file(place).write_text("my notes")
    assert run([*SOLVE, str(place)]) == 2
    assert "exists, but is not an unfinished proof; remove this file" in capsys.readouterr().err
    assert unfinished_file(place).read_text() == "my notes" and not place.exists()


def test_ctrl_c_ends_the_proof_and_keeps_its_trees(
    tmp_path: Path, made: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, record, keep = tmp_path / "p", tmp_path / "r.json", KeptTrees.keep

    def interrupted(self: KeptTrees, line: Any) -> None:
        keep(self, line)
        if len(made) == 2:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(KeptTrees, "keep", interrupted)
        assert run([*SOLVE, str(place), "--json", str(record)]) == 130
    told = capsys.readouterr().err
    assert (
        told.count("\n") == 1
        and f"interrupted and {place} is not written" in told
        and ("the same command continues from") in told
    )
    assert record.exists() and unfinished_file(place).exists() and not place.exists()
    other = [word.replace("0.1,1", "0.2,1") for word in SOLVE]
    made.clear()
    assert (
        run([*other, str(place)]) == 0 and not unfinished_file(place).exists()
    )  # nothing of another grid is taken over
    assert len(made) >= 4 and run(["check", str(place), PROSTATE]) == 0


def test_a_limit_leaves_the_record_and_no_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, record = tmp_path / "p", tmp_path / "r.json"
    wide = [word.replace("0.1,1", "0.001:10:5").replace("1:3", "1:8") for word in SOLVE]
    assert run([*wide, str(place), "--json", str(record), "--method", "bounds"]) == 3
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "--proof: no proof is written, because the search ended" in told
    assert record.exists() and not place.exists()


def test_a_proof_at_gamma_0_needs_no_more_columns_than_training_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, ask = tmp_path / "d.csv", ["--target", "y", "--folds", "3", "--gamma", "0", "--tau", "1"]
    numbers = np.random.default_rng(0).normal(size=(6, 6))
    np.savetxt(data, numbers, delimiter=",", header="a,b,c,d,e,y", comments="")
    assert run(["solve", str(data), *ask, "--proof", str(tmp_path / "p"), "--json", str(tmp_path / "r")]) == 2
    assert "--proof: not supported with --gamma 0 for 5 columns and 4 training rows" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_proof_that_its_own_check_refuses_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns at large offsets without an intercept: floats and fractions alike prove less than the search found."""
    rng, place, data = np.random.default_rng(0), tmp_path / "p", tmp_path / "d.csv"
    X = rng.normal(size=(16, 3)) + [82090.0, -643082.0, 291051.0]
    y = X @ [0.7, 0.7, 0.7] - X.mean(axis=0) @ [0.7, 0.7, 0.7] + 0.1 * rng.normal(size=16)
    np.savetxt(data, np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    ask = ["--target", "y", "--scale", "variance", "--intercept", "none", "--proof", str(place), "--quiet"]
    folds = ["--folds", "forward:3", "--method", "joint"]
    place.write_bytes(b"old")
    written = 0
    for command in (["solve", *folds], ["path"], ["fit", "--tau", "2"]):
        for gamma in ("3.7e-05", "0.5", "1e-12"):
            code = run([command[0], str(data), *command[1:], "--gamma", gamma, *ask])
            told = capsys.readouterr().err
            if place.read_bytes() != b"old":
                written += 1
                assert code in (0, 3)  # a best subset that rounding leaves open has a proof of its bounds
                assert run(["check", str(place), str(data)]) == 0
                capsys.readouterr()
                place.write_bytes(b"old")
            else:
                assert code in (0, 3) and "warning: --proof: " in told and "Traceback" not in told
                assert "give a larger --gamma" in told or "`sparsecv check` rejected the proof of this run" in told
                assert place.read_bytes() == b"old" and not unfinished_file(place).exists()
    assert 0 < written < 9


Said = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("predict") / "record.json"
    sc.solve(PROSTATE_FILE, "lpsa", gammas=[0.1, 1.0], taus="1:3").write_record(file)
    return file


def test_predictions_go_to_the_screen_and_errors_beside_them(record: Path, capsys: Said) -> None:
    assert run(["predict", str(record), str(PROSTATE_FILE)]) == 0
    said = capsys.readouterr()
    rows, stored = read_csv(io.StringIO(said.out)), sc.read_record(record)
    assert list(rows.columns) == ["row", "prediction"] and rows.row.tolist() == list(range(1, 98))
    assert rows.prediction.tolist() == stored.predict(read_csv(PROSTATE_FILE)).tolist()
    for words in ("97 rows predicted", "errors: RMSE 0.7", "in cross-validation of the training rows: RMSE 0.7"):
        assert words in said.err
    assert run(["predict", str(record), str(PROSTATE_FILE), "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_matrices_without_a_target_of_that_name(record: Path, tmp_path: Path, capsys: Said) -> None:
    data = sc.read_dataset(PROSTATE_FILE, "lpsa")
    np.savez(tmp_path / "new.npz", X=data.X, y=data.y, names=np.array(data.names))
    assert run(["predict", str(record), str(tmp_path / "new.npz")]) == 0
    assert "errors" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("age,lpsa\n1,2\n", "features 'lcavol', 'lweight', 'svi' are not in the data"),
        ("lcavol,lweight,swi\n1,2,3\n", "feature 'svi' is not in the data (did you mean 'swi'?)"),
        ("lcavol,lweight,svi\n1,2,\n", "column 'svi' is empty in row 1"),
        ("lcavol,lweight,svi\n", "has a header but no rows"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(
    record: Path, content: str, said: str, tmp_path: Path, capsys: Said
) -> None:
    file, out = tmp_path / "new.csv", tmp_path / "out.csv"
    file.write_text(content)
    assert run(["predict", str(record), str(file), "--out", str(out)]) == 2
    printed = capsys.readouterr()
    assert said in printed.err and printed.err.count("\n") == 1 and printed.out == "" and not out.exists()


@pytest.mark.parametrize(("cell", "said"), [("", "column 'lpsa' is empty in row 2"), ("x", "text 'x' in row 2")])
def test_a_target_that_is_not_known_is_not_needed(
    record: Path, cell: str, said: str, tmp_path: Path, capsys: Said
) -> None:
    file = tmp_path / "new.csv"
    file.write_text(f"lcavol,lweight,svi,lpsa\n1,2,0,3\n0,3,1,{cell}\n")
    assert run(["predict", str(record), str(file)]) == 0
    printed = capsys.readouterr()
    stored = sc.read_record(record)
    new = pd.DataFrame({"lcavol": [1.0, 0.0], "lweight": [2.0, 3.0], "svi": [0.0, 1.0]})
    assert read_csv(io.StringIO(printed.out)).prediction.tolist() == stored.predict(new).tolist()
    assert "2 rows predicted" in printed.err and "no errors are computed" in printed.err and said in printed.err
    file.write_text(f"lcavol,lweight,svi,lpsa\n1,,0,3\n0,3,1,{cell}\n")
    assert run(["predict", str(record), str(file)]) == 2 and "column 'lweight' is empty" in capsys.readouterr().err


@pytest.mark.parametrize("reading", [[], ["--encode", "onehot"]])
def test_empty_cells_of_new_rows_have_a_cure_that_predict_knows(
    reading: list[str], tmp_path: Path, capsys: Said
) -> None:
    data, answer, out = tmp_path / "data.csv", tmp_path / "answer.json", tmp_path / "out.csv"
    data.write_text("a,b,y\n" + "".join(f"{k},{k * k % 7},{k + k * k % 7}\n" for k in range(20)))
    search = ["solve", str(data), "-t", "y", "--gamma", "0.1", "--tau", "2", "-q", "--json", str(answer)]
    assert run([*search, *reading]) == 0
    capsys.readouterr()
    for content, said in (
        ("a,b\n1,2\n3,\n", "column 'b' is empty in row 2"),
        ("a,b\n1,\n3,\n,4\n", "(2 cells; fill the cell, or leave the row out), 'a' is empty in row 3"),
        ("a,b\n1,x\n", "'b' holds text 'x' in row 1"),
    ):
        data.write_text(content)
        assert run(["predict", str(answer), str(data), "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1 and not out.exists()
        assert "--na" not in error and "--encode" not in error and "column or" not in error and "drop" not in error
    data.write_text("a,b\n1,2\n")
    assert run(["predict", str(answer), str(data)]) == 0
    assert capsys.readouterr().err == "sparsecv: 1 row predicted\n"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_with_empty_cells_have_no_prediction_where_such_rows_were_left_out(
    ending: str, tmp_path: Path, capsys: Said
) -> None:
    rows = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) ** 2 % 7, "c": ["u", "v"] * 10})
    rows["y"] = rows.a + rows.b + np.sin(rows.a)
    rows.loc[3, "a"], rows.loc[4, "b"] = np.nan, np.nan
    data, new, answer, out = (tmp_path / f"{name}.{ending}" for name in ("data", "new", "answer", "out"))
    write = pd.DataFrame.to_parquet if ending == "parquet" else pd.DataFrame.to_csv
    write(rows, data, index=False)
    search = ["solve", str(data), "-t", "y", "--gamma", "0.1", "--tau", "2:3", "-q", "--json", str(answer)]
    assert run([*search, "--na", "drop", "--encode", "onehot"]) == 0
    few = rows.iloc[:6].assign(y=[1.0, None, 2.0, 3.0, 4.0, 5.0])
    write(few, new, index=False)
    capsys.readouterr()
    assert run(["predict", str(answer), str(new), "--out", str(out), "--interval", "0.8", "--train", str(data)]) == 0
    said = capsys.readouterr()
    known = [0, 1, 2, 5]
    assert said.err == (
        "sparsecv: warning: 2 rows with a missing value in a column of the model or of a fold model: no prediction, "
        "because the fit also dropped rows with missing values (--na drop)\n"
    )
    lines = said.out.splitlines()
    assert lines[0] == "4 rows predicted" and lines[1].startswith("errors: RMSE 3.46093")
    assert lines[3] == "the errors are computed from the 3 of 4 rows that have a target"
    assert lines[4].startswith("prediction intervals of level 0.8 (CV+): ")
    found, stored = read_csv(out), sc.read_record(answer)
    assert np.flatnonzero(found.prediction.notna()).tolist() == np.flatnonzero(found.lower.notna()).tolist() == known
    assert (found.lower < found.prediction).loc[known].all() and (found.prediction < found.upper).loc[known].all()
    assert isinstance(stored, Record)
    assert np.array_equal(stored.predict(few), found.prediction, equal_nan=True)
    ends = stored.predict_interval(few, 0.8, sc.read_dataset(data, "y", na="drop", encode="onehot"))
    assert np.array_equal(ends, found[["lower", "upper"]], equal_nan=True)
    assert run(["predict", str(answer), str(new), "-q"]) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("sparsecv: warning: 2 rows with a missing value in a column of the model: no prediction")


def test_intervals_are_written_beside_the_predictions(record: Path, tmp_path: Path, capsys: Said) -> None:
    ask = ["predict", str(record), str(PROSTATE_FILE)]
    assert run([*ask, "--interval", "0.9", "--train", str(PROSTATE_FILE)]) == 0
    printed, stored = capsys.readouterr(), sc.read_record(record)
    data = sc.read_dataset(PROSTATE_FILE, "lpsa")
    assert isinstance(stored, Record)
    found = read_csv(io.StringIO(printed.out))
    assert np.array_equal(found[["lower", "upper"]], stored.predict_interval(data, data=data))
    assert found.prediction.tolist() == stored.predict(data).tolist()
    held = 100.0 * np.mean((found.lower <= data.y) & (data.y <= found.upper))
    width = np.mean(found.upper - found.lower)
    assert f"intervals of level 0.9 (CV+): {width:.6g} wide on average, {held:.1f}% of the targets" in printed.err
    for options, said in (
        (
            ["--interval", "0.9"],
            "--interval: also give --train DATA, the data from which the record was made; prediction intervals",
        ),
        (
            ["--train", str(PROSTATE_FILE)],
            "--train: also give --interval LEVEL, such as 0.9; prediction intervals need the fold models",
        ),
        (["--interval", "1", "--train", str(PROSTATE_FILE)], "--interval: 1.0 is out of range"),
        (["--interval", "0.999", "--train", str(PROSTATE_FILE)], "--interval: a level of 0.999 needs 999 rows"),
        (["--interval", "0.9", "--train", str(tmp_path / "none.csv")], "does not exist"),
    ):
        assert run([*ask, *options]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1


def test_a_model_without_features_predicts_its_intercept(tmp_path: Path, capsys: Said) -> None:
    stored = sc.solve(PROSTATE_FILE, "lpsa", gammas=0.1, taus=0)
    stored.write_record(tmp_path / "r.json")
    assert run(["predict", str(tmp_path / "r.json"), str(PROSTATE_FILE), "-q"]) == 0
    assert set(read_csv(io.StringIO(capsys.readouterr().out)).prediction) == {stored.intercept}


def test_rows_of_one_id_in_different_folds_are_named(tmp_path: Path, capsys: Said) -> None:
    data = tmp_path / "visits.csv"
    lines = [f"{i // 3},{i * i % 7},{'abc'[i % 3]},{i % 5 + i * i % 7}" for i in range(36)]
    data.write_text("\n".join(["patient,x,site,y", *lines]))
    solve = [
        "solve",
        str(data),
        "-t",
        "y",
        "--id",
        "patient",
        "--gamma",
        "0.1",
        "--tau",
        "1",
        "--encode",
        "onehot",
        "-q",
    ]
    for folds, is_warned in (("5", True), ("loo", True), ("2x4", True), ("groups:patient:4", False)):
        assert run([*solve, "--folds", folds]) == 0
        said = capsys.readouterr().err
        words = "column 'patient' has 12 different values in 36 rows, and folds separate rows of the same value"
        assert (words in said and "give --folds groups:patient" in said) is is_warned, folds
    answer, paper = str(tmp_path / "a.json"), tmp_path / "a.md"
    assert run([*solve, "--folds", "5", "--json", answer]) == run(["verify", answer, str(data)]) == 0
    assert run(["report", answer, "--style", "publication", "-o", str(paper)]) == 0
    sentence = f"The {words}: all rows were treated as independent."
    assert sentence in paper.read_text(encoding="utf-8")
    capsys.readouterr()
    some = tmp_path / "some.csv"  # rows without a value are no group
    some.write_text(
        "\n".join(["patient,x,site,y", *(line[line.index(",") :] if i % 3 else line for i, line in enumerate(lines))])
    )
    for folds in ("3", "2x4", "loo"):
        assert run(["solve", str(some), *solve[2:], "--folds", folds]) == 0
        assert "different value" not in capsys.readouterr().err
    for command in (["near", "--tau", "1"], ["bounds", "--tau", "1"], ["path"], ["fit", "--tau", "1"]):
        asked = ["--gamma", "0.1", "--encode", "onehot", "--id", "patient", "-q", "--json", answer]
        assert run([command[0], str(data), "-t", "y", *command[1:], *asked]) == 0
        assert (words.split(" in ")[0] in capsys.readouterr().err) == (command[0] in ("near", "bounds"))
        assert "patient" not in json.loads(Path(answer).read_text())["data"].get("names", [])
    assert run([*solve[:-1], "--force-in", "c"]) == 2
    said = capsys.readouterr().err
    assert "--force-in: 'c' is not a feature" in said and "because" not in said
    assert run([*solve, "--adjust", "site", "--reference", "site=b"]) == 2
    assert "--reference: 'site=b' belongs to a factor of --adjust, whose reference is always" in capsys.readouterr().err


def test_no_row_is_lost_on_the_way_to_other_programs(tmp_path: Path, capsys: Said) -> None:
    """Rows keep their numbers and names where some have no prediction, and where rows of weight 0 are left out."""
    cells = [f"00{k},{k},{k * k % 7},{k + k * k % 7 + (k % 3) / 10},{k % 4}" for k in range(1, 25)]
    cells[2], cells[9] = '"5,3",,1,4.0,1', "=9,7,,4.0,1"
    data, answer, held = (tmp_path / name for name in ("data.csv", "answer.json", "held.csv"))
    data.write_text("\n".join(["who,a,b,y,w", *cells]))
    solve = ["solve", str(data), "-t", "y", "--na", "drop", "--gamma", "0.1", "--id", "who", "--weights", "w"]
    assert run([*solve, "--json", str(answer), "--save-held-out", str(held)]) == 0
    assert sc.read_record(answer).data.names == ("a", "b")
    capsys.readouterr()
    said, frame = {"dtype": {"who": str}}, read_csv(data, dtype={"who": str})
    rows, known = read_csv(held, **said), [row for row in range(24) if row not in (2, 9) and frame.w[row] > 0]
    assert list(rows.columns) == ["row", "who", "target", "fold", "prediction", "weight"]
    assert rows.row.tolist() == [row + 1 for row in known] and rows.who.tolist() == frame.who[known].tolist()
    assert rows.target.tolist() == frame.y[known].tolist()
    assert run(["predict", str(answer), str(data), "--id", "who"]) == 0
    rows, stored = read_csv(io.StringIO(capsys.readouterr().out), **said), sc.read_record(answer)
    assert rows.row.tolist() == list(range(1, 25))
    assert rows.who.tolist() == [who if who != "=9" else "'=9" for who in frame.who]  # no formula of a spreadsheet
    assert np.flatnonzero(rows.prediction.isna()).tolist() == [2, 9]
    shuffled = frame.sample(frac=1.0, random_state=0)
    assert stored.predict(shuffled) == pytest.approx(rows.prediction[shuffled.index], rel=1e-12, nan_ok=True)
    plain = frame.drop(index=[2, 9]).drop(columns=["who", "y", "w"])
    assert stored.predict(plain) == pytest.approx(rows.prediction.dropna(), rel=1e-12)


def test_predictions_of_counts_say_which_exposures_they_need(tmp_path: Path, capsys: Said) -> None:
    data, new, answer = tmp_path / "t.csv", tmp_path / "new.csv", tmp_path / "r.json"
    data.write_text("y,x,days\n" + "".join(f"{i % 4},{i},{1 + i % 3}\n" for i in range(20)))
    new.write_text("x\n1\n2\n")
    loss = ["--loss", "poisson", "--exposure", "days"]
    assert run(["fit", str(data), "-t", "y", *loss, "--tau", "1", "--gamma", "1", "--json", str(answer)]) == 0
    capsys.readouterr()
    assert run(["predict", str(answer), str(new)]) == 2
    error = capsys.readouterr().err
    assert "needs the exposure of each row (an exposure of 1" in error and "column 'days' is not in the data" in error
    for cell, said in (("", "empty"), ("abc", "'abc'"), ("0", "0"), ("-1", "-1")):
        line = f"column 'days' is {said} in row 2; give a number above 0, or remove the row\n"
        new.write_text(f"x,days\n1,2\n2,{cell}\n")
        assert run(["predict", str(answer), str(new)]) == 2
        assert capsys.readouterr().err.endswith(line)
        with pytest.raises(BadInput, match=line.strip()):
            sc.read_record(answer).predict(pd.DataFrame({"x": [1.0, 2.0], "days": ["2", cell]}))


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_predictions_refuse_offsets_that_a_fit_refuses(loss: str, tmp_path: Path, capsys: Said) -> None:
    data, new, answer = tmp_path / "t.csv", tmp_path / "new.csv", tmp_path / "r.json"
    data.write_text("y,x,o\n" + "".join(f"{i % 5 // 3},{i},{i % 3}\n" for i in range(20)))
    how = ["--loss", loss, "--offset", "o", "--tau", "1", "--gamma", "1", "--json", str(answer)]
    assert run(["fit", str(data), "-t", "y", *how]) == 0
    new.write_text("x\n1\n2\n")
    capsys.readouterr()
    assert run(["predict", str(answer), str(new)]) == 2
    assert "the model needs the offset of each row, but column 'o' is not in the data" in capsys.readouterr().err
    for cell in (27.7, -30.0):
        line = f"offset: column 'o' is {cell:g} in row 2; give numbers from -27.6 to 27.6, or remove the row"
        new.write_text(f"x,o\n1,2\n2,{cell}\n")
        assert run(["predict", str(answer), str(new)]) == 2
        assert capsys.readouterr().err.endswith(f"{line}\n")
        with pytest.raises(BadInput, match=line):
            sc.read_record(answer).predict(pd.DataFrame({"x": [1.0, 2.0], "o": [2.0, cell]}))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--gap", "1%"], "--gap: '1%' is not a number; write 0.01"),
        (["--id", "nobody"], "--id: column 'nobody' is not in the data"),
        (["--id", "lpsa"], "column 'lpsa' is the target and cannot be the column of an option too"),
        (
            ["--id", "age", "--features", "age,svi"],
            "column 'age' gives folds, weights, exposures, offsets or ids and cannot be a feature",
        ),
    ],
)
def test_a_column_that_cannot_name_rows(options: list[str], said: str, capsys: Said) -> None:
    assert run(["solve", str(PROSTATE_FILE), "-t", "lpsa", *options]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_any_column_may_stand_beside_predictions(record: Path, capsys: Said) -> None:
    for name, column in (("svi", "svi"), ("lpsa", "lpsa")):
        assert run(["predict", str(record), str(PROSTATE_FILE), "--id", name, "-q"]) == 0
        rows = read_csv(io.StringIO(capsys.readouterr().out))
        assert list(rows.columns) == ["row", column, "prediction"]
        assert rows[column].tolist() == read_csv(PROSTATE_FILE)[name].tolist()


def test_records_that_cannot_predict_and_outputs_that_cannot_be_written(
    record: Path, tmp_path: Path, capsys: Said
) -> None:
    data = sc.read_dataset(PROSTATE_FILE, "lpsa")
    sc.best_subsets(data, gammas=0.1).write_record(tmp_path / "path.json")
    assert run(["predict", str(tmp_path / "path.json"), str(PROSTATE_FILE)]) == 2
    assert "holds a model for every size" in capsys.readouterr().err
    assert run(["predict", str(record), str(PROSTATE_FILE), "--out", str(record)]) == 2
    assert "is also the data; give another file name" in capsys.readouterr().err


@pytest.mark.parametrize("folds", [["loo"], ["holdout:0.2"], ["5", "--weights", "age"]])
def test_held_out_predictions_are_what_the_cv_error_is_made_of(folds: list[str], tmp_path: Path, capsys: Said) -> None:
    file, out = tmp_path / "r.json", tmp_path / "rows.csv"
    command = ["solve", str(PROSTATE_FILE), "--target", "lpsa", "--gamma", "0.1", "--tau", "3", "--json", str(file)]
    assert run([*command, "--save-held-out", str(out), "--folds", *folds]) == 0
    said, record = capsys.readouterr().out, sc.read_record(file)
    assert isinstance(record, Record)
    rows = read_csv(out)
    held = rows.dropna()
    assert set(held.fold) == set(range(1, record.folds.k + 1))  # as the screen counts them
    if record.stability is not None:
        assert f"most influential fold: fold {record.stability.fold + 1} of {record.folds.k}" in said
    weight = held.weight if "weight" in held else np.ones(len(held))
    assert ("--weights" in folds) == ("weight" in held)
    assert len(rows) == record.data.n and held.fold.nunique() == record.folds.k
    square = np.average((held.target - held.prediction) ** 2, weights=weight)
    assert square == pytest.approx(record.cv_error, rel=1e-9)
    mae = np.average(np.abs(held.target - held.prediction), weights=weight)
    assert f"held-out predictions in the file: RMSE {np.sqrt(record.cv_error):.6g}, MAE {mae:.6g}, R^2 " in said
    assert f"R^2 {record.r_squared:.4f}" in said.partition("MAE")[2].splitlines()[0]


def test_a_record_after_its_data_is_told_the_order(record: Path, capsys: Said) -> None:
    for command in ("verify", "predict"):
        assert run([command, str(PROSTATE_FILE), str(record)]) == 2
        told = capsys.readouterr().err
        assert f"record {PROSTATE_FILE}: not a JSON file" in told
        advice = f"sparsecv {command} {record} {PROSTATE_FILE}"
        assert told.endswith(f"; the record is the first argument: {advice}\n")


def test_a_falsified_record_and_other_data_fail_with_their_field(record: Path, tmp_path: Path, capsys: Said) -> None:
    path, changed = tmp_path / "record.json", tmp_path / "changed.csv"
    changes: dict[str, Callable[[dict[str, Any]], None]] = {
        "cv_error": lambda r: r.update(cv_error=r["cv_error"] * 1.01),
        "coefficients.lcavol": lambda r: r["coefficients"].update(lcavol=9.0),
        "folds.digest": lambda r: r["folds"].update(seed=1),
        "table[0].lower": lambda r: r["table"][0].update(lower=r["table"][0]["upper"] * 1.01, upper=9e9),
    }
    for field, change in changes.items():
        entries = json.loads(record.read_text())
        change(entries)
        path.write_text(json.dumps(entries))
        assert run(["verify", str(path), PROSTATE]) == 1
        told = capsys.readouterr()
        assert told.err.startswith("sparsecv: error: verification failed: field ") and field in told.out
    changed.write_text(PROSTATE_FILE.read_text().replace("-0.579818495252942", "-0.579818495252943", 1))
    assert run(["verify", str(record), str(changed)]) == 1
    assert "data.fingerprint" in capsys.readouterr().err


def test_other_data_are_reported_once_in_plain_words(tmp_path: Path, capsys: Said) -> None:
    """A changed value, a new level, a renamed level and a missing row each give one line, without Python literals."""
    names = [f"{'uvw'[k % 3]},{k * k % 11},{k % 5 + k % 3}\n" for k in range(30)]
    table, answer = tmp_path / "d.csv", str(tmp_path / "r.json")
    table.write_text("arm,a,y\n" + "".join(names), encoding="utf-8")
    how = ["--target", "y", "--encode", "onehot", "--gamma", "0.1", "--tau", "1", "--folds", "3", "-q"]
    assert run(["solve", str(table), *how, "--json", answer]) == 0
    capsys.readouterr()
    for lines, field, said in (
        (
            ["u,7,0\n", *names[1:]],
            "data.fingerprint",
            "the values or the order of the rows differ from those of the record (",
        ),
        (["x,0,0\n", *names[1:]], "data.names", "the record lacks 'arm=x'"),
        ([line.replace("w", "q") for line in names], "data.names", "the data lack 'arm=w'; the record lacks 'arm=q'"),
        (names[:-1], "data.n", "the record has 30, but the data give 29"),
    ):
        table.write_text("arm,a,y\n" + "".join(lines), encoding="utf-8")
        assert run(["verify", answer, str(table)]) == 1
        told = capsys.readouterr()
        (line,) = [line for line in told.out.splitlines() if line.startswith("disagrees")]
        assert line.startswith(f"disagrees  {field}: {said}") and "pandas" not in line and "{" not in line
        assert told.err == f"sparsecv: error: verification failed: field {field}, as printed above\n"


def test_columns_called_by_numbers_are_no_positions(tmp_path: Path, capsys: Said) -> None:
    data, other, answer = tmp_path / "data.csv", tmp_path / "other.csv", tmp_path / "answer.json"
    data.write_text("7,1,3,y\n" + "".join(f"{k},{k * k % 7},{k % 3},{k + k * k % 7}\n" for k in range(20)))
    assert run(["solve", str(data), "-t", "y", "--gamma", "0.1", "-q", "--json", str(answer)]) == 0
    other.write_text("a,b,c,d,y\n1,2,3,4,5\n")
    capsys.readouterr()
    for command in ("predict", "verify"):
        assert run([command, str(answer), str(other)]) == 2
        assert "are not in the data; the columns are a, b, c, d, y" in capsys.readouterr().err
    header = ",".join(f"x{k}" for k in range(40))
    rows = [f"{','.join(str(k * j % 11) for j in range(40))},{k}\n" for k in range(20)]
    data.write_text("".join([f"{header},y\n", *rows]))
    assert run(["solve", str(data), "-t", "y", "--gamma", "0.1", "--tau", "1:2", "-q", "--json", str(answer)]) == 0
    capsys.readouterr()
    assert run(["verify", str(answer), str(other)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("sparsecv: error: ") and "'x7' and 32 more are not in the data" in error


def test_the_verdict_of_verify_is_its_first_line(record: Path, tmp_path: Path, capsys: Said) -> None:
    assert run(["verify", str(record), PROSTATE]) == 0
    lines = capsys.readouterr().out.splitlines()
    verdict = "the record agrees with the data: its answer was recomputed and its bounds were verified"
    assert lines[0].startswith(f"{verdict}; only compared with bounds: upper bounds, standard errors")
    assert lines[-1].startswith("only read  work, ") and "the request (" in lines[-1]
    assert "request." not in lines[-1] and "data.loss" not in lines[-1]
    assert "verified   the instability agrees with the table" in lines and "--stability" not in "".join(lines)
    assert run(["verify", str(record), PROSTATE, "--full"]) == 0
    full = capsys.readouterr().out
    assert "request.refine" in full and "region.upper; by: bounds, gap, status and R^2 agree" in " ".join(full.split())
    assert run(["verify", str(record), PROSTATE, "-q"]) == 0 and capsys.readouterr().out == ""
    forged = tmp_path / "forged.json"
    forged.write_text(record.read_text().replace('"cv_error": 0.', '"cv_error": 0.1', 1))
    assert run(["verify", str(forged), PROSTATE, "-q"]) == 1
    assert capsys.readouterr().out.startswith("the record does not agree with the data\ndisagrees")


def test_verify_names_fields_that_no_record_has(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = sc.solve(PROSTATE_FILE, "lpsa", gammas=[0.1], taus="1:3")
    stored = json.loads(record.to_json())
    stored["nonsense"], stored["table"][1]["odd"] = 3, None
    place = tmp_path / "record.json"
    place.write_text(json.dumps(stored))
    assert run(["verify", str(place), str(PROSTATE_FILE)]) == 0
    assert "not checked: table[].odd, nonsense; this version does not know these fields" in capfd.readouterr().err


def test_a_file_of_another_layout_is_not_read_as_that_of_the_record(tmp_path: Path, capsys: Said) -> None:
    lab, other, answer = tmp_path / "lab.csv", tmp_path / "other.csv", str(tmp_path / "r.json")
    lab.write_text("a;y\n" + "".join(f"{k},5;{k * k % 7},25\n" for k in range(20)))
    other.write_text("a,y\n" + "".join(f"{k},{k}\n" for k in range(20)))
    how = ["--sep", "semicolon", "--decimal", ",", "--gamma", "0.1", "--folds", "4", "--quiet"]
    assert run(["solve", str(lab), "-t", "y", *how, "--json", answer]) == 0
    capsys.readouterr()
    assert run(["verify", answer, str(other)]) == 2
    assert "does not have the separator ';' of the data of the record" in capsys.readouterr().err


def test_lines_that_a_record_skips_are_skipped_only_where_the_file_needs_it(tmp_path: Path, capsys: Said) -> None:
    rows = [f"{a},{a * a % 7},{2 * a + a * a % 5}" for a in range(16)]
    data, longer, new, record = (tmp_path / name for name in ("units.csv", "longer.csv", "new.csv", "record.json"))
    data.write_text("\n".join(["a,b,y", "kg,m,s", *rows[:12], "66,30,150"]) + "\n")
    longer.write_text("\n".join(["a,b,y", "kg,m,s", *rows]) + "\n")  # a row in the place of the totals
    new.write_text("\n".join(["a,b,y", *rows[:4]]) + "\n")
    ask = ["--skip-lines", "2,15", "--folds", "3", "--gamma", "1", "--tau", "1", "-q", "--json", str(record)]
    assert run(["solve", str(data), "-t", "y", *ask]) == 0
    capsys.readouterr()
    for file, options, n_lines, said, unsaid in (
        (data, [], 13, "warning: skipped in this file: lines 2,15; the data of", "is read as data"),
        (longer, [], 17, "line 15 of this file is read as data, but", "line 2 of"),
        (new, [], 5, "line 2 of this file is read as data, but", "15"),
        (new, ["--skip-lines", "2"], 4, "3 rows predicted", "skipped"),
    ):
        assert run(["predict", str(record), str(file), *options]) == 0
        printed = capsys.readouterr()
        assert printed.out.count("\n") == n_lines and said in printed.err and unsaid not in printed.err
    assert run(["predict", str(record), str(data), "--skip-lines", "none"]) == 2
    assert "column 'a' holds text 'kg' in row 1 (line 2)" in capsys.readouterr().err
    titled = tmp_path / "titled.csv"
    titled.write_text("\n".join(["A table", "a,b,y", *rows[:12], "66,30,150"]) + "\n")
    ask[1] = "1,15"
    assert run(["solve", str(titled), "-t", "y", *ask]) == 0
    capsys.readouterr()
    assert run(["predict", str(record), str(new), "--out", "-"]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 5 and "--skip-lines" not in printed.err and not Path("-").exists()
    assert run(["solve", str(titled), "-t", "y", *ask, "--save-held-out", "-"]) == 2
    assert "--save-held-out: '-' is standard output, which this option does not" in capsys.readouterr().err
    assert run(["predict", str(record), str(data), "--skip-lines", "15"]) == 2
    ask[1] = "2,15"
    assert run(["solve", str(data), "-t", "y", *ask]) == 0
    capsys.readouterr()
    stored = sc.read_record(record)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(stored.predict(new)) == 4  # type: ignore[union-attr]
    with pytest.warns(UserWarning, match="skipped in this file: lines 2,15"):
        assert len(stored.predict(data)) == 12  # type: ignore[union-attr]


LAB = "Export\nsample;a;b;y\n;kg;m;s\n" + "".join(
    f"S{k};{20 + k},{100 + 37 * k % 900};{k * k % 7},5;{'n.a.' if k == 5 else f'{3 * k % 11},25'}\n" for k in range(16)
)


def test_the_data_of_a_record_are_predicted_as_they_were_read(tmp_path: Path, capsys: Said) -> None:
    """Column b, which the model does not use, showed that the comma is the decimal mark; one target is missing."""
    lab, answer = tmp_path / "lab.csv", str(tmp_path / "r.json")
    lab.write_text(LAB)
    search = ["--tau", "1", "--force-out", "b", "--gamma", "0.1", "--folds", "4", "-q", "--json", answer]
    how = ["--skip-lines", "1,3", "--sep", "semicolon", "--decimal", ",", "--na-values", "n.a.", "--na", "drop"]
    assert run(["solve", str(lab), "-t", "y", "--drop", "sample", *how, *search]) == 0
    capsys.readouterr()
    assert run(["predict", answer, str(lab)]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 17 and "the model was fitted to 15 of these rows" in printed.err
    assert "the errors are computed from the 15 of 16 rows that have a target" in printed.err
    new = tmp_path / "new.csv"
    for text, how in (("a;b\n21,137;0,5\n", []), ("a,b\n21.137,0.5\n", ["--sep", "comma", "--decimal", "."])):
        new.write_text(text)
        assert run(["predict", answer, str(new), *how]) == 0
        assert capsys.readouterr().out.splitlines()[1] == printed.out.splitlines()[2].replace("2,", "1,", 1)
    assert run(["predict", answer, str(new)]) == 2
    assert "separated by commas; give --sep comma and --decimal .\n" in capsys.readouterr().err


def test_another_column_of_new_rows_shows_that_points_are_decimal_marks(tmp_path: Path, capsys: Said) -> None:
    data, new, answer = tmp_path / "data.csv", tmp_path / "new.csv", str(tmp_path / "r.json")
    rows = [(f"{k}.125" if k % 3 else str(k), f"{k * k % 7}.5", k % 5 + 2 * k) for k in range(1, 21)]
    data.write_text("a,b,y\n" + "".join(f"{a},{b},{y}\n" for a, b, y in rows))
    search = ["--tau", "1", "--force-out", "b", "--gamma", "0.1", "--folds", "4", "-q", "--json", answer]
    assert run(["solve", str(data), "-t", "y", *search]) == 0
    new.write_text("a\n" + "".join(f"{a}\n" for a, _, _ in rows))
    assert run(["predict", answer, str(data)]) == 0
    capsys.readouterr()
    assert run(["predict", answer, str(new)]) == 2
    assert "'1.125' in row 1 is ambiguous; give --decimal" in capsys.readouterr().err


def test_rows_are_numbered_as_in_the_file_next_to_dropped_rows(tmp_path: Path, capsys: Said) -> None:
    data, new, answer = tmp_path / "data.csv", tmp_path / "new.csv", str(tmp_path / "r.json")
    data.write_text("a,c,y\n" + "".join(f"{k},{'uv'[k % 2]},{k * k % 11}\n" for k in range(12)) + ",u,1\n")
    search = ["--na", "drop", "--encode", "onehot", "--tau", "2", "--gamma", "0.1", "--folds", "3", "-q", "--json"]
    assert run(["solve", str(data), "-t", "y", *search, answer]) == 0
    capsys.readouterr()
    for row, error in (("5x,u", "'a' holds text '5x' in row 3 (line 4)"), ("5,w", "'c' holds 'w' in row 3")):
        new.write_text(f"a,c\n,u\n,v\n{row}\n")
        assert run(["predict", answer, str(new)]) == 2
        assert error in capsys.readouterr().err


@pytest.mark.parametrize("loss", ["poisson", "logistic"])
def test_intervals_that_do_not_exist_are_refused_before_data_are_requested(
    loss: str, tmp_path: Path, capsys: Said
) -> None:
    data, answer = tmp_path / "data.csv", str(tmp_path / "r.json")
    data.write_text("a,y\n" + "".join(f"{k},{k * k % 7 % 2}\n" for k in range(20)))
    search = ["--loss", loss, "--gamma", "1", "--folds", "3", "-q", "--json", answer]
    assert run(["solve", str(data), "-t", "y", *search]) == 0
    capsys.readouterr()
    assert run(["predict", answer, str(data), "--interval", "0.9"]) == 2
    assert "error: --interval: not supported for c" in capsys.readouterr().err
