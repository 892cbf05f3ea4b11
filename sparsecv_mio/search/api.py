"""Certified cross-validation over a grid of (gamma, tau), by the method that is asked for.

The search runs in a thread of its own (:mod:`sparsecv_mio.search.loop`), so that a limit holds; no kernel and no
solver is imported before it.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.errors import SparseCVError
from sparsecv_mio.search.options import Grid, check_options
from sparsecv_mio.search.rescue import Asked, Course
from sparsecv_mio.search.result import build_record
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.search.supervise import attended

if TYPE_CHECKING:
    from sparsecv_mio.search.observers.progress import Progress


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
    began: float | None = None,
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
        Seconds; the best answer so far is returned with valid bounds, a second later at most, whatever the search is
        at (:mod:`sparsecv_mio.search.supervise`).
    threads : int, optional
        Folds solved at once; all cores by default.
    progress : callable, optional
        Called with a :class:`Progress` after each fold.
    stop : threading.Event, optional
        Set it to end the run with what it holds.
    engine : {"auto", "enumerate", "shared", "per-fold"}
        How folds share work (:mod:`sparsecv_mio.search.shared_tree.engines`); the answer is the same.
    method : {"auto", "rounds", "joint", "algorithm1", "grid", "bounds", "descent"}
        `rounds` decides every cell that may matter, work shared between taus and folds; `joint` decides the winner and
        lifts all other pairs over it (:mod:`sparsecv_mio.search.methods.joint`); `algorithm1` is the paper's, one MIO
        at a time; `grid` is the baseline; `bounds` brackets every cell and solves no MIO; `descent` leaves the grid of
        gammas, see :class:`sparsecv_mio.search.methods.descent.Descent`. `auto`: see
        :func:`sparsecv_mio.search.registry.method_for`.
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
        Store the run there now and then; carry on a run that was stored
        (:mod:`sparsecv_mio.search.observers.checkpoint`).
    trace : path, optional
        Write the course of the bounds there (:mod:`sparsecv_mio.search.observers.trace`).
    oracles : str or sequence of str, optional
        Some of `glru`, `iacv`, `treecv`, or `none`; those that pay by default
        (:mod:`sparsecv_mio.search.accelerators`). The answer is the same, `work.oracles` says what each of them saved.
    lost : callable, optional
        Called with what went wrong when the checkpoint or the trace could not be written (a full disk, say); the run
        goes on to its answer. Without it there is a warning.
    began : float, optional
        Moment of `time.monotonic` from which the limit counts; this call by default.

    Returns
    -------
    Record
        Answer and certificate, `lower <= min h <= h(reported pair) <= upper`.

    Raises
    ------
    BadInput
        If the grid or an option is out of range.
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
    check_options(dataset, folds, gap, one_se, time_limit, threads)
    clock = Deadline(time_limit, stop, began)
    asked = Asked(
        dataset, folds, Grid.of(gammas, taus, dataset.p), scale, intercept, gap, one_se, time_limit, threads, progress,
        engine, method, backend, formulation, mio_budget, refine, tau_step, checkpoint, resume, trace, oracles,
        lost or _warn,
    )  # fmt: skip
    course = Course(clock, asked, partial(build_record, one_se=one_se, time_limit=time_limit, threads=threads))
    return attended(partial(_search, course), clock, course.answer, course.prepare)


def _search(course: Course) -> Record:
    """Standard coordinates first: from there on there is an answer, even while the engine is being loaded."""
    course.begin()
    from sparsecv_mio.search.loop import conduct

    return conduct(course)


def _warn(error: SparseCVError) -> None:
    warnings.warn(str(error), stacklevel=4)
