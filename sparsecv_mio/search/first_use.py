"""Functions that compile kernels once on each machine, by a tiny run before the time limit of the actual run starts.

The kernels of a run depend on its *purpose*: the loss, the restrictions, and whether there are few columns. A file in
the cache of kernels records that the kernels of a purpose were compiled. A kernel that the tiny run does not call is
compiled at its first call, and this compilation counts towards the time limit.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_counts, as_two_classes
from sparsecv_mio.data.survival import Survival
from sparsecv_mio.errors import Interrupted
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.search.deadline import Deadline, Limited
from sparsecv_mio.search.observers import COMPILING, Progress
from sparsecv_mio.targets import DEFAULT_LOSS, Loss, Values, find_loss_of_values
from sparsecv_mio.thresholds import SMALL

FEW_COLUMNS = 12  # columns up to which all supports are listed; their kernels compile in a quarter of the time

TINY_GRID: dict[str, Any] = {"gammas": (0.01, 1.0), "taus": (1, 2)}
HARD_GRID: dict[str, Any] = {"gammas": (0.1,), "taus": (5,)}  # for correlated columns, so that trees grow


class Kind(NamedTuple):
    """A kind of questions whose searches call the same kernels.

    Attributes
    ----------
    name : str
        Name of the kind.
    seconds : float
        Approximate time of compilation in seconds, on one core of 2020.
    options : dict
        Options of tiny searches of this kind.
    shapes : tuple of (int, int, str, float)
        Rows, columns and folds of tiny data, and the correlation of neighbouring columns.
    """

    name: str
    seconds: float
    options: dict[str, Any]
    shapes: tuple[tuple[int, int, str, float], ...]


FEW = Kind("few_columns", 10.0, {}, ((36, 10, "loo", 0.0), (36, 10, "3", 0.0), (300, 2, "2", 0.0)))
MANY = Kind(
    "many_columns", 40.0, {},
    (*FEW.shapes, (36, 14, "loo", 0.0), (12, 20, "loo", 0.0), (12, 20, "3", 0.0), (60, 40, "5", 0.0),
     (60, SMALL + 4, "2", 0.5), (120, SMALL + 8, "10", 0.5)),
)  # fmt: skip
RESTRICTED = Kind("restrictions", 15.0, {"at_most": "1:x0,x1"}, ((30, 5, "loo", 0.0), (30, 5, "3", 0.0)))
BOUNDED = Kind("coefficient_bounds", 55.0, {"coef_bounds": "x0=..0.1,x1=0..0.1"}, MANY.shapes)
SMOOTH = Kind(
    "smooth_losses", 35.0, {"loss": find_loss_of_values(Values.CLASSES)},
    ((60, 12, "loo", 0.0), (60, 12, "3", 0.0), (30, 40, "3", 0.0)),
)  # fmt: skip
SURVIVAL = Kind("survival_times", 40.0, {"loss": find_loss_of_values(Values.TIMES)}, SMOOTH.shapes)
KINDS = FEW, MANY, RESTRICTED, BOUNDED, SMOOTH, SURVIVAL

_compiled: set[str] = set()  # purposes whose kernels this process has compiled, or found in the cache
_under_way: list[str] = []  # purposes that are being compiled; their tiny runs may compile others without a word


class Asked(Protocol):
    """The protocol of options that decide which kernels are called."""

    @property
    def loss(self) -> Loss:
        """Loss of the model."""

    @property
    def restrictions(self) -> Restrictions:
        """Restrictions on the models."""


class FirstUse(NamedTuple):
    """The kernels that are compiled before a clock starts.

    Attributes
    ----------
    purpose : str
        Name of the set of kernels.
    seconds : float
        Approximate time of compilation in seconds.
    run : callable
        Function of the stop event that does tiny runs of the code that calls these kernels.
    """

    purpose: str
    seconds: float
    run: Callable[[threading.Event | None], object]


def make_tiny_data(n: int, p: int, loss: Loss = DEFAULT_LOSS, correlation: float = 0.0) -> Dataset:
    """Return n rows of p columns, with a target of some columns and noise; the same data at every call.

    Parameters
    ----------
    n, p : int
        Numbers of rows and columns.
    loss : Loss
        Loss of the model; the target has two classes or counts if the loss needs them.
    correlation : float
        Correlation of neighbouring columns.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    for j in range(1, p if correlation else 0):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1.0 - correlation**2) * X[:, j]
    y = X[:, :3].sum(axis=1) + rng.standard_normal(n)
    if correlation:  # supports are hard to distinguish
        y = X[:, ::9].sum(axis=1) + 4.0 * np.random.default_rng(1).standard_normal(n)
    if loss.target.has_classes:
        return as_two_classes(Dataset.from_arrays(X, (y > np.median(y)).astype(float)))
    if loss.target.has_counts:
        return as_counts(Dataset.from_arrays(X, np.floor(np.exp(np.clip(0.5 * y, -1.0, 2.0)))))
    if loss.target.has_times:
        survival = Survival(y < 1.0, entry=np.where(y > 0.0, -1.0, 0.01))
        return replace(Dataset.from_arrays(X, np.round(np.exp(-0.5 * y), 1) + 0.1), survival=survival, event="event")
    return Dataset.from_arrays(X, y)


