"""`--proof` and `check`: what they say and how they end."""

from __future__ import annotations

from pathlib import Path

import pytest
from forged_proofs import read_lines, write_lines
from repository import INSTANCES

from sparsecv_mio.cli import run

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


def test_what_has_no_proof_is_refused_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "p"
    ask = [PROSTATE, "--target", "lpsa", "--gamma", "1", "--tau", "3", "--proof", str(place)]
    for options, word in (
        (["solve", "--method", "descent"], "--method descent"),
        (["path", "--force-in", "age"], "restrictions"),
        (["fit", "--force-in", "age"], "side constraints"),
        (["fit", "--assume-box", "9"], "--assume-box"),
        (["path", "--weights", "age"], "--weights"),
    ):
        assert run([options[0], *ask, *options[1:]]) == 2
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
