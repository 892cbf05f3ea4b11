"""Display of the progress of a run: a live view on a terminal, otherwise one line every ten seconds.

The view and the line show the current step, the smallest CV error found so far (`~` marks an estimate), the certified
bounds and the finished share of the work. The view has one row for each tau; neighbouring taus without a solved pair
(tau, gamma) share a row.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sparsecv_mio.certificate.parts import relative_gap
from sparsecv_mio.cli import Began
from sparsecv_mio.cli.ending import tell
from sparsecv_mio.digits import format_interval, format_lower, format_number, format_upper
from sparsecv_mio.files import JsonLines, null_if_infinite
from sparsecv_mio.parallel import call_periodically
from sparsecv_mio.report.layout import mark_estimate
from sparsecv_mio.search.observers import COMPILING, RESUMED

if TYPE_CHECKING:
    from sparsecv_mio.certificate.records import Record
    from sparsecv_mio.search.deadline import StopSignal
    from sparsecv_mio.search.observers import Progress, TauProgress

FAINT = "bright_black"  # colour of less important texts
REDRAWS = 6  # redraws in a second
LINE_SECONDS = 10.0  # seconds between two plain lines
FIRST_LINE_SECONDS = 1.0  # seconds from the start of a view to its first plain line
STEP_SECONDS = 0.1  # minimum seconds between two JSON lines of progress
STEPS_SCHEMA = "sparsecv-progress/1"
WIDEST_BAR, LEAST_BAR = 28, 6
BESIDE_BAR = 62  # characters of a row of the table without its bar
OTHER_LINES = 8  # lines of the view in addition to its table
DRAWS = 200  # maximum number of redraws of the bar, since a step may be faster than drawing


CountingHook = Callable[[int, int], None]
"""Called with (units of work done, units of work in total) from time to time."""


def _seconds_of_command() -> float:
    """Return the seconds since the start of the command: every line shows the same clock."""
    return time.monotonic() - Began.moment


def describe_known_bounds(state: Progress) -> str:
    """Return the certified interval of the minimum CV error and the relative gap, as far as they are known."""
    if not math.isfinite(state.upper):
        return (
            f"minimum CV error at least {format_lower(state.lower)}" if state.lower > 0.0 else "no certified bound yet"
        )
    gap = max(state.upper - state.lower, 0.0) / state.upper if state.upper > 0.0 else 0.0
    return f"minimum CV error in {format_interval(state.lower, state.upper)}, gap {gap:.2g}"


def describe_answer(state: Progress) -> str:
    """Return the pair that would be reported now and its CV error, marked if it is an estimate."""
    if state.best is None or not (math.isfinite(state.cv_error) or math.isfinite(state.upper)):
        return ""
    words = f"tau {state.best[1]}, gamma {format_number(state.best[0], 4)}"
    error = mark_estimate(format_number(state.cv_error), state.estimate)
    return f"{words}, CV error {error}" if math.isfinite(state.cv_error) else words


def describe_certified_region(state: Progress) -> str:
    """Return the region in which the best pair is certified, or an empty text."""
    if state.proved is None or not state.taus:
        return ""
    from sparsecv_mio.report.record_words import describe_region

    return f"best pair certified for {describe_region(*state.proved, [row.tau for row in state.taus])}"


def bar(done: int, pruned: int, total: int, width: int = WIDEST_BAR) -> Text:
    """Return a bar of solved, pruned and open subproblems.

    Parameters
    ----------
    done, pruned, total : int
        Numbers of subproblems; the remaining ones are open.
    width : int
        Width of the whole bar in characters.

    Returns
    -------
    Text
        The bar.

    Examples
    --------
    >>> bar(2, 1, 4, 8).plain
    '━━━━╌╌··'
    """
    first = width * done // max(total, 1)
    second = width * (done + pruned) // max(total, 1) - first
    return Text.assemble(("━" * first, "green"), ("╌" * second, "yellow"), ("·" * (width - first - second), FAINT))


def progress_line(state: Progress) -> str:
    """Return the state as one line of plain text."""
    certified = "" if state.best is None else describe_known_bounds(state)
    counts = ""
    if state.total:  # nothing is counted while kernels are compiled
        counts = f"{describe_counts(state)}, {state.mios:,} by branch and bound, {state.nodes:,} nodes"
    said = state.stage, describe_answer(state), certified, describe_certified_region(state), counts
    return "; ".join([f"{state.seconds:.0f} s", *filter(None, said)])


def resumed_line(state: Progress) -> str:
    """Return a line on the state of a stored run when it was resumed."""
    if not state.total:
        return "resumed from a run that was stored before its search began"
    said = describe_answer(state), describe_known_bounds(state), describe_certified_region(state)
    return f"resumed from the stored run: {'; '.join([describe_counts(state), *filter(None, said)])}"


def merge_taus(taus: Sequence[TauProgress], best: int) -> list[tuple[str, TauProgress]]:
    """Return rows in which similar neighbouring taus are merged: none is solved, and all or none are open.

    Parameters
    ----------
    best : int
        Tau that would be reported now; it has a separate row.

    Returns
    -------
    list of (str, TauProgress)
        Names of the taus, and the row of one tau, or of several with the minimum of each number.
    """

    def kind(row: TauProgress) -> int:
        alone = row.final > 0 or row.tau == best
        return row.tau if alone else -1 if row.pruned < row.total else -2

    rows = []
    for _, group in groupby(taus, kind):
        same = list(group)
        merged = replace(
            min(same, key=lambda row: row.cv_error), final=sum(row.final for row in same),
            pruned=sum(row.pruned for row in same), total=sum(row.total for row in same),
            lower=min(row.lower for row in same), upper=min(row.upper for row in same),
        )  # fmt: skip
        rows.append((taus_in_words([row.tau for row in same]), merged))
    return rows


class View:
    """The view on a terminal: stores the last reported state and draws it when rich requests it."""

    def __init__(self, stop: StopSignal, console: Console, note: str = "") -> None:
        self.stop, self.console, self.note = stop, console, note
        self.state: Progress | None = None

    def __call__(self, state: Progress) -> None:
        """Store a report; may be called from any thread."""
        if state.stage == RESUMED:
            self.console.print(f"sparsecv: {resumed_line(state)}", markup=False, soft_wrap=True)
        self.state = state

    def draw(self) -> Group:
        """Draw the last state."""
        state, seconds = self.state, f"{_seconds_of_command():.0f} s"
        if state is None:
            return Group(Text(f"starting   {seconds}", style=FAINT))
        answer, parts = describe_answer(state), list[Any]()
        if state.stage:
            parts.append(Text(state.stage))
        if state.best is not None:
            parts.append(Text.assemble((answer, "bold"), "   " if answer else "", describe_known_bounds(state)))
        if words := describe_certified_region(state):
            parts.append(Text(words, style="green"))
        if state.total:
            excluded = "" if state.best is None else f", {state.pruned:,} excluded"
            counts = f"  {state.done:,}/{state.total:,} solved{excluded}, {state.nodes:,} nodes   {seconds}"
            parts.append(Text.assemble(bar(state.done, state.pruned, state.total, self._bar()), counts))
        else:  # nothing is counted while kernels are compiled
            parts.append(Text(seconds, style=FAINT))
        if state.taus:
            parts.append(self._taus(state.taus, state.best[1] if answer and state.best else -1))
        if self.note:
            parts.append(Text(self.note, style=FAINT))
        if self.stop.is_set():
            stopping = "stopping with the best answer found so far (press Ctrl-C again to quit at once)"
            parts.append(Text(stopping, style="yellow"))
        return Group(*parts)

    def _bar(self) -> int:
        """Return the width of the bar; on a narrow screen the bar shrinks, not the numbers."""
        return min(WIDEST_BAR, max(LEAST_BAR, self.console.width - BESIDE_BAR))

    def _taus(self, taus: tuple[TauProgress, ...], best: int) -> Table:
        """Return the table of taus; similar ones are merged, and a low screen shows the smallest lower bounds."""
        rows = merge_taus(taus, best)
        first = sorted(rows, key=lambda named: (named[1].tau != best, named[1].lower))
        visible = first[: max(self.console.size.height - OTHER_LINES, 3)]
        has_bars = self.console.width >= BESIDE_BAR + LEAST_BAR
        table = Table(box=None, pad_edge=False, header_style=FAINT)
        table.add_column("tau", justify="right", no_wrap=True)
        if has_bars:
            table.add_column("solved ━ excluded ╌ open ·", min_width=self._bar())
        for name in ("folds", "CV error", "lower", "upper"):
            table.add_column(name, justify="right", no_wrap=True)
        for name, row in (named for named in rows if named in visible):
            style = "bold" if row.tau == best else FAINT if row.final + row.pruned >= row.total else ""
            solved = f"{row.final}+{row.pruned}/{row.total}" if row.pruned else f"{row.final}/{row.total}"
            drawn = [bar(row.final, row.pruned, row.total, self._bar())] if has_bars else []
            error = mark_estimate(format_number(row.cv_error), row.estimate) if math.isfinite(row.cv_error) else ""
            table.add_row(name, *drawn, solved, error, format_lower(row.lower), format_upper(row.upper), style=style)
        if len(visible) < len(rows):
            table.add_row("", Text(f"{len(rows) - len(visible)} more rows", style=FAINT))
        return table


class Lines:
    """The view in a log: stores the last reported state and prints it after one second, then every ten seconds.

    The compilation of kernels is reported at once, and only once, since nothing else happens meanwhile. The state of a
    resumed run is also reported at once.

    Parameters
    ----------
    note : str
        Sentence about the run, printed before the first line; empty for none.
    """

    def __init__(self, note: str = "") -> None:
        self.note = note
        self.state: Progress | None = None

    def __call__(self, state: Progress) -> None:
        """Store a report; may be called from any thread."""
        if state.stage == RESUMED:
            tell(resumed_line(state))
        self.state = state
        if state.stage.startswith(COMPILING):
            tell(state.stage)

    def line(self) -> str:
        """Return the last state as a line, with the seconds since the start of the command."""
        state, seconds = self.state, _seconds_of_command()
        if self.note:
            tell(f"note: {self.note}")
            self.note = ""
        if state is None:
            return f"{seconds:.0f} s; starting"
        if state.stage.startswith(COMPILING):
            return f"{seconds:.0f} s; still {state.stage.partition(':')[0]}"
        return progress_line(replace(state, seconds=seconds))


class Steps:
    """Progress for other programs: one JSON line for each step, and one every ten seconds without a step.

    Parameters
    ----------
    place : str
        Path of the file.
    command : str
        Name of the command.
    **known
        Fields of every line until they change.
    """

    def __init__(self, place: str, command: str, **known: Any) -> None:
        self.lines = JsonLines(place, "progress-json")
        self.due, self.lock = -math.inf, threading.RLock()
        self.known: dict[str, Any] = {"phase": "starting"} | known
        self.lines.write({"schema": STEPS_SCHEMA, "command": command, "time": _timestamp()})

    def __call__(self, state: Progress) -> None:
        """Write a report; may be called from any thread."""
        gamma, tau = state.best if state.best is not None and math.isfinite(state.cv_error) else (None, None)
        answer = _numbers_of_answer(state.cv_error, state.lower, state.upper, relative_gap(state.lower, state.upper))
        counts = {name: getattr(state, name) for name in ("estimate", "done", "pruned", "total", "mios", "nodes")}
        with self.lock:
            self.known = {"phase": state.stage, "tau": tau, "gamma": gamma} | answer | counts
            if state.stage == RESUMED or time.monotonic() >= self.due:
                self.write()

    def write(self, status: str = "running", **changed: Any) -> None:
        """Write a line with the known fields and the changed ones, which are kept."""
        with self.lock:
            seconds = round(_seconds_of_command(), 3)
            self.known |= changed
            self.lines.write({"time": _timestamp(), "seconds": seconds, "status": status} | self.known)
            self.due = time.monotonic() + STEP_SECONDS

    def end(self, status: str, record: Record | None = None) -> None:
        """Write the last line, with the answer of a search."""
        answer: dict[str, Any] = {}
        if record is not None:
            least = record.certificate
            answer = {"tau": record.tau, "gamma": record.gamma, "estimate": record.estimate}
            answer |= _numbers_of_answer(record.cv_error, least.lower, least.upper, least.gap)
        self.write(status, phase="end", **answer)
        self.lines.close()


def _timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def every_ten_seconds(call: Callable[[], None]) -> AbstractContextManager[None]:
    """Call a function after one second, then every ten seconds, while the context lasts."""
    return call_periodically(call, FIRST_LINE_SECONDS, LINE_SECONDS)


def print_periodically(line: Callable[[], str], quiet: bool = False) -> AbstractContextManager[None]:
    """Print a line on standard error after a second, then every ten seconds, unless quiet."""
    return nullcontext() if quiet else every_ten_seconds(lambda: tell(line()))


def reading_lines(quiet: bool) -> AbstractContextManager[None]:
    """Print lines while the data are read, unless quiet."""
    return print_periodically(lambda: f"{_seconds_of_command():.0f} s; reading the data", quiet)


@contextmanager
def proof_lines(quiet: bool) -> Iterator[Callable[[int], None]]:
    """Print lines while a proof is written, unless quiet; yield a function of the number of its statements so far."""
    number = 0

    def update(n_statements: int) -> None:
        nonlocal number
        number = n_statements

    def line() -> str:
        return f"{_seconds_of_command():.0f} s; writing the proof, {number:,} statements so far"

    with print_periodically(line, quiet):
        yield update


@contextmanager
def compilation_lines(quiet: bool) -> Iterator[None]:
    """Print a line before kernels are compiled, for a command without a view of its search, unless quiet."""
    logger = logging.getLogger("sparsecv_mio")
    level = logger.level

    def show(entry: logging.LogRecord) -> bool:
        if not quiet:
            tell(f"{_seconds_of_command():.0f} s; {entry.getMessage()}")
        return False

    logger.addFilter(show)
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.removeFilter(show)
        logger.setLevel(level)


@contextmanager
def progress_view(
    quiet: bool, stop: StopSignal, steps: Steps | None = None, note: str = ""
) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a callback for the reports of the search, which also passes them to `steps`.

    With `quiet` and without `steps`, None is yielded. The view is on standard error, is redrawn in place, and is
    removed at the end, also after an error. It shows `note`, a sentence about the run.
    """
    with _view(quiet, stop, note) as view:
        if steps is None:
            yield view
            return

        def update_views(state: Progress) -> None:
            steps(state)
            if view is not None:
                view(state)

        with every_ten_seconds(steps.write):
            yield update_views