def answer_tiny_questions(kind: Kind, run: Callable[..., object], stop: threading.Event | None = None) -> None:
    """Solve tiny questions of a kind.

    Parameters
    ----------
    kind : Kind
        Kind of the questions.
    run : callable
        Function that solves a question, see :func:`make_first_use`.
    stop : Event, optional
        Event that Ctrl-C sets.
    """
    for n, p, folds, correlation in kind.shapes:
        if stop is None or not stop.is_set():
            data = make_tiny_data(n, p, kind.options.get("loss", DEFAULT_LOSS), correlation)
            grid = HARD_GRID if correlation else TINY_GRID
            run(data, make_folds(folds, data), **grid, **kind.options, stop=stop)


def make_first_use(command: str, options: Asked, dataset: Dataset, run: Callable[..., object]) -> FirstUse:
    """Return the kernels that a question needs, and the tiny runs that compile them.

    Parameters
    ----------
    command : str
        Name of the code that answers; each calls separate kernels.
    options : Asked
        Loss and restrictions.
    dataset : Dataset
        Data of the question.
    run : callable
        Function that answers by this code; it takes data and folds, and by keyword gammas, taus, the stop event and
        options.
    """
    if not options.loss.is_quadratic:
        kind = SURVIVAL if options.loss.target.has_times else SMOOTH
    elif options.restrictions.side_constraints:
        kind = BOUNDED if options.restrictions.has_only_bounds else RESTRICTED
    else:
        kind = FEW if dataset.p <= FEW_COLUMNS else MANY

    return FirstUse(f"{command}_{kind.name}", kind.seconds, partial(answer_tiny_questions, kind, run))


def compile_kernels_once(
    needs: FirstUse,
    stop: threading.Event | None,
    progress: Callable[[Progress], None] | None = None,
    check: Callable[[], object] | None = None,
) -> float:
    """Compile the kernels of a purpose unless that is done; return the seconds that it took.

    Parameters
    ----------
    needs : FirstUse
        Kernels to compile.
    stop : Event or None
        Event that Ctrl-C sets.
    progress : callable, optional
        Function that is called before compilation, with the expected time; without it the logger reports it.
    check : callable, optional
        Function that raises an error for a question without an answer; called before compilation, which takes long.

    Raises
    ------
    Interrupted
        If the run was stopped during compilation.
    """
    if needs.purpose in _compiled:
        return 0.0
    if _is_stored(needs.purpose):
        _compiled.add(needs.purpose)
        return 0.0
    if check is not None:
        check()
    begin = time.monotonic()
    duration = f"about {needs.seconds:.0f} s on an idle core, less if parts are stored"
    words = f"{COMPILING}: {duration}, not counted in a time limit"
    if _under_way:
        pass  # announced by the purpose whose tiny run this is
    elif progress is not None:
        progress(Progress(0, 0, 0, 0.0, np.inf, 0.0, stage=words))
    else:
        logging.getLogger("sparsecv_mio").warning(words)
    _compiled.add(needs.purpose)  # the tiny run calls this function too
    _under_way.append(needs.purpose)
    try:
        needs.run(stop)
        if stop is not None and stop.is_set():
            raise Interrupted(
                "stopped while kernels were being compiled, before an answer was found; run the command again"
            )
    except BaseException:
        _compiled.discard(needs.purpose)
        raise
    finally:
        _under_way.remove(needs.purpose)
    _store(needs.purpose)
    return time.monotonic() - begin


def start_clock(
    options: Limited, stop: threading.Event | None, began: float | None, needs: FirstUse,
    progress: Callable[[Any], None] | None = None, check: Callable[[], object] | None = None,
) -> Deadline:  # fmt: skip
    """Return the deadline of some options; missing kernels are compiled before it starts.

    Parameters
    ----------
    options : Limited
        Options with the time limit.
    stop : Event or None
        Event that Ctrl-C sets.
    began : float or None
        Start of the limit on the clock of `time.monotonic`, without the time of compilation; now by default.
    needs : FirstUse
        Kernels to compile.
    progress, check : callable, optional
        Parameters of `compile_kernels_once`.
    """
    seconds = compile_kernels_once(needs, stop, progress, check)
    return Deadline.from_options(options, stop, None if began is None else began + seconds)


def _is_stored(purpose: str) -> bool:
    try:
        from sparsecv_mio.kernels.kernel_cache import is_compiled
    except ImportError:  # numba's own cache is used, which cannot be asked
        return False
    return is_compiled(purpose)


def _store(purpose: str) -> None:
    with suppress(ImportError):
        from sparsecv_mio.kernels.kernel_cache import record_compilation

        record_compilation(purpose)
