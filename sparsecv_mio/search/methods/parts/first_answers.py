"""First answers: a support for every fold, gamma and tau, and for all rows, before any tree is grown.

All rows search along with the folds, as one more fold that leaves nothing out; each learns from what the others found.
A fold is offered what it found itself, or judged by its own training rows, so that its held-out error is an honest
estimate: a support chosen on all rows has seen the rows that the fold leaves out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.formulation.backends.native.cell import PathCell, PathResult
from sparsecv_mio.search.heuristics.first_supports import first_supports
from sparsecv_mio.search.heuristics.fold_search import FoldPaths
from sparsecv_mio.search.methods.parts.run import Run
from sparsecv_mio.search.state.cells import Index
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.subproblem.supports import filled_up
from sparsecv_mio.units import TIE_RTOL

SEARCH_SHARE = 0.4  # of the time limit, until when better supports are searched for before any proof


def first_answers(run: Run, once_answered: Callable[[], None] | None = None) -> FoldPaths | None:
    """Search in every fold and on all rows, and offer each fold's cells what was found.

    A quick answer of every fold is waited for whatever share of the limit that takes, as an answer from some folds
    alone would be one from rows that have been seen; better ones until `SEARCH_SHARE` of the limit is gone.

    Parameters
    ----------
    run : Run
    once_answered : callable, optional
        Called as soon as every fold has its quick answer, before better ones are searched for.

    Returns
    -------
    FoldPaths or None
        Supports of all rows, which `run.state.all_rows` holds and starts from; None where the limit came first.
    """
    context, deadline = run.context, run.context.deadline
    if not context.grid.taus.max():
        return None
    k = context.folds.k

    def enough() -> bool:
        return deadline.share_spent(SEARCH_SHARE)

    found: dict[int, FoldPaths] = {}
    whole: FoldPaths | None = None
    what, passes = "searching first supports: fold", 1
    plan = context.folds.with_all_rows()
    run.signals.doing(what, 1, k)
    for paths in first_supports(context.data, plan, context.grid, context.threads, enough):
        if paths.fold in found:
            offer(run, found)
            found = {}
        found[paths.fold] = paths
        whole = paths if paths.fold == k else whole
        if whole is not None and len(found) == k + 1:
            offer(run, found)
            run.state.all_rows.keep(unproved(context, whole))
            found = {}
            run.signals.progressed()
            if once_answered is not None:
                once_answered()
            once_answered, passes = None, passes + 1
            what = f"searching better supports, pass {passes}: fold"
        run.signals.doing(what, min(len(found) + 1, k), k)
        if deadline.expired():
            break
    offer(run, found)
    if whole is not None:
        for g, starts in enumerate(run.state.all_rows.starts):
            starts += [whole.support(g, t) for t in range(len(context.grid.taus))]
    return whole


def unproved(context: Context, paths: FoldPaths) -> dict[int, PathResult]:
    """Return the supports of a path by gamma, of which nothing is proved, each filled up to its size.

    Parameters
    ----------
    context : Context
    paths : FoldPaths
        Of all rows.
    """
    q, found = context.data.q, {}
    for g in range(len(context.grid.gammas)):
        cells = {}
        for t, tau in enumerate(context.grid.taus.tolist()):
            support = paths.support(g, t)
            whole = filled_up(support, min(tau, q), np.arange(min(q, tau + len(support))))
            cells[tau] = PathCell.unproved(tau, whole)
        found[g] = PathResult(cells, 0, False)
    return found


def answers_of_all_rows(context: Context) -> FoldPaths | None:
    """Search on all rows alone: of a run that was stored, whose folds have their answers."""
    if not context.grid.taus.max():
        return None
    enough = context.deadline.share_from_now(SEARCH_SHARE)
    alone = context.folds.without_folds().with_all_rows()
    *_, last = first_supports(context.data, alone, context.grid, context.threads, enough)
    return last


def offer(run: Run, found: dict[int, FoldPaths]) -> None:
    """Offer the paths of some folds over the whole grid to these folds, in their order; those of all rows to none."""
    gammas, taus = (np.arange(size) for size in run.context.shape[:2])
    for fold in sorted(found):
        if fold < run.context.folds.k:
            offer_paths(run, gammas, taus, found[fold])


def offer_paths(run: Run, gammas: IntArray, taus: IntArray, paths: FoldPaths) -> None:
    """Offer the supports of a fold that beat those its open cells show.

    Parameters
    ----------
    run : Run
    gammas, taus : int arrays
        Indices of the gammas and taus that the paths are of.
    paths : FoldPaths
    """
    cells, fold = run.state.cells, paths.fold
    part: Index = (*np.ix_(gammas, taus), fold)
    better = ~cells.decided[part] & (paths.objective < cells.value[part] * (1.0 - TIE_RTOL))
    better |= ~cells.decided[part] & ~np.isfinite(cells.nominal[part])
    numbers = np.zeros(better.shape, dtype=np.int32)
    for g, t in np.argwhere(better).tolist():
        numbers[g, t] = cells.pool.number(paths.support(g, t))
    value: FloatArray = np.where(better, paths.objective, np.nan)
    cells.offer(part, numbers, paths.held_out, value)
