"""The answer comes first; what cannot be written costs itself and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from refused_writes import small_disk
from repository import INSTANCES

from sparsecv_mio.certificate.parts import NOT_AVERAGED
from sparsecv_mio.cli import run
from sparsecv_mio.cli.ending import warnings_to_print
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.search.answer.result import DOUBTFUL, UNWEIGHED
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.observers import read_checkpoint

PROSTATE = str(INSTANCES / "prostate.csv")
SCRIPT = [sys.executable, "-c", "from sparsecv_mio.cli import main; main()"]
SOLVE = ["solve", PROSTATE, "--target", "lpsa", "--folds", "3", "--gamma", "0.1", "--tau", "1:2", "--threads", "1"]
# every command ends in the same code; this one compiles no kernel and starts in a third of the time
QUICK = ["iacv", PROSTATE, "--target", "lpsa", "--loss", "squared", "--lam", "1", "--iterations", "5"]
FULL = 4096  # bytes a file may grow to, where the disk is full
# a file that a thread of Arrow is still at when the command is done, and what has to be done at the end
SLOW_FILE = """
import atexit, io, time
from pathlib import Path
from pyarrow import csv

class Slow(io.BytesIO):
    lines = [b"a\\n1\\n", b"2\\n", b"3\\n"]
    def read(self, size=-1):
        if self.lines:
            return self.lines.pop(0)
        time.sleep(20.0)
        return b""

stream = csv.open_csv(Slow())
atexit.register(Path("done").touch)
from sparsecv_mio.cli import main; main()
"""


def shell(words: list[str], where: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command line in a shell that sends it where `where` says."""
    command = " ".join(f"'{word}'" for word in [*SCRIPT, *words])
    done = subprocess.run(["bash", "-c", f"{command} {where}"], capture_output=True, text=True, cwd=folder)
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    return done


Said = pytest.CaptureFixture[str]


@pytest.mark.parametrize("option", ["--json", "--checkpoint", "--trace"])
def test_a_full_disk_costs_the_file(option: str, tmp_path: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grid whose every file is larger than the disk."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sparsecv_mio.cli.live.FIRST_LINE_SECONDS", 3600.0)  # no line of progress on a busy machine
    large = [*SOLVE[:5], "60", "--gamma", "1e-3:10:15", "--method", "rounds", "--threads", "1"]
    assert run(large) == 0  # every kernel is compiled, and stored, before the disk is full
    capsys.readouterr()
    with small_disk(FULL):
        assert run([*large, option, "out"]) == 2
    done = capsys.readouterr()
    assert done.out.startswith("certified choice (") and "best gamma for each tau" in done.out
    assert done.err.count("\n") == 1 and "cannot write" in done.err and "File too large" in done.err
    assert os.listdir() == (["out"] if option == "--trace" else [])  # of a trace, the first lines fit


def test_the_other_files_are_written(tmp_path: Path, capsys: Said) -> None:
    record = tmp_path / "out.json"
    assert run([*SOLVE, "--trace", "/dev/full", "--json", str(record)]) == 2
    done = capsys.readouterr()
    assert done.err.count("\n") == 1 and "cannot write trace /dev/full" in done.err
    assert json.loads(record.read_text())["status"] == "proved"


