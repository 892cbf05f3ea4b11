"""Local search for supports in the folds of a problem with squared-error loss (:mod:`.fold_local_search`).

`FoldPasses` searches all folds at once. The supports of a fold depend on its training rows alone, so that the held-out
losses of these supports estimate the held-out losses of the optimal supports. The full data are treated as an
additional fold that holds no row out.

`SampledFolds` searches for supports in a sample of many folds. Supports of the full data are not sufficient, because
they depend on the rows that a fold holds out. If such a support is not optimal in the fold, its held-out loss tends to
be smaller than that of the optimal support. The local search runs in the folds whose removal changes the fit on all
columns most, and in every m-th of the other folds. If held-out losses have a closed form, the supports found are scored
in all folds at once. Otherwise every fold tries the supports found, and a local search at a few gammas follows in every
fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.parallel import Clock, Hands, Moment, run_folds
from sparsecv_mio.problem.problem import gamma_to_lam
from sparsecv_mio.problem.training_moments import TrainingMoments, training_moments
from sparsecv_mio.search.problems.fold_local_search import (
    SAMPLED,
    FoldPaths,
    LocalSearches,
    LocalSearchOfFold,
    largest_searched_size,
    pool_supports,
    search_passes,
)
from sparsecv_mio.search.problems.left_out_folds import FullFit, ScoredTogether, largest_decrease, show_scores
from sparsecv_mio.search.problems.protocol import SupportsFound, SupportsOfPass
from sparsecv_mio.search.state.cells import ALL_ROWS, NO_COLUMN, fill_support, make_support_table
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import SubproblemBounds
from sparsecv_mio.thresholds import FEW_FOLDS, QUICK_WORK
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments
from sparsecv_mio.units import TIE_RTOL

FullSupports = Sequence[Sequence[IntArray]]  # supports of the full data, by gamma and size
IsExpired = Callable[[], bool]


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
    starts : sequence of int arrays
        Supports to try first in every fold.
    """

    def __init__(
        self, data: StandardData, folds: FoldPlan, grid: Grid, hands: Hands | None = None,
        starts: Sequence[IntArray] = (),
    ) -> None:  # fmt: skip
        self.data, self.folds, self.grid, self.hands, self.starts = data, folds, grid, hands or Hands(), starts
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
    ) -> SupportsOfPass:  # fmt: skip
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
        last.sort(key=lambda paths: paths.fold)
        supports = tuple(self._collect_supports(paths, searches.by_fold[paths.fold]) for paths in last)
        is_over = not ahead or until.has_expired()
        if is_over:
            self.clear()
        return SupportsOfPass(supports, is_over, len(last) * len(gammas))

    def _begin(self, request: Request) -> None:
        """Start again for a request; nothing is computed yet."""
        gammas, taus = (np.array(indices, dtype=np.int64) for indices in (request.gammas, request.taus))
        folds = self.folds if request.are_estimates else self.folds.with_all_rows()
        grid = Grid(self.grid.gammas[gammas], self.grid.taus[taus])
        searches = LocalSearches(self.data, folds, grid, 1, Moment(), self.hands)
        self._request, self._searches, self._n_done = request, searches, 0
        self._passes = search_passes(searches, self.starts)

    def _collect_supports(self, paths: FoldPaths, search: LocalSearchOfFold) -> SupportsFound:
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


