"""Functions that repeat the whole procedure (folds, grid, choice of a model, fit of the model) on draws of the rows.

A *draw* is a set of rows drawn at random. The procedure is the search that gave the reported model, with the same grid
and options. The folds of a draw are made like the inner folds of nested cross-validation. The search of a draw starts
from the supports of the record. Draws are searched one after the other. If a draw takes long, several single-threaded
processes search different draws at the same time. Finished draws are stored in a file of JSON lines, so that a later
run continues with the missing draws.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sparsecv_mio.certificate.inference_parts import ChosenModel, FailedDraw
from sparsecv_mio.certificate.parts import Status, decode, plain
from sparsecv_mio.certificate.read_back import rows_and_folds_of_record
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.folds import AnyFolds, inner_folds
from sparsecv_mio.declared_options import OPTIONS, check_integer
from sparsecv_mio.digits import several
from sparsecv_mio.errors import BadInput, CorruptStore, OutOfTime
from sparsecv_mio.files import check_readable, write_text
from sparsecv_mio.inference.draws import Draw
from sparsecv_mio.model_space import GammaInterval
from sparsecv_mio.parallel import WAITS, Processes, shared_object
from sparsecv_mio.search.api import answer, start_question_clock
from sparsecv_mio.search.deadline import GRACE, Deadline
from sparsecv_mio.search.observers import Progress
from sparsecv_mio.search.options import NESTED, RECORDED, Hooks, SearchOptions
from sparsecv_mio.search.question import Question
from sparsecv_mio.version import __version__
from sparsecv_mio.words import Method, Model

MIN_PROCESS_SECONDS = 20.0  # minimum remaining work in seconds for which processes are started, which takes seconds
MIN_DRAW_SECONDS = 10.0  # seconds that a draw may take even if half of the remaining time is less
LATE_SECONDS = 2.0  # seconds after the limit in which a process may return its answer
MORE_DRAWS = "give a smaller grid, a larger relative gap for the draws, or a longer time limit"
STORE_SCHEMA = "sparsecv-draws/1"

Choice = ChosenModel | FailedDraw


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
        Time limit of all draws together in seconds. A draw may take half of the remaining time, or ten seconds if
        that is more, so that few draws are complete rather than many truncated.
    threads : int, optional
        Number of cores; all cores by default.
    store : path, optional
        File in which finished draws are stored; a file with draws of the same data and options is continued.
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
        check_integer("seed", self.seed, 0)
        for name in ("gap", "time_limit", "threads"):
            if getattr(self, name) is not None:
                OPTIONS[name].validate(getattr(self, name))


DEFAULT_OPTIONS = DrawOptions()


def question_of_record(
    record: Record,
    data: Any,
    what: str,
    folds: AnyFolds | None = None,
    options: DrawOptions = DEFAULT_OPTIONS,
    hooks: Hooks | None = None,
) -> Question:
    """Return the question that a record answers.

    Parameters
    ----------
    record : Record
        Record of `solve`.
    data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
        Data of the record.
    what : str
        Option or function that needs the question, for messages.
    folds : str, int, splitter, labels, pairs or FoldPlan, optional
        Folds as given to `solve`, if the record does not describe them.
    options : DrawOptions
        Time limit and number of threads of the new run.
    hooks : Hooks, optional
        Progress and stop of the new run.

    Raises
    ------
    BadInput
        If the record is of another command or of an interval of gamma, or the data or folds differ from its own.
    """
    if not isinstance(record, Record):
        found = f"{what}: {type(record).__name__} is not a record of `solve`"
        raise BadInput(f"{found}; give the result of `solve`, or of `read_record` for a file")
    if record.continuous is not None:
        raise BadInput(f"{what}: requires a grid of gammas, not an interval; give values or LO:HI:COUNT to `solve`")
    rows, plan = rows_and_folds_of_record(record, data, folds)
    if (rows.names, rows.fingerprint) != (record.data.names, record.data.fingerprint):
        raise BadInput(f"{what}: these are not the data of the record; give the data from which it was made")
    if plan.digest != record.folds.digest:
        raise BadInput(f"{what}: these are not the folds of the record; give the folds with which it was made")
    request, stable = record.request, record.stability
    given = {name: getattr(request, name) for name in RECORDED - {"positive", "time_limit", "threads"}}
    if stable is not None and stable.chosen is not None and stable.chosen.outer is not None:
        given["stability"] = NESTED
    own = SearchOptions.of(
        **{name: value for name, value in given.items() if value is not None},
        scale=record.data.scale,
        intercept=record.data.intercept,
        time_limit=options.time_limit,
        threads=options.threads,
    )
    return Question(rows, plan, request.gammas, request.taus, own, hooks or Hooks())


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
    unsupported = {
        "method bounds, which chooses no model": options.method is Method.BOUNDS,
        "model average": options.model is Model.AVERAGE,
        f"loss {options.loss}, which has no tests": what == "infer" and not options.loss.target.is_sum_over_rows,
    }
    for named, is_given in unsupported.items():
        if is_given:
            raise BadInput(f"{what}: not supported with {named}; leave out one of the two")


class ChosenModels(NamedTuple):
    """The models of the draws that are done, the draws from which no model can be chosen, and warnings about draws.

    `n_truncated` draws are left out, because the limit ended their search before their choice was certified.
    """

    models: tuple[ChosenModel, ...]
    failed: tuple[FailedDraw, ...]
    n_truncated: int
    notes: tuple[str, ...]


def choose_models(
    question: Question,
    draws: Sequence[Draw],
    what: str,
    options: DrawOptions = DEFAULT_OPTIONS,
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
    what : str
        Option that requests the draws, for messages, such as `bootstrap`.
    options : DrawOptions
        Gap, and file of finished draws.
    deadline : Deadline, optional
        Deadline of all draws; that of the question by default.

    Returns
    -------
    ChosenModels
        Models of the draws that are done, and warnings on the others; a draw that Ctrl-C or the limit ends is not done.

    Raises
    ------
    BadInput
        If the procedure cannot be repeated on draws, the file belongs to another run, or no draw gives a model.
    """
    check_procedure(question, what)
    deadline = deadline or start_question_clock(question)
    question = _with_gap(question, options)
    store = DrawStore(options.store, question, what)
    done = store.read(draws)
    n_stored, n_truncated, begin, report = len(done), 0, time.monotonic(), question.hooks.progress

    def report_draws() -> None:
        if report is None:
            return
        stage, n_new = f"{what.replace('_', ' ')}: {len(done)} of {len(draws)} draws done", len(done) - n_stored
        if n_new:
            seconds = (time.monotonic() - begin) / n_new * (len(draws) - len(done))
            stage += f", about {seconds:.0f} s left"
        report(Progress(0, 0, 0, 0.0, math.inf, deadline.seconds, stage=stage))  # no subproblem is counted

    report_draws()
    with suppress(KeyboardInterrupt):
        for draw, choice in _choose_each(question, [one for one in draws if one.number not in done], deadline):
            if choice is None:
                n_truncated += 1
                continue
            store.append(draw, choice)
            done[draw.number] = choice
            report_draws()
    chosen = [done[number] for number in sorted(done)]
    models = tuple(choice for choice in chosen if isinstance(choice, ChosenModel))
    failed = tuple(choice for choice in chosen if isinstance(choice, FailedDraw))
    if failed and not models:
        raise BadInput(f"{what}: no draw gives a model; the first reason: {failed[0].reason}")
    notes = [_describe_missing(len(done), len(draws), n_truncated, deadline)] if len(done) < len(draws) else []
    if failed:
        where = f"{len(failed)} of {len(done)} draws, which are left out"
        if what == "infer":
            where = f"{len(failed)} of {len(done)} halves, whose p-values count as 1 (conservative)"
        notes.append(f"no model could be chosen from {where}; the first reason: {failed[0].reason}")
    return ChosenModels(models, failed, n_truncated, tuple(f"{what}: {note}" for note in notes))


