"""Say which cells are wrong, and which option would cure them: one line that names columns and rows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput

MISSING_MARKS = frozenset({"na", "n/a", "<na>", "nan", "null", "none", "?", "."})  # lower case, as exports write them
SHOWN_COLUMNS = 8
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


def is_missing(value: object) -> bool:
    """Whether a cell is empty or holds a mark that stands for nothing, NaN among them.

    Examples
    --------
    >>> is_missing(" "), is_missing("n/a"), is_missing(float("nan")), is_missing("none left")
    (True, True, True, False)
    """
    if isinstance(value, str):
        text = value.strip().lower()
        return not text or text in MISSING_MARKS
    return value is None or (isinstance(value, float) and math.isnan(value))


def bad_cell(column: str, row: int, value: object, line: int | None = None) -> BadInput:
    """Return the error for one cell.

    Parameters
    ----------
    column : str
    row : int
        1-based, the header not counted.
    value : object
        What the cell holds; None where it is empty.
    line : int, optional
        Its line in a text file.
    """
    fault = Fault(column, row, value, line)
    return BadInput(f"column {fault.words()}: {fault.remedy()}")


@dataclass
class Fault:
    """The first bad cell of a column, and how many there are: of its `row`, from 1 on, and its `line` in the file."""

    column: str
    row: int
    value: object
    line: int | None = None
    count: int = 1

    @property
    def missing(self) -> bool:
        """Whether nothing is there."""
        return is_missing(self.value)

    def words(self) -> str:
        """Say which cell, and what it holds."""
        where = f"row {self.row}" if self.line is None else f"row {self.row} (line {self.line})"
        value = self.value
        if value is None or (isinstance(value, str) and not value.strip()):
            return f"{self.column!r} is empty in {where}"
        if isinstance(value, str) and self.missing:
            return f"{self.column!r} has a missing value, {value.strip()!r}, in {where}"
        if isinstance(value, str):
            return f"{self.column!r} holds text {value if len(value) <= 30 else value[:27] + '...'!r} in {where}"
        return f"{self.column!r} holds {value} in {where}"

    def few(self, rows: int) -> bool:
        """Whether these are words among numbers: less than half of so many rows."""
        return isinstance(self.value, str) and not self.missing and 2 * self.count < rows

    def remedy(self, rows: int = 0) -> str:
        """Say what to do, by hand; of so many rows."""
        if self.few(rows):
            many = self.count > 1
            return f"{self.count:,} of {rows:,} cells {'are text: mend them' if many else 'is text: mend it'}"
        if self.missing and (self.value is None or isinstance(self.value, str)):
            return "fill the cell, or remove the row or the column"
        if isinstance(self.value, str):
            return "encode it as numbers or drop the column"
        return "replace it by a finite number or remove the row"

    def option(self, target: str, rows: int = 0) -> str:
        """Return the option that cures the column of so many rows; empty where none does."""
        if self.missing:
            return "--na drop" if self.column == target else "--na drop or --na mean"
        if not isinstance(self.value, str):
            return ""
        if DECIMAL_COMMA.fullmatch(self.value.strip()):
            return "--decimal ,"
        return "" if self.few(rows) else "--encode onehot"


@dataclass
class Faults:
    """The bad cells of a table of `rows`: of every column the first that is empty, and the first that is no number."""

    target: str
    found: dict[tuple[str, bool], Fault] = field(default_factory=dict)
    rows: int = 0

    def add(self, column: str, row: int, value: object, line: int | None = None) -> None:
        """Note a bad cell.

        Parameters
        ----------
        column : str
        row : int
            1-based, the header not counted.
        value : object
            What the cell holds; None where it is empty.
        line : int, optional
            Its line in a text file.
        """
        key = (column, is_missing(value))
        if key in self.found:
            self.found[key].count += 1
        else:
            self.found[key] = Fault(column, row, value, line)

    def raise_if_any(self) -> None:
        """Raise `BadInput` that names every bad column, and the option that would cure it."""
        faults = sorted(self.found.values(), key=lambda one: one.row)
        if not faults:
            return
        if len(faults) == 1:
            option = faults[0].option(self.target, self.rows)
            cure = f"; or read it with {option}" if option else ""
            raise BadInput(f"column {faults[0].words()}: {faults[0].remedy(self.rows)}{cure}")
        parts = [f"{one.words()} ({self._cells(one)})" for one in faults[:SHOWN_COLUMNS]]
        more = len(faults) - len(parts)
        raise BadInput(
            f"{len({one.column for one in faults})} columns have cells that are no numbers: "
            f"{', '.join(parts)}{f', and {more} more' if more > 0 else ''}"
        )

    def _cells(self, one: Fault) -> str:
        cells = f"{one.count:,} cell{'s' if one.count > 1 else ''}"
        option = one.option(self.target, self.rows)
        if not option:
            return f"{cells}; mend the file" if one.column == self.target else f"{cells}; mend them, or --drop it"
        return f"{cells}; {option}"


def check_finite(X: FloatArray, y: FloatArray, names: Sequence[str], target: str) -> None:
    """Raise `BadInput` at the first row that holds NaN or infinity; O(np) time, one chunk of memory.

    Parameters
    ----------
    X : (n, p) array
    y : (n,) array
    names : sequence of p str
    target : str
    """
    step = max(1, (1 << 20) // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block, response = X[start : start + step], y[start : start + step]
        good_rows = np.isfinite(block).all(axis=1) & np.isfinite(response)
        if not good_rows.all():
            i = int(np.argmin(good_rows))
            bad = np.flatnonzero(~np.isfinite(block[i]))
            if bad.size:
                raise bad_cell(names[int(bad[0])], start + i + 1, float(block[i, bad[0]]))
            raise bad_cell(target, start + i + 1, float(response[i]))
