"""First supports of all folds: a quick path each, walks at every gamma, then what the folds learn from each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.accumulate import Moments, training_moments
from sparsecv_mio.search.heuristics.fold_search import FoldPaths, FoldSearch
from sparsecv_mio.search.heuristics.pool import pooled, rows_of
from sparsecv_mio.search.request import Grid
from sparsecv_mio.search.threads import run_folds

SEARCHED_FOLDS = 20  # folds, spread, in which columns are kept out in turn


def first_supports(
    data: StandardData,
    folds: FoldPlan,
    grid: Grid,
    threads: int = 1,
    expired: Callable[[], bool] = lambda: False,
    seeds: Sequence[NDArray[np.integer]] = (),
) -> Iterator[FoldPaths]:
    """Yield paths of every fold, quick ones first and then better ones.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    grid : Grid
    threads : int
    expired : callable
        Looked at every few milliseconds; True ends the search with what it holds.
    seeds : sequence of int arrays
        Supports (standard columns) worth trying in every fold, at every gamma.

    Yields
    ------
    FoldPaths
        Several times per fold; a later one is never worse in `objective`.

    Notes
    -----
    O(n q^2 log2 k) for the moments and O(top s q) a walk, for each fold and gamma.
    """
    run = _Run(data, folds, grid, threads, expired)
    yield from run.quick(seeds)
    for improve in (run.there_and_back, run.exchange_between_folds, run.exchange_between_folds):
        if expired():
            return
        yield from improve()


class _Run:
    """The searches of all folds and the passes over them."""

    def __init__(
        self, data: StandardData, folds: FoldPlan, grid: Grid, threads: int, expired: Callable[[], bool]
    ) -> None:
        self.data, self.folds, self.threads, self.expired = data, folds, threads, expired
        self.lams, self.taus = grid.gammas / 2.0, np.minimum(grid.taus, data.q)
        self.top = max(int(self.taus.max()), 1)
        self.searches: dict[int, FoldSearch] = {}
        self.visits = 0

    def quick(self, seeds: Sequence[NDArray[np.integer]]) -> Iterator[FoldPaths]:
        """A path at the middle gamma, refitted at every other; it is made whatever the clock says."""
        middle, given = len(self.lams) // 2, rows_of(seeds, self.top)

        def work(fold: int, moments: Moments) -> FoldPaths:
            search = FoldSearch(fold, moments.problem(self.data, 1.0), self.lams, self.top)
            self.searches[fold] = search
            search.learn(given, np.full(len(given), -1))
            search.sweep([middle], self.expired)
            found = search.columns[middle][np.isfinite(search.value[middle])]
            search.learn(found, np.full(len(found), -1))
            return self._scored(search)

        yield from run_folds(training_moments(self.data, self.folds), work, min(self.threads, self.folds.k))

    def there_and_back(self) -> Iterator[FoldPaths]:
        """Walks at every gamma: from the middle up, down, and up again."""

        def work(fold: int, search: FoldSearch) -> FoldPaths:
            search.sweep(self._visits(), self.expired)
            return self._scored(search)

        yield from self._each(work)

    def exchange_between_folds(self) -> Iterator[FoldPaths]:
        """Each fold judges what the others found; the first time, columns are kept out in turn in some."""
        seeds, at = pooled(list(self.searches.values()), self.data.q)
        self.visits += 1
        thorough = self.visits == 1
        step = -(-self.folds.k // SEARCHED_FOLDS)

        def work(fold: int, search: FoldSearch) -> FoldPaths:
            search.learn(seeds, at)
            search.sweep(self._visits(), self.expired)
            if thorough and fold % step == 0:
                for g in range(len(self.lams)):
                    search.keep_columns_out(g, self.expired)
                search.sweep(self._visits(), self.expired)
            return self._scored(search)

        yield from self._each(work)

    def _each(self, work: Callable[[int, FoldSearch], FoldPaths]) -> Iterator[FoldPaths]:
        def waiting() -> Iterator[tuple[int, FoldSearch]]:
            for item in sorted(self.searches.items()):
                if self.expired():
                    return
                yield item

        yield from run_folds(waiting(), work, min(self.threads, self.folds.k))

    def _visits(self) -> Iterable[int]:
        last = len(self.lams) - 1
        return [*range(last // 2, last + 1), *range(last - 1, -1, -1), *range(1, last)]

    def _scored(self, search: FoldSearch) -> FoldPaths:
        return search.paths(self.taus, *self.data.rows(self.folds.test_rows(search.fold)))