def bound_objectives(search: LocalSearchOfFold, g: int, supports: Sequence[IntArray]) -> FloatArray:
    """Return upper bounds on objectives of supports and of optima tied with them; inf if there is no bound.

    Parameters
    ----------
    search : LocalSearchOfFold
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


class SampledFolds:
    """Searches of some folds over a part of the grid.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds of the data.
    grid : Grid
        Part of the grid to search.
    full_supports : sequence of sequences of int arrays
        Best known supports of the full data, by gamma and size of the grid.
    n_threads : int
        Number of threads.
    is_expired : callable
        Function that returns True to end a search with its present supports.
    """

    def __init__(
        self, data: StandardData, folds: FoldPlan, grid: Grid, full_supports: FullSupports, n_threads: int,
        is_expired: IsExpired,
    ) -> None:  # fmt: skip
        self.data, self.folds, self.grid, self.full_supports = data, folds, grid, full_supports
        self.n_threads, self.is_expired = n_threads, is_expired
        self.taus = np.minimum(grid.taus, data.choice.max_tau)
        self.lams, self.top = gamma_to_lam(grid.gammas), largest_searched_size(self.taus, data)

    def _make_search(self, fold: int, moments: TrainingMoments) -> LocalSearchOfFold:
        return LocalSearchOfFold(fold, moments.problem(self.data, 1.0), self.lams, self.top)

    def search(self, folds: Sequence[int]) -> list[LocalSearchOfFold]:
        """Search some folds at every gamma."""

        def search_fold(fold: int, moments: TrainingMoments) -> LocalSearchOfFold:
            search = self._make_search(fold, moments)
            search.sweep(range(len(self.lams) - 1, -1, -1), self.is_expired)
            return search

        moments = training_moments(self.data, self.folds, sorted(folds))
        return list(run_folds(moments, search_fold, self.n_threads))

    def score_left_out(
        self, fit_of: Callable[[int], FullFit | None]
    ) -> Iterator[tuple[int, Iterator[SubproblemBounds]]]:
        """Yield the position of each gamma with a usable fit, and the supports of a sample scored in all folds at once.

        The supports of the full data are scored too: they are the only ones if the sampled folds agree.

        Parameters
        ----------
        fit_of : callable
            Function from the position of a gamma to the full-data fit from which folds are held out; None if it cannot
            be used.
        """
        roots = {place: root for place in range(len(self.lams)) if (root := fit_of(place)) is not None}
        if not roots:
            return
        sample = find_influential_folds(next(iter(roots.values())))
        supports, at = pool_supports(self.search(sample.tolist()), self.data.q, len(sample))
        sizes, forced, q = (supports >= 0).sum(axis=1), self.data.forced, self.data.q
        for place, root in roots.items():
            wanted = np.minimum(root.choice.sizes(root.left_out.taus.tolist()), len(root.choice.others))
            offered = [(np.arange(q), t) for t in np.flatnonzero(wanted == len(root.choice.others)).tolist()]
            for a in np.flatnonzero(at == place).tolist():
                support = np.sort(np.append(forced, supports[a, : sizes[a]])).astype(np.int64)
                offered += [(support, t) for t in np.flatnonzero(wanted == sizes[a]).tolist()]
            yield place, _score(root, [support for support, _ in offered], [t for _, t in offered])

    def search_each(self, folds: Sequence[int]) -> Iterator[SupportsFound]:
        """Yield supports of some folds; each fold tries the supports of a sample and is searched at a few gammas."""
        affordable = QUICK_WORK / (self.data.q * self.top**2 * len(folds))
        from_sample = pool_supports(self.search(folds[:: max(len(folds) // SAMPLED, 1)]), self.data.q)
        from_full_data = self._full_supports()

        def search_fold(fold: int, moments: TrainingMoments) -> SupportsFound:
            search = self._make_search(fold, moments)
            for supports, at in (from_sample, from_full_data):
                search.learn(supports, at)
            gammas = choose_gammas(fold, len(self.lams), affordable)
            search.sweep(gammas, self.is_expired)
            for g in gammas:
                columns = search.columns[g][np.isfinite(search.value[g])]
                search.learn(columns, np.full(len(columns), -1))
            paths = search.paths(self.taus, *search.whole.centre_rows(self.data, self.folds.scored_rows(fold)))
            shape = paths.objective.shape
            path_supports = [[paths.support(g, t) for t in range(shape[1])] for g in range(shape[0])]
            upper = np.array([bound_objectives(search, g, row) for g, row in enumerate(path_supports)]).reshape(shape)
            return SupportsFound(fold, path_supports, paths.objective, upper, paths.held_out)

        yield from run_folds(training_moments(self.data, self.folds, sorted(folds)), search_fold, self.n_threads)

    def _full_supports(self) -> tuple[IntArray, IntArray]:
        """Return the supports of the full data, -1 beyond their size, and the positions of their gammas."""
        supports = [(g, support) for g, row in enumerate(self.full_supports) for support in row]
        if len(self.data.forced):
            supports = [(g, np.setdiff1d(support, self.data.forced)) for g, support in supports]
        supports = [(g, support) for g, support in supports if 0 < len(support) <= self.top]
        gammas = np.array([g for g, _ in supports], dtype=np.int64)
        return make_support_table([support for _, support in supports], self.top), gammas


def _score(root: FullFit, supports: list[IntArray], taus: list[int]) -> Iterator[SubproblemBounds]:
    candidates = ScoredTogether(root, supports, taus)
    return root.left_out.map_chunks(
        lambda lo, hi: show_scores(root, candidates.scores(lo, hi), candidates.supports, (lo, hi))
    )


def find_influential_folds(root: FullFit) -> IntArray:
    """Return the folds that change the fit of all columns most when they are held out, and some at even distances.

    Parameters
    ----------
    root : FullFit
        Fit of the full data.
    """
    influence = largest_decrease(root.residual, root.leverage)
    k = len(influence)
    even = np.arange(0, k, -(-k // SAMPLED))
    most = FEW_FOLDS if k > FEW_FOLDS + SAMPLED else k
    return np.union1d(np.argsort(-influence, kind="stable")[:most], even)


def choose_gammas(fold: int, n_gammas: int, on_average: float) -> list[int]:
    """Return the gammas at which a fold is searched: evenly spread, and different ones in the next fold.

    Parameters
    ----------
    fold : int
        Index of the fold.
    n_gammas : int
        Number of gammas.
    on_average : float
        Average number of gammas per fold.

    Returns
    -------
    list of int
        Indices of gammas, in descending order.

    Examples
    --------
    >>> choose_gammas(0, 6, 2.0), choose_gammas(1, 6, 2.0), choose_gammas(0, 3, 9.0)
    ([5, 2], [4, 1], [2, 1, 0])
    """
    if on_average >= n_gammas:
        return list(range(n_gammas - 1, -1, -1))
    step = n_gammas / on_average
    return [g for g in range(n_gammas - 1, -1, -1) if int((g + fold) / step) != int((g + fold + 1) / step)]
