"""`sparsecv batch` and `collect`: a plan, a dry run, two workers, the status, the table."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sparsecv_mio.batch.one_task import run_estimator
from sparsecv_mio.batch.peers import Fitted
from sparsecv_mio.batch.run_commands import TaskCounts
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.errors import BackendUnavailable
from sparsecv_mio.parallel import block_interrupts

PLAN = """
[[data]]
design = "toeplitz"
n = 20
p = 3
support = 1
draw = [0, 1]
[vary]
folds = ["3", "4"]
gamma = "0.1"
"""


def test_a_batch_from_plan_to_table(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(name: str, data: Dataset, plan: FoldPlan, settings: dict[str, Any], refit: str) -> Fitted:
        if plan.k == 4:
            raise BackendUnavailable("not installed")
        return run_estimator(name, data, plan, settings, refit)

    monkeypatch.setattr("sparsecv_mio.batch.one_task.run_estimator", failing)
    plan, out, table = tmp_path / "plan.toml", tmp_path / "out", tmp_path / "table.parquet"
    plan.write_text(PLAN)
    assert run(["batch", str(plan), "--out", str(out), "--dry-run"]) == 0
    assert "4 tasks, 0 done" in capfd.readouterr().out and not out.exists()
    assert run(["batch", str(plan), "--out", str(out), "--workers", "1", "--index", "0", "--of", "2"]) == 0
    assert "2 of 2 tasks done" in capfd.readouterr().out
    steps = tmp_path / "steps.jsonl"
    assert run(["batch", str(plan), "--out", str(out), "--workers", "1", "--progress-json", str(steps)]) == 1
    head, *lines = [json.loads(line) for line in steps.read_text().splitlines()]
    assert head["command"] == "batch" and [line["status"] for line in lines[-2:]] == ["running", "failed"]
    assert lines[-1] | {"time": 0, "seconds": 0} == {
        **lines[-2], "time": 0, "seconds": 0, "seconds_left": 0.0, "phase": "end", "status": "failed",
    }  # fmt: skip
    assert (lines[-1]["done"], lines[-1]["failed"], lines[-1]["running"], lines[-1]["total"]) == (2, 2, 0, 4)
    assert {(line["state"], line["cv_error"] is None) for line in lines if "state" in line} <= {
        ("done", False), ("failed", True),
    }  # fmt: skip
    shown = capfd.readouterr().out
    assert "2 of 4 tasks done, 0 reached a limit, 2 failed" in shown and "failed: toeplitz" in shown
    assert run(["batch", "status", str(out)]) == 1
    assert "2 of 4 tasks done, 0 reached a limit, 2 failed; results" in capfd.readouterr().out
    assert run(["collect", str(out), "-o", str(table)]) == 0
    counts = "2 verified, 0 not verified, 2 from failed tasks"
    assert f"4 rows in {table}; {counts}" in capfd.readouterr().out
    frame = pd.read_parquet(table)
    assert sorted(frame["state"]) == ["done", "done", "failed", "failed"]
    assert frame["tau"].dtype == frame["n"].dtype == "Int64" and frame["tau"].isna().sum() == 2
    assert run(["collect", str(out), "-o", str(tmp_path / "pairs.csv"), "--level", "pairs", "--no-verify", "-q"]) == 0
    assert len(pd.read_csv(tmp_path / "pairs.csv")) == 6
    assert run(["collect", str(out), "-o", str(tmp_path / "of.csv"), "--level", "sources", "--no-verify", "-q"]) == 0
    sources = pd.read_csv(tmp_path / "of.csv")
    assert {"source", "problems", "nodes_of_source", "seconds", "decided", "ruled_out", "gap_closed"} <= set(sources)
    assert (sources.groupby("address")["nodes_of_source"].sum() == sources.groupby("address")["nodes"].first()).all()


def test_a_batch_in_a_log_says_how_far_it_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparsecv_mio.cli.live.FIRST_LINE_SECONDS", 0.0)
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    plan.write_text(PLAN)
    assert run(["batch", str(plan), "--out", str(out), "--workers", "1"]) == 0
    lines = capfd.readouterr().err.splitlines()
    assert lines and all(re.match(r"sparsecv: \d+ s; ", line) for line in lines)
    assert re.search(r"[0-3] of 4 tasks done, 1 running, 0 failed", lines[0])
    assert run(["batch", str(plan), "--out", str(out), "--workers", "1", "-q"]) == 0
    assert capfd.readouterr().err == ""


def test_tasks_are_counted_by_what_came_of_them() -> None:
    counted = TaskCounts(10, ["done", "failed"], 3)
    assert counted.line().endswith("1 of 10 tasks done, 3 running, 1 failed")
    counted.states.update(("done", "limit"))
    counted.began -= 100.0
    counted.task_seconds = 30.0  # most of the 100 seconds were spent on compiling
    words = "2 of 10 tasks done, 3 running, 1 failed, 1 reached a limit"
    assert counted.line().startswith(f"100 s; {words}; about 30")
    counted.states.update(["done"] * 6)
    assert "8 of 10 tasks done, 0 running" in counted.line()
    assert "running" not in TaskCounts(10, [], None).line()
    counted.latest -= 60.0
    assert (
        counted.remaining_seconds is None
        and "no task has ended for 60 s, so the remaining time is not estimated" in counted.line()
    )


def test_an_estimate_is_withdrawn_once_it_has_passed() -> None:
    """Tasks of 1 s before a task that compiles: the line said "about 2 s left" for half a minute."""
    counted = TaskCounts(12, [], 2)
    counted.states.update(["done"] * 9)
    counted.task_seconds = 9.0
    assert counted.line().endswith("; about 2 s left")
    counted.latest -= 12.0
    assert counted.remaining_seconds is None and "no task has ended for 12 s" in counted.line()
    counted.task_seconds = 90.0  # tasks of 10 s
    assert counted.line().endswith("; about 15 s left")


def test_why_no_task_has_ended_yet_is_said() -> None:
    counted = TaskCounts(10, [], 3)
    assert "0 failed; each process first loads kernels; the first run on a machine compiles them" in counted.line()
    counted.states.update(["done"])
    assert "compiles" not in counted.line()


def test_a_dry_run_tells_of_lists_and_of_settings_in_vain(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace('"0.1"', "[0.1, 1.0]") + 'way = "tree"\n')
    assert run(["batch", str(plan), "--out", str(tmp_path / "out"), "--dry-run"]) == 0
    told = capfd.readouterr()
    assert told.out.splitlines()[-1] == (
        'each of the 2 values of gamma makes a separate task; for one task with a grid, write gamma = "0.1,1.0"'
    )
    assert told.err == "sparsecv: warning: setting 'way' is not used by any estimator of the plan; remove it\n"


def test_ctrl_c_is_held_until_the_processes_have_started() -> None:
    with pytest.raises(KeyboardInterrupt), block_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        ensure_running()  # as loky does before each process
        code = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal")
def test_sigterm_ends_a_batch_like_ctrl_c(tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    plan.write_text(PLAN)
    words = [sys.executable, "-m", "sparsecv_mio.cli", "batch", str(plan), "--out", str(out), "--workers", "2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None and "0 of 4 tasks done" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        said = process.stdout.read()  # until the last process that inherited the stream has ended
    assert process.returncode == 130
    assert said.splitlines()[-1] == "interrupted; run the same command to continue" and "Warning" not in said


def test_what_a_plan_no_longer_asks_for_is_put_aside(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plan, out, table = tmp_path / "plan.toml", tmp_path / "out", tmp_path / "table.csv"
    plan.write_text(PLAN)
    one = ["batch", str(plan), "--out", str(out), "--workers", "1", "--set", "draw=0", "--set", "estimator=ridge"]
    assert run(one) == 0 and run([*one, "--set", "folds=5"]) == 0
    shown = capfd.readouterr().out
    assert (
        "1 of 1 tasks done, 0 reached" in shown
        and ("the folder also has 2 results of earlier plans; they are not counted") in shown
    )
    assert run(["batch", "status", str(out)]) == 0
    shown = capfd.readouterr().out
    assert "1 of 1 tasks done" in shown and "2 results of earlier plans" in shown
    assert run(["collect", str(out), "-o", str(table)]) == 0
    assert len(pd.read_csv(table)) == 1
    assert "2 results of earlier plans are not included" in " ".join(capfd.readouterr().out.split())
    assert run(["collect", str(out), "-o", str(table), "--all"]) == 0 and len(pd.read_csv(table)) == 3
    assert run([*one, "--set", "folds=5", "--clean"]) == 0
    assert "removed 2 results of earlier plans" in capfd.readouterr().err
    assert len(list((out / "tasks").iterdir())) == 1
    (out / "plan.json").write_text("{")
    assert run(["batch", "status", str(out)]) == 2
    assert "damaged" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "tau=99",
            "plan 'PLAN', data 'toeplitz n=20 p=3 support=1 draw=0': tau 99 is out of range; give a number from 0 to 3",
        ),
        ("gap=2", "plan 'PLAN': gap: 2 is out of range"),
    ],
)
def test_a_wrong_plan_is_refused_before_anything_is_written(
    change: str, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    plan.write_text(PLAN)
    assert run(["batch", str(plan), "--out", str(out), "--set", change]) == 2
    shown = capfd.readouterr().err
    assert message.replace("PLAN", str(plan)) in shown and shown.count("\n") == 1 and not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["batch", "PLAN"], "--out is missing"),
        (["batch", "PLAN", "--out", "o", "--index", "1"], "--index and --of require each other"),
        (["batch", "PLAN", "--out", "o", "--index", "2", "--of", "2"], "--index: 2 is out of range for --of 2"),
        (["batch", "no.toml", "--out", "o"], "plan"),
        (["batch", "PLAN", "extra", "--out", "o"], "give one plan at a time"),
        (["batch", "status"], "name the folder of a batch"),
        (["batch", "status", "nowhere"], "is not the folder of a batch"),
        (["collect", "nowhere", "-o", "t.csv"], "is not the folder of a batch"),
    ],
)
def test_what_is_refused(arguments: list[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    assert run([str(plan) if word == "PLAN" else word for word in arguments]) == 2
    assert message in capfd.readouterr().err


def test_plans_read_tables_as_the_command_line_does(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f'{20 + 7 * k % 41},"{576 + 1741 * k % 3400:,}",{k % 11}\n' for k in range(30))
    (tmp_path / "us.csv").write_text("age,income,y\n" + rows)
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    text = '[[data]]\nfile = "us.csv"\ntarget = "y"\n[vary]\nfolds = "3"\ngamma = "0.1"\n'
    plan.write_text(text)
    assert run(["batch", str(plan), "--out", str(out), "--workers", "1"]) == 2
    said = capfd.readouterr().err
    assert 'give thousands="," (2317) or decimal="," and thousands="none" (2.317)' in said and "--" not in said
    plan.write_text(text.replace('"y"\n', '"y"\nthousands = ","\n'))
    assert run(["batch", str(plan), "--out", str(out), "--workers", "1"]) == 0
    assert "1 of 1 tasks done" in capfd.readouterr().out
