"""Certified bounds without branching (:mod:`sparsecv_mio.bounds`) for some gammas and taus of the grid."""

from __future__ import annotations

import os
import threading

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.bounds.all_folds import BoundsHooks, Known
from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell
from sparsecv_mio.search.state.deadline import Deadline


class Expiry(threading.Event):
    """A deadline in the form of an event: set once the run should end."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self.deadline = deadline

    def is_set(self) -> bool:
        """Whether the time is over or somebody asked to stop."""
        return self.deadline.expired()


def bracket(by_cell: CellByCell, gammas: IntArray, taus: IntArray) -> None:
    """Intersect cells of some gammas and taus with the bounds layer; a cell with one support left is decided.

    Parameters
    ----------
    by_cell : CellByCell
    gammas, taus : int arrays
        Indices in the grid.
    """
    run = by_cell.run
    context, cells = run.context, run.state.cells
    if context.deadline.expired() or not len(gammas) or not len(taus):
        return
    supports = [cell.support for result in run.state.all_rows.best for cell in result.cells.values()]
    part = np.ix_(gammas, taus, np.arange(context.folds.k))
    wanted = ~cells.final[part]
    found: dict[tuple[int, int], list[IntArray | None]] = {}
    grid, threads = context.grid, min(context.threads, os.cpu_count() or 1)
    table = compute_bounds(
        context.data, context.folds, grid.gammas[gammas].tolist(), grid.taus[taus].tolist(), threads=threads,
        known=Known(supports, wanted, run.accelerators.training_moments(), run.accelerators.reuses),
        hooks=BoundsHooks(
            stop=Expiry(context.deadline), reused=run.accelerators.note_bounds,
            found=lambda g, fold, best: found.update({(g, fold): best}),
        ),
    )  # fmt: skip
    cells.narrow(part, np.where(wanted, table.lower, 0.0), np.where(wanted, table.upper, np.inf))
    for (g, fold), best in found.items():
        here = [t for t in np.flatnonzero(wanted[g, :, fold]).tolist() if best[t] is not None]
        known = [support for t in here if (support := best[t]) is not None]
        by_cell.solver.try_supports(int(gammas[g]), taus[here], fold, known, table.left[g, here, fold] == 0)
