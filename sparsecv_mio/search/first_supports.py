"""First supports: a good support for every fold, gamma and tau in seconds, before anything is proved.

    for paths in first_supports(data, folds, grid, threads=2, until=deadline):
        error[:, :, paths.fold] = paths.held_out          # (G, T); later paths of a fold replace earlier ones

Every fold comes early with quick supports (a walk over the sizes at the middle gamma, refitted at every other) and then
again, better each time: walks at every gamma, then what the folds learn from each other. A support is chosen by the
training objective of its fold alone, so `held_out` is an estimate of what the optimum of the cell has (theory section
13), and `objective` an upper bound of its training objective: use it as a start (`paths.support(g, t)`), never as a
certificate of the held-out error.

Where Gram matrices of all columns are too large, every fold searches on a working set of columns (`WorkingSets`). It
holds what a forward selection on the training rows picked; it grows by the column that is most correlated with each
residual of the supports found on it, and by columns of supports found in other folds. The rows
that a fold leaves out have no influence. Products with all columns go through BLAS, many residuals at once; no matrix
is q x q.

It is meant for up to about a thousand folds. With more (leave-one-out of many rows) the supports of all rows, refitted
in every fold by the identities of theory section 5 (:mod:`sparsecv_mio.search.leave_fold_out`), are cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BLOCK_NUMBERS, STORE_BYTES, BoolArray, FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.kernels import local_search
from sparsecv_mio.kernels import local_search as kernel
from sparsecv_mio.kernels.local_search import BETTER
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.elimination import eliminated
from sparsecv_mio.problem.forward_selection import ForwardSelection, WeightedRows
from sparsecv_mio.problem.problem import SparseProblem, lam_of
from sparsecv_mio.problem.training_moments import TrainingMoments, moments_of_training, training_moments
from sparsecv_mio.search.cells import NO_COLUMN, filled_up, missing_columns, table_of
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.slices import Clock, Hands, Moment
from sparsecv_mio.thresholds import EXACT_COLUMNS, PRODUCT_BYTES, QUICK_WORK, SMALL, SUPPORTS_TRIED

WORST = 1.05  # f of a first replacement, relative to the best, beyond which it is not followed


@dataclass(frozen=True, eq=False)
class FoldPaths:
    """Best supports found in one fold, for every gamma and tau: of tau features, where columns are not too many.

    Attributes
    ----------
    fold : int
    objective : (G, T) array
        Training objective of each support, standard units.
    held_out : (G, T) array
        Sum of squares of the held-out rows, standard units.
    columns : (G, T, top) int array
        The supports in ascending order, -1 beyond their size.
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
    """What the search of a fold has come to: those attributes of it that change."""

    value: FloatArray
    columns: IntArray
    settled: BoolArray
    kept_out: set[bytes]
    last: FoldPaths | None


def _moments_of(problem: SparseProblem) -> local_search.PenalisedMoments:
    return local_search.PenalisedMoments(problem.Q, problem.weight, problem.c, problem.yy)


