"""How long a search may take: its deadline, the thread that keeps it, and Ctrl-C.

The work has a thread of its own and the calling thread keeps the time, so that a limit holds whatever the work is at.
The work checks the clock wherever it can and returns by itself. Where it cannot (a long call of LAPACK
or of a solver), the calling thread stops waiting `GRACE` seconds after the limit: it sets `Deadline.abandoned` and
returns what a fallback makes of the state that the work has left so far. All those calls release the interpreter's
lock, or hold it for a fraction of a second at most.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.units import MODEL_SHARE

CHOOSING_SHARE = 0.5  # of a limit, for what chooses the model; then what proves it comes first
SLICE_SHARE = 0.05  # of a limit, that a slice of work may take
REPORT_SHARE = 1.0 / SLICE_SHARE  # what tells of a run, checks or stores it, may take one part in so many of the time
CLOCK_TICK = time.get_clock_info("monotonic").resolution  # seconds that a slice of work counts as at least
GRACE = 0.2  # seconds after the limit, or after a stop, in which the work may still return, or the answer be made


class Limited(Protocol):
    """Options with a limit."""

    @property
    def time_limit(self) -> float | None:
        """Seconds; none by default."""


class TimeKept:
    """The last part of a limit, kept for what is to be done after the search if that is wanted when it begins.

    Parameters
    ----------
    at : float
        Moment of `time.monotonic` when it begins.
    wanted : callable
        Asked once, then.
    """

    def __init__(self, at: float, wanted: Callable[[], bool]) -> None:
        self.at, self.wanted = at, wanted
        self.answer: bool | None = None
        self.lock = threading.Lock()

    def begun(self) -> bool:
        """Whether it has begun, and is wanted."""
        if time.monotonic() <= self.at:
            return False
        with self.lock:
            if self.answer is None:
                self.answer = self.wanted()
        return self.answer


class Deadline:
    """Time limit and stop request in one question.

    Parameters
    ----------
    limit : float, optional
        Seconds.
    stop : threading.Event, optional
        Set by whoever wants the run to end with what it holds.
    began : float, optional
        Moment of `time.monotonic` from which the limit counts; now by default.

    Attributes
    ----------
    limit : float or None
        Seconds; None where there is no limit.
    began, at : float
        Moments of `time.monotonic`: the start, and the limit (inf without one).
    limited : bool
        Whether there is a limit or somebody who may ask to stop.
    stop : threading.Event
        Set by whoever wants the run to end.
    abandoned : threading.Event
        Set once nobody waits for the run any more.
    """

    def __init__(self, limit: float | None, stop: threading.Event | None, began: float | None = None) -> None:
        self.limit = limit if limit is not None and limit < math.inf else None
        self.began = time.monotonic() if began is None else began
        self.at = self.began + limit if limit is not None else math.inf
        self.limited = limit is not None or stop is not None
        self.stop = stop or threading.Event()
        self.abandoned = threading.Event()
        self._kept: TimeKept | None = None
        self._limit_seen: float | None = None

    @classmethod
    def of(cls, options: Limited, stop: threading.Event | None, began: float | None = None) -> Deadline:
        """Return the deadline that options set."""
        return cls(options.time_limit, stop, began)

    def expired(self) -> bool:
        """Whether the run should end with what it holds."""
        return self.over() or (self._kept is not None and self._kept.begun())

    def over(self) -> bool:
        """Whether the limit has come, the stop, or nobody waits any more."""
        return self.stop.is_set() or time.monotonic() > self.at or self.abandoned.is_set()

    def over_for_grace(self) -> Callable[[], bool]:
        """Return a function that is True more than `GRACE` seconds after it first found the run over."""
        seen: list[float] = []

        def is_late() -> bool:
            if not self.over():
                return False
            seen[1:] = [time.monotonic()]
            return seen[-1] - seen[0] > GRACE

        return is_late

    def spare(self) -> bool:
        """Whether the limit has not come, or was first seen so short a time ago that the work may still return."""
        if not self.expired():
            return True
        if self._limit_seen is None:
            self._limit_seen = time.monotonic()
        return time.monotonic() - self._limit_seen < 0.75 * GRACE

    def keep_time(self, share: float, wanted: Callable[[], bool]) -> None:
        """Let the run end a share of its limit early, if something else is wanted then: `wanted` is asked once."""
        if math.isfinite(self.at):
            self._kept = TimeKept(self.at - share * (self.at - self.began), wanted)

    def take_all(self) -> None:
        """Let what follows have the time that was kept."""
        self._kept = None

    def by_share(self, share: float) -> Deadline:
        """Return a deadline that comes when a share of the time limit is gone."""
        earlier = self.sooner(1.0)
        if math.isfinite(self.at):
            earlier.at = min(self.at, self.began + share * (self.at - self.began))
        return earlier

    def sooner(self, share: float) -> Deadline:
        """Return a deadline that comes when a share of the time limit has passed from now on, if not before."""
        earlier = Deadline(None, self.stop, self.began)
        if math.isfinite(self.at):
            earlier.at = min(self.at, time.monotonic() + share * (self.at - self.began))
        earlier.limited, earlier.abandoned, earlier._kept = self.limited, self.abandoned, self._kept
        return earlier

    def first(self, share: float) -> Deadline:
        """Return the deadline of a run that is followed by others: a share of the time limit, from its start."""
        first_share = Deadline(
            share * (self.at - self.began) if math.isfinite(self.at) else None, self.stop, self.began
        )
        first_share.limited = self.limited
        return first_share

    def then(self, seconds: float | None) -> Deadline:
        """Return the deadline, so many seconds from now, of a run that follows within the same stop request."""
        next_part = Deadline(seconds, self.stop)
        next_part.limited = self.limited or seconds is not None
        return next_part

    def status(self, proved: bool) -> str:
        """Return why a run ended: its proof, who asked it to stop, or the limit."""
        return "proved" if proved else "interrupted" if self.stop.is_set() else "limit"

    def check_wanted(self) -> None:
        """Raise `OutOfTime` where nobody waits any more: the calling thread makes the record, undisturbed."""
        if self.abandoned.is_set():
            raise OutOfTime("the record was made without this search")

    @property
    def share(self) -> float:
        """Share of the time limit that has passed, 1 after a stop; 0 without a limit."""
        if self.over():
            return 1.0
        return (time.monotonic() - self.began) / (self.at - self.began) if math.isfinite(self.at) else 0.0

    @property
    def left(self) -> float:
        """Seconds until the limit, at least 0; inf without one."""
        return max(self.at - time.monotonic(), 0.0)

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self.began


T = TypeVar("T")


def prepared(data: T | None) -> T:
    """Return the data in standard coordinates; raise `OutOfTime` where there is nothing yet to make a record of."""
    if data is None:
        raise OutOfTime("no answer yet: the data were still being prepared; give more time")
    return data


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


def _wait(returned: threading.Event, deadline: Deadline, prepare: Callable[[float], None] | None, grace: float) -> bool:
    """Wait for the work, until `grace` is over; whether it has returned."""
    called = time.monotonic()
    limit = deadline.at - deadline.began
    ready_at = deadline.at - max(MODEL_SHARE * limit, 2.0 * GRACE)
    over: float | None = None
    while not returned.wait(grace / 10.0):
        now = time.monotonic()
        if over is None and deadline.over():
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


REPEATED = 1.0  # seconds in which a second signal counts as the first one, because `timeout -s INT` sends two


class StopRequest(threading.Event):
    """Set by Ctrl-C; `announced` is True while the view on the screen says itself that the run is stopping."""

    announced = False
    since = math.inf  # moment of `time.monotonic` of the first signal

    def is_repeated(self) -> bool:
        """Record a signal; return True if it comes more than `REPEATED` seconds after the first one."""
        now = time.monotonic()
        self.since = min(self.since, now)
        self.set()
        return now - self.since > REPEATED


@contextmanager
def interruptible(who: str = "sparsecv", terminable: bool = False) -> Iterator[StopRequest]:
    """Yield an event that the first Ctrl-C sets, on which the search returns its best answer; a later one quits.

    Commands enter it before they import numerical libraries: some swallow a KeyboardInterrupt during their import.
    A handler of a host program stays what it was: one written in Python is called too, and says what a second Ctrl-C
    does; where there is one of another language, or Python may set none here (a thread, a subinterpreter), nothing
    sets the event.

    Parameters
    ----------
    who : str
        Name before the line on stderr.
    terminable : bool
        If True, SIGTERM, which a scheduler sends, has the same effect as Ctrl-C; commands use it.
    """
    stop = StopRequest()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *[signal.SIGTERM] * terminable)}
    # None: it was not set by Python, which could not put it back
    before = {number: handler for number, handler in before.items() if handler is not None}

    def note(number: int, frame: Any) -> None:
        first, again, host = not stop.is_set(), stop.is_repeated(), before[signal.Signals(number)]
        if callable(host) and host is not signal.default_int_handler:
            host(number, frame)
        elif again:
            raise KeyboardInterrupt
        elif first and not stop.announced:
            # os.write: the handler may interrupt a print to the same stream
            os.write(2, f"{who}: stopping (Ctrl-C again quits at once)\n".encode())

    try:
        for number in before:
            signal.signal(number, note)
    except ValueError:  # not in the main thread of the main interpreter
        before = {}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
