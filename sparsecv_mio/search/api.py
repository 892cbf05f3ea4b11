"""Certified cross-validation and nested cross-validation, from a file or arrays to a record.

`solve` reads data and calls `cross_validate`, which searches for the best pair (tau, gamma). The two functions build a
`Question`: the rows, folds, grid and options by which a model is chosen. With a time limit or a stop event, the search
runs in a second thread while the calling thread waits, so that the limit can be enforced.

The minimum CV error of a grid underestimates the error of the chosen model, because this model was chosen by its CV
error. Nested cross-validation therefore repeats the whole procedure with each outer fold held out: the grid, the choice
of tau and gamma, and the fit at the chosen pair. Each resulting model predicts the rows of the outer fold that was held
out. `nested_cross_validate` estimates the error of the procedure by these predictions.

`search_with_nested_weight` chooses the weight of the criterion "CV error plus weight times instability". For each outer
fold, one search on the other rows finds the best pair for every weight. The search on the full data uses the weight
with the minimum error over all outer folds; in a tie, the smallest weight. Weight 0, the CV error alone, is one of the
weights.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sparsecv_mio import model_space
from sparsecv_mio.arrays import ArrowTable
from sparsecv_mio.certificate.parts import NOT_AVERAGED, OuterModel
from sparsecv_mio.certificate.records import (
    NestedFold,
    OuterAverage,
    PathRow,
    Record,
    Refined,
    Refit,
)
from sparsecv_mio.data.dataset import Dataset, require_dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import AnyFolds, check_label_order, inner_folds, make_folds, outer_folds
from sparsecv_mio.data.readers import choose_target, read_data, requested_columns, split_rows
from sparsecv_mio.data.reading_options import OVER_ALL_ROWS, Reading
from sparsecv_mio.data.rows_of_folds import RowsOfFolds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.data.table_facts import collect_answer_warnings, describe_target
from sparsecv_mio.declared_options import OF_TABLES, keyword_names, keywords_are
from sparsecv_mio.errors import BadInput, OutOfTime, SparseCVError, SparseCVWarning, name_index_labels
from sparsecv_mio.implementations import find_implementation
from sparsecv_mio.model_space import DEFAULT_GAMMAS, GammaInterval, Restrictions, interval
from sparsecv_mio.parallel import Hands, blas_on_one_thread, open_workers
from sparsecv_mio.search.answer.answer_fits import make_answer_fits
from sparsecv_mio.search.answer.fold_models import held_out_predictions as held_out_predictions
from sparsecv_mio.search.answer.fold_models import with_mae
from sparsecv_mio.search.answer.outer_models import (
    STABILITY_WEIGHTS,
    OuterFold,
    describe_missing_outer_folds,
    score_model,
    scored_outside,
    solve_outer_folds,
    summarise_outer_folds,
    tried_weights,
)
from sparsecv_mio.search.answer.result import data_info, fitted_row, fold_info, take_best_known_support
from sparsecv_mio.search.deadline import GRACE, Deadline, interruptible_call, run_within_limit
from sparsecv_mio.search.first_use import make_first_use, start_clock
from sparsecv_mio.search.observers import Signals, Watched, make_stage_reporter
from sparsecv_mio.search.options import (
    NESTED,
    Hooks,
    SearchOptions,
    choose_method,
    describe_deprecated_options,
    merged_options,
)
from sparsecv_mio.search.question import Question, check_interval
from sparsecv_mio.search.running_search import RunningSearch, run_to_record
from sparsecv_mio.search.state.context import Context, Snapshot
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import TargetColumns
from sparsecv_mio.trees.subsets import UNLIMITED, BestSubset
from sparsecv_mio.trees.without_ridge import standardize_and_check
from sparsecv_mio.units import MAIN_SHARE, MODEL_SHARE, TIE_RTOL
from sparsecv_mio.words import NATIVE, Method, Model, Scale, Within

if TYPE_CHECKING:
    import pandas as pd


NO_OUTER_FOLD = (
    "stability: the time limit ended before the first outer fold was done, so the weight of the instability is 0 (no "
    "weight was tried); give a longer time limit"
)
OUTER = 5  # number of outer folds
OVER_TRAINING_ROWS = "over the training rows of each fold; for the model of all rows, over all rows"
LEAST_REFINE_SECONDS = 10.0  # minimum time of the search of `refine`; the time of the grid search if that is longer
LATE_SHARE = 0.02  # share of a limit: ten models of spambase, 4,597 x 57, are fitted in 0.6 s of 60


@blas_on_one_thread()  # steps, or models after the search, run on threads
def answer(question: Question, deadline: Deadline | None = None) -> Record:
    """Search for the answer to a question.

    Parameters
    ----------
    question : Question
        Data, folds, grid and options.
    deadline : Deadline, optional
        Deadline of the search; the deadline of the options by default.
    """
    options = question.options
    options.check_data(question.dataset, question.folds)
    every, grid = question.grid()
    deadline = deadline or start_question_clock(question)
    if options.stability == NESTED:
        return search_with_nested_weight(question, deadline)
    question = replace(question, options=options.by_names(question.dataset))
    if every is not None:
        return _solve_interval(question, every, grid, deadline)
    record = (_solve_fold_specific_data if question.options.within_folds else _solve_grid)(question, grid, deadline)
    return _refine_gamma(record, question, deadline) if options.refine else record


def start_question_clock(question: Question) -> Deadline:
    """Return the deadline of a question, after compiling missing kernels.

    Parameters
    ----------
    question : Question
        Question, whose data are checked before the compilation.
    """

    def search_tiny(
        data: Dataset, folds: FoldPlan, gammas: Any, taus: Any, stop: threading.Event | None, **options: Any
    ) -> None:
        silent = Hooks(lambda _: None, stop)  # a search that compiles takes long, without a warning
        answer(Question(data, folds, gammas, taus, SearchOptions.of(**options), silent), Deadline(None, stop))

    def check() -> None:
        given = options.by_names(question.dataset)
        if not options.by_folds:  # which change the data
            grid = question.grid()[1]
            standardize_and_check(question.dataset, given, grid.gammas.tolist(), grid.taus.tolist(), question.folds)

    options, hooks = question.options, question.hooks
    needs = make_first_use("search", options, question.dataset, search_tiny)
    return start_clock(options, hooks.stop, hooks.began, needs, hooks.progress, check)


def answer_outer_fold(
    question: Question, outer: FoldPlan, fold: int, deadline: Deadline | None, what: str, **changes: Any
) -> tuple[Dataset, Record]:
    """Return the rows outside of an outer fold, and the record of a model that is chosen from them.

    Parameters
    ----------
    question : Question
        Question about all rows.
    outer : FoldPlan
        Outer folds.
    fold : int
        Index of the outer fold.
    deadline : Deadline or None
        Deadline of the search.
    what : str
        Purpose of the search, for messages.
    **changes
        Changed options.
    """
    rows, ours = outer.train_rows(fold), question.hooks
    training = question.dataset.take(rows)
    stage = f"{what.split()[0]}: outer fold {fold + 1} of {outer.k} held out"
    hooks = Hooks(make_stage_reporter(ours.progress, stage), ours.stop, ours.lost, scheduler=ours.scheduler)
    options = replace(question.options, refine=False, **changes)
    inner = inner_folds(question.folds, rows, training)
    try:
        return training, answer(
            replace(question, dataset=training, folds=inner, options=options, hooks=hooks), deadline
        )
    except BadInput as error:
        reason = str(error).replace("on all rows", "on all other rows")
        raise BadInput(f"{what}, with outer fold {fold + 1} held out: {reason}") from None


def models_of_weights(
    given: Question, outer: FoldPlan, fold: int, deadline: Deadline | None = None
) -> list[OuterModel]:
    """Return the model that each weight chooses without an outer fold, scored on it; none after the limit.

    Parameters
    ----------
    given : Question
        Question about all rows.
    outer : FoldPlan
        Outer folds.
    fold : int
        Index of the outer fold.
    deadline : Deadline, optional
        Deadline of the search.
    """
    training, record = answer_outer_fold(given, outer, fold, deadline, "stability nested", stability=STABILITY_WEIGHTS)
    if record.stability is None or record.stability.chosen is None:
        return []
    test, models = given.dataset.take(outer.scored_rows(fold)), []
    for weighed in record.stability.chosen.models:
        scored = scored_outside(training, test, weighed.support, weighed.gamma, given.options)
        models.append(OuterModel(fold, weighed.gamma, weighed.tau, weighed.support, scored.error))
    return models


def search_with_nested_weight(given: Question, deadline: Deadline) -> Record:
    """Choose the weight of the instability by nested cross-validation, then the pair of the full data by that weight.

    Parameters
    ----------
    given : Question
        Question about all rows.
    deadline : Deadline
        Deadline of the whole run.

    Returns
    -------
    Record
        Record of all rows, with the tried weights in `stability.chosen`. If a limit or Ctrl-C came before an outer fold
        was done, the weight is 0 and no weight was tried.

    Notes
    -----
    The outer folds may take five shares of a time limit of seven; the run on all rows has the remaining time.
    """
    limit, done = deadline.limit, list[list[OuterModel]]()
    outer = outer_folds(OUTER, given.folds, given.dataset, "stability nested")
    until = math.inf if limit is None else deadline.began + limit * OUTER / (OUTER + MAIN_SHARE)
    solve_outer_folds(outer, deadline, until, partial(models_of_weights, given, outer), done)
    tried = tried_weights(done, [given.dataset.weight_of(outer.scored_rows(fold)) for fold in range(len(done))])
    weight = min(tried, key=lambda one: (one.error, one.weight)).weight if tried else 0.0
    before, chosen_by = deadline.seconds, replace(given, options=replace(given.options, stability=(weight,)))
    if limit is None:
        record = answer(chosen_by, deadline)
    else:  # the outer folds took their part of the limit
        record = answer(chosen_by, deadline.next_part(max(limit - before, GRACE)))
        record = replace(record, work=replace(record.work, seconds=before + record.work.seconds))
    stable = record.stability
    notes = _warn_of_imputation(given.dataset, "stability nested") if tried else [NO_OUTER_FOLD]
    record = replace(record, warnings=(*record.warnings, *notes))
    if not tried:
        return record
    if stable is None or stable.chosen is None:
        return record
    chosen = replace(stable.chosen, outer=fold_info(outer), tried=tried)
    return replace(record, stability=replace(stable, chosen=chosen))


@keywords_are(SearchOptions, Restrictions, Hooks)
def cross_validate(
    dataset: Dataset,
    folds: AnyFolds,
    *,
    gammas: str | float | Iterable[float] | GammaInterval | None = None,
    taus: str | int | Iterable[int] | None = None,
    options: SearchOptions | None = None,
    hooks: Hooks | None = None,
    **keywords: Any,
) -> Record:
    """Find the CV-optimal (tau, gamma) of a grid and prove it.

    Minimises `h(gamma, tau) = (1/m) sum_j sum_{i in N_j} (y_i - x_i' b^(-N_j)(gamma, tau))^2` over the grid, where
    `b^(-N)` solves `min ||y - Xb||^2 + (gamma/2)||b||^2, ||b||_0 <= tau` on the rows outside N (theory section 0).

    Parameters
    ----------
    dataset : Dataset
        Data to model.
    folds : FoldPlan, str, int, splitter, labels or pairs
        Folds, see :func:`~sparsecv_mio.data.folds.make_folds`.
    gammas, taus : sequences, numbers or texts, optional
        Grid; gamma >= 0, where 0 is least squares, 0 <= tau <= p. The defaults are those of the command line. A
        `GammaInterval` or the text `LO..HI` selects every gamma of an interval
        (:mod:`sparsecv_mio.search.every_gamma.gamma_partition`).
    options : SearchOptions, optional
        Scale, gap, limits, method and its settings.
    hooks : Hooks, optional
        Progress, early stop, and files that store the run.
    **keywords
        Fields of `SearchOptions` and `Hooks` by keyword, which override those of `options` and `hooks`:
        `cross_validate(..., gap=0.0, method="rounds")`.

    Returns
    -------
    Record
        Answer and certificate, `lower <= min h <= h(reported pair) <= upper`.

    Raises
    ------
    BadInput
        If the grid or an option is out of range, or options cannot be combined.
    TypeError
        If a keyword is not a field of either class.
    BackendUnavailable
        If the cluster of `scheduler` cannot be used.
    OutOfTime
        If the limit expires before the data are in standard coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.dataset import Dataset
    >>> from sparsecv_mio.data.folds import make_folds
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> data = Dataset.from_arrays(X, 2 * X[:, 1] - X[:, 3] + 0.1 * rng.normal(size=40))
    >>> record = cross_validate(data, make_folds("5", data), gammas=[0.01, 0.1], taus=range(1, 6))
    >>> record.status, record.tau, record.support
    ('proved', 2, ('x1', 'x3'))
    """
    require_dataset(dataset, "cross_validate")
    options, hooks = merged_options(options, hooks, keywords, "cross_validate")
    _warn_of_deprecated_options(options, hooks)
    dataset = options.in_classes(dataset)
    question = Question(dataset, make_folds(folds, dataset), gammas, taus, options, hooks)
    return _with_notes(answer(question), question)


def _with_notes(record: Record, question: Question) -> Record:
    """Return a record with warnings about data that make its answer look better, or larger, than it is."""
    notes = collect_answer_warnings(question.dataset, question.folds, record.coefficients, record.intercept)
    return replace(record, warnings=(*record.warnings, *notes))


def _solve_grid(asked: Question, grid: Grid, deadline: Deadline) -> Record:
    """Search a grid, and average its near-optimal pairs if the model is an average."""
    average = asked.options.model is Model.AVERAGE
    searching = deadline.first_part(1.0 - MODEL_SHARE) if average else deadline
    hooks = replace(asked.hooks, lost=asked.hooks.lost or _warn)
    with _hands(asked.options, hooks) as hands:
        running = RunningSearch(replace(asked, hooks=hooks), grid, searching, hands)
        record = run_within_limit(
            partial(run_to_record, running, new_method), searching, running.record, running.prepare_answer
        )
        running.store_end(record)
    data = None if running.context is None else running.context.data
    reported = running.reported if average else None
    if hooks.found is not None and running.reported is not None:
        hooks.found(running.reported)
    del running  # frees its subproblems, which may take as much memory as the data
    if average:
        enough = deadline.remaining_seconds >= GRACE and not deadline.stop.is_set()
        clock = deadline if enough else Deadline(GRACE, None)
        unaveraged = partial(_note_missing_average, record)
        averaged = run_within_limit(partial(_average_model, record, reported, clock), clock, unaveraged)
        record = replace(averaged, work=replace(record.work, seconds=deadline.seconds))
    return with_mae(record, data, asked.folds, _after_search(deadline))


def _after_search(deadline: Deadline) -> float:
    """Return the number of seconds for computations on an answer after its certificate."""
    if deadline.stop.is_set():
        return GRACE
    return max(deadline.remaining_seconds, GRACE, 0.0 if deadline.limit is None else LATE_SHARE * deadline.limit)


def _solve_fold_specific_data(asked: Question, grid: Grid, deadline: Deadline) -> Record:
    """Search a grid with fold-specific preprocessing, and fit the model of the full data."""
    options = asked.options
    data = standardize(asked.dataset, options.scale, options.intercept, options.restrictions, options.loss)
    own = RowsOfFolds.from_dataset(asked.dataset, asked.folds, options.within_folds, options.scale)
    plain = replace(options, scale=Scale.NONE, scale_within=Within.ALL, na_within=Within.ALL)
    searching = deadline.first_part(1.0 - MODEL_SHARE)
    record = _solve_grid(replace(asked, dataset=own.dataset, folds=own.folds, options=plain), grid, searching)
    clock = deadline.next_part(None if deadline.limit is None else max(deadline.remaining_seconds, GRACE))
    made = run_within_limit(
        partial(with_full_data_model, record, data, asked.folds, options, clock.has_expired), clock,
        partial(with_full_data_model, record, data, asked.folds, options, None),
    )  # fmt: skip
    return replace(made, work=replace(made.work, seconds=deadline.seconds))


def with_full_data_model(
    record: Record, data: StandardData, folds: FoldPlan, options: SearchOptions, is_expired: Callable[[], bool] | None
) -> Record:
    """Return the record of the given data and folds, with the full-data model.

    The search ran on an expanded table with the rows of all folds (:mod:`sparsecv_mio.data.rows_of_folds`), and its
    record has the results for the folds. This function computes the full-data results from the original data, with
    missing values imputed and columns scaled by all rows: the best subset at the reported pair, and its fit.

    Parameters
    ----------
    record : Record
        Record of the table with the rows of all folds.
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds of the data.
    options : SearchOptions
        Options of the search.
    is_expired : callable or None
        Function that returns True to end the search for the best subset with its present support. None omits the
        search.
    """
    start, folds_of_record = data.support_of(record.support), record.chosen_folds
    supports = [data.support_of(names) for names in folds_of_record.supports]
    counts = np.bincount(folds_of_record.which, minlength=len(supports)).tolist()
    cell = take_best_known_support(data, record.gamma, BestSubset.from_bounds(record.tau, start), supports, counts)
    nodes = 0
    if is_expired is not None and not is_expired():
        solved = make_answer_fits(data).solve(record.gamma, [record.tau], [cell.support], UNLIMITED, is_expired)
        cell, nodes = solved.by_size[record.tau], solved.nodes
    row = fitted_row(data, record.gamma, None, cell, record.request.gap, quick=is_expired is None)
    folds_word: Literal["folds"] = "folds"
    na, scale = (folds_word if word is Within.FOLDS else None for word in (options.na_within, options.scale_within))
    said = data.warnings
    if options.na_within is Within.FOLDS:
        said = tuple(note.replace(OVER_ALL_ROWS, OVER_TRAINING_ROWS) for note in said)
    return replace(
        record,
        refit=Refit(record.gamma, record.tau, row.objective, row.lower, row.upper, row.proved),
        support=row.support, coefficients=row.coefficients, intercept=row.intercept,
        data=data_info(data), folds=fold_info(folds), stability=None,
        request=replace(record.request, na_within=na, scale_within=scale),
        warnings=tuple(dict.fromkeys((*said, *record.warnings))),
        work=replace(record.work, nodes=record.work.nodes + nodes),
    )  # fmt: skip


def _average_model(record: Record, snapshot: Snapshot | None, clock: Deadline) -> Record:
    """Return the record with the averaged model; under a limit a separate thread computes it, which may compile."""
    if snapshot is None or not np.isfinite(record.cv_error):
        return _note_missing_average(record)
    from sparsecv_mio.search.answer.average import with_average, with_own_error

    until = time.monotonic() + clock.remaining_seconds / 2.0  # the trees have half of it

    def has_expired() -> bool:
        return clock.has_expired() or time.monotonic() > until

    def is_over() -> bool:
        return clock.abandoned.is_set() or clock.remaining_seconds <= 0.0

    try:
        averaged = with_average(record, snapshot, has_expired, is_over)
    except OutOfTime:
        return _note_missing_average(record)
    if not averaged.request.own_error:
        return averaged
    return with_own_error(averaged, snapshot, clock.has_expired)


def _note_missing_average(record: Record) -> Record:
    """Return a record with a warning that no average was computed."""
    return replace(record, warnings=(*record.warnings, NOT_AVERAGED))


def _hands(options: SearchOptions, hooks: Hooks) -> AbstractContextManager[Hands]:
    if hooks.scheduler is None:
        return nullcontext(Hands())
    if options.backend != NATIVE:
        raise BadInput(f"scheduler: not supported with backend {options.backend}; leave out one of the two")
    return open_workers(hooks.scheduler, hooks.lost or _warn)


def _solve_interval(asked: Question, every: GammaInterval, grid: Grid, deadline: Deadline) -> Record:
    """Search an interval of gamma, and the single gamma with the best CV error."""
    from sparsecv_mio.search.every_gamma.gamma_partition import IntervalSearch, solve_interval

    def solve_gamma(gamma: float, deadline: Deadline) -> Record:
        return answer(replace(asked, gammas=[gamma]), deadline)

    return solve_interval(IntervalSearch(asked, every, grid.taus.tolist(), deadline), solve_gamma)


def _refine_gamma(record: Record, asked: Question, deadline: Deadline) -> Record:
    """Return the record with the best gamma between the neighbours of the reported gamma, at the reported tau.

    Without a better gamma, or if no interval of gamma can be searched, the reported gamma stays.
    """
    own, (least, *_, most), requested = record.own_row, model_space.gammas(DEFAULT_GAMMAS), asked.options
    if own is None or not np.isfinite(record.cv_error):
        return record
    here = Refined(record.gamma, record.tau, record.cv_error, own.lower, own.upper, record.estimate)
    low = max((gamma for gamma in record.request.gammas if 0.0 < gamma < record.gamma), default=least)
    high = min((gamma for gamma in record.request.gammas if gamma > record.gamma), default=most)
    options = SearchOptions(
        requested.scale, requested.intercept, gap=requested.gap or SearchOptions.gap, threads=requested.threads,
        restrictions=requested.restrictions, scale_within=requested.scale_within, na_within=requested.na_within,
    )  # fmt: skip
    hooks, seconds = (
        Hooks(make_stage_reporter(asked.hooks.progress, "refine")),
        max(record.work.seconds, LEAST_REFINE_SECONDS),
    )
    if deadline.has_expired():
        return replace(record, refined=here)
    try:
        every = GammaInterval(min(low, record.gamma or low), max(high, record.gamma))
        check_interval(every, options, hooks)
        question = replace(asked, gammas=every, taus=(record.tau,), options=options, hooks=hooks)
        refined = answer(
            question,
            deadline.next_part(seconds if deadline.limit is None else min(seconds, deadline.remaining_seconds)),
        )
    except BadInput as error:
        return replace(record, refined=here, warnings=(*record.warnings, f"refine: had no effect; {error}"))
    except OutOfTime:
        return replace(record, refined=here)
    (row,) = refined.table
    if row.gamma != here.gamma and row.upper < here.upper * (1.0 - TIE_RTOL):
        here = Refined(row.gamma, row.tau, refined.cv_error, row.lower, row.upper, refined.estimate)
    return replace(record, refined=here, work=replace(record.work, seconds=deadline.seconds))


def new_method(context: Context, options: SearchOptions, signals: Signals) -> Watched:
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
    from sparsecv_mio.search.grid_search import GridSearch, new_row

    if choose_method(options) is not Method.DESCENT:
        return GridSearch(context, signals)
    from sparsecv_mio.search.every_gamma.descent import Descent

    return Descent(context, partial(new_row, context), signals)


def _warn_of_deprecated_options(options: SearchOptions, hooks: Hooks) -> None:
    """Warn of deprecated options in Python; a command prints these warnings itself."""
    for words in describe_deprecated_options(options) if hooks.began is None else ():
        warnings.warn(words, SparseCVWarning, stacklevel=3)


def _warn(error: SparseCVError) -> None:
    warnings.warn(str(error), SparseCVWarning, stacklevel=4)


def _warn_of_imputation(dataset: Dataset, what: str) -> list[str]:
    """Return a warning if missing values were imputed before the outer folds of an option were held out."""
    if dataset.holes is None or dataset.reading is None:
        return []
    fill = f"by the {dataset.reading.how.na} of all rows"
    return [f"{what}: missing values were imputed once {fill}; the imputation is not repeated without each outer fold"]


def _outer(model: PathRow) -> OuterAverage:
    return OuterAverage(model.support, model.coefficients, model.intercept)


def _nested_fold(given: Question, outer: FoldPlan, fold: int, deadline: Deadline) -> OuterFold:
    """Choose a model without an outer fold, and score it on that fold."""
    filled = given.options.within_folds.fill(given.dataset, outer.train_rows(fold))
    given = replace(given, dataset=filled)
    training, record = answer_outer_fold(given, outer, fold, deadline, "nested")
    test = given.dataset.take(outer.scored_rows(fold))
    if not given.options.loss.is_quadratic and record.average is None:
        scored = scored_outside(training, test, record.support, record.gamma, given.options)
    else:
        scored = score_model(record.predictor, test, given.options.loss)
    return NestedFold(
        fold=fold,
        gamma=record.gamma,
        tau=record.tau,
        support=record.support,
        cv_error=record.cv_error,
        status=record.status,
        error=scored.error,
        average=None if record.average is None else _outer(record.average.model),
    ), scored


def add_or_warn(record: Record, what: str, add: Callable[[Record], Record]) -> Record:
    """Return a record with a part; if the part fails, return the record with a warning that names the reason.

    Parameters
    ----------
    record : Record
        Answer of a search.
    what : str
        Option that requests the part.
    add : callable
        Function that returns the record with the part.
    """
    try:
        return add(record)
    except Exception as error:  # a certified answer must not be lost by any failure of what follows it
        reason = (str(error).splitlines() or [""])[0]
        if not isinstance(error, SparseCVError):
            reason = f"{type(error).__name__}: {reason}"
        words = f"{what}: left out of the answer: {reason.removeprefix(what).lstrip(':, ')}"
        return replace(record, warnings=(*record.warnings, words))


def nested_cross_validate(
    dataset: Dataset, folds: FoldPlan, count: int, gammas: Any, taus: Any, options: SearchOptions, hooks: Hooks
) -> Record:
    """Choose a model, and estimate the error of the procedure that chose it.

    Parameters
    ----------
    dataset : Dataset
        Data to model.
    folds : FoldPlan
        Folds of the inner cross-validation.
    count : int
        Number of outer folds.
    gammas, taus : numbers, sequences or texts, optional
        Grid, as in :func:`cross_validate`; a default depends on the rows.
    options : SearchOptions
        Options of the search.
    hooks : Hooks
        Progress, early stop, and files that store the run.

    Returns
    -------
    Record
        Record of all rows, with `nested`, which is null if a limit or Ctrl-C came before an outer fold was done. A
        warning of the record states how many outer folds are missing.

    Notes
    -----
    The run on all rows may take two of `count + 2` shares of the time that is left when it begins; the outer folds have
    the remaining time.
    """
    _warn_of_deprecated_options(options, hooks)
    question = Question(dataset, folds, gammas, taus, options, hooks)
    deadline = start_question_clock(question)
    outer = outer_folds(count, folds, dataset)
    question.check_outer_rows(outer)
    for_folds = count / (count + MAIN_SHARE) * deadline.remaining_seconds
    end = None if deadline.limit is None else deadline.limit - for_folds
    record = _with_notes(answer(question, Deadline(end, hooks.stop, deadline.began)), question)
    return add_or_warn(record, "nested", partial(_add_nested, question=question, outer=outer, deadline=deadline))


def _add_nested(record: Record, question: Question, outer: FoldPlan, deadline: Deadline) -> Record:
    """Return a record with the error of the whole procedure over the outer folds that are done in time."""
    done = list[OuterFold]()
    with suppress(KeyboardInterrupt):
        solve_outer_folds(outer, deadline, deadline.at, partial(_nested_fold, question, outer), done)
    notes = _warn_of_imputation(question.dataset, "nested") if question.options.na_within is Within.ALL else []
    if len(done) < outer.k:
        notes.append(describe_missing_outer_folds(len(done), outer.k, deadline.stop.is_set()))
    record = replace(record, warnings=(*record.warnings, *notes))
    if not done:  # the work of the record took the whole limit
        return replace(record, work=replace(record.work, seconds=deadline.seconds))
    return replace(record, nested=summarise_outer_folds(record, outer, done, question.dataset))


def _join_outcome(data: Any, target: Any, settings: dict[str, Any]) -> Any:
    """Return the data with the times and events of `y`, if given, whose columns become settings."""
    outcome = settings.pop("y", None)
    if outcome is None:
        return data
    given = [name for name in ("time", "event", "target") if name in settings or (name == "target" and target)]
    if given:
        raise BadInput(f"{given[0]}: y has the events and the times; leave out one of the two")
    joined, settings["event"], settings["time"] = find_implementation("join_times")(data, outcome)
    return joined


@keywords_are(Reading, SearchOptions, Restrictions, Hooks)
def solve(
    data: str | Path | pd.DataFrame | ArrowTable | Dataset,
    target: str | int | None = None,
    *,
    folds: AnyFolds = "10",
    seed: int = 0,
    gammas: str | float | Iterable[float] | GammaInterval | None = None,
    taus: str | int | Iterable[int] | None = None,
    nested: int | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    weights: str | None = None,
    **keywords: Any,
) -> Record:
    """Find the best (tau, gamma) and prove it.

    The defaults are those of `sparsecv solve` with two exceptions: there is no time limit, and each level of a text
    column counts as one feature. For such columns the command may use `count="factors"`, which its note states.

    Parameters
    ----------
    data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Input or result of :func:`~sparsecv_mio.data.readers.read_dataset`.
    target : str or int, optional
        Column to predict, by name or position; a `Dataset`, NPZ and svmlight files have their own.
    folds : str, int, splitter, labels, pairs or FoldPlan
        Folds, see :func:`~sparsecv_mio.data.folds.make_folds`.
    seed : int
        Seed of the shuffle, if rows are assigned to folds at random, and of the outer folds of `nested`.
    gammas : float, sequence of float, str or GammaInterval, optional
        Ridge weights, or a text as for `--gamma`; a `GammaInterval` or `LO..HI` for every gamma of an interval. The
        default is 15 values from 0.001 to 10; with p >= n_train, 9 values from 0.05 to 10; with logistic loss, 5 values
        from 0.3 to 30 over n_train; with Poisson loss, 7 values from 3 to 3,000 over n_train. Squared-error defaults
        suit `scale="length"`; with `scale="variance"`, give gammas that are n times larger.
    taus : int, sequence of int or str, optional
        Support sizes, or a text as for `--tau`. The default is 1 to p. If p > 30, the largest size is n_train / 8, but
        at least 10 and at most 50. In addition, p is a size if it is at most 300 and below n_train. With Cox loss,
        n_train counts the events for these sizes.
    nested : int, optional
        Number of outer folds: the whole procedure (imputation only with na_within="folds") is repeated without each
        outer fold and scored on it. The result, `record.nested`, estimates the error on new data.
    features, drop : sequence of str, optional
        Columns to keep, or to omit, by name or position; at most one of the two.
    weights : str, optional
        Column of the row weights, which is not a feature, or `file:FILE`; for a `Dataset`, a column of its
        `aux`, unless its rows have weights already. Rows of weight 0 are omitted.
    **keywords
        Options of reading a file or frame, as in :func:`~sparsecv_mio.data.readers.read_dataset`: `na`,
        `na_indicator`, `na_values`, `keep_default_na`, `encode`, `order`, `categories`, `dates`, `decimal`,
        `thousands`, and of files `sep`, `comment`, `skip_lines`, `encoding`, `header`, `index_col`. `time` is another
        name of `target`. With Cox loss and a frame, `y` may be the structured array of events and times that
        scikit-survival uses. Further options of :func:`~sparsecv_mio.search.api.cross_validate`.

    Returns
    -------
    Record
        Answer and certificate; each of its `warnings`, and a missing proof, is issued as a `SparseCVWarning`. After
        Ctrl-C it is the best answer so far, with valid bounds and status `interrupted`; a second Ctrl-C, also in
        another call within 3 seconds, raises `KeyboardInterrupt`.

    Raises
    ------
    BadInput
        If a file, a column, the folds, the grid or an option is wrong.
    KeyboardInterrupt
        If Ctrl-C came before any answer was available.
    TypeError
        If a keyword is not an option.

    Examples
    --------
    >>> record = solve("instances/prostate.csv", target="lpsa", gammas="0.01,0.1,1")
    >>> record.status, record.tau, record.gamma
    ('proved', 7, 0.01)
    """
    settings: dict[str, Any] = dict(keywords)
    data = _join_outcome(data, target, settings)
    target = choose_target(target, settings.pop("time", None))
    reading = {name: settings.pop(name) for name in OF_TABLES if name in settings}
    reading |= {name: value for name, value in (("features", features), ("drop", drop)) if value is not None}
    options, hooks = merged_options(None, None, settings, "solve", ("folds", "seed", "nested", "weights", *OF_TABLES))
    if not (weights is None or isinstance(weights, str)):
        raise BadInput(
            "weights: the value is not a text; name a column of the data, or pass an array to BestSubsetRidgeCV().fit"
        )
    check_label_order(folds, data)
    columns = requested_columns(folds, weights, of_target=TargetColumns.from_fields(options))
    with name_index_labels(data):
        rows = read_data(data, target, reading, columns, two_words=options.loss.target.has_classes)
        dataset, plan = split_rows(options.in_classes(rows), folds, seed, weights)
    if nested is not None and (isinstance(gammas, GammaInterval) or (isinstance(gammas, str) and interval(gammas))):
        raise BadInput(f"nested: requires a grid of gammas, not the interval {gammas}; give values or LO:HI:COUNT")
    with end_on_interrupt(hooks) as hooks:
        if nested is not None:
            record = nested_cross_validate(dataset, plan, nested, gammas, taus, options, hooks)
        else:
            record = cross_validate(dataset, plan, gammas=gammas, taus=taus, options=options, hooks=hooks)
    notes: list[tuple[type[SparseCVWarning], str]] = [(SparseCVWarning, words) for words in record.warnings]
    if record.loss.is_quadratic and (about_target := describe_target(dataset)):
        notes.append((SparseCVWarning, about_target))
    notes += find_implementation("answer_notes")(record, dataset)
    unproved = find_implementation("describe_missing_proof")(record)
    for category, words in [(SparseCVWarning, f"the search {unproved}")] * bool(unproved) + notes:
        warnings.warn(keyword_names(words), category, stacklevel=2)
    return replace(record, warnings=tuple(words for _, words in notes))


@contextmanager
def end_on_interrupt(hooks: Hooks) -> Iterator[Hooks]:
    """Yield hooks whose stop event Ctrl-C sets, unless the caller has an event of its own.

    Parameters
    ----------
    hooks : Hooks
        Hooks of the caller.

    Raises
    ------
    KeyboardInterrupt
        If Ctrl-C came twice, or before any answer was available.
    """
    with interruptible_call() if hooks.stop is None else nullcontext(hooks.stop) as stop:
        yield replace(hooks, stop=stop)
