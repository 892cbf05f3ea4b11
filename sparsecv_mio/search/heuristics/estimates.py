"""What an open cell shows: the support with the least training objective in its fold, the fold's own search among them.

A support chosen on all rows has seen the rows that a fold leaves out, and its held-out error there is too small. So
before anything is reported every fold with open cells searches for itself (:mod:`sparsecv_mio.search.heuristics`), and
what it finds competes, by its training objective in the fold alone, with what is known from all rows, from other gammas
and tau and from other folds. What is shown is an estimate; it says nothing about the interval of the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.problem.problem import FloatArray
from sparsecv_mio.search.heuristics.first_supports import first_supports
from sparsecv_mio.search.heuristics.fold_search import FoldPaths, FoldSearch
from sparsecv_mio.search.heuristics.pool import pooled
from sparsecv_mio.search.options import Grid
from sparsecv_mio.search.parallel import run_folds
from sparsecv_mio.search.shared_tree.first_intervals import offer_supports
from sparsecv_mio.search.shared_tree.identities import largest_decrease
from sparsecv_mio.search.state.cells import Index
from sparsecv_mio.search.subproblem.fold_problem import FoldProblem

if TYPE_CHECKING:
    from sparsecv_mio.search.methods.rounds import CrossValidation

IntArray = NDArray[np.int64]

FEW_FOLDS = 50  # that all folds search thoroughly and learn from each other
SAMPLED = 20  # of more folds those, spread evenly, that search at every gamma, for the others to learn from
PULLING = 80  # folds beside them, those whose rows pull the fit of all rows most
SEARCH_WORK = 3e8  # multiplications that the own searches of many folds may take
WALK = 5.0  # multiplications of a walk over the sizes, by columns and squared largest size
ALIKE = 1e-9  # relative difference of training objectives below which a known support is kept


def show_own_supports(run: CrossValidation, expired: Callable[[], bool]) -> None:
    """Have the folds search for supports, and show these in open cells where they are the best of their fold.

    Parameters
    ----------
    run : CrossValidation
    expired : callable
        True ends the search with what it holds.
    """
    cells = run.cells
    with cells.lock:
        undecided = ~cells.decided
    if run.row_wise or run.data.q == 0 or not undecided.any():
        return
    gammas, taus = (np.flatnonzero(undecided.any(axis=axes)) for axes in ((1, 2), (0, 2)))
    grid = Grid(run.grid.gammas[gammas], run.grid.taus[taus])
    if not grid.taus.max():
        return
    if run.folds.k > FEW_FOLDS:
        gammas = _by_identities(run, gammas, grid, expired)
        grid = Grid(run.grid.gammas[gammas], grid.taus)
    if not len(gammas):
        return
    folds = np.flatnonzero(undecided[gammas].any(axis=(0, 1)))
    source = _few(run, grid, expired) if run.folds.k <= FEW_FOLDS else _many(run, grid, folds.tolist(), expired)
    found: dict[int, FoldPaths] = {}
    for paths in source:
        found[paths.fold] = paths
        if expired():
            break
    for fold in sorted(found):
        _show(run, gammas, taus, found[fold])


def _by_identities(run: CrossValidation, gammas: IntArray, grid: Grid, expired: Callable[[], bool]) -> IntArray:
    """Where rows are left out of a fit by a formula: some folds search, all judge what they found; the gammas left.

    Those that search are the ones whose rows pull the fit most, and some others.
    """
    roots = {g: root for g in gammas.tolist() if (root := run.root(g)) is not None}
    if not roots:
        return gammas
    some = next(iter(roots.values()))
    pull = largest_decrease(some.residual, some.leverage)
    even = np.arange(0, run.folds.k, -(-run.folds.k // SAMPLED))
    most = PULLING if run.folds.k > PULLING + SAMPLED else run.folds.k
    sample = np.union1d(np.argsort(-pull, kind="stable")[:most], even)
    seeds, at = pooled(_searched(run, grid, sample.tolist(), expired), run.data.q, len(sample))
    sizes = (seeds >= 0).sum(axis=1)
    rows_of_size = [np.flatnonzero(np.minimum(run.grid.taus, run.data.q) == size).tolist() for size in sizes.tolist()]
    for g, root in roots.items():
        mine = np.flatnonzero(at == int(np.searchsorted(gammas, g))).tolist()
        both = [(np.sort(seeds[a, : sizes[a]]), t) for a in mine for t in rows_of_size[a]]
        if both:
            offer_supports(root, [support for support, _ in both], [t for _, t in both])
    return np.array([g for g in gammas.tolist() if g not in roots], dtype=np.int64)


def _searched(run: CrossValidation, grid: Grid, folds: list[int], expired: Callable[[], bool]) -> list[FoldSearch]:
    """Searches of some folds, at every gamma."""
    lams, top = grid.gammas / 2.0, max(int(min(grid.taus.max(), run.data.q)), 1)

    def begun(fold: int, moments: Moments) -> FoldSearch:
        search = FoldSearch(fold, moments.problem(run.data, 1.0), lams, top)
        search.sweep(range(len(lams) - 1, -1, -1), expired)
        return search

    return list(run_folds(run.oracles.training_moments(folds), begun, run.threads))


def _few(run: CrossValidation, grid: Grid, expired: Callable[[], bool]) -> Iterator[FoldPaths]:
    known = [cell.support for result in run.full for cell in result.cells.values()]
    seeds = {support.tobytes(): support for support in known}
    return first_supports(run.data, run.folds, grid, run.threads, expired, list(seeds.values()))


def _many(run: CrossValidation, grid: Grid, folds: list[int], expired: Callable[[], bool]) -> Iterator[FoldPaths]:
    """Some folds search at every gamma; every other one judges what they found and searches at a few gammas."""
    lams, top = grid.gammas / 2.0, max(int(min(grid.taus.max(), run.data.q)), 1)
    taus = np.minimum(grid.taus, run.data.q)
    sample = folds[:: max(len(folds) // SAMPLED, 1)]
    walks = SEARCH_WORK / (WALK * run.data.q * top**2 * len(folds))
    seeds, at = pooled(_searched(run, grid, sample, expired), run.data.q)
    common = _of_all_rows(run, grid, top)

    def judged(fold: int, moments: Moments) -> FoldPaths:
        search = FoldSearch(fold, moments.problem(run.data, 1.0), lams, top)
        for supports, place in ((seeds, at), common):
            search.learn(supports, place)
        mine = _visits(fold, len(lams), walks)
        search.sweep(mine, expired)
        for g in mine:
            known = search.columns[g][np.isfinite(search.value[g])]
            search.learn(known, np.full(len(known), -1))
        return search.paths(taus, *run.data.rows(run.folds.test_rows(fold)))

    yield from run_folds(run.oracles.training_moments(folds), judged, run.threads)


def _visits(fold: int, gammas: int, walks: float) -> list[int]:
    """Gammas at which a fold searches: `walks` of them on average, evenly spread, others in the next fold."""
    if walks >= gammas:
        return list(range(gammas - 1, -1, -1))
    step = gammas / walks
    return [g for g in range(gammas - 1, -1, -1) if int((g + fold) / step) != int((g + fold + 1) / step)]


def _of_all_rows(run: CrossValidation, grid: Grid, top: int) -> tuple[IntArray, IntArray]:
    """The best supports known on all rows, and the row of gamma of each."""
    rows = [
        (g, run.full[int(np.searchsorted(run.grid.gammas, gamma))].cells[tau].support)
        for g, gamma in enumerate(grid.gammas.tolist()) if run.full
        for tau in grid.taus.tolist()
    ]  # fmt: skip
    rows = [(g, support) for g, support in rows if 0 < len(support) <= top]
    table = np.full((len(rows), top), -1, dtype=np.int64)
    for line, (_, support) in zip(table, rows, strict=True):
        line[: len(support)] = support
    return table, np.array([g for g, _ in rows], dtype=np.int64)


def _show(run: CrossValidation, gammas: IntArray, taus: IntArray, paths: FoldPaths) -> None:
    """Offer the supports of a fold that beat those it shows."""
    cells, fold = run.cells, paths.fold
    part: Index = (*np.ix_(gammas, taus), fold)
    better = ~cells.decided[part] & (paths.objective < cells.value[part] * (1.0 - ALIKE))
    better |= ~cells.decided[part] & ~np.isfinite(cells.nominal[part])
    numbers = np.zeros(better.shape, dtype=np.int32)
    for g, t in np.argwhere(better).tolist():
        numbers[g, t] = cells.pool.number(paths.support(g, t))
    value: FloatArray = np.where(better, paths.objective, np.nan)
    cells.offer(part, numbers, paths.held_out, value)


def sharpen(run: CrossValidation) -> None:
    """Score what the open cells of the pair to report show again, to the accuracy of decided ones. O(n q^2 log k)."""
    cells, grid = run.cells, run.grid
    pair = run.bounds().answer(run.gap, grid.gammas, grid.taus)
    gamma = float(grid.gammas[pair[0]])
    folds = np.flatnonzero(~cells.decided[pair] & np.isfinite(cells.nominal[pair]))
    if run.row_wise or not len(folds) or run.clock.expired():
        return
    for fold, moments in run.oracles.training_moments(folds.tolist()):
        support = cells.pool.supports[cells.support[(*pair, fold)]]
        fits = FoldProblem.of(run.data, run.folds, fold, moments).with_gamma(gamma).refit([support])
        cells.rescore((*pair, fold), float(fits.held_out[0]), float(fits.value[0]))
        if run.clock.expired():
            break
