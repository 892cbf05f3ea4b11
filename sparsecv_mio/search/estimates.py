"""Estimates for open cells: in every fold the support with the least training objective that was found anywhere.

The best support of all rows has seen the rows that a fold holds out: where it is not optimal in the fold, its held-out
error tends to be too small. So before anything is reported the folds search by themselves, on their training rows alone
(:mod:`sparsecv_mio.search.first_supports`), and what they find competes with what is known from all rows, from other
gammas and taus and from other folds. The held-out error of the winner is an estimate; it says nothing about the
interval of the cell.

How many folds search depends on what that costs:

============================  ================================  =====================================================
Folds in all                  search                            and the others
============================  ================================  =====================================================
at most `FEW_FOLDS`           all, each also from what the
                              others found
more, where held-out errors   the most influential folds, and   are scored at what these found, all at once
have a closed form            some more
more, at other gammas         some                              try what these found, and search at a few gammas
============================  ================================  =====================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.parallel import run_folds
from sparsecv_mio.problem.problem import lam_of
from sparsecv_mio.problem.training_moments import TrainingMoments
from sparsecv_mio.search.accounts import BoundSource
from sparsecv_mio.search.cells import table_of
from sparsecv_mio.search.first_supports import SAMPLED, FoldPaths, FoldSearch, first_supports, largest_searched, pooled
from sparsecv_mio.search.fold_fits import FoldProblem
from sparsecv_mio.search.fold_solver import FoldSolver
from sparsecv_mio.search.leave_fold_out import RootNode, largest_decrease, listed_supports, offer_supports
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.search.run import SEARCH_SHARE, Run, first_answers, offer_paths
from sparsecv_mio.search.shared_trees import SharedTrees
from sparsecv_mio.slices import Moment
from sparsecv_mio.thresholds import FEW_FOLDS, FOLDS_ONE_BY_ONE, QUICK_WORK, SMALL, SMALL_FOLD

Expired = Callable[[], bool]


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
    most = FEW_FOLDS if k > FEW_FOLDS + SAMPLED else k
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
        self.lams = lam_of(grid.gammas)
        self.top = largest_searched(np.minimum(grid.taus, self.data.q), self.data)

    def _search_of(self, fold: int, moments: TrainingMoments) -> FoldSearch:
        return FoldSearch(fold, moments.problem(self.data, 1.0), self.lams, self.top)

    def searches(self, folds: list[int]) -> list[FoldSearch]:
        """Search in some folds at every gamma."""

        def search_in(fold: int, moments: TrainingMoments) -> FoldSearch:
            search = self._search_of(fold, moments)
            search.sweep(range(len(self.lams) - 1, -1, -1), self.expired)
            return search

        moments = self.run.accelerators.training_moments(folds)
        return list(run_folds(moments, search_in, self.run.context.threads))

    def paths(self, folds: list[int]) -> Iterator[FoldPaths]:
        """Yield supports of some folds: each tries what a sample of them found, and searches at a few gammas."""
        taus = np.minimum(self.grid.taus, self.data.q)
        affordable = QUICK_WORK / (self.data.q * self.top**2 * len(folds))
        sample = folds[:: max(len(folds) // SAMPLED, 1)]
        from_sample = pooled(self.searches(sample), self.data.q)
        from_all_rows = self._best_on_all_rows()

        def paths_of(fold: int, moments: TrainingMoments) -> FoldPaths:
            search = self._search_of(fold, moments)
            for supports, at in (from_sample, from_all_rows):
                search.learn(supports, at)
            gammas = gammas_to_search(fold, len(self.lams), affordable)
            search.sweep(gammas, self.expired)
            for g in gammas:
                columns = search.columns[g][np.isfinite(search.value[g])]
                search.learn(columns, np.full(len(columns), -1))
            problem, rows = search.whole, self.folds.scored_rows(fold)
            return search.paths(taus, *problem.about(self.data, rows))

        yield from run_folds(self.run.accelerators.training_moments(folds), paths_of, self.run.context.threads)

    def _best_on_all_rows(self) -> tuple[IntArray, IntArray]:
        """Return the best supports known on all rows, -1 beyond their size, and the index in `grid` of their gamma."""
        best, gammas = self.run.all_rows.best, self.run.context.grid.gammas
        best_supports = [
            (g, best[int(np.searchsorted(gammas, gamma))].by_size[tau].support)
            for g, gamma in enumerate(self.grid.gammas.tolist()) if best
            for tau in self.grid.taus.tolist()
        ]  # fmt: skip
        if len(self.data.forced):
            best_supports = [(g, np.setdiff1d(support, self.data.forced)) for g, support in best_supports]
        best_supports = [(g, support) for g, support in best_supports if 0 < len(support) <= self.top]
        return table_of([support for _, support in best_supports], self.top), np.array(
            [g for g, _ in best_supports], dtype=np.int64
        )


class OpenCellEstimates:
    """Supports found by the folds themselves, offered to the open cells, once in a run.

    Parameters
    ----------
    run : Run
    trees : SharedTrees
        Whose closed-form scores evaluate a support in many small folds at once.

    Attributes
    ----------
    done : bool
        Whether the folds have searched.
    """

    def __init__(self, run: Run, trees: SharedTrees) -> None:
        self.run, self.trees = run, trees
        self.done = False

    def before_all(self, once_answered: Callable[[], None] | None = None) -> None:
        """Have the folds, if they are few, and all rows search before anything else where trees are expensive.

        Parameters
        ----------
        once_answered : callable, optional
            As for :func:`~sparsecv_mio.search.run.first_answers`.
        """
        if self.run.context.data.q > SMALL and self.run.context.folds.k <= FEW_FOLDS:
            self.done = True
            first_answers(self.run, once_answered)

    def before_proof(self) -> None:
        """Have the folds search, unless they did, where trees are expensive: estimates, and starts of their trees."""
        if self.run.context.data.q > SMALL and not self.done:
            self.done = True
            self.search_folds(self.run.context.deadline.by_share(SEARCH_SHARE).expired)

    def resume(self) -> None:
        """Take note that what the folds found first is among the cells of a stored run."""
        self.done = self.run.context.data.q > SMALL

    def at_end(self) -> None:
        """Have the folds with open cells search, unless they did before."""
        if not self.done:
            self.done = True
            self.search_folds(lambda: not self.run.context.deadline.spare())

    def search_folds(self, expired: Expired) -> None:
        """Have the folds search, and offer what they find to their open cells, until `expired`."""
        context, cells = self.run.context, self.run.cells
        with cells.lock:
            undecided = ~cells.decided
        if context.data.q == 0 or not undecided.any():
            return
        gammas, taus = (np.flatnonzero(undecided.any(axis=axes)) for axes in ((1, 2), (0, 2)))
        grid = Grid(context.grid.gammas[gammas], context.grid.taus[taus])
        if not grid.taus.max():
            return
        with self.run.accounts.of(BoundSource.FIRST_SUPPORTS):
            self._search(gammas, taus, grid, expired)

    def _search(self, gammas: IntArray, taus: IntArray, grid: Grid, expired: Expired) -> None:
        """Have the folds search over a part of the grid, with the indices of its gammas and taus."""
        context = self.run.context
        self.run.signals.doing("searching supports in the folds")
        if context.folds.k <= FEW_FOLDS:
            self._offer_all(gammas, taus, self._every_fold(grid, expired), expired)
            return
        gammas = self._in_closed_form(gammas, SampledFolds(self.run, grid, expired))
        if len(gammas):
            sampled = SampledFolds(self.run, Grid(context.grid.gammas[gammas], grid.taus), expired)
            folds = np.flatnonzero((~self.run.cells.decided[gammas]).any(axis=(0, 1)))
            self._offer_all(gammas, taus, sampled.paths(folds.tolist()), expired)

    def _every_fold(self, grid: Grid, expired: Expired) -> Iterator[FoldPaths]:
        """Have all folds search, each from what is known on all rows and what the others found."""
        context = self.run.context
        supports = [cell.support for result in self.run.all_rows.best for cell in result.by_size.values()]
        distinct = {support.tobytes(): support for support in supports}
        until = Moment(expired, context.deadline.left)
        return first_supports(
            context.data, context.folds, grid, context.threads, until, list(distinct.values()), context.hands
        )

    def _in_closed_form(self, gammas: IntArray, sampled: SampledFolds) -> IntArray:
        """Score what a sample of folds finds in all folds, at gammas where closed-form scores serve; the other gammas.

        Parameters
        ----------
        gammas : int array
            Indices of the gammas of `sampled`.
        sampled : SampledFolds
        """
        roots = {g: root for g in gammas.tolist() if (root := self.trees.root(g)) is not None}
        if not roots:
            return gammas
        context = self.run.context
        sample = influential_folds(next(iter(roots.values())))
        supports, at = pooled(sampled.searches(sample.tolist()), context.data.q, len(sample))
        sizes, forced = (supports >= 0).sum(axis=1), context.data.forced
        capped = np.minimum(context.grid.taus, context.data.q) - len(forced)
        taus_of = [np.flatnonzero(capped == size).tolist() for size in sizes.tolist()]
        q = context.data.q
        all_columns = [(np.arange(q), t) for t in np.flatnonzero(context.grid.taus >= q).tolist()]
        for g, root in roots.items():
            here = np.flatnonzero(at == int(np.searchsorted(gammas, g))).tolist()
            whole = {a: np.sort(np.append(forced, supports[a, : sizes[a]])).astype(np.int64) for a in here}
            offered = [(whole[a], t) for a in here for t in taus_of[a]] + all_columns
            if offered:
                offer_supports(root, [support for support, _ in offered], [t for _, t in offered])
        return np.array([g for g in gammas.tolist() if g not in roots], dtype=np.int64)

    def _offer_all(self, gammas: IntArray, taus: IntArray, source: Iterator[FoldPaths], expired: Expired) -> None:
        """Offer what the folds found, in the order of the folds: which cell gets which number in the pool repeats."""
        paths_by_fold: dict[int, FoldPaths] = {}
        for paths in source:
            paths_by_fold[paths.fold] = paths
            self.run.counts.add(0, problems=len(gammas))
            if expired():
                break
        for fold in sorted(paths_by_fold):
            offer_paths(self.run, gammas, taus, paths_by_fold[fold])


def score_reported_pair(run: Run, trees: SharedTrees) -> None:
    """See to it that the pair to report is scored in every fold, to the accuracy of decided cells.

    Nothing is done before anything is known of all rows.
    """
    if run.all_rows.best:
        with run.accounts.of(BoundSource.FOLD_ROOTS):
            _score_one_pair(run, trees)
            _score_again(run)


def _score_one_pair(run: Run, trees: SharedTrees) -> None:
    """Score the pair with the fewest folds missing in these folds, unless some pair has none missing.

    Of several such the one with the least held-out error in the other folds. No tree is grown: few folds get the best
    support at hand and the bounds that hold without a proof; many small ones the best support of all rows, scored in
    closed form, with no bound.
    """
    nominal = run.cells.nominal
    missing = ~np.isfinite(nominal)
    count = missing.sum(axis=2)
    if count.min() > 0:
        sums = np.where(missing, 0.0, nominal).sum(axis=2)
        g, t = (int(i) for i in np.unravel_index(int(np.lexsort((sums.ravel(), count.ravel()))[0]), count.shape))
        folds = run.context.folds
        if count[g, t] > FOLDS_ONE_BY_ONE and folds.left is None and folds.sizes.max() <= SMALL_FOLD:
            _score_in_closed_form(run, trees, g, t)
        _give_support(run, (g, t), np.flatnonzero(~np.isfinite(nominal[g, t])))
    _bound(run)


def _bound(run: Run) -> None:
    """See to an upper bound in every fold of the pair that will be reported, where time is over."""
    context = run.context
    if not context.deadline.expired():
        return
    pair = run.bounds().reported_pair(context.gap, context.grid.gammas, context.grid.taus)
    unknown = ~np.isfinite(run.cells.upper[pair])
    if int(unknown.sum()) <= FOLDS_ONE_BY_ONE:
        _give_support(run, pair, np.flatnonzero(unknown))


def _give_support(run: Run, pair: tuple[int, int], which: IntArray) -> None:
    """Give some folds of a pair the best support at hand and the bounds that hold without a proof."""
    context, cells = run.context, run.cells
    wanted = np.zeros(cells.nominal.shape[:2], dtype=bool)
    wanted[pair] = True
    solver = FoldSolver(run, run.accelerators)
    for fold, moments in run.accelerators.training_moments(which.tolist()):
        if context.deadline.abandoned.is_set():
            break
        solver.bound(fold, moments, wanted)


def _score_in_closed_form(run: Run, trees: SharedTrees, g: int, t: int) -> None:
    """Score the best support of all rows for a pair in every fold that is missing it. O(n s^2)."""
    leave_out, cells, taus = trees.leave_out, run.cells, run.context.grid.taus
    support = run.all_rows.best[g].by_size[int(taus[t])].support
    listing = listed_supports(run.all_rows.problem(g), [support], [t])
    number = cells.pool.number(support)

    def score(lo: int, hi: int) -> None:
        scores = leave_out.score(listing, leave_out.rows(lo, hi))
        cells.offer((g, t, slice(lo, hi)), number, scores.held_out[t], scores.value[t])

    leave_out.over_chunks(score)


def _score_again(run: Run) -> None:
    """Score what the open cells of the pair to report show to the accuracy of decided ones. O(n q^2 log k)."""
    context, cells = run.context, run.cells
    pair = run.bounds().reported_pair(context.gap, context.grid.gammas, context.grid.taus)
    gamma = float(context.grid.gammas[pair[0]])
    folds = np.flatnonzero(~cells.decided[pair] & np.isfinite(cells.nominal[pair]))
    if not len(folds) or context.deadline.expired():
        return
    for fold, moments in run.accelerators.training_moments(folds.tolist()):
        support = cells.pool.supports[cells.support[(*pair, fold)]]
        fits = FoldProblem.of(context.data, context.folds, fold, moments).with_gamma(gamma).refit([support])
        cells.rescore((*pair, fold), float(fits.held_out[0]), float(fits.value[0]))
        if context.deadline.expired():
            break
