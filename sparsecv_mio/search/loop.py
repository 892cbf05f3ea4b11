"""A search from the data in standard coordinates to the record: what the thread that searches does."""

from __future__ import annotations

from dataclasses import replace

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.search.accelerators import Accelerators
from sparsecv_mio.search.heuristics.estimates import sharpen
from sparsecv_mio.search.heuristics.last_pair import score_one_pair
from sparsecv_mio.search.methods.by_rows import WideSearch, by_rows
from sparsecv_mio.search.methods.descent import Descent
from sparsecv_mio.search.methods.refine import refined
from sparsecv_mio.search.methods.rounds import CrossValidation
from sparsecv_mio.search.observers.checkpoint import carry_out
from sparsecv_mio.search.observers.progress import reports
from sparsecv_mio.search.observers.trace import Trace
from sparsecv_mio.search.registry import METHODS, method_for
from sparsecv_mio.search.rescue import Course, Question, scored
from sparsecv_mio.search.result import build_record, check_intervals
from sparsecv_mio.search.state.deadline import Deadline
from sparsecv_mio.words import Method


def conduct(course: Course) -> Record:
    """Search, leaving in `course` what is known so far.

    Raises
    ------
    BadInput
        For options that do not go together.
    """
    asked, options = course.question, course.question.options
    assert course.data is not None
    with reports(asked.hooks.progress, course.clock) as progress:
        asked = replace(asked, hooks=replace(asked.hooks, progress=progress))
        if options.method is Method.DESCENT:
            return _descend(asked, course, course.data)
        run = course.run = _run_of(asked, course.clock, course.data)
        _carry_out(run, asked)
        if run.full:
            score_one_pair(run)
            sharpen(run)
        course.clock.check_wanted()
        if not scored(run):  # a limit within the first steps
            return course.answer()
        record = build_record(run, one_se=options.one_se, time_limit=options.time_limit, threads=options.threads)
        if options.refine:
            record = replace(record, refined=refined(record, run))
            check_intervals(record)
        return record


def _run_of(asked: Question, clock: Deadline, data: StandardData) -> CrossValidation:
    """The run of the method asked for, not begun."""
    folds, grid, options = asked.folds, asked.grid, asked.options
    run: CrossValidation
    common = data, folds, grid, options.gap, clock, options.workers, asked.hooks.progress
    method = method_for(options, len(grid.gammas), data.q, folds.k)
    if by_rows(data, folds.k):
        run = WideSearch(
            *common, method=method, backend=options.backend, formulation=options.formulation,
            mio_budget=options.mio_budget,
        )  # fmt: skip
    elif method is Method.ROUNDS:
        run = CrossValidation(*common, options.engine)
    else:
        one_by_one = METHODS[method](*common, options.backend, options.mio_budget)
        one_by_one.formulation = options.formulation
        run = one_by_one
    run.oracles = Accelerators(run, options.oracles)
    run.one_se = options.one_se
    return run


def _descend(asked: Question, course: Course, data: StandardData) -> Record:
    """A descent."""
    options = asked.options
    descent = Descent(
        data, asked.folds, asked.grid, options.gap, course.clock, options.workers, asked.hooks.progress,
        options.tau_step,
    )  # fmt: skip
    replace(options, tau_step=descent.tau_step)  # `auto` may have become one that other options do not go with
    descent.oracles = options.oracles
    course.run = descent
    _carry_out(descent, asked)
    course.clock.check_wanted()
    if descent.here is None or not descent.here.full or (descent.here.row_wise and not scored(descent.here)):
        return course.answer()
    return descent.record(one_se=options.one_se, time_limit=options.time_limit, threads=options.threads)


def _carry_out(run: CrossValidation | Descent, asked: Question) -> None:
    """Run to the end, stored and traced on the way."""
    hooks = asked.hooks
    watcher = Trace(hooks.trace) if hooks.trace is not None else None
    if watcher is not None:
        run.watch = lambda: watcher.visit(run)
    failures = [carry_out(run, hooks.checkpoint, hooks.resume)]
    if watcher is not None:
        watcher.close(run)
        failures.append(watcher.failure)
    for failure in failures:
        if failure is not None and hooks.lost is not None:
            hooks.lost(failure)
