"""Trees of single folds at some pairs, for as long as the pairs are in question.

A slice visits the folds with cells in question among some pairs, in the order of what they promise. Cost: O(q^3) a fold
and gamma, O(q^2) a node. A tree that ends decides its cell; one that does not leaves the bounds by its incumbent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.training_moments import TrainingMoments
from sparsecv_mio.search.cells import CellTable
from sparsecv_mio.search.fold_solver import FoldSolver
from sparsecv_mio.search.run import Run
from sparsecv_mio.search.sources.in_question import InQuestion, taus_named


def promising_folds(cells: CellTable, wanted: BoolArray) -> list[int]:
    """Return the folds with cells that are wanted (G, T, K), those first whose lower ends may rise most."""
    rise = np.where(wanted & np.isfinite(cells.nominal), np.maximum(cells.nominal - cells.lower, 0.0), 0.0)
    order = np.argsort(-rise.sum(axis=(0, 1)), kind="stable")
    return [int(fold) for fold in order if wanted[:, :, fold].any()]


class FoldTrees:
    """Grows trees in the folds of pairs that are in question.

    Parameters
    ----------
    run : Run
    in_question : InQuestion
    """

    def __init__(self, run: Run, in_question: InQuestion) -> None:
        self.run, self.in_question = run, in_question

    def grow(self, pairs: BoolArray, effort: int, share: float = 1.0, most: int | None = None) -> None:
        """Grow trees in the folds of some pairs (G, T): in those first that may raise the sums most.

        A fold works on the pairs that are still in question when it starts.

        Parameters
        ----------
        pairs : (G, T) bool array
        effort : int
            Nodes of a tau.
        share : float
            Of the time limit that is spent at most.
        most : int, optional
            Folds that are visited at most.
        """
        run, context = self.run, replace(self.run.context, deadline=self.run.context.deadline.sooner(share))
        solver = FoldSolver(replace(run, context=context), run.accelerators)

        def visit(fold: int, moments: TrainingMoments) -> int:
            return solver.run(fold, moments, self.in_question.cells()[:, :, fold] & pairs, effort)

        groups = self._in_turn(self.in_question.cells() & pairs[:, :, None], most)
        done, every = 0, sum(map(len, groups))
        words = f"trees: {taus_named(context.grid.taus[pairs.any(axis=0)])}, fold"
        for folds in groups:
            run.signals.doing(words, min(done + 1, every), every)
            for nodes in run_folds(run.accelerators.training_moments(folds), visit, min(context.threads, len(folds))):
                run.counts.add(nodes)
                done += 1
                run.signals.doing(words, min(done + 1, every), every)
                run.signals.progressed()
                if context.deadline.expired():
                    return
            run.signals.safe_point()

    def _in_turn(self, wanted: BoolArray, most: int | None) -> list[Sequence[int]]:
        """Split the folds with cells that are wanted into groups, those with most to gain first."""
        order = promising_folds(self.run.cells, wanted)[:most]
        size = max(2 * self.run.context.threads, len(order) // 16)
        return [order[i : i + size] for i in range(0, len(order), size)]
