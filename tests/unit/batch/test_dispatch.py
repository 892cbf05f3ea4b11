"""The slowest kind of task first, as far as is known; tasks whose worker died before all others."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import psutil
import pytest

from sparsecv_mio.batch.batch_plan import Task, make_tasks
from sparsecv_mio.batch.collected import BatchFolder
from sparsecv_mio.batch.dispatch import (
    Attempt,
    TaskOrder,
    WorkerDied,
    Workforce,
    _outcomes,
    run_batch,
    share_of_tasks,
)
from sparsecv_mio.batch.one_task import TaskOutcome
from sparsecv_mio.errors import BadInput, CorruptStore

PLAN = {"data": [{"design": "toeplitz", "n": [20, 30, 40], "p": 3, "support": 1}], "vary": {"seed": [0, 1, 2]}}


def outcome(task: Task, seconds: float) -> TaskOutcome:
    return TaskOutcome(task.address, task.to_dict(), "done", seconds=seconds)


def rows(attempt: Attempt) -> int:
    return int(dict(attempt.task.source.spec)["n"])


def test_one_of_every_kind_and_then_the_slowest() -> None:
    order, tasks = TaskOrder(), make_tasks(PLAN)
    for task in tasks:
        order.add(Attempt(task))
    first = [order.pop_task() for _ in range(3)]
    assert [rows(one) for one in first] == [20, 30, 40]
    for one, seconds in zip(first, (1.0, 3.0, 2.0), strict=True):
        order.learn(outcome(one.task, seconds))
    second = order.pop_task()
    assert rows(second) == 30
    order.learn(outcome(second.task, 0.5))  # the last one that was seen tells
    rest = [order.pop_task() for _ in range(5)]
    assert [rows(one) for one in rest] == [40, 40, 20, 20, 30] and not order
    assert {one.task.address for one in (*first, second, *rest)} == {task.address for task in tasks}


PLAN_DISPATCH = {
    "data": [{"design": "toeplitz", "n": 24, "p": 3, "support": 1, "draw": [0, 1, 2, 3]}],
    "vary": {"folds": "3", "estimator": ["ridge", "forward"]},
}


def test_a_stop_loses_nothing_that_is_done(tmp_path: Path) -> None:
    tasks, folder, seen = make_tasks(PLAN_DISPATCH)[:4], BatchFolder(tmp_path / "b"), []

    def stop_at_two(outcome: TaskOutcome) -> None:
        seen.append(outcome.address)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_batch(tasks, folder, progress=stop_at_two)
    assert len(list(folder.outcomes())) == 2
    assert run_batch(tasks, folder) == 2 and run_batch(tasks, folder) == 0
    (folder.place(tasks[0].address)).write_text("{}")
    with pytest.raises(CorruptStore, match="is damaged"):
        folder.read(tasks[0].address)


def test_shares_of_an_array_and_the_time_that_is_left() -> None:
    tasks = make_tasks(PLAN_DISPATCH)
    shares = [share_of_tasks(tasks, index, 3) for index in range(3)]
    assert sorted(task.address for share in shares for task in share) == sorted(task.address for task in tasks)
    with pytest.raises(BadInput, match="--index: 3 is out of range for --of 3; give an index from 0 to 2"):
        share_of_tasks(tasks, 3, 3)


class Deadly(Workforce):
    """Runs some tasks at once, and dies of one of them, with all that run beside it."""

    def __init__(self, deadly: str, width: int) -> None:
        self.deadly, self.at_once = deadly, width
        self.running: list[tuple[Future[TaskOutcome], Attempt]] = []
        self.begun: list[Attempt] = []
        self.clock = threading.Timer(0.0, self.end)

    @property
    def width(self) -> int:
        return self.at_once

    def submit(self, attempt: Attempt) -> Future[TaskOutcome]:
        self.clock.cancel()
        self.begun.append(attempt)
        made: Future[TaskOutcome] = Future()
        self.running.append((made, attempt))
        self.clock = threading.Timer(0.02, self.end)
        self.clock.start()
        return made

    def end(self) -> None:
        ended, self.running = self.running, []
        died = any(one.task.address == self.deadly for _, one in ended)
        for future, one in ended:
            if died:
                future.set_exception(WorkerDied(by_task=False))
            else:
                future.set_result(TaskOutcome(one.task.address, one.task.to_dict(), "done"))

    def outcome(self, future: Future[TaskOutcome]) -> TaskOutcome:
        return future.result()


@pytest.mark.parametrize("width", [4, 16])
def test_a_task_that_kills_workers_is_found_and_costs_no_other_one(width: int) -> None:
    order, tasks = TaskOrder(), make_tasks({**PLAN_DISPATCH, "vary": {**PLAN_DISPATCH["vary"], "seed": [0, 1]}})  # type: ignore[dict-item]
    assert len(tasks) == 16
    for task in tasks:
        order.add(Attempt(task))
    engine = Deadly(tasks[2].address, width)
    found = list(_outcomes(engine, order))
    assert sorted(one.address for one in found) == sorted(task.address for task in tasks)
    assert [one.address for one in found if one.state == "failed"] == [tasks[2].address]
    assert next(one for one in found if one.state == "failed").reason.startswith("the worker process of this task died")
    assert sum(one.task.address == tasks[2].address for one in engine.begun) in (2, 3)


@pytest.mark.slow
def test_a_batch_that_is_killed_leaves_no_process_and_loses_no_task(tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    design = '[[data]]\ndesign = "toeplitz"\nn = 24\np = 3\nsupport = 1\n'
    plan.write_text(f'{design}[vary]\nfolds = "3"\nseed = {list(range(400))}\n')
    command = [sys.executable, "-m", "sparsecv_mio.cli", "batch", str(plan), "--out", str(out), "--workers", "2"]
    process = psutil.Popen(command, stdout=subprocess.DEVNULL)
    while not any(out.glob("tasks/*.json")):
        time.sleep(0.01)
    children = process.children(recursive=True)
    process.kill()
    process.wait()
    assert len(children) >= 2 and not psutil.wait_procs(children, timeout=60)[1]
    done = {one.name: one.read_bytes() for one in out.glob("tasks/*.json")}
    assert 0 < len(done) < 400
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    assert {path.name for path in out.iterdir()} == {"plan.json", "tasks"} and len(list(out.glob("tasks/*"))) == 400
    assert all((out / "tasks" / name).read_bytes() == content for name, content in done.items())


@pytest.mark.slow
def test_a_process_is_killed_on_the_way(tmp_path: Path) -> None:
    tasks, folder, told = make_tasks(PLAN_DISPATCH), BatchFolder(tmp_path), list[str]()

    def kill_one(outcome: TaskOutcome) -> None:
        told.append(outcome.address)
        if len(told) == 2:
            workers = [one for one in psutil.Process().children() if "loky" in " ".join(one.cmdline())]
            next(one for one in workers if "resource_tracker" not in " ".join(one.cmdline())).kill()

    assert run_batch(tasks, folder, workers=2, progress=kill_one) == 8
    assert sorted(told) == sorted(task.address for task in tasks)
    assert {one.state for one in folder.outcomes()} == {"done"}
    assert not [one for one in psutil.Process().children() if "popen_loky" in " ".join(one.cmdline())]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads the environment of a process from /proc")
def test_no_process_of_a_batch_warns_that_semaphores_leaked() -> None:
    code = """
from loky.backend.resource_tracker import _resource_tracker
from sparsecv_mio.batch.batch_plan import make_tasks
from sparsecv_mio.batch.dispatch import Attempt, Machine
machine = Machine(2)
machine.submit(Attempt(make_tasks({"data": [{"design": "toeplitz", "n": 20, "p": 3, "support": 1}]})[0]))
print(open(f"/proc/{_resource_tracker._pid}/environ").read())
machine.end()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "PYTHONWARNINGS=ignore:resource_tracker:UserWarning" in done.stdout.split("\0")
