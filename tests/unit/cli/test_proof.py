"""`--proof` and `check`: what they say and how they end."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged_proofs import read_lines, write_lines
from repository import INSTANCES

from sparsecv_mio.cli import run
from sparsecv_mio.proofs import kept_trees
from sparsecv_mio.proofs.kept_trees import KeptTrees, part_of

PROSTATE = str(INSTANCES / "prostate.csv")


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
        last = capsys.readouterr().out.splitlines()[-1]
        said, check = last.split("; check it: sparsecv ")
        assert re.fullmatch(rf"proof: {re.escape(str(place))} \(\d+ (kB|bytes)\)", said)
        assert run(shlex.split(check)) == 0
        capsys.readouterr()
    assert run(["fit", *ask, "--json", "-"]) == 0
    told = capsys.readouterr()
    assert "; check it: " in told.err and json.loads(told.out)
    assert run(["fit", *ask, "--quiet"]) == 0
    assert "proof: " not in capsys.readouterr().out


def test_what_has_no_proof_is_refused_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "p"
    ask = [PROSTATE, "--target", "lpsa", "--tau", "3", "--proof", str(place)]
    for options, word in (
        (["solve", "--method", "descent"], "--method descent"),
        (["solve", "--gamma", "0.1..1"], "every gamma of an interval (--gamma LO..HI)"),
        (["path", "--force-in", "age"], "restrictions"),
        (["fit", "--force-in", "age"], "side constraints"),
        (["fit", "--assume-box", "9"], "--assume-box"),
        (["path", "--weights", "age"], "--weights"),
    ):
        gamma = [] if "--gamma" in options else ["--gamma", "1"]
        assert run([options[0], *ask, *options[1:], *gamma]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and f"--proof: proofs do not cover {word}" in told
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


GRID = ["--gamma", "0.1,1", "--tau", "1:3", "--folds", "5"]
SOLVE = ["solve", PROSTATE, "--target", "lpsa", *GRID, "--threads", "1", "-q", "--proof"]
# kills itself, as `kill -9` would, when so many trees are kept
KILLED = """
import os, signal, sys
from sparsecv_mio.cli import run
from sparsecv_mio.proofs import kept_trees
count, keep = [0], kept_trees.KeptTrees.keep
def counted(self, line):
    keep(self, line)
    count[0] += 1
    if count[0] == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
kept_trees.EVERY, kept_trees.KeptTrees.keep = 0.0, counted
run(sys.argv[2:])
"""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The trees that are made from here on, each written to the part at once."""
    count: list[Any] = []
    keep = KeptTrees.keep
    monkeypatch.setattr(kept_trees, "EVERY", 0.0)
    monkeypatch.setattr(KeptTrees, "keep", lambda self, line: (count.append(line), keep(self, line)))
    return count


def test_a_proof_that_was_killed_goes_on_where_it_was(tmp_path: Path, made: list[Any]) -> None:
    whole, place = tmp_path / "whole", tmp_path / "p"
    assert run([*SOLVE, str(whole)]) == 0 and not part_of(whole).exists()
    trees = list(made)
    assert len(trees) >= 4
    ended = subprocess.run([sys.executable, "-c", KILLED, "3", *SOLVE, str(place)], capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.part", "whole"]
    assert part_of(place).read_bytes().count(b"\n") == 1 + 3
    with open(part_of(place), "ab") as stream:
        stream.write(b"0123456789abcdef {\"half a li")
    made.clear()
    assert run([*SOLVE, str(place)]) == 0
    assert len(made) == len(trees) - 3 and not part_of(place).exists()
    assert [line.get("kind") for line in read_lines(place)] == [line.get("kind") for line in read_lines(whole)]
    assert run(["check", str(place), PROSTATE]) == 0


def test_what_is_no_part_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "p"
    part_of(place).write_text("my notes")
    assert run([*SOLVE, str(place)]) == 2
    assert "is no part of a proof: remove it" in capsys.readouterr().err
    assert part_of(place).read_text() == "my notes" and not place.exists()


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
    assert told.count("\n") == 1 and f"{place} is not written" in told and "goes on from" in told
    assert record.exists() and part_of(place).exists() and not place.exists()
    other = [word.replace("0.1,1", "0.2,1") for word in SOLVE]
    made.clear()
    assert run([*other, str(place)]) == 0 and not part_of(place).exists()  # nothing of another grid is taken over
    assert len(made) >= 4 and run(["check", str(place), PROSTATE]) == 0


def test_a_limit_leaves_the_record_and_no_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, record = tmp_path / "p", tmp_path / "r.json"
    wide = [word.replace("0.1,1", "0.001:10:5").replace("1:3", "1:8") for word in SOLVE]
    assert run([*wide, str(place), "--json", str(record), "--method", "bounds"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "--proof: a limit came before the pair was proved" in told
    assert record.exists() and not place.exists()


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
                assert code == 2 and told.count("\n") == 1 and "--proof: " in told
                assert place.read_bytes() == b"old" and not part_of(place).exists()
    assert 0 < written < 9
