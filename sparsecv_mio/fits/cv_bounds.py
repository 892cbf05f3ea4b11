"""Certified bounds on the CV error of every (tau, gamma) pair of a grid, by convex relaxations without branching."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from sparsecv_mio.bounds.cv_error import (
    BoundsHooks,
    BoundsTable,
    PrintedTable,
    bound_smooth_cv_errors,
    compute_bounds,
    printed_bounds,
)
from sparsecv_mio.data.dataset import Dataset, require_dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.loss_targets import check_training
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.fit_options import PathOptions
from sparsecv_mio.model_space import NONE
from sparsecv_mio.parallel import blas_on_one_thread
from sparsecv_mio.search.deadline import require_prepared_data, run_within_limit
from sparsecv_mio.search.first_use import make_first_use, start_clock
from sparsecv_mio.search.options import Hooks
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import DEFAULT_LOSS, Loss


@dataclass(frozen=True, eq=False)
class CvBounds:
    """Bounds on the CV errors of a grid.

    Attributes
    ----------
    table : BoundsTable or PrintedTable
        Bounds by pair and fold.
    options : PathOptions
        Options, with restrictions by the names of the data.
    status : str
        `proved` if every fold was bounded; otherwise `limit` or `interrupted`, and folds not reached keep [0, inf).
    seconds : float
        Time of the computation.
    """

    table: BoundsTable | PrintedTable
    options: PathOptions
    status: str
    seconds: float


@blas_on_one_thread()
def bound_cv_errors(
    dataset: Dataset,
    folds: FoldPlan,
    *,
    gammas: str | float | Iterable[float] | None = None,
    taus: str | int | Iterable[int] | None = None,
    as_printed: bool = False,
    options: PathOptions | None = None,
    progress: Callable[[int, int], None] | None = None,
    hooks: Hooks | None = None,
) -> CvBounds:
    """Return certified bounds on the CV error of every pair of a grid, without branching.

    Parameters
    ----------
    dataset : Dataset
        Rows, target and names.
    folds : FoldPlan
        Folds.
    gammas, taus : sequences, numbers or texts, optional
        Grid, as for :func:`~sparsecv_mio.search.api.cross_validate`.
    as_printed : bool
        True for the formula of the paper, which gives estimates instead of valid bounds; squared-error loss only.
    options : PathOptions, optional
        Loss, restrictions, units and limits.
    progress : callable, optional
        Function called with (folds done, folds in all).
    hooks : Hooks, optional
        Event `stop` that ends the run with the bounds so far, and start `began` of the time limit; other hooks have no
        effect.

    Returns
    -------
    CvBounds
        The bounds.

    Raises
    ------
    BadInput
        If the grid or an option is wrong.
    OutOfTime
        If the time limit ends before the data are in standard coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.folds import make_folds
    >>> data = Dataset.from_arrays(np.eye(6)[:, :3], [3.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    >>> bounds = bound_cv_errors(data, make_folds("3", data), gammas=[0.1, 1.0], taus=[1, 2])
    >>> bounds.status, bounds.table.lower.shape
    ('proved', (2, 2, 3))
    """
    options = (options or PathOptions()).by_names(require_dataset(dataset, "bound_cv_errors"))
    dataset = options.in_classes(dataset)
    check_formula(as_printed, options.loss)
    grid = Grid.from_request(dataset, folds, gammas, taus, options.restrictions, loss=options.loss)

    def bound_tiny(data: Dataset, folds: FoldPlan, stop: threading.Event | None, loss: Loss = DEFAULT_LOSS,
                   **grid: Any) -> None:  # fmt: skip
        tiny = replace(
            options, loss=loss, positive=None, class_weight=None, exposure=None, offset=None, trials=None,
            threads=1, time_limit=None, restrictions=NONE,
        )  # fmt: skip
        bound_cv_errors(data, folds, as_printed=as_printed, options=tiny, hooks=Hooks(stop=stop), **grid)

    needs = make_first_use("bounds", replace(options, restrictions=NONE), dataset, bound_tiny)
    caller = hooks or Hooks()
    clock = start_clock(options, caller.stop, caller.began, needs)
    begin = time.perf_counter()
    begun: list[BoundsTable] = []

    def bound() -> BoundsTable | PrintedTable:
        pairs = grid.gammas.tolist(), grid.taus.tolist()
        listeners = BoundsHooks(progress, clock.has_expired, begun=begun.append)
        data = standardize(dataset, options.scale, options.intercept, options.restrictions, options.loss)
        if not options.loss.is_quadratic:
            check_training(dataset, folds, options.intercept, options.loss)
            return bound_smooth_cv_errors(data, folds, *pairs, listeners)
        make = printed_bounds if as_printed else compute_bounds
        return make(data, folds, *pairs, threads=options.threads, hooks=listeners)

    def current_table() -> BoundsTable | PrintedTable:
        table = require_prepared_data(begun[0] if begun else None).as_it_stands()
        return table.ends_alone() if as_printed else table

    table = run_within_limit(bound, clock, current_table)
    status = clock.status(not clock.has_expired())
    return CvBounds(table, options, status, time.perf_counter() - begin)


def check_formula(as_printed: bool, loss: Loss) -> None:
    """Raise `BadInput` if the formula of the paper is requested for another loss than squared error."""
    if as_printed and not loss.is_quadratic:
        raise BadInput(
            "bounds as-printed: requires loss squared, because the formula of the paper is for squared-error loss; use "
            "bounds safe"
        )
