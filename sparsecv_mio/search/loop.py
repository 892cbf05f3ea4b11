"""From the data in standard coordinates to the record: the method is driven to its end, observers attached.

`refined` is `--refine`: gamma improved continuously around the winner of a grid, its tau fixed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsecv_mio.certificate.record import Record, Refined
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import SparseCVError
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.methods.gamma_step import LEAST, MOST, PROGRESS, proposals
from sparsecv_mio.search.methods.parts.grid_search import GridSearch, NewRun
from sparsecv_mio.search.methods.parts.run import run_to_end
from sparsecv_mio.search.observers.checkpoint import Checkpoint, resume
from sparsecv_mio.search.observers.progress import Reporter, reports
from sparsecv_mio.search.observers.signals import Signals
from sparsecv_mio.search.observers.trace import Trace
from sparsecv_mio.search.registry import RowMaker, Search, context_of, new_method
from sparsecv_mio.search.result import build_record, check_intervals
from sparsecv_mio.search.running import RunningSearch
from sparsecv_mio.search.state.state import SearchState


def search(running: RunningSearch, data: StandardData) -> Record:
    """Search by the method that is asked for, and make the record.

    Parameters
    ----------
    running : RunningSearch
        Is given the method, from which the thread that waits can make a record meanwhile.
    data : StandardData

    Raises
    ------
    BadInput
        For options that do not go together, or a checkpoint of another run.
    """
    given, options = running.arguments, running.arguments.options
    context = context_of(data, given.folds, given.grid, options, running.deadline, given.trees)
    with reports(given.hooks.progress, running.deadline) as progress:
        signals = Signals()
        method = new_method(context, options, signals)
        running.method = method
        drive(method, signals, replace(given.hooks, progress=progress))
        method.score_reported_pair()
        running.deadline.check_wanted()
        snapshot, reported = method.snapshot(over=True), method.reported
        if snapshot is None or reported is None or not snapshot.scored:  # a limit within the first steps
            return running.record()
        state = reported.run.state
        nodes = state.counts.nodes
        record = build_record(snapshot, options, reported.method.best_on_all_rows, state.all_rows)
        spent = state.counts.nodes - nodes  # on all rows at the reported pair
        record = replace(record, work=replace(record.work, nodes=record.work.nodes + spent))
        if given.hooks.found is not None:
            given.hooks.found(snapshot)
        return _refine(record, reported) if options.refine else record


def drive(method: Search, signals: Signals, hooks: Hooks) -> None:
    """Run a method from the start, or from a checkpoint, to the end, observers attached.

    Parameters
    ----------
    method : Search
    signals : Signals
        Those of the method.
    hooks : Hooks
        Progress, trace and checkpoint; `lost` is called with what could not be written.
    """
    trace = Trace(hooks.trace) if hooks.trace is not None else None
    keeper = Checkpoint(hooks.checkpoint) if hooks.checkpoint is not None else None
    if trace is not None:
        signals.listen(progressed=lambda: trace.visit(method))
    reporter = Reporter(hooks.progress, method.progress) if hooks.progress is not None else None
    if reporter is not None:
        signals.listen(progressed=reporter.visit, doing=reporter.say)
    if hooks.resume is None or not resume(method, hooks.resume):
        if keeper is not None:  # should the limit come while the run begins
            keeper.write(method, begun=False)
        method.begin()
    if keeper is not None:
        _store(method, signals, keeper)
    run_to_end(method)
    if keeper is not None and (keeper.failure is not None or not method.context.deadline.expired()):
        keeper.write(method)
    if reporter is not None:
        reporter.report()
    if trace is not None:
        trace.close(method)
    failures: list[SparseCVError | None] = [one.failure for one in (keeper, trace) if one is not None]
    for failure in failures:
        if failure is not None and hooks.lost is not None:
            hooks.lost(failure)


def _store(method: Search, signals: Signals, keeper: Checkpoint) -> None:
    """Write a first checkpoint, and others at safe points before the limit."""

    def visit() -> None:
        if not method.context.deadline.expired():
            keeper.visit(method)

    keeper.write(method)
    signals.listen(safe_point=visit)


def _refine(record: Record, reported: GridSearch) -> Record:
    state = reported.run.state
    record = replace(record, refined=refined(record, state, RowMaker(state.context).make))
    check_intervals(record)
    return record


def refined(record: Record, state: SearchState, new_run: NewRun) -> Refined:
    """Improve gamma around the reported pair at its tau; each gamma's folds are solved anew.

    Parameters
    ----------
    record : Record
    state : SearchState
        Of the run behind it.
    new_run : callable
        Makes the runs at other gammas.
    """
    context, unit = state.context, state.context.per_row
    interval = (min(LEAST, *record.request.gammas), max(MOST, *record.request.gammas))
    at = (int(np.searchsorted(context.grid.gammas, record.gamma)), int(np.searchsorted(context.grid.taus, record.tau)))
    lower, upper = (float(ends[at]) * unit for ends in (state.bounds().lower, state.bounds().upper))
    here = Refined(record.gamma, record.tau, record.cv_error, lower, upper, record.estimate)
    points = proposals(state, at, interval)
    while points and not context.deadline.expired():
        row = new_run([points.pop(0).gamma], [record.tau], Signals())
        row.begin()
        run_to_end(row)
        now = row.run.state.bounds()
        if now.ceiling * unit < here.upper * (1.0 - PROGRESS):
            h, open_folds = float(now.shown[now.best]) * unit, int(now.decided[now.best]) < context.folds.k
            gamma = float(row.context.grid.gammas[0])
            here = Refined(gamma, record.tau, h, now.floor * unit, now.ceiling * unit, open_folds)
            points = proposals(row.run.state, now.best, interval)
    return here
