"""The methods that every source of bounds has."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.steps import Findings, Step


@dataclass(frozen=True)
class StepClock:
    """The clock of a step: the step has to end once the search has to end, or once its time is over.

    Attributes
    ----------
    is_search_over : callable
        Function that returns True once the search has to end.
    at : float
        End of the step on the clock of `time.monotonic`, in seconds.
    """

    is_search_over: IsExpired
    at: float

    @classmethod
    def from_step(cls, step: Step, is_search_over: IsExpired) -> StepClock:
        """Return the clock of a step that begins now."""
        return cls(is_search_over, time.monotonic() + step.seconds)

    @property
    def remaining_seconds(self) -> float:
        """Seconds until the step has to end."""
        return 0.0 if self.is_search_over() else max(self.at - time.monotonic(), 0.0)

    def has_expired(self) -> bool:
        """Return True if the step has to end now."""
        return self.is_search_over() or time.monotonic() > self.at


class Source(Protocol):
    """A bounding method. It has no state: the state of the search stores what was tried.

    A source has a method `steps` too, which reads the state and the plan and yields steps. Its other parameters depend
    on the source: the pairs (G, T) that are wanted, or one pair with the sum of lower bounds to reach.
    """

    name: ClassVar[str]

    def run(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Run a step."""

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note in the state what a step tried."""


def find_open_gammas(wanted: BoolArray, done: BoolArray) -> list[int]:
    """Return the indices of gammas with pairs that are wanted (G, T) and not done (G,), in descending order."""
    return [int(g) for g in np.flatnonzero(wanted.any(axis=1) & ~done)[::-1]]