def _describe_missing(n_done: int, n_draws: int, n_truncated: int, deadline: Deadline) -> str:
    """Return why some of the draws are not done."""
    if deadline.stop.is_set():
        return f"the run was interrupted after {n_done} of {n_draws} draws"
    left_out = ""
    if n_truncated:
        stopped = f"{several(n_truncated, 'draw')} whose search was stopped early"
        left_out = f", without {stopped}"
    return f"the time limit was reached after {n_done} of {n_draws} draws{left_out}; {MORE_DRAWS}"


def _with_gap(question: Question, options: DrawOptions) -> Question:
    """Return a question with the gap of the search over a draw, without a time limit of its own."""
    gap = question.options.gap if options.gap is None else options.gap
    return replace(question, options=replace(question.options, gap=gap, refine=False, time_limit=None))


def check_draw_file(question: Question, what: str, options: DrawOptions) -> None:
    """Raise an error before a search if the file of finished draws does not belong to its question, or is damaged.

    Parameters
    ----------
    question : Question
        Question about all rows.
    what : str
        Option that requests the draws, for messages.
    options : DrawOptions
        Gap, and file of finished draws.
    """
    if options.store is not None and question.options.method is not Method.DESCENT:  # which adds gammas to the grid
        grid = question.grid()[1]
        asked = replace(question, gammas=tuple(grid.gammas.tolist()), taus=tuple(grid.taus.tolist()))
        DrawStore(options.store, _with_gap(asked, options), what).read_lines()


