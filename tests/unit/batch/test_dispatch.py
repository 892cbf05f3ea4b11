"""Tasks are stored as they are done, carried on after a stop, and survive a worker that is killed."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import psutil
import pytest

from sparsecv_mio.batch.dispatch import _outcomes, part, run_batch, seconds_left
from sparsecv_mio.batch.engines import WorkerDied
from sparsecv_mio.batch.folder import BatchFolder, Outcome
from sparsecv_mio.batch.order import Attempt, Order
from sparsecv_mio.batch.plan import tasks_of
from sparsecv_mio.errors import BadInput, CorruptStore

PLAN = {
    "data": [{"design": "toeplitz", "n": 24, "p": 3, "support": 1, "draw": [0, 1, 2, 3]}],
    "vary": {"folds": "3", "estimator": ["ridge", "forward"]},
}


def test_a_stop_loses_nothing_that_is_done(tmp_path: Path) -> None:
    tasks, folder, seen = tasks_of(PLAN)[:4], BatchFolder(tmp_path / "b"), []

    def stop_at_two(outcome: Outcome) -> None:
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
    tasks = tasks_of(PLAN)
    shares = [part(tasks, index, 3) for index in range(3)]
    assert sorted(task.address for share in shares for task in share) == sorted(task.address for task in tasks)
    with pytest.raises(BadInput, match="--index 3 of 3"):
        part(tasks, 3, 3)
    assert seconds_left([Outcome("a", {}, "done", seconds=2.0)], 5, 2) == 4.0


class Deadly:
    """Runs some tasks at once, and dies of one of them, with all that run beside it."""

    def __init__(self, deadly: str, width: int) -> None:
        self.deadly, self.width = deadly, width
        self.running: list[tuple[Future[Outcome], Attempt]] = []
        self.begun: list[Attempt] = []
        self.clock = threading.Timer(0.0, self.end)

    def submit(self, attempt: Attempt) -> Future[Outcome]:
        self.clock.cancel()
        self.begun.append(attempt)
        made: Future[Outcome] = Future()
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
                future.set_result(Outcome(one.task.address, one.task.to_dict(), "done"))

    def outcome(self, future: Future[Outcome]) -> Outcome:
        return future.result()


@pytest.mark.parametrize("width", [4, 16])
def test_a_task_that_kills_workers_is_found_and_costs_no_other_one(width: int) -> None:
    order, tasks = Order(), tasks_of({**PLAN, "vary": {**PLAN["vary"], "seed": [0, 1]}})  # type: ignore[dict-item]
    assert len(tasks) == 16
    for task in tasks:
        order.add(Attempt(task))
    engine = Deadly(tasks[2].address, width)
    found = list(_outcomes(engine, order))
    assert sorted(one.address for one in found) == sorted(task.address for task in tasks)
    assert [one.address for one in found if one.state == "failed"] == [tasks[2].address]
    assert next(one for one in found if one.state == "failed").reason.startswith("its worker died")
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
    assert len(list(out.iterdir())) == 1 and len(list(out.glob("tasks/*"))) == 400
    assert all((out / "tasks" / name).read_bytes() == content for name, content in done.items())


@pytest.mark.slow
def test_a_process_is_killed_on_the_way(tmp_path: Path) -> None:
    tasks, folder, told = tasks_of(PLAN), BatchFolder(tmp_path), list[str]()

    def kill_one(outcome: Outcome) -> None:
        told.append(outcome.address)
        if len(told) == 2:
            workers = [one for one in psutil.Process().children() if "loky" in " ".join(one.cmdline())]
            next(one for one in workers if "resource_tracker" not in " ".join(one.cmdline())).kill()

    assert run_batch(tasks, folder, workers=2, progress=kill_one) == 8
    assert sorted(told) == sorted(task.address for task in tasks)
    assert {one.state for one in folder.outcomes()} == {"done"}
    assert not [one for one in psutil.Process().children() if "popen_loky" in " ".join(one.cmdline())]
