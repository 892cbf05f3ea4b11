"""Searches in a sample of many folds, and what the other folds make of what these found."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics.fold_search import FoldPaths, FoldSearch
from sparsecv_mio.search.heuristics.fold_searches import pooled
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.shared_tree.identities import largest_decrease
from sparsecv_mio.search.shared_tree.root_node import RootNode
from sparsecv_mio.search.subproblem.supports import table_of

Expired = Callable[[], bool]

SAMPLED = 20  # folds, spread evenly, that search at every gamma
INFLUENTIAL = 80  # folds beside them, those whose rows influence the fit of all rows most
SEARCH_WORK = 3e8  # multiplications that the searches of the other folds may take together
WALK_WORK = 5.0  # multiplications of one walk over the sizes, by columns and squared largest size


def influential_folds(root: RootNode) -> IntArray:
    """Return the folds that change the fit of all columns most when they are left out, and some spread evenly.

    Parameters
    ----------
    root : RootNode
        The fit of all columns on all rows.
    """
    influence = largest_decrease(root.residual, root.leverage)
    k = len(influence)
    even = np.arange(0, k, -(-k // SAMPLED))
    most = INFLUENTIAL if k > INFLUENTIAL + SAMPLED else k
    return np.union1d(np.argsort(-influence, kind="stable")[:most], even)


def gammas_to_search(fold: int, gammas: int, on_average: float) -> list[int]:
    """Return the gammas at which a fold searches: so many on average, evenly spread, others in the next fold.

    Parameters
    ----------
    fold : int
    gammas : int
        How many there are.
    on_average : float
        Gammas a fold.

    Returns
    -------
    list of int
        Indices, falling.

    Examples
    --------
    >>> gammas_to_search(0, 6, 2.0), gammas_to_search(1, 6, 2.0), gammas_to_search(0, 3, 9.0)
    ([5, 2], [4, 1], [2, 1, 0])
    """
    if on_average >= gammas:
        return list(range(gammas - 1, -1, -1))
    step = gammas / on_average
    return [g for g in range(gammas - 1, -1, -1) if int((g + fold) / step) != int((g + fold + 1) / step)]


class SampledFolds:
    """Searches of some folds over a grid.

    Parameters
    ----------
    run : Run
    grid : Grid
        What is searched: a part of the grid of the run.
    expired : callable
        True ends a search with what it holds.
    """

    def __init__(self, run: Run, grid: Grid, expired: Expired) -> None:
        self.run, self.grid, self.expired = run, grid, expired
        self.data, self.folds = run.context.data, run.context.folds
        self.lams = grid.gammas / 2.0
        self.top = max(int(min(grid.taus.max(), self.data.q)) - len(self.data.forced), 1)

    def _search_of(self, fold: int, moments: Moments) -> FoldSearch:
        return FoldSearch(fold, moments.problem(self.data, 1.0), self.lams, self.top)

    def searches(self, folds: list[int]) -> list[FoldSearch]:
        """Search in some folds at every gamma."""

        def search_in(fold: int, moments: Moments) -> FoldSearch:
            search = self._search_of(fold, moments)
            search.sweep(range(len(self.lams) - 1, -1, -1), self.expired)
            return search

        moments = self.run.accelerators.training_moments(folds)
        return list(run_folds(moments, search_in, self.run.context.threads))

    def paths(self, folds: list[int]) -> Iterator[FoldPaths]:
        """Yield supports of some folds: each tries what a sample of them found, and searches at a few gammas."""
        taus = np.minimum(self.grid.taus, self.data.q)
        affordable = SEARCH_WORK / (WALK_WORK * self.data.q * self.top**2 * len(folds))
        sample = folds[:: max(len(folds) // SAMPLED, 1)]
        from_sample = pooled(self.searches(sample), self.data.q)
        from_all_rows = self._best_on_all_rows()

        def paths_of(fold: int, moments: Moments) -> FoldPaths:
            search = self._search_of(fold, moments)
            for supports, at in (from_sample, from_all_rows):
                search.learn(supports, at)
            gammas = gammas_to_search(fold, len(self.lams), affordable)
            search.sweep(gammas, self.expired)
            for g in gammas:
                found = search.columns[g][np.isfinite(search.value[g])]
                search.learn(found, np.full(len(found), -1))
            problem, rows = search.whole, self.folds.scored_rows(fold)
            return search.paths(taus, *self.data.about(rows, problem.v_mean, problem.r_mean))

        yield from run_folds(self.run.accelerators.training_moments(folds), paths_of, self.run.context.threads)

    def _best_on_all_rows(self) -> tuple[IntArray, IntArray]:
        """Return the best supports known on all rows, -1 beyond their size, and the index in `grid` of their gamma."""
        best, gammas = self.run.state.all_rows.best, self.run.context.grid.gammas
        found = [
            (g, best[int(np.searchsorted(gammas, gamma))].cells[tau].support)
            for g, gamma in enumerate(self.grid.gammas.tolist()) if best
            for tau in self.grid.taus.tolist()
        ]  # fmt: skip
        if len(self.data.forced):
            found = [(g, np.setdiff1d(support, self.data.forced)) for g, support in found]
        found = [(g, support) for g, support in found if 0 < len(support) <= self.top]
        return table_of([support for _, support in found], self.top), np.array([g for g, _ in found], dtype=np.int64)
