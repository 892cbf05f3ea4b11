"""Reading of regular files, and writing of files that are always complete.

A file is written in a temporary folder next to its target and then renamed, so the target always has either the whole
old content or the whole new content. If the target is a symbolic link, the file that it points to is replaced. Pipes,
devices, sockets and folders are never replaced; text may be written to a pipe or a device if the caller allows it.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sparsecv_mio.errors import BadInput, SparseCVError

if TYPE_CHECKING:
    import pandas as pd

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

Place = str | os.PathLike[str]
TEMPORARY = ".sparsecv-"  # begin of the names of folders that files are written in
LEFT_BEHIND = 3600.0  # seconds after which nobody writes there any more

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def reason(error: OSError | ValueError) -> str:
    """Why the system refused, in its own words."""
    return str(getattr(error, "strerror", None) or error).splitlines()[0]


def special(path: Place) -> str | None:
    """Say what stands at a path when it is no regular file (`a folder`, `a pipe`, ...); None for a file or nothing.

    Raises
    ------
    OSError, ValueError
        The path cannot be looked at: a name of more than 255 bytes, a NUL in it, a circle of links.

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
    """Refuse what is no regular file, or link to one.

    Parameters
    ----------
    what : str, optional
        Its name in messages.
    most : int, optional
        Bytes it may have.

    Raises
    ------
    SparseCVError
        Of the type `error`.
    """
    try:
        kind, size = special(path), os.stat(path).st_size
    except (OSError, ValueError) as refused:
        raise error(f"cannot read {what} {str(path)!r}: {reason(refused)}") from None
    if kind is not None:
        raise error(f"cannot read {what} {str(path)!r}: it is {kind}, give a regular file")
    if most is not None and size > most:
        raise error(f"cannot read {what} {str(path)!r}: its {size:,} bytes are more than the {most:,} it may have")


