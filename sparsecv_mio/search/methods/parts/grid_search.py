"""A method over one grid as the loop, the observers and the record see it, and as a checkpoint holds it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparsecv_mio.search.methods.parts.run import GridMethod
from sparsecv_mio.search.observers.progress import Progress, progress_of
from sparsecv_mio.search.observers.signals import Signals
from sparsecv_mio.search.observers.trace import trace_line_of
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.state.state import Snapshot
from sparsecv_mio.search.state.stored import below, check_like, counts_of, prefixed, within

FREE = ("round_cells", "round_rest", "by_engine")  # arrays of any length


class GridSearch:
    """A search over one grid: the method does the work, and here is said how far it is.

    Parameters
    ----------
    method : GridMethod

    Attributes
    ----------
    run : Run
        What the method works with.
    context : Context
    name : str
        The word by which checkpoints and traces know the method.
    """

    def __init__(self, method: GridMethod) -> None:
        self.method, self.run = method, method.run
        self.context, self.name = method.run.context, method.name

    def begin(self) -> None:
        """Take the first steps."""
        self.method.begin()

    def step(self) -> None:
        """Do a portion of work."""
        self.method.step()

    @property
    def finished(self) -> bool:
        """Whether the certificate is closed, or nothing is left to do, or the time is over."""
        return self.method.finished

    def finish(self) -> None:
        """Do what the proof leaves over."""
        self.method.finish()

    def score_reported_pair(self) -> None:
        """See to it that the pair to report is scored in every fold."""
        self.method.score_reported_pair()

    @property
    def reported(self) -> GridSearch:
        """The search whose cells the record is made of: this one."""
        return self

    def snapshot(self, over: bool = False) -> Snapshot:
        """Return copies of all that the record is made of, for any thread; of a search that is over, the cells.

        Parameters
        ----------
        over : bool
            Nothing will be written to the cells any more.
        """
        state = self.run.state
        cells = state.cells if over else state.cells.copy()
        best, oracles = tuple(state.all_rows.best), self.run.accelerators.work(cells)
        mios, engine = self.method.mios(), self.method.engine()
        counts, reached = state.counts, dict(state.counts.reached)
        return Snapshot(
            self.context, cells, best, mios, counts.nodes, engine, oracles, reached=reached, changes=state.changes
        )

    def progress(self) -> Progress:
        """Return how far the search is."""
        return progress_of(self.run.state, self.method.mios(), self.run.signals.phase)

    def trace_line(self) -> dict[str, Any]:
        """Return a line of a trace."""
        return trace_line_of(self.run.state, self.method.mios())

    # -- a checkpoint ------------------------------------------------------------------------------------------------

    def archive(self) -> Archive:
        """Return all that a checkpoint holds: the cells, the counts, and where the parts of the method stand."""
        return prefixed("cells", self.run.state.cells.archive()) | prefixed("run", self._position())

    def _position(self) -> Archive:
        counts = self.run.state.counts
        position = {"nodes": np.array(counts.nodes), "by_engine": np.array(json.dumps(counts.by_engine))}
        for part in self.method.parts:
            position |= part.archive()
        return position

    def resume(self, stored: Archive) -> None:
        """Go to where `stored` was archived; begin where that was before the first steps came to their end.

        Raises
        ------
        CorruptStore
            Before anything is changed, where `stored` is not of the same grid and method.
        """
        here, found = self._position(), below("run", stored)
        check_like(found, here, FREE)
        if "begun" in here and not found["begun"]:
            self.method.begin()
            return
        within(found, "nodes", 0, np.iinfo(np.int64).max)
        decided = counts_of(found["by_engine"])
        for part in self.method.parts:
            part.check(found)
        state, cells = self.run.state, below("cells", stored)
        state.cells.check(cells, self.context.data.q)
        self.method.recompute()
        state.cells.fill(cells)
        state.counts.nodes, state.counts.by_engine = int(found["nodes"]), decided
        for part in self.method.parts:
            part.restore(found)


NewRun = Callable[[Sequence[float], Sequence[int], Signals], GridSearch]  # a run over other gammas and taus, not begun
