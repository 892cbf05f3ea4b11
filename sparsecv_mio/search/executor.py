"""Execution of the steps of a search (:mod:`sparsecv_mio.search.steps`) in one or more threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace

from sparsecv_mio.search.problems.protocol import Problems
from sparsecv_mio.search.sources.registry import find_source
from sparsecv_mio.search.steps import Findings, Step


class Executor:
    """An executor that runs steps and returns their findings in the order in which the steps end.

    On one thread a step runs when its findings are requested, so that a search has the same steps in the same order
    each time. On several threads a step is submitted only if a thread is idle, since a queue would have been chosen
    from an old state. If the executor waits for the steps of all threads, a search is reproducible on several threads
    too.

    Parameters
    ----------
    problems : Problems
        Problems that the steps work on.
    n_threads : int
        Number of threads.
    is_expired : callable
        Function that returns True once running steps have to end.
    waits_for_all : bool
        True if findings are returned once all threads have ended their steps.
    steps_of_turn : int
        Maximum number of steps of a turn on one thread.
    """

    def __init__(
        self, problems: Problems, n_threads: int, is_expired: Callable[[], bool], waits_for_all: bool = False,
        steps_of_turn: int = 1,
    ) -> None:  # fmt: skip
        self.problems, self.n_threads, self._is_expired = problems, n_threads, is_expired
        self.waits_for_all, self.steps_of_turn = waits_for_all, steps_of_turn
        self._running: list[tuple[Future[Findings] | None, Step]] = []
        self._pool: ThreadPoolExecutor | None = None
        self._stopped = threading.Event()

    @property
    def running(self) -> list[Step]:
        """Steps whose findings were not returned yet."""
        return [step for _, step in self._running]

    @property
    def n_idle(self) -> int:
        """Number of steps to submit: one for each idle thread, or `steps_of_turn` on one thread."""
        if self.n_threads == 1:
            return 0 if self._running else self.steps_of_turn
        n_busy = sum(
            step.n_threads for future, step in self._running
            if future is None or self.waits_for_all or not future.done()
        )  # fmt: skip
        return max(self.n_threads - n_busy, 0)

    def submit(self, step: Step) -> None:
        """Submit a step."""
        if self.n_threads > 1 and self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads)
        self._running.append((self._pool.submit(self._run_and_time, step) if self._pool else None, step))

    def collect_findings(self) -> list[Findings]:
        """Return the findings of ended steps; if none has ended, wait for one, or for all if `waits_for_all`."""
        if self._pool is None:
            steps, self._running = self.running, []
            return [self._run_and_time(step) for step in steps]
        until = ALL_COMPLETED if self.waits_for_all else FIRST_COMPLETED
        wait([future for future, _ in self._running if future is not None], return_when=until)
        ended = [future for future, _ in self._running if future is not None and future.done()]
        self._running = [(future, step) for future, step in self._running if future not in ended]
        return [future.result() for future in ended]

    def stop(self) -> list[Findings]:
        """Stop the running steps, wait for all of them, and return their findings."""
        findings: list[Findings] = []
        self._stopped.set()
        while self._running:
            findings += self.collect_findings()
        self._stopped.clear()
        self.close()
        return findings

    def close(self) -> None:
        """Shut the threads down; steps that still run end soon, and their findings are lost."""
        if self._running:
            self._stopped.set()
            self._running.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def is_expired(self) -> bool:
        """Return True if running steps have to end."""
        return self._stopped.is_set() or self._is_expired()

    def _run(self, step: Step) -> Findings:
        return find_source(step).run(step, self.problems, self.is_expired)

    def _run_and_time(self, step: Step) -> Findings:
        began = time.thread_time()
        findings = self._run(step)
        return replace(findings, cpu_seconds=time.thread_time() - began)
