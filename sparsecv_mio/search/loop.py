"""A search from the data in standard coordinates to the record: what the thread that searches does."""

from __future__ import annotations

from dataclasses import replace

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.accelerators import Accelerators, chosen
from sparsecv_mio.search.heuristics.estimates import sharpen
from sparsecv_mio.search.heuristics.last_pair import score_one_pair
from sparsecv_mio.search.methods.by_rows import WideSearch, by_rows
from sparsecv_mio.search.methods.descent import Descent, TauStep
from sparsecv_mio.search.methods.refine import refined
from sparsecv_mio.search.methods.rounds import CrossValidation
from sparsecv_mio.search.observers.checkpoint import carry_out
from sparsecv_mio.search.observers.progress import reports
from sparsecv_mio.search.observers.trace import Trace
from sparsecv_mio.search.options import check_method, word_of
from sparsecv_mio.search.registry import AUTO, METHODS, ROUNDS, method_for
from sparsecv_mio.search.rescue import Asked, Course, scored
from sparsecv_mio.search.result import build_record, check_intervals
from sparsecv_mio.search.shared_tree.engines import Engine
from sparsecv_mio.search.state.deadline import Deadline


def check(asked: Asked) -> None:
    """Raise `BadInput` for a word that is unknown, or options that do not go together."""
    chosen(asked.oracles)
    word_of(Engine, asked.engine, "engine")
    tau_step = word_of(TauStep, asked.tau_step, "tau step")
    check_method(asked.method, asked.backend, asked.mio_budget, tau_step, asked.formulation)
    if asked.one_se and asked.method == "bounds":
        raise BadInput("the one-standard-error rule needs pairs decided: not with the method bounds")


def conduct(course: Course) -> Record:
    """Search, leaving in `course` what is known so far.

    Raises
    ------
    BadInput
        For options that do not go together.
    """
    asked = course.asked
    assert course.data is not None
    check(asked)
    with reports(asked.progress, course.clock) as progress:
        asked = replace(asked, progress=progress)
        if asked.method == "descent":
            return _descend(asked, course, course.data)
        run = course.run = _run_of(asked, course.clock, course.data)
        _carry_out(run, asked)
        if run.full:
            score_one_pair(run)
            sharpen(run)
        course.clock.check_wanted()
        if not scored(run):  # a limit within the first steps
            return course.answer()
        record = build_record(run, one_se=asked.one_se, time_limit=asked.time_limit, threads=asked.threads)
        if asked.refine:
            record = replace(record, refined=refined(record, run))
            check_intervals(record)
        return record


def _run_of(asked: Asked, clock: Deadline, data: StandardData) -> CrossValidation:
    """The run of the method asked for, not begun."""
    folds, grid, method, engine = asked.folds, asked.grid, asked.method, Engine(asked.engine)
    run: CrossValidation
    common = data, folds, grid, asked.gap, clock, asked.workers, asked.progress
    if method == AUTO:
        how = (asked.gap, asked.one_se, asked.backend, asked.engine)
        method = method_for(len(grid.gammas), data.q, folds.k, *how)
    if by_rows(data, folds.k):
        run = WideSearch(
            *common, method=method, backend=asked.backend, formulation=asked.formulation, mio_budget=asked.mio_budget
        )
    elif method == ROUNDS:
        run = CrossValidation(*common, engine)
    else:
        one_by_one = METHODS[method](*common, asked.backend, asked.mio_budget)
        one_by_one.formulation = asked.formulation
        run = one_by_one
    run.oracles = Accelerators(run, asked.oracles)
    run.one_se = asked.one_se
    return run


def _descend(asked: Asked, course: Course, data: StandardData) -> Record:
    """A descent."""
    descent = Descent(
        data, asked.folds, asked.grid, asked.gap, course.clock, asked.workers, asked.progress, TauStep(asked.tau_step)
    )
    if asked.one_se and descent.tau_step is TauStep.SADDLE:
        raise BadInput("the one-standard-error rule needs certified bounds: not with the tau step saddle")
    descent.oracles = asked.oracles
    course.run = descent
    _carry_out(descent, asked)
    course.clock.check_wanted()
    if descent.here is None or not descent.here.full or (descent.here.row_wise and not scored(descent.here)):
        return course.answer()
    return descent.record(one_se=asked.one_se, time_limit=asked.time_limit, threads=asked.threads)


def _carry_out(run: CrossValidation | Descent, asked: Asked) -> None:
    """Run to the end, stored and traced on the way."""
    watcher = Trace(asked.trace) if asked.trace is not None else None
    if watcher is not None:
        run.watch = lambda: watcher.visit(run)
    failures = [carry_out(run, asked.checkpoint, asked.resume)]
    if watcher is not None:
        watcher.close(run)
        failures.append(watcher.failure)
    for failure in failures:
        if failure is not None:
            asked.lost(failure)