def choose_from_draw(question: Question, draw: Draw, deadline: Deadline | None) -> Choice | None:
    """Return the model that the whole procedure chooses from a draw; None if the limit ends an uncertified search.

    The best model of a truncated search is not a choice of the procedure: it may have another size, and the
    one-standard-error rule is not applied.

    Parameters
    ----------
    question : Question
        Question about all rows.
    draw : Draw
        Rows of the draw, with their numbers of copies.
    deadline : Deadline or None
        Deadline of the search.
    """
    try:
        rows = draw.select_rows(question.dataset)
        folds = inner_folds(question.folds, draw.rows, rows)
        record = answer(replace(question, dataset=rows, folds=folds), deadline)
    except OutOfTime:
        return None
    except BadInput as error:
        part = "draw" if np.any(draw.weights > 1) else "half"
        return FailedDraw(draw.number, str(error).replace("on all rows", f"on the rows of this {part}"))
    if deadline is not None and _is_truncated(record, question, deadline):
        return None
    status: Status = "limit" if record.status == "proved" and not record.is_settled else record.status  # type: ignore[assignment]
    return ChosenModel(
        draw.number, record.gamma, record.tau, record.support, record.coefficients, record.intercept, status,
        record.gap, record.cv_error,
    )  # fmt: skip


def _is_truncated(record: Record, question: Question, deadline: Deadline) -> bool:
    """Return True if a limit ended a search before its choice was certified; some searches end without certificates."""
    if deadline.limit is None or (record.status == "proved" and record.is_settled):
        return False
    can_certify = record.request.method_used != Method.DESCENT and question.options.mio_budget is None
    return deadline.has_expired() or (can_certify and record.status != "doubtful")


def _choose_each(question: Question, draws: Sequence[Draw], deadline: Deadline) -> Iterator[tuple[Draw, Choice | None]]:
    """Yield each searched draw with its choice, None if it is truncated.

    The first draws are searched in this process, the others in several if they take long.
    """
    begin, hooks, workers = time.monotonic(), question.hooks, question.options.workers
    can_start = workers > 1 and hooks.scheduler is None and find_spec("loky") is not None
    question = replace(question, hooks=Hooks(None, hooks.stop, hooks.lost, scheduler=hooks.scheduler))
    for place, draw in enumerate(draws):
        left = len(draws) - place
        expected = (time.monotonic() - begin) / place * left if place else 0.0
        if can_start and min(expected, deadline.remaining_seconds) > MIN_PROCESS_SECONDS:
            yield from _choose_in_processes(question, draws[place:], deadline, min(workers, left))
            return
        seconds = _limit_draw(deadline, left)
        if seconds == 0.0:
            return
        choice = choose_from_draw(question, draw, deadline.next_part(seconds))
        if not deadline.stop.is_set():  # a stopped search may choose another model
            yield draw, choice


def _limit_draw(deadline: Deadline, n_rounds: float) -> float | None:
    """Return the seconds that a draw may take if so many rounds of draws remain: None without a limit, 0 at its end.

    A draw that needs more than an equal share delays the others, but is complete; a hard one leaves half of the time.
    """
    left = deadline.remaining_seconds
    if deadline.stop.is_set() or left < GRACE:
        return 0.0
    return None if left == math.inf else max(left / min(max(n_rounds, 1.0), 2.0), min(left, MIN_DRAW_SECONDS))


def _choose_in_worker(draw: Draw, seconds: float | None) -> Choice | None:
    """Return the choice of a draw by the shared question."""
    return choose_from_draw(shared_object(), draw, Deadline(seconds, None))


