"""One search on a cluster: which share of its work the workers do, and how much faster more of them would be.

    python scripts/bench/cluster.py [FILE:TARGET ...] [--limit 60] [--workers 2] [--simulated 8,32]

Two tables. The first: a scheduler and workers of this machine, each a process of its own with one thread, answer the
default question under a limit; the share is the workers' processor seconds in those of workers and client, and in those
of the scheduler as well. Starting the programs is not counted.

The second needs no cluster. The search is asked to split its work for so many workers, and its slices are done here,
one at a time, each timed alone by the processor's clock; what they return is given back in the order in which they
would have ended on that many workers, each of which takes the slice that was asked for first. The clock of the search
is that of these workers, so it has the limit divided by their number. The speed-up is the sum of all slices over the
end of the last one; once more with the client's own seconds in both, as if nothing else went on meanwhile.
"""

from __future__ import annotations

import argparse
import heapq
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from _common import INSTANCES, TARGETS, environment, table
from distributed import Client

import sparsecv_mio as sc
from sparsecv_mio.search import api, deadline
from sparsecv_mio.slices import HANDED_AHEAD, Hands

PATIENCE = 120.0  # seconds for the start of a process
QUIET = 0.004  # seconds after which a search has asked for all that it can
SHARES = ["file", "limit, s", "workers, CPU s", "client, CPU s", "scheduler, CPU s", "share", "of all", "gap"]
SPEEDS = ["file", "workers", "slices", "longest, s", "CPU s", "client, CPU s", "speed-up", "with the client", "gap"]


class Simulated(Hands):
    """Does slices here, one at a time, in the time of so many workers, which is that of the search's clock as well.

    Parameters
    ----------
    workers : int

    Attributes
    ----------
    seconds : list of float
        Of each slice.
    now : float
        Seconds since the beginning, on these workers and with the client's own work.
    client : float
        Processor seconds of the client's own work.
    """

    def __init__(self, workers: int) -> None:
        self.at_once = int(-(-HANDED_AHEAD * workers // 1))
        self.seconds: list[float] = []
        self.now = 0.0
        self.client, self._begun = 0.0, time.process_time()
        self._free = [0.0] * workers
        self._ended: list[tuple[float, int, threading.Event]] = []
        self._asked = 0
        self._one, self._changed, self._mine = threading.Lock(), threading.Condition(), threading.local()
        threading.Thread(target=self._give_back, daemon=True).start()

    def monotonic(self) -> float:
        """The time: of a worker in a slice, of the client elsewhere."""
        if (started := getattr(self._mine, "started", None)) is not None:
            return float(started + time.thread_time() - self._mine.begun)
        with self._changed:
            if not self._asked:
                self._spent()
            return self.now

    def _spent(self) -> None:
        """Count what the client did since it was last looked at, while no slice is done."""
        client = time.process_time() - self._begun - sum(self.seconds)
        self.now, self.client = self.now + client - self.client, client

    def do(self, work: Callable[..., Any], *given: Any, until: Any = None, **named: Any) -> Any:
        """Do a slice, and return when those that end before it have returned."""
        returned = threading.Event()
        with self._changed:
            self._asked += 1
            asked = self.now
        try:
            with self._one:
                self._mine.begun, self._mine.started = time.thread_time(), max(heapq.heappop(self._free), asked)
                try:
                    return super().do(work, *given, until=until, **named)
                finally:
                    seconds = time.thread_time() - self._mine.begun
                    end, self._mine.started = self._mine.started + seconds, None
                    with self._changed:
                        heapq.heappush(self._free, end)
                        heapq.heappush(self._ended, (end, len(self.seconds), returned))
                        self.seconds.append(seconds)
                        self._changed.notify()
        finally:
            returned.wait()

    def _give_back(self) -> None:
        """Let the slice return that ends first, once nobody asks for another one."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended and len(self._ended) == self._asked)
            time.sleep(QUIET)
            with self._changed:
                if len(self._ended) == self._asked:
                    self._spent()
                    end, _, returned = heapq.heappop(self._ended)
                    self.now, self._asked = max(self.now, end), self._asked - 1
                    returned.set()


def simulated(path: Path, target: str, work: float, workers: int) -> list[object]:
    """Answer the question in the time of workers that are not there."""
    hands = Simulated(workers)

    @contextmanager
    def no_cluster(*_: object) -> Iterator[Hands]:
        yield hands

    with patch.object(api, "open_workers", no_cluster), patch.object(deadline, "time", hands):
        record = sc.solve(path, target=target, time_limit=work / workers, scheduler="tcp://none:0")
    slices, client = sum(hands.seconds), hands.client
    speeds = [slices / (hands.now - client), (slices + client) / hands.now]
    return [path.stem, workers, len(hands.seconds), max(hands.seconds), slices, client, *speeds, record.gap]


@contextmanager
def cluster(workers: int) -> Iterator[Client]:
    """Start a scheduler and workers, each a process with one thread that has loaded the package; connect to them."""
    with tempfile.TemporaryDirectory() as folder:
        note = str(Path(folder) / "scheduler.json")

        def started(*words: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "dask", *words, "--no-dashboard", "--scheduler-file", note]
            where = {**os.environ, "NUMBA_NUM_THREADS": "1", "PYTHONPATH": str(INSTANCES.parent)}
            return subprocess.Popen(command, env=where, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        processes = [started("scheduler", "--host", "127.0.0.1", "--port", "0")]
        try:
            end = time.monotonic() + PATIENCE
            while not Path(note).exists() and time.monotonic() < end:
                time.sleep(0.1)
            own = ["--local-directory", folder, "--no-nanny", "--nthreads", "1"]
            processes += [started("worker", *own) for _ in range(workers)]
            with Client(scheduler_file=note, timeout=PATIENCE, set_as_default=False) as client:
                client.wait_for_workers(workers, timeout=PATIENCE)
                client.run(_loaded)
                yield client
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _loaded() -> None:
    """Have a worker load the package before its seconds count."""
    import sparsecv_mio.search.api  # noqa: F401


def shares(path: Path, target: str, limit: float, workers: int) -> list[object]:
    """Answer the question on a cluster of this machine, and see who did the work."""
    with cluster(workers) as client:

        def seconds() -> tuple[float, float, float]:
            there = sum(client.run(time.process_time).values())
            return there, time.process_time(), client.run_on_scheduler(time.process_time)

        before = seconds()
        record = sc.solve(path, target=target, time_limit=limit, scheduler=client.scheduler.address)
        there, here, planning = (end - begin for begin, end in zip(before, seconds(), strict=True))
    share, of_all = there / (there + here), there / (there + here + planning)
    return [path.stem, limit, there, here, planning, share, of_all, record.gap]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=["diabetes64"], help="FILE:TARGET, or the name of an instance")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of each run")
    parser.add_argument("--workers", type=int, default=2, help="processes of the first table; 0: without it")
    parser.add_argument("--simulated", default="8,32", help="numbers of workers of the second table; '': without it")
    asked = parser.parse_args()
    print(environment(), end="\n\n")
    questions = []
    for name in asked.files:
        path, _, target = name.rpartition(":") if ":" in name else (INSTANCES / f"{name}.csv", "", TARGETS.get(name))
        questions.append((Path(path), str(target)))
    if asked.workers:
        print(table(SHARES, [shares(*question, asked.limit, asked.workers) for question in questions]), end="\n\n")
    counts = [int(count) for count in asked.simulated.split(",") if count]
    if counts:
        rows = [simulated(*question, asked.limit, count) for question in questions for count in counts]
        print(table(SPEEDS, rows))


if __name__ == "__main__":
    main()
