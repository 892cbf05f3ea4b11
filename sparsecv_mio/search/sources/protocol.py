"""The contract of a source of bounds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.search.grid_state import GridState
from sparsecv_mio.search.pairs import Aim
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems.protocol import IsExpired, Problems
from sparsecv_mio.search.steps import Findings, Step


@dataclass(frozen=True)
class StepClock:
    """When a step has to end: once the search has to, or its own time is over.

    Attributes
    ----------
    is_search_over : callable
    at : float
        Moment of `time.monotonic`.
    """

    is_search_over: IsExpired
    at: float

    @classmethod
    def of(cls, step: Step, is_search_over: IsExpired) -> StepClock:
        """Return the clock of a step that begins now."""
        return cls(is_search_over, time.monotonic() + step.seconds)

    @property
    def left(self) -> float:
        """Seconds until then."""
        return 0.0 if self.is_search_over() else max(self.at - time.monotonic(), 0.0)

    def expired(self) -> bool:
        """Return True if the step has to end now."""
        return self.is_search_over() or time.monotonic() > self.at


class Source(Protocol):
    """A bounding method. It has no state of its own: what was tried is in the state of the search."""

    name: ClassVar[str]

    def describe(self, step: Step) -> str:
        """Return what a step does, in words for the progress line."""

    def run(self, step: Step, problems: Problems, is_expired: IsExpired) -> Findings:
        """Do a step."""

    def count_tries(self, state: GridState, findings: Findings) -> None:
        """Note in the state what a step tried."""


class GridSource(Source, Protocol):
    """A source that works on whole gammas or folds, whatever pair is next."""

    def steps(self, state: GridState, plan: Plan, wanted: BoolArray) -> Iterator[Step]:
        """Yield the steps that were not done yet, over some pairs (G, T)."""


class PairSource(Source, Protocol):
    """A source that works on one pair at a time."""

    def steps(self, state: GridState, plan: Plan, aim: Aim, tries: int, n_threads: int) -> Iterator[Step]:
        """Yield steps that raise or solve a pair, the most promising step first.

        Parameters
        ----------
        state : GridState
        plan : Plan
        aim : Aim
            The pair, and the sum of lower bounds at which it is left; inf: solve it.
        tries : int
            Targets with more tries than that wait.
        n_threads : int
            Threads for the pair.
        """


def find_open_gammas(wanted: BoolArray, done: BoolArray) -> list[int]:
    """Return the indices of gammas with pairs that are wanted (G, T) and not done (G,), in descending order."""
    return [int(g) for g in np.flatnonzero(wanted.any(axis=1) & ~done)[::-1]]
