"""Layout of text and tables on the screen.

A table never cuts a number, for any width of the screen. If a table is too wide, its headers are wrapped, then its text
columns. If the table is still too wide, each row is written on several lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from sparsecv_mio.digits import CONTROLS, UNKNOWN, format_number, quoted_name, several

ESTIMATE = "~"  # prefix of an estimate
NOT_KNOWN = f"{UNKNOWN} not known yet"


class DataConsole(Console):
    """A console that makes control codes in names of the data visible, so they cannot control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the segments of a renderable, with control codes made visible."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(segment.text.translate(CONTROLS), segment.style)


def pair(tau: int, gamma: float, unit: str = "feature") -> str:
    """Return a description of a pair of the grid.

    Parameters
    ----------
    tau : int
        Size of the model.
    gamma : float
        Ridge weight.
    unit : str
        Unit that tau counts.

    Examples
    --------
    >>> pair(8, 0.0072)
    'tau = 8 features, gamma = 0.0072 (ridge weight)'
    """
    return f"tau = {several(tau, unit)}, gamma = {format_number(gamma)} (ridge weight)"


def mark_estimate(number: str, estimate: bool) -> str:
    """Return a formatted number, with the prefix of an estimate if it is a known estimate."""
    return f"{ESTIMATE}{number}" if estimate and number != UNKNOWN else number


def gap_in_words(gap: float) -> str:
    """Return the relative gap up to which a choice is certified.

    Examples
    --------
    >>> gap_in_words(1e-4), gap_in_words(0.05), gap_in_words(0.0)
    ('gap <= 1e-4', 'gap <= 0.05', 'gap 0')
    """
    digits, _, power = f"{gap:.3e}".partition("e-")
    short = f"{float(digits):g}e-{int(power)}" if power and 0.0 < gap < 1e-3 else f"{gap:g}"
    return f"gap <= {short}" if gap > 0.0 else "gap 0"


POINT_WIDTH = 1e-5  # relative width below which the bounds of an interval look equal
GAPS = (3, 2)  # spaces between two columns; the wide gap if the table fits
LEAST_TEXT, LEAST_WORD = 10, 16  # minimum width of a text column; length up to which words are not broken


def join_names(names: Iterable[str]) -> str:
    """Return names as a list."""
    return ", ".join(map(quoted_name, names))


def say(console: Console, *lines: str, style: str = "") -> None:
    """Print lines that are not empty, without markup and highlighting."""
    for line in filter(None, lines):
        console.print(Text(line, style))


