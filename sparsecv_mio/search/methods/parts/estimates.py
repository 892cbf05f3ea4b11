"""Estimates for open cells: in every fold the support with the least training objective that was found anywhere.

The best support of all rows has seen the rows that a fold holds out: where it is not optimal in the fold, its held-out
error tends to be too small. So before anything is reported the folds search by themselves, on their training rows alone
(:mod:`sparsecv_mio.search.heuristics`), and what they find competes with what is known from all rows, from other gammas
and taus and from other folds. The held-out error of the winner is an estimate; it says nothing about the interval of
the cell.

How many folds search depends on what that costs:

============================  ================================  =====================================================
Folds in all                  search                            and the others
============================  ================================  =====================================================
at most `FEW_FOLDS`           all, each also from what the
                              others found
more, where held-out errors   the most influential folds, and   are scored at what these found, all at once
have a closed form            some more
more, at other gammas         some                              try what these found, and search at a few gammas
============================  ================================  =====================================================
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.formulation.backends.native.path import SMALL
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics.first_supports import first_supports
from sparsecv_mio.search.heuristics.fold_search import FoldPaths
from sparsecv_mio.search.heuristics.fold_searches import pooled
from sparsecv_mio.search.methods.parts.first_answers import SEARCH_SHARE, first_answers, offer_paths
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.methods.parts.sampled_folds import Expired, SampledFolds, influential_folds
from sparsecv_mio.search.options import FEW_FOLDS
from sparsecv_mio.search.shared_tree.engines import SharedTrees
from sparsecv_mio.search.shared_tree.first_intervals import offer_supports

GRACE = 0.2  # seconds after the limit in which they may search at the end


class OpenCellEstimates:
    """Supports found by the folds themselves, offered to the open cells, once in a run.

    Parameters
    ----------
    run : Run
    trees : SharedTrees
        Whose closed-form scores evaluate a support in many small folds at once.

    Attributes
    ----------
    done : bool
        Whether the folds have searched.
    """

    def __init__(self, run: Run, trees: SharedTrees) -> None:
        self.run, self.trees = run, trees
        self.done = False

    def before_all(self, once_answered: Callable[[], None] | None = None) -> None:
        """Have the folds, if they are few, and all rows search before anything else where trees are expensive.

        Parameters
        ----------
        once_answered : callable, optional
            As for :func:`~sparsecv_mio.search.methods.parts.first_answers.first_answers`.
        """
        if self.run.context.data.q > SMALL and self.run.context.folds.k <= FEW_FOLDS:
            self.done = True
            first_answers(self.run, once_answered)

    def before_proof(self) -> None:
        """Have the folds search, unless they did, where trees are expensive: estimates, and starts of their trees."""
        if self.run.context.data.q > SMALL and not self.done:
            self.done = True
            self.search_folds(lambda: self.run.context.deadline.share_spent(SEARCH_SHARE))

    def resume(self) -> None:
        """Take note that what the folds found first is among the cells of a stored run."""
        self.done = self.run.context.data.q > SMALL

    def at_end(self) -> None:
        """Have the folds with open cells search, unless they did before."""
        until = time.monotonic() + GRACE

        def expired() -> bool:
            return self.run.context.deadline.expired() and time.monotonic() > until

        if not self.done:
            self.done = True
            self.search_folds(expired)

    def search_folds(self, expired: Expired) -> None:
        """Have the folds search, and offer what they find to their open cells, until `expired`."""
        context, cells = self.run.context, self.run.state.cells
        with cells.lock:
            undecided = ~cells.decided
        if context.data.q == 0 or not undecided.any():
            return
        gammas, taus = (np.flatnonzero(undecided.any(axis=axes)) for axes in ((1, 2), (0, 2)))
        grid = Grid(context.grid.gammas[gammas], context.grid.taus[taus])
        if not grid.taus.max():
            return
        self.run.signals.doing("searching supports in the folds")
        if context.folds.k <= FEW_FOLDS:
            self._offer_all(gammas, taus, self._every_fold(grid, expired), expired)
            return
        gammas = self._in_closed_form(gammas, SampledFolds(self.run, grid, expired))
        if len(gammas):
            sampled = SampledFolds(self.run, Grid(context.grid.gammas[gammas], grid.taus), expired)
            folds = np.flatnonzero(undecided[gammas].any(axis=(0, 1)))
            self._offer_all(gammas, taus, sampled.paths(folds.tolist()), expired)

    def _every_fold(self, grid: Grid, expired: Expired) -> Iterator[FoldPaths]:
        """Have all folds search, each from what is known on all rows and what the others found."""
        context = self.run.context
        known = [cell.support for result in self.run.state.all_rows.best for cell in result.cells.values()]
        distinct = {support.tobytes(): support for support in known}
        return first_supports(context.data, context.folds, grid, context.threads, expired, list(distinct.values()))

    def _in_closed_form(self, gammas: IntArray, sampled: SampledFolds) -> IntArray:
        """Score what a sample of folds finds in all folds, at gammas where closed-form scores serve; the other gammas.

        Parameters
        ----------
        gammas : int array
            Indices of the gammas of `sampled`.
        sampled : SampledFolds
        """
        roots = {g: root for g in gammas.tolist() if (root := self.trees.root(g)) is not None}
        if not roots:
            return gammas
        context = self.run.context
        sample = influential_folds(next(iter(roots.values())))
        supports, at = pooled(sampled.searches(sample.tolist()), context.data.q, len(sample))
        sizes, forced = (supports >= 0).sum(axis=1), context.data.forced
        capped = np.minimum(context.grid.taus, context.data.q) - len(forced)
        taus_of = [np.flatnonzero(capped == size).tolist() for size in sizes.tolist()]
        for g, root in roots.items():
            here = np.flatnonzero(at == int(np.searchsorted(gammas, g))).tolist()
            whole = {a: np.sort(np.append(forced, supports[a, : sizes[a]])).astype(np.int64) for a in here}
            offered = [(whole[a], t) for a in here for t in taus_of[a]]
            if offered:
                offer_supports(root, [support for support, _ in offered], [t for _, t in offered])
        return np.array([g for g in gammas.tolist() if g not in roots], dtype=np.int64)

    def _offer_all(self, gammas: IntArray, taus: IntArray, source: Iterator[FoldPaths], expired: Expired) -> None:
        """Offer what the folds found, in the order of the folds: which cell gets which number in the pool repeats."""
        found: dict[int, FoldPaths] = {}
        for paths in source:
            found[paths.fold] = paths
            if expired():
                break
        for fold in sorted(found):
            offer_paths(self.run, gammas, taus, found[fold])
