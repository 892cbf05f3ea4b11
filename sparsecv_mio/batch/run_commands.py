"""The commands `sparsecv batch`, which runs the tasks of a plan, and `sparsecv collect`, which tabulates the runs."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

from sparsecv_mio.cli import ending, session
from sparsecv_mio.cli.command_options import Place, option, with_declared_options
from sparsecv_mio.declared_options import plan_panels
from sparsecv_mio.digits import MOST_NAMED, several
from sparsecv_mio.errors import BadInput, need_extra

if TYPE_CHECKING:
    from rich.console import Console

    from sparsecv_mio.batch.batch_plan import Task
    from sparsecv_mio.batch.task_folder import BatchFolder, TaskOutcome


SHOWN_TASKS = 20
MIN_SILENT_SECONDS = 10.0  # seconds without a finished task before the estimate of the remaining time is withdrawn
MAX_TASK_RATIO = 3.0  # longest time without a finished task, in mean times of the finished tasks, with an estimate
FIRST_USE = "each process first loads kernels; the first run on a machine compiles them (a minute)"  # at first
BATCH_CODES = (
    "\b\nSettings in the table [vary] of a plan: the options of solve, and also test, split,\n"
    "refit, cpu_limit and estimator:\n"
    + "".join(
        f"{line}\n"
        for panel, names in plan_panels().items()
        for line in wrap(f"{panel}: {', '.join(names)}", 76, initial_indent="  ", subsequent_indent="    ")
    )
    + "\n"
    "A task that is done is not run again, even under another plan name: its identifier is a digest of its data, "
    "settings and version. To continue an interrupted batch, run the same command again. Exit codes: 0 all tasks "
    "done, 1 some tasks failed, 2 bad input, 3 some tasks reached a limit, 130 interrupted."
)


@with_declared_options()
def batch(
    plan: Annotated[
        str, Place("PLAN", "TOML file with data sets and settings; or the word status, to show "
                                                 "the progress of a batch.")
    ],
    folder: Annotated[
        str | None, Place("DIR", "Folder of the batch; only if PLAN is the word status.")
    ] = None,
    out: str | None = option(None, "DIR", "Output folder."),
    workers: int | None = option(None, "N", "Number of processes, one thread each. [all cores]", least=1, most=4096),
    scheduler: str | None = None,
    progress_json: str | None = None,
    retry: bool = option(False, "", "Rerun tasks that failed or reached a limit, with 4 times the time limit."),
    dry_run: bool = option(False, "", "List the tasks, each with its state (done or left), without running any."),
    index: int | None = option(None, "I", "Run part I of a job array; the first part is 0, and --of gives the number "
                                          "of parts."),
    of: int | None = option(None, "N", "Number of parts of the job array.", least=1),
    change: list[str] | None = option(None, "NAME=VALUES", "Override a setting of the plan or of its designs: "
                                      "split=0:19, time_limit=300, 'n=[100, 500]'; may be repeated.", flag="--set"),
    clean: bool = option(False, "", "Remove results that the plan does not contain, such as those of an earlier plan."),
    quiet: bool = False,
) -> int:  # fmt: skip
    """Run the tasks of a plan: data sets x folds x seeds x settings x estimators."""
    if plan == "status":
        return _print_status(folder)
    _check_combination(folder, out, index, of, workers, scheduler)
    assert out is not None
    session.check_outputs({"--progress-json": progress_json}, [plan])
    need_extra("batch", "sparsecv batch")
    from sparsecv_mio.batch.batch_plan import read_plan
    from sparsecv_mio.batch.dispatch import run_batch, share_of_tasks
    from sparsecv_mio.batch.one_task import check_with_data
    from sparsecv_mio.batch.task_folder import BatchFolder

    whole = read_plan(plan, change or (), None if quiet else lambda text: ending.tell(f"warning: {text}"))
    tasks = whole if index is None or of is None else share_of_tasks(whole, index, of)
    place, processes = BatchFolder(out), workers or session.cores()
    try:
        check_with_data(task for task in tasks if retry or not place.place(task.address).exists())
    except BadInput as error:
        raise BadInput(f"plan {plan!r}, {error}") from None
    if dry_run:
        return _list_tasks(tasks, place, processes)
    place.sweep()
    place.store_plan(task.address for task in whole)
    if clean:
        _remove(place.stale(), quiet)
    run = partial(run_batch, tasks, place, workers=processes, scheduler=scheduler, retry=retry)
    finished = (outcome.state for outcome in place.read_outcomes(tasks) if not retry or outcome.state == "done")
    counted = TaskCounts(len(tasks), finished, None if scheduler else processes)
    return _run_tasks(tasks, place, run, counted, quiet, progress_json)


def _check_combination(
    folder: str | None, out: str | None, index: int | None, of: int | None, workers: int | None, scheduler: str | None
) -> None:
    """Raise `BadInput` if options of `batch` are missing, or cannot be combined."""
    if folder is not None:
        raise BadInput(f"PLAN: {folder!r} is a second argument; give one plan at a time")
    if out is None:
        raise BadInput("--out is missing; name the folder for the results")
    if (index is None) != (of is None):
        raise BadInput("--index and --of require each other; for example --index 0 --of 4")
    if workers is not None and scheduler is not None:
        raise BadInput(
            "--workers: cannot be combined with --scheduler, because the cluster determines the number of workers; "
            "leave out one of the two"
        )


def _remove(stale: Sequence[Path], quiet: bool) -> None:
    for path in stale:
        path.unlink(missing_ok=True)
    if stale and not quiet:
        ending.tell(f"removed {several(len(stale), 'result')} of earlier plans")


class TaskCounts:
    """The progress of a batch, for its bar and its lines.

    Parameters
    ----------
    total : int
        Number of tasks.
    states : iterable of str
        Earlier outcomes of the tasks that are not run now.
    workers : int or None
        Number of processes; None on a cluster, which has its own workers.

    Attributes
    ----------
    states : Counter
        Number of tasks by outcome.
    task_seconds : float
        Total running time of the tasks that ended in this run.
    latest : float
        Moment of `time.monotonic` at which the latest task ended, or the run began.
    """

    def __init__(self, total: int, states: Iterable[str], workers: int | None) -> None:
        self.total, self.states, self.workers = total, Counter(states), workers
        self.before, self.began = self.states.total(), time.monotonic()
        self.latest = self.began
        self.task_seconds = 0.0

    def add(self, outcome: TaskOutcome) -> None:
        """Count a task that ended in this run."""
        self.states[outcome.state] += 1
        self.task_seconds += outcome.seconds
        self.latest = time.monotonic()

    @property
    def n_outcomes(self) -> int:
        """Number of tasks with an outcome."""
        return self.states.total()

    @property
    def running(self) -> int | None:
        """Number of tasks that run at once; None on a cluster."""
        return None if self.workers is None else min(self.workers, self.total - self.n_outcomes)

    @property
    def is_waiting(self) -> bool:
        """True if no task has ended for so long that the times of earlier tasks do not predict the next one."""
        total = self.latest - self.began if self.workers is None else self.task_seconds
        expected = total / max(1, self.n_outcomes - self.before)
        return time.monotonic() - self.latest > max(MIN_SILENT_SECONDS, MAX_TASK_RATIO * expected)

    @property
    def remaining_seconds(self) -> float | None:
        """Estimated seconds for the remaining tasks; None before a task of this run has ended, or while none ends.

        On this machine it is computed from the times of the tasks, which do not include compiling.
        """
        now, remaining = self.n_outcomes - self.before, self.total - self.n_outcomes
        if not now or self.is_waiting:
            return None
        if self.workers is None:
            return (time.monotonic() - self.began) * remaining / now
        return self.task_seconds / now * remaining / max(1, min(self.workers, self.total))

    def numbers(self) -> dict[str, Any]:
        """Return the progress for other programs."""
        states = {name: self.states[name] for name in ("done", "failed", "limit")}
        seconds = None if self.remaining_seconds is None else round(self.remaining_seconds, 3)
        return {**states, "running": self.running, "total": self.total, "seconds_left": seconds}

    def line(self) -> str:
        """Return a line with the numbers of done, running and failed tasks, and the estimated remaining time."""
        seconds = time.monotonic() - self.began
        running = "" if self.running is None else f", {self.running:,} running"
        words = f"{self.states['done']:,} of {self.total:,} tasks done{running}, {self.states['failed']:,} failed"
        if met := self.states["limit"]:
            words += f", {met:,} reached a limit"
        if (remaining := self.remaining_seconds) is not None:
            words += f"; about {math.ceil(remaining):,} s left"
        elif not self.n_outcomes:
            words += f"; {FIRST_USE}"
        elif self.is_waiting:
            silent = time.monotonic() - self.latest
            words += (
                f"; no task has ended for {silent:.0f} s, so the remaining time is not estimated (each process "
                "compiles kernels first)"
            )
        return f"{seconds:.0f} s; {words}"


def _run_tasks(
    tasks: Sequence[Task], place: BatchFolder, run: Callable[..., int], counted: TaskCounts, quiet: bool,
    progress_json: str | None,
) -> int:  # fmt: skip
    from sparsecv_mio.cli import live

    steps = None if progress_json is None else live.Steps(progress_json, "batch", phase="tasks", **counted.numbers())
    interrupted = False
    with (
        _show_progress(counted, quiet) as told,
        nullcontext() if steps is None else live.every_ten_seconds(steps.write),
    ):

        def progress(outcome: TaskOutcome) -> None:
            counted.add(outcome)
            told()
            if steps is not None:
                steps.write(**_select_numbers(outcome), **counted.numbers())

        try:
            run(progress=progress)
        except KeyboardInterrupt:
            interrupted = True
    outcomes = place.read_outcomes(tasks)
    code = 130 if interrupted else _code(outcomes)
    if steps is not None:
        steps.end({0: "done", 1: "failed", 3: "limit", 130: "interrupted"}[code])

    def show(screen: Console) -> None:
        _print_counts(screen, outcomes, len(tasks), place)
        if interrupted:
            screen.print("interrupted; run the same command to continue", markup=False)

    return ending.deliver(code, show, lost=[] if steps is None else filter(None, [steps.lines.failure]))


ANSWER = ("tau", "gamma", "cv_error", "lower", "upper", "gap")


def _select_numbers(outcome: TaskOutcome) -> dict[str, Any]:
    """Return the results of a task for other programs; null for values that its estimator does not report."""
    answers = {name: outcome.numbers.get(name) for name in ANSWER}
    numbers = {
        name: number if isinstance(number, int | float) and math.isfinite(number) else None
        for name, number in answers.items()
    }
    which = {"task": outcome.address, "data": outcome.task["data"], "estimator": outcome.task["settings"]["estimator"]}
    return {**which, "state": outcome.state, "task_seconds": outcome.seconds, **numbers}


@contextmanager
def _show_progress(counted: TaskCounts, quiet: bool) -> Iterator[Callable[[], None]]:
    """Yield the function to call after each task: it draws a bar on a terminal, or prints a line every ten seconds."""
    if quiet:
        yield lambda: None
    elif sys.stderr.isatty():
        with _bar(counted) as told:
            yield told
    else:
        from sparsecv_mio.cli.live import print_periodically

        with print_periodically(counted.line):
            yield lambda: None


@contextmanager
def _bar(counted: TaskCounts) -> Iterator[Callable[[], None]]:
    from rich import progress as rich
    from rich.console import Console

    columns = (rich.BarColumn(), rich.MofNCompleteColumn(), rich.TextColumn("{task.description}"),
               rich.TimeElapsedColumn(), rich.TextColumn("left"), rich.TimeRemainingColumn())  # fmt: skip
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        words = "tasks" if counted.n_outcomes else f"tasks ({FIRST_USE})"
        shown = bar.add_task(words, total=counted.total, completed=counted.n_outcomes)

        def update_bar() -> None:
            failed = counted.states["failed"]
            bar.update(shown, advance=1, description=f"tasks, {failed} failed" if failed else "tasks")

        yield update_bar


def _code(outcomes: Sequence[TaskOutcome]) -> int:
    states = {outcome.state for outcome in outcomes}
    return 1 if "failed" in states else 3 if "limit" in states else 0


def _print_counts(screen: Console, found: Sequence[TaskOutcome], total: int | None, place: BatchFolder) -> None:
    from sparsecv_mio.batch.batch_plan import format_settings

    counts = Counter(outcome.state for outcome in found)
    all_of = "" if total is None else f" of {total:,}"
    words = f"{counts['done']:,}{all_of} tasks done, {counts['limit']:,} reached a limit, {counts['failed']:,} failed"
    remaining = "" if total is None or total == len(found) else f", {total - len(found):,} left"
    screen.print(f"{words}{remaining}; results are in {place.path}", markup=False, soft_wrap=True)
    failures = [outcome for outcome in found if outcome.state == "failed"]
    for failed in failures[:MOST_NAMED]:
        settings = format_settings(failed.task["settings"])
        where = f" (traceback in {place.place(failed.address)})" if failed.traceback else ""
        screen.print(f"failed: {failed.task['data']} {settings}: {failed.reason}{where}", markup=False, soft_wrap=True)
    if len(failures) > MOST_NAMED:
        screen.print(f"{len(failures) - MOST_NAMED} more tasks failed; `sparsecv collect` lists them", markup=False)
    if stale := len(place.stale()):
        words = f"the folder also has {several(stale, 'result')} of earlier plans; they are not counted"
        screen.print(f"{words}, and --clean removes them", markup=False)


def _print_status(folder: str | None) -> int:
    from sparsecv_mio.batch.task_folder import BatchFolder

    if folder is None:
        raise BadInput("status: the folder is missing; name the folder of a batch")
    place = BatchFolder(folder)
    if not place.exists:
        raise BadInput(f"status: {folder!r} is not the folder of a batch; name a folder that `sparsecv batch` wrote")
    outcomes, tasks = list(place.outcomes()), place.read_planned_tasks()
    total = None if tasks is None else len(tasks)
    return ending.deliver(_code(outcomes), lambda screen: _print_counts(screen, outcomes, total, place))


def _list_tasks(tasks: Sequence[Task], place: BatchFolder, workers: int) -> int:
    from sparsecv_mio.batch.batch_plan import lists_of_numbers

    counted, done = TaskCounts(len(tasks), (), workers), set[str]()
    for outcome in place.read_outcomes(tasks):
        counted.add(outcome)
        done.add(outcome.address)

    def show(screen: Console) -> None:
        for task in tasks[:SHOWN_TASKS]:
            state = "done" if task.address in done else "left"
            screen.print(f"{task.address}  {state}  {task.source.name}  {task.words()}", markup=False, soft_wrap=True)
        if len(tasks) > SHOWN_TASKS:
            screen.print(f"and {len(tasks) - SHOWN_TASKS:,} more")
        words = f"{len(tasks):,} tasks, {len(done):,} done"
        if (seconds := counted.remaining_seconds) is not None:
            words += f"; about {seconds:.0f} s left on {workers} workers"
        screen.print(words, markup=False)
        for line in lists_of_numbers(tasks):
            screen.print(line, markup=False, soft_wrap=True)

    return ending.deliver(0, show)


@contextmanager
def _reading_lines(quiet: bool, verify: bool) -> Iterator[Callable[[TaskOutcome], None]]:
    """Yield the function to call after each result; it counts the results for a line every ten seconds."""
    from sparsecv_mio.cli.live import print_periodically

    began, counts = time.monotonic(), Counter[str]()

    def line() -> str:
        verified = f", {counts['record']:,} records verified" if verify else ""
        return f"{time.monotonic() - began:.0f} s; {counts['result']:,} results read{verified}"

    def count(outcome: TaskOutcome) -> None:
        counts.update(("result",) if outcome.record is None else ("result", "record"))

    with print_periodically(line, quiet):
        yield count


COLLECT_CODES = "Exit codes: 0 table written, 1 a record was not verified (see its row), 2 bad input."


@with_declared_options()
def collect(
    folder: Annotated[str, Place("DIR", "Folder of a batch.")],
    out: str = option(..., "FILE", "Output table, .parquet or .csv.", also="-o"),
    level: str = option("tasks", "tasks|pairs|folds|sources", "Content of a row: a task, a (tau, gamma) pair of the "
                                                              "grid, a fold of the reported pair, or a bounding "
                                                              "method of the search."),
    verify: bool = option(True, "", "Do not verify the records against their data."),
    every: bool = option(False, "", "Include results of earlier plans in the folder.",
                         flag="--all"),
    quiet: bool = False,
) -> int:  # fmt: skip
    """Make one table of the results of a batch, with columns for settings, results and their sources."""
    from sparsecv_mio.batch.collected import collect as make
    from sparsecv_mio.batch.run_tables import check_format, write_table
    from sparsecv_mio.batch.task_folder import BatchFolder

    place = BatchFolder(folder)
    if not place.exists:
        raise BadInput(f"{folder!r} is not the folder of a batch; name a folder that `sparsecv batch` wrote")
    session.check_outputs({"--out": out})
    check_format(out)
    with _reading_lines(quiet, verify) as count:
        frame = make(place, level, verify, count, every)
    write_table(frame, out)
    checked, failed = int(frame["verified"].notna().sum()), int((frame["state"] == "failed").sum())
    wrong = checked - int(frame["verified"].eq(True).sum())
    words = f"{several(len(frame), 'row')} in {out}; {checked - wrong:,} verified, {wrong:,} not verified"
    if verify:
        others = {"without a record to verify": len(frame) - checked - failed, "from failed tasks": failed}
        words += "".join(f", {count:,} {what}" for what, count in others.items() if count)
    if not every and (stale := len(place.stale())):
        words += f"; {stale:,} results of earlier plans are not included (--all includes them)"
    return ending.deliver(1 if wrong else 0, lambda screen: None if quiet else screen.print(words, markup=False))
