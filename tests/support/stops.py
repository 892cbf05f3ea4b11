"""Stops of a running search at a step that a count determines, not the seconds of the wall clock."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SetWhenAsked(threading.Event):
    """A stop that comes as it is looked at for the n-th time, wherever the search is then."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.left = n

    def is_set(self) -> bool:
        self.left -= 1
        if self.left <= 0:
            self.set()
        return super().is_set()


@contextmanager
def clock_ahead(step: float, at_reading: Callable[[int], None] = lambda number: None) -> Iterator[None]:
    """Let the clock run ahead by `step` seconds each time it is read, and call `at_reading` with the number of it."""
    plain, count = time.monotonic, itertools.count(1)

    def read() -> float:
        number = next(count)
        at_reading(number)
        return plain() + number * step

    try:
        time.monotonic = read
        yield
    finally:
        time.monotonic = plain


@contextmanager
def limit_after(readings: float) -> Iterator[float]:
    """A limit in seconds of a clock that runs ahead each time it is read: shares of it come at any step of a search."""
    seconds = 10.0
    with clock_ahead(seconds / readings):
        yield seconds


@contextmanager
def interrupt_after(readings: int) -> Iterator[None]:
    """Send this process SIGINT, once, as the clock is read for the n-th time; the clock runs ahead meanwhile."""

    def interrupt(number: int) -> None:
        if number == readings:
            signal.raise_signal(signal.SIGINT)

    with clock_ahead(0.05, interrupt):
        yield