def all_memory() -> int:
    """Bytes of memory of this machine; where that is not told, what a 64-bit one can address."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return sys.maxsize


def check_unpacked(path: Place, size: int, error: type[SparseCVError] = BadInput) -> None:
    """Refuse a packed file that holds more than the memory of this machine: a few kilobytes may unpack to terabytes.

    Parameters
    ----------
    size : int
        Bytes once it is unpacked, or as many as have been so far.

    Raises
    ------
    SparseCVError
        Of the type `error`.
    """
    if size > all_memory():
        raise error(f"file {str(path)!r} unpacks to more than the {all_memory():,} bytes of memory of this machine")


def check_numbers(path: Place, rows: int, columns: int) -> None:
    """Refuse a file of more numbers than the memory of this machine takes: a few bytes may stand for many rows.

    Parameters
    ----------
    rows, columns : int
        Of the array of floats that is to be made of it.

    Raises
    ------
    BadInput
    """
    if 8 * rows * columns > all_memory():
        raise BadInput(
            f"file {str(path)!r} holds {rows:,} rows of {columns:,} columns, which do not fit in the {all_memory():,} "
            "bytes of memory of this machine: keep fewer columns or rows"
        )


def check_writable(path: Place, option: str, through: bool = False) -> None:
    """Refuse a place that cannot be written, before the work.

    Parameters
    ----------
    option : str
        Who asked for it, in messages.
    through : bool, optional
        Whether a pipe or a device will do.

    Raises
    ------
    BadInput
        With the reason.
    """
    try:
        kind = special(path)
        place = Path(os.path.realpath(path))
        folder = place.parent.is_dir()
    except (OSError, ValueError) as refused:
        raise BadInput(f"{option}: {path} cannot be written: {reason(refused)}") from None
    if kind == "a folder":
        raise BadInput(f"{option}: {path} is a folder, name a file in it")
    if kind is not None:
        if not through:
            raise BadInput(f"{option}: {path} is {kind}, give a regular file or a new name")
        return
    if not folder:
        raise BadInput(f"{option}: folder {Path(path).parent} does not exist")
    if _is_standard_stream(path):
        raise BadInput(f"{option}: {path} is where standard output or standard error goes, name another file")
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise BadInput(f"{option}: {path} cannot be written: permission denied")


def _is_standard_stream(path: Place) -> bool:
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None and os.path.samestat(os.stat(path), os.fstat(stream.fileno())):
                return True
        except (OSError, ValueError):
            continue
    return False


@contextmanager
def replacing(path: Place, what: str = "file") -> Iterator[Path]:
    """Yield a temporary path; the file written there replaces `path` when the block ends without an error.

    Other files that the block writes beside the temporary path (the names of a model's columns, say) go beside `path`.

    Parameters
    ----------
    path : path
        Links are followed.
    what : str
        Its name in messages.

    Raises
    ------
    BadInput
        It cannot be written, or is no regular file.
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


def sweep_temporary(folder: Place) -> int:
    """Remove what writes that were killed left in a folder an hour ago or longer; return how many there were.

    Notes
    -----
    Younger ones may belong to another process that is about to write there.
    """
    swept = 0
    with suppress(OSError):
        for folder_left in Path(folder).glob(f"{TEMPORARY}*"):
            name = re.fullmatch(rf"{re.escape(TEMPORARY)}[0-9a-f]{{16}}", folder_left.name)
            if (
                name
                and folder_left.is_dir()
                and not folder_left.is_symlink()
                and time.time() - folder_left.stat().st_mtime > LEFT_BEHIND
            ):
                shutil.rmtree(folder_left, ignore_errors=True)
                swept += 1
    return swept


def _free(path: Place) -> Path:
    kind = special(path)
    if kind is not None:
        raise OSError(0, f"it is {kind}, not a regular file")
    return Path(os.path.realpath(path))


def _move_into_place(made: Path, place: Path) -> None:
    """Force a new file to the disk, and give it the old one's permissions and name."""
    with open(made, "r+b") as stream:  # Windows flushes only what may be written
        os.fsync(stream.fileno())
    if place.exists():
        made.chmod(stat.S_IMODE(place.stat().st_mode))
    os.replace(made, place)


def write_bytes(path: Place, payload: Iterable[bytes], what: str = "file", through: bool = False) -> None:
    """Write a file that is never half-written.

    Parameters
    ----------
    what : str, optional
        Its name in messages.
    through : bool, optional
        Write to a pipe or a device as it is; else these are refused.

    Raises
    ------
    BadInput
        It cannot be written; an old file there is unchanged.
    """
    try:
        kind = special(path) if through else None
    except (OSError, ValueError):
        kind = None
    if kind not in (None, "a folder"):
        _write_through(path, payload, what)
        return
    with replacing(path, what) as temporary, open(temporary, "xb") as stream:
        stream.writelines(payload)


def _write_through(path: Place, payload: Iterable[bytes], what: str) -> None:
    try:
        with open(path, "wb") as stream:
            stream.writelines(payload)
    except BrokenPipeError:
        pass  # the reader has what it wanted
    except OSError as refused:
        raise BadInput(f"cannot write {what} {path}: {reason(refused)}") from None


def write_text(path: Place, pieces: Iterable[str], what: str = "file", through: bool = False) -> None:
    """Write UTF-8 text by `write_bytes`; half a surrogate pair in a name is written as JSON writes it.

    Parameters
    ----------
    what : str, optional
        Its name in messages.
    through : bool, optional
        Write to a pipe or a device as it is; else these are refused.
    """
    write_bytes(path, (piece.encode("utf-8", "backslashreplace") for piece in pieces), what, through)


def argument(path: str) -> str:
    """Return a path as commands take it: one that begins with a dash is no option.

    Examples
    --------
    >>> argument("-a.csv"), argument("b.csv")
    ('./-a.csv', 'b.csv')
    """
    return f"./{path}" if path.startswith("-") else path


class _Returned:
    """What `csv.writer` writes to, so that it returns its lines."""

    def write(self, text: str) -> str:
        return text


def csv_lines(rows: Iterable[Iterable[object]], mark: str = ",") -> Iterator[str]:
    r"""Yield the lines of a table, numbers in full.

    Parameters
    ----------
    rows : iterable of iterable
        The header is the first.
    mark : str
        Between cells.

    Examples
    --------
    >>> list(csv_lines([["a", "b,c"], [1, 0.1]]))
    ['a,"b,c"\n', '1,0.1\n']
    """
    return map(csv.writer(_Returned(), delimiter=mark, lineterminator="\n").writerow, rows)


def inert(text: str) -> str:
    """Return text of a cell that no spreadsheet takes for a formula: an apostrophe stands before what begins like one.

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


def with_inert_words(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose words, names of columns among them, no spreadsheet takes for formulas."""
    safe = frame.copy()
    for name in safe:
        if safe[name].dtype.kind not in "biufM":
            safe[name] = safe[name].map(lambda cell: inert(cell) if isinstance(cell, str) else cell)
    return safe.rename(columns=inert)


class JsonLines:
    """A file of JSON lines, each flushed, so that a killed run leaves what it wrote; of one run at a time.

    Parameters
    ----------
    path : path
        A regular file, or a pipe or device that is written to as it is.
    what : str
        What it is, for messages.

    Attributes
    ----------
    failure : SparseCVError or None
        Why the file ends early (a full disk, say): it costs the file, never the run.

    Raises
    ------
    BadInput
        The file cannot be opened, or another run is writing it.
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
            raise self._refused(error) from None

    def _take(self) -> None:
        """Keep the file from other runs as long as it is open, and empty it."""
        if fcntl is not None:
            try:
                fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._stream.close()
                words = f"{self.what}: another run is writing {self.path}: give each run a file of its own"
                raise BadInput(words) from None
            except OSError:  # a file system without locks: what is written stays whole lines all the same
                pass
        self._stream.truncate(0)

    def write(self, entries: Mapping[str, Any]) -> None:
        """Write a line; nothing any more once one could not be written."""
        if self.failure is not None:
            return
        try:
            self._stream.write(json.dumps(entries) + "\n")
            self._stream.flush()
        except (OSError, ValueError) as error:  # a ValueError of a file that was closed
            self.failure = self._refused(error)

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # what is left in the buffer has been reported
            self._stream.close()

    def _refused(self, error: OSError | ValueError) -> BadInput:
        return BadInput(f"cannot write {self.what} {self.path}: {reason(error)}")


def null_if_infinite(values: Iterable[float]) -> list[float | None]:
    """Numbers for JSON: null for infinity."""
    return [value if math.isfinite(value) else None for value in values]
