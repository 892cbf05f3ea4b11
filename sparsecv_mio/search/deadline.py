"""Time limits of a search, and the treatment of Ctrl-C.

With a limit or a stop event, the work runs in a separate thread, while the calling thread watches the clock. A time
limit therefore also applies during long calls. The work checks the clock between its parts and returns soon after the
limit. The work cannot check the clock during a long call of LAPACK or of a solver. Therefore the calling thread waits
for at most `GRACE` seconds after the limit. It then sets `Deadline.abandoned` and returns the result of a fallback
function, computed from the present state of the work. No long call blocks the Python interpreter for more than a
fraction of a second.
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

CHOOSING_SHARE = 0.5  # share of a limit in which the choice of the model comes first; then its proof comes first
SLICE_SHARE = 0.05  # share of a limit that a work unit may take
REPORT_SHARE = 1.0 / SLICE_SHARE  # ratio of all time to the time of reports, checks and checkpoints, at least
GRACE = 0.2  # seconds after the limit, or after a stop, in which the work may return or the answer may be built


class Limited(Protocol):
    """The protocol of options with a time limit."""

    @property
    def time_limit(self) -> float | None:
        """Time limit in seconds; None by default."""


class TimeKept:
    """The last part of a limit, reserved for work after the search if that work is wanted when the part begins.

    Parameters
    ----------
    at : float
        Start of the part on the clock of `time.monotonic`.
    wanted : callable
        Function that returns True if the work is wanted; called once, at the start of the part.
    """

    def __init__(self, at: float, wanted: Callable[[], bool]) -> None:
        self.at, self.wanted = at, wanted
        self.answer: bool | None = None
        self.lock = threading.Lock()

    def is_due(self) -> bool:
        """Return True if the part has begun and its work is wanted."""
        if time.monotonic() <= self.at:
            return False
        with self.lock:
            if self.answer is None:
                self.answer = self.wanted()
        return self.answer


class Deadline:
    """A time limit together with a stop request.

    Parameters
    ----------
    limit : float, optional
        Time limit in seconds.
    stop : threading.Event, optional
        Event that requests the run to end with its present answer.
    began : float, optional
        Start of the limit on the clock of `time.monotonic`; now by default.

    Attributes
    ----------
    limit : float or None
        Time limit in seconds; None without a limit.
    began, at : float
        Start and end of the limit on the clock of `time.monotonic`; the end is inf without a limit.
    limited : bool
        True if there is a limit, or a stop event.
    stop : threading.Event
        Event that requests the run to end.
    abandoned : threading.Event
        Event that is set once no thread waits for the run any more.
    """

    def __init__(self, limit: float | None, stop: threading.Event | None, began: float | None = None) -> None:
        self.limit = limit if limit is not None and limit < math.inf else None
        self.began = time.monotonic() if began is None else began
        self.at = self.began + limit if limit is not None else math.inf
        self.limited = limit is not None or stop is not None
        self.stop = stop or threading.Event()
        self.abandoned = threading.Event()
        self._kept: TimeKept | None = None

    @classmethod
    def from_options(cls, options: Limited, stop: threading.Event | None, began: float | None = None) -> Deadline:
        """Return the deadline of some options."""
        return cls(options.time_limit, stop, began)

    def has_expired(self) -> bool:
        """Return True if the run should end with its present answer."""
        return self.is_over() or (self._kept is not None and self._kept.is_due())

    def is_over(self) -> bool:
        """Return True if the limit has expired, a stop was requested, or no thread waits any more."""
        return self.stop.is_set() or time.monotonic() > self.at or self.abandoned.is_set()

    def make_late_check(self) -> Callable[[], bool]:
        """Return a function that is True more than `GRACE` seconds after it first found the run over."""
        seen: list[float] = []

        def is_late() -> bool:
            if not self.is_over():
                return False
            seen[1:] = [time.monotonic()]
            return seen[-1] - seen[0] > GRACE

        return is_late

    def keep_time(self, share: float, wanted: Callable[[], bool]) -> None:
        """Reserve the last share of the limit for other work, if `wanted` returns True then; it is called once."""
        if math.isfinite(self.at):
            self._kept = TimeKept(self.at - share * (self.at - self.began), wanted)

    def release_reserve(self) -> None:
        """Release the reserved time for the work that follows."""
        self._kept = None

    def sooner(self, share: float) -> Deadline:
        """Return a deadline a share of the time limit from now on, or the present deadline if that is sooner."""
        earlier = Deadline(None, self.stop, self.began)
        if math.isfinite(self.at):
            earlier.at = min(self.at, time.monotonic() + share * (self.at - self.began))
        earlier.limited, earlier.abandoned, earlier._kept = self.limited, self.abandoned, self._kept
        return earlier

    def first_part(self, share: float) -> Deadline:
        """Return the deadline of a run that other runs follow: a share of the time limit, from its start."""
        first_share = Deadline(
            share * (self.at - self.began) if math.isfinite(self.at) else None, self.stop, self.began
        )
        first_share.limited = self.limited
        return first_share

    def next_part(self, seconds: float | None) -> Deadline:
        """Return the deadline, `seconds` from now, of a further run with the same stop event."""
        next_part = Deadline(seconds, self.stop)
        next_part.limited = self.limited or seconds is not None
        return next_part

    def status(self, proved: bool) -> str:
        """Return the reason why a run ended: its proof, a stop request, or the limit."""
        return "proved" if proved else "interrupted" if self.stop.is_set() else "limit"

    def check_caller_waits(self) -> None:
        """Raise `OutOfTime` if no thread waits any more: the calling thread then builds the record undisturbed."""
        if self.abandoned.is_set():
            raise OutOfTime("this search did not finish and is not part of the record")

    @property
    def share(self) -> float:
        """Share of the time limit that has passed; 1 after a stop, 0 without a limit."""
        if self.is_over():
            return 1.0
        return (time.monotonic() - self.began) / (self.at - self.began) if math.isfinite(self.at) else 0.0

    @property
    def remaining_seconds(self) -> float:
        """Seconds until the limit, at least 0; inf without a limit."""
        return self.seconds_until(1.0)

    def seconds_until(self, share: float) -> float:
        """Return the seconds until a share of the time limit has passed, at least 0; inf without a limit."""
        return max(self.began + share * (self.at - self.began) - time.monotonic(), 0.0)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began


T = TypeVar("T")


def require_prepared_data(data: T | None) -> T:
    """Return the data in standard coordinates; raise `OutOfTime` if there is no data to build a record from yet."""
    if data is None:
        raise OutOfTime("no answer yet: the time limit ended while the data were being prepared; give more time")
    return data


def run_within_limit(
    work: Callable[[], T],
    deadline: Deadline,
    fallback: Callable[[], T],
    prepare: Callable[[float], None] | None = None,
    grace: float = GRACE,
) -> T:
    """Run `work` and return its result, or soon after the limit the result of `fallback` from its present state.

    Parameters
    ----------
    work : callable
        Function to run, which should end soon after `deadline` has expired.
    deadline : Deadline
        Deadline of the work. Without a limit and a stop event the work runs in the calling thread.
    fallback : callable
        Function that builds the result in the calling thread, while the work may still run.
    prepare : callable, optional
        Function that prepares slow parts of `fallback`. It is called once, in the calling thread, shortly before the
        limit, with the time of `time.monotonic` to end by.
    grace : float
        Time in seconds in which the work may return after the limit, the stop or this call, whichever is last.

    Raises
    ------
    BaseException
        If the work raised it and returned, or `fallback` raised it.

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
    # not a daemon: a daemon that is killed inside a solver at the end of a program may crash the program
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
    """Wait for the work until `grace` is over; return True if it has returned."""
    called = time.monotonic()
    limit = deadline.at - deadline.began
    ready_at = deadline.at - max(MODEL_SHARE * limit, 2.0 * GRACE)
    over: float | None = None
    while not returned.wait(grace / 10.0):
        now = time.monotonic()
        if over is None and deadline.is_over():
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
QUITTING = 0.2, 3.0  # seconds after a signal of an earlier run from and to which a signal quits at once


