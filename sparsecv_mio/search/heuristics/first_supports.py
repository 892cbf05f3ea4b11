"""First supports of all folds: a quick path each, walks at every gamma, then what the folds learn from each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.accumulate import Moments, training_moments
from sparsecv_mio.search.heuristics import wide
from sparsecv_mio.search.heuristics.fold_search import FoldPaths, FoldSearch, IntArray
from sparsecv_mio.search.heuristics.pool import pooled, rows_of
from sparsecv_mio.search.options import Grid
from sparsecv_mio.search.parallel import run_folds

MOST_COLUMNS, GRAMS_BYTES = 1200, 600 << 20  # beyond either, working sets of columns
TABLE_SIZE = 1 << 26  # columns of supports held in all
BETTER = 1e-9  # relative; less is rounding
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
    O(n q^2 log2 k) for the moments and O(top s q) a walk, for each fold and gamma. With more than 1,200 columns, or
    Gram matrices of all folds beyond 600 MB, from the rows on working sets of columns: O(n q) a residual, see `wide`.
    Supports are kept by size: beyond `sqrt(2^26 / (G k))` columns (668 for 15 gammas and 10 folds) the largest of these
    sizes answers for every larger tau.
    """
    too_large = data.q > MOST_COLUMNS or folds.k * data.q**2 * 8 > GRAMS_BYTES
    run = (_WideRun if too_large else _Run)(data, folds, grid, threads, expired)
    for improve in run.passes(seeds):
        yield from improve
        if expired():
            return


class _Run:
    """The searches of all folds and the passes over them."""

    def __init__(
        self, data: StandardData, folds: FoldPlan, grid: Grid, threads: int, expired: Callable[[], bool]
    ) -> None:
        self.data, self.folds, self.threads, self.expired = data, folds, threads, expired
        largest = max(1, int(np.sqrt(TABLE_SIZE / (len(grid.gammas) * folds.k))))
        self.lams, self.taus = grid.gammas / 2.0, np.minimum(grid.taus, min(data.q, largest))
        self.top = max(int(self.taus.max()), 1)
        self.searches: dict[int, FoldSearch] = {}
        self.visits = 0  # exchanges between folds
        self.better = False  # the present pass improved something

    def passes(self, seeds: Sequence[NDArray[np.integer]]) -> Iterator[Iterator[FoldPaths]]:
        """The passes over the folds, each better than the one before."""
        yield self.quick(seeds)
        yield self.there_and_back()
        yield self.exchange_between_folds()
        if self.better:
            yield self.exchange_between_folds()

    def quick(self, seeds: Sequence[NDArray[np.integer]]) -> Iterator[FoldPaths]:
        """A path at the middle gamma, refitted at every other; it is made whatever the clock says."""
        middle, given = len(self.lams) // 2, rows_of(seeds, self.top)

        def work(fold: int, moments: Moments) -> FoldPaths:
            search = FoldSearch(fold, moments.problem(self.data, 1.0), self.lams, self.top)
            return self._quick(search, given, middle)

        yield from run_folds(training_moments(self.data, self.folds), work, min(self.threads, self.folds.k))

    def _quick(self, search: FoldSearch, given: IntArray, middle: int) -> FoldPaths:
        self.searches[search.fold] = search
        search.learn(given, np.full(len(given), -1))
        search.sweep([middle], self.expired)
        found = search.found()[middle, np.isfinite(search.value[middle])]
        search.learn(found, np.full(len(found), -1))
        return self._scored(search)

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
        self.better = False

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
        held_out = self.data.only(search.among) if len(search.among) < self.data.q else self.data
        last = search.last
        found = search.paths(self.taus, *held_out.rows(self.folds.test_rows(search.fold)))
        if last is None or np.any(found.objective < last.objective * (1.0 - BETTER)):
            self.better = True
        return found


class _WideRun(_Run):
    """The same passes on working sets of columns, which grow between them."""

    def passes(self, seeds: Sequence[NDArray[np.integer]]) -> Iterator[Iterator[FoldPaths]]:
        """The passes over the folds; every other one looks at all columns."""
        self.rows = wide.Rows(self.data, self.folds)
        self.spread: dict[int, NDArray[np.float32]] = {}
        yield self.quick(seeds)
        yield self.there_and_back()
        for look in range(wide.LOOKS):
            yield self.widen()
            if not self.better:
                break
            if look == 0:
                yield self.exchange_between_folds()

    def quick(self, seeds: Sequence[NDArray[np.integer]]) -> Iterator[FoldPaths]:
        """Forward selection at the middle gamma makes the first working sets; a walk on each."""
        middle, most = len(self.lams) // 2, wide.largest_working_set(self.folds.k, self.data.q, self.top)
        wanted = {int(j) for support in seeds for j in support}

        def work(fold: int, job: tuple[IntArray, IntArray]) -> FoldPaths:
            among, given = job
            search = wide.working_search(self.data, self.folds, fold, self.lams, self.top, among)
            return self._quick(search, given, middle)

        for batch in wide.fold_batches(self.folds, self.data.q):
            spread = self.rows.spread(batch)
            self.spread |= zip(batch, spread.astype(np.float32), strict=True)
            forward = wide.Forward(self.rows, batch, spread, float(self.lams[middle]), self.top)
            forward.run(self.expired)
            jobs = []
            for fold, picked, named in zip(batch, forward.picked, forward.named, strict=True):
                ranked = [*dict.fromkeys([*wanted, *picked, *sorted(named, key=named.__getitem__)])]
                among = wide.at_least(self.top, ranked[: most + len(wanted)], self.data.q)
                path = [np.array(picked[:size]) for size in range(1, len(picked) + 1)]
                jobs.append((fold, (among, rows_of([*seeds, *path], self.top))))
            yield from run_folds(iter(jobs), work, min(self.threads, len(batch)))

    def widen(self) -> Iterator[FoldPaths]:
        """Add to every working set what residuals and the supports of other folds name, and search on."""
        seeds, at = pooled(list(self.searches.values()), self.data.q)
        named = np.unique(seeds[seeds >= 0])

        def work(fold: int, search: FoldSearch) -> FoldPaths:
            more = wide.columns_to_add(search, self.rows, self.spread[fold])
            among = wide.at_least(self.top, np.concatenate([search.found().ravel(), more, named]), self.data.q)
            grown = wide.working_search(self.data, self.folds, fold, self.lams, self.top, among)
            grown.take_over(search)
            grown.learn(seeds, at)
            grown.sweep(self._visits(), self.expired)
            self.searches[fold] = grown
            return self._scored(grown)

        yield from self._each(work)
