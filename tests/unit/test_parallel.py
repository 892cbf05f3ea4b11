"""Folds on threads: every result, whatever the number of threads."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dask_cluster import DaskCluster, dask_cluster
from slow import slow
from threadpoolctl import ThreadpoolController, threadpool_limits

from sparsecv_mio import parallel
from sparsecv_mio.batch.batch_plan import make_tasks
from sparsecv_mio.batch.collected import collect
from sparsecv_mio.batch.dispatch import run_batch
from sparsecv_mio.batch.task_folder import BatchFolder, TaskOutcome
from sparsecv_mio.certificate.checked_fields import Checks
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BackendUnavailable, SparseCVError
from sparsecv_mio.parallel import (
    Hands,
    Kept,
    Moment,
    Workers,
    blas_on_one_thread,
    call_in_thread,
    open_client,
    open_workers,
    run_folds,
    slots,
)
from sparsecv_mio.search import api
from sparsecv_mio.search.api import cross_validate


@pytest.mark.parametrize("threads", [1, 3])
def test_every_fold_is_worked_on(threads: int) -> None:
    source = ((fold, 10 * fold) for fold in range(20))
    assert sorted(run_folds(source, lambda fold, given: fold + given, threads)) == [11 * fold for fold in range(20)]


def test_work_in_a_thread_hands_over_its_result_and_its_error() -> None:
    assert call_in_thread(threading.current_thread) is not threading.current_thread()
    with pytest.raises(ZeroDivisionError):
        call_in_thread(lambda: 1 // 0)


def test_a_worker_that_grew_is_replaced_without_a_warning() -> None:
    """The limit makes loky replace the worker after its second task, more than a second after its first one."""
    code = (
        "import os, time\nfrom sparsecv_mio.parallel import Processes\nprocesses = Processes(1)\n"
        "tasks = [processes.submit(time.sleep, 1.2) for _ in range(4)]\n"
        "print([task.result() for task in tasks], len({processes.submit(os.getpid).result()}))\nprocesses.end()"
    )
    limit = {**os.environ, "LOKY_MAX_MEMORY_LEAK_SIZE": "-1e15"}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=limit, check=True)
    assert ended.stdout == "[None, None, None, None] 1\n" and ended.stderr == ""


def test_an_error_of_a_fold_comes_out() -> None:
    def work(fold: int, given: int) -> int:
        raise ValueError(f"fold {fold}")

    with pytest.raises(ValueError, match="fold"):
        list(run_folds(((fold, 0) for fold in range(4)), work, 2))


def threads_of_blas() -> list[int]:
    return [one["num_threads"] for one in ThreadpoolController().info() if one["user_api"] == "blas"]


def test_answers_and_checks_compute_with_blas_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    data = Dataset.from_arrays(draw.standard_normal((30, 4)), draw.standard_normal(30))
    folds, seen = make_folds("5", data), list[int]()

    def seen_by(compute: Callable[..., Any]) -> Callable[..., Any]:
        def compute_and_look(*args: Any, **named: Any) -> Any:
            seen.extend(threads_of_blas())
            return compute(*args, **named)

        return compute_and_look

    monkeypatch.setattr(api, "with_mae", seen_by(api.with_mae))  # after the search
    monkeypatch.setattr(Checks, "report", seen_by(Checks.report))
    with threadpool_limits(limits=2):
        record = cross_validate(data, folds, gammas=[0.1], taus=[1, 2])
        after_search = len(seen)
        assert after_search
        assert verify(record, data).ok
        assert len(seen) > after_search
    assert set(seen) == {1}


def test_blas_is_held_to_one_thread_time_and_again() -> None:
    assert np.linalg.inv(np.eye(2)).shape == (2, 2)
    with threadpool_limits(limits=2):
        before = threads_of_blas()
        for _ in range(2):
            with blas_on_one_thread():
                assert set(threads_of_blas()) == {1}
            assert threads_of_blas() == before
        first, second = blas_on_one_thread(), blas_on_one_thread()  # of two searches in threads
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(threads_of_blas()) == {1}
        second.__exit__(None, None, None)
        assert threads_of_blas() == before


pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with dask_cluster(tmp_path_factory.mktemp("dask"), workers=2) as found:
        yield found


@pytest.fixture
def plan(tmp_path: Path) -> dict[str, object]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 4)), columns=list("abcd"))
    frame["y"] = frame["a"] - frame["b"] + 0.1 * rng.normal(size=30)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    file = {"file": str(tmp_path / "rows.csv"), "target": "y"}
    design = {"design": "toeplitz", "n": 24, "p": 3, "support": 1}
    return {"data": [file, design], "vary": {"folds": "3", "seed": [0, 1, 2, 3], "gamma": "0.1", "estimator": "ridge"}}


def test_a_worker_is_killed_on_the_way(cluster: DaskCluster, plan: dict[str, object], tmp_path: Path) -> None:
    tasks, there, here = make_tasks(plan), BatchFolder(tmp_path / "there"), BatchFolder(tmp_path / "here")
    told: list[str] = []

    def kill_one(outcome: TaskOutcome) -> None:
        told.append(outcome.address)
        if len(told) == 2:
            cluster.workers[0].kill()

    assert run_batch(tasks, there, scheduler=cluster.address, progress=kill_one) == 8
    assert sorted(told) == sorted(task.address for task in tasks)  # nothing lost, nothing twice
    assert run_batch(tasks, there, scheduler="tcp://127.0.0.1:1") == 0  # nothing left: nobody is asked
    run_batch(tasks, here)
    pd.testing.assert_frame_equal(*(collect(one).drop(columns=["seconds", "cpu_seconds"]) for one in (there, here)))


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "names"), [("logistic", ["sparsecv", "ridge"]), ("poisson", ["ridge"])])
def test_classes_and_counts(
    cluster: DaskCluster, plan: dict[str, object], tmp_path: Path, loss: str, names: list[str]
) -> None:
    frame = pd.read_csv(tmp_path / "rows.csv").assign(days=np.arange(30) % 7 + 1.0)
    frame["y"] = np.where(frame["y"] > 0.0, "ill", "well") if loss == "logistic" else (3 * frame["y"] ** 2).round()
    frame.to_csv(tmp_path / f"{loss}.csv", index=False)
    vary = {"folds": "3", "gamma": "0.1", "tau": "1:2", "estimator": names, "loss": loss, "test": 0.2}
    vary |= {"exposure": "days"} if loss == "poisson" else {"positive": "ill"}
    tasks = make_tasks({"data": [{"file": str(tmp_path / f"{loss}.csv"), "target": "y"}], "vary": vary})
    there, here = BatchFolder(tmp_path / "there"), BatchFolder(tmp_path / "here")
    assert run_batch(tasks, there, scheduler=cluster.address) == run_batch(tasks, here) == len(names)
    tables = [collect(one).drop(columns=["seconds", "cpu_seconds"]) for one in (there, here)]
    pd.testing.assert_frame_equal(*tables)
    assert tables[0]["state"].tolist() == ["done"] * len(names)
    assert tables[0]["verified"].tolist().count(True) == names.count("sparsecv")


def wide(n: int = 60, p: int = 45) -> Dataset:
    """Columns enough for every fold to need trees of its own."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    return Dataset.from_arrays(X, X[:, :6] @ np.ones(6) + 3.0 * rng.normal(size=n))


