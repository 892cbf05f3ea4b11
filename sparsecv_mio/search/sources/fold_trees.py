"""Trees of single folds at some pairs, for as long as their cells are wanted.

A slice visits the folds with cells that are wanted among some pairs, in the order of what they promise. Cost: O(q^3) a
fold and gamma, O(q^2) a node. A tree that ends decides its cell; one that does not leaves the bounds by its incumbent,
and goes on in the next slice. (Begun anew, 49,840 of 540,136 nodes on 64 columns came again in 150 CPU seconds without
a limit, 6.4 of the seconds; 1,424 of 96,419 within a limit of 110.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sparsecv_mio.arrays import BoolArray
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.training_moments import TrainingMoments
from sparsecv_mio.search.cells import CellTable
from sparsecv_mio.search.fold_solver import FoldSolver
from sparsecv_mio.search.run import Run
from sparsecv_mio.search.sources.in_question import taus_named
from sparsecv_mio.thresholds import FEWEST_FOLDS


def promising_folds(cells: CellTable, wanted: BoolArray) -> list[int]:
    """Return the folds with cells that are wanted (G, T, K), those first whose lower ends may rise most."""
    rise = np.where(wanted & np.isfinite(cells.nominal), np.maximum(cells.nominal - cells.lower, 0.0), 0.0)
    order = np.argsort(-rise.sum(axis=(0, 1)), kind="stable")
    return [int(fold) for fold in order if wanted[:, :, fold].any()]


VISITS = 3  # for each slice that is done at once: 10 folds on 8 workers take 1.07 times their share then, not 1.6 times


def visits_each(folds: int, at_once: int) -> int:
    """Return in how many visits each of some folds is worked on: one, where one slice is done at a time.

    Examples
    --------
    >>> visits_each(10, 1), visits_each(10, 10), visits_each(100, 10)
    (1, 3, 1)
    """
    return max(1, -(-VISITS * at_once // folds)) if at_once > 1 else 1


class FoldTrees:
    """Grows trees in the folds of pairs.

    Parameters
    ----------
    run : Run
    wanted : callable
        (G, T, K): the cells that are worth work as things stand.
    racing : bool
        Whether the folds that are done may show that others need no work any more.
    """

    def __init__(self, run: Run, wanted: Callable[[], BoolArray], racing: bool = True) -> None:
        self.run, self.wanted, self.racing = run, wanted, racing

    def grow(self, pairs: BoolArray, effort: int) -> None:
        """Grow trees in the folds of some pairs (G, T): in those first that may raise the sums most.

        A fold of few works on the cells that are still wanted when it starts, one of many on those of its group.

        Parameters
        ----------
        pairs : (G, T) bool array
        effort : int
            Nodes of a tau.
        """
        run, context = self.run, self.run.context
        solver = FoldSolver(run, run.accelerators)

        def visit(fold: int, given: tuple[TrainingMoments, BoolArray]) -> int:
            moments, gammas = given
            cells = of_group if of_group is not None else self.wanted()
            return solver.run(fold, moments, cells[:, :, fold] & pairs & gammas[:, None], effort)

        groups = self._in_turn(self.wanted() & pairs[:, :, None])
        done, every, gammas = 0, sum(map(len, groups)), np.asarray(pairs.any(axis=1))
        words = f"trees: {taus_named(context.said_taus[pairs.any(axis=0)])}, fold"
        for folds in groups:
            run.signals.doing(words, min(done + 1, every), every)
            of_group = self.wanted() if len(folds) > max(2 * context.threads, FEWEST_FOLDS) else None
            visits = min(visits_each(len(folds), context.hands.at_once), int(gammas.sum()))
            parts = self._parts(folds, gammas, visits)
            for ended, nodes in enumerate(run_folds(parts, visit, min(context.threads, visits * len(folds))), start=1):
                run.counts.add(nodes)
                run.signals.doing(words, min(done + ended // visits + 1, every), every)
                run.signals.progressed()
                if context.deadline.expired():
                    return
            done += len(folds)
            run.signals.safe_point()

    def _parts(
        self, folds: Sequence[int], gammas: BoolArray, visits: int
    ) -> Iterator[tuple[int, tuple[TrainingMoments, BoolArray]]]:
        """Yield each fold as often as it is visited, with its moments and those of some gammas (G,) that are due then.

        They are dealt in turn; in a visit, one begins with the supports of the one before.
        """
        turn = np.where(gammas, (np.cumsum(gammas) - 1) % max(visits, 1), -1)
        for fold, moments in self.run.accelerators.training_moments(folds):
            for visit in range(visits):
                yield fold, (moments, turn == visit)

    def _in_turn(self, wanted: BoolArray) -> list[Sequence[int]]:
        """Split the folds with cells that are wanted into groups, those with most to gain first.

        Moments are made a group: there is one where nothing is looked at, and nothing stored, between two. Threads
        wait for each other at its end, so that few folds are one group too (64 columns to the end on two threads: 198
        seconds, 217 in groups of four).
        """
        order = promising_folds(self.run.cells, wanted)
        size = max(2 * self.run.context.threads, len(order) // 16)
        if not self.run.signals.storing and (len(order) < FEWEST_FOLDS or not self.racing):
            size = max(len(order), 1)
        return [order[i : i + size] for i in range(0, len(order), size)]
