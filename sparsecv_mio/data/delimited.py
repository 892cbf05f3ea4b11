"""Text tables cell by cell in plain Python: the header, and the cell to blame where Arrow refuses the file."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from sparsecv_mio.data.cells import bad_cell
from sparsecv_mio.data.select import Selection
from sparsecv_mio.errors import BadInput

LONGEST_LINE = 1 << 28


def read_header(path: Path, delimiter: str) -> tuple[list[str], int]:
    """Return the column names and the number of lines that they take; `BadInput` for what is no header."""
    with _rows(path, delimiter) as rows:
        line, cells = next(rows, (0, []))
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise BadInput(f"file {str(path)!r} is empty: give one header line and one line per row")
    if len(names) == 1:
        for other, word in ((";", "semicolons"), ("\t", "tabs"), (",", "commas")):
            if other != delimiter and other in names[0]:
                suffix = "commas (.csv) or tabs (.tsv)"
                raise BadInput(f"file {str(path)!r} seems to be separated by {word}: save it with {suffix}")
    if all(_is_number(name) for name in names) and not all(name.isdigit() for name in names):
        raise BadInput(f"file {str(path)!r} has numbers where its column names belong: add a header line")
    return names, line


def _is_number(text: str) -> bool:
    try:
        parse_number(text)
    except ValueError:
        return False
    return True


def parse_number(text: str) -> float:
    """Read a decimal number; ValueError for text, also for the spellings that only Python knows (1_000)."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def blame(path: Path, delimiter: str, chosen: Selection) -> None:
    """Raise `BadInput` at the first line or cell that is wrong; return where none is.

    Parameters
    ----------
    path : Path
        A UTF-8 text table with one header line.
    delimiter : str
    chosen : Selection
        The columns that are read; the others may hold anything.

    Raises
    ------
    BadInput
        The message names line, column and row.
    """
    count, width = 0, len(chosen.header)
    with _rows(path, delimiter) as rows:
        next(rows, None)
        for line, cells in rows:
            count += 1
            if len(cells) != width:
                raise BadInput(
                    f"file {str(path)!r} has {len(cells)} cells in line {line} but its header names {width} columns: "
                    "make every line as long as the header"
                )
            for j in chosen.numeric:
                blame_cell(cells[j], chosen.header[j], count, line)
    if count == 0:
        raise BadInput(f"file {str(path)!r} has a header but no rows: give one line per row")


def blame_cell(text: str, column: str, row: int, line: int) -> None:
    """Raise `BadInput` for a cell that is no finite number.

    Parameters
    ----------
    text : str
    column : str
    row : int
        1-based, the header not counted.
    line : int
        Its line in the file.
    """
    try:
        value = parse_number(text)
    except ValueError:
        raise bad_cell(column, row, text, line) from None
    if not math.isfinite(value):
        raise bad_cell(column, row, value, line)


@contextmanager
def _rows(path: Path, delimiter: str) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Open a table as (line number of the row's end, cells), blank lines left out."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(_lines(handle, path), delimiter=delimiter)
            yield ((reader.line_num, row) for row in reader if row)
    except UnicodeDecodeError as error:
        raise BadInput(f"file {str(path)!r} is not UTF-8 text: save it as UTF-8") from error
    except csv.Error as error:
        raise BadInput(f"file {str(path)!r} is not a readable table: {error}") from error


def _lines(handle: TextIO, path: Path) -> Iterator[str]:
    """Return the lines of a file; one that never ends is no table, and must not fill the memory."""
    while line := handle.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise BadInput(f"file {str(path)!r} has a line of more than {LONGEST_LINE:,} characters: it is no table")
        yield line
