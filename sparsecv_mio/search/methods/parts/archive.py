"""A run over a grid as arrays, for a checkpoint: its cells, its counts and where its parts stand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.state.stored import below, check_like, counts_of, prefixed, within

FREE = ("round_cells", "round_rest", "by_engine")  # arrays of any length


class Stored(Protocol):
    """A part of a method that a checkpoint holds."""

    def archive(self) -> Archive:
        """Return where it stands."""

    def check(self, stored: Archive) -> None:
        """Raise `CorruptStore` unless it can go to where `stored` was archived."""

    def restore(self, stored: Archive) -> None:
        """Go to where `stored` was archived."""


def archive_of(run: Run, parts: Sequence[Stored]) -> Archive:
    """Return all that a checkpoint holds of a run."""
    return prefixed("cells", run.state.cells.archive()) | prefixed("run", _own(run, parts))


def _own(run: Run, parts: Sequence[Stored]) -> Archive:
    counts = run.state.counts
    own: dict[str, Any] = {
        "nodes": np.array(counts.nodes),
        "by_engine": np.array(json.dumps(counts.by_engine)),
    }
    for part in parts:
        own |= part.archive()
    return own


def restore(run: Run, parts: Sequence[Stored], stored: Archive, prepare: Callable[[], None]) -> None:
    """Go to where `stored` was archived, after `prepare` has computed what a checkpoint does not hold.

    Parameters
    ----------
    run : Run
    parts : sequence of Stored
        Of its method.
    stored : dict of str to array
    prepare : callable
        Computes again what a checkpoint does not hold.

    Raises
    ------
    CorruptStore
        Before anything is changed, where `stored` is not of the same grid and method.
    """
    own = below("run", stored)
    check_like(own, _own(run, parts), FREE)
    within(own, "nodes", 0, np.iinfo(np.int64).max)
    counted = counts_of(own["by_engine"])
    for part in parts:
        part.check(own)
    run.state.cells.check(below("cells", stored), run.context.data.q)
    prepare()
    run.state.cells.fill(below("cells", stored))
    run.state.counts.nodes = int(own["nodes"])
    run.state.counts.by_engine = counted
    for part in parts:
        part.restore(own)


def begun(stored: Archive) -> bool:
    """Whether a run that picks cells one by one was stored after its first steps; raises `CorruptStore` otherwise."""
    own = below("run", stored)
    check_like(own, {"begun": np.array(False)})
    return bool(own["begun"])
