"""Say which cells are wrong, and which option would cure them: one line that names columns and rows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.marks import Marks, doubts, reads_somehow, ways_to_read, what_else
from sparsecv_mio.errors import BadInput

MISSING_MARKS = frozenset({"na", "n/a", "<na>", "nan", "null", "none", "?", "."})  # lower case, as exports write them
SHOWN_COLUMNS = 8
STAND_INS = (99.0, 999.0, 9999.0, 99999.0, 999999.0)  # that some write where nothing is known, below zero too


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
        if isinstance(self.value, str) and not self.missing and (kind := what_else(self.value)):
            return f"{kind}, or drop the column"
        if self.few(rows):
            many = self.count > 1
            return f"{self.count:,} of {rows:,} cells {'are text: mend them' if many else 'is text: mend it'}"
        if self.missing and (self.value is None or isinstance(self.value, str)):
            return "fill the cell, or remove the row or the column"
        if isinstance(self.value, str):
            return "encode it as numbers or drop the column"
        return "replace it by a finite number or remove the row"

    def remedy_of_new(self, many: int = 1) -> str:
        """Say what to do in new rows, where so many cells of the column are alike."""
        if isinstance(self.value, str) and not self.missing:
            return what_else(self.value) or "give numbers"
        return "fill the cell, or leave the row out" if many == 1 else "fill them, or leave these rows out"

    def option(self, target: str, rows: int = 0) -> str:
        """Return the keyword that cures the column of so many rows; empty where none does."""
        if self.missing:
            return 'na="drop"' if self.column == target else 'na="drop" or na="mean"'
        if not isinstance(self.value, str) or what_else(self.value):
            return ""
        return "" if self.few(rows) else 'encode="onehot"'


@dataclass
class Faults:
    """The bad cells of a table of `rows`: of every column the first that is empty, and the first that is no number.

    `subjects`: the column that names subjects of several rows each, if there is one. `marks`: by column, what its cells
    show of how numbers are written. `settled`: whether these are new rows of a model, which needs all of its columns
    and has no options of how cells are treated.
    """

    target: str
    found: dict[tuple[str, bool], Fault] = field(default_factory=dict)
    rows: int = 0
    marks: Mapping[str, Marks] = field(default_factory=dict)
    settled: bool = False
    subjects: str = ""

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
        empty = is_missing(value)
        if isinstance(value, str) and not empty and column in self.marks:
            self.marks[column].text(value)
        if (column, empty) in self.found:
            self.found[column, empty].count += 1
        else:
            self.found[column, empty] = Fault(column, row, value, line)

    def raise_if_any(self) -> None:
        """Raise `BadInput` that names every bad column, and the keyword that would cure it."""
        faults = sorted(self.found.values(), key=lambda one: one.row)
        if not faults:
            return
        if len(faults) == 1:
            raise BadInput(f"column {faults[0].words()}: {self._alone(faults[0])}")
        parts = [f"{one.words()} ({self._cells(one)})" for one in faults[:SHOWN_COLUMNS]]
        more, columns = len(faults) - len(parts), len({one.column for one in faults})
        raise BadInput(
            f"{columns} column{'s have' if columns > 1 else ' has'} cells that are no numbers: "
            f"{', '.join(parts)}{f', and {more} more' if more > 0 else ''}"
        )

    def _alone(self, one: Fault) -> str:
        written = self._written(one)
        if written:
            return written if "say which" in written else f"read it with {written}"
        if self.settled:
            return one.remedy_of_new()
        option = one.option(self.target, self.rows)
        remedy = self._held_out(one) or one.remedy(self.rows)
        marks = self.marks.get(one.column)
        if marks is not None and marks.against and isinstance(one.value, str) and reads_somehow(one.value):
            remedy = f"no marks read both it and {marks.against[:20]!r}: write all alike, or drop the column"
        if one.column == self.target:
            remedy = remedy.removesuffix(", or drop the column").removesuffix(" or drop the column")
        return remedy + (f"; or read it with {option}" if option else "")

    def _cells(self, one: Fault) -> str:
        cells = f"{one.count:,} cell{'s' if one.count > 1 else ''}"
        if self.settled:
            return f"{cells}; {self._written(one) or one.remedy_of_new(one.count)}"
        option = self._written(one) or self._held_out(one) or one.option(self.target, self.rows)
        if option:
            return f"{cells}; {option}"
        if isinstance(one.value, str) and not one.missing and (kind := what_else(one.value)):
            return f"{cells}; {kind}{', or drop it' if one.column != self.target else ''}"
        return f"{cells}; mend the file" if one.column == self.target else f"{cells}; mend them, or drop it"

    def _held_out(self, one: Fault) -> str:
        """Return what to do with the name of a subject."""
        if one.column != self.subjects or one.missing or not isinstance(one.value, str):
            return ""
        spec = json.dumps(f"groups:{one.column}", ensure_ascii=False)
        return f"several rows each, so give folds={spec}, which holds them out together"

    def _written(self, one: Fault) -> str:
        """Return the keywords with which the text of a column is numbers; both, where there are two readings."""
        marks = self.marks.get(one.column)
        if marks is None or not marks.ways or not isinstance(one.value, str) or one.missing:
            return ""
        ways = ways_to_read(self.marks.values())
        if len(ways) > 1:
            found = doubts(self.marks)
            return found.get(one.column, next(iter(found.values())))
        return ways[0].given(marks.way) if ways else ""


def left_out(*names: str) -> str:
    """Return the keyword that leaves columns out.

    Examples
    --------
    >>> left_out("a", "b")
    'drop=["a", "b"]'
    """
    return f"drop={json.dumps(names, ensure_ascii=False)}"


def stand_in(numbers: FloatArray) -> float | None:
    """Return the number of nines, -999 for one, that lies farther from all others than these do from each other.

    Of 99, which is a number like others more often, three times as far.

    Parameters
    ----------
    numbers : (n,) array
        Finite.

    Examples
    --------
    >>> stand_in(np.array([3.0, 5.0, -999.0, 4.0])), stand_in(np.array([3.0, 99.0, 50.0, 12.0]))
    (-999.0, None)
    """
    for value in (numbers.min(), numbers.max()) if numbers.size else ():
        if abs(value) in STAND_INS:
            others = numbers[numbers != value]
            width = float(np.ptp(others)) if others.size > 2 else 0.0
            if np.abs(others - value).min(initial=np.inf) > (3.0 if abs(value) < 100.0 else 1.0) * width > 0.0:
                return float(value)
    return None


def stand_in_notes(X: FloatArray, y: FloatArray, names: Sequence[str], target: str) -> tuple[str, ...]:
    """Return a sentence for every column that holds such a number.

    Parameters
    ----------
    X : (n, p) array
    y : (n,) array
    names : sequence of p str
    target : str
    """
    ends = np.abs([X.min(axis=0), X.max(axis=0)])
    places = np.flatnonzero(np.isin(ends, STAND_INS).any(axis=0)).tolist()
    found = {names[j]: stand_in(X[:, j]) for j in places} | {target: stand_in(y)}
    return tuple(
        f"column {name!r} holds {value:g}, far from all its other values: if it stands for nothing, empty these cells"
        for name, value in found.items()
        if value is not None
    )


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
