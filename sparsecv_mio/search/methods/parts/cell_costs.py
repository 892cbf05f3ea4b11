"""What cells cost so far, and what one is expected to cost: the method joint works where a node raises bounds most."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.search.methods.parts.cell_by_cell import CellByCell
from sparsecv_mio.search.methods.parts.fold_rounds import EFFORT_GROWTH, FIRST_EFFORT
from sparsecv_mio.search.state.cells import Archive, Where

FIRST_NODES = 128  # nodes of a cell before any was solved
MOST_TRIES = 12


class CellCosts:
    """Nodes spent in every fold, and how often a cell was tried with growing effort.

    Parameters
    ----------
    by_cell : CellByCell

    Attributes
    ----------
    spent : (K,) int array
    tries : (G, T, K) int array
    """

    def __init__(self, by_cell: CellByCell) -> None:
        self.by_cell = by_cell
        shape = by_cell.run.context.shape
        self.spent = np.zeros(shape[2], dtype=np.int64)
        self.tries = np.zeros(shape, dtype=np.int8)

    @property
    def tried(self) -> BoolArray:
        """(G, T, K): cells that were handed to branch-and-bound at least once."""
        return np.asarray(self.by_cell.submitted | (self.tries > 0))

    def expected(self, folds: IntArray) -> FloatArray:
        """Nodes a cell of each of some folds is expected to cost, from those of the fold that were solved."""
        solved = self.tried.sum(axis=(0, 1))
        typical = self.spent.sum() / max(int(solved.sum()), 1) if self.spent.any() else FIRST_NODES
        return np.asarray((self.spent[folds] + typical) / (solved[folds] + 1.0))

    @property
    def mean(self) -> float:
        """Mean of the expected cost over all folds."""
        return float(self.expected(np.arange(len(self.spent))).mean())

    def growth(self, g: int, t: int, folds: IntArray) -> FloatArray:
        """Return the factor by which earlier tries in vain raise the cost of cells.

        Parameters
        ----------
        g, t : int
            Indices of gamma and tau.
        folds : int array
        """
        return np.asarray(float(EFFORT_GROWTH) ** self.tries[g, t, folds])

    def effort(self, where: Where) -> int:
        """Return the nodes a cell may cost now: a tree need not be finished while others promise more per node."""
        return FIRST_EFFORT * EFFORT_GROWTH ** int(self.tries[where])

    def try_again(self, cells: BoolArray) -> None:
        """Take note that some cells (G, T, K) were worked on."""
        self.tries[cells] = np.minimum(self.tries[cells] + 1, MOST_TRIES)

    def note(self, where: Where, nodes: int) -> None:
        """Take note of what a cell cost; one that is not decided may be handed over again."""
        self.spent[where[2]] += nodes
        if self.by_cell.mio.native and not self.by_cell.run.state.cells.final[where]:
            self.by_cell.reopen(where)
            self.tries[where] += 1

    def archive(self) -> Archive:
        """Return where it stands."""
        return {"spent": self.spent, "tries": self.tries}

    def check(self, stored: Archive) -> None:
        """Any counts of the grid's shape are such."""

    def restore(self, stored: Archive) -> None:
        """Go to where `stored` was archived."""
        self.spent[...] = stored["spent"]
        self.tries[...] = stored["tries"]
