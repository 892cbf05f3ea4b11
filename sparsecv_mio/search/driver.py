"""Certified cross-validation over a grid of (gamma, tau), by the method that is asked for."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

from sparsecv_mio.certificate.record import PathRecord, Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput, SparseCVError
from sparsecv_mio.search.allfolds import Engine
from sparsecv_mio.search.answer import build_path, build_record, check_intervals
from sparsecv_mio.search.checkpoint import carry_out
from sparsecv_mio.search.clock import Clock
from sparsecv_mio.search.descent import Descent, TauStep
from sparsecv_mio.search.last_answer import score_one_pair
from sparsecv_mio.search.oracles import Oracles, chosen
from sparsecv_mio.search.progress import Progress
from sparsecv_mio.search.refine import refined
from sparsecv_mio.search.request import Grid, check_method, check_options, word_of
from sparsecv_mio.search.run import CrossValidation
from sparsecv_mio.search.trace import Trace

__all__ = ["Clock", "CrossValidation", "Grid", "Progress", "best_subsets", "cross_validate"]

File = str | os.PathLike[str] | None


def cross_validate(
    dataset: Dataset,
    folds: FoldPlan,
    *,
    gammas: Sequence[float],
    taus: Sequence[int],
    scale: str = "length",
    intercept: str = "fold",
    gap: float = 1e-4,
    one_se: bool = False,
    time_limit: float | None = None,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
    engine: str = "auto",
    method: str = "auto",
    backend: str = "native",
    formulation: str | None = None,
    mio_budget: int | None = None,
    refine: bool = False,
    tau_step: str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    trace: str | os.PathLike[str] | None = None,
    oracles: str | Sequence[str] | None = None,
    lost: Callable[[SparseCVError], None] | None = None,
) -> Record:
    """Find the CV-optimal (tau, gamma) of a grid and prove it.

    Minimises `h(gamma, tau) = (1/m) sum_j sum_{i in N_j} (y_i - x_i' b^(-N_j)(gamma, tau))^2` over the grid, where
    `b^(-N)` solves `min ||y - Xb||^2 + (gamma/2)||b||^2, ||b||_0 <= tau` on the rows outside N (theory section 0).

    Parameters
    ----------
    dataset : Dataset
    folds : FoldPlan
    gammas, taus : sequences
        The grid; gamma > 0, 0 <= tau <= p.
    scale : {"length", "variance", "none"}
    intercept : {"fold", "global", "none"}
    gap : float
        Relative gap at which the certificate counts as closed; 0 decides every cell.
    one_se : bool
        Apply the one-standard-error rule and refit at its pair.
    time_limit : float, optional
        Seconds; the best answer so far is returned with valid bounds.
    threads : int, optional
        Folds solved at once; all cores by default.
    progress : callable, optional
        Called with a :class:`Progress` after each fold.
    stop : threading.Event, optional
        Set it to end the run with what it holds.
    engine : {"auto", "enumerate", "shared", "per-fold"}
        How folds share work (:mod:`sparsecv_mio.search.allfolds`); the answer is the same.
    method : {"auto", "rounds", "joint", "algorithm1", "grid", "bounds", "descent"}
        `rounds` decides every cell that may matter, work shared between taus and folds; `joint` decides the winner and
        lifts all other pairs over it (:mod:`sparsecv_mio.search.joint`); `algorithm1` is the paper's, one MIO at a
        time; `grid` is the baseline; `bounds` brackets every cell and solves no MIO; `descent` leaves the grid of
        gammas, see :class:`sparsecv_mio.search.descent.Descent`. `auto`: see
        :func:`sparsecv_mio.search.methods.method_for`.
    backend : str
        Who solves the MIOs of `joint`, `algorithm1` and `grid`, see :data:`sparsecv_mio.formulation.backends.BACKENDS`.
    formulation : str, optional
        Which of the backend's models: `benders` of gurobi, for one. The backend's first by default.
    mio_budget : int, optional
        Most MIOs those three may solve.
    refine : bool
        Improve gamma around the reported pair too; stored under `refined`, the answer stays the grid's.
    tau_step : {"auto", "mio", "saddle"}
        Of a descent: every row certified, or estimated without MIOs (`auto`: beyond 500 columns); an estimate is never
        `proved`.
    checkpoint, resume : path, optional
        Store the run there now and then; carry on a run that was stored (:mod:`sparsecv_mio.search.checkpoint`).
    trace : path, optional
        Write the course of the bounds there (:mod:`sparsecv_mio.search.trace`).
    oracles : str or sequence of str, optional
        Some of `glru`, `iacv`, `treecv`, or `none`; those that pay by default (:mod:`sparsecv_mio.search.oracles`). The
        answer is the same, `work.oracles` says what each of them saved.
    lost : callable, optional
        Called with what went wrong when the checkpoint or the trace could not be written (a full disk, say); the run
        goes on to its answer. Without it there is a warning.

    Returns
    -------
    Record
        Answer and certificate, `lower <= min h <= h(reported pair) <= upper`.

    Raises
    ------
    BadInput
        If the grid or an option is out of range.

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
    from sparsecv_mio.search.methods import AUTO, METHODS, ROUNDS, method_for

    check_options(dataset, folds, gap, one_se, time_limit, threads)
    chosen(oracles)
    how, how_tau = word_of(Engine, engine, "engine"), word_of(TauStep, tau_step, "tau step")
    check_method(method, backend, mio_budget, how_tau, formulation)
    if one_se and method == "bounds":
        raise BadInput("the one-standard-error rule needs pairs decided: not with the method bounds")
    grid = Grid.of(gammas, taus, dataset.p)
    clock = Clock(time_limit, stop)
    data = standardize(dataset, scale, intercept)
    workers = threads or os.cpu_count() or 1
    if method == "descent":
        descent = Descent(data, folds, grid, gap, clock, workers, progress, how_tau)
        if one_se and descent.tau_step is TauStep.SADDLE:
            raise BadInput("the one-standard-error rule needs certified bounds: not with the tau step saddle")
        descent.oracles = oracles
        _carry_out(descent, checkpoint, resume, trace, lost or _warn)
        return descent.record(one_se=one_se, time_limit=time_limit, threads=threads)
    run: CrossValidation
    if method == AUTO:
        method = method_for(len(grid.gammas), data.q, folds.k, gap, one_se, backend, engine)
    if method == ROUNDS:
        run = CrossValidation(data, folds, grid, gap, clock, workers, progress, how)
    else:
        one_by_one = METHODS[method](data, folds, grid, gap, clock, workers, progress, backend, mio_budget)
        one_by_one.formulation = formulation
        run = one_by_one
    run.oracles = Oracles(run, oracles)
    run.one_se = one_se
    _carry_out(run, checkpoint, resume, trace, lost or _warn)
    score_one_pair(run)
    record = build_record(run, one_se=one_se, time_limit=time_limit, threads=threads)
    if refine:
        record = replace(record, refined=refined(record, run))
        check_intervals(record)
    return record


