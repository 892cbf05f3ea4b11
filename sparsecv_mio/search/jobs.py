"""Jobs that threads work on while the thread that searches chooses the next ones.

The state of a search has one writer, the thread that searches. A piece of a job computes and writes nothing; it returns
what writes that which it found, and the thread that searches calls it once all pieces of the job have ended. On one
thread a job is done where it is waited for: the same work in the same order each time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.accounts import BoundSource
from sparsecv_mio.search.cells import Index
from sparsecv_mio.search.run import Run

Write = Callable[[], None]


def nothing() -> None:
    """Write nothing."""


class Job(NamedTuple):
    """Pieces of work on some pairs.

    Attributes
    ----------
    source : BoundSource
        To whose account it goes.
    pairs : index of (G, T)
        Those that nothing else is to begin with meanwhile.
    pieces : sequence of callables
        Each returns what writes its result.
    then : callable
        Called when all is written; does all itself, with whatever threads it likes, where there are no pieces.
    """

    source: BoundSource
    pairs: Index
    pieces: Sequence[Callable[[], Write]]
    then: Write


_Piece = tuple[Write, float]  # what writes the result, and processor seconds


class Jobs:
    """Those begun and not ended yet.

    Parameters
    ----------
    run : Run
    """

    def __init__(self, run: Run) -> None:
        self.run, self.threads = run, run.context.threads
        self._begun: list[tuple[Job, list[Future[_Piece]]]] = []
        self._pool: ThreadPoolExecutor | None = None
        self._unwanted = threading.Event()

    def expired(self) -> bool:
        """Whether pieces should end with what they hold."""
        return self._unwanted.is_set() or self.run.context.deadline.expired()

    @property
    def some(self) -> bool:
        """Whether there are any."""
        return bool(self._begun)

    @property
    def room(self) -> bool:
        """Whether a thread has nothing to do."""
        if self.threads == 1 or any(not pieces for _, pieces in self._begun):
            return not self._begun
        return sum(not piece.done() for _, pieces in self._begun for piece in pieces) < self.threads

    @property
    def pairs(self) -> BoolArray:
        """(G, T): pairs that are worked on."""
        pairs = np.zeros(self.run.context.shape[:2], dtype=bool)
        for job, _ in self._begun:
            pairs[job.pairs] = True
        return pairs

    def begin(self, job: Job) -> None:
        """Begin a job."""
        if self.threads > 1 and self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads)
        self._begun.append((job, [self._pool.submit(_timed, piece) for piece in job.pieces] if self._pool else []))

    def wait(self) -> bool:
        """Wait until a piece has ended, and write what the jobs found that have; whether some have."""
        wait([piece for _, pieces in self._begun for piece in pieces if not piece.done()], None, FIRST_COMPLETED)
        ended = [(job, pieces) for job, pieces in self._begun if all(piece.done() for piece in pieces)]
        self._begun = [(job, pieces) for job, pieces in self._begun if not any(job is other for other, _ in ended)]
        for job, pieces in ended:
            results = [piece.result() for piece in pieces]
            self.run.accounts.took(job.source, sum(cpu_seconds for _, cpu_seconds in results))
            with self.run.accounts.of(job.source):
                for write in [write for write, _ in results] if pieces else [piece() for piece in job.pieces]:
                    write()
                job.then()
        return bool(ended)

    def do(self, job: Job) -> None:
        """Do a job, and wait for it and all others."""
        self.begin(job)
        self._wait_for_all()

    def end(self) -> None:
        """Have all end with what they hold, and write it."""
        self._unwanted.set()
        self._wait_for_all()
        self._unwanted.clear()

    def _wait_for_all(self) -> None:
        try:
            while self.some:
                self.wait()
        except BaseException:
            self.abandon()
            raise
        self._leave()

    def abandon(self) -> None:
        """Have all end, whatever they hold; nothing is begun any more."""
        self._unwanted.set()
        self._begun.clear()
        self._leave()

    def _leave(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _timed(piece: Callable[[], Write]) -> _Piece:
    begin = time.thread_time()
    write = piece()
    return write, time.thread_time() - begin
