"""The script: its help, its errors, a reader that leaves, and bad input to any command."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparsecv_mio.cli import LazyCommands, run

SCRIPT = [sys.executable, "-c", "from sparsecv_mio.cli import main; main()"]
CONTENTS = {
    "empty.csv": "",
    "text.csv": "a,b,y\n1,2,3\n4,five,6\n7,8,1\n",
    "constant.csv": "a,b,y\n1,2,3\n4,5,3\n7,8,3\n",
    "data.txt": "a,b,y\n1,2,3\n4,5,6\n7,8,1\n",
    "good.csv": "a,b,y,g\n1,2,3,0\n4,5,6,0\n7,8,1,0\n2,2,2,0\n",
    "short_folds.csv": "1\n2\n",
}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["solve", "nowhere.csv", "--target", "y"], "nowhere.csv"),
        (["solve", "empty.csv", "--target", "y"], "empty"),
        (["solve", "text.csv", "--target", "y"], "'b' holds text 'five' in row 2"),
        (["solve", "constant.csv", "--target", "y", "--folds", "3"], "'y' is constant"),
        (["solve", "data.txt", "--target", "y"], "data.txt"),
        (["solve", "good.csv"], "--target"),
        (["fit", "good.csv", "--target", "y", "--tau", "1"], "--gamma is missing (ridge weight, such as 0.1); "),
        (["solve"], "DATA is missing; see `sparsecv solve --help`"),
        (["verify", "good.csv"], "DATA is missing; see `sparsecv verify --help`"),
        (["collect", "."], "error: --out is missing ("),  # has a short name too
        (["solve", "good.csv", "--target", "z"], "'z'"),
        (["solve", "good.csv", "--target", "9"], "9"),
        (["solve", "good.csv", "--target", "y", "--features", "a,q"], "'q'"),
        (["solve", "good.csv", "--target", "y", "--features", "a,y"], "'y'"),
        (["solve", "good.csv", "--target", "y", "--drop", "q"], "'q'"),
        (["solve", "good.csv", "--target", "y", "--drop", "a", "--features", "b"], "--features"),
        (["solve", "good.csv", "--target", "y", "--drop", "a,b,g"], "feature"),
        (["solve", "good.csv", "--target", "y", "--folds", "banana"], "'banana'"),
        (["solve", "good.csv", "--target", "y", "--folds", "groups:q"], "'q'"),
        (["solve", "good.csv", "--target", "y", "--folds", "groups:y"], "'y'"),
        (["solve", "good.csv", "--target", "y", "--folds", "file:nowhere.csv"], "nowhere.csv"),
        (["solve", "good.csv", "--target", "y", "--folds", "file:short_folds.csv"], "short_folds.csv"),
        (["solve", "good.csv", "--target", "y", "--folds", "2", "--seed", "-1"], "seed"),
        (["solve", "good.csv", "--target", "y", "--folds", "2", "--gamma", "0"], "--gamma"),
        (["solve", "good.csv", "--target", "y", "--folds", "2", "--tau", "4"], "--tau"),
        (["solve", "good.csv", "--target", "y", "--folds", "2", "--gap", "x"], "--gap"),
        (["solve", "good.csv", "--target", "y", "--folds", "holdout:0.25", "--one-se"], "one-se: a single fold"),
        (["solve", "good.csv", "--target", "y", "--folds", "2", "--fold", "3"], "--fold"),
        (["solve", "good.csv", "bad.csv", "--target", "y"], "bad.csv"),
        (["path", "good.csv", "--target", "y", "--tau", "7"], "--tau"),
        (["path", "good.csv", "--target", "y", "--folds", "2"], "--folds"),
        (["verify", "nowhere.json", "good.csv"], "nowhere.json"),
        (["verify", "good.csv", "good.csv"], "JSON"),
        (["polish"], "polish"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    arguments: list[str],
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in CONTENTS.items():
        (tmp_path / name).write_text(text)
    if arguments[0] in ("solve", "path"):
        arguments = [*arguments, "--json", "record.json"]
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("sparsecv: error: ") and captured.err.count("\n") == 1
    assert named in captured.err
    assert {path.name for path in tmp_path.iterdir()} == set(CONTENTS)


def test_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0 and capsys.readouterr().out.startswith("sparsecv ")
    assert run(["solve", "--help-all"]) == 0
    shown = capsys.readouterr().out
    options = ["target", "features", "drop", "folds", "seed", "gamma", "tau", "scale", "intercept", "one-se", "gap"]
    for option in [*options, "time-limit", "threads", "json", "quiet"]:
        assert f"--{option} " in shown
    assert subprocess.run(SCRIPT, capture_output=True, text=True, check=True).stdout.startswith("Usage: sparsecv")


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal")
@pytest.mark.parametrize("handler", ["finally", "except BaseException"])
def test_sigterm_ends_a_command_even_if_a_library_swallows_the_exception(handler: str) -> None:
    code = (
        "import os, signal, sys, time\nfrom sparsecv_mio import cli\n"
        "def load(name):\n"
        "    try:\n        os.kill(os.getpid(), signal.SIGTERM)\n        time.sleep(60)\n"
        f"    {handler}:\n        pass\n"
        "    time.sleep(60)\n"
        "cli.TERMINATION_GRACE, cli.load_command, sys.argv = 0.5, load, ['sparsecv', 'verify']\n"
        "cli.main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50)
    assert (ended.returncode, ended.stderr) == (130, "sparsecv: error: interrupted before there was a result\n")


def test_a_closed_pipe_of_a_help_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def close(*_: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "nobody reads")

    monkeypatch.setattr(LazyCommands, "parse_args", close)
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # click wraps both
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    assert run(["--version"]) == 0


def test_a_group_has_no_help_of_all_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["glru", "--help-all"]) == 2
    assert "did you mean '--help-all'" not in capsys.readouterr().err


def test_an_interrupt_while_arguments_are_read_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LazyCommands, "parse_args", interrupt)
    assert run(["inspect", "x.csv"]) == 130
    assert capsys.readouterr().err.strip() == "sparsecv: error: interrupted before there was a result"
