"""Trees and relaxations on all rows, and the training-loss bound of every fold by what they prove.

A slice solves all rows at some pairs, one call a gamma. Cost: O(q^3) a gamma, O(q^2) a node, and the refits of what the
folds have come to show, O(T (s^3 + rows s)) a fold. One slice raises the lower ends of all folds of a pair, and what it
proves of one pair bounds its neighbours: larger gammas and smaller taus.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from sparsecv_mio.arrays import STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.training_moments import TrainingMoments
from sparsecv_mio.search.accounts import BoundSource
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.fold_fits import FoldProblem, refits_by_gamma
from sparsecv_mio.search.run import Run, StoredPart
from sparsecv_mio.search.sources.in_question import InQuestion, taus_named
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.subsets import FIRST_LOOK, BestSubsets
from sparsecv_mio.units import TIE_RTOL

TREE_BYTES = STORE_BYTES // 8  # of trees that are kept at one gamma


class LossBounds(StoredPart):
    """A better bound on all rows raises the lower bounds of all folds of a pair at once.

    Parameters
    ----------
    run : Run

    Attributes
    ----------
    values : (G, T, K) array
        At least the training objective of every optimum, tied ones included: that of the supports that the cells
        showed when they were last refitted; inf where they were not.
    """

    stored_as: ClassVar = {
        "loss_values": ("values", 0, np.inf), "loss_refitted": ("_refitted", -1, np.iinfo(np.int32).max),
    }  # fmt: skip

    def __init__(self, run: Run) -> None:
        self.run = run
        self.values = np.full(run.context.shape, np.inf)
        self._refitted = np.full(run.context.shape, -1, dtype=np.int32)  # the numbers of these supports

    def apply(self, lower: FloatArray | None = None, gammas: IntArray | slice = slice(None)) -> None:
        """Raise the lower ends of all held-out intervals to what the lower bounds on all rows say.

        Cells that show no support yet are offered the best one on all rows.

        Parameters
        ----------
        lower : (G, T) array, optional
            Certified lower bounds of the optimum on all rows, rounding included, beyond those known already; 0 where
            there is none.
        gammas : int array or slice
            Indices of those at which supports may be refitted; all by default.
        """
        self._refit(gammas)
        if lower is not None:
            self.run.all_rows.raise_lower_bounds(lower)
        self.run.raise_lower_ends(self.values)

    def _refit(self, gammas: IntArray | slice) -> None:
        """Refit in every fold the supports that its cells have come to show. O(G T (s^3 + rows s)) a fold."""
        context, cells = self.run.context, self.run.cells
        on_all_rows = self.run.all_rows.of_pairs(lambda cell: cells.pool.number(cell.support))
        with cells.lock:
            shown = np.where(np.isfinite(cells.nominal), cells.support, on_all_rows[:, :, None])
        new = np.zeros(context.shape, dtype=bool)
        new[gammas] = shown[gammas] != self._refitted[gammas]

        def refit(fold: int, moments: TrainingMoments) -> None:
            self._refit_fold(FoldProblem.of(context.data, context.folds, fold, moments), shown, new)

        folds = np.flatnonzero(new.any(axis=(0, 1))).tolist()
        for _ in run_folds(self.run.accelerators.training_moments(folds), refit, context.threads) if folds else ():
            if context.deadline.expired():
                break
        self.values = np.minimum.accumulate(self.values, axis=1)  # what is feasible for tau is so for a larger one

    def _refit_fold(self, here: FoldProblem, shown: IntArray, new: BoolArray) -> None:
        """Refit some supports of a fold, by their numbers (G, T, K), and offer them to its cells."""
        context, pool = self.run.context, self.run.cells.pool
        numbers, at_taus = dict[int, IntArray](), dict[int, IntArray]()
        for g in np.flatnonzero(new[:, :, here.fold].any(axis=1)).tolist():
            numbers[g], at_taus[g] = np.unique(shown[g, new[g, :, here.fold], here.fold], return_inverse=True)
        supports = [
            (float(context.grid.gammas[g]), [pool.supports[number] for number in some.tolist()])
            for g, some in numbers.items()
        ]
        by_gamma = context.hands.do(refits_by_gamma, here, supports, until=context.deadline)
        for (g, some), fits in zip(numbers.items(), by_gamma, strict=False):  # a limit may leave the last ones
            self.run.counts.add(0, problems=1)
            at, place = at_taus[g].reshape(-1), (g, np.flatnonzero(new[g, :, here.fold]), here.fold)
            self.run.cells.offer(place, some[at].astype(np.int32), fits.held_out[at], fits.value[at])
            values = (fits.value + fits.value_error) * (1.0 + TIE_RTOL)
            values = np.where(np.isfinite(values), values, np.inf)[at]
            self.values[place] = np.minimum(self.values[place], values)
            self._refitted[place] = shown[place]


class AllRowsTrees:
    """Solves all rows no further than it takes to exclude a pair.

    Parameters
    ----------
    run : Run
    in_question : InQuestion
    """

    def __init__(self, run: Run, in_question: InQuestion) -> None:
        self.run, self.in_question = run, in_question

    @cached_property
    def loss(self) -> LossBounds:
        """Training-loss bounds; three numbers a cell, so made where all rows are solved."""
        return LossBounds(self.run)

    def enough(self, bars: FloatArray | None = None) -> FloatArray:
        """(G, T): lower bounds on all rows by which sums of lower ends reach bars; inf where unknown.

        Parameters
        ----------
        bars : (G, T) array, optional
            Those from which on a pair is excluded, by default.
        """
        return self.run.enough_to_exclude(self.loss.values, self.in_question.bars() if bars is None else bars)

    def may_exclude(self) -> BoolArray:
        """(G, T): pairs that a tree on all rows can still exclude, against a best pair that is decided.

        It has no more to prove than that, which is easier than what a tree of every fold has to prove.
        """
        cells = self.run.cells
        best = np.unravel_index(int(cells.upper.sum(axis=2).argmin()), cells.upper.shape[:2])
        decided = cells.final[best].all() and np.isfinite(cells.upper[best]).all()
        return np.asarray(decided & (self.enough() <= self.run.all_rows.of_pairs(lambda cell: cell.upper)))

    def solve(
        self, pairs: BoolArray, effort: int, until: Deadline | None = None, bars: FloatArray | None = None
    ) -> None:
        """Solve all rows at some pairs (G, T) as far as an effort goes, and bound the folds by what that proves.

        A pair is left once its lower bound reaches its bar. A tree goes on where the last effort left it.

        Parameters
        ----------
        pairs : (G, T) bool array
        effort : int
            Nodes of a tau; 0 for relaxations.
        until : Deadline, optional
            When to end; by default with the run.
        bars : (G, T) array, optional
            As of `enough`.
        """
        wanted = pairs & ~self.run.all_rows.solved_pairs()
        by_gamma = [(g, np.flatnonzero(wanted[g]).tolist()) for g in np.flatnonzero(wanted.any(axis=1)).tolist()]
        threads = self.run.context.threads
        if len(by_gamma) < threads and effort > FIRST_LOOK:
            by_gamma = [(g, which[i::threads]) for g, which in by_gamma for i in range(threads)]
        by_gamma = [(g, which) for g, which in by_gamma if which]
        with self.run.accounts.of(BoundSource.ALL_ROWS if effort else BoundSource.ALL_ROWS_RELAXED):
            self._solve(by_gamma, pairs, effort, until or self.run.context.deadline, self.enough(bars))
            self.loss.apply()

    def _solve(
        self, by_gamma: list[tuple[int, list[int]]], pairs: BoolArray, effort: int, until: Deadline, enough: FloatArray
    ) -> None:
        """Solve all rows at gammas and taus, by index, until a moment or as far as is enough."""
        run = self.run
        taus = run.context.said_taus[pairs.any(axis=0)]
        words = f"{'trees' if effort else 'relaxations'} on all rows: {taus_named(taus)},"

        def solve_gamma(g: int, which: list[int]) -> int:
            if until.expired():  # else each of the threads that waited would still begin its tree
                return 0
            best = self._best_subsets(g, which, effort, until, enough)
            run.all_rows.improve(g, best)
            return best.nodes

        if by_gamma:
            run.signals.doing(words, 0, len(by_gamma))
        for done, nodes in enumerate(run_folds(by_gamma, solve_gamma, run.context.threads), start=1):
            run.signals.doing(words, done, len(by_gamma))
            run.counts.add(nodes, problems=1)
            if until.expired():
                break

    def _best_subsets(self, g: int, which: list[int], effort: int, until: Deadline, enough: FloatArray) -> BestSubsets:
        """Solve all rows at a gamma and some taus, by index, from the supports of neighbours and folds."""
        run = self.run
        near = [result for result in run.all_rows.best[max(g - 1, 0) : g + 2]]
        taus = run.context.grid.taus[which].tolist()
        starts = [result.by_size[tau].support for result in near for tau in taus]
        numbers = np.unique(run.cells.support[g, which])
        starts += [run.cells.pool.supports[number] for number in numbers.tolist()]
        return run.context.hands.do(
            solve_path, run.all_rows.problem(g), taus, starts=starts, effort=effort, until=until,
            enough=dict(zip(taus, enough[g, which].tolist(), strict=True)), resume=TREE_BYTES if effort else 0,
        )  # fmt: skip
