"""Initial supports: local search for a support of every fold, gamma and tau, before any proof.

    for paths in search_all_passes(data, folds, grid, threads=2, until=deadline):
        error[:, :, paths.fold] = paths.held_out          # (G, T); later paths of a fold replace earlier ones

The first supports of every fold come from a forward selection through all sizes at the middle gamma, and are refitted
at every other gamma. Then the search repeats forward selection at every gamma and tries the supports of other folds, to
find supports with smaller objectives. Supports are compared only by their training objective. `held_out` is therefore
an estimate of the held-out loss of the best support, and `objective` is an upper bound on the smallest training
objective. The supports are warm starts (`paths.support(g, t)`), never certificates of the held-out error.

If Gram matrices of all columns are too large, every fold searches on a working set of columns (`WorkingSets`). The
working set starts with the columns that a forward selection on the training rows chooses. The column most correlated
with the residual of each support found joins the working set, and so do the columns of supports found in other folds.
The held-out rows of a fold have no influence on its working set. Products with all columns are computed for many
residuals at once, and no matrix over all pairs of columns is stored.

The search is meant for up to about a thousand folds. With more folds (leave-one-out of many rows), a cheaper method is
to refit the supports of the full data in every fold, by the identities of theory section 5 (:mod:`.left_out_folds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product, takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BLOCK_NUMBERS, STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.kernels import local_search as kernel
from sparsecv_mio.kernels.local_search import BETTER
from sparsecv_mio.parallel import Clock, Hands, Moment, run_folds
from sparsecv_mio.problem.moment_fits import ForwardSelection, WeightedRows
from sparsecv_mio.problem.problem import SparseProblem, eliminate_forced_columns, gamma_to_lam
from sparsecv_mio.problem.training_moments import TrainingMoments, moments_of_training, training_moments
from sparsecv_mio.search.state.cells import NO_COLUMN, fill_support, make_support_table, missing_columns
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.thresholds import EXACT_COLUMNS, PRODUCT_BYTES, QUICK_WORK, SMALL, SUPPORTS_TRIED

WORST = 1.05  # objective of a first replacement, relative to the best, beyond which the replacement is not followed


@dataclass(frozen=True, eq=False)
class FoldPaths:
    """The best supports found in one fold, for every gamma and tau: of tau features, if columns are not too many.

    Attributes
    ----------
    fold : int
        Index of the fold.
    objective : (G, T) array
        Training objective of each support, standard units.
    held_out : (G, T) array
        Held-out loss, standard units.
    columns : (G, T, top) int array
        Supports in ascending order, -1 beyond their size.
    """

    fold: int
    objective: FloatArray
    held_out: FloatArray
    columns: IntArray

    def support(self, g: int, t: int) -> IntArray:
        """Return the ascending columns of gamma `g` and tau `t` of the grid."""
        chosen = self.columns[g, t]
        return chosen[chosen >= 0]


class SearchStanding(NamedTuple):
    """The present results of the search of a fold: the attributes of the search that change."""

    value: FloatArray
    columns: IntArray
    settled: BoolArray
    kept_out: set[bytes]
    last: FoldPaths | None


def _penalised_moments(problem: SparseProblem) -> kernel.PenalisedMoments:
    return kernel.PenalisedMoments(problem.Q, problem.weight, problem.c, problem.yy)


class LocalSearchOfFold:
    """A search that improves the best known supports of one fold, from the Gram matrix of some of the columns.

    Forced columns are eliminated first, at the middle gamma for all gammas: that is accurate enough for a search.
    Stored supports omit the forced columns. `paths` fits and scores complete supports at their own gamma.

    Parameters
    ----------
    fold : int
        Index of the fold.
    whole : SparseProblem
        Training rows, at any gamma.
    lams : (G,) array
        Halves of the gammas.
    top : int
        Largest size, without forced columns.
    among : (q,) int array, optional
        Columns of the data, ascending, that are those of `whole`; all columns by default.

    Attributes
    ----------
    part, problem, choice : ReducedProblem, SparseProblem, Choice
        Problem without the forced columns, and the choice of columns that these leave.
    of_whole, among : int arrays
        Columns of the data that are those of `whole`, and those of `problem`.
    value : (G, top + 1) array
        Smallest training objective found, by gamma and size; inf where none is known.
    columns : (G, top + 1, top) int array
        Support of that objective, in columns of `problem`; -1 beyond the size.
    settled : (G, top + 1) bool array
        True where exchanges of columns no longer helped.
    last : FoldPaths, optional
        Last result of `paths`.
    """

    def __init__(
        self, fold: int, whole: SparseProblem, lams: FloatArray, top: int, among: IntArray | None = None
    ) -> None:
        at_middle = replace(whole, lam=float(lams[len(lams) // 2])) if len(whole.forced) else whole
        reduced = eliminate_forced_columns(at_middle)
        problem = reduced.problem
        self.fold, self.whole, self.problem, self.lams, self.top = fold, whole, problem, lams, top
        self.part, self.choice = reduced, reduced.choice
        self.of_whole = np.arange(whole.q) if among is None else among
        self.among = self.of_whole[reduced.choice.others] if len(whole.forced) else self.of_whole
        self.value = np.full((len(lams), top + 1), np.inf)
        self.value[:, 0] = problem.yy
        self.columns = np.full((len(lams), top + 1, top), NO_COLUMN, dtype=np.int64)
        self.settled = np.zeros((len(lams), top + 1), dtype=np.bool_)
        self.last: FoldPaths | None = None
        self._kept_out: set[bytes] = set()  # supports each of whose columns was excluded in turn

    @property
    def _moments(self) -> kernel.PenalisedMoments:
        """Moments and penalty weights in the form that kernels need."""
        return _penalised_moments(self.problem)

    @property
    def _kernel_supports(self) -> kernel.BestKnown:
        """Best known supports in the form that kernels need."""
        return kernel.BestKnown(self.value, self.columns, self.settled)

    def sweep(self, order: Iterable[int], is_expired: Callable[[], bool]) -> None:
        """Walk up and down the sizes at the gammas of `order`, each from the supports found before.

        A first part of the work is done even if the time is over.
        """
        if not self.problem.q:  # every column is forced
            return
        scratch = kernel.new_tableau(self.problem.q, self.top)
        visits, phase = np.array(list(order), dtype=np.int64), np.zeros(5, dtype=np.int64)
        while not kernel.sweep(scratch, self._moments, self.lams, self._kernel_supports, visits, phase, QUICK_WORK):
            if is_expired():
                return

    def begin(self, seeds: IntArray, middle: int, is_expired: Callable[[], bool]) -> None:
        """Walk at the middle gamma, and refit the supports at every other gamma.

        Parameters
        ----------
        seeds : (m, top) int array
            Supports to try at every gamma.
        middle : int
            Index of that gamma.
        is_expired : callable
            Function that returns True once the search has to end.
        """
        self.learn(seeds, np.full(len(seeds), -1))
        self.sweep([middle], is_expired)
        supports = self.best_supports()[middle, np.isfinite(self.value[middle])]
        self.learn(supports, np.full(len(supports), -1))

    def exchange(
        self, seeds: IntArray, at: IntArray, order: Sequence[int], thorough: bool, is_expired: Callable[[], bool]
    ) -> None:
        """Try the supports of other folds, and walk on; if `thorough`, exclude columns in turn.

        Parameters
        ----------
        seeds, at
            Parameters of `learn`.
        order : sequence of int
            Parameter of `sweep`.
        thorough : bool
            True to exclude columns in turn.
        is_expired : callable
            Function that returns True once the search has to end.
        """
        if is_expired():  # after a late answer of a worker, this call only returns the paths already known
            return
        self.learn(seeds, at)
        self.sweep(order, is_expired)
        if thorough:
            for g in range(len(self.lams)):
                self.keep_columns_out(g, is_expired)
            self.sweep(order, is_expired)

    def learn(self, seeds: IntArray, at: IntArray) -> None:
        """Store those of some supports that are the best of their size by the training objective of this fold.

        Parameters
        ----------
        seeds : (m, top) int array
            Columns of the data, -1 beyond the size; supports with a column that is not searched are ignored.
        at : (m,) int array
            Gamma at which each support is tried; -1 for every gamma.
        """
        if len(seeds) and self.problem.q:
            place = np.minimum(np.searchsorted(self.among, seeds), len(self.among) - 1)
            here = np.where(self.among[place] == seeds, place, NO_COLUMN)
            whole = (here >= 0).sum(axis=1) == (seeds >= 0).sum(axis=1)
            kernel.try_seed_supports(self._moments, self.lams, at[whole], here[whole], self._kernel_supports)

    @property
    def standing(self) -> SearchStanding:
        """Present results of the search."""
        return SearchStanding(self.value, self.columns, self.settled, self._kept_out, self.last)

    def adopt_standing(self, standing: SearchStanding) -> None:
        """Continue from the results of a copy of this search."""
        self.value, self.columns, self.settled, self._kept_out, self.last = standing

    def inherit_supports(self, other: LocalSearchOfFold) -> None:
        """Start from the results of a search of the same fold on fewer columns."""
        self.learn(other.best_supports().reshape(-1, self.top), np.repeat(np.arange(len(self.lams)), self.top + 1))
        self.last = other.last

    def has_support(self, g: int, size: int) -> bool:
        """Return True if a support of that size is known."""
        return bool(np.isfinite(self.value[g, size]))

    def best_supports(self) -> IntArray:
        """Return the best known supports (G, top + 1, top), in columns of the data; -1 beyond their size."""
        return np.append(self.among, NO_COLUMN)[self.columns]

    def keep_columns_out(self, g: int, is_expired: Callable[[], bool]) -> None:
        """Exclude at one gamma each column of each best support in turn, and continue the search from there.

        A support that was treated in this way before, at another gamma, is skipped.
        """
        problem = self.problem
        scratch, saved = (kernel.new_tableau(problem.q, self.top) for _ in range(2))
        moments = kernel.penalise_moments(self._moments, self.lams[g])
        supports = kernel.supports_at_gamma(self._kernel_supports, g)
        for size in range(1, min(self.top, problem.q - 1) + 1):
            if is_expired():
                return
            if self._key(g, size) in self._kept_out:
                continue
            kernel.keep_out(scratch, saved, moments, supports, size, WORST)
            self._kept_out.add(self._key(g, size))

    def _key(self, g: int, size: int) -> bytes:
        """Return a key of the support of one gamma and size."""
        return np.sort(self.columns[g, size, :size]).tobytes()

    def select_supports(self, sizes: IntArray) -> IntArray:
        """Return supports (G, T, width): all columns, or the best known support of a size.

        If no support of the size is known, the largest known smaller support is extended by other columns.
        """
        q = self.problem.q
        full = (sizes > self.top) & (sizes >= q)
        width = q if full.any() else self.top
        columns = np.full((len(self.lams), len(sizes), width), NO_COLUMN, dtype=np.int64)
        columns[:, full] = np.arange(width)
        for t, size in enumerate(np.minimum(sizes, self.top).tolist()):
            if full[t]:
                continue
            columns[:, t, : self.top] = self.columns[:, size]
            for g in np.flatnonzero(~np.isfinite(self.value[:, size])).tolist():
                last = int(np.flatnonzero(np.isfinite(self.value[g, : size + 1]))[-1])
                mine = self.columns[g, last, :last]
                more = missing_columns(mine, size, np.arange(min(q, last + size)))
                columns[g, t, :size] = np.concatenate([mine, more])
        return columns

    def paths(self, taus: IntArray, V: FloatArray, r: FloatArray) -> FoldPaths:
        """Refit the best known supports, and score them on the held-out rows.

        Parameters
        ----------
        taus : (T,) int array
            Sizes to fit.
        V, r : (m, q), (m,) arrays
            Held-out rows about the training means, in the columns of `whole`.

        Returns
        -------
        FoldPaths
            Supports whose training objectives are nowhere larger than those of the last result.
        """
        sizes = np.array(self.choice.sizes(taus.tolist()), dtype=np.int64)
        chosen = self._add_forced_columns(self.select_supports(sizes))
        objective, held_out = np.empty(chosen.shape[:2]), np.empty(chosen.shape[:2])
        n_columns = self.choice.n_columns(taus)
        kernel.score(_penalised_moments(self.whole), self.lams, chosen, n_columns, V, r, objective, held_out)
        best_paths, last = FoldPaths(self.fold, objective, held_out, self._map_to_data(chosen)), self.last
        if last is not None:  # the tableau drifts a little where a fit is nearly perfect
            worse = last.objective < objective
            objective[worse], held_out[worse] = last.objective[worse], last.held_out[worse]
            best_paths.columns[worse] = last.columns[worse]
        self.last = best_paths
        return best_paths

    def _add_forced_columns(self, chosen: IntArray) -> IntArray:
        """Return supports (G, T, top) in the columns of `whole`, the forced columns first."""
        forced = self.choice.forced
        if not len(forced):
            return chosen
        others = np.append(self.choice.others, NO_COLUMN)[chosen]
        return np.concatenate([np.broadcast_to(forced, (*chosen.shape[:2], len(forced))), others], axis=2)

    def _map_to_data(self, columns: IntArray) -> IntArray:
        """Return supports in ascending columns of the data, the -1 beyond their size last."""
        far = np.iinfo(np.int64).max
        out = np.sort(np.where(columns < 0, far, self.of_whole[columns]), axis=-1)
        out[out == far] = NO_COLUMN
        return out


def improve_search(
    search: LocalSearchOfFold, improve: Callable[..., None], taus: IntArray, rows: tuple[FloatArray, FloatArray],
    is_expired: Callable[[], bool],
) -> SearchStanding:  # fmt: skip
    """Improve a search, refit and score its supports, and return its results.

    Parameters
    ----------
    search : LocalSearchOfFold
        Search to improve.
    improve : callable
        Function `(search, is_expired=...)` that improves the search.
    taus, rows
        Parameters of `LocalSearchOfFold.paths`.
    is_expired : callable
        Function that returns True once the search has to end.
    """
    improve(search, is_expired=is_expired)
    search.paths(taus, *rows)
    return search.standing


SAMPLED = 20  # number of folds, evenly spread, that search at every gamma and exclude columns in turn


def make_seed_table(supports: Sequence[NDArray[np.integer]], top: int) -> IntArray:
    """Return the supports of 1 to `top` columns as rows (m, top), -1 beyond their size."""
    return make_support_table([support for support in supports if 0 < len(support) <= top], top)


def pool_supports(
    searches: Sequence[LocalSearchOfFold], q: int, most: int = SUPPORTS_TRIED
) -> tuple[IntArray, IntArray]:
    """Collect the supports that the searches of some folds found.

    Parameters
    ----------
    searches : sequence of LocalSearchOfFold
        Searches with the same gammas and sizes.
    q : int
        Number of columns of the data.
    most : int
        Maximum number of supports of one gamma and size; those that most folds found are collected.

    Returns
    -------
    supports : (m, top) int array
        Columns of the data, -1 beyond the size; no support of a gamma and size at which all folds agree.
    gammas : (m,) int array
        Index of the gamma of each support.

    Notes
    -----
    Supports are distinguished by the sum of random 64-bit keys of their columns; a collision loses only a start.
    """
    keys = np.random.default_rng(0).integers(0, 1 << 63, q + 1, dtype=np.int64)
    keys[-1] = 0  # of -1
    seeds: list[IntArray] = []
    pools = [search.best_supports() for search in searches]
    for g in range(len(searches[0].lams)):
        columns = np.stack([mine[g] for mine in pools])
        sums = keys[columns].sum(axis=-1)
        for size in range(1, columns.shape[1]):
            _, first, count = np.unique(sums[:, size], return_index=True, return_counts=True)
            common = first[np.argsort(-count, kind="stable")[:most]]
            if len(first) > 1:
                seeds.append(np.column_stack([np.full(len(common), g), columns[common, size]]))
    if not seeds:
        return np.empty((0, searches[0].top), dtype=np.int64), np.empty(0, dtype=np.int64)
    table = np.concatenate(seeds)
    return np.ascontiguousarray(table[:, 1:]), np.ascontiguousarray(table[:, 0])


def largest_searched_size(taus: IntArray, data: StandardData) -> int:
    """Return the largest size that is searched, without forced columns.

    The size of all columns needs no search, but walks down from it find more. With few columns it is searched too.
    """
    searched = taus[taus < data.choice.max_tau] if SMALL < data.q <= EXACT_COLUMNS else taus
    return max(data.choice.size(int(searched.max(initial=0))), 1)


class LocalSearches:
    """The searches of all folds. A pass yields the paths of each fold as soon as its search has ended.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds of the data.
    grid : Grid
        Grid of the search.
    threads : int
        Number of threads.
    until : Clock
        Clock that ends a pass.
    hands : Hands
        Executor of the searches.

    Attributes
    ----------
    lams : (G,) array
        Halves of the gammas.
    taus : (T,) int array
        Sizes of the grid, limited to the number of columns for which supports are stored.
    top : int
        Largest size that is searched, without forced columns.
    by_fold : dict of int to LocalSearchOfFold
        Search of each fold.
    improved : bool
        True if the present pass improved any support.
    """

    def __init__(
        self, data: StandardData, folds: FoldPlan, grid: Grid, threads: int, until: Clock, hands: Hands
    ) -> None:
        self.data, self.folds, self.threads, self.until, self.hands = data, folds, threads, until, hands
        largest = max(1, int(np.sqrt(STORE_BYTES / 8 / (len(grid.gammas) * folds.k))))
        self.lams = gamma_to_lam(grid.gammas)
        self.taus = np.minimum(grid.taus, data.choice.tau_of(min(data.q, largest)))
        self.top = largest_searched_size(self.taus, data)
        self.by_fold: dict[int, LocalSearchOfFold] = {}
        self.improved = False

    def has_expired(self) -> bool:
        """Return True if the present pass has to end."""
        return self.until.has_expired()

    @property
    def middle(self) -> int:
        """Index of the middle gamma."""
        return len(self.lams) // 2

    def begin(self, search: LocalSearchOfFold, seeds: IntArray) -> FoldPaths:
        """Return the first paths of a fold: a walk at the middle gamma, its supports refitted at every other gamma.

        Parameters
        ----------
        search : LocalSearchOfFold
            Search of the fold, which is stored.
        seeds : (m, top) int array
            Supports to try at every gamma.

        Returns
        -------
        FoldPaths
            Paths of the fold.
        """
        self.by_fold[search.fold] = search
        return self.improve(search, partial(LocalSearchOfFold.begin, seeds=seeds, middle=self.middle))

    def walk(self) -> Iterator[FoldPaths]:
        """Walk over the sizes in every fold at every gamma."""
        yield from self.map_folds(
            lambda fold, search: self.improve(search, partial(LocalSearchOfFold.sweep, order=self.gamma_order()))
        )

    def exchange(self, thorough: bool) -> Iterator[FoldPaths]:
        """Try in each fold the supports of the other folds; if `thorough`, exclude columns in turn in some folds."""
        seeds, at = pool_supports(list(self.by_fold.values()), self.data.q)
        step = -(-self.folds.k // SAMPLED)

        def work(fold: int, search: LocalSearchOfFold) -> FoldPaths:
            deep = thorough and fold % step == 0
            exchange = partial(LocalSearchOfFold.exchange, seeds=seeds, at=at, order=self.gamma_order(), thorough=deep)
            return self.improve(search, exchange)

        yield from self.map_folds(work)

    def map_folds(self, work: Callable[[int, LocalSearchOfFold], FoldPaths]) -> Iterator[FoldPaths]:
        """Run `work` on the search of every fold, on threads, until the time is over."""
        self.improved = False
        waiting = takewhile(lambda _: not self.has_expired(), sorted(self.by_fold.items()))
        yield from run_folds(waiting, work, min(self.threads, self.folds.k))

    def gamma_order(self) -> list[int]:
        """Return the indices of the gammas in the order of a walk: from the middle up, down, and up again."""
        last = len(self.lams) - 1
        return [*range(last // 2, last + 1), *range(last - 1, -1, -1), *range(1, last)]

    def improve(self, search: LocalSearchOfFold, improve: Callable[..., None]) -> FoldPaths:
        """Improve, refit and score the search of a fold as a work unit."""
        data = self.data.only(search.of_whole) if len(search.of_whole) < self.data.q else self.data
        last = search.last
        problem, rows = search.whole, self.folds.scored_rows(search.fold)
        rows_left_out, until = problem.centre_rows(data, rows), self.until
        search.adopt_standing(self.hands.do(improve_search, search, improve, self.taus, rows_left_out, until=until))
        paths = search.last
        assert paths is not None  # it was scored
        if last is None or np.any(paths.objective < last.objective * (1.0 - BETTER)):
            self.improved = True
        return paths


class WorkingSets:
    """Passes over the folds on working sets of columns, which grow between the passes.

    Parameters
    ----------
    searches : LocalSearches
        Empty searches, which the passes fill.
    """

    def __init__(self, searches: LocalSearches) -> None:
        self.searches = searches
        self.rows = WeightedRows(searches.data, searches.folds)
        self._squares: dict[int, NDArray[np.float32]] = {}  # squared lengths of columns over the training rows, by fold

    def passes(self, seeds: Sequence[NDArray[np.integer]]) -> Iterator[Iterator[FoldPaths]]:
        """Yield passes over the folds, each better than the one before, until growing no longer helps."""
        searches = self.searches
        yield self.quick(seeds)
        yield searches.walk()
        yield self.grow()
        while searches.improved:
            yield searches.exchange(thorough=True)
            yield self.grow()

    def quick(self, seeds: Sequence[NDArray[np.integer]]) -> Iterator[FoldPaths]:
        """Build first working sets by forward selection at the middle gamma, and first paths on them."""
        searches, data, folds = self.searches, self.searches.data, self.searches.folds
        if len(data.forced):
            seeds = [np.setdiff1d(support, data.forced) for support in seeds]
        wanted = {int(j) for support in seeds for j in support}

        def work(fold: int, job: tuple[IntArray, IntArray]) -> FoldPaths:
            among, start = job
            return searches.begin(make_fold_search(searches, fold, among), start)

        for batch in fold_batches(folds, data.q):
            squares, slopes = self.rows.squares_and_slopes(batch)
            self._squares |= zip(batch, squares.astype(np.float32), strict=True)
            lam = float(searches.lams[searches.middle])
            forward = ForwardSelection(self.rows, batch, squares, slopes, lam, searches.top)
            forward.pick_columns(searches.has_expired)
            jobs = []
            for fold, picked in zip(batch, forward.picked, strict=True):
                among = pad_columns(searches.top, [*wanted, *picked], data.q)
                path = [np.array(picked[:size]) for size in range(1, len(picked) + 1)]
                jobs.append((fold, (among, make_seed_table([*seeds, *path], searches.top))))
            yield from run_folds(iter(jobs), work, min(searches.threads, len(batch)))

    def grow(self) -> Iterator[FoldPaths]:
        """Add columns to every working set by residuals and by the supports of other folds, and continue the search."""
        searches = self.searches
        seeds, at = pool_supports(list(searches.by_fold.values()), searches.data.q)
        named = np.unique(seeds[seeds >= 0])

        def work(fold: int, search: LocalSearchOfFold) -> FoldPaths:
            more = columns_to_add(search, self.rows, self._squares[fold])
            among = np.concatenate([search.best_supports().ravel(), more, named])
            grown = make_fold_search(searches, fold, pad_columns(searches.top, among, searches.data.q))
            grown.inherit_supports(search)
            searches.by_fold[fold] = grown
            order = searches.gamma_order()
            exchange = partial(LocalSearchOfFold.exchange, seeds=seeds, at=at, order=order, thorough=False)
            return searches.improve(grown, exchange)

        yield from searches.map_folds(work)


def make_fold_search(searches: LocalSearches, fold: int, among: IntArray) -> LocalSearchOfFold:
    """Return a new search of a fold on some ascending columns, by their Gram matrix over its training rows.

    Parameters
    ----------
    searches : LocalSearches
        Searches of all folds.
    fold : int
        Index of the fold.
    among : int array
        Columns to search; forced columns are added.

    Returns
    -------
    LocalSearchOfFold
        Search on these columns.
    """
    if len(searches.data.forced):
        among = np.union1d(among, searches.data.forced)
    narrow = searches.data.only(among)
    problem = moments_of_training(narrow, searches.folds.train_rows(fold)).problem(narrow, 1.0)
    return LocalSearchOfFold(fold, problem, searches.lams, searches.top, among)


def residuals(search: LocalSearchOfFold, rows: WeightedRows) -> FloatArray:
    """Return (m, n) residuals on the training rows of a fold.

    They are the residuals of its best supports at the first, the middle and the last gamma. At the middle gamma,
    supports without one of their columns follow, at most as many as fill a block of products with all columns.
    """
    G, problem = len(search.lams), search.problem
    some = sorted({0, G // 2, G - 1})
    refits = [
        (g, search.columns[g, s, :s]) for g, s in product(some, range(search.top + 1)) if search.has_support(g, s)
    ]
    dropped = 0
    for s in range(1, search.top + 1):
        if search.has_support(G // 2, s) and dropped + s <= BLOCK_NUMBERS // rows.data.q:
            S = search.columns[G // 2, s, :s]
            refits += [(G // 2, np.delete(S, a)) for a in range(s)]
            dropped += s
    whole = search.whole
    centred = rows.data.only(search.of_whole).about(slice(0, rows.data.n), whole.v_mean, whole.r_mean)
    V, r = search.part.reduce_rows(*centred)
    out = np.broadcast_to(r, (len(refits), len(r))).copy()
    for row, (g, S) in zip(out, refits, strict=True):
        M = problem.Q[np.ix_(S, S)] + np.diag(search.lams[g] * problem.weight[S])
        row -= V[:, S] @ np.linalg.lstsq(M, problem.c[S], rcond=None)[0]
    return out * rows.inside([search.fold])


def columns_to_add(search: LocalSearchOfFold, rows: WeightedRows, squares: NDArray[np.float32]) -> IntArray:
    """Return the columns outside of a working set that residuals of its supports are most correlated with.

    Parameters
    ----------
    search : LocalSearchOfFold
        Search on the working set.
    rows : WeightedRows
        Rows of the data.
    squares : (q,) array
        Sums of squares of every column over the training rows of the fold.

    Returns
    -------
    int array
        Ascending columns, at most one for each residual.
    """
    length = squares + search.lams[0] * rows.data.weight
    products = rows.products(residuals(search, rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(length > 0.0, products**2 / length, 0.0)
    gain[:, search.of_whole] = 0.0
    return np.unique(gain.argmax(axis=1)[gain.max(axis=1) > 0.0]).astype(np.int64)


def pad_columns(size: int, columns: Sequence[int] | IntArray, q: int) -> IntArray:
    """Return distinct columns in ascending order, at least `size` of them unless the data have fewer.

    Parameters
    ----------
    size : int
        Minimum number of columns.
    columns : sequence of int
        Columns to include; -1 is ignored. If they are too few, the first other columns of the data are added.
    q : int
        Number of columns of the data.

    Returns
    -------
    int array
        Columns in ascending order.

    Examples
    --------
    >>> pad_columns(4, [7, 1, -1, 7], 10).tolist()
    [0, 1, 2, 7]
    """
    chosen = np.unique(np.asarray(columns, dtype=np.int64))
    chosen = chosen[chosen >= 0]
    return fill_support(chosen, size, np.arange(min(q, size + len(chosen))))


def fold_batches(folds: FoldPlan, q: int) -> Iterator[list[int]]:
    """Yield the folds in groups whose (folds, columns) arrays stay small."""
    size = max(1, BLOCK_NUMBERS // max(q, 1))
    yield from (list(range(lo, min(lo + size, folds.k))) for lo in range(0, folds.k, size))


def search_all_passes(
    data: StandardData,
    folds: FoldPlan,
    grid: Grid,
    threads: int = 1,
    until: Clock | None = None,
    seeds: Sequence[NDArray[np.integer]] = (),
    hands: Hands | None = None,
) -> Iterator[FoldPaths]:
    """Yield paths of every fold, quick ones first and then better ones.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds of the data.
    grid : Grid
        Grid of the search.
    threads : int
        Number of threads.
    until : Clock, optional
        Clock, checked every few milliseconds, that ends the search with its present supports.
    seeds : sequence of int arrays
        Supports (standard columns) to try in every fold, at every gamma.
    hands : Hands, optional
        Executor of the searches; the threads by default.

    Yields
    ------
    FoldPaths
        Paths, several times per fold; a later one is never worse in `objective`.

    Notes
    -----
    O(n q^2 log2 k) for the moments and O(top s q) a walk, for each fold and gamma. With more than 1,200 columns, or
    Gram matrices of all folds beyond 512 MB, the search uses the rows on working sets of columns (`WorkingSets`):
    O(n q) a residual. Supports are stored by size: beyond `sqrt(2^26 / (G k))` columns (668 for 15 gammas and 10
    folds) the largest of these sizes serves every larger tau.
    """
    searches = LocalSearches(data, folds, grid, threads, until or Moment(), hands or Hands())
    for improved_paths in search_passes(searches, seeds):
        yield from improved_paths
        if searches.has_expired():
            return


def search_passes(
    searches: LocalSearches, seeds: Sequence[NDArray[np.integer]] = ()
) -> Iterator[Iterator[FoldPaths]]:  # fmt: skip
    """Yield passes over the folds, each better than the one before; a pass runs while it is iterated over.

    Parameters
    ----------
    searches : LocalSearches
        Empty searches, which the passes fill.
    seeds : sequence of int arrays
        Supports to try in every fold, at every gamma.
    """
    data, k = searches.data, searches.folds.k
    too_large = data.q > EXACT_COLUMNS or k * data.q**2 * 8 > PRODUCT_BYTES
    return WorkingSets(searches).passes(seeds) if too_large else _passes(searches, seeds)


def _passes(searches: LocalSearches, seeds: Sequence[NDArray[np.integer]]) -> Iterator[Iterator[FoldPaths]]:
    """Yield passes over the folds by Gram matrices of all columns, each better than the one before."""
    yield _quick(searches, seeds)
    yield searches.walk()
    yield searches.exchange(thorough=True)
    if searches.improved:
        yield searches.exchange(thorough=False)


def _quick(searches: LocalSearches, seeds: Sequence[NDArray[np.integer]]) -> Iterator[FoldPaths]:
    """Yield the first paths of every fold; they are computed even if the time is over."""
    data, folds = searches.data, searches.folds
    free = [np.setdiff1d(seed, data.forced) for seed in seeds] if len(data.forced) else seeds
    starts = make_seed_table(free, searches.top)

    def work(fold: int, moments: TrainingMoments) -> FoldPaths:
        return searches.begin(LocalSearchOfFold(fold, moments.problem(data, 1.0), searches.lams, searches.top), starts)

    yield from run_folds(training_moments(data, folds), work, min(searches.threads, folds.k))