@contextmanager
def _view(quiet: bool, stop: StopSignal, note: str) -> Iterator[Callable[[Progress], None] | None]:
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        lines = Lines(note)
        with print_periodically(lines.line):
            yield lines
        return
    console = Console(stderr=True, highlight=False)
    view = View(stop, console, note)
    stop.announced = True  # the view says that it is stopping; a separate line would disturb it
    try:
        with Live(get_renderable=view.draw, console=console, refresh_per_second=REDRAWS, transient=True):
            yield view
    finally:
        stop.announced = False


def _lines_now_and_then(unit: str) -> CountingHook:
    """Return a hook that prints a line every `LINE_SECONDS`."""
    due = time.monotonic() + FIRST_LINE_SECONDS

    def line(done: int, total: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + LINE_SECONDS
            tell(f"{_seconds_of_command():.0f} s; {done:,} of {total:,} {unit}")

    return line


@contextmanager
def counting_bar(quiet: bool, unit: str) -> Iterator[CountingHook | None]:
    """Yield a hook (done, total) that draws a bar on standard error or prints occasional lines; None if quiet."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield _lines_now_and_then(unit)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(unit, total=None)

        def draw(done: int, total: int) -> None:
            if done == total or done % max(1, total // DRAWS) == 0:
                bar.update(task, completed=done, total=total)

        yield draw


def taus_in_words(taus: Sequence[int]) -> str:
    """Return a short text for ascending taus; LO:HI means all from LO to HI.

    Examples
    --------
    >>> taus_in_words([4]), taus_in_words([4, 5, 6]), taus_in_words([1, 3, 5]), taus_in_words([1, 2, 4, 8, 16])
    ('4', '4:6', '1,3,5', '1,2..16')
    """
    if len(taus) > 1 and taus[-1] - taus[0] == len(taus) - 1:
        return f"{taus[0]}:{taus[-1]}"
    return ",".join(map(str, taus)) if len(taus) <= 3 else f"{taus[0]},{taus[1]}..{taus[-1]}"


def describe_counts(state: Progress) -> str:
    """Return the numbers of solved and excluded subproblems."""
    return f"{state.done:,} of {state.total:,} subproblems solved, {state.pruned:,} excluded"


def _numbers_of_answer(*numbers: float) -> dict[str, float | None]:
    """Return the CV error, its bounds and the gap by name, None for an infinite one."""
    return dict(zip(("cv_error", "lower", "upper", "gap"), null_if_infinite(numbers), strict=True))
