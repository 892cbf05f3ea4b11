"""Ctrl-C ends a search with its best answer so far, for the command line and for estimators alike."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stop(threading.Event):
    """Set by Ctrl-C; `announced` is True while the view on the screen says itself that the run is stopping."""

    announced = False


@contextmanager
def interruptible(who: str = "sparsecv") -> Iterator[Stop]:
    """Yield an event that the first Ctrl-C sets, on which the search returns its best answer; the second one quits.

    Commands enter it before they import numerical libraries: some swallow a KeyboardInterrupt during their import.
    Outside of the main thread, where Ctrl-C never arrives, nothing sets the event.

    Parameters
    ----------
    who : str
        Name before the line on stderr.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def note(_signal: int, _frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        if not stop.announced:
            # os.write: the handler may interrupt a print to the same stream
            os.write(2, f"{who}: stopping (Ctrl-C again quits at once)\n".encode())

    previous = signal.signal(signal.SIGINT, note)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, previous)
