"""What observers, and the thread that keeps the time, see of a search."""

from __future__ import annotations

from typing import Any, Protocol

from sparsecv_mio.search.observers.progress import Progress
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.state import Snapshot


class Watched(Protocol):
    """A search that can be watched, stored and carried on."""

    @property
    def name(self) -> str:
        """The word by which checkpoints and traces know the method."""

    @property
    def context(self) -> Context:
        """What is searched, in which data, and by when."""

    def snapshot(self) -> Snapshot | None:
        """Return what is known now, for any thread; None before anything is."""

    def progress(self) -> Progress:
        """Return how far the search is."""

    def trace_line(self) -> dict[str, Any]:
        """Return a line of a trace."""

    def archive(self) -> Archive:
        """Return all that a checkpoint holds."""

    def resume(self, stored: Archive) -> None:
        """Go to where `stored` was archived; instead of `begin`.

        Raises
        ------
        CorruptStore
            Where `stored` is not of the same search; nothing is changed then.
        """
