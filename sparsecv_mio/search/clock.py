"""When a run has to end."""

from __future__ import annotations

import threading
import time

import numpy as np


class Clock:
    """Time limit and stop request in one question."""

    def __init__(self, time_limit: float | None, stop: threading.Event | None) -> None:
        self.began = time.monotonic()
        self.deadline = self.began + time_limit if time_limit is not None else np.inf
        self.stop = stop or threading.Event()

    def expired(self) -> bool:
        """Whether the run should end with what it holds."""
        return self.stop.is_set() or time.monotonic() > self.deadline

    def share_spent(self, share: float) -> bool:
        """Whether a share of the time limit is gone."""
        return self.stop.is_set() or time.monotonic() > self.began + share * (self.deadline - self.began)

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self.began
