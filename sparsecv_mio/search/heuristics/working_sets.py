"""First supports where Gram matrices of all columns are too large: a working set of columns in every fold.

A working set holds what a forward selection on the training rows picked and nearly picked; it grows by the columns that
are most correlated with the residuals of the supports found on it, and by columns of supports found in other folds. The
rows that a fold leaves out have no influence. Products with all columns go through BLAS, many residuals at once; no
matrix is q x q.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.search.heuristics.fold_search import FoldPaths, FoldSearch
from sparsecv_mio.search.heuristics.fold_searches import FoldSearches, pooled, seeds_of
from sparsecv_mio.search.heuristics.forward_selection import ForwardSelection, TrainingRows
from sparsecv_mio.search.subproblem.supports import filled_up
from sparsecv_mio.units import TINY

FIRST_COLUMNS, MORE_COLUMNS = 240, 120  # of a working set, and by how many it may grow at a time
NOMINATED = 3  # columns a residual nominates
RESIDUAL_GAMMAS = 5  # at which residuals are taken
MOST_GROWN = 4  # times that working sets grow
MOST_DROPPED = 150  # residuals of a fold with one column left out
GRAM_BYTES = 256 << 20  # of all working sets
BATCH = 1 << 22  # numbers in a (folds, columns) array


class WorkingSets:
    """Passes over the folds on working sets of columns, which grow between them.

    Parameters
    ----------
    searches : FoldSearches
        Empty; filled by the passes.
    """

    def __init__(self, searches: FoldSearches) -> None:
        self.searches = searches
        self.rows = TrainingRows(searches.data, searches.folds)
        self._squares: dict[int, NDArray[np.float32]] = {}  # of every column over the training rows, by fold

    def passes(self, seeds: Sequence[NDArray[np.integer]]) -> Iterator[Iterator[FoldPaths]]:
        """Yield passes over the folds, each better than the one before, until growing helps no more."""
        searches = self.searches
        yield self.quick(seeds)
        yield searches.walk()
        yield self.grow()
        for _ in range(MOST_GROWN - 1):
            if not searches.improved:
                break
            yield searches.exchange(thorough=True)
            yield self.grow()

    def quick(self, seeds: Sequence[NDArray[np.integer]]) -> Iterator[FoldPaths]:
        """Make first working sets by forward selection at the middle gamma, and first paths on them."""
        searches, data, folds = self.searches, self.searches.data, self.searches.folds
        most = largest_working_set(folds.k, data.q, searches.top)
        if len(data.forced):
            seeds = [np.setdiff1d(support, data.forced) for support in seeds]
        wanted = {int(j) for support in seeds for j in support}

        def work(fold: int, job: tuple[IntArray, IntArray]) -> FoldPaths:
            among, given = job
            return searches.begin(search_on(searches, fold, among), given)

        for batch in fold_batches(folds, data.q):
            squares = self.rows.squares(batch)
            self._squares |= zip(batch, squares.astype(np.float32), strict=True)
            forward = ForwardSelection(self.rows, batch, squares, float(searches.lams[searches.middle]), searches.top)
            forward.run(searches.expired)
            jobs = []
            for fold, picked, rank in zip(batch, forward.picked, forward.rank, strict=True):
                ranked = [*dict.fromkeys([*wanted, *picked, *sorted(rank, key=rank.__getitem__)])]
                among = at_least(searches.top, ranked[: most + len(wanted)], data.q)
                path = [np.array(picked[:size]) for size in range(1, len(picked) + 1)]
                jobs.append((fold, (among, seeds_of([*seeds, *path], searches.top))))
            yield from run_folds(iter(jobs), work, min(searches.threads, len(batch)))

    def grow(self) -> Iterator[FoldPaths]:
        """Add to every working set the columns that residuals and the supports of other folds name, and search on."""
        searches = self.searches
        seeds, at = pooled(list(searches.by_fold.values()), searches.data.q)
        named = np.unique(seeds[seeds >= 0])

        def work(fold: int, search: FoldSearch) -> FoldPaths:
            more = columns_to_add(search, self.rows, self._squares[fold])
            among = np.concatenate([search.found().ravel(), more, named])
            grown = search_on(searches, fold, at_least(searches.top, among, searches.data.q))
            grown.take_over(search)
            grown.learn(seeds, at)
            grown.sweep(searches.gamma_order(), searches.expired)
            searches.by_fold[fold] = grown
            return searches.scored(grown)

        yield from searches.each(work)


def search_on(searches: FoldSearches, fold: int, among: IntArray) -> FoldSearch:
    """Return a new search of a fold on some ascending columns, by their Gram matrix over its training rows.

    Parameters
    ----------
    searches : FoldSearches
    fold : int
    among : int array
        Those that are forced in are added.

    Returns
    -------
    FoldSearch
    """
    if len(searches.data.forced):
        among = np.union1d(among, searches.data.forced)
    part = searches.data.only(among)
    problem = row_moments(part, searches.folds.train_rows(fold)).problem(part, 1.0)
    return FoldSearch(fold, problem, searches.lams, searches.top, among)


def largest_working_set(folds: int, columns: int, top: int) -> int:
    """Return how many columns a first working set may hold.

    Parameters
    ----------
    folds : int
        Number of folds, each with a Gram matrix.
    columns : int
        Number of columns of the data.
    top : int
        Largest size searched.

    Returns
    -------
    int
    """
    return min(columns, max(min(FIRST_COLUMNS, int(np.sqrt(GRAM_BYTES / 8 / folds))), 2 * top))


def residuals(search: FoldSearch, rows: TrainingRows) -> FloatArray:
    """Return (m, n) residuals on the training rows of a fold.

    Those of its best supports at some gammas, and at the middle gamma of these with one column left out.
    """
    G, problem = len(search.lams), search.problem
    some = sorted({int(g) for g in np.linspace(0, G - 1, min(G, RESIDUAL_GAMMAS)).round()})
    refits = [(g, search.columns[g, s, :s]) for g, s in product(some, range(search.top + 1)) if search.known(g, s)]
    dropped = 0
    for s in range(1, search.top + 1):
        if search.known(G // 2, s) and dropped + s <= MOST_DROPPED:
            S = search.columns[G // 2, s, :s]
            refits += [(G // 2, np.delete(S, a)) for a in range(s)]
            dropped += s
    whole = search.whole
    V, r = search.part.about(*rows.data.only(search.of_whole).about(slice(0, rows.data.n), whole.v_mean, whole.r_mean))
    out = np.broadcast_to(r, (len(refits), len(r))).copy()
    for row, (g, S) in zip(out, refits, strict=True):
        M = problem.Q[np.ix_(S, S)] + np.diag(search.lams[g] * problem.weight[S])
        row -= V[:, S] @ np.linalg.lstsq(M, problem.c[S], rcond=None)[0]
    return out * rows.inside([search.fold])


def columns_to_add(search: FoldSearch, rows: TrainingRows, squares: NDArray[np.float32]) -> IntArray:
    """Return columns outside of a working set that residuals of its supports are most correlated with.

    Parameters
    ----------
    search : FoldSearch
        On the working set.
    rows : TrainingRows
    squares : (q,) array
        Of every column over the training rows of the fold.

    Returns
    -------
    int array
        The best first, at most `MORE_COLUMNS`.
    """
    length = squares + search.lams[0] * rows.data.weight
    products = rows.products(residuals(search, rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(length > 0.0, products**2 / length, 0.0)
    inside = gain[:, search.of_whole].max(axis=1, initial=0.0)
    gain[:, search.of_whole] = -1.0
    best = np.argpartition(-gain, min(NOMINATED, gain.shape[1]) - 1, axis=1)[:, :NOMINATED]
    share = np.take_along_axis(gain, best, axis=1) / np.maximum(inside, TINY)[:, None]
    order = np.argsort(-share, axis=None, kind="stable")
    named = best.ravel()[order][share.ravel()[order] > 0.0]
    _, first = np.unique(named, return_index=True)
    return named[np.sort(first)][:MORE_COLUMNS].astype(np.int64)


def at_least(size: int, columns: Sequence[int] | IntArray, q: int) -> IntArray:
    """Return distinct columns in ascending order, at least `size` of them where there are so many.

    Parameters
    ----------
    size : int
    columns : sequence of int
        The first others of the data are added where they are too few; -1 is none.
    q : int
        Number of columns of the data.

    Returns
    -------
    int array

    Examples
    --------
    >>> at_least(4, [7, 1, -1, 7], 10).tolist()
    [0, 1, 2, 7]
    """
    chosen = np.unique(np.asarray(columns, dtype=np.int64))
    chosen = chosen[chosen >= 0]
    return filled_up(chosen, size, np.arange(min(q, size + len(chosen))))


def fold_batches(folds: FoldPlan, q: int) -> Iterator[list[int]]:
    """Yield the folds in groups whose (folds, columns) arrays stay small."""
    size = max(1, BATCH // max(q, 1))
    for lo in range(0, folds.k, size):
        yield list(range(lo, min(lo + size, folds.k)))
