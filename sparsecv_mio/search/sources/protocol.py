"""The protocols of a source of bounds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import Aim
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
    """A bounding method. It has no state: the state of the search stores what was tried."""

    name: ClassVar[str]

    def describe(self, step: Step) -> str:
        """Return a description of a step in words for the progress line."""

    def run(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Run a step."""

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note in the state what a step tried."""


class GridSource(Source, Protocol):
    """A source that works on whole gammas or folds, whatever pair is next."""

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the steps over some pairs (G, T) that were not done yet."""


class PairSource(Source, Protocol):
    """A source that works on one pair at a time."""

    def steps(self, state: GridState, plan: Plan, aim: Aim, tries: int, n_threads: int) -> Iterator[Step]:
        """Yield steps that raise or solve a pair, the most promising step first.

        Parameters
        ----------
        state : GridState
            State of the search.
        plan : Plan
            Plan of the search.
        aim : Aim
            Pair, with the sum of lower bounds at which work on it ends; inf to solve it.
        tries : int
            Largest number of earlier tries of a target; targets with more tries wait.
        n_threads : int
            Number of threads for the pair.
        """


def find_open_gammas(wanted: BoolArray, done: BoolArray) -> list[int]:
    """Return the indices of gammas with pairs that are wanted (G, T) and not done (G,), in descending order."""
    return [int(g) for g in np.flatnonzero(wanted.any(axis=1) & ~done)[::-1]]