def _warn(error: SparseCVError) -> None:
    warnings.warn(str(error), stacklevel=4)


def _carry_out(
    run: CrossValidation | Descent, checkpoint: File, resume: File, trace: File, lost: Callable[[SparseCVError], None]
) -> None:
    """Run to the end, stored and traced on the way."""
    watcher = Trace(trace) if trace is not None else None
    if watcher is not None:
        run.watch = lambda: watcher.visit(run)
    failures = [carry_out(run, checkpoint, resume)]
    if watcher is not None:
        watcher.close(run)
        failures.append(watcher.failure)
    for failure in failures:
        if failure is not None:
            lost(failure)


def best_subsets(
    dataset: Dataset,
    *,
    gammas: Sequence[float],
    taus: Sequence[int],
    scale: str = "length",
    intercept: str = "fold",
    gap: float = 1e-7,
    time_limit: float | None = None,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: threading.Event | None = None,
) -> PathRecord:
    """Best subset of every size on all rows, each with its certified interval.

    Parameters and errors as for :func:`cross_validate`; `gap` is the relative gap at which a fit counts as proved.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> data = Dataset.from_arrays(np.eye(6)[:, :3], [3.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    >>> [row.support for row in best_subsets(data, gammas=[0.1], taus=[1, 2]).path]
    [('x0',), ('x0', 'x1')]
    """
    check_options(dataset, None, gap, False, time_limit, threads)
    grid = Grid.of(gammas, taus, dataset.p)
    return build_path(
        standardize(dataset, scale, intercept), grid, gap, Clock(time_limit, stop), threads, time_limit, progress
    )
