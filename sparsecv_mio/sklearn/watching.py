"""A fit while it runs: lines on the screen, callbacks of scikit-learn, Ctrl-C."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning

from sparsecv_mio.search.interrupts import interruptible
from sparsecv_mio.search.observers.progress import Progress

LINE_SECONDS = 1.0  # between two lines of `verbose`


class Watch(NamedTuple):
    """What a search is given: the event that ends it, and whom it reports to, if anybody."""

    stop: Event
    progress: Callable[[Progress], None] | None


@contextmanager
def watched(estimator: Any, X: Any, y: Any) -> Iterator[Watch]:
    """Yield what a search of an estimator is given, and tell the callbacks of its begin and its end.

    The first Ctrl-C, or a callback that asks for it, ends the search with its best answer so far.

    Parameters
    ----------
    estimator : BestSubsetRidge or BestSubsetRidgeCV
        Its `verbose` asks for lines on the screen.
    X, y : arrays
        What callbacks are told.
    """
    context = None
    if hasattr(estimator, "_init_callback_context"):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    with interruptible(type(estimator).__name__) as stop:
        reports = [_lines(type(estimator).__name__)] if estimator.verbose else []
        if getattr(estimator, "_skl_callbacks", None):
            reports.append(_to_callbacks(estimator, context, stop))
        yield Watch(stop, _to_all(reports) if reports else None)
    if context is not None:
        fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
        context.call_on_fit_task_end(estimator=estimator, X=X, y=y, reconstruction_attributes=fitted)


def warn_unproved(estimator: Any) -> None:
    """Warn of a fit that ended without a proof, and say what is known all the same."""
    if estimator.status_ != "proved":
        why = "was interrupted" if estimator.status_ == "interrupted" else "reached its limit"
        known = f"certified are {estimator.lower_:g} and {estimator.upper_:g} as bounds"
        took = [words for words in estimator.record_.warnings if "compiling" in words]
        words = "; ".join([f"{type(estimator).__name__} {why} before the answer was proved: {known}", *took])
        warnings.warn(words, ConvergenceWarning, stacklevel=3)


def _to_all(reports: list[Callable[[Progress], None]]) -> Callable[[Progress], None]:
    def report(now: Progress) -> None:
        for each in reports:
            each(now)

    return report


def _lines(name: str) -> Callable[[Progress], None]:
    due = -math.inf

    def report(now: Progress) -> None:
        nonlocal due
        if time.monotonic() >= due:
            bounds = f"[{now.lower:g}, {now.upper:g}]"
            print(f"{name}: {now.seconds:.0f} s, {now.done}/{now.total} decided, {now.nodes} nodes, bounds {bounds}")
            due = time.monotonic() + LINE_SECONDS

    return report


def _to_callbacks(estimator: Any, context: Any, stop: Event) -> Callable[[Progress], None]:
    """Return a report that is a task to callbacks; one of them may ask for the end."""

    def report(now: Progress) -> None:
        task = context.subcontext(task_name="report")
        task.call_on_fit_task_begin(estimator=estimator)
        if task.call_on_fit_task_end(estimator=estimator):
            stop.set()

    return report