class FoldSearch:
    """Improves the best supports known of one fold, from the Gram matrix of some of the columns.

    Columns that are forced in are eliminated first, at the middle gamma for all of them: that is near enough to search
    by. What is held is without them; `paths` fits and scores whole supports at their own gamma.

    Parameters
    ----------
    fold : int
    whole : SparseProblem
        Training rows, at any gamma.
    lams : (G,) array
        Halves of the gammas.
    top : int
        Largest size, without columns that are forced in.
    among : (q,) int array, optional
        The columns of the data, ascending, that are those of `whole`; all by default.

    Attributes
    ----------
    part, problem, choice : Eliminated, SparseProblem, Choice
        Without the columns that are forced in, and which these are.
    of_whole, among : int arrays
        The columns of the data that are those of `whole`, and those of `problem`.
    value : (G, top + 1) array
        Least training objective found, by gamma and size; inf where none is known.
    columns : (G, top + 1, top) int array
        Where it was found, in columns of `problem`; -1 beyond the size.
    settled : (G, top + 1) bool array
        Whether exchanges of columns were seen to help no more.
    last : FoldPaths, optional
        What `paths` returned last.
    """

    def __init__(
        self, fold: int, whole: SparseProblem, lams: FloatArray, top: int, among: IntArray | None = None
    ) -> None:
        reduced = (
            eliminated(replace(whole, lam=float(lams[len(lams) // 2]))) if len(whole.forced) else eliminated(whole)
        )
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
        self._kept_out: set[bytes] = set()  # supports whose columns were kept out in turn

    @property
    def _moments(self) -> local_search.PenalisedMoments:
        """Moments and penalty weights as the kernels take them."""
        return _moments_of(self.problem)

    @property
    def _found(self) -> kernel.BestKnown:
        """The best supports known as the kernels take them."""
        return kernel.BestKnown(self.value, self.columns, self.settled)

    def sweep(self, order: Iterable[int], expired: Callable[[], bool]) -> None:
        """Walk up and down the sizes at the gammas of `order`, each from what the one before found.

        Even where the time is over, a first piece of the work is done.
        """
        if not self.problem.q:  # every column is forced in
            return
        scratch = local_search.new_tableau(self.problem.q, self.top)
        visits, phase = np.array(list(order), dtype=np.int64), np.zeros(5, dtype=np.int64)
        while not kernel.sweep(scratch, self._moments, self.lams, self._found, visits, phase, QUICK_WORK):
            if expired():
                return

    def begin(self, seeds: IntArray, middle: int, expired: Callable[[], bool]) -> None:
        """Walk at the middle gamma, and refit the supports at every other.

        Parameters
        ----------
        seeds : (m, top) int array
            Supports worth trying at every gamma.
        middle : int
            Index of that gamma.
        expired : callable
        """
        self.learn(seeds, np.full(len(seeds), -1))
        self.sweep([middle], expired)
        supports = self.found()[middle, np.isfinite(self.value[middle])]
        self.learn(supports, np.full(len(supports), -1))

    def exchange(
        self, seeds: IntArray, at: IntArray, order: Sequence[int], thorough: bool, expired: Callable[[], bool]
    ) -> None:
        """Judge what other folds found, and walk on; if `thorough`, keep columns out in turn.

        Parameters
        ----------
        seeds, at
            As for `learn`.
        order : sequence of int
            As for `sweep`.
        thorough : bool
        expired : callable
        """
        if expired():  # where a worker's answer came too late, this is done here, for the paths that are known
            return
        self.learn(seeds, at)
        self.sweep(order, expired)
        if thorough:
            for g in range(len(self.lams)):
                self.keep_columns_out(g, expired)
            self.sweep(order, expired)

    def learn(self, seeds: IntArray, at: IntArray) -> None:
        """Keep those of some supports that are the best of their size by this fold's training objective.

        Parameters
        ----------
        seeds : (m, top) int array
            Columns of the data, -1 beyond the size; supports with a column that is not searched are left out.
        at : (m,) int array
            The gamma at which to judge each of them; -1 for every gamma.
        """
        if len(seeds) and self.problem.q:
            place = np.minimum(np.searchsorted(self.among, seeds), len(self.among) - 1)
            here = np.where(self.among[place] == seeds, place, NO_COLUMN)
            whole = (here >= 0).sum(axis=1) == (seeds >= 0).sum(axis=1)
            kernel.try_supports_at(self._moments, self.lams, at[whole], here[whole], self._found)

    @property
    def standing(self) -> SearchStanding:
        """What was found so far."""
        return SearchStanding(self.value, self.columns, self.settled, self._kept_out, self.last)

    def go_on_from(self, standing: SearchStanding) -> None:
        """Take what a copy of this search has come to."""
        self.value, self.columns, self.settled, self._kept_out, self.last = standing

    def take_over(self, other: FoldSearch) -> None:
        """Start from what a search of the same fold on fewer columns found."""
        self.learn(other.found().reshape(-1, self.top), np.repeat(np.arange(len(self.lams)), self.top + 1))
        self.last = other.last

    def known(self, g: int, size: int) -> bool:
        """Return whether a support of that size is known."""
        return bool(np.isfinite(self.value[g, size]))

    def found(self) -> IntArray:
        """Return the best supports known (G, top + 1, top), in columns of the data; -1 beyond their size."""
        return np.append(self.among, NO_COLUMN)[self.columns]

    def keep_columns_out(self, g: int, expired: Callable[[], bool]) -> None:
        """At one gamma, force each column of each best support out in turn and search on from there.

        A support that was treated so before, at another gamma, is left out.
        """
        problem = self.problem
        scratch, saved = (local_search.new_tableau(problem.q, self.top) for _ in range(2))
        moments, supports = kernel.penalised(self._moments, self.lams[g]), kernel.at_gamma(self._found, g)
        for size in range(1, min(self.top, problem.q - 1) + 1):
            if expired():
                return
            if self._key(g, size) in self._kept_out:
                continue
            kernel.keep_out(scratch, saved, moments, supports, size, WORST)
            self._kept_out.add(self._key(g, size))

    def _key(self, g: int, size: int) -> bytes:
        """Key of the support of one gamma and size."""
        return np.sort(self.columns[g, size, :size]).tobytes()

    def supports_for(self, sizes: IntArray) -> IntArray:
        """Return supports (G, T, width): all columns, or the best known of a size.

        Where none is known, it is the largest known below, filled up with other columns.
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
        """Refit the best supports known, and score them on the rows left out.

        Parameters
        ----------
        taus : (T,) int array
        V, r : (m, q), (m,) arrays
            Rows left out about the training means, in the columns of `whole`.

        Returns
        -------
        FoldPaths
            Nowhere worse, by training objective, than what was returned before.
        """
        chosen = self._with_forced(self.supports_for(np.array(self.choice.sizes(taus.tolist()), dtype=np.int64)))
        objective, held_out = np.empty(chosen.shape[:2]), np.empty(chosen.shape[:2])
        n_columns = self.choice.n_columns(taus)
        kernel.score(_moments_of(self.whole), self.lams, chosen, n_columns, V, r, objective, held_out)
        best_paths, last = FoldPaths(self.fold, objective, held_out, self._in_data(chosen)), self.last
        if last is not None:  # the tableau drifts a little where a fit is nearly perfect
            worse = last.objective < objective
            objective[worse], held_out[worse] = last.objective[worse], last.held_out[worse]
            best_paths.columns[worse] = last.columns[worse]
        self.last = best_paths
        return best_paths

    def _with_forced(self, chosen: IntArray) -> IntArray:
        """Supports (G, T, top) in the columns of `whole`, those that are forced in first."""
        forced = self.choice.forced
        if not len(forced):
            return chosen
        others = np.append(self.choice.others, NO_COLUMN)[chosen]
        return np.concatenate([np.broadcast_to(forced, (*chosen.shape[:2], len(forced))), others], axis=2)

    def _in_data(self, columns: IntArray) -> IntArray:
        """Supports in ascending columns of the data, the -1 beyond their size last."""
        far = np.iinfo(np.int64).max
        out = np.sort(np.where(columns < 0, far, self.of_whole[columns]), axis=-1)
        out[out == far] = NO_COLUMN
        return out


def improved(
    search: FoldSearch, improve: Callable[..., None], taus: IntArray, rows: tuple[FloatArray, FloatArray],
    expired: Callable[[], bool],
) -> SearchStanding:  # fmt: skip
    """Improve a search, then refit and score what it knows; what it has come to.

    Parameters
    ----------
    search : FoldSearch
        It goes on.
    improve : callable
        `(search, expired=...)`, which does so.
    taus, rows
        As for `FoldSearch.paths`.
    expired : callable
    """
    improve(search, expired=expired)
    search.paths(taus, *rows)
    return search.standing


SAMPLED = 20  # folds, spread evenly, that search at every gamma, and keep columns out in turn


def seeds_of(supports: Sequence[NDArray[np.integer]], top: int) -> IntArray:
    """Return the supports of 1 to `top` columns as rows (m, top), -1 beyond their size."""
    return table_of([support for support in supports if 0 < len(support) <= top], top)


def pooled(searches: Sequence[FoldSearch], q: int, most: int = SUPPORTS_TRIED) -> tuple[IntArray, IntArray]:
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
    pools = [search.found() for search in searches]
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


def largest_searched(taus: IntArray, data: StandardData) -> int:
    """Return the largest size that is searched, without columns that are forced in.

    All columns need no search, but walks that come down from them find more: few columns are searched to the end.
    """
    searched = taus[taus < data.choice.max_tau] if SMALL < data.q <= EXACT_COLUMNS else taus
    return max(data.choice.size(int(searched.max(initial=0))), 1)


class FoldSearches:
    """A search of every fold. A pass yields what is known of each fold as soon as its search is done with it.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    grid : Grid
    threads : int
    until : Clock
        Ends a pass.
    hands : Hands
        Who searches.

    Attributes
    ----------
    lams : (G,) array
        Halves of the gammas.
    taus : (T,) int array
        Those of the grid, as far as supports of so many columns are stored.
    top : int
        Largest size that is searched, without columns that are forced in.
    by_fold : dict of int to FoldSearch
    improved : bool
        Whether the present pass made anything better.
    """

    def __init__(
        self, data: StandardData, folds: FoldPlan, grid: Grid, threads: int, until: Clock, hands: Hands
    ) -> None:
        self.data, self.folds, self.threads, self.until, self.hands = data, folds, threads, until, hands
        largest = max(1, int(np.sqrt(STORE_BYTES / 8 / (len(grid.gammas) * folds.k))))
        self.lams, self.taus = lam_of(grid.gammas), np.minimum(grid.taus, data.choice.tau_of(min(data.q, largest)))
        self.top = largest_searched(self.taus, data)
        self.by_fold: dict[int, FoldSearch] = {}
        self.improved = False

    def expired(self) -> bool:
        """Return True if the present pass has to end."""
        return self.until.expired()

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
        return self.improve(search, partial(FoldSearch.begin, seeds=seeds, middle=self.middle))

    def walk(self) -> Iterator[FoldPaths]:
        """Walk over the sizes in every fold at every gamma."""
        yield from self.each(
            lambda fold, search: self.improve(search, partial(FoldSearch.sweep, order=self.gamma_order()))
        )

    def exchange(self, thorough: bool) -> Iterator[FoldPaths]:
        """Have each fold judge what the others found; if `thorough`, keep columns out in turn in some folds."""
        seeds, at = pooled(list(self.by_fold.values()), self.data.q)
        step = -(-self.folds.k // SAMPLED)

        def work(fold: int, search: FoldSearch) -> FoldPaths:
            deep = thorough and fold % step == 0
            exchange = partial(FoldSearch.exchange, seeds=seeds, at=at, order=self.gamma_order(), thorough=deep)
            return self.improve(search, exchange)

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

    def improve(self, search: FoldSearch, improve: Callable[..., None]) -> FoldPaths:
        """Have the search of a fold improved, refitted and scored, as a slice of work."""
        data = self.data.only(search.of_whole) if len(search.of_whole) < self.data.q else self.data
        last = search.last
        problem, rows = search.whole, self.folds.scored_rows(search.fold)
        rows_left_out, until = problem.about(data, rows), self.until
        search.go_on_from(self.hands.do(improved, search, improve, self.taus, rows_left_out, until=until))
        paths = search.last
        assert paths is not None  # it was scored
        if last is None or np.any(paths.objective < last.objective * (1.0 - BETTER)):
            self.improved = True
        return paths


class WorkingSets:
    """Passes over the folds on working sets of columns, which grow between them.

    Parameters
    ----------
    searches : FoldSearches
        Empty; filled by the passes.
    """

    def __init__(self, searches: FoldSearches) -> None:
        self.searches = searches
        self.rows = WeightedRows(searches.data, searches.folds)
        self._squares: dict[int, NDArray[np.float32]] = {}  # of every column over the training rows, by fold

    def passes(self, seeds: Sequence[NDArray[np.integer]]) -> Iterator[Iterator[FoldPaths]]:
        """Yield passes over the folds, each better than the one before, until growing helps no more."""
        searches = self.searches
        yield self.quick(seeds)
        yield searches.walk()
        yield self.grow()
        while searches.improved:
            yield searches.exchange(thorough=True)
            yield self.grow()

    def quick(self, seeds: Sequence[NDArray[np.integer]]) -> Iterator[FoldPaths]:
        """Make first working sets by forward selection at the middle gamma, and first paths on them."""
        searches, data, folds = self.searches, self.searches.data, self.searches.folds
        if len(data.forced):
            seeds = [np.setdiff1d(support, data.forced) for support in seeds]
        wanted = {int(j) for support in seeds for j in support}

        def work(fold: int, job: tuple[IntArray, IntArray]) -> FoldPaths:
            among, start = job
            return searches.begin(search_on(searches, fold, among), start)

        for batch in fold_batches(folds, data.q):
            squares, slopes = self.rows.squares_and_slopes(batch)
            self._squares |= zip(batch, squares.astype(np.float32), strict=True)
            lam = float(searches.lams[searches.middle])
            forward = ForwardSelection(self.rows, batch, squares, slopes, lam, searches.top)
            forward.run(searches.expired)
            jobs = []
            for fold, picked in zip(batch, forward.picked, strict=True):
                among = at_least(searches.top, [*wanted, *picked], data.q)
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
            searches.by_fold[fold] = grown
            order = searches.gamma_order()
            exchange = partial(FoldSearch.exchange, seeds=seeds, at=at, order=order, thorough=False)
            return searches.improve(grown, exchange)

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
    narrow = searches.data.only(among)
    problem = moments_of_training(narrow, searches.folds.train_rows(fold)).problem(narrow, 1.0)
    return FoldSearch(fold, problem, searches.lams, searches.top, among)


def residuals(search: FoldSearch, rows: WeightedRows) -> FloatArray:
    """Return (m, n) residuals on the training rows of a fold.

    Those of its best supports at the first, the middle and the last gamma, and at the middle one of these with one
    column left out, as many as give a block of products with all columns.
    """
    G, problem = len(search.lams), search.problem
    some = sorted({0, G // 2, G - 1})
    refits = [(g, search.columns[g, s, :s]) for g, s in product(some, range(search.top + 1)) if search.known(g, s)]
    dropped = 0
    for s in range(1, search.top + 1):
        if search.known(G // 2, s) and dropped + s <= BLOCK_NUMBERS // rows.data.q:
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


def columns_to_add(search: FoldSearch, rows: WeightedRows, squares: NDArray[np.float32]) -> IntArray:
    """Return the columns outside of a working set that residuals of its supports are most correlated with.

    Parameters
    ----------
    search : FoldSearch
        On the working set.
    rows : WeightedRows
    squares : (q,) array
        Of every column over the training rows of the fold.

    Returns
    -------
    int array
        Ascending, one of each residual at most.
    """
    length = squares + search.lams[0] * rows.data.weight
    products = rows.products(residuals(search, rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(length > 0.0, products**2 / length, 0.0)
    gain[:, search.of_whole] = 0.0
    return np.unique(gain.argmax(axis=1)[gain.max(axis=1) > 0.0]).astype(np.int64)


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
    size = max(1, BLOCK_NUMBERS // max(q, 1))
    for lo in range(0, folds.k, size):
        yield list(range(lo, min(lo + size, folds.k)))


def first_supports(
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
    folds : FoldPlan
    grid : Grid
    threads : int
    until : Clock, optional
        Asked every few milliseconds; ends the search with what it holds.
    seeds : sequence of int arrays
        Supports (standard columns) worth trying in every fold, at every gamma.
    hands : Hands, optional
        Who searches; the threads by default.

    Yields
    ------
    FoldPaths
        Several times per fold; a later one is never worse in `objective`.

    Notes
    -----
    O(n q^2 log2 k) for the moments and O(top s q) a walk, for each fold and gamma. With more than 1,200 columns, or
    Gram matrices of all folds beyond 512 MB, from the rows on working sets of columns (`WorkingSets`): O(n q) a
    residual. Supports are kept by size: beyond `sqrt(2^26 / (G k))` columns
    (668 for 15 gammas and 10 folds) the largest of these sizes answers for every larger tau.
    """
    searches = FoldSearches(data, folds, grid, threads, until or Moment(), hands or Hands())
    for improved_paths in search_passes(searches, seeds):
        yield from improved_paths
        if searches.expired():
            return


def search_passes(
    searches: FoldSearches, seeds: Sequence[NDArray[np.integer]] = ()
) -> Iterator[Iterator[FoldPaths]]:  # fmt: skip
    """Yield passes over the folds, each better than the one before; a pass is done while it is iterated over.

    Parameters
    ----------
    searches : FoldSearches
        Empty; filled by the passes.
    seeds : sequence of int arrays
        Supports worth trying in every fold, at every gamma.
    """
    data, k = searches.data, searches.folds.k
    too_large = data.q > EXACT_COLUMNS or k * data.q**2 * 8 > PRODUCT_BYTES
    return WorkingSets(searches).passes(seeds) if too_large else _passes(searches, seeds)


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
    starts = seeds_of([np.setdiff1d(seed, data.forced) for seed in seeds] if len(data.forced) else seeds, searches.top)

    def work(fold: int, moments: TrainingMoments) -> FoldPaths:
        return searches.begin(FoldSearch(fold, moments.problem(data, 1.0), searches.lams, searches.top), starts)

    yield from run_folds(training_moments(data, folds), work, min(searches.threads, folds.k))
