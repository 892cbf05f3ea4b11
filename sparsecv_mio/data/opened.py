"""Text tables as bytes that any parser takes: unpacked, in UTF-8, without comments, blanks between cells as tabs."""

from __future__ import annotations

import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sparsecv_mio.data.reading import Reading
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import check_unpacked

LONGEST_LINE = 1 << 28
BUFFER = 1 << 20
PACKED = (".gz", ".zip")
BLANKS = re.compile(r'"(?:[^"]|"")*"|[ \t]+')


def kind_of(path: Path) -> str:
    """Return the suffix that says what a file holds: of a packed one that of what is packed.

    Raises
    ------
    BadInput
        A ZIP archive does not hold a single file.

    Examples
    --------
    >>> kind_of(Path("a.CSV")), kind_of(Path("a.csv.gz"))
    ('.csv', '.csv')
    """
    suffix = path.suffix.lower()
    if suffix == ".zip":
        return Path(_member(path)).suffix.lower()
    return Path(path.stem).suffix.lower() if suffix == ".gz" else suffix


def _member(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as store:
            inside = [one.filename for one in store.infolist() if not one.is_dir()]
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise BadInput(f"file {str(path)!r} is no ZIP archive: {error}") from error
    files = [name for name in inside if not name.startswith("__MACOSX/")]
    if len(files) != 1:
        raise BadInput(f"file {str(path)!r} holds {len(files)} files: pack the table alone")
    return files[0]


@contextmanager
def opened(path: Path, how: Reading) -> Iterator[IO[bytes]]:
    """Open a text table for reading.

    Parameters
    ----------
    path : Path
        Plain, or packed by gzip or ZIP.
    how : Reading
        Its encoding, comments and separator.

    Yields
    ------
    binary file
        UTF-8 text, a line for every line of the file; where cells are separated by blanks, they are by tabs.

    Raises
    ------
    BadInput
        The file cannot be unpacked, is not text in that encoding, has a line without an end, or unpacks to more than
        memory holds.
    """
    try:
        with _unpacked(path) as handle:
            yield io.BufferedReader(_Rewritten(handle, how, path)) if how.rewrites else handle
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise BadInput(f"file {str(path)!r} cannot be unpacked: {error}") from error


@contextmanager
def _unpacked(path: Path) -> Iterator[IO[bytes]]:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        with gzip.open(path, "rb") as packed:
            yield io.BufferedReader(_Counted(packed, path), BUFFER)
    elif suffix == ".zip":
        member = _member(path)
        with zipfile.ZipFile(path) as store, store.open(member) as inner:
            check_unpacked(path, store.getinfo(member).file_size)
            yield inner
    else:
        with path.open("rb") as handle:
            yield handle


class _Counted(io.RawIOBase):
    """What a packed file unpacks to, as long as that is no more than memory holds."""

    def __init__(self, handle: gzip.GzipFile, path: Path) -> None:
        self.handle, self.path, self.count = handle, path, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        piece = self.handle.read(len(buffer))
        buffer[: len(piece)] = piece
        self.count += len(piece)
        check_unpacked(self.path, self.count)
        return len(piece)


class _Rewritten(io.RawIOBase):
    """The lines of a file, rewritten one by one."""

    def __init__(self, handle: IO[bytes], how: Reading, path: Path) -> None:
        encoding = "utf-8-sig" if how.encoding.lower().replace("_", "-") in ("utf-8", "utf8") else how.encoding
        self.text = io.TextIOWrapper(handle, encoding=encoding, newline="")
        self.how, self.path = how, path
        self.rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self.rest:
            line = self._next()
            if not line:
                return 0
            self.rest = self._rewritten(line).encode("utf-8", "surrogatepass")
        size = min(len(buffer), len(self.rest))
        buffer[:size], self.rest = self.rest[:size], self.rest[size:]
        return size

    def _next(self) -> str:
        try:
            line = self.text.readline(LONGEST_LINE)
        except UnicodeError as error:
            encoding = self.how.encoding
            raise BadInput(f"file {str(self.path)!r} is not text in {encoding}: try another encoding") from error
        if len(line) == LONGEST_LINE:
            raise endless(self.path)
        return line

    def _rewritten(self, line: str) -> str:
        mark = self.how.comment
        if mark is not None and line.lstrip().startswith(mark):
            return line[len(line.rstrip("\r\n")) :]  # an empty line: the numbers of the others stay
        if self.how.sep == " ":
            end = line[len(line.rstrip("\r\n")) :]
            return BLANKS.sub(lambda found: found[0] if found[0][0] == '"' else "\t", line.strip()) + end
        return line


def endless(path: Path) -> BadInput:
    """Return the error for a line that never ends: such a file is no table, and must not fill the memory."""
    return BadInput(f"file {str(path)!r} has a line of more than {LONGEST_LINE:,} characters: it is no table")
