"""The searches of all folds: passes in which each fold's supports get better, and what folds learn from each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.kernels.exchange import BETTER
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics.fold_search import FoldPaths, FoldSearch
from sparsecv_mio.search.subproblem.supports import table_of

TABLE_SIZE = 1 << 26  # columns of supports held in all
SEARCHED_FOLDS = 20  # folds, spread evenly, in which columns are kept out in turn
MOST_POOLED = 12  # supports of one gamma and size, those that most folds found first


def seeds_of(supports: Sequence[NDArray[np.integer]], top: int) -> IntArray:
    """Return the supports of 1 to `top` columns as rows (m, top), -1 beyond their size."""
    return table_of([support for support in supports if 0 < len(support) <= top], top)


def pooled(searches: Sequence[FoldSearch], q: int, most: int = MOST_POOLED) -> tuple[IntArray, IntArray]:
    """Collect what the searches of some folds found.

    Parameters
    ----------
    searches : sequence of FoldSearch
        With the same gammas and sizes.
    q : int
        Columns of the data.
    most : int
        Supports of one gamma and size, those that most folds found.

    Returns
    -------
    supports : (m, top) int array
        Columns of the data, -1 beyond the size; none of a gamma and size at which all folds agree.
    gammas : (m,) int array
        Index of the gamma of each.

    Notes
    -----
    Supports are told apart by the sum of random 64-bit keys of their columns; a collision loses a start, no more.
    """
    keys = np.random.default_rng(0).integers(0, 1 << 63, q + 1, dtype=np.int64)
    keys[-1] = 0  # of -1
    seeds: list[IntArray] = []
    found = [search.found() for search in searches]
    for g in range(len(searches[0].lams)):
        columns = np.stack([mine[g] for mine in found])
        sums = keys[columns].sum(axis=-1)
        for size in range(1, columns.shape[1]):
            _, first, count = np.unique(sums[:, size], return_index=True, return_counts=True)
            common = first[np.argsort(-count, kind="stable")[:most]]
            if len(first) > 1:
                seeds.append(np.column_stack([np.full(len(common), g), columns[common, size]]))
    if not seeds:
        return np.empty((0, searches[0].top), dtype=np.int64), np.empty(0, dtype=np.int64)
    both = np.concatenate(seeds)
    return np.ascontiguousarray(both[:, 1:]), np.ascontiguousarray(both[:, 0])


class FoldSearches:
    """A search of every fold. A pass yields what is known of each fold as soon as its search is done with it.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    grid : Grid
    threads : int
    expired : callable
        True ends a pass.

    Attributes
    ----------
    lams : (G,) array
        Halves of the gammas.
    taus : (T,) int array
        Those of the grid, but at most `top` columns.
    top : int
        Largest size that is searched, without columns that are forced in.
    by_fold : dict of int to FoldSearch
    improved : bool
        Whether the present pass made anything better.
    """

    def __init__(
        self, data: StandardData, folds: FoldPlan, grid: Grid, threads: int, expired: Callable[[], bool]
    ) -> None:
        self.data, self.folds, self.threads, self.expired = data, folds, threads, expired
        largest = max(1, int(np.sqrt(TABLE_SIZE / (len(grid.gammas) * folds.k))))
        self.lams, self.taus = grid.gammas / 2.0, np.minimum(grid.taus, min(data.q, largest))
        self.top = max(int(self.taus.max()) - len(data.forced), 1)
        self.by_fold: dict[int, FoldSearch] = {}
        self.improved = False

    @property
    def middle(self) -> int:
        """Index of the middle gamma."""
        return len(self.lams) // 2

    def begin(self, search: FoldSearch, seeds: IntArray) -> FoldPaths:
        """Make the first paths of a fold: a walk at the middle gamma, its supports refitted at every other.

        Parameters
        ----------
        search : FoldSearch
            It is kept.
        seeds : (m, top) int array
            Supports worth trying at every gamma.

        Returns
        -------
        FoldPaths
        """
        self.by_fold[search.fold] = search
        search.learn(seeds, np.full(len(seeds), -1))
        search.sweep([self.middle], self.expired)
        found = search.found()[self.middle, np.isfinite(search.value[self.middle])]
        search.learn(found, np.full(len(found), -1))
        return self.scored(search)

    def walk(self) -> Iterator[FoldPaths]:
        """Walk over the sizes in every fold at every gamma."""

        def work(fold: int, search: FoldSearch) -> FoldPaths:
            search.sweep(self.gamma_order(), self.expired)
            return self.scored(search)

        yield from self.each(work)

    def exchange(self, thorough: bool) -> Iterator[FoldPaths]:
        """Have each fold judge what the others found; if `thorough`, keep columns out in turn in some folds."""
        seeds, at = pooled(list(self.by_fold.values()), self.data.q)
        step = -(-self.folds.k // SEARCHED_FOLDS)

        def work(fold: int, search: FoldSearch) -> FoldPaths:
            search.learn(seeds, at)
            search.sweep(self.gamma_order(), self.expired)
            if thorough and fold % step == 0:
                for g in range(len(self.lams)):
                    search.keep_columns_out(g, self.expired)
                search.sweep(self.gamma_order(), self.expired)
            return self.scored(search)

        yield from self.each(work)

    def each(self, work: Callable[[int, FoldSearch], FoldPaths]) -> Iterator[FoldPaths]:
        """Do some work on the search of every fold, on threads, until the time is over."""
        self.improved = False

        def waiting() -> Iterator[tuple[int, FoldSearch]]:
            for item in sorted(self.by_fold.items()):
                if self.expired():
                    return
                yield item

        yield from run_folds(waiting(), work, min(self.threads, self.folds.k))

    def gamma_order(self) -> list[int]:
        """Return the indices of the gammas in the order of a walk: from the middle up, down, and up again."""
        last = len(self.lams) - 1
        return [*range(last // 2, last + 1), *range(last - 1, -1, -1), *range(1, last)]

    def scored(self, search: FoldSearch) -> FoldPaths:
        """Refit and score what is known of a fold."""
        data = self.data.only(search.of_whole) if len(search.of_whole) < self.data.q else self.data
        last = search.last
        problem, rows = search.whole, self.folds.scored_rows(search.fold)
        found = search.paths(self.taus, *data.about(rows, problem.v_mean, problem.r_mean))
        if last is None or np.any(found.objective < last.objective * (1.0 - BETTER)):
            self.improved = True
        return found