@pytest.mark.parametrize("where", [">&-", "> /dev/full"])
def test_standard_output_closed_or_full(where: str, tmp_path: Path) -> None:
    done = shell([*QUICK, "--json", "out.json"], where, tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("sparsecv: error: cannot write to standard output: ") and done.stderr.count("\n") == 1
    assert json.loads((tmp_path / "out.json").read_text())["cv"] > 0.0


@pytest.mark.parametrize(("words", "where"), [(["--version"], ">&-"), (["solve", "--help"], "> /dev/full")])
def test_whatever_is_printed(words: list[str], where: str, tmp_path: Path) -> None:
    done = shell(words, where, tmp_path)
    assert done.returncode == 2 and "error: cannot write" in done.stderr


@pytest.mark.parametrize("where", ["2> /dev/full", "<&- 2>&-"])
def test_standard_error_closed_or_full(where: str, tmp_path: Path) -> None:
    done = shell(QUICK, where, tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("leave-one-out loss")


def test_a_thread_of_arrow_does_not_abort_the_end(tmp_path: Path) -> None:
    """It would wait for the interpreter, which ends it within code that must not be left like that."""
    command = [sys.executable, "-c", SLOW_FILE, *QUICK]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("leave-one-out loss")
    assert (tmp_path / "done").exists()


def test_a_reader_that_leaves_costs_no_file(tmp_path: Path) -> None:
    done = shell([*QUICK, "--json", "out.json"], "| true; echo ${PIPESTATUS[0]}", tmp_path)
    assert done.stdout == "0\n" and done.stderr == ""
    assert (tmp_path / "out.json").exists()


@pytest.mark.parametrize("option", ["--checkpoint", "--resume"])
@pytest.mark.parametrize("place", ["pipe", "/dev/null", "folder", "thesis.tex"])
def test_a_checkpoint_replaces_nothing_foreign(option: str, place: str, tmp_path: Path, capsys: Said) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "thesis.tex").write_text("years of work")
    assert run([*SOLVE, option, str(tmp_path / place)]) == 2
    done = capsys.readouterr()
    assert done.out == "" and done.err.count("\n") == 1 and option in done.err
    assert (tmp_path / "pipe").is_fifo() and Path("/dev/null").is_char_device()
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_run_that_has_not_ended_is_not_written_over(tmp_path: Path, capsys: Said) -> None:
    store, data = tmp_path / "run.ck", read_dataset(PROSTATE, "lpsa")
    stop = threading.Event()
    words: dict[str, Any] = {"checkpoint": store, "stop": stop, "progress": lambda _: stop.set(), "threads": 1}
    cut = cross_validate(data, "3", gammas=[0.1], taus=range(1, 3), **words)
    assert cut.status == "interrupted" and read_checkpoint(store)[1]
    before = store.read_bytes()
    assert run([*SOLVE, "--checkpoint", str(store)]) == 2 and store.read_bytes() == before
    said = capsys.readouterr().err
    assert f"--checkpoint: {store} contains an unfinished run; continue it with --resume {store}" in said
    other = str(tmp_path / "other.ck")
    assert run([*SOLVE, "--resume", str(store), "--checkpoint", other]) == 0 and store.read_bytes() == before
    assert run([*SOLVE, "--resume", str(store), "--checkpoint", str(store)]) == 0 and store.read_bytes() != before
    assert run([*SOLVE, "--checkpoint", str(store)]) == 0  # it has ended
    store.write_bytes(store.read_bytes()[:-9])
    (tmp_path / "text.ck").write_text("a damaged first line")
    capsys.readouterr()
    for name in ("run.ck", "text.ck", "none.ck"):
        assert run([*SOLVE, "--resume", str(tmp_path / name)]) == 2
        assert "omit --resume to start again" in capsys.readouterr().err


@pytest.mark.parametrize("words", [SOLVE, ["path", *SOLVE[1:4], "--gamma", "0.1"], ["inspect", *SOLVE[1:4]]])
def test_lines_of_a_pipe_end_without_blanks(words: list[str], capsys: Said) -> None:
    assert run(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5 and lines == [line.rstrip() for line in lines]


def test_quiet_shows_warnings_about_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Imputation over held-out rows, a factor of subjects and an exposure as a feature; not how text was read."""
    table, answer = tmp_path / "d.csv", str(tmp_path / "r.json")
    rows = [f"s{k // 3},{['u', 'v', ''][k % 3]},{'' if k == 4 else k % 7},{1 + k % 5},1,{k * k % 4}" for k in range(66)]
    table.write_text("\n".join(["who,arm,a,years,same,y", *rows]) + "\n", encoding="utf-8")
    how = ["--target", "y", "--loss", "poisson", "--encode", "onehot", "--na", "mean", "--gamma", "1", "--tau", "1"]
    assert run(["solve", str(table), *how, "--folds", "3", "--quiet", "--json", answer]) == 0
    said = capsys.readouterr().err.splitlines()
    parts = ["1 missing value imputed", "column 'who' has 22 levels", "'years' may be the exposure"]
    assert len(said) == len(parts) and all(words in line for words, line in zip(parts, said, strict=True)), said
    table.write_text("who,arm,a,years,same,y\ns1,u,,1,1,2\ns2,v,3,2,1,0\n", encoding="utf-8")
    assert run(["predict", answer, str(table), "--quiet"]) == 0
    loud = capsys.readouterr()
    assert run(["predict", answer, str(table)]) == 0
    shown = [line for line in capsys.readouterr().err.splitlines() if line.startswith("sparsecv: warning: ")]
    assert loud.err.splitlines() == shown and len(loud.out.splitlines()) == 3


def test_warnings_that_restrict_an_answer_are_kept() -> None:
    known = [DOUBTFUL, UNWEIGHED, NOT_AVERAGED]
    assert warnings_to_print([*known, "column 'a' is constant: its coefficient is zero"], quiet=True) == known
