"""Local search for supports in all folds at once, with squared-error loss (:mod:`.local_search`).

The supports of a fold depend on its training rows alone, so that their held-out losses estimate the held-out losses of
the optima. The search includes the full data as an additional fold that holds no row out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.search.problems.fold_fits import fit_from_moments
from sparsecv_mio.search.problems.local_search import FoldPaths, FoldSearch, LocalSearches, search_passes
from sparsecv_mio.search.problems.protocol import FoldsSearched, SupportsFound
from sparsecv_mio.search.state.cells import ALL_ROWS, NO_COLUMN, fill_support
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.slices import Clock, Hands, Moment
from sparsecv_mio.units import TIE_RTOL


class Request(NamedTuple):
    """The indices of gammas and sizes to search at, and True if the supports only give estimates."""

    gammas: tuple[int, ...] = ()
    taus: tuple[int, ...] = ()
    are_estimates: bool = False


class FoldPasses:
    """Passes over the folds, each better than the one before; the results of a pass are stored for the next one.

    The results after a number of passes depend on the arguments alone: passes that are not stored are repeated.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds of the data.
    grid : Grid
        Grid of the search.
    hands : Hands, optional
        Executor of the searches; the threads by default.
    """

    def __init__(self, data: StandardData, folds: FoldPlan, grid: Grid, hands: Hands | None = None) -> None:
        self.data, self.folds, self.grid, self.hands = data, folds, grid, hands or Hands()
        self.clear()

    def clear(self) -> None:
        """Remove all stored results."""
        self._request = Request()
        self._searches: LocalSearches | None = None
        self._passes: Iterator[Iterator[FoldPaths]] = iter(())
        self._n_done = 0

    def search(
        self, gammas: Sequence[int], taus: Sequence[int], n_passes: int, n_threads: int, until: Clock,
        are_estimates: bool = False,
    ) -> FoldsSearched:  # fmt: skip
        """Return the supports that the last of some passes finds in every fold and in the full data.

        Parameters
        ----------
        gammas, taus : sequences of int
            Indices of the gammas and sizes to search at.
        n_passes : int
            Number of passes. The first pass runs in every fold even after the time is over.
        n_threads : int
            Number of threads.
        until : Clock
            Clock that ends later passes.
        are_estimates : bool
            True if the full data is not searched, and objectives have no bounds.
        """
        request = Request(tuple(gammas), tuple(taus), are_estimates)
        if self._searches is None or request != self._request or self._n_done >= n_passes:
            self._begin(request)
        searches = self._searches
        assert searches is not None  # just begun, or stored
        searches.threads, searches.until = n_threads, until
        last: list[FoldPaths] = []
        for one_pass in islice(self._passes, n_passes - self._n_done):
            last = list(one_pass)
            self._n_done += 1
        ahead = list(islice(self._passes, 1))  # exists once the pass before has ended; runs when it is iterated over
        self._passes = chain(ahead, self._passes)
        supports = tuple(
            self._collect_supports(paths, searches.by_fold[paths.fold]) for paths in sorted(last, key=_fold_index)
        )
        is_over = not ahead or until.has_expired()
        if is_over:
            self.clear()
        return FoldsSearched(supports, is_over, len(last) * len(gammas))

    def _begin(self, request: Request) -> None:
        """Start again for a request; nothing is computed yet."""
        gammas, taus = (np.array(indices, dtype=np.int64) for indices in (request.gammas, request.taus))
        folds = self.folds if request.are_estimates else self.folds.with_all_rows()
        grid = Grid(self.grid.gammas[gammas], self.grid.taus[taus])
        searches = LocalSearches(self.data, folds, grid, 1, Moment(), self.hands)
        self._request, self._searches, self._n_done = request, searches, 0
        self._passes = search_passes(searches)

    def _collect_supports(self, paths: FoldPaths, search: FoldSearch) -> SupportsFound:
        """Return the supports found in a fold, with upper bounds on their objectives."""
        taus = self.grid.taus[list(self._request.taus)].tolist()
        is_full, sizes = paths.fold == self.folds.k, [self.data.choice.n_columns(tau) for tau in taus]
        shape, q = paths.objective.shape, self.data.q
        supports = [[paths.support(g, t) for t in range(shape[1])] for g in range(shape[0])]
        upper = np.full(shape, np.inf)
        if not self._request.are_estimates:
            upper[...] = [bound_objectives(search, g, row) for g, row in enumerate(supports)]
        if is_full:  # a reported model has the requested number of features
            supports = [
                [fill_support(support, min(size, q), np.arange(min(q, size + len(support))))
                 for size, support in zip(sizes, row, strict=True)]
                for row in supports
            ]  # fmt: skip
        fold = ALL_ROWS if is_full else paths.fold
        return SupportsFound(fold, supports, paths.objective.copy(), upper, paths.held_out.copy())


def _fold_index(paths: FoldPaths) -> int:
    return paths.fold


def bound_objectives(search: FoldSearch, g: int, supports: Sequence[IntArray]) -> FloatArray:
    """Return upper bounds on objectives of supports and of optima tied with them; inf if there is no bound.

    Parameters
    ----------
    search : FoldSearch
        Search of the fold. A support with a column that the search does not have has no bound.
    g : int
        Index of the gamma of the search.
    supports : sequence of int arrays
        Supports in columns of the data.
    """
    columns, upper = search.of_whole, np.full(len(supports), np.inf)
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *supports])
    place_of = np.full(int(max(flat.max(initial=-1), columns.max(initial=-1))) + 1, NO_COLUMN)
    place_of[columns] = np.arange(len(columns))
    ends = np.cumsum([len(support) for support in supports])
    n_missing = np.append(0, np.cumsum(place_of[flat] == NO_COLUMN))[np.append(0, ends)]
    complete = np.flatnonzero(np.diff(n_missing) == 0)
    if len(complete):
        problem = search.whole.with_gamma(2.0 * float(search.lams[g]))
        places = [place_of[supports[t]] for t in complete.tolist()]
        fits = fit_from_moments(problem, places)
        values = (fits.value + fits.value_error) * (1.0 + TIE_RTOL)
        upper[complete] = np.where(np.isfinite(values), values, np.inf)
    return upper
