"""Functions that read regular files, and functions that write a file completely or not at all.

A file is first written in a temporary folder next to the requested path, and is then moved to this path. The path
therefore always has either the complete old content or the complete new content. If the path is a symbolic link, the
file to which the link points is replaced. Pipes, devices, sockets and folders are never replaced. If the caller allows
it, text is written into a pipe or device.
"""

from __future__ import annotations

import csv
import json
import math
import os
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sparsecv_mio.errors import BadInput, SparseCVError

if TYPE_CHECKING:
    import pandas as pd

try:
    import fcntl
except ImportError:  # not available on Windows
    fcntl = None  # type: ignore[assignment]

Place = str | os.PathLike[str]
TEMPORARY = ".sparsecv-"  # prefix of the temporary folders in which files are written
LEFT_BEHIND = 3600.0  # seconds after which a temporary folder is abandoned

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def reason(error: OSError | ValueError) -> str:
    """Return the reason that the system gives for an error."""
    return str(getattr(error, "strerror", None) or error).splitlines()[0]


def special(path: Place) -> str | None:
    """Return the kind of a path that is not a regular file (`a folder`, `a pipe`, ...), else None.

    None is also returned if nothing exists at the path.

    Raises
    ------
    OSError, ValueError
        If the path cannot be examined: a name of more than 255 bytes, a NUL character, or a cycle of links.

    Examples
    --------
    >>> special("/"), special(os.devnull), special("nowhere")
    ('a folder', 'a device', None)
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return next((word for test, word in KINDS if test(mode)), None)


def check_readable(
    path: Place, what: str = "file", error: type[SparseCVError] = BadInput, most: int | None = None
) -> None:
    """Check that a path is a regular file or a link to one, and that its size is allowed.

    Parameters
    ----------
    path : path
        Path of the file.
    what : str, optional
        Name of the file in messages.
    error : type, optional
        Type of the error to raise.
    most : int, optional
        Maximum size in bytes.

    Raises
    ------
    SparseCVError
        An `error`, if the path cannot be read or the file is too large.
    """
    try:
        kind, size = special(path), os.stat(path).st_size
    except (OSError, ValueError) as refused:
        raise error(f"cannot read {what} {str(path)!r}: {reason(refused)}") from None
    if kind is not None:
        raise error(f"cannot read {what} {str(path)!r}: it is {kind}; give a regular file")
    if most is not None and size > most:
        raise error(
            f"cannot read {what} {str(path)!r}: its {size:,} bytes exceed the limit of {most:,} bytes; give a smaller "
            "file"
        )


def all_memory() -> int:
    """Return the memory of this machine in bytes; if unknown, the address space of a 64-bit machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return sys.maxsize


def check_unpacked_size(path: Place, size: int, error: type[SparseCVError] = BadInput) -> None:
    """Check that a compressed file does not unpack to more than the memory of this machine.

    A file of a few kilobytes may unpack to terabytes.

    Parameters
    ----------
    path : path
        Path of the file.
    size : int
        Unpacked size in bytes, or the number of bytes unpacked so far.
    error : type, optional
        Type of the error to raise.

    Raises
    ------
    SparseCVError
        An `error`, if the size is larger than the memory.
    """
    if size > all_memory():
        raise error(
            f"file {str(path)!r} unpacks to more than the {all_memory():,} bytes of memory of this machine; give a "
            "smaller file"
        )


def check_numbers(path: Place, rows: int, columns: int) -> None:
    """Check that the numbers of a file fit into the memory of this machine.

    A file of a few bytes may describe many rows.

    Parameters
    ----------
    path : path
        Path of the file.
    rows, columns : int
        Shape of the array of floats that the file requires.

    Raises
    ------
    BadInput
    """
    if 8 * rows * columns > all_memory():
        raise BadInput(
            f"file {str(path)!r} holds {rows:,} rows of {columns:,} columns, which do not fit in the {all_memory():,} "
            "bytes of memory of this machine; keep fewer columns or rows"
        )


