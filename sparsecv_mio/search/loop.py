"""The run of the requested method on data in standard coordinates, from the context to the record.

Progress, trace and checkpoints are written during the search (:mod:`sparsecv_mio.search.observers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.arrays import CHUNK_ELEMENTS, give_back_memory
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search.answer.recheck import recheck_snapshot
from sparsecv_mio.search.answer.result import build_record
from sparsecv_mio.search.answer.running import RunningSearch
from sparsecv_mio.search.observers import (
    RESUMED,
    Checkpoint,
    Progress,
    Reporter,
    Signals,
    Stored,
    Trace,
    finish_search,
    resume,
)
from sparsecv_mio.search.options import Hooks, SearchOptions, choose_method
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.thresholds import has_large_matrices, is_very_wide
from sparsecv_mio.words import Method

if TYPE_CHECKING:
    from sparsecv_mio.search.every_gamma.descent import Descent
    from sparsecv_mio.search.grid_search import GridSearch

    Search = Descent | GridSearch


def with_threads(context: Context, options: SearchOptions) -> Context:
    """Return the context of a search with the number of threads that the data and the backend allow.

    Parameters
    ----------
    context : Context
        Context of the search. If its `hands` run more work units at once than it has threads, their number counts.
    options : SearchOptions
        Options of the search.
    """
    threads = max(context.threads, context.hands.at_once) if get_backend(options.backend).capabilities.concurrent else 1
    data = context.data
    if options.loss.is_quadratic and (has_large_matrices(data, context.folds.k) or is_very_wide(data)):
        from sparsecv_mio.search.problems.by_rows import limit_threads

        threads = limit_threads(data, threads)
    return replace(context, threads=threads)


def new_method(context: Context, options: SearchOptions, signals: Signals) -> Search:
    """Return the requested method before its first step.

    Parameters
    ----------
    context : Context
        Context of the search.
    options : SearchOptions
        Options of the search.
    signals : Signals
        Signals by which the method reports its progress.
    """
    method = choose_method(options)
    if method is Method.DESCENT:
        from sparsecv_mio.search.every_gamma.descent import Descent

        return Descent(context, RowMaker(context).make, signals)
    from sparsecv_mio.search.grid_search import GridSearch

    return GridSearch(context, signals)


class RowMaker:
    """A maker of searches over other pairs of the same data and folds.

    Parameters
    ----------
    context : Context
        Context of the search that the new searches belong to.
    """

    def __init__(self, context: Context) -> None:
        self.context = context

    def make(self, gammas: Sequence[float], taus: Sequence[int], signals: Signals | None = None) -> GridSearch:
        """Return a search over some pairs before its first step.

        Parameters
        ----------
        gammas, taus : sequences
            Grid of the search.
        signals : Signals, optional
            Signals by which the search reports its progress; without listeners by default.
        """
        data, folds = self.context.data, self.context.folds
        threads = self.context.threads
        if has_large_matrices(data, folds.k):
            from sparsecv_mio.search.problems.by_rows import limit_threads

            threads = limit_threads(data, threads)
        from sparsecv_mio.search.grid_search import GridSearch

        grid = Grid.of(gammas, taus, data.dataset.p)
        return GridSearch(self.context.row(grid, threads), signals or Signals())


def search(running: RunningSearch, context: Context) -> Record:
    """Search by the requested method, and build the record.

    Parameters
    ----------
    running : RunningSearch
        Running search. It receives the method, from which the waiting thread can build a record at any time.
    context : Context
        Context of `running`.

    Raises
    ------
    BadInput
        If options cannot be combined, or the checkpoint belongs to another run.
    """
    options, hooks = running.question.options, running.question.hooks
    signals = Signals()
    method = new_method(with_threads(context, options), options, signals)
    running.set_method(method)
    running.keeper = Checkpoint(hooks.place_to_store) if hooks.place_to_store is not None else None
    drive(method, signals, hooks, running.keeper, running.stored)
    running.deadline.check_caller_waits()
    if context.data.dataset.X.size > CHUNK_ELEMENTS:
        give_back_memory()  # the record is built from refits of the full data
    snapshot, reported = method.snapshot(over=True), method.reported_search
    if snapshot is None or reported is None or not snapshot.has_scored_pair:  # a limit within the first steps
        return running.record()
    snapshot = recheck_snapshot(snapshot)
    state, running.reported = reported.state, snapshot
    nodes = state.counts.nodes
    record = build_record(snapshot, reported.best_on_all_rows, state.all_rows)
    spent = state.counts.nodes - nodes  # nodes of the full data at the reported pair
    return replace(record, work=replace(record.work, nodes=record.work.nodes + spent))


def drive(
    method: Search, signals: Signals, hooks: Hooks, keeper: Checkpoint | None = None, stored: Stored | None = None
) -> None:
    """Run a method with its observers to the end, from the start or from a checkpoint.

    Parameters
    ----------
    method : Search
        Method to run.
    signals : Signals
        Signals of the method.
    hooks : Hooks
        Places and functions for progress, trace and checkpoint; `lost` receives failures to write.
    keeper : Checkpoint, optional
        Writer of the checkpoint; built here by default.
    stored : mapping and Archive, optional
        Content of the checkpoint to resume, if it was read already.
    """
    trace = Trace(hooks.trace) if hooks.trace is not None else None
    if keeper is None and hooks.place_to_store is not None:
        keeper = Checkpoint(hooks.place_to_store)
    carried_on = hooks.resume is not None and resume(method, hooks.resume, stored)
    if trace is not None:  # a resumed run is traced only after its state is restored
        signals.listen(progressed=lambda: trace.visit(method))
    reporter = _reporter(method, signals, hooks, carried_on)
    _begin(method, signals, keeper, carried_on)
    finish_search(method)
    if keeper is not None and (keeper.failure is not None or not method.context.deadline.has_expired()):
        keeper.write(method, ended=not method.context.deadline.has_expired())
    method.score_reported_pair()
    if reporter is not None:
        reporter.report()
    if trace is not None:
        trace.close(method)
    _report_write_failures(hooks, (keeper, trace))


def _begin(method: Search, signals: Signals, keeper: Checkpoint | None, carried_on: bool) -> None:
    """Take the first steps of a method unless it is resumed, and store it as soon as its state is valid."""
    if not carried_on:
        if keeper is not None:  # the limit may expire while the run begins
            keeper.write(method, begun=False)
            if method.is_always_valid:
                _store(method, signals, keeper)
        method.begin()
    if keeper is not None and (carried_on or not method.is_always_valid):
        _store(method, signals, keeper)


def _report_write_failures(hooks: Hooks, writers: Iterable[Checkpoint | Trace | None]) -> None:
    """Report the failures to write."""
    for writer in writers:
        if hooks.lost is not None and writer is not None and writer.failure is not None:
            hooks.lost(writer.failure)


def _reporter(method: Search, signals: Signals, hooks: Hooks, carried_on: bool) -> Reporter | None:
    """Return the reporter of progress, already listening; None if nobody requested progress."""
    if hooks.progress is None:
        return None
    reporter = Reporter(hooks.progress, method.progress)
    signals.listen(progressed=reporter.visit, doing=reporter.say)
    if hooks.resume is not None:
        progress = method.progress() if carried_on else Progress(0, 0, 0, 0.0, np.inf, method.context.deadline.seconds)
        hooks.progress(replace(progress, stage=RESUMED))
    return reporter


def _store(method: Search, signals: Signals, keeper: Checkpoint) -> None:
    """Write a first checkpoint, and further ones at safe points before the limit."""

    def visit() -> None:
        if not method.context.deadline.has_expired():
            keeper.visit(method)

    keeper.write(method)
    signals.listen(safe_point=visit)
