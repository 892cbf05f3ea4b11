"""Rounds of growing effort over open cells: folds on threads, work shared between the taus of a fold."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.state.cells import Archive
from sparsecv_mio.search.state.stored import within
from sparsecv_mio.search.subproblem.fold_solver import FoldSolver

FIRST_EFFORT, EFFORT_GROWTH = 1 << 13, 8


class FoldRounds:
    """Gives every cell of a round the same effort, counted in nodes, and the next round eight times as much.

    Parameters
    ----------
    run : Run

    Attributes
    ----------
    effort : int
        Nodes that a cell may cost in the next round.
    cells : (G, T, K) bool array
        Cells of the round that is under way; empty between rounds.
    folds_left : list of int
        Folds that the round has yet to visit.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.effort = FIRST_EFFORT
        self.cells: BoolArray = np.zeros((0, 0, 0), dtype=bool)
        self.folds_left: list[int] = []

    @property
    def under_way(self) -> bool:
        """Whether a round has been started and not been brought to its end."""
        return self.cells.size > 0

    def start(self, cells: BoolArray) -> None:
        """Begin a round over some cells (G, T, K)."""
        self.cells = cells
        self.folds_left = np.flatnonzero(cells.any(axis=(0, 1))).tolist()

    def continue_round(self) -> None:
        """Bring the round that is under way to its end, or as far as time allows."""
        run, context, wanted = self.run, self.run.context, self.cells
        expired = context.deadline.expired
        solver = FoldSolver(run.state, run.accelerators)
        while self.folds_left:
            # moments are made per visit: parts only where somebody stores the state between them
            size = max(8 * context.threads, context.folds.k // 16) if run.signals.storing else len(self.folds_left)
            which = self.folds_left[:size]
            for nodes in run_folds(
                run.accelerators.training_moments(which),
                lambda fold, moments: solver.run(fold, moments, wanted[:, :, fold], self.effort),
                min(context.threads, len(which)),
            ):
                run.state.counts.add(nodes)
                run.signals.progressed()
                if expired():
                    break
            if expired():  # which folds were worked on is not known: the next round asks for what is open
                self.folds_left = []
                break
            del self.folds_left[:size]
            if self.folds_left:
                run.signals.safe_point()
        self.cells = np.zeros((0, 0, 0), dtype=bool)
        self.effort *= EFFORT_GROWTH
        run.signals.safe_point()

    def run_round(self, cells: BoolArray) -> None:
        """Carry out a round over some cells (G, T, K)."""
        self.start(cells)
        self.continue_round()

    def archive(self) -> Archive:
        """Return where the rounds stand."""
        return {
            "effort": np.array(self.effort),
            "round_cells": self.cells,
            "round_rest": np.array(self.folds_left, dtype=np.int64),
        }

    def check(self, stored: Archive) -> None:
        """Raise `CorruptStore` unless `stored` was archived by rounds over the same grid."""
        context = self.run.context
        within(stored, "round_rest", 0, context.folds.k - 1)
        within(stored, "effort", 0, np.iinfo(np.int64).max)
        if stored["round_cells"].size and stored["round_cells"].shape != context.shape:
            raise CorruptStore("its array round_cells is not of the grid's shape")

    def restore(self, stored: Archive) -> None:
        """Go to where `stored` was archived."""
        self.effort = int(stored["effort"])
        self.cells = stored["round_cells"]
        self.folds_left = stored["round_rest"].tolist()