def check_writable(path: Place, option: str, through: bool = False) -> None:
    """Check before the work that a path can be written.

    Parameters
    ----------
    path : path
        Path to be written.
    option : str
        Option that names the path, for messages.
    through : bool, optional
        True if the path may be a pipe or a device.

    Raises
    ------
    BadInput
        If the path cannot be written; the message gives the reason.
    """
    try:
        kind = special(path)
        place = Path(os.path.realpath(path))
        folder = place.parent.is_dir()
    except (OSError, ValueError) as refused:
        raise BadInput(f"{option}: {path} cannot be written: {reason(refused)}; name another file") from None
    if kind == "a folder":
        raise BadInput(f"{option}: {path} is a folder; name a file in it")
    if kind is not None:
        if not through:
            raise BadInput(f"{option}: {path} is {kind}; give a regular file or a new name")
        return
    if not folder:
        raise BadInput(
            f"{option}: folder {Path(path).parent} does not exist; make it, or name a file in another folder"
        )
    if _is_standard_stream(path):
        raise BadInput(f"{option}: {path} is also standard output or standard error; name another file")
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise BadInput(f"{option}: {path} cannot be written: permission denied; name another file")


def _is_standard_stream(path: Place) -> bool:
    for stream in (sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError):
            if stream is not None and os.path.samestat(os.stat(path), os.fstat(stream.fileno())):
                return True
    return False


@contextmanager
def replacing(path: Place, what: str = "file") -> Iterator[Path]:
    """Yield a temporary path; the file written there replaces `path` when the block ends without an error.

    Other files that the block writes next to the temporary path (such as the column names of a model) are moved next to
    `path`.

    Parameters
    ----------
    path : path
        Target path; links are followed.
    what : str
        Name of the file in messages.

    Raises
    ------
    BadInput
        If the path cannot be written, or is not a regular file.
    """
    try:
        place = _free(path)
    except (OSError, ValueError) as refused:
        raise BadInput(f"cannot write {what} {path}: {reason(refused)}") from None
    folder = place.parent / f"{TEMPORARY}{secrets.token_hex(8)}"
    try:
        folder.mkdir()
        try:
            yield folder / place.name
            for made in folder.iterdir():
                _move_into_place(made, _free(place.parent / made.name))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as refused:
        raise BadInput(f"cannot write {what} {path}: {reason(refused)}") from None


def remove_stale_folders(folder: Place) -> int:
    """Remove temporary folders that killed processes left at least an hour ago; return their number.

    Notes
    -----
    Younger folders may belong to a process that is still writing.
    """
    swept = 0
    with suppress(OSError):
        for stale in Path(folder).glob(TEMPORARY + 16 * "[0-9a-f]"):
            is_old = time.time() - stale.lstat().st_mtime > LEFT_BEHIND
            if is_old and stale.is_dir() and not stale.is_symlink():
                shutil.rmtree(stale, ignore_errors=True)
                swept += 1
    return swept


def _free(path: Place) -> Path:
    kind = special(path)
    if kind is not None:
        raise OSError(0, f"it is {kind}, not a regular file")
    return Path(os.path.realpath(path))


def _move_into_place(made: Path, place: Path) -> None:
    """Flush a new file to the disk and give it the permissions and the name of the old one."""
    with open(made, "r+b") as stream:  # Windows flushes only files that are open for writing
        os.fsync(stream.fileno())
    if place.exists():
        made.chmod(stat.S_IMODE(place.stat().st_mode))
    os.replace(made, place)


def write_bytes(path: Place, payload: Iterable[bytes], what: str = "file", through: bool = False) -> None:
    """Write a file completely or not at all.

    Parameters
    ----------
    path : path
        Target path.
    payload : iterable of bytes
        Content of the file.
    what : str, optional
        Name of the file in messages.
    through : bool, optional
        If True, write directly to a pipe or a device; otherwise a pipe or a device raises an error.

    Raises
    ------
    BadInput
        If the file cannot be written; an old file is then unchanged.
    """
    kind = None
    with suppress(OSError, ValueError):
        kind = special(path) if through else None
    if kind in (None, "a folder"):
        with replacing(path, what) as temporary, open(temporary, "xb") as stream:
            stream.writelines(payload)
        return
    try:
        with suppress(BrokenPipeError), open(path, "wb") as stream:  # the reader may have closed the pipe
            stream.writelines(payload)
    except OSError as refused:
        raise BadInput(f"cannot write {what} {path}: {reason(refused)}") from None