def _choose_in_processes(
    question: Question, draws: Sequence[Draw], deadline: Deadline, n_processes: int
) -> Iterator[tuple[Draw, Choice | None]]:
    """Yield each draw with its choice as soon as a process has found it, None if it is truncated."""
    options = replace(question.options, threads=max(question.options.workers // n_processes, 1))
    waiting, flying = list(reversed(draws)), dict[Future[Choice | None], Draw]()
    processes = Processes(n_processes, replace(question, options=options, hooks=Hooks()))
    try:
        while waiting or flying:
            seconds = _limit_draw(deadline, (len(waiting) + len(flying)) / n_processes)
            if seconds == 0.0:
                waiting = []
            while waiting and len(flying) < n_processes:
                draw = waiting.pop()
                flying[processes.submit(_choose_in_worker, draw, seconds)] = draw
            done, _ = wait(flying, WAITS, FIRST_COMPLETED)
            if deadline.stop.is_set() or time.monotonic() > deadline.at + LATE_SECONDS:
                return
            for future in done:
                yield flying.pop(future), future.result()
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
        self.path = None if path is None else Path(path)
        self.question, self.what = question, what

    def read(self, draws: Sequence[Draw]) -> dict[int, Choice]:
        """Return the stored choices of some draws by number, and prepare the file for further draws.

        Parameters
        ----------
        draws : sequence of Draw
            Requested draws.

        Raises
        ------
        BadInput
            If the file has draws of other data or options, is damaged, or cannot be read or written.
        """
        if self.path is None:
            return {}
        lines = self.read_lines()
        write_text(self.path, [f"{line}\n" for line in (self._make_head(), *lines)], self._name)
        stored = {line.digest: line.model or line.failed for line in lines.values()}
        found = ((draw.number, stored.get(self._digest_draw(draw))) for draw in draws)
        return {number: replace(choice, draw=number) for number, choice in found if choice is not None}

    def read_lines(self) -> dict[str, StoredDraw]:
        """Return the lines of the file with their contents; raise `BadInput` for a file that cannot be continued."""
        if self.path is None or not self.path.exists():
            return {}
        check_readable(self.path, self._name)
        first, *lines = self.path.read_bytes().decode("utf-8", "replace").split("\n")
        if first != self._make_head():
            raise BadInput(
                f"{self.what}: file {self.path} has draws of other data, options or version; give another file"
            )
        stored = dict[str, StoredDraw]()
        for number, line in enumerate(lines[:-1], 2):  # without an incomplete last line, of a run that was killed
            try:
                stored[line] = decode(line, StoredDraw)
            except CorruptStore:
                words = f"file {self.path} is damaged (line {number} is not a draw)"
                raise BadInput(f"{self.what}: {words}; delete the line, or give another file") from None
        return stored

    @property
    def _name(self) -> str:
        return f"file of {self.what} draws"

    def _make_head(self) -> str:
        """Return the first line of the file."""
        return json.dumps({"schema": STORE_SCHEMA, "question": self._digest_question()})

    def append(self, draw: Draw, choice: Choice) -> None:
        """Write the choice of a draw to the file."""
        if self.path is None:
            return
        model, failed = (choice, None) if isinstance(choice, ChosenModel) else (None, choice)
        line = StoredDraw(self._digest_draw(draw), model, failed)
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(plain(line, StoredDraw, "draw"), allow_nan=False, ensure_ascii=False) + "\n")

    def _digest_draw(self, draw: Draw) -> str:
        """Return the digest of the rows of a draw, with the mark of a warm start."""
        numbers = np.concatenate((draw.rows, draw.weights, [bool(self.question.starts)])).astype("<i8")
        return hashlib.sha256(numbers.tobytes()).hexdigest()

    def _digest_question(self) -> str:
        """Return the digest of all that the choice from a draw depends on, except for the draw."""
        asked, rows = self.question, self.question.dataset
        imputed = rows.reading and rows.holes is not None and (rows.reading.how.na, np.packbits(rows.holes).tobytes())
        told = (
            __version__, rows.fingerprint, imputed, asked.folds.digest, asked.folds.given_seed, asked.gammas,
            asked.taus, replace(asked.options, threads=None),
        )  # fmt: skip
        return hashlib.sha256(repr(told).encode()).hexdigest()
