"""Which task is next: those that take longest first, so that no worker waits for a long one at the end."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass

from sparsecv_mio.batch.folder import Outcome
from sparsecv_mio.batch.plan import Task, kind_of


@dataclass(frozen=True)
class Attempt:
    """A task that is to be run.

    Attributes
    ----------
    task : Task
    number : int
        From 1 on; larger after `--retry`.
    lost : int
        How often its worker died on the way.
    """

    task: Task
    number: int = 1
    lost: int = 0


class Order:
    """Tasks that are left, by kind: tasks of a kind differ by their seeds alone, so that one tells of the others.

    First comes a task of every kind of which nothing is known, then the kind that took longest. Tasks whose worker
    died come before all others.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, deque[Attempt]] = {}
        self._new: dict[str, None] = {}  # kinds of which no task was begun
        self._seconds: dict[str, float] = {}
        self._longest: list[tuple[float, str]] = []  # a heap of (-seconds, kind), some of them out of date
        self._suspects: deque[Attempt] = deque()

    def __bool__(self) -> bool:
        return bool(self._kinds or self._suspects)

    @property
    def lost(self) -> int:
        """How often the worker of the next task died."""
        return self._suspects[0].lost if self._suspects else 0

    def add(self, attempt: Attempt) -> None:
        """Take in a task."""
        if attempt.lost:
            self._suspects.append(attempt)
            return
        kind = kind_of(attempt.task.to_dict())
        self._kinds.setdefault(kind, deque()).append(attempt)
        if kind not in self._seconds:
            self._new[kind] = None

    def learn(self, outcome: Outcome) -> None:
        """Take note of how long a task took."""
        self._note(kind_of(outcome.task), outcome.seconds)

    def next(self) -> Attempt:
        """Return the next task, which is no longer left."""
        if self._suspects:
            return self._suspects.popleft()
        kind = next(iter(self._new), None) or self._slowest()
        found = self._kinds[kind].popleft()
        if not self._kinds[kind]:
            del self._kinds[kind]
        if kind not in self._seconds:
            self._note(kind, 0.0)
        return found

    def _note(self, kind: str, seconds: float) -> None:
        self._new.pop(kind, None)
        self._seconds[kind] = seconds
        heapq.heappush(self._longest, (-seconds, kind))

    def _slowest(self) -> str:
        while True:
            seconds, kind = self._longest[0]
            if kind in self._kinds and -seconds == self._seconds[kind]:
                return kind
            heapq.heappop(self._longest)
