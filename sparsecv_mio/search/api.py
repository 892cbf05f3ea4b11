"""Certified cross-validation over a grid of (gamma, tau), by the method that is asked for.

The search runs in a thread of its own (:mod:`sparsecv_mio.search.loop`), so that a limit holds; no kernel and no
solver is imported before it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import AnyFolds, FoldPlan, folds_of
from sparsecv_mio.data.weights import least_rows
from sparsecv_mio.errors import BadInput, SparseCVError
from sparsecv_mio.grids import GammaInterval, gammas_of, interval, taus_of
from sparsecv_mio.search.continuous.asked import Interval, check_interval
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.held_out import with_mae
from sparsecv_mio.search.hooks import Hooks, Keywords, merged
from sparsecv_mio.search.options import NESTED, SearchOptions
from sparsecv_mio.search.running import Arguments, RunningSearch
from sparsecv_mio.search.stability_weight import WeightSearch, search_with_nested_weight
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.state.trees import Trees
from sparsecv_mio.search.time_limit import run_within_limit


def cross_validate(
    dataset: Dataset,
    folds: AnyFolds,
    *,
    gammas: str | float | Iterable[float] | GammaInterval | None,
    taus: str | int | Iterable[int] | None,
    options: SearchOptions | None = None,
    hooks: Hooks | None = None,
    **keywords: Unpack[Keywords],
) -> Record:
    """Find the CV-optimal (tau, gamma) of a grid and prove it.

    Minimises `h(gamma, tau) = (1/m) sum_j sum_{i in N_j} (y_i - x_i' b^(-N_j)(gamma, tau))^2` over the grid, where
    `b^(-N)` solves `min ||y - Xb||^2 + (gamma/2)||b||^2, ||b||_0 <= tau` on the rows outside N (theory section 0).

    Parameters
    ----------
    dataset : Dataset
    folds : FoldPlan, str, int, splitter, labels or pairs
        See :func:`~sparsecv_mio.data.folds.folds_of`.
    gammas, taus : sequences, numbers or texts
        The grid; gamma > 0, 0 <= tau <= p. None for those of the command line. A `GammaInterval` or the text `LO..HI`
        stands for every gamma of an interval (:mod:`sparsecv_mio.search.continuous`).
    options : SearchOptions, optional
        Scale, gap, limits, method and what goes with it.
    hooks : Hooks, optional
        Progress, an early stop, files that the run is stored in.
    **keywords
        Fields of `SearchOptions` and `Hooks` by keyword, which go before those of `options` and `hooks`:
        `cross_validate(..., gap=0.0, method="rounds")`.

    Returns
    -------
    Record
        Answer and certificate, `lower <= min h <= h(reported pair) <= upper`.

    Raises
    ------
    BadInput
        If the grid or an option is out of range, or options do not go together.
    TypeError
        For a keyword that is no field of either.
    BackendUnavailable
        If the cluster of `scheduler` cannot be used.
    OutOfTime
        If the limit comes before the data are in standard coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.folds import make_folds
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> data = Dataset.from_arrays(X, 2 * X[:, 1] - X[:, 3] + 0.1 * rng.normal(size=40))
    >>> record = cross_validate(data, make_folds("5", data), gammas=[0.01, 0.1], taus=range(1, 6))
    >>> record.status, record.tau, record.support
    ('proved', 2, ('x1', 'x3'))
    """
    options, hooks = merged(options, hooks, keywords, "cross_validate")
    plan = folds_of(folds, dataset)
    options.check_data(dataset, plan)
    gammas, taus = kept(gammas), kept(taus)
    asked_of(dataset, plan, gammas, taus, options, hooks)

    def search(dataset: Dataset, plan: FoldPlan, options: SearchOptions, hooks: Hooks) -> Record:
        return _certified((dataset, plan), gammas, taus, options, hooks)

    if options.stability == NESTED:
        return search_with_nested_weight(WeightSearch(search, dataset, plan, options, hooks))
    return search(dataset, plan, options, hooks)


def kept(given: Any) -> Any:
    """Return what may be read more than once."""
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else given


def _certified(rows: tuple[Dataset, FoldPlan], gammas: Any, taus: Any, options: SearchOptions, hooks: Hooks) -> Record:
    """Search the grid of some rows."""
    dataset, plan = rows
    options = options.within(dataset)
    every, grid = asked_of(dataset, plan, gammas, taus, options, hooks)
    if every is not None:
        return _over_interval(Interval(dataset, plan, every, grid.taus.tolist(), options, hooks))
    deadline = Deadline(options.time_limit, hooks.stop, hooks.began)
    arguments = Arguments(dataset, plan, grid, options, replace(hooks, lost=hooks.lost or _warn))
    with _trees(arguments) as trees:
        running = RunningSearch(deadline, replace(arguments, trees=trees))
        record = run_within_limit(partial(_search, running), deadline, running.record, running.prepare_fallback)
    data = running.data
    del running  # with its cells, which may take as much memory as the data
    return with_mae(record, data, plan)


def asked_of(
    dataset: Dataset, plan: FoldPlan, gammas: Any, taus: Any, options: SearchOptions, hooks: Hooks | None = None
) -> tuple[GammaInterval | None, Grid]:
    """Return the interval of gamma that is asked for, if it is one, and the grid; checked, before any work.

    Parameters
    ----------
    dataset : Dataset
    plan : FoldPlan
    gammas, taus : sequences, numbers or texts
        As for :func:`cross_validate`.
    options : SearchOptions
    hooks : Hooks, optional

    Raises
    ------
    BadInput
        As :func:`cross_validate`.
    """
    within = options.restrictions.within(dataset.names)
    shape = within.left(dataset.p), least_rows(dataset, plan)
    sizes = taus_of(taus, *shape, restrictions=within)
    every = (interval(gammas, "gammas") or gammas) if isinstance(gammas, str) else gammas
    if not isinstance(every, GammaInterval):
        return None, Grid.of(gammas_of(every, *shape), sizes, dataset.p, within)
    check_interval(every, options, hooks or Hooks())
    return every, Grid.of([1.0], sizes, dataset.p)


def _trees(given: Arguments) -> AbstractContextManager[Trees]:
    scheduler = given.hooks.scheduler
    if scheduler is None:
        return nullcontext(given.trees)
    from sparsecv_mio.formulation.backends import NATIVE

    if given.options.backend != NATIVE:
        raise BadInput(f"--scheduler sends trees of our own engine: leave out it or --backend {given.options.backend}")
    from sparsecv_mio.search.subproblem.sent_trees import sent_trees

    return sent_trees(scheduler, given.hooks.lost or _warn)


def _over_interval(asked: Interval) -> Record:
    """Search an interval of gamma, and the one gamma that is best as any other."""
    from sparsecv_mio.search.continuous.solve import solve_interval

    hooks = replace(asked.hooks, began=None)

    def at(gamma: float, options: SearchOptions) -> Record:
        return cross_validate(asked.dataset, asked.folds, gammas=[gamma], taus=asked.taus, options=options, hooks=hooks)

    return solve_interval(asked, at)


def _search(running: RunningSearch) -> Record:
    data = running.standardize()
    from sparsecv_mio.search.loop import search

    return search(running, data)


def _warn(error: SparseCVError) -> None:
    warnings.warn(str(error), stacklevel=4)