def content(record: Record) -> dict[str, Any]:
    """Everything that a record states, except for times and the plan, which has the number of threads."""
    found = json.loads(record.to_json())
    timed = ("seconds", "oracles", "sources", "course", "plan")
    found["work"] = {name: value for name, value in found["work"].items() if name not in timed}
    return {name: value for name, value in found.items() if "seconds" not in name}


def test_a_file_that_changed_is_a_failed_task(cluster: DaskCluster, plan: dict[str, object], tmp_path: Path) -> None:
    tasks = make_tasks(plan)[:2]
    (tmp_path / "rows.csv").write_text("a,y\n1,2\n")
    folder = BatchFolder(tmp_path / "changed")
    run_batch(tasks, folder, scheduler=cluster.address)
    found = list(folder.outcomes())
    assert [one.state for one in found] == ["failed"] * 2
    assert all("changed after the plan was read" in one.reason and not one.traceback for one in found)


def test_a_cluster_that_is_not_there(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparsecv_mio.parallel.ANSWERS", 0.3)
    plan = tmp_path / "plan.toml"
    plan.write_text('[[data]]\nsklearn = "diabetes"\n[vary]\nestimator = "ridge"\n')
    words = ["batch", str(plan), "--out", str(tmp_path / "out"), "--scheduler", "tcp://127.0.0.1:1"]
    assert run(words) == 4
    shown = capfd.readouterr().err
    assert "no dask scheduler answers at 'tcp://127.0.0.1:1'" in shown and "Traceback" not in shown
    assert run([*words, "--workers", "2"]) == 2
    assert (
        "cannot be combined with --scheduler, because the cluster determines the number of workers"
        in capfd.readouterr().err
    )


def test_what_a_cluster_must_have(cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_client(cluster.address) as client:
        assert slots(client) >= 1
    monkeypatch.setattr("sparsecv_mio.parallel.__version__", "9.9")
    with pytest.raises(BackendUnavailable, match=r"has version .*, not 9\.9"), open_client(cluster.address):
        pass
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(BackendUnavailable, match="pip install distributed"), open_client(cluster.address):
        pass


GRID: dict[str, Any] = {"gammas": "0.3", "taus": "1:4", "gap": 0.0, "method": "grid", "threads": 1}
MANY_SLICES: dict[str, Any] = {"gammas": [0.1, 1.0, 10.0], "taus": "1:6", "gap": 0.0, "threads": 1}


@cache
def grid_search_here() -> Record:
    """Return the record of the grid search without a cluster."""
    return cross_validate(wide(), "4", **GRID)


def test_slices_of_one_search_are_sent(cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, do = Counter[str](), Workers.do

    def counted(workers: Workers, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        sent[work.__name__] += 1
        return do(workers, work, *given, **named)

    monkeypatch.setattr(Workers, "do", counted)
    there, here = cross_validate(wide(), "4", scheduler=cluster.address, **GRID), grid_search_here()
    assert sent["solve_path"] >= 16 and sent["improve_search"] >= 5 and there.status == "proved"
    assert content(there) == content(here)
    seconds = [sum(work.cpu_seconds for work in record.work.sources) for record in (there, here)]
    assert seconds[0] > 0.1 * seconds[1]  # those of the workers are booked


@pytest.mark.parametrize("loss", ["poisson", *slow(["logistic"])])
def test_trees_of_smooth_losses_are_sent(cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch, loss: str) -> None:
    sent, do = Counter[str](), Workers.do

    def counted(workers: Workers, work: Callable[..., Any], *given: Any, **named: Any) -> Any:
        sent[work.__qualname__] += 1
        return do(workers, work, *given, **named)

    monkeypatch.setattr(Workers, "do", counted)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 5))
    rate = np.exp(X[:, 0] - 0.5 * X[:, 1])
    y = (X[:, 0] + rng.normal(size=40) > 0.0).astype(float) if loss == "logistic" else rng.poisson(rate).astype(float)
    words: dict[str, Any] = {"loss": loss, "gammas": [0.1, 1.0], "taus": "1:3", "threads": 1}
    there = cross_validate(Dataset.from_arrays(X, y), "4", scheduler=cluster.address, **words)
    here = cross_validate(Dataset.from_arrays(X, y), "4", **words)
    assert sent["GlmSubsets.solve"] >= 8 and there.status == here.status == "proved"
    assert (there.tau, there.gamma) == (here.tau, here.gamma)
    assert there.cv_error == pytest.approx(here.cv_error, rel=1e-12)


@pytest.mark.slow
def test_a_local_cluster_does_the_slices() -> None:
    from distributed import LocalCluster

    lost: list[SparseCVError] = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:
        there = cross_validate(wide(), "4", scheduler=local.scheduler_address, lost=lost.append, **MANY_SLICES)
    here = cross_validate(wide(), "4", **MANY_SLICES)
    assert not lost and there.status == "proved" and there.table == here.table
    seconds = [sum(work.cpu_seconds for work in record.work.sources) for record in (there, here)]
    assert seconds[0] > 0.1 * seconds[1]  # those of the workers are booked


@pytest.mark.slow
def test_workers_that_are_killed_by_turns_lose_nothing(cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    slices, do = count(1), Workers.do

    def killing(workers: Workers, *given: Any, **named: Any) -> Any:
        if next(slices) % 10 == 0:
            cluster.start_worker()
            next(worker for worker in cluster.workers if worker.poll() is None).kill()
        return do(workers, *given, **named)

    lost: list[SparseCVError] = []
    monkeypatch.setattr(Workers, "do", killing)
    there = cross_validate(wide(), "4", scheduler=cluster.address, lost=lost.append, **MANY_SLICES)
    assert not lost and next(slices) > 30
    here = cross_validate(wide(), "4", **MANY_SLICES)
    assert there.status == here.status == "proved"
    answers = [(record.gamma, record.tau, record.support, record.cv_error) for record in (there, here)]
    assert answers[0] == answers[1] and there.table == here.table


def test_who_comes_after_the_end_computes_here_and_tells_nobody(cluster: DaskCluster) -> None:
    lost: list[SparseCVError] = []
    with open_workers(cluster.address, lost.append) as workers:
        assert workers.do(max, 1, 2) == 2 and workers.cpu_seconds > 0.0
    spent = workers.cpu_seconds
    assert workers.do(max, 3, 4) == 4 and workers.cpu_seconds == spent and not lost


def test_a_cluster_that_is_lost_costs_no_answer(cluster: DaskCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    lost, do = list[SparseCVError](), Workers.do

    def stopping(workers: Workers, *given: Any, **named: Any) -> Any:
        cluster.scheduler.kill()
        return do(workers, *given, **named)

    monkeypatch.setattr(Workers, "do", stopping)
    there = cross_validate(wide(), "4", scheduler=cluster.address, lost=lost.append, **GRID)
    assert len(lost) == 1 and "the remaining work was done on this machine" in str(lost[0])
    assert content(there) == content(grid_search_here())


def twice(number: int, *, more: int = 0, is_expired: Callable[[], bool] | None = None) -> tuple[int, bool | None]:
    return 2 * number + more, is_expired and is_expired()


def test_a_slice_is_told_when_to_end_where_somebody_says_so() -> None:
    hands = Hands()
    assert hands.do(twice, 3) == (6, None)
    assert hands.do(twice, 3, until=Moment(), more=1) == (7, False)
    assert hands.do(twice, 3, until=Moment(lambda: True)) == (6, True)


def test_what_is_kept_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "KEPT_NAMES", 2)
    here = Kept()
    here["spectrum"] = 1.0
    sent = pickle.dumps({"first": here, "second": here})
    there = pickle.loads(sent)
    assert there["first"] is there["second"] and not there["first"] and there["first"].name == here.name
    there["first"]["spectrum"] = 2.0
    assert pickle.loads(sent)["first"] == {"spectrum": 2.0} and here == {"spectrum": 1.0}
    for _ in range(2):
        pickle.loads(pickle.dumps(Kept()))
    assert pickle.loads(sent)["first"] == {}  # of many the one used last longest ago is let go
