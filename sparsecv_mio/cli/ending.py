"""Functions that end a command: they print the answer, write the files, and report a failure in one message."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from errno import EBADF
from typing import TYPE_CHECKING, Any, TextIO

from sparsecv_mio.digits import CONTROLS
from sparsecv_mio.errors import OutOfTime, SparseCVError
from sparsecv_mio.files import reason, write_text

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 200  # characters for a file or a pipe: wide enough for every table
PADDING = re.compile(" +$", re.MULTILINE)  # blanks with which tables fill their lines
UNRESTRICTING = (  # phrases of warnings that state how a column was read; --quiet leaves only them out
    " constant: ", " holds one text value in all rows: ", " is a separate level, ", " are a separate level, ",
    " count as one value", " is the smaller value, ",
)  # fmt: skip
LONGEST_WORD = 160  # characters; a longer word of a message is shortened in its middle


class ClosedOutput(io.TextIOBase):
    """Replacement of a standard output that was closed before the start; writing fails with the system's message."""

    refused = False

    def writable(self) -> bool:
        """Return True: libraries check this before they write, and `write` reports the failure."""
        return True

    def write(self, text: str) -> int:
        """Raise an error unless `text` is empty."""
        self.refused = self.refused or bool(text)
        self.flush()
        return 0

    def flush(self) -> None:
        """Raise an error if something was written, like a file on a full disk."""
        if self.refused:
            raise OSError(EBADF, os.strerror(EBADF))


def take_streams() -> None:
    """Make closed standard streams safe to use, and feature names printable in any encoding.

    Otherwise the next opened file would get the file descriptor of a closed stream, and output of libraries would go
    into that file.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor
    sys.stdout = sys.stdout or ClosedOutput()
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a feature name must not crash a terminal without UTF-8


def tell(text: str) -> None:
    """Print a line on standard error; a failure to do so is ignored."""
    words = (word if len(word) <= LONGEST_WORD else f"{word[:60]}...{word[-20:]}" for word in text.split())
    try:
        print(f"sparsecv: {' '.join(words)}".translate(CONTROLS), file=sys.stderr, flush=True)
    except OSError:
        _drop(sys.stderr)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print warnings from within the context as lines of this program, without a code location."""
    with warnings.catch_warnings(record=True) as caught:
        yield
    for warning in caught:
        tell(f"warning: {warning.message}")


def write_stream(stream: TextIO, pieces: Iterable[str]) -> SparseCVError | None:
    """Write to a standard stream.

    Returns
    -------
    SparseCVError or None
        The error, if any. A closed pipe (`| head`) is not an error.
    """
    try:
        stream.writelines(pieces)
        stream.flush()
    except BrokenPipeError:
        _drop(stream)
    except OSError as error:
        _drop(stream)
        if stream is not sys.stderr:
            return LostOutput(f"cannot write to standard output: {reason(error)}")
    return None


class LostOutput(SparseCVError):
    """The answer could not be printed."""

    exit_code = 2


def _drop(stream: TextIO) -> None:
    """Discard the buffer of a stream, which the interpreter would otherwise try to write at exit, and fail again."""
    if isinstance(stream, ClosedOutput):
        stream.refused = False
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass


def warnings_to_print(warnings: Iterable[str], quiet: bool) -> list[str]:
    """Return the warnings of a record; with `quiet` only those that restrict the answer.

    Parameters
    ----------
    warnings : iterable of str
        Warnings of the record.
    quiet : bool
        Value of --quiet.

    Examples
    --------
    >>> notes = ["column 'a' is constant: its coefficient is zero", "column 'b' varies only by rounding errors"]
    >>> warnings_to_print(notes, quiet=True)
    ["column 'b' varies only by rounding errors"]
    """
    return [words for words in warnings if not quiet or not any(phrase in words for phrase in UNRESTRICTING)]


def render_text(printer: Callable[[Console], None], stream: TextIO) -> str:
    """Return the output of a printer for a stream, in its width and colours.

    The width of a pipe or file is the variable COLUMNS, or else `PIPE_WIDTH` characters; lines end without blanks.
    """
    from sparsecv_mio.report.layout import DataConsole

    text, terminal = io.StringIO(), stream.isatty()
    width = shutil.get_terminal_size((PIPE_WIDTH, 0)).columns if not terminal else None
    console = DataConsole(
        file=text, width=width, force_terminal=terminal or None, highlight=False, markup=False, emoji=False
    )
    printer(console)
    return text.getvalue() if terminal else PADDING.sub("", text.getvalue())


def show(printer: Callable[[Console], None], json: str | None = None) -> SparseCVError | None:
    """Print on standard output, or on standard error when standard output carries the record (`--json -`).

    Returns
    -------
    SparseCVError or None
        The error, if any.
    """
    stream = sys.stderr if json == "-" else sys.stdout
    return write_stream(stream, [render_text(printer, stream)])


def make_json_writer(numbers: Mapping[str, Any]) -> Callable[[], list[str]]:
    """Return a function that returns the JSON text of the numbers."""
    return lambda: [json.dumps(numbers, indent=2, allow_nan=False), "\n"]


def deliver(
    code: int,
    printer: Callable[[Console], None],
    *,
    json: str | None = None,
    record: Callable[[], Iterable[str]] | None = None,
    files: Iterable[Callable[[], None]] = (),
    warnings: Iterable[str] = (),
    lost: Iterable[SparseCVError] = (),
) -> int:
    """Print the answer, then write the record and the other files; each failure is one line and stops nothing else.

    Parameters
    ----------
    code : int
        Exit code if everything was written.
    printer : callable
        Function that prints the answer on a console.
    json : str, optional
        File of the record; `-` is standard output.
    record : callable, optional
        Function that returns the text of the record, in pieces.
    files : iterable of callable
        Functions that write one further file each.
    warnings : iterable of str
        Lines for standard error.
    lost : iterable of SparseCVError
        Errors of files that could not be written during the search.

    Returns
    -------
    int
        The exit code: `code`; 2 if something could not be written; 3 if a proof needs a longer search; or 130 if Ctrl-C
        interrupted the search or writing.
    """
    failures = [show(printer, json)]
    for warning in warnings:
        tell(f"warning: {warning}")
    failures += lost
    if json is not None and record is not None:
        pieces = record()
        if json == "-":
            failures.append(write_stream(sys.stdout, pieces))
        else:
            files = [lambda: write_text(json, pieces, "record", through=True), *files]
    for write in files:
        try:
            write()
        except SparseCVError as error:
            failures.append(error)
    told = [failure for failure in failures if failure is not None]
    for failure in told:
        tell(f"error: {failure}")
    only_late = all(isinstance(failure, OutOfTime) for failure in told)
    return max([code if only_late else LostOutput.exit_code, *(failure.exit_code for failure in told)])
