"""A dask cluster of this machine for tests: a scheduler and workers, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from repository import ROOT

PATIENCE = 120.0  # seconds for what takes two on a quiet machine


@dataclass
class DaskCluster:
    address: str
    folder: Path
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_worker(self) -> subprocess.Popen[bytes]:
        place = ["--local-directory", str(self.folder), "--no-nanny", "--no-dashboard", "--nthreads", "1"]
        self.workers.append(started(["worker", self.address, *place]))
        return self.workers[-1]


def started(arguments: list[str]) -> subprocess.Popen[bytes]:
    single = {f"{library}_NUM_THREADS": "1" for library in ("NUMBA", "OMP", "OPENBLAS")}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **single}
    command = [sys.executable, "-m", "dask", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what} took more than {PATIENCE} s"
        time.sleep(0.05)


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[DaskCluster]:
    note = folder / "scheduler.json"
    place = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(note)]
    scheduler = started(["scheduler", *place])
    cluster = DaskCluster("", folder, scheduler)
    try:
        wait_until(note.exists, "the scheduler")
        cluster.address = json.loads(note.read_text())["address"]
        for _ in range(workers):
            cluster.start_worker()
        yield cluster
    finally:
        for process in [*cluster.workers, scheduler]:
            process.kill()
            process.wait()
