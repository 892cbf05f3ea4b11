"""When a run has to end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from sparsecv_mio.errors import OutOfTime


class Deadline:
    """Time limit and stop request in one question.

    Parameters
    ----------
    time_limit : float, optional
        Seconds.
    stop : threading.Event, optional
        Set by whoever wants the run to end with what it holds.
    began : float, optional
        Moment of `time.monotonic` from which the limit counts; now by default.

    Attributes
    ----------
    began, at : float
        Moments of `time.monotonic`: the start, and the limit (inf without one).
    limited : bool
        Whether there is a limit or somebody who may ask to stop.
    stop : threading.Event
        Set by whoever wants the run to end.
    abandoned : threading.Event
        Set once nobody waits for the run any more.
    """

    def __init__(self, time_limit: float | None, stop: threading.Event | None, began: float | None = None) -> None:
        self.began = time.monotonic() if began is None else began
        self.at = self.began + time_limit if time_limit is not None else np.inf
        self.limited = time_limit is not None or stop is not None
        self.stop = stop or threading.Event()
        self.abandoned = threading.Event()
        self._compiled, self._compiling_since = 0.0, np.inf

    def expired(self) -> bool:
        """Whether the run should end with what it holds."""
        return self.stop.is_set() or time.monotonic() > self.at or self.abandoned.is_set()

    def share_spent(self, share: float) -> bool:
        """Whether a share of the time limit is gone."""
        return self.expired() or time.monotonic() > self.began + share * (self.at - self.began)

    def share_from_now(self, share: float) -> Callable[[], bool]:
        """Return a clock that says whether a share of the time limit is gone since this call."""
        until = time.monotonic() + share * (self.at - self.began)
        return lambda: self.expired() or time.monotonic() > until

    def sooner(self, share: float) -> Deadline:
        """Return a deadline that comes when a share of the time limit has passed from now on, if not before."""
        part = Deadline(None, self.stop, self.began)
        if np.isfinite(self.at):
            part.at = min(self.at, time.monotonic() + share * (self.at - self.began))
        part.limited, part.abandoned = self.limited, self.abandoned
        return part

    def check_wanted(self) -> None:
        """Raise `OutOfTime` where nobody waits any more: the calling thread makes the record, undisturbed."""
        if self.abandoned.is_set():
            raise OutOfTime("the record was made without this search")

    def compiling(self, now: bool) -> None:
        """Take note that kernels are being compiled from now on, or no longer.

        Parameters
        ----------
        now : bool
        """
        if now:
            self._compiling_since = time.monotonic()
        else:
            self._compiled, self._compiling_since = self.compiled, np.inf

    @property
    def is_compiling(self) -> bool:
        """Whether kernels are being compiled now; one that a process ends amid, the next process compiles anew."""
        return bool(np.isfinite(self._compiling_since))

    @property
    def compiled(self) -> float:
        """Seconds that went into compiling so far."""
        return self._compiled + max(time.monotonic() - self._compiling_since, 0.0)

    @property
    def left(self) -> float:
        """Seconds until the limit, at least 0; inf without one."""
        return max(self.at - time.monotonic(), 0.0)

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self.began
