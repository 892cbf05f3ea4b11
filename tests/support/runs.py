"""Methods of a search, made and driven step by step as the loop does it; a small problem for them."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import problems
import pytest

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.search.answer.result import build_record
from sparsecv_mio.search.api import new_method
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.observers import Signals
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.running_search import with_threads
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.pairs import Grid


def new_run(
    data: StandardData, folds: FoldPlan, grid: Grid, seconds: float | None = None, signals: Signals | None = None,
    **words: Any,
) -> Any:  # fmt: skip
    """A method that has not begun: rounds at gap 0 on one thread, unless `words` say otherwise."""
    options = SearchOptions.of(**{"method": "rounds", "gap": 0.0, "threads": 1, **words})
    context = new_context(data, folds, grid, seconds, options)
    return new_method(with_threads(context, options), options, signals or Signals())


def new_context(
    data: StandardData, folds: FoldPlan, grid: Grid, seconds: float | None = None,
    options: SearchOptions = SearchOptions(gap=0.0, threads=1),
) -> Context:  # fmt: skip
    """The context of a search, at gap 0 and on one thread unless its options say otherwise."""
    deadline = Deadline(seconds, threading.Event() if seconds else None)
    return Context(data, folds, grid, options.request(grid), deadline, options.workers)


def change_plan(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Change settings of the plan of every search that is made from now on."""
    make = Plan.make
    monkeypatch.setattr(Plan, "make", lambda context, full: replace(make(context, full), **changes))


def through_earlier_orders(run: Any) -> Any:
    """The same run after the orders of its plan before the last one."""
    while int(run.state.tried.n_orders_done) < len(run.plan.orders) - 1 and not run.is_finished:
        run.take_turn()
    return run


def to_end(run: Any) -> Any:
    """The same run, finished."""
    run.run_to_end()
    return run


def record_of(run: Any) -> Record:
    """The record of a run, in whatever state it is."""
    run.score_reported_pair()
    snapshot = run.snapshot(over=True)
    assert snapshot is not None
    return build_record(snapshot)


def drawn(p: int = 6, n: int = 30, folds: str = "5", noise: float = 0.5) -> tuple[Any, Any, Grid]:
    """Data in standard coordinates, folds, and a grid of two gammas and tau 1 to 3."""
    dataset = problems.linear(5, n, p, {0: 2.0, 3: -1.0}, noise=noise)
    return standardize(dataset), make_folds(folds, dataset), Grid.of([0.1, 1.0], [1, 2, 3], p)


def drawn_run(method: str = "rounds", **words: Any) -> Any:
    """A method over the small problem, not begun."""
    return new_run(*drawn(), method=method, **words)
