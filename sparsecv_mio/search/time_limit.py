"""A limit that holds whatever the work is at: the work has a thread of its own, the calling thread keeps the time.

The work checks the clock wherever it can and returns by itself. Where it cannot (a long call of LAPACK, of the compiler
or of a solver), the calling thread stops waiting `GRACE` seconds after the limit: it sets `Deadline.abandoned` and
returns what a fallback makes of the state that the work has left so far. All those calls release the interpreter's
lock, or hold it for a fraction of a second at most.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.search.state.deadline import Deadline

T = TypeVar("T")

GRACE = 0.2  # seconds after the limit, or after a stop, in which the work may still return by itself
CLOCK_INTERVAL = 0.02  # seconds between two checks of the clock
RESERVED_SHARE = 0.25  # of the limit, at its end, for preparing the fallback
LEAST_RESERVE, MOST_RESERVE = 0.4, 4.0  # seconds of that share


def run_within_limit(
    work: Callable[[], T],
    deadline: Deadline,
    fallback: Callable[[], T],
    prepare: Callable[[float], None] | None = None,
    grace: float = GRACE,
) -> T:
    """Run `work` and return what it returns, or soon after the limit what `fallback` makes of its state.

    Parameters
    ----------
    work : callable
        Should end soon once `deadline` has expired.
    deadline : Deadline
        Without a limit and a stop event the work runs in the calling thread.
    fallback : callable
        Makes the result in the calling thread, while the work may still be going on.
    prepare : callable, optional
        Called once, in the calling thread, a little before the limit, with the moment of `time.monotonic` to be done
        by: what `fallback` needs and may take some time.
    grace : float
        Seconds after the limit, the stop or this call, whichever is last, in which the work may return by itself.

    Raises
    ------
    BaseException
        What the work raised, if it returned; what `fallback` raised.

    Examples
    --------
    >>> endless = threading.Event()
    >>> run_within_limit(endless.wait, Deadline(0.01, None), lambda: False)
    False
    >>> endless.set()
    """
    if not deadline.limited:
        return work()
    outcome: Future[T] = Future()
    returned = threading.Event()
    # not a daemon: one that is killed inside a solver at the end of a program may crash it
    threading.Thread(target=_run_work, args=(work, outcome, returned), name="sparsecv work").start()
    try:
        if _wait(returned, deadline, prepare, grace):
            return outcome.result()
        deadline.abandoned.set()
        result = fallback()
        done = returned.is_set() and not isinstance(outcome.exception(), OutOfTime)
        return outcome.result() if done else result
    except BaseException:
        deadline.abandoned.set()
        raise


def _wait(
    returned: threading.Event, deadline: Deadline, prepare: Callable[[float], None] | None, grace: float
) -> bool:
    """Wait for the work, until `grace` is over; whether it has returned."""
    called = time.monotonic()
    limit = deadline.at - deadline.began
    ready_at = deadline.at - min(max(RESERVED_SHARE * limit, LEAST_RESERVE), MOST_RESERVE)
    over: float | None = None
    while not returned.wait(CLOCK_INTERVAL):
        now = time.monotonic()
        if over is None and deadline.expired():
            over = max(min(now, deadline.at), called)
        if prepare is not None and (now >= ready_at or over is not None):
            prepare(deadline.at if over is None else now + 0.5 * grace)
            prepare = None
        elif over is not None and now - over >= grace:
            return False
    return True


def _run_work(work: Callable[[], T], outcome: Future[T], returned: threading.Event) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:  # raised again in the calling thread
        outcome.set_exception(error)
    finally:
        returned.set()