def cell(value: object) -> str:
    """Return the text of a value in a table: a list of names, a number with six digits, `yes` or `no`.

    Examples
    --------
    >>> cell(0.1234567), cell(3), cell(True), cell(("a", "b")), cell(())
    ('0.123457', '3', 'yes', 'a, b', '(intercept alone)')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return join_names(value) or "(intercept alone)"
    return format_number(value) if isinstance(value, float) else str(value)


def print_table(
    console: Console, heads: Sequence[str], rows: Sequence[Sequence[object]], text: Collection[str] = (),
    styles: Sequence[str] = (),
) -> None:  # fmt: skip
    """Print a table; if its numbers do not fit side by side, print each row on several lines.

    Parameters
    ----------
    console : rich.console.Console
        Console, whose width decides the layout.
    heads : sequence of str
        Headers of the columns.
    rows : sequence of sequences
        Rows with one value for each column; see `cell`.
    text : collection of str, optional
        Headers of text columns; the other columns hold numbers, right-aligned and never wrapped.
    styles : sequence of str, optional
        Styles of the rows.
    """
    lines, styles = [[cell(value) for value in row] for row in rows], styles or [""] * len(rows)
    layouts = ((gap, _widths(console.width - 2 - gap * (len(heads) - 1), heads, lines, text)) for gap in GAPS)
    gap, widths = next(((gap, fitting) for gap, fitting in layouts if fitting is not None), (0, None))
    if widths is None:
        _print_stacked_rows(console, heads, lines, styles)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, gap - 2))
    for head, width in zip(heads, widths, strict=True):
        table.add_column(
            Text(head, overflow="fold"), justify="left" if head in text else "right", width=width, no_wrap=False,
            overflow="fold",
        )  # fmt: skip
    for line, style in zip(lines, styles, strict=True):
        table.add_row(*(Text(text, overflow="fold") for text in line), style=style)
    console.print(table)


def _widths(
    inner: int, heads: Sequence[str], lines: Sequence[Sequence[str]], text: Collection[str]
) -> list[int] | None:
    """Return the widths of the columns, or None if the numbers do not fit."""
    cells = [[line[k] for line in lines] for k in range(len(heads))]
    content = [max((len(text) for text in column), default=1) for column in cells]
    whole = [max(width, len(head)) for width, head in zip(content, heads, strict=True)]
    if sum(whole) <= inner:
        return whole
    word = [max(len(word_of) for word_of in head.split() or [""]) for head in heads]
    least = [
        max(word[k], _least_text(cells[k]) if head in text else content[k]) for k, head in enumerate(heads)
    ]  # fmt: skip
    if sum(least) > inner:
        return None
    widths = list(least)
    # remaining width goes to text columns first, then to headers
    for wanted in ([max(w, c) for w, c in zip(least, content, strict=True)], whole):
        _widen_evenly(widths, wanted, inner - sum(widths))
    return widths


def _widen_evenly(widths: list[int], wanted: Sequence[int], room: int) -> None:
    """Widen columns towards the wanted widths, in place; columns that need more than there is room get equal shares.

    Examples
    --------
    >>> widths = [10, 10, 4]
    >>> _widen_evenly(widths, [100, 80, 6], 42)
    >>> widths
    [30, 30, 6]
    """
    while room > 0 and (short := [k for k, most in enumerate(wanted) if widths[k] < most]):
        each = max(min(room // len(short), *(wanted[k] - widths[k] for k in short)), 1)
        for k in short[:room]:
            widths[k] += each
            room -= each


def _least_text(cells: Sequence[str]) -> int:
    words = max((len(word) for cell in cells for word in cell.split()), default=1)
    return min(max((len(cell) for cell in cells), default=1), max(LEAST_TEXT, min(words, LEAST_WORD)))


def _print_stacked_rows(
    console: Console, heads: Sequence[str], lines: Sequence[Sequence[str]], styles: Sequence[str]
) -> None:
    console.print()
    for line, style in zip(lines, styles, strict=True):
        first, *others = (f"{head} {text}" for head, text in zip(heads, line, strict=True) if text.strip())
        console.print(Text(first, style=style))
        for further in others:
            console.print(Padding(Text(further, style=style, overflow="fold"), (0, 0, 0, 2)))
    console.print()


def say_titled(console: Console, title: str, text: str, colour: str) -> None:
    """Print a text after its title, which is bold and coloured."""
    console.print(Text.assemble((f"{title}: ", f"bold {colour}"), text))


def code_lines(record: Any) -> list[str]:
    """Return lines with the codes of a text target and of the levels of each ordinal text column."""
    lines = [f"codes of {record.data.target}: {record.target_codes}"] if record.target_codes else []
    return [*lines, *([] if record.data.reading is None else record.data.reading.code_lines)]


def link_lines(record: Any) -> list[str]:
    """Return lines on the scale of the coefficients of a record with another link than the identity."""
    lines, target = list[str](), record.wording
    if record.classes is not None:
        offset = "" if record.data.offset is None else f", with {record.data.offset!r} added to the log odds"
        lines.append(f"logistic loss: coefficients are log odds ratios of {record.classes.positive!r}{offset}")
    if record.counts is not None:
        per = "" if record.data.exposure is None else f" (target divided by {record.data.exposure!r})"
        per += "" if record.data.offset is None else f", with {record.data.offset!r} added to the log rates"
        lines.append(f"counts with log link: coefficients are log rate ratios{per}")
    if target.unit and not (target.has_classes or target.has_counts):
        lines.append(f"{record.loss} loss: coefficients are {target.unit}")
    return lines
