"""What a run shows while it goes on."""

from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from repository import INSTANCES
from rich.console import Console

from sparsecv_mio.cli import live, run
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.search import first_use
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.deadline import StopSignal
from sparsecv_mio.search.observers import COMPILING, Progress, TauProgress

SERVO = str(INSTANCES / "servo.csv")
SCRIPT = [sys.executable, "-c", "from sparsecv_mio.cli import main; main()"]

STATE = Progress(
    done=30, total=60, nodes=1234, lower=1.5, upper=2.0, seconds=3.0, mios=7, pruned=12, best=(0.1, 3),
    taus=tuple(TauProgress(tau, 3 * (tau % 4), 2, 12, 1.0 + tau / 10, 2.0 + tau) for tau in range(1, 31)),
)  # fmt: skip


def drawn(state: Progress | None, height: int = 50, stopping: bool = False, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    stop = StopSignal()
    if stopping:
        stop.set()
    view = live.View(stop, console)
    if state is not None:
        view(state)
    console.print(view.draw())
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_view_says_what_is_known() -> None:
    text = drawn(STATE)
    for word in ("tau 3, gamma 0.1", "[1.5, 2]", "gap 0.25", "30/60 solved", "12 excluded", "1,234 nodes"):
        assert word in text
    assert "9+2/12" in text and "stopping" not in text
    assert "starting" in drawn(None)
    assert "stopping with the best answer" in drawn(STATE, stopping=True)


def test_view_fits_the_screen_and_keeps_the_best_tau() -> None:
    lines = drawn(STATE, height=16).rstrip("\n").split("\n")
    assert len(lines) <= 16
    assert any(line.split()[:1] == ["3"] for line in lines) and any("more" in line for line in lines)


def test_the_part_that_is_proved_is_named() -> None:
    state = replace(STATE, proved=(9, 0.5))
    for text in (drawn(state), live.progress_line(state)):
        assert "certified for tau 1:9 at every gamma, and every tau at gamma >= 0.5" in text
    assert "certified for" not in drawn(STATE) + live.progress_line(STATE)


def test_estimates_are_shown_before_anything_is_proved() -> None:
    rows = tuple(TauProgress(tau, 0, 0, 12, 0.0, float("inf")) for tau in range(1, 51))
    nothing = Progress(0, 600, 0, 0.0, float("inf"), 1.0, best=(0.1, 1), taus=rows, stage="searching: fold 3 of 10")
    for text in (drawn(nothing), live.progress_line(nothing)):
        assert "no certified bound yet" in text and "searching: fold 3 of 10" in text
        assert "gap" not in text and "[0, ?]" not in text and "gamma" not in text and "~" not in text
    found = tuple(replace(row, cv_error=60.0 - row.tau) for row in rows)
    estimated = replace(nothing, taus=found, best=(0.1, 50), cv_error=10.0)
    for text in (drawn(estimated), live.progress_line(estimated)):
        assert "tau 50, gamma 0.1, CV error ~10" in text and "no certified bound yet" in text
    assert "~11" in drawn(estimated)  # of tau 1 to 49, the least
    proved = replace(estimated, cv_error=9.5, estimate=False, lower=9.5, upper=9.5)
    assert "CV error 9.5; minimum CV error in [9.5, 9.5], gap 0" in live.progress_line(proved)
    assert "minimum CV error at least 3" in live.progress_line(replace(nothing, lower=3.0))


def test_rows_that_are_alike_are_one() -> None:
    def row(tau: int, final: int, pruned: int) -> TauProgress:
        return TauProgress(tau, final, pruned, 10, tau / 10, 9.0 - tau, cv_error=20.0 - tau)

    taus = [row(1, 10, 0), row(2, 4, 0), *(row(tau, 0, tau % 4) for tau in range(3, 8)), row(8, 0, 10), row(9, 0, 10)]
    rows = live.merge_taus(taus, best=5)
    assert [name for name, _ in rows] == ["1", "2", "3:4", "5", "6:7", "8:9"]
    _, one = rows[2]
    assert (one.final, one.pruned, one.total) == (0, 3, 20)
    assert (one.lower, one.upper, one.cv_error) == (0.3, 5.0, 16.0)
    assert sum(one.total for _, one in rows) == 90
    assert [name for name, _ in live.merge_taus(taus, best=-1)] == ["1", "2", "3:7", "8:9"]
    apart = [row(tau, 0, 0) for tau in (1, 3, 5)]
    assert [name for name, _ in live.merge_taus(apart, best=-1)] == ["1,3,5"]  # 1:5 are five


@pytest.mark.parametrize("method", ["rounds", "joint", "descent"])
def test_progress_counts_every_cell_once(method: str) -> None:
    data = read_dataset(SERVO, "class")
    states: list[Progress] = []
    record = cross_validate(
        data, make_folds("blocks:20", data), gammas=[0.1, 1.0], taus=range(1, 6), method=method, threads=2,
        progress=states.append,
    )  # fmt: skip
    for state in states:
        assert sum(row.final for row in state.taus) == state.done <= state.total
        assert sum(row.pruned for row in state.taus) == state.pruned <= state.total - state.done
        assert sum(row.total for row in state.taus) == state.total
        assert min(row.lower for row in state.taus) == state.lower
    assert [a.nodes <= b.nodes for a, b in zip(states, states[1:], strict=False)].count(False) == 0
    if method == "descent":
        assert states[-1].stage.startswith("step ") and "best so far" in states[-1].stage
    else:
        assert states[-1].best == (record.gamma, record.tau)


def test_plain_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with live.progress_view(True, StopSignal()) as nobody:
        assert nobody is None
    monkeypatch.setattr(live, "LINE_SECONDS", 0.01)
    with live.progress_view(False, StopSignal(), note="a sentence") as lines:
        assert lines is not None
        err = wait_for("starting", capsys)
        assert err.startswith("sparsecv: note: a sentence\n") and err.count("sentence") == 1
        lines(STATE)
        err = wait_for("30 of 60", capsys)  # a line comes whether or not the search reports again
        counts = "30 of 60 subproblems solved, 12 excluded, 7 by branch and bound, 1,234 nodes"
        assert f"CV error in [1.5, 2], gap 0.25; {counts}" in err
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr() == ("", "")  # over with the search


def test_all_lines_of_a_command_show_one_clock(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live.Began, "moment", time.monotonic() - 500.0)  # of which the search had 3 seconds
    monkeypatch.setattr(live, "FIRST_LINE_SECONDS", 0.01)
    with live.reading_lines(False):
        wait_for("sparsecv: 500 s; reading the data", capsys)
    nothing = Progress(0, 0, 0, 0.0, float("inf"), 0.0, stage=f"{COMPILING}: about 10 s")
    lines = live.Lines()
    assert lines.line() == "500 s; starting"
    lines(nothing)
    assert lines.line() == f"500 s; still {COMPILING}"
    lines(STATE)
    assert lines.line().startswith("500 s; tau 3, ")
    for text in (drawn(None), drawn(nothing), drawn(STATE)):
        assert "500 s" in text
    assert "0/0" not in drawn(nothing) and "0 of 0" not in live.progress_line(nothing)


@pytest.mark.parametrize(
    "command",
    [
        ["near", SERVO, "-t", "class", "--gamma", "0.1", "--tau", "1", "--folds", "3"],
        ["bounds", SERVO, "-t", "class", "--gamma", "0.1", "--tau", "1", "--folds", "3"],
        ["solve", SERVO, "-t", "class", "--criterion", "common", "--gamma", "0.1", "--tau", "1", "--folds", "3"],
        ["path", SERVO, "-t", "class", "--gamma", "0.1", "--tau", "1"],
    ],
)
def test_every_search_announces_that_it_compiles(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(first_use, "_compiled", set())
    monkeypatch.setattr(first_use, "_is_stored", lambda purpose: False)
    monkeypatch.setattr(first_use, "_store", lambda purpose: None)
    assert run(command) == 0
    assert capsys.readouterr().err.count(COMPILING) == 1
    if command[0] != "path":  # which is the quickest one
        return
    monkeypatch.setattr(first_use, "_compiled", set())
    assert run([*command, "--quiet"]) == 0
    assert COMPILING not in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["path"], ["solve", "--folds", "3"], ["solve", "--criterion", "common"], ["near", "--tau", "4"]]
)
def test_dependent_columns_are_refused_before_kernels_are_compiled(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(first_use, "_compiled", set())
    monkeypatch.setattr(first_use, "_is_stored", lambda purpose: False)
    monkeypatch.setattr(first_use.FirstUse, "run", property(lambda needs: pytest.fail("compiled")))
    path, rng = tmp_path / "sums.csv", np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    x[:, 3] = x[:, 0] + x[:, 1] + x[:, 2]
    lines = [",".join(f"{cell:.17g}" for cell in row) for row in np.column_stack([x, rng.normal(size=30)])]
    path.write_text("\n".join(["a,b,c,d,y", *lines]))
    name, *options = command
    assert run([name, str(path), "-t", "y", "--gamma", "0", *options]) == 2
    told = capsys.readouterr().err
    assert "are linearly dependent" in told and COMPILING not in told


def steps_in(place: Path, command: str) -> list[dict[str, Any]]:
    """The lines of a file of progress, of which the first is checked."""
    head, *lines = [json.loads(line) for line in place.read_text().splitlines()]
    assert (head["schema"], head["command"]) == (live.STEPS_SCHEMA, command)
    seconds = [line["seconds"] for line in lines]
    assert seconds == sorted(seconds) and seconds[0] > 0.0
    assert all(line["status"] == "running" for line in lines[:-1]) and lines[-1]["phase"] == "end"
    assert all(line["time"].endswith("+00:00") for line in lines)
    return lines


def test_progress_for_programs_ends_with_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps, out, ask = tmp_path / "p.jsonl", tmp_path / "a.json", ["solve", SERVO, "-t", "class", "--gamma", "0.1,1"]
    assert run([*ask, "-q", "--progress-json", str(steps), "--json", str(out)]) == 0
    record = json.loads(out.read_text())
    *before, last = steps_in(steps, "solve")
    assert before and last["status"] == "proved" and last["total"] == before[0]["total"]
    for name in ("tau", "gamma", "cv_error", "lower", "upper", "gap"):
        assert last[name] == record[name] if name in record else last[name] == record["certificate"][name]
    for line in before:
        assert line["lower"] <= record["upper"] and (line["upper"] is None or line["upper"] >= record["lower"])
        assert (line["gap"] is None) == (line["upper"] is None)
        assert 0 <= line["done"] + line["pruned"] <= line["total"]


def test_a_resumed_run_says_what_was_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["solve", SERVO, "-t", "class", "--gamma", "0.1,1", "--method", "grid"]
    stored, steps = str(tmp_path / "run.ck"), tmp_path / "p.jsonl"
    assert run([*ask, "-q", "--mio-budget", "3", "--checkpoint", stored]) == 3
    assert "resumed" not in capsys.readouterr().err
    assert run([*ask, "--resume", stored, "--progress-json", str(steps)]) == 0
    [known] = [line for line in steps_in(steps, "solve") if line["phase"] == "resumed"]
    err = capsys.readouterr().err
    assert f"sparsecv: resumed from the stored run: {known['done']} of {known['total']} subproblems solved" in err
    assert 0 < known["done"] < known["total"] and f"tau {known['tau']}, gamma {known['gamma']:g}" in err
    assert live.resumed_line(Progress(0, 0, 0, 0.0, np.inf, 0.1)).endswith("stored before its search began")
    assert run([*ask, "-q", "--resume", stored]) == 0 and capsys.readouterr().err == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")
def test_a_file_of_progress_that_fails_costs_the_file_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", SERVO, "-t", "class", "--gamma", "0.1", "-q", "--progress-json", "/dev/full"]) == 2
    told = capsys.readouterr()
    assert "tau = " in told.out
    assert told.err == "sparsecv: error: cannot write progress-json /dev/full: No space left on device\n"


def test_a_step_is_written_while_nothing_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LINE_SECONDS", 0.01)
    place = tmp_path / "p.jsonl"
    with live.progress_view(True, StopSignal(), live.Steps(str(place), "solve")) as progress:
        assert progress is not None
        progress(STATE)
        limit = time.monotonic() + 60.0
        while place.read_text().count('"mios": 7') < 3 and time.monotonic() < limit:
            time.sleep(0.01)
    last = json.loads(place.read_text().splitlines()[-1])
    assert (last["done"], last["gap"], last["tau"]) == (30, 0.25, None)  # no pair has a CV error yet


def wait_for(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What came on standard error until some words did; nothing comes on standard output."""
    err, limit = "", time.monotonic() + 60.0
    while words not in err and time.monotonic() < limit:
        time.sleep(0.005)
        out, more = capsys.readouterr()
        assert out == ""
        err += more
    assert words in err
    return err


def on_a_terminal(arguments: list[str], interrupt: bool) -> tuple[int, str]:
    """Exit code and what a terminal received; Ctrl-C once the view is there."""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*SCRIPT, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | {"TERM": "xterm"}
    )
    os.close(theirs)
    seen, sent, limit = b"", False, time.monotonic() + 600.0  # of a machine that hangs
    while time.monotonic() < limit:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                chunk = os.read(ours, 1 << 16)
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
        if interrupt and not sent and b"minimum CV error in" in seen:
            process.send_signal(signal.SIGINT)
            sent = True
    os.close(ours)
    return process.wait(timeout=10.0), seen.decode()


def test_ctrl_c_ends_the_view_cleanly_and_keeps_the_answer(tmp_path: Path) -> None:
    data, record = str(INSTANCES / "diabetes64.csv"), tmp_path / "record.json"
    ask = ["solve", data, "--target", "y", "--gamma", "0.01", "--tau", "10:12", "--threads", "1", "--json", str(record)]
    code, seen = on_a_terminal(ask, interrupt=True)
    assert code == 130
    assert seen.count("\x1b[?25l") == seen.count("\x1b[?25h") == 1  # the cursor is back
    after = seen[seen.index("\x1b[?25h") :]
    assert "best pair so far (interrupted; " in after and "Traceback" not in seen
    assert "sparsecv: stopping" not in seen
    kept = json.loads(record.read_text())
    assert kept["status"] == "interrupted" and kept["lower"] <= kept["cv_error"] <= (kept["upper"] or np.inf)
    assert run(["verify", str(record), data]) == 0


def test_quiet_draws_nothing_on_a_terminal() -> None:
    ask = ["solve", SERVO, "--target", "class", "--folds", "5", "--gamma", "0.1", "--tau", "1:3", "--threads", "1"]
    code, seen = on_a_terminal([*ask, "-q"], interrupt=False)
    assert code == 0 and "\x1b[?25l" not in seen and "certified choice" in seen[:40]


@pytest.mark.parametrize("width", [40, 60, 100])
def test_the_live_view_cuts_no_number(width: int) -> None:
    state = Progress(
        done=30, total=6000, nodes=1234567, lower=1523.25, upper=2012.75, seconds=3.0, mios=789, pruned=12,
        best=(0.1, 3),
        taus=tuple(TauProgress(tau, 3, 2, 1200, 1001.5 + tau, 2002.5 + tau) for tau in range(1, 4)),
    )  # fmt: skip
    text = drawn(state, 40, width=width)
    for number in ("1523.25", "2012.75", "1,234,567", "1002.5", "2005.5", "3+2/1200"):
        assert number in text


def test_a_proof_prints_the_lines_of_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live, "FIRST_LINE_SECONDS", 0.001)
    monkeypatch.setattr(live, "LINE_SECONDS", 0.001)
    ask = ["path", SERVO, "-t", "class", "--gamma", "0.1,1", "--tau", "1:8", "--proof", str(tmp_path / "proof")]
    assert run(ask) == 0
    lines = re.findall(r"sparsecv: \d+ s; writing the proof, (\d+) statements so far", capsys.readouterr().err)
    counts = [int(count) for count in lines]
    assert counts == sorted(counts) and counts[-1] > 0
    assert run([*ask, "-q"]) == 0
    assert "statements so far" not in capsys.readouterr().err


def test_the_first_line_comes_within_two_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    with live.reading_lines(False):
        wait_for("reading the data", capsys)
    assert live.FIRST_LINE_SECONDS <= 1.0 and time.monotonic() - began < live.LINE_SECONDS
