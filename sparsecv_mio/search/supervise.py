"""A limit that holds whatever the work is at: the work has a thread of its own, the calling thread keeps the time.

The work looks at the clock wherever it can and comes back by itself. Where it cannot (a long call of LAPACK, of the
compiler or of a solver), the calling thread takes over when `GRACE` is past: the work is told that nobody waits for it
any more, and the answer is made from what it has left so far. All those calls release the interpreter's lock, or hold
it for a fraction of a second at most.
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

GRACE = 0.2  # seconds after the limit, or after a stop, in which the work may come back by itself
LOOK = 0.02  # seconds between two looks at the clock
RESERVE = (0.25, 0.4, 4.0)  # share of the limit kept for an answer made here, with the least and the most seconds


def attended(
    work: Callable[[], T],
    deadline: Deadline,
    rescue: Callable[[], T],
    prepare: Callable[[float], None] | None = None,
    grace: float = GRACE,
) -> T:
    """Run `work` and return what it returns, or soon after the limit what `rescue` makes of the state it left.

    Parameters
    ----------
    work : callable
        Should end soon once `deadline` has expired.
    deadline : Deadline
        Without a limit and a stop event the work runs in the calling thread.
    rescue : callable
        Makes the answer in the calling thread, while the work may still be going on.
    prepare : callable, optional
        Called once, in the calling thread, a little before the limit, with the moment of `time.monotonic` to be done
        by: time to see to it that `rescue` has an answer.
    grace : float
        Seconds after the limit, the stop or this call, whichever is last, in which the work may come back by itself.

    Raises
    ------
    BaseException
        What the work raised, if it came back; what `rescue` raised.

    Examples
    --------
    >>> endless = threading.Event()
    >>> attended(endless.wait, Deadline(0.01, None), lambda: False)
    False
    >>> endless.set()
    """
    if not deadline.limited:
        return work()
    outcome: Future[T] = Future()
    back = threading.Event()
    # not a daemon: one that is killed inside a solver at the end of a program may crash it
    threading.Thread(target=_carry_out, args=(work, outcome, back), name="sparsecv work").start()
    try:
        if _wait(back, deadline, prepare, grace):
            return outcome.result()
        deadline.abandoned.set()
        answer = rescue()
        done = back.is_set() and not isinstance(outcome.exception(), OutOfTime)
        return outcome.result() if done else answer
    except BaseException:
        deadline.abandoned.set()
        raise


def _wait(
    back: threading.Event, deadline: Deadline, prepare: Callable[[float], None] | None, grace: float
) -> bool:
    """Wait until the work is back, or until it is too late for that; which."""
    share, least, most = RESERVE
    called = time.monotonic()
    limit = deadline.at - deadline.began
    ready_at = deadline.at - min(max(share * limit, least), most)
    over: float | None = None
    while not back.wait(LOOK):
        now = time.monotonic()
        if over is None and deadline.expired():
            over = max(min(now, deadline.at), called)
        if prepare is not None and (now >= ready_at or over is not None):
            prepare(deadline.at if over is None else now + 0.5 * grace)
            prepare = None
        elif over is not None and now - over >= grace:
            return False
    return True


def _carry_out(work: Callable[[], T], outcome: Future[T], back: threading.Event) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:  # raised again in the calling thread
        outcome.set_exception(error)
    finally:
        back.set()