class StopSignal(threading.Event):
    """The event of Ctrl-C.

    Attributes
    ----------
    announced : bool
        True while the display itself shows that the run is stopping.
    since : float
        Moment of `time.monotonic` of the first signal that no handler of a host program received; inf before it.
    quits : bool
        True once a later signal raised KeyboardInterrupt, which the work may have suppressed to keep its answer.
    """

    announced = quits = False
    since = math.inf
    latest = -math.inf  # moment of the last signal in any run, stored in the class

    def is_repeated(self) -> bool:
        """Record a signal; return True if an earlier one came in this run, or shortly before in another run."""
        now, pause = time.monotonic(), time.monotonic() - StopSignal.latest
        follows_another_run = math.isinf(self.since) and QUITTING[0] < pause <= QUITTING[1]
        self.since, StopSignal.latest = min(self.since, now), now
        self.quits = self.quits or follows_another_run or now - self.since > REPEATED
        return self.quits


@contextmanager
def interruptible(who: str = "sparsecv", terminable: bool = False) -> Iterator[StopSignal]:
    """Yield an event that the first Ctrl-C sets, on which the search returns its best answer; a second one quits.

    A Ctrl-C that follows one of an earlier run by `QUITTING` seconds is a second one, so that loops can be ended.

    Commands enter this context before they import numerical libraries, since some of these swallow a KeyboardInterrupt
    during their import. A handler of a host program stays in place. If it is written in Python, it is called too, and
    it decides about a second Ctrl-C. If it is written in another language, or if Python may set no handler here (a
    thread, a subinterpreter), nothing sets the event.

    Parameters
    ----------
    who : str
        Name before the line on stderr.
    terminable : bool
        True if SIGTERM, which a scheduler sends, has the same effect as Ctrl-C; commands use it.
    """
    stop = StopSignal()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *[signal.SIGTERM] * terminable)}
    # None: a handler that was not set by Python, which could not restore it
    before = {number: handler for number, handler in before.items() if handler is not None}

    def note(number: int, frame: Any) -> None:
        first, host = not stop.is_set(), before[signal.Signals(number)]
        stop.set()
        if callable(host) and host is not signal.default_int_handler:
            host(number, frame)
        elif stop.is_repeated():
            raise KeyboardInterrupt
        elif first and not stop.announced:
            # os.write: the handler may interrupt a print to the same stream
            os.write(2, f"{who}: stopping (press Ctrl-C again to quit at once)\n".encode())

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


@contextmanager
def interruptible_call(who: str = "sparsecv") -> Iterator[StopSignal]:
    """Yield the event of `interruptible` for a call from Python.

    Parameters
    ----------
    who : str
        Name before the line on stderr.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C came twice, or before any answer was available.
    """
    with interruptible(who) as stop:
        try:
            yield stop
        except OutOfTime as error:
            if stop.is_set():
                raise KeyboardInterrupt(str(error)) from error
            raise
        if stop.quits:  # the work suppressed the second Ctrl-C, because commands keep the answer of earlier work
            raise KeyboardInterrupt
