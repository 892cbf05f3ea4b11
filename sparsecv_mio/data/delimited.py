"""Text tables cell by cell in plain Python: the header, and the cells to blame where Arrow refuses the file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from sparsecv_mio.data.cells import Faults, bad_cell
from sparsecv_mio.data.marks import Marks, parse_number, reads
from sparsecv_mio.data.opened import LONGEST_LINE, endless, opened
from sparsecv_mio.data.reading import STRICT, Reading
from sparsecv_mio.data.select import Selection
from sparsecv_mio.errors import BadInput

MOST_LOOKED = 1_000_000  # cells of a table in which subjects are looked for
MOST_CELLS = 20_000_000  # that are looked at, after the first bad one, for more
MARKS: dict[str, tuple[str, str]] = {  # what else may separate: in words, and as an option
    ";": ("semicolons", "semicolon"),
    "\t": ("tabs", "tab"),
    "|": ("bars", "pipe"),
    ",": ("commas", "comma"),
    " ": ("blanks", "space"),
}


@dataclass(frozen=True)
class TextTable:
    """A text table: its file, the character between its cells, and how it is read."""

    path: Path
    delimiter: str
    how: Reading = STRICT

    @classmethod
    def of(cls, path: Path, kind: str, how: Reading = STRICT) -> TextTable:
        """Return the table of a file.

        Parameters
        ----------
        path : Path
        kind : str
            `.csv` say, which has a separator of its own.
        how : Reading
        """
        usual = "," if kind == ".csv" else "\t"
        return cls(path, "\t" if how.sep == " " else how.sep or usual, how)


def read_header(table: TextTable) -> tuple[list[str], int]:
    """Return the column names and the number of lines that they take; `BadInput` for what is no header."""
    path, delimiter, how = table.path, table.delimiter, table.how
    with _rows(table) as rows:
        line, cells = next(rows, (0, []))
    names = [cell.strip() for cell in cells]
    if not any(names):
        raise BadInput(f"file {str(path)!r} is empty: give one header line and one line per row")
    if how.comment is None and names[0][0:1] in ("#", "%"):
        mark = names[0][0]
        raise BadInput(f'file {str(path)!r} begins with {mark!r}: give comment="{mark}" to leave such lines out')
    if len(names) == 1:
        for other in MARKS:
            if other != delimiter and other in names[0]:
                raise _separated_by(other, table)
    if not how.header:
        return [f"x{j}" for j in range(len(names))], 0
    if all(reads(name, how.way) for name in names) and not all(name.isdigit() for name in names):
        begins = "has numbers where its column names belong"
        raise BadInput(f"file {str(path)!r} {begins}: add a header line, or give header=False")
    return names, line


def _separated_by(mark: str, table: TextTable) -> BadInput:
    word, option = MARKS[mark]
    return BadInput(f'file {str(table.path)!r} seems to be separated by {word}: give sep="{option}"')


def blame(
    table: TextTable,
    chosen: Selection,
    cells: bool = True,
    settled: bool = False,
    subjects: Callable[[], str] | None = None,
) -> None:
    """Raise `BadInput` at the first line that is too short or long, or for all columns with bad cells.

    Parameters
    ----------
    table : TextTable
    chosen : Selection
        The columns that are read; the others may hold anything.
    cells : bool
        Whether cells must be numbers; else the lines alone are looked at.
    settled : bool
        Whether these are new rows of a model.
    subjects : callable, optional
        Returns the column that names subjects of several rows each; asked where the table is not large.

    Raises
    ------
    BadInput
        The message names line, column and row, and the option that would cure a column.
    """
    count, width, looked = 0, len(chosen.header), 0
    numeric = [(j, Marks(table.how.way)) for j in chosen.numeric]
    faults = Faults(chosen.goal, marks={chosen.header[j]: marks for j, marks in numeric}, settled=settled)
    with _rows(table) as rows:
        if table.how.header:
            next(rows, None)
        for line, row in rows:
            count += 1
            if len(row) != width:
                for mark in ";\t|" if len(row) == 1 else "":  # commas may stand in the header's names
                    if row[0].count(mark) >= width:
                        raise _separated_by(mark, table)
                first = "its header names" if table.how.header else "its first line has"
                raise BadInput(
                    f"file {str(table.path)!r} has {len(row)} cells in line {line} but {first} {width} columns: "
                    "make every line as long"
                )
            for j, marks in numeric if cells else ():
                try:
                    value = parse_number(row[j], *table.how.way)
                except ValueError:
                    faults.add(chosen.header[j], count, row[j], line)
                    continue
                marks.number(row[j])
                if not math.isfinite(value):
                    faults.add(chosen.header[j], count, value, line)
            looked += len(chosen.numeric) if faults.found else 0
            if looked > MOST_CELLS:
                break
    faults.rows = count
    if subjects is not None and faults.found and not settled and count * width <= MOST_LOOKED:
        faults.subjects = subjects()
    faults.raise_if_any()
    if count == 0:
        raise BadInput(f"file {str(table.path)!r} has a header but no rows: give one line per row")


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


def first_cells(table: TextTable) -> list[str]:
    """Return the cells of the first row below the header; none where there is no such row."""
    with _rows(table) as rows:
        if table.how.header:
            next(rows, None)
        return next(rows, (0, list[str]()))[1]


@contextmanager
def _rows(table: TextTable) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Open a table as (line number of the row's end, cells), blank lines left out."""
    path = table.path
    try:
        with (
            opened(path, table.how) as packed,
            io.TextIOWrapper(packed, encoding="utf-8-sig", newline="") as handle,
        ):
            reader = csv.reader(_lines(handle, path), delimiter=table.delimiter)
            yield ((reader.line_num, row) for row in reader if row)
    except UnicodeDecodeError as error:
        raise BadInput(f'file {str(path)!r} is not UTF-8 text: give encoding="latin-1", say') from error
    except csv.Error as error:
        raise BadInput(f"file {str(path)!r} is not a readable table: {error}") from error


def _lines(handle: TextIO, path: Path) -> Iterator[str]:
    while line := handle.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise endless(path)
        yield line
