"""Rounds of growing effort over open cells: folds on threads, work shared between the taus of a fold."""

from __future__ import annotations

from functools import partial

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.state.cells import Archive, CellTable
from sparsecv_mio.search.state.stored import within
from sparsecv_mio.search.subproblem.fold_solver import FoldSolver

FIRST_EFFORT, EFFORT_GROWTH = 1 << 13, 8
PARTS = 4  # of a round between which pairs are left out


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
        """Begin a round over some cells (G, T, K): folds that promise to raise the lower bounds most come first."""
        self.cells = cells
        self.folds_left = promising_folds(self.run.state.cells, cells)

    def continue_round(self, in_parts: bool = False, grow: bool = True) -> None:
        """Bring the round that is under way to its end, or as far as time allows.

        Parameters
        ----------
        in_parts : bool
            Whether pairs that some of the folds exclude are left out in the next ones.
        grow : bool
            Whether the next round makes more effort.
        """
        run, context = self.run, self.run.context
        expired = context.deadline.expired
        solver = FoldSolver(run.state, run.accelerators)
        done, every = 0, len(self.folds_left)
        while self.folds_left:
            run.signals.doing("trees: fold", done + 1, every)
            which = self.folds_left[: self._folds_at_once(in_parts)]
            wanted = self.cells & run.state.worth_work() if in_parts else self.cells
            for nodes in run_folds(
                run.accelerators.training_moments(which),
                partial(_visit, solver, wanted, self.effort),
                min(context.threads, len(which)),
            ):
                run.state.counts.add(nodes)
                done += 1
                run.signals.doing("trees: fold", min(done + 1, every), every)
                run.signals.progressed()
                if expired():
                    break
            if expired():  # which folds were worked on is not known: the next round asks for what is open
                self.folds_left = []
                break
            del self.folds_left[: len(which)]
            if self.folds_left:
                run.signals.safe_point()
        self.cells = np.zeros((0, 0, 0), dtype=bool)
        if grow:
            self.effort *= EFFORT_GROWTH
        run.signals.safe_point()

    def _folds_at_once(self, in_parts: bool) -> int:
        """Return how many folds are visited before the state may be stored, or pairs are left out."""
        context = self.run.context
        if in_parts:
            return -(-context.folds.k // PARTS)
        # moments are made per visit: parts only where somebody stores the state between them
        return max(8 * context.threads, context.folds.k // 16) if self.run.signals.storing else len(self.folds_left)

    def run_round(self, cells: BoolArray, grow: bool = True) -> None:
        """Carry out a round over some cells (G, T, K).

        Parameters
        ----------
        cells : (G, T, K) bool array
        grow : bool
            Whether the next round makes more effort.
        """
        self.start(cells)
        self.continue_round(grow=grow)

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


def promising_folds(cells: CellTable, wanted: BoolArray) -> list[int]:
    """Return the folds with cells that are wanted (G, T, K), those first whose lower ends may rise most."""
    rise = np.where(wanted & np.isfinite(cells.nominal), np.maximum(cells.nominal - cells.lower, 0.0), 0.0)
    order = np.argsort(-rise.sum(axis=(0, 1)), kind="stable")
    return [int(fold) for fold in order if wanted[:, :, fold].any()]


def _visit(solver: FoldSolver, wanted: BoolArray, effort: int, fold: int, moments: Moments) -> int:
    return solver.run(fold, moments, wanted[:, :, fold], effort)
