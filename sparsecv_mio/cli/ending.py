"""The end of a command: the answer first, then the files. What cannot be written is told in a line, no more."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from errno import EBADF
from typing import TYPE_CHECKING, TextIO

from sparsecv_mio.errors import SparseCVError
from sparsecv_mio.files import reason, write_text

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 200  # a file or a pipe has no width: wide enough that no table is cut
LOST = 2  # the exit code when a file, or the answer itself, could not be written
LONGEST_WORD = 160  # of a message: a number of 5,000 digits is shown by its ends


class Closed(io.TextIOBase):
    """What stands for a standard output that was closed before the start: it refuses, with the system's words."""

    refused = False

    def writable(self) -> bool:
        """It is open for writing, to no avail."""
        return True

    def write(self, text: str) -> int:
        """Refuse anything but nothing."""
        self.refused = self.refused or bool(text)
        self.flush()
        return 0

    def flush(self) -> None:
        """Refuse what is left, as a file does whose disk is full."""
        if self.refused:
            raise OSError(EBADF, os.strerror(EBADF))


def take_streams() -> None:
    """Make standard streams that were closed before the start safe to use, and names printable everywhere.

    The number of a closed stream would go to the next file that is opened, and what libraries print would go into it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = sys.stdout or Closed()
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a feature name must not crash a terminal without UTF-8


def tell(text: str) -> None:
    """A line on standard error; nobody is told when that cannot be written."""
    words = (word if len(word) <= LONGEST_WORD else f"{word[:60]}...{word[-20:]}" for word in text.split())
    try:
        print(f"sparsecv: {' '.join(words)}", file=sys.stderr, flush=True)
    except OSError:
        _drop(sys.stderr)


def put(stream: TextIO, pieces: Iterable[str]) -> SparseCVError | None:
    """Write to a standard stream; what went wrong, unless the reader of a pipe has seen enough (`| head`)."""
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

    exit_code = LOST


def _drop(stream: TextIO) -> None:
    """Send what is left in a stream's buffer nowhere: the interpreter would try once more at its end, and complain."""
    if isinstance(stream, Closed):
        stream.refused = False
        return
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass


def drawn(printer: Callable[[Console], None], stream: TextIO) -> str:
    """What a printer prints for a stream, in its width and colours; a pipe is as wide as `COLUMNS` says, or very."""
    from rich.console import Console

    text, terminal = io.StringIO(), stream.isatty()
    width = shutil.get_terminal_size((PIPE_WIDTH, 0)).columns if not terminal else None
    console = Console(
        file=text, width=width, force_terminal=terminal or None, highlight=False, markup=False, emoji=False
    )
    printer(console)
    return text.getvalue()


def show(printer: Callable[[Console], None], json: str | None = None) -> SparseCVError | None:
    """Print on standard output, or on standard error when that carries the record; what went wrong."""
    stream = sys.stderr if json == "-" else sys.stdout
    return put(stream, [drawn(printer, stream)])


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
    """Print the answer, then write everything else; each failure is one line and hinders nothing that follows.

    Parameters
    ----------
    code : int
        Exit code where everything was written.
    printer : callable
        Prints the answer on a console.
    json : str, optional
        Where the record goes; `-` is standard output.
    record : callable, optional
        Makes the record's text, in pieces.
    files : callables
        Each writes one more file.
    warnings : iterable of str
    lost : iterable of SparseCVError
        What could not be written on the way.

    Returns
    -------
    int
        `code`, or 2 where something could not be written.
    """
    failures = [show(printer, json)]
    for warning in warnings:
        tell(f"warning: {warning}")
    failures += lost
    if json is not None and record is not None:
        pieces = record()
        if json == "-":
            failures.append(put(sys.stdout, pieces))
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
    return LOST if told else code
