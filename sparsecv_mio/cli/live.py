"""Progress of a run: a view that redraws itself on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sparsecv_mio.report.numbers import shown

if TYPE_CHECKING:
    from sparsecv_mio.search.interrupts import Stop
    from sparsecv_mio.search.observers.progress import Progress, TauProgress

REDRAWS = 6  # a second
LINE_SECONDS = 10.0  # between two plain lines
BAR, LEAST_BAR = 28, 6
BESIDE_BAR = 50  # characters that a row of the table takes beside its bar
OTHER_LINES = 8  # of the view, beside the rows of its table


def gap_of(state: Progress) -> str:
    """Format the relative gap, as `0.012`; a question mark before there is an upper bound."""
    if not 0.0 < state.upper < math.inf:
        return shown(math.inf)
    return f"{max(state.upper - state.lower, 0.0) / state.upper:.2g}"


def proved_of(state: Progress) -> str:
    """Say where the best pair is proved; nothing before it is anywhere."""
    if state.proved is None or not state.taus:
        return ""
    from sparsecv_mio.report.region import covered

    return f"proved among {covered(*state.proved, [row.tau for row in state.taus])}"


def bar(done: int, pruned: int, total: int, width: int = BAR) -> Text:
    """Draw decided, pruned and open cells as a bar.

    Parameters
    ----------
    done, pruned, total : int
        Numbers of cells; those that are neither decided nor pruned are open.
    width : int
        Characters of the whole bar.

    Returns
    -------
    Text

    Examples
    --------
    >>> bar(2, 1, 4, 8).plain
    '━━━━╌╌··'
    """
    first = width * done // max(total, 1)
    second = width * (done + pruned) // max(total, 1) - first
    return Text.assemble(
        ("━" * first, "green"), ("╌" * second, "yellow"), ("·" * (width - first - second), "bright_black")
    )


def line_of(state: Progress) -> str:
    """Format the state as one line of plain text."""
    parts = [f"{state.seconds:.0f} s"]
    if state.stage:
        parts.append(state.stage)
    elif state.best is not None:
        parts.append(f"tau {state.best[1]}, gamma {shown(state.best[0], 4)}")
    if state.best is not None:
        parts.append(f"CV error in [{shown(state.lower)}, {shown(state.upper)}], gap {gap_of(state)}")
    if words := proved_of(state):
        parts.append(words)
    parts.append(f"{state.done}/{state.total} cells, {state.pruned} pruned, {state.mios} MIOs, {state.nodes} nodes")
    return "sparsecv: " + "; ".join(parts)


class View:
    """The view on a terminal: keeps the last state that was reported and draws it whenever rich asks."""

    def __init__(self, stop: Stop, console: Console) -> None:
        self.stop, self.console = stop, console
        self.state: Progress | None = None
        self.began = time.monotonic()

    def __call__(self, state: Progress) -> None:
        """Keep a report; may be called from any thread."""
        self.state = state

    def draw(self) -> Group:
        """Draw the last state."""
        state = self.state
        seconds = time.monotonic() - self.began
        if state is None:
            return Group(Text(f"starting   {seconds:.0f} s", style="bright_black"))
        parts: list[Any] = []
        if state.stage:
            parts.append(Text(state.stage))
        if state.best is not None:
            parts.append(self._answer(state))
        if words := proved_of(state):
            parts.append(Text(words, style="green"))
        counts = f"  {state.done:,}/{state.total:,} cells"
        if state.best is not None:
            counts += f", {state.pruned:,} pruned, {state.mios:,} MIOs"
        counts += f", {state.nodes:,} nodes   {seconds:.0f} s"
        parts.append(Text.assemble(bar(state.done, state.pruned, state.total, self._bar()), counts))
        if state.taus:
            parts.append(self._taus(state.taus, state.best[1] if state.best else -1))
        if self.stop.is_set():
            parts.append(Text("stopping with the best answer so far (Ctrl-C again quits at once)", style="yellow"))
        return Group(*parts)

    @staticmethod
    def _answer(state: Progress) -> Text:
        assert state.best is not None
        gamma, tau = state.best
        return Text.assemble(
            (f"tau {tau}, gamma {shown(gamma, 4)}", "bold"),
            f"   best CV error in [{shown(state.lower)}, {shown(state.upper)}]   gap {gap_of(state)}",
        )

    def _bar(self) -> int:
        """Return the width of the bar: on a narrow screen it is the bar that shrinks, not the numbers."""
        return min(BAR, max(LEAST_BAR, self.console.width - BESIDE_BAR))

    def _taus(self, taus: tuple[TauProgress, ...], best: int) -> Table:
        """Draw a row for each tau; where the screen is too low, for those with the least lower bounds."""
        room = max(self.console.size.height - OTHER_LINES, 3)
        kept = {row.tau for row in sorted(taus, key=lambda row: (row.tau != best, row.lower))[:room]}
        table = Table(box=None, pad_edge=False, header_style="bright_black")
        table.add_column("tau", justify="right")
        table.add_column("decided ━ pruned ╌ open ·", min_width=self._bar())
        table.add_column("cells", justify="right", no_wrap=True)
        table.add_column("lower", justify="right", no_wrap=True)
        table.add_column("upper", justify="right", no_wrap=True)
        for row in taus:
            if row.tau in kept:
                style = "bold" if row.tau == best else "bright_black" if row.final + row.pruned >= row.total else ""
                cells = f"{row.final}+{row.pruned}/{row.total}" if row.pruned else f"{row.final}/{row.total}"
                drawn = bar(row.final, row.pruned, row.total, self._bar())
                table.add_row(str(row.tau), drawn, cells, shown(row.lower), shown(row.upper), style=style)
        if len(kept) < len(taus):
            table.add_row("", Text(f"{len(taus) - len(kept)} more", style="bright_black"), "", "", "")
        return table


class Lines:
    """The view in a log: a plain line every ten seconds."""

    def __init__(self) -> None:
        self.due = time.monotonic() + LINE_SECONDS

    def __call__(self, state: Progress) -> None:
        """Print the state if the last line is ten seconds old."""
        now = time.monotonic()
        if now >= self.due:
            self.due = now + LINE_SECONDS
            print(line_of(state), file=sys.stderr, flush=True)


@contextmanager
def progress_view(quiet: bool, stop: Stop) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a callback for the reports of the search; None when quiet.

    The view is on standard error, redrawn in place, and is removed at the end, also after an error.
    """
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield Lines()
        return
    console = Console(stderr=True, highlight=False)
    view = View(stop, console)
    stop.announced = True  # the view says that it is stopping; a separate line would disturb it
    try:
        with Live(get_renderable=view.draw, console=console, refresh_per_second=REDRAWS, transient=True):
            yield view
    finally:
        stop.announced = False
