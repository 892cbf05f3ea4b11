"""What every method works with, the contract that every method keeps, and the loop that drives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.formulation.backends.native.cell import PathCell
from sparsecv_mio.search.accelerators import Accelerators
from sparsecv_mio.search.observers.signals import Signals
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.state import SearchState


@dataclass(frozen=True, eq=False)
class Run:
    """What a method works with.

    Attributes
    ----------
    state : SearchState
        What is known.
    accelerators : Accelerators
        What may save it work.
    signals : Signals
        Where it says that it has come further.
    """

    state: SearchState
    accelerators: Accelerators
    signals: Signals

    @property
    def context(self) -> Context:
        """What is searched, in which data, and by when."""
        return self.state.context


class Stored(Protocol):
    """A part of a method that a checkpoint holds."""

    def archive(self) -> Archive:
        """Return where it stands."""

    def check(self, stored: Archive) -> None:
        """Raise `CorruptStore` unless it can go to where `stored` was archived."""

    def restore(self, stored: Archive) -> None:
        """Go to where `stored` was archived."""


class Course(Protocol):
    """What is done one portion after the other: `begin`, then `step` until `finished`, then `finish`.

    Every moment in between holds a valid certificate.
    """

    def begin(self) -> None:
        """Take the first steps: supports on all rows, and what they say of every cell."""

    def step(self) -> None:
        """Do a portion of work."""

    @property
    def finished(self) -> bool:
        """Whether the certificate is closed, or nothing is left to do, or the time is over."""

    def finish(self) -> None:
        """Do what the proof leaves over: cells that are asked for all the same, estimates for those still open."""

    def score_reported_pair(self) -> None:
        """See to it that the pair to report is scored in every fold, and to the accuracy of decided cells."""


class GridMethod(Course, Protocol):
    """A method over one grid, whose open cells can be worked on by name.

    Of what is the same for all of them, snapshots and checkpoints say,
    :class:`sparsecv_mio.search.methods.parts.grid_search.GridSearch` takes care.
    """

    @property
    def name(self) -> str:
        """The word by which checkpoints and traces know the method."""

    @property
    def run(self) -> Run:
        """What it works with."""

    @property
    def parts(self) -> Sequence[Stored]:
        """The parts that a checkpoint holds beside the cells and the counts."""

    def recompute(self) -> None:
        """Compute what a checkpoint does not hold, in place of `begin`."""

    @property
    def open(self) -> BoolArray:
        """(G, T, K): cells that more work could decide."""

    @property
    def exhausted(self) -> bool:
        """Whether no more work may be done."""

    def work_on(self, pairs: BoolArray) -> None:
        """Do a portion of work on the open cells of some pairs (G, T)."""

    def mios(self) -> int:
        """Return the number of mixed-integer problems that were solved."""

    def engine(self) -> str:
        """Return who solved the cells, in words."""

    def best_on_all_rows(self, g: int, tau: int) -> PathCell:
        """Return the best subset on all rows at a pair, solved on where it is not proved and there is time."""


def run_to_end(course: Course) -> None:
    """Step until it is finished, and let it finish: the loop of every search, and of those within one."""
    while not course.finished:
        course.step()
    course.finish()
