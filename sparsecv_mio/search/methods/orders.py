"""Which cells are handed to branch-and-bound next, where they are taken one by one.

* Algorithm 1 of the paper. Phase one brackets every h_j(gamma, tau) by the certified bounds of
  :mod:`sparsecv_mio.bounds`. Phase two takes the pair with the least lower bound, its fold with the widest interval,
  and hands that cell to branch-and-bound, until `(UB - LB) / UB <= gap` or the budget of MIOs is spent.
* Grid search, the baseline of the papers: every cell of the grid is an MIO of its own; no bounds, no early stop.
* Bounds without branching alone: Algorithm 1 that stops before its first MIO. Proved where the intervals decide the
  best pair to the gap; a limit with a valid interval otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell
from sparsecv_mio.search.state.cells import Where
from sparsecv_mio.words import Method


@dataclass(frozen=True)
class Order:
    """An order of cells.

    Attributes
    ----------
    name : str
        The word of the method.
    pick : callable
        Returns the cells to solve next, all of one pair; none ends the run.
    brackets : bool
        Whether every cell is bounded without branching first.
    goes_beyond_proof : bool
        Whether cells that the proof leaves open are solved where they are asked for all the same.
    """

    name: str
    pick: Callable[[CellByCell], list[Where]]
    brackets: bool = True
    goes_beyond_proof: bool = True


def widest_of_least(by_cell: CellByCell) -> list[Where]:
    """Return the widest open cells of the pair with the least lower bound, or of the reported one where that is done.

    None once the certificate is closed.
    """
    state, context = by_cell.run.state, by_cell.run.context
    now = state.bounds()
    if now.proved(context.gap):
        return []
    least = np.unravel_index(int(np.argmin(now.lower)), now.lower.shape)
    for g, t in ((int(least[0]), int(least[1])), now.best):
        folds = np.flatnonzero(by_cell.open[g, t])
        if len(folds):
            width = state.cells.upper[g, t, folds] - state.cells.lower[g, t, folds]
            order = np.argsort(-width, kind="stable")[: context.threads]
            return [(g, t, int(folds[i])) for i in order]
    return []


def next_in_grid(by_cell: CellByCell) -> list[Where]:
    """Return the next cells of one pair, in the order of (gamma, tau, fold)."""
    left = np.flatnonzero(~by_cell.submitted)[: by_cell.run.context.threads]
    ahead = [tuple(int(i) for i in np.unravel_index(cell, by_cell.submitted.shape)) for cell in left]
    return [(g, t, fold) for g, t, fold in ahead if (g, t) == ahead[0][:2]]


def none(by_cell: CellByCell) -> list[Where]:
    """Return nothing: no cell is an MIO."""
    return []


ORDERS = {
    Method.ALGORITHM1: Order("algorithm 1", widest_of_least),
    Method.GRID: Order("grid", next_in_grid, brackets=False),
    Method.BOUNDS: Order("bounds", none, goes_beyond_proof=False),
}
