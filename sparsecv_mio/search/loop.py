"""The one loop that drives every method, from the data in standard coordinates to the record."""

from __future__ import annotations

from dataclasses import replace

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import SparseCVError
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.methods.parts.run import CellMethod, Strategy
from sparsecv_mio.search.methods.refine import refined
from sparsecv_mio.search.methods.rows import RowMaker
from sparsecv_mio.search.observers.checkpoint import Checkpoint, resume
from sparsecv_mio.search.observers.progress import Reporter, reports
from sparsecv_mio.search.observers.signals import Signals
from sparsecv_mio.search.observers.trace import Trace
from sparsecv_mio.search.registry import context_of, new_method
from sparsecv_mio.search.rescue import Course
from sparsecv_mio.search.result import build_record, check_intervals


def conduct(course: Course, data: StandardData) -> Record:
    """Search, leaving in `course` what is known so far, and make the record.

    Raises
    ------
    BadInput
        For options that do not go together, or a checkpoint of another run.
    """
    asked, options = course.question, course.question.options
    context = context_of(data, asked.folds, asked.grid, options, course.deadline)
    with reports(asked.hooks.progress, course.deadline) as progress:
        signals = Signals()
        method = new_method(context, options, signals)
        course.method = method
        carry_out(method, signals, replace(asked.hooks, progress=progress))
        method.score_reported_pair()
        course.deadline.check_wanted()
        standing, reported = method.standing(), method.reported
        if standing is None or reported is None or not standing.scored:  # a limit within the first steps
            return course.answer()
        state = reported.run.state
        nodes = state.counts.nodes
        record = build_record(standing, options, reported.best_on_all_rows, state.all_rows)
        spent = state.counts.nodes - nodes  # on all rows at the reported pair
        record = replace(record, work=replace(record.work, nodes=record.work.nodes + spent))
        return _refine(record, reported) if options.refine else record


def run_to_end(method: Strategy) -> None:
    """Step until the method is finished, and let it finish."""
    while not method.finished:
        method.step()
    method.finish()


def carry_out(method: Strategy, signals: Signals, hooks: Hooks) -> None:
    """Run a method from the start, or from a checkpoint, to the end; observers look on.

    Parameters
    ----------
    method : Strategy
    signals : Signals
        Those of the method.
    hooks : Hooks
        Progress, trace and checkpoint; `lost` is called with what could not be written.
    """
    trace = Trace(hooks.trace) if hooks.trace is not None else None
    keeper = Checkpoint(hooks.checkpoint) if hooks.checkpoint is not None else None
    if trace is not None:
        signals.listen(progressed=lambda: trace.visit(method))
    if hooks.progress is not None:
        signals.listen(progressed=Reporter(hooks.progress, method.progress).visit)
    if hooks.resume is not None:
        resume(method, hooks.resume)
    else:
        method.begin()
    if keeper is not None:
        _store(method, signals, keeper)
    run_to_end(method)
    if keeper is not None and (keeper.failure is not None or not method.context.deadline.expired()):
        keeper.write(method)
    if trace is not None:
        trace.close(method)
    failures: list[SparseCVError | None] = [one.failure for one in (keeper, trace) if one is not None]
    for failure in failures:
        if failure is not None and hooks.lost is not None:
            hooks.lost(failure)


def _store(method: Strategy, signals: Signals, keeper: Checkpoint) -> None:
    """Write a first checkpoint, and others at safe points before the limit."""

    def visit() -> None:
        if not method.context.deadline.expired():
            keeper.visit(method)

    keeper.write(method)
    signals.listen(safe_point=visit)


def _refine(record: Record, reported: CellMethod) -> Record:
    state = reported.run.state
    record = replace(record, refined=refined(record, state, RowMaker(state.context)))
    check_intervals(record)
    return record
