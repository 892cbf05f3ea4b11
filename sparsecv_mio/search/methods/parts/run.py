"""What every method works with, the contract that every method keeps, and the loop that drives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.formulation.backends.native.cell import PathCell
from sparsecv_mio.search.accelerators import Accelerators
from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.observers.signals import Signals
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.snapshot import Snapshot
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

    def snapshot(self, mios: int, engine: str) -> Snapshot:
        """Return copies of all that the record of the run is made of; for any thread.

        Parameters
        ----------
        mios : int
            Mixed-integer problems solved.
        engine : str
            Who solved the cells, in words.
        """
        cells, state = self.state.cells.copy(), self.state
        best, oracles = tuple(state.all_rows.best), self.accelerators.work(cells)
        return Snapshot(self.context, cells, best, mios, state.counts.nodes, engine, oracles)


class Strategy(Protocol):
    """A search as a strategy: `begin`, then `step` until `finished`; every moment holds a valid certificate."""

    @property
    def name(self) -> str:
        """The word by which checkpoints and traces know the method."""

    @property
    def context(self) -> Context:
        """What is searched, in which data, and by when."""

    def begin(self) -> None:
        """Take the first steps: supports on all rows, and what they say of every cell."""

    def step(self) -> None:
        """Do a portion of work."""

    @property
    def finished(self) -> bool:
        """Whether the certificate is closed, or nothing is left to do, or the time is over."""

    def finish(self) -> None:
        """Do what the proof leaves over: cells that are asked for all the same, estimates for those still open."""

    def archive(self) -> Archive:
        """Return all that a checkpoint holds."""

    def resume(self, stored: Archive) -> None:
        """Go to where `stored` was archived; instead of `begin`."""

    def snapshot(self) -> Snapshot | None:
        """Return what is known now, for any thread; None before anything is."""

    def progress(self) -> Progress:
        """Return how far the run is."""

    def trace_line(self) -> dict[str, Any]:
        """Return a line of a trace."""

    @property
    def reported(self) -> CellMethod | None:
        """The method whose cells the record is made of; None before there is one."""

    def score_reported_pair(self) -> None:
        """See to it that the pair to report is scored in every fold, and to the accuracy of decided cells."""


class CellMethod(Strategy, Protocol):
    """A strategy over one grid, whose open cells can be worked on by name."""

    @property
    def run(self) -> Run:
        """What it works with."""

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

    def best_on_all_rows(self, g: int, tau: int) -> PathCell:
        """Return the best subset on all rows at a pair, solved on where it is not proved and there is time."""


def run_to_end(method: Strategy) -> None:
    """Step until the method is finished, and let it finish: the loop of every search, and of those within one."""
    while not method.finished:
        method.step()
    method.finish()
