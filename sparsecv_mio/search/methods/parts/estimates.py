"""Estimates for open cells: the support with the least training objective in its fold, the fold's own search included.

A support chosen on all rows has seen the rows that a fold holds out, and its held-out error there is too small. So
before anything is reported every fold with open cells searches by itself (:mod:`sparsecv_mio.search.heuristics`), and
what it finds competes, by its training objective in the fold alone, with what is known from all rows, from other gammas
and taus and from other folds. The held-out error of such a support is an estimate; it says nothing about the interval
of the cell.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.formulation.backends.native.path import SMALL
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.problem.problem import FloatArray
from sparsecv_mio.search.heuristics.first_supports import first_supports
from sparsecv_mio.search.heuristics.fold_search import FoldPaths, FoldSearch
from sparsecv_mio.search.heuristics.pool import pooled
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.methods.parts.shared_trees import SharedTrees
from sparsecv_mio.search.options import Grid
from sparsecv_mio.search.parallel import run_folds
from sparsecv_mio.search.shared_tree.first_intervals import offer_supports
from sparsecv_mio.search.shared_tree.identities import largest_decrease
from sparsecv_mio.search.state.cells import Index

IntArray = NDArray[np.int64]
Expired = Callable[[], bool]

EARLY_SHARE = 0.4  # of the time limit, until when the folds may search before any proof
GRACE = 0.2  # seconds after the limit in which they may search at the end
FEW_FOLDS = 50  # that all folds search thoroughly and learn from each other
SAMPLED = 20  # of more folds those, spread evenly, that search at every gamma, for the others to learn from
PULLING = 80  # folds beside them, those whose rows pull the fit of all rows most
SEARCH_WORK = 3e8  # multiplications that the own searches of many folds may take
WALK = 5.0  # multiplications of a walk over the sizes, by columns and squared largest size
ALIKE = 1e-9  # relative difference of training objectives below which a known support is kept


class OpenCellEstimates:
    """Supports found by the folds themselves, offered to the open cells, once in a run.

    Parameters
    ----------
    run : Run
    trees : SharedTrees
        Whose closed-form scores judge a support in many small folds at once.

    Attributes
    ----------
    done : bool
        Whether the folds have searched.
    """

    def __init__(self, run: Run, trees: SharedTrees) -> None:
        self.run, self.trees = run, trees
        self.done = False

    def before_proof(self) -> None:
        """Have the folds search first where trees are dear: an estimate of every cell, and a start for its tree."""
        if self.run.context.data.q > SMALL:
            self.done = True
            self.show(lambda: self.run.context.deadline.share_spent(EARLY_SHARE))

    def resume(self) -> None:
        """Take note that what `before_proof` found is among the cells of a stored run."""
        self.done = self.run.context.data.q > SMALL

    def at_end(self) -> None:
        """Have the folds with open cells search, unless they did before."""
        until = time.monotonic() + GRACE

        def over() -> bool:
            return self.run.context.deadline.expired() and time.monotonic() > until

        if not self.done:
            self.done = True
            self.show(over)

    def show(self, expired: Expired) -> None:
        """Have the folds search, and offer what they found to their open cells, until `expired`."""
        context, cells = self.run.context, self.run.state.cells
        with cells.lock:
            undecided = ~cells.decided
        if context.data.q == 0 or not undecided.any():
            return
        gammas, taus = (np.flatnonzero(undecided.any(axis=axes)) for axes in ((1, 2), (0, 2)))
        grid = Grid(context.grid.gammas[gammas], context.grid.taus[taus])
        if not grid.taus.max():
            return
        if context.folds.k > FEW_FOLDS:
            gammas = self._in_closed_form(gammas, grid, expired)
            grid = Grid(context.grid.gammas[gammas], grid.taus)
        if not len(gammas):
            return
        folds = np.flatnonzero(undecided[gammas].any(axis=(0, 1)))
        few = context.folds.k <= FEW_FOLDS
        source = self._few(grid, expired) if few else self._many(grid, folds.tolist(), expired)
        found: dict[int, FoldPaths] = {}
        for paths in source:
            found[paths.fold] = paths
            if expired():
                break
        for fold in sorted(found):
            self._offer(gammas, taus, found[fold])

    def _in_closed_form(self, gammas: IntArray, grid: Grid, expired: Expired) -> IntArray:
        """Let some folds search and judge in closed form, in all folds, what they found; the gammas left without.

        Those that search are the ones whose rows pull the fit most, and some others.
        """
        context = self.run.context
        roots = {g: root for g in gammas.tolist() if (root := self.trees.root(g)) is not None}
        if not roots:
            return gammas
        some = next(iter(roots.values()))
        pull = largest_decrease(some.residual, some.leverage)
        even = np.arange(0, context.folds.k, -(-context.folds.k // SAMPLED))
        most = PULLING if context.folds.k > PULLING + SAMPLED else context.folds.k
        sample = np.union1d(np.argsort(-pull, kind="stable")[:most], even)
        seeds, at = pooled(self._searched(grid, sample.tolist(), expired), context.data.q, len(sample))
        sizes = (seeds >= 0).sum(axis=1)
        capped = np.minimum(context.grid.taus, context.data.q)
        rows_of_size = [np.flatnonzero(capped == size).tolist() for size in sizes.tolist()]
        for g, root in roots.items():
            mine = np.flatnonzero(at == int(np.searchsorted(gammas, g))).tolist()
            both = [(np.sort(seeds[a, : sizes[a]]), t) for a in mine for t in rows_of_size[a]]
            if both:
                offer_supports(root, [support for support, _ in both], [t for _, t in both])
        return np.array([g for g in gammas.tolist() if g not in roots], dtype=np.int64)

    def _searched(self, grid: Grid, folds: list[int], expired: Expired) -> list[FoldSearch]:
        """Return the searches of some folds, at every gamma."""
        context = self.run.context
        lams, top = grid.gammas / 2.0, max(int(min(grid.taus.max(), context.data.q)), 1)

        def search_in(fold: int, moments: Moments) -> FoldSearch:
            search = FoldSearch(fold, moments.problem(context.data, 1.0), lams, top)
            search.sweep(range(len(lams) - 1, -1, -1), expired)
            return search

        return list(run_folds(self.run.accelerators.training_moments(folds), search_in, context.threads))

    def _few(self, grid: Grid, expired: Expired) -> Iterator[FoldPaths]:
        """All folds search thoroughly and learn from each other."""
        context = self.run.context
        known = [cell.support for result in self.run.state.all_rows.best for cell in result.cells.values()]
        seeds = {support.tobytes(): support for support in known}
        return first_supports(context.data, context.folds, grid, context.threads, expired, list(seeds.values()))

    def _many(self, grid: Grid, folds: list[int], expired: Expired) -> Iterator[FoldPaths]:
        """Let some folds search at every gamma; the others judge what these found, and search at a few gammas."""
        context = self.run.context
        lams, top = grid.gammas / 2.0, max(int(min(grid.taus.max(), context.data.q)), 1)
        taus = np.minimum(grid.taus, context.data.q)
        sample = folds[:: max(len(folds) // SAMPLED, 1)]
        walks = SEARCH_WORK / (WALK * context.data.q * top**2 * len(folds))
        seeds, at = pooled(self._searched(grid, sample, expired), context.data.q)
        common = self._of_all_rows(grid, top)

        def judged(fold: int, moments: Moments) -> FoldPaths:
            search = FoldSearch(fold, moments.problem(context.data, 1.0), lams, top)
            for supports, place in ((seeds, at), common):
                search.learn(supports, place)
            mine = _visits(fold, len(lams), walks)
            search.sweep(mine, expired)
            for g in mine:
                known = search.columns[g][np.isfinite(search.value[g])]
                search.learn(known, np.full(len(known), -1))
            return search.paths(taus, *context.data.rows(context.folds.test_rows(fold)))

        yield from run_folds(self.run.accelerators.training_moments(folds), judged, context.threads)

    def _of_all_rows(self, grid: Grid, top: int) -> tuple[IntArray, IntArray]:
        """Return the best supports known on all rows, and the row of gamma of each."""
        best, gammas = self.run.state.all_rows.best, self.run.context.grid.gammas
        rows = [
            (g, best[int(np.searchsorted(gammas, gamma))].cells[tau].support)
            for g, gamma in enumerate(grid.gammas.tolist()) if best
            for tau in grid.taus.tolist()
        ]  # fmt: skip
        rows = [(g, support) for g, support in rows if 0 < len(support) <= top]
        table = np.full((len(rows), top), -1, dtype=np.int64)
        for line, (_, support) in zip(table, rows, strict=True):
            line[: len(support)] = support
        return table, np.array([g for g, _ in rows], dtype=np.int64)

    def _offer(self, gammas: IntArray, taus: IntArray, paths: FoldPaths) -> None:
        """Offer the supports of a fold that beat those its open cells show."""
        cells, fold = self.run.state.cells, paths.fold
        part: Index = (*np.ix_(gammas, taus), fold)
        better = ~cells.decided[part] & (paths.objective < cells.value[part] * (1.0 - ALIKE))
        better |= ~cells.decided[part] & ~np.isfinite(cells.nominal[part])
        numbers = np.zeros(better.shape, dtype=np.int32)
        for g, t in np.argwhere(better).tolist():
            numbers[g, t] = cells.pool.number(paths.support(g, t))
        value: FloatArray = np.where(better, paths.objective, np.nan)
        cells.offer(part, numbers, paths.held_out, value)


def _visits(fold: int, gammas: int, walks: float) -> list[int]:
    """Gammas at which a fold searches: `walks` of them on average, evenly spread, others in the next fold."""
    if walks >= gammas:
        return list(range(gammas - 1, -1, -1))
    step = gammas / walks
    return [g for g in range(gammas - 1, -1, -1) if int((g + fold) / step) != int((g + fold + 1) / step)]
