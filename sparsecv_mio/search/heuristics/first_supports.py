"""First supports: a good support for every fold, gamma and tau in seconds, before anything is proved.

    for paths in first_supports(data, folds, grid, threads=2, expired=deadline.expired):
        error[:, :, paths.fold] = paths.held_out          # (G, T); later paths of a fold replace earlier ones

Every fold comes early with quick supports (a walk over the sizes at the middle gamma, refitted at every other) and then
again, better each time: walks at every gamma, then what the folds learn from each other. A support is chosen by the
training objective of its fold alone, so `held_out` is an estimate of what the optimum of the cell has (theory section
13), and `objective` an upper bound of its training objective: use it as a start (`paths.support(g, t)`), never as a
certificate of the held-out error.

It is meant for up to about a thousand folds. With more (leave-one-out of many rows) the supports of all rows, refitted
in every fold by the identities of theory section 5 (:mod:`sparsecv_mio.search.shared_tree`), are cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.accumulate import Moments, training_moments
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics.fold_search import FoldPaths, FoldSearch
from sparsecv_mio.search.heuristics.fold_searches import FoldSearches, seeds_of
from sparsecv_mio.search.heuristics.working_sets import WorkingSets

MOST_COLUMNS, GRAMS_BYTES = 1200, 600 << 20  # beyond either, working sets of columns


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
        Asked every few milliseconds; True ends the search with what it holds.
    seeds : sequence of int arrays
        Supports (standard columns) worth trying in every fold, at every gamma.

    Yields
    ------
    FoldPaths
        Several times per fold; a later one is never worse in `objective`.

    Notes
    -----
    O(n q^2 log2 k) for the moments and O(top s q) a walk, for each fold and gamma. With more than 1,200 columns, or
    Gram matrices of all folds beyond 600 MB, from the rows on working sets of columns: O(n q) a residual
    (:mod:`sparsecv_mio.search.heuristics.working_sets`). Supports are kept by size: beyond `sqrt(2^26 / (G k))` columns
    (668 for 15 gammas and 10 folds) the largest of these sizes answers for every larger tau.
    """
    searches = FoldSearches(data, folds, grid, threads, expired)
    too_large = data.q > MOST_COLUMNS or folds.k * data.q**2 * 8 > GRAMS_BYTES
    passes = WorkingSets(searches).passes(seeds) if too_large else _passes(searches, seeds)
    for improved in passes:
        yield from improved
        if expired():
            return


def _passes(searches: FoldSearches, seeds: Sequence[NDArray[np.integer]]) -> Iterator[Iterator[FoldPaths]]:
    """Yield passes over the folds by Gram matrices of all columns, each better than the one before."""
    yield _quick(searches, seeds)
    yield searches.walk()
    yield searches.exchange(thorough=True)
    if searches.improved:
        yield searches.exchange(thorough=False)


def _quick(searches: FoldSearches, seeds: Sequence[NDArray[np.integer]]) -> Iterator[FoldPaths]:
    """First paths of every fold; they are made even where the time is over."""
    data, folds = searches.data, searches.folds
    given = seeds_of([np.setdiff1d(seed, data.forced) for seed in seeds] if len(data.forced) else seeds, searches.top)

    def work(fold: int, moments: Moments) -> FoldPaths:
        return searches.begin(FoldSearch(fold, moments.problem(data, 1.0), searches.lams, searches.top), given)

    yield from run_folds(training_moments(data, folds), work, min(searches.threads, folds.k))
