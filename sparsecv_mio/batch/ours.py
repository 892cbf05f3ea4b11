"""Our search as an estimator of a batch, and what every estimator returns."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.records import PathRow, Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.declared_options import ACCELERATING, FORCING, SEARCHING, UNITS

if TYPE_CHECKING:
    from sparsecv_mio.search.options import SearchOptions


class Model(NamedTuple):
    """Coefficients (p,) and intercept, in units of the file."""

    coefficients: FloatArray
    intercept: float


@dataclass(frozen=True)
class Fitted:
    """A model that an estimator chose.

    Attributes
    ----------
    coefficients : (p,) array
        In units of the file.
    intercept : float
    seconds : float
        Of the fit alone, on the clock.
    numbers : dict
        What else is known: the CV error, the chosen hyperparameters, bounds.
    record : Record, optional
        Of our search.
    others : dict
        Models by other rules, by name: `one_se`.
    """

    coefficients: FloatArray
    intercept: float
    seconds: float
    numbers: Mapping[str, Any]
    record: Record | None = None
    others: Mapping[str, Model] = field(default_factory=dict)


@dataclass(frozen=True)
class OracleScore:
    """What is known of one setting, of which there is no model.

    Attributes
    ----------
    seconds : float
        Of the scoring alone, on the clock.
    numbers : dict
        The CV error, counts, errors of approximations.
    record : None
        Nothing certifies it as a record of our search does.
    """

    seconds: float
    numbers: Mapping[str, Any]
    record: None = None


OURS = "sparsecv"  # name of the estimator
_OF_ANY_SEARCH = UNITS | SEARCHING | ACCELERATING | FORCING
OF_SEARCHES = (*(name for name in _OF_ANY_SEARCH if name != "threads"), "tau_step")  # a task has one thread
SEARCH = ("gamma", "tau", *OF_SEARCHES, "cpu_limit")
LOOKS = 0.02  # seconds between two looks at the processor's clock
BOTH = "both"  # word of `one_se`: the model of either rule


def run_search(data: Dataset, plan: FoldPlan, settings: Mapping[str, Any], training_only: bool = False) -> Fitted:
    """Choose (tau, gamma) by our search, and fit.

    Parameters
    ----------
    data : Dataset
    plan : FoldPlan
    settings : mapping
        Options of the search by the names of the command line; `cpu_limit`, seconds of this process, which unlike
        `time_limit` do not depend on what else the machine does; `one_se = "both"`, the model of the
        one-standard-error rule beside that of the least CV error.
    training_only : bool
        Whether the model is that of the training rows of the single fold, not of all rows.
    """
    from sparsecv_mio.search.api import cross_validate
    from sparsecv_mio.search.options import Hooks

    both, options = settings.get("one_se") == BOTH, options_of(settings)
    begin, spent = time.perf_counter(), time.process_time()
    with processor_limit(settings.get("cpu_limit")) as stop:
        record = cross_validate(
            data, plan, gammas=settings.get("gamma"), taus=settings.get("tau"), options=options, hooks=Hooks(stop=stop)
        )
    seconds, cpu = time.perf_counter() - begin, time.process_time() - spent
    found = of_record(record, data, seconds, plan if training_only else None)
    others = {"one_se": _simplest(record, data, options, settings.get("cpu_limit"))} if both else {}
    return replace(found, numbers={**found.numbers, "cpu_seconds": cpu}, others=others)


def options_of(settings: Mapping[str, Any]) -> SearchOptions:
    """Return the options of the search that settings describe.

    Parameters
    ----------
    settings : mapping
        As of :func:`run_search`; those of every estimator may be among them.
    """
    from sparsecv_mio.search.options import SearchOptions

    given = {name: settings[name] for name in OF_SEARCHES if settings.get(name) is not None}
    if given.get("one_se") == BOTH:
        del given["one_se"]
    return SearchOptions.of(threads=1, **given)


def of_record(record: Record, data: Dataset, seconds: float, held_out: FoldPlan | None = None) -> Fitted:
    """Return the model and the numbers of a record of our search.

    Parameters
    ----------
    record : Record
    data : Dataset
        The rows it was made from.
    seconds : float
        Of the fit.
    held_out : FoldPlan, optional
        The single fold on whose training rows alone the model is fitted.
    """
    numbers = {
        "status": record.status, "cv_error": record.cv_error, "lower": record.lower, "upper": record.upper,
        "gap": record.gap, "tau": record.tau, "gamma": record.gamma, "mios": record.work.mios,
        "nodes": record.work.nodes,
    }  # fmt: skip
    model = _named(record, data) if held_out is None else _on_training_rows(record, data, held_out)
    return Fitted(*model, seconds, numbers, record)


@contextmanager
def processor_limit(seconds: float | None) -> Iterator[threading.Event | None]:
    """Yield an event that is set once this process has had so many seconds of the processor; None without a limit."""
    if seconds is None:
        yield None
        return
    stop, over, end = threading.Event(), threading.Event(), time.process_time() + float(seconds)

    def watch() -> None:
        while not over.wait(LOOKS):
            if time.process_time() > end:
                stop.set()
                return

    watcher = threading.Thread(target=watch, name="processor limit", daemon=True)
    watcher.start()
    try:
        yield stop
    finally:
        over.set()
        watcher.join()


def _named(record: Record | PathRow, data: Dataset) -> Model:
    """Return coefficients by name as an array."""
    place = {column: j for j, column in enumerate(data.names)}
    coefficients = np.zeros(data.p)
    for column, value in record.coefficients.items():
        coefficients[place[column]] = value
    return Model(coefficients, float(record.intercept))


def _on_training_rows(record: Record, data: Dataset, plan: FoldPlan) -> Model:
    """Return the model of the reported pair that was fitted without the rows of the single fold."""
    from sparsecv_mio.problem.objective import fit

    (support,) = record.chosen_folds.supports
    columns = [data.names.index(name) for name in support]
    coefficients: FloatArray = np.zeros(data.p)
    if not columns:
        return Model(coefficients, float(data.y[plan.train_rows(0)].mean()))
    found = fit(
        data.X, data.y, columns, record.gamma, scale=record.data.scale, intercept=record.data.intercept,
        rows=plan.train_rows(0),
    )  # fmt: skip
    coefficients[columns] = found.beta
    return Model(coefficients, found.intercept)


def simplest_pair(record: Record) -> tuple[float, int]:
    """Return the pair of the one-standard-error rule by the CV errors of the table, proved or estimated.

    The smallest tau, then the largest gamma, whose CV error is at most one standard error above that of the reported
    pair; of a record that a limit cut short, `solve --one-se` asks for certified bounds instead.
    """
    best = next(row for row in record.table if (row.gamma, row.tau) == (record.gamma, record.tau))
    most = record.cv_error + (best.standard_error or 0.0)
    within = [(row.tau, -row.gamma) for row in record.table if row.cv_error <= most]
    tau, gamma = min(within, default=(record.tau, -record.gamma))
    return -gamma, tau


def _simplest(record: Record, data: Dataset, options: SearchOptions, cpu_limit: float | None) -> Model:
    """Return the model of the one-standard-error rule, on all rows."""
    from sparsecv_mio.fits.best_subsets import best_subsets

    gamma, tau = simplest_pair(record)
    with processor_limit(cpu_limit) as stop:
        found = best_subsets(
            data, gammas=[gamma], taus=[tau], stop=stop, scale=options.scale, intercept=options.intercept, threads=1,
            restrictions=options.restrictions,
        )  # fmt: skip
    return _named(found.path[0], data)
