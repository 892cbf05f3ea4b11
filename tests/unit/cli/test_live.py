"""What a run shows while it goes on."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from repository import INSTANCES
from rich.console import Console

from sparsecv_mio.cli import live
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.interrupts import Stop
from sparsecv_mio.search.observers.progress import Progress, TauProgress

SERVO = str(INSTANCES / "servo.csv")
SCRIPT = [sys.executable, "-c", "from sparsecv_mio.cli import main; main()"]

STATE = Progress(
    done=30, total=60, nodes=1234, lower=1.5, upper=2.0, seconds=3.0, mios=7, pruned=12, best=(0.1, 3),
    taus=tuple(TauProgress(tau, 3 * (tau % 4), 2, 12, 1.0 + tau / 10, 2.0 + tau) for tau in range(1, 31)),
)  # fmt: skip


def drawn(state: Progress | None, height: int = 50, stopping: bool = False, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    stop = Stop()
    if stopping:
        stop.set()
    view = live.View(stop, console)
    if state is not None:
        view(state)
    console.print(view.draw())
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_view_says_what_is_known() -> None:
    text = drawn(STATE)
    for word in ("tau 3, gamma 0.1", "[1.5, 2]", "gap 0.25", "30/60 cells", "12 pruned", "7 MIOs", "1,234 nodes"):
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
    for text in (drawn(state), live.line_of(state)):
        assert "proved among tau 1:9 at every gamma, every tau at gamma >= 0.5" in text
    assert "proved" not in drawn(STATE) + live.line_of(STATE)


def test_unknown_numbers_are_question_marks() -> None:
    state = Progress(0, 60, 0, 0.0, float("inf"), 1.0, best=(0.1, 1))
    assert "[0, ?]" in drawn(state) and "gap ?" in drawn(state)
    assert live.line_of(state).startswith("sparsecv: 1 s; tau 1")


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
    with live.progress_view(True, Stop()) as nobody:
        assert nobody is None
    monkeypatch.setattr(live, "LINE_SECONDS", 0.0)
    with live.progress_view(False, Stop()) as lines:
        assert lines is not None
        lines(STATE)
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert "CV error in [1.5, 2], gap 0.25; 30/60 cells, 12 pruned, 7 MIOs, 1234 nodes" in err


def on_a_terminal(arguments: list[str], interrupt: bool) -> tuple[int, str]:
    """Exit code and what a terminal received; Ctrl-C once the view is there."""
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
        if interrupt and not sent and b"MIOs" in seen:
            process.send_signal(signal.SIGINT)
            sent = True
    os.close(ours)
    return process.wait(timeout=10.0), seen.decode()


def test_ctrl_c_ends_the_view_cleanly() -> None:
    ask = ["solve", str(INSTANCES / "autompg.csv"), "--target", "mpg", "--folds", "loo", "--gamma", "0.01,0.1"]
    code, seen = on_a_terminal([*ask, "--tau", "1:12", "--method", "grid", "--threads", "1"], interrupt=True)
    assert code == 130
    assert seen.count("\x1b[?25l") == seen.count("\x1b[?25h") == 1  # the cursor is back
    after = seen[seen.index("\x1b[?25h") :]
    assert "interrupted: best answer so far" in after and "Traceback" not in seen
    assert "sparsecv: stopping" not in seen


def test_quiet_draws_nothing_on_a_terminal() -> None:
    ask = ["solve", SERVO, "--target", "class", "--folds", "5", "--gamma", "0.1", "--tau", "1:3", "--threads", "1"]
    code, seen = on_a_terminal([*ask, "-q"], interrupt=False)
    assert code == 0 and "\x1b[?25l" not in seen and "proved" in seen[:40]


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
