"""From the data in standard coordinates to the record: the requested method, driven to its end under observers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.arrays import CHUNK_ELEMENTS, give_back_memory
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search.context import Context
from sparsecv_mio.search.observers import (
    RESUMED,
    Checkpoint,
    Progress,
    Reporter,
    Signals,
    Stored,
    Trace,
    resume,
    run_to_end,
)
from sparsecv_mio.search.options import Hooks, SearchOptions, method_for
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.search.recheck import rechecked
from sparsecv_mio.search.result import build_record
from sparsecv_mio.search.running import RunningSearch
from sparsecv_mio.thresholds import by_rows, is_very_wide
from sparsecv_mio.words import Loss, Method

if TYPE_CHECKING:
    from sparsecv_mio.search.descent import Descent
    from sparsecv_mio.search.grid_search import GridSearch

    Search = Descent | GridSearch


def with_threads(context: Context, options: SearchOptions) -> Context:
    """Return the context of a search with the threads that the data and the backend allow.

    Parameters
    ----------
    context : Context
        As many folds are worked on at once as its `hands` do slices, if that are more than its threads.
    options : SearchOptions
    """
    threads = max(context.threads, context.hands.at_once) if get_backend(options.backend).capabilities.concurrent else 1
    data = context.data
    if options.loss is Loss.SQUARED and (by_rows(data, context.folds.k) or is_very_wide(data)):
        from sparsecv_mio.search.problems.by_rows import threads_for

        threads = threads_for(data, threads)
    return replace(context, threads=threads)


def new_method(context: Context, options: SearchOptions, signals: Signals) -> Search:
    """Return the method that is asked for, not begun.

    Parameters
    ----------
    context : Context
    options : SearchOptions
    signals : Signals
        Where it will say that it has come further.
    """
    method = method_for(options)
    if method is Method.DESCENT:
        from sparsecv_mio.search.descent import Descent

        return Descent(context, RowMaker(context).make, signals)
    from sparsecv_mio.search.grid_search import GridSearch

    return GridSearch(context, signals)


class RowMaker:
    """Makes runs over other pairs of the same data and folds.

    Parameters
    ----------
    context : Context
        Of the search that they belong to.
    """

    def __init__(self, context: Context) -> None:
        self.context = context

    def make(self, gammas: Sequence[float], taus: Sequence[int], signals: Signals | None = None) -> GridSearch:
        """Return a run over some pairs, not begun.

        Parameters
        ----------
        gammas, taus : sequences
            The grid of the run.
        signals : Signals, optional
            Where it says that it has come further; nobody listens by default.
        """
        data, folds = self.context.data, self.context.folds
        threads = self.context.threads
        if by_rows(data, folds.k):
            from sparsecv_mio.search.problems.by_rows import threads_for

            threads = threads_for(data, threads)
        from sparsecv_mio.search.grid_search import GridSearch

        grid = Grid.of(gammas, taus, data.dataset.p)
        return GridSearch(self.context.row(grid, threads), signals or Signals())


def search(running: RunningSearch, context: Context) -> Record:
    """Search by the method that is asked for, and make the record.

    Parameters
    ----------
    running : RunningSearch
        Is given the method, from which the thread that waits can make a record meanwhile.
    context : Context
        That of `running`.

    Raises
    ------
    BadInput
        For options that do not go together, or a checkpoint of another run.
    """
    options, hooks = running.question.options, running.question.hooks
    signals = Signals()
    method = new_method(with_threads(context, options), options, signals)
    running.go_on_by(method)
    running.keeper = Checkpoint(hooks.place_to_store) if hooks.place_to_store is not None else None
    drive(method, signals, hooks, running.keeper, running.stored)
    running.deadline.check_wanted()
    if context.data.dataset.X.size > CHUNK_ELEMENTS:
        give_back_memory()  # the record is made of refits of all rows
    snapshot, reported = method.snapshot(over=True), method.reported
    if snapshot is None or reported is None or not snapshot.scored:  # a limit within the first steps
        return running.record()
    snapshot = rechecked(snapshot)
    state, running.reported = reported.state, snapshot
    nodes = state.counts.nodes
    record = build_record(snapshot, reported.best_on_all_rows, state.all_rows)
    spent = state.counts.nodes - nodes  # on all rows at the reported pair
    return replace(record, work=replace(record.work, nodes=record.work.nodes + spent))


def drive(
    method: Search, signals: Signals, hooks: Hooks, keeper: Checkpoint | None = None, stored: Stored | None = None
) -> None:
    """Run a method from the start, or from a checkpoint, to the end, observers attached.

    Parameters
    ----------
    method : Search
    signals : Signals
        Those of the method.
    hooks : Hooks
        Progress, trace and checkpoint; `lost` is called with what could not be written.
    keeper : Checkpoint, optional
        Writes the checkpoint; made here by default.
    stored : mapping and Archive, optional
        What the checkpoint to carry on holds, where that is read already.
    """
    trace = Trace(hooks.trace) if hooks.trace is not None else None
    if keeper is None and hooks.place_to_store is not None:
        keeper = Checkpoint(hooks.place_to_store)
    carried_on = hooks.resume is not None and resume(method, hooks.resume, stored)
    if trace is not None:  # of a run that is carried on nothing is told before it knows what it knew
        signals.listen(progressed=lambda: trace.visit(method))
    reporter = _reporter(method, signals, hooks, carried_on)
    _begin(method, signals, keeper, carried_on)
    run_to_end(method)
    if keeper is not None and (keeper.failure is not None or not method.context.deadline.expired()):
        keeper.write(method, ended=not method.context.deadline.expired())
    method.score_reported_pair()
    if reporter is not None:
        reporter.report()
    if trace is not None:
        trace.close(method)
    _tell_lost(hooks, (keeper, trace))


def _begin(method: Search, signals: Signals, keeper: Checkpoint | None, carried_on: bool) -> None:
    """Let a method take its first steps, unless it is carried on; store it from when its state is valid."""
    if not carried_on:
        if keeper is not None:  # should the limit come while the run begins
            keeper.write(method, begun=False)
            if method.is_always_valid:
                _store(method, signals, keeper)
        method.begin()
    if keeper is not None and (carried_on or not method.is_always_valid):
        _store(method, signals, keeper)


def _tell_lost(hooks: Hooks, writers: Iterable[Checkpoint | Trace | None]) -> None:
    """Say what could not be written."""
    for writer in writers:
        if hooks.lost is not None and writer is not None and writer.failure is not None:
            hooks.lost(writer.failure)


def _reporter(method: Search, signals: Signals, hooks: Hooks, carried_on: bool) -> Reporter | None:
    """Return who reports progress, listening already; None where nobody wants to know."""
    if hooks.progress is None:
        return None
    reporter = Reporter(hooks.progress, method.progress)
    signals.listen(progressed=reporter.visit, doing=reporter.say)
    if hooks.resume is not None:
        progress = method.progress() if carried_on else Progress(0, 0, 0, 0.0, np.inf, method.context.deadline.seconds)
        hooks.progress(replace(progress, stage=RESUMED))
    return reporter


def _store(method: Search, signals: Signals, keeper: Checkpoint) -> None:
    """Write a first checkpoint, and others at safe points before the limit."""

    def visit() -> None:
        if not method.context.deadline.expired():
            keeper.visit(method)

    keeper.write(method)
    signals.listen(safe_point=visit)