def write_text(path: Place, pieces: Iterable[str], what: str = "file", through: bool = False) -> None:
    """Write UTF-8 text by `write_bytes`; an unpaired surrogate is escaped as in JSON.

    Parameters
    ----------
    path : path
        Target path.
    pieces : iterable of str
        Content of the file.
    what : str, optional
        Name of the file in messages.
    through : bool, optional
        If True, write directly to a pipe or a device; otherwise a pipe or a device raises an error.
    """
    write_bytes(path, (piece.encode("utf-8", "backslashreplace") for piece in pieces), what, through)


def argument(path: str) -> str:
    """Return a path as a command-line argument: `./` is put before a leading dash.

    Examples
    --------
    >>> argument("-a.csv"), argument("b.csv")
    ('./-a.csv', 'b.csv')
    """
    return f"./{path}" if path.startswith("-") else path


class _Returned:
    """A file object for `csv.writer` whose `write` returns the line."""

    def write(self, text: str) -> str:
        return text


def csv_lines(rows: Iterable[Iterable[object]], mark: str = ",") -> Iterator[str]:
    r"""Yield the lines of a CSV table, with numbers in full precision.

    Parameters
    ----------
    rows : iterable of iterable
        Rows of cells; the first row is the header.
    mark : str
        Separator of the cells.

    Examples
    --------
    >>> list(csv_lines([["a", "b,c"], [1, 0.1]]))
    ['a,"b,c"\n', '1,0.1\n']
    """
    return map(csv.writer(_Returned(), delimiter=mark, lineterminator="\n").writerow, rows)


def inert(text: str) -> str:
    """Return text that a spreadsheet does not run as a formula: an apostrophe is put before a formula sign.

    Examples
    --------
    >>> inert("=1+1"), inert("x1"), inert("-1.5")
    ("'=1+1", 'x1', '-1.5')
    """
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    with suppress(ValueError):
        float(text)
        return text
    return f"'{text}"


def as_written(text: str) -> str:
    """Return the text from which `inert` made another one.

    Examples
    --------
    >>> as_written("'=1+1"), as_written("x1"), as_written("'a'")
    ('=1+1', 'x1', "'a'")
    """
    return text[1:] if inert(text[1:]) == text else text


def with_inert_words(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no spreadsheet takes text values or column names for formulas."""
    return map_words(frame, inert)


def map_words(frame: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """Return a table with changed text values and column names."""
    changed = frame.copy()
    for name in changed:
        if changed[name].dtype.kind not in "biufM":
            changed[name] = changed[name].map(lambda cell: change(cell) if isinstance(cell, str) else cell)
    return changed.rename(columns=change)


class JsonLines:
    """A file of JSON lines, flushed after each line, so that a killed run leaves all lines it wrote.

    Only one run can write the file at a time.

    Parameters
    ----------
    path : path
        A regular file, or a pipe or device, which is written directly.
    what : str
        Name of the file in messages.

    Attributes
    ----------
    failure : SparseCVError or None
        Reason why the file ends early, such as a full disk; the run goes on.

    Raises
    ------
    BadInput
        If the file cannot be opened, or another run is writing it.
    """

    def __init__(self, path: Place, what: str) -> None:
        check_writable(path, what, through=True)
        self.path, self.what = path, what
        self.failure: SparseCVError | None = None
        try:
            self._stream: IO[str] = open(path, "a", encoding="utf-8")  # noqa: SIM115
            if special(path) is None:
                self._take()
        except OSError as error:
            raise self._write_error(error) from None

    def _take(self) -> None:
        """Lock the file against other runs while it is open, and empty it."""
        if fcntl is not None:
            try:
                fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._stream.close()
                words = f"{self.what}: another run is writing {self.path}; give each run a separate file"
                raise BadInput(words) from None
            except OSError:  # on a file system without locks the file still consists of whole lines
                pass
        self._stream.truncate(0)

    def write(self, entries: Mapping[str, Any]) -> None:
        """Write a line, unless an earlier line could not be written."""
        if self.failure is not None:
            return
        try:
            self._stream.write(json.dumps(entries) + "\n")
            self._stream.flush()
        except (OSError, ValueError) as error:  # a closed file raises a ValueError
            self.failure = self._write_error(error)

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # the failure of the buffered line has been reported
            self._stream.close()

    def _write_error(self, error: OSError | ValueError) -> BadInput:
        return BadInput(f"cannot write {self.what} {self.path}: {reason(error)}")


def null_if_infinite(values: Iterable[float]) -> list[float | None]:
    """Return numbers for JSON, with None for infinity."""
    return [value if math.isfinite(value) else None for value in values]
