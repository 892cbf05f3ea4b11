"""Repeat the whole procedure on draws of the rows: the folds, the grid, the choice of a model and its fit.

The procedure is that of the answer: the folds of a draw are made as those of an outer training set of nested
cross-validation, and the search is warm-started from the supports of the answer. Draws are searched one after the
other, or in several processes of one thread each if they take long. Finished draws are stored in a file of JSON lines,
so that a later run continues with the missing draws.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from sparsecv_mio.certificate.inference_parts import ChosenModel, DrawPlan, FailedDraw
from sparsecv_mio.certificate.json_text import decode, plain
from sparsecv_mio.certificate.parts import Status
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.folds import AnyFolds, inner_folds
from sparsecv_mio.declared_options import OPTIONS, check_whole
from sparsecv_mio.errors import BadInput, OutOfTime, SparseCVWarning
from sparsecv_mio.files import check_readable, write_text
from sparsecv_mio.inference.draws import Draw, find_units
from sparsecv_mio.inference.questions import question_of_record
from sparsecv_mio.model_space import GammaInterval
from sparsecv_mio.parallel import Processes, shared_object
from sparsecv_mio.search.api import answer, start_question_clock
from sparsecv_mio.search.deadline import GRACE, Deadline
from sparsecv_mio.search.observers import Progress, make_stage_reporter
from sparsecv_mio.search.options import Hooks
from sparsecv_mio.search.question import Question
from sparsecv_mio.version import __version__
from sparsecv_mio.words import Method, Model

MIN_PROCESS_SECONDS = 20.0  # minimum remaining work in seconds for which processes are started, which takes seconds
MIN_DRAW_SECONDS = 10.0  # seconds that a draw may take even if its share of the time is smaller
POLL_SECONDS = 0.1  # seconds between two looks at Ctrl-C and at the clock
LATE_SECONDS = 2.0  # seconds after the limit in which a process may return its answer
MAX_STARTS = 20  # maximum number of supports of the answer that every draw tries first
STORE_SCHEMA = "sparsecv-draws/1"

Choice = ChosenModel | FailedDraw


@dataclass(frozen=True, eq=False)
class DrawSettings:
    """The settings of a run over draws.

    Attributes
    ----------
    what : str
        Option that requests the draws, for messages, such as `bootstrap`.
    gap : float, optional
        Relative gap of the search over a draw; that of the question by default.
    store : path, optional
        File of finished draws. An existing file of the same question is continued.
    """

    what: str
    gap: float | None = None
    store: str | os.PathLike[str] | None = None


@dataclass(frozen=True)
class DrawOptions:
    """The options of a run over draws; checked when made, and immutable.

    Attributes
    ----------
    seed : int
        Seed of the draws.
    gap : float, optional
        Relative gap of the search over each draw; that of the record by default.
    time_limit : float, optional
        Time limit of all draws together in seconds. A draw may take an equal share of the remaining time, but
        at least ten seconds.
    threads : int, optional
        Number of cores; all cores by default.
    store : path, optional
        File in which finished draws are stored; an existing file of the same question is continued.
    progress : callable, optional
        Function that is called with a :class:`~sparsecv_mio.search.observers.Progress`.
    stop : threading.Event, optional
        Event that ends the run with the finished draws; Ctrl-C sets it by default.
    """

    seed: int = 0
    gap: float | None = None
    time_limit: float | None = None
    threads: int | None = None
    store: str | os.PathLike[str] | None = None
    progress: Callable[[Progress], None] | None = None
    stop: threading.Event | None = None

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, 0)
        for name in ("gap", "time_limit", "threads"):
            if getattr(self, name) is not None:
                OPTIONS[name].validate(getattr(self, name))


@dataclass(frozen=True, eq=False)
class ChosenModels:
    """The models that were chosen from draws, in the order of the draws.

    Attributes
    ----------
    models : tuple of ChosenModel
        Models of the draws that are done.
    failed : tuple of FailedDraw
        Draws from which no model can be chosen, with the reason.
    n_draws : int
        Number of requested draws.
    is_stopped : bool
        True if Ctrl-C ended the run.
    """

    models: tuple[ChosenModel, ...]
    failed: tuple[FailedDraw, ...]
    n_draws: int
    is_stopped: bool

    @property
    def n_done(self) -> int:
        """Number of draws that are done, with or without a model."""
        return len(self.models) + len(self.failed)

    def describe_missing_draws(self, what: str) -> tuple[str, ...]:
        """Return warnings on draws without a model, for the record; none if every draw has one.

        Parameters
        ----------
        what : str
            Option that requested the draws.
        """
        notes = list[str]()
        if self.n_done < self.n_draws:
            cause = "the run was interrupted" if self.is_stopped else "the time limit ended"
            remedy = "" if self.is_stopped else "; give a longer time limit"
            notes.append(f"{what}: {cause} after {self.n_done} of {self.n_draws} draws{remedy}")
        if self.failed:
            notes.append(
                f"{what}: no model could be chosen from {len(self.failed)} of {self.n_done} draws, which are left out; "
                f"the first reason: {self.failed[0].reason}"
            )
        return tuple(notes)


def check_procedure(question: Question, what: str) -> None:
    """Raise `BadInput` if the procedure of a question cannot be repeated on draws.

    Parameters
    ----------
    question : Question
        Question about all rows.
    what : str
        Option that requests the draws.
    """
    options = question.options
    if isinstance(question.gammas, GammaInterval):
        raise BadInput(
            f"{what}: requires a grid of gammas, not the interval {question.gammas}; give values or LO:HI:COUNT"
        )
    if options.method is Method.BOUNDS:
        raise BadInput(f"{what}: not supported with method bounds, which chooses no model; leave out one of the two")
    if options.model is Model.AVERAGE:
        raise BadInput(f"{what}: not supported with model average; leave out one of the two")
    if options.by_folds:
        named = " and ".join(f'{name}="folds"' for name in options.by_folds)
        raise BadInput(f"{what}: not supported with {named}; leave out one of the two")


def supports_to_try(record: Record) -> tuple[tuple[str, ...], ...]:
    """Return the supports of an answer that every draw tries first: of the full data, then of the folds.

    Parameters
    ----------
    record : Record
        Answer for all rows.
    """
    return tuple(dict.fromkeys((record.support, *record.chosen_folds.supports)))[:MAX_STARTS]


def choose_from_draw(question: Question, draw: Draw, deadline: Deadline | None) -> Choice:
    """Return the model that the whole procedure chooses from a draw.

    Parameters
    ----------
    question : Question
        Question about all rows.
    draw : Draw
        Rows of the draw, with their numbers of copies.
    deadline : Deadline or None
        Deadline of the search.

    Raises
    ------
    OutOfTime
        If the limit expires before there is an answer.
    """
    try:
        rows = draw.take_from(question.dataset)
        folds = inner_folds(question.folds, draw.rows, rows)
        record = answer(replace(question, dataset=rows, folds=folds), deadline)
    except BadInput as error:
        return FailedDraw(draw.number, str(error))
    status: Status = "limit" if record.status == "proved" and not record.is_settled else record.status  # type: ignore[assignment]
    return ChosenModel(
        draw.number, record.gamma, record.tau, record.support, record.coefficients, record.intercept, status,
        record.gap, record.cv_error,
    )  # fmt: skip


def choose_models(
    question: Question,
    draws: Sequence[Draw],
    settings: DrawSettings,
    deadline: Deadline | None = None,
) -> ChosenModels:
    """Repeat the whole procedure on every draw, as long as there is time.

    Parameters
    ----------
    question : Question
        Question about all rows, with the supports to try first. Its options limit the threads of all processes
        together.
    draws : sequence of Draw
        Draws.
    settings : DrawSettings
        Gap, and file of finished draws.
    deadline : Deadline, optional
        Deadline of all draws; that of the question by default. A draw may take an equal share of the remaining time.

    Returns
    -------
    ChosenModels
        Models of the draws that are done; a draw that Ctrl-C ends is not done.

    Raises
    ------
    BadInput
        If the procedure cannot be repeated on draws, the file belongs to another run, or no draw gives a model.
    """
    check_procedure(question, settings.what)
    gap = question.options.gap if settings.gap is None else settings.gap
    deadline = deadline or start_question_clock(question)
    question = replace(question, options=replace(question.options, gap=gap, refine=False, time_limit=None))
    store = DrawStore(settings.store, question, settings.what)
    done = {choice.draw: choice for choice in store.read(draws)}
    missing = [draw for draw in draws if draw.number not in done]
    report = _make_reporter(question.hooks, settings.what, len(draws), deadline)
    with suppress(KeyboardInterrupt):
        for draw, choice in _choose_each(question, missing, deadline, settings.what):
            store.append(draw, choice)
            done[draw.number] = choice
            report(len(done), len(missing))
    chosen = [done[number] for number in sorted(done)]
    models = tuple(choice for choice in chosen if isinstance(choice, ChosenModel))
    failed = tuple(choice for choice in chosen if isinstance(choice, FailedDraw))
    if failed and not models:
        raise BadInput(f"{settings.what}: no draw gives a model; the first reason: {failed[0].reason}")
    return ChosenModels(models, failed, len(draws), deadline.stop.is_set())


def _make_reporter(hooks: Hooks, what: str, count: int, deadline: Deadline) -> Callable[[int, int], None]:
    """Return a function of the numbers of done and initially missing draws that reports the progress."""
    begin = time.monotonic()

    def report(n_done: int, n_missing: int) -> None:
        if hooks.progress is None:
            return
        n_new = n_missing - (count - n_done)
        left = (time.monotonic() - begin) / max(n_new, 1) * (count - n_done)
        stage = f"{what.replace('_', ' ')}: {n_done} of {count} draws done, about {left:.0f} s left"
        hooks.progress(Progress(0, 0, 0, 0.0, math.inf, deadline.seconds, stage=stage))  # no subproblem is counted

    return report


def _choose_each(
    question: Question, draws: Sequence[Draw], deadline: Deadline, what: str
) -> Iterator[tuple[Draw, Choice]]:
    """Yield each draw with its choice: the first draws in this process, the others in several if they take long."""
    begin, workers = time.monotonic(), question.options.workers
    can_start = workers > 1 and question.hooks.scheduler is None and find_spec("loky") is not None
    for place, draw in enumerate(draws):
        left = len(draws) - place
        if place and can_start and (time.monotonic() - begin) / place * left > MIN_PROCESS_SECONDS:
            yield from _choose_in_processes(question, draws[place:], deadline, min(workers, left))
            return
        if _is_over(deadline):
            return
        ours, stage = question.hooks, f"{what.replace('_', ' ')}: draw {draw.number + 1}"
        hooks = Hooks(make_stage_reporter(ours.progress, stage), ours.stop, ours.lost, scheduler=ours.scheduler)
        with suppress(OutOfTime):
            part = deadline.next_part(_share_of_draw(deadline, left))
            choice = choose_from_draw(replace(question, hooks=hooks), draw, part)
            if not deadline.stop.is_set():  # a stopped search may choose another model than the procedure
                yield draw, choice


def _is_over(deadline: Deadline) -> bool:
    return deadline.stop.is_set() or deadline.remaining_seconds < GRACE


def _share_of_draw(deadline: Deadline, n_rounds: float) -> float | None:
    """Return the seconds that a draw may take if so many rounds of draws remain; None without a limit."""
    left = deadline.remaining_seconds
    return None if left == math.inf else max(left / max(n_rounds, 1.0), min(left, MIN_DRAW_SECONDS))


def _choose_in_worker(draw: Draw, seconds: float | None) -> Choice | None:
    """Return the choice of a draw by the shared question; None if the limit came before there was an answer."""
    try:
        return choose_from_draw(shared_object(), draw, Deadline(seconds, None))
    except OutOfTime:
        return None


def _choose_in_processes(
    question: Question, draws: Sequence[Draw], deadline: Deadline, n_processes: int
) -> Iterator[tuple[Draw, Choice]]:
    """Yield each draw with its choice as soon as a process has found it."""
    options = replace(question.options, threads=max(question.options.workers // n_processes, 1))
    waiting, flying = list(reversed(draws)), dict[Future[Choice | None], Draw]()
    processes = Processes(n_processes, replace(question, options=options, hooks=Hooks()))
    try:
        while flying or (waiting and not _is_over(deadline)):
            while waiting and len(flying) < n_processes and not _is_over(deadline):
                seconds = _share_of_draw(deadline, (len(waiting) + len(flying)) / n_processes)
                draw = waiting.pop()
                flying[processes.submit(_choose_in_worker, draw, seconds)] = draw
            done, _ = wait(flying, POLL_SECONDS, FIRST_COMPLETED)
            if deadline.stop.is_set() or time.monotonic() > deadline.at + LATE_SECONDS:
                return
            for future in done:
                draw, choice = flying.pop(future), future.result()
                if choice is not None:
                    yield draw, choice
    finally:
        processes.end()


@dataclass(frozen=True)
class StoredDraw:
    """A line of the file of finished draws: the digest of the draw, and its model or the reason why it has none."""

    digest: str
    model: ChosenModel | None
    failed: FailedDraw | None


class DrawStore:
    """The file of finished draws: a line that identifies the question, then a line for each draw.

    A draw is recognised by the digest of its rows, so a file may have the draws of several runs.

    Parameters
    ----------
    path : path or None
        File; None stores nothing.
    question : Question
        Question whose draws are stored.
    what : str
        Option that requests the draws, for messages.
    """

    def __init__(self, path: str | os.PathLike[str] | None, question: Question, what: str) -> None:
        self.path, self.what, self.is_warm_started = path, what, bool(question.starts)
        self.head = "" if path is None else json.dumps({"schema": STORE_SCHEMA, "question": _digest_question(question)})

    def read(self, draws: Sequence[Draw]) -> list[Choice]:
        """Return the stored choices of some draws, and prepare the file for further draws.

        Parameters
        ----------
        draws : sequence of Draw
            Requested draws.

        Raises
        ------
        BadInput
            If the file belongs to another question, or cannot be read or written.
        """
        if self.path is None:
            return []
        lines = self._read_lines()
        write_text(self.path, [f"{line}\n" for line in (self.head, *lines)], f"file of {self.what} draws")
        stored = {line.digest: line.model or line.failed for line in (decode(text, StoredDraw) for text in lines)}
        found = ((draw, stored.get(_digest_draw(draw, self.is_warm_started))) for draw in draws)
        return [replace(choice, draw=draw.number) for draw, choice in found if choice is not None]

    def _read_lines(self) -> list[str]:
        """Return the lines of the draws; an incomplete last line, of a run that was killed, is left out."""
        path = Path(str(self.path))
        if not path.exists():
            return []
        check_readable(path, f"file of {self.what} draws")
        head, *lines = path.read_text(encoding="utf-8").split("\n")
        if head != self.head:
            raise BadInput(f"{self.what}: file {path} has the draws of another question or version; give another file")
        return lines[:-1]

    def append(self, draw: Draw, choice: Choice) -> None:
        """Write the choice of a draw to the file."""
        if self.path is None:
            return
        model, failed = (choice, None) if isinstance(choice, ChosenModel) else (None, choice)
        line = StoredDraw(_digest_draw(draw, self.is_warm_started), model, failed)
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(plain(line, StoredDraw, "draw"), allow_nan=False, ensure_ascii=False) + "\n")


def _digest_draw(draw: Draw, is_warm_started: bool) -> str:
    numbers = np.concatenate((draw.rows, draw.weights, [is_warm_started])).astype("<i8")
    return hashlib.sha256(numbers.tobytes()).hexdigest()


def _digest_question(question: Question) -> str:
    """Return the digest of all that the choice from a draw depends on, except for the draw."""
    options = replace(question.options, threads=None)
    told = (
        __version__, question.dataset.fingerprint, question.folds.digest, question.folds.given_seed, question.gammas,
        question.taus, options,
    )  # fmt: skip
    return hashlib.sha256(repr(told).encode()).hexdigest()


def make_plan(question: Question, draws: list[Draw], what: str, options: DrawOptions) -> DrawPlan:
    """Return the description of the draws of a run.

    Parameters
    ----------
    question : Question
        Question about all rows.
    draws : list of Draw
        Draws.
    what : str
        Option that requests the draws, for messages.
    options : DrawOptions
        Options of the run.
    """
    units = find_units(question.dataset, question.folds)
    if len(units.stratum) < 2:
        raise BadInput(f"{what}: the data have a single unit to draw ({units.name}); give other folds")
    gap = question.options.gap if options.gap is None else options.gap
    return DrawPlan(len(draws), options.seed, units.name, len(units.stratum), units.is_stratified, gap)


def repeat_procedure(
    record: Record, question: Question, draws: list[Draw], what: str, options: DrawOptions, deadline: Deadline | None
) -> tuple[Record, ChosenModels]:
    """Return the models that the procedure of a record chooses from draws, and the record with warnings about them.

    Parameters
    ----------
    record : Record
        Answer for all rows.
    question : Question
        Question that the record answers.
    draws : list of Draw
        Draws.
    what : str
        Option that requests the draws.
    options : DrawOptions
        Options of the run.
    deadline : Deadline or None
        Deadline of all draws; that of the question by default.
    """
    asked = replace(question, gammas=record.request.gammas, taus=record.request.taus, starts=supports_to_try(record))
    found = choose_models(asked, draws, DrawSettings(what, options.gap, options.store), deadline)
    return replace(record, warnings=(*record.warnings, *found.describe_missing_draws(what))), found


def question_of_draws(
    record: Record, data: Any, what: str, folds: AnyFolds | None, options: DrawOptions, hooks: Hooks
) -> Question:
    """Return the question of a record for a run over draws.

    Parameters
    ----------
    record, data, what, folds
        Parameters of :func:`~sparsecv_mio.inference.questions.question_of_record`.
    options : DrawOptions
        Options of the run, with its time limit and number of cores.
    hooks : Hooks
        Progress and stop event.
    """
    return question_of_record(record, data, what, folds, options.time_limit, options.threads, hooks)


def warn_of(record: Record, earlier: Record) -> Record:
    """Return a record, and issue the warnings that an earlier record did not have."""
    for words in record.warnings[len(earlier.warnings) :]:
        warnings.warn(words, SparseCVWarning, stacklevel=3)
    return record
