"""Treatment of missing and text values: imputation, encoding, or an error that names the option to use.

Columns with empty cells or text values become numeric features. The values that this conversion needs, such as the
means for imputation and the levels of a text column, are stored in `Applied`, so that new rows are transformed in the
same way. These values, like the scales of the columns, are computed from all rows, including the rows that a fold holds
out; the target is not used.
"""

from __future__ import annotations

import csv
import io
import json
import math
import numbers
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.data import reading_options
from sparsecv_mio.data.dates import (
    DAYS,
    PARTS,
    date_features,
    duration_in_days,
    example_of_form,
    form_of_dates,
    parse_duration,
    read_moment,
)
from sparsecv_mio.digits import MOST_NAMED, abbreviate_list, plural, several
from sparsecv_mio.errors import BadInput, did_you_mean, need_extra
from sparsecv_mio.words import Encode, Missing

if TYPE_CHECKING:
    import pandas as pd


SUM_DIGITS = 1e-4  # relative difference of a rounded total from the sum of its column
MISSING_MARKS = frozenset({"na", "n/a", "<na>", "nan", "null", "none", "?", "."})  # lower case, as in exports
NINES = frozenset({99.0, 999.0, 9999.0, 99999.0, 999999.0})  # missing-value codes, also with a minus sign
CODES = frozenset({
    *NINES, *(-nines for nines in NINES),
    -888.0, -88.0, -9.0, -8.0, -7.0, -1.0, 9.0, 88.0, 888.0, 9.9, 99.9, 999.9, 9.99, 99.99, 999.99,
})  # fmt: skip


def is_missing(value: object, marks: Collection[str] = MISSING_MARKS) -> bool:
    """Return True if a cell is empty or holds a missing-value code, including NaN.

    Parameters
    ----------
    marks : collection of str
        Missing-value codes in lower case.

    Examples
    --------
    >>> is_missing(" "), is_missing("n/a"), is_missing(float("nan")), is_missing("none left")
    (True, True, True, False)
    """
    if isinstance(value, str):
        text = value.strip().lower()
        return not text or text in marks
    return value is None or (isinstance(value, float) and math.isnan(value))


def usual_codes(how: reading_options.Reading) -> frozenset[str]:
    """Return the missing-value codes that need not be listed, in lower case."""
    return MISSING_MARKS if how.keep_default_na else frozenset()


def may_be_codes(texts: Collection[str], cells: int) -> bool:
    """Return True if the texts in some cells of a numeric column may be missing-value codes.

    They are words or marks without a digit, or one text in several cells.

    Examples
    --------
    >>> may_be_codes({"n.d.", "-"}, 2), may_be_codes({"1o5"}, 1), may_be_codes({"12%"}, 2)
    (True, False, False)
    """
    if any("," in text or '"' in text or reading_options.describe_unreadable_text(text) for text in texts):
        return False
    words = not any(character.isdigit() for text in texts for character in text)
    return 0 < len(texts) <= (MOST_NAMED if words else 1) and (words or cells > 1)


def bad_cell(column: str, row: int, value: object, line: int | None = None) -> BadInput:
    """Return the error for one invalid cell.

    Parameters
    ----------
    row : int
        Row number from 1, without the header.
    value : object
        Content of the cell; None if it is empty.
    line : int, optional
        Line of the cell in a text file.
    """
    fault = Fault(column, row, value, line, missing=is_missing(value))
    if fault.missing:
        advice = "fill the cell, or remove the row or the column"
    elif not isinstance(value, str):
        advice = "replace it by a finite number or remove the row"
    else:
        kind = reading_options.describe_unreadable_text(value)
        advice = f"{kind}, or drop the column" if kind else "encode it as numbers or drop the column"
    return BadInput(f"column {fault.words()}: {advice}")


@dataclass
class Fault:
    """The first invalid cell of a column (`row`, from 1, and `line` in the file) and the number of such cells.

    `levels` are the distinct texts of these cells, up to one more than a feature may have. `missing` states that the
    cells are empty.
    """

    column: str
    row: int
    value: object
    line: int | None = None
    count: int = 1
    levels: dict[str, None] = field(default_factory=dict)
    missing: bool = False

    def add(self, value: object) -> None:
        """Record another invalid cell of the column."""
        if isinstance(value, str) and len(self.levels) <= MOST_LEVELS:
            self.levels[value] = None

    def words(self) -> str:
        """Return a description of the cell and its content."""
        where = f"row {self.row}" if self.line is None else f"row {self.row} (line {self.line})"
        value = self.value
        if value is None or (isinstance(value, str) and not value.strip()):
            return f"{self.column!r} is empty in {where}"
        if isinstance(value, str) and self.missing:
            return f"{self.column!r} has the missing-value code {value.strip()!r} in {where}"
        if isinstance(value, str):
            return f"{self.column!r} holds text {value if len(value) <= 30 else value[:27] + '...'!r} in {where}"
        return f"{self.column!r} holds {value} in {where}"


MORE_CLASSES = (
    "a target of more than two classes is not supported; give numbers, keep the rows of two classes for "
    'loss="logistic", or join classes until two are left'
)


@dataclass
class Faults:
    """The invalid cells of a table: for each column the first empty cell and the first cell that is not a number.

    `way` is the number format in which the cells are read; `is_decimal_sure` states that other cells show its decimal
    mark to be one. `subjects` is the column that names subjects with several
    rows each, if there is one. `settled` is True for new rows of a model, which need all columns of the model and have
    no options for cells. `classes_by` is the keyword that makes a target of two text values two classes. `lines`
    returns the lines of a file in which rows end.
    """

    target: str
    way: reading_options.Way
    rows: int
    settled: bool = False
    lines: Callable[[Collection[int]], Mapping[int, int]] | None = None
    subjects: str = ""
    classes_by: str = 'loss="logistic"'
    is_decimal_sure: bool = False
    found: dict[tuple[str, bool], Fault] = field(default_factory=dict)

    def add(self, column: str, row: int, value: object, empty: bool = False) -> None:
        """Record an invalid cell: its row, from 1, its content, and whether it is empty or a missing-value code."""
        if (column, empty) in self.found:
            self.found[column, empty].count += 1
        else:
            self.found[column, empty] = Fault(column, row, value, missing=empty)
        self.found[column, empty].add(value)

    def raise_if_any(self) -> None:
        """Raise `BadInput` that names every invalid column and the keyword that imputes or encodes it."""
        faults = sorted(self.found.values(), key=lambda one: one.row)
        if not faults:
            return
        if self.lines is not None:
            at = self.lines({fault.row for fault in faults})
            faults = [replace(fault, line=at[fault.row]) for fault in faults]
        if len(faults) == 1:
            raise BadInput(f"column {faults[0].words()}: {self._advice(faults[0])}")
        columns = list(dict.fromkeys(fault.column for fault in faults))
        named, others = columns[:MOST_NAMED], columns[MOST_NAMED:]
        more = f", and {several(len(others), 'more column')}" if others else ""
        parts = [
            f"{fault.words()} ({several(fault.count, 'cell')}; {self._advice(fault)})"
            for fault in faults if fault.column in named
        ]  # fmt: skip
        advice = (
            "" if self.settled or self.lines is None else "; `sparsecv inspect` proposes options for the whole file"
        )
        raise BadInput(
            f"{len(columns)} column{'s have' if len(columns) > 1 else ' has'} cells that are not numbers: "
            f"{', '.join(parts)}{more}{advice}"
        )

    def _advice(self, one: Fault) -> str:
        """Return what to do about the invalid cells of a column."""
        if one.missing:
            return self._advise_on_missing(one)
        if not isinstance(one.value, str):
            return "replace it by a finite number, or leave the row out"
        ways = reading_options.possible_formats(one.levels, self.way, self.is_decimal_sure)
        if len(ways) == 2:
            text = next(text for text in one.levels if any(map(str.isdigit, text)))
            return f"{text.strip()!r} is {reading_options.describe_readings(text, self.way, ways)}"
        if ways:
            return f"give {ways[0].changed_keywords(self.way)}"
        kind = reading_options.describe_unreadable_text(one.value)
        if self.settled:
            return kind.partition(" with dates=")[0] or "give numbers"
        drop = "" if one.column == self.target else ", or drop the column"
        if kind:
            return f"{kind}{drop}"
        if 2 * one.count < self.rows:
            cells = "cells are text: correct them" if one.count > 1 else "cells is text: correct it"
            codes = self._keywords_of_codes(one)
            return f"{one.count:,} of {self.rows:,} {cells}{drop}{f'; or give {codes}' if codes else ''}"
        return self._advise_on_text(one, drop)

    def _advise_on_missing(self, one: Fault) -> str:
        """Return what to do about the empty cells of a column."""
        if self.settled:
            return "fill the cell, or leave the row out"
        is_target = one.column == self.target
        if one.count == self.rows and not is_target:
            return f"it is empty in every row; give {drop_keyword(one.column)}"
        as_word = "" if one.value != "none" else ", or keep_default_na=False if it is a text value"
        return f'give na="drop"{"" if is_target else " or na=" + json.dumps("mean")}{as_word}'

    def _advise_on_text(self, one: Fault, drop: str) -> str:
        """Return what to do about a column of text."""
        is_target = one.column == self.target
        if is_target and len(one.levels) > 2:
            return MORE_CLASSES
        if one.column == self.subjects:
            spec = json.dumps(f"groups:{one.column}", ensure_ascii=False)
            return f"several rows for each value; give folds={spec} to hold them out together"
        names_rows = is_name_like(len(one.levels), one.count) and not is_target
        options = [drop_keyword(one.column)] if names_rows else []
        why = "nearly every row has a different value, so it names the rows and is not a feature; " if options else ""
        options += ['encode="onehot"'] if len(one.levels) <= MOST_LEVELS else []
        options += [f"{self.classes_by} for two classes"] if is_target and len(one.levels) == 2 else []
        return f"{why}give {' or '.join(options)}{'' if names_rows else drop}"

    def _keywords_of_codes(self, one: Fault) -> str:
        """Return the keywords that declare texts among numbers to be missing-value codes; empty if they are none."""
        if not may_be_codes(one.levels, one.count):
            return ""
        words = sorted(level.strip() for level in one.levels)
        doubtful = [word for word in words if word.lower() not in MISSING_MARKS and any(map(str.isalnum, word))]
        sure = f" if {doubtful[0]!r} marks a missing value" if doubtful else ""
        return f'na_values="{",".join(words)}" and na="drop"{sure}'


def drop_keyword(*names: str) -> str:
    """Return the keyword that drops columns.

    Examples
    --------
    >>> drop_keyword("a", "b")
    'drop=["a", "b"]'
    """
    return f"drop={json.dumps(names, ensure_ascii=False)}"


def has_decimals(column: FloatArray) -> bool:
    """Return True if a number shows, by other than three decimals, that its mark is the decimal mark."""
    fractions = np.abs(column[column != np.rint(column)])
    return bool(
        np.any(
            (fractions < 1.0)
            | (fractions >= 1000.0)
            | (np.abs(1000.0 * fractions - np.rint(1000.0 * fractions)) > 1e-6)
        )
    )


def find_code(numbers: FloatArray) -> float | None:
    """Return a number, such as -999 or 99.9, that may be a missing-value code, because all others are far from it.

    The distance must exceed the range of the other numbers; for 99, which occurs more often as a normal value, it must
    exceed three times the range. These numbers are only named, never read as missing without a request.

    Parameters
    ----------
    numbers : (n,) array
        Finite numbers.

    Examples
    --------
    >>> find_code(np.array([3.0, 5.0, -999.0, 4.0])), find_code(np.array([3.0, 99.0, 50.0, 12.0]))
    (-999.0, None)
    >>> find_code(np.array([1.0, 5.0, 9.0, 3.0])), find_code(np.array([-1.0, 0.0, 1.0, 1.0]))
    (9.0, None)
    """
    for value in (numbers.min(), numbers.max()) if numbers.size else ():
        if float(value) in CODES:
            others = numbers[numbers != value]
            width = float(np.ptp(others)) if others.size > 2 else 0.0
            least = width * (3.0 if abs(value) == 99.0 else 1.0)
            distance = float(np.abs(others - value).min(initial=np.inf))
            if width > 0.0 and (distance > least or (distance == least and 9.0 <= abs(value) < 99.0)):
                return float(value)
    return None


def stand_in_notes(X: FloatArray, y: FloatArray, names: Sequence[str], target: str) -> tuple[str, ...]:
    """Return a sentence for every column that contains such a number."""
    suspected = np.isin(np.array([X.min(axis=0), X.max(axis=0)]), tuple(CODES)).any(axis=0)
    columns = {names[j]: X[:, j] for j in np.flatnonzero(suspected).tolist()} | {target: y}
    return tuple(
        f"column {name!r} holds {value:g}, far from all its other values; if it is a missing-value code, "
        f"give --na-values {value:g} (na_values in Python)"
        for name, value in ((name, find_code(cells)) for name, cells in columns.items())
        if value is not None
    )


def check_finite(X: FloatArray, y: FloatArray, names: Sequence[str], target: str) -> None:
    """Raise `BadInput` at the first row with NaN or infinity; O(np) time, memory of one block."""
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


MOST_LEVELS = 50


def is_name_like(levels: int, cells: int) -> bool:
    """Return True if a text column has nearly one value for each row, so it names its rows and is not a feature."""
    return levels > MOST_LEVELS or levels >= max(3, cells)


@dataclass(frozen=True, eq=False)
class RawColumn:
    """The cells of a column: its numbers and its other cells.

    Attributes
    ----------
    name : str
        Name of the column.
    numbers : (n,) array
        Numbers; NaN if a cell is not a number.
    empty : (n,) bool array
        True for cells that are empty or hold a missing-value code.
    absent : object
        Content of the first such cell.
    others : dict of int to str
        Text by row, for cells that are neither numeric nor missing.
    marks : Marks
        Evidence of the number format in the text of the cells.
    usual_codes : mapping of str to int
        Usual missing-value codes in the column, as written, with their numbers of cells; codes that the reading options
        name are not included.
    """

    name: str
    numbers: FloatArray
    empty: BoolArray
    others: dict[int, str]
    marks: reading_options.Marks
    absent: object = None
    usual_codes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_cells(cls, name: str, cells: Sequence[Any], how: reading_options.Reading) -> RawColumn:
        """Return the column of cells that are numbers, text, or objects of a frame; O(n).

        Parameters
        ----------
        how : Reading
            Number format and missing-value codes.
        """
        spelled, way, (no_words, no_numbers) = dict[str, int](), how.way, how.absent
        numbers, empty, others = np.full(len(cells), np.nan), np.zeros(len(cells), dtype=bool), dict[int, str]()
        usual, nothing = usual_codes(how), Counter[str]()
        for row, cell in enumerate(cells):
            if isinstance(cell, str):
                text = cell.strip()
                if not text or (code := text.lower()) in usual:
                    empty[row] = True
                    if text and code not in no_words:
                        nothing[text] += 1
                    continue
                try:
                    number = reading_options.parse_number(text, *way)
                except ValueError:
                    number = math.nan
                if number == number:
                    numbers[row] = number
                    spelled.setdefault(text, row + 1)
                elif code in no_words:
                    empty[row] = True
                else:
                    others[row] = text
            elif cell is None or repr(cell) in ("<NA>", "NaT", "nan"):
                empty[row] = True
            elif isinstance(cell, Real | Decimal | np.bool_):
                numbers[row] = float(cell)
                empty[row] = bool(np.isnan(numbers[row]))
            elif isinstance(cell, timedelta):
                numbers[row] = duration_in_days(cell)
            else:
                others[row] = str(cell)
        if others and len(others) + np.sum(empty) == len(cells):
            with suppress(ValueError):  # if a cell is not a duration, all cells are text values
                numbers[list(others)] = list(map(parse_duration, others.values()))
                others = {}
        none = np.isin(numbers, list(no_numbers))
        numbers[none], empty[none] = np.nan, True
        absent = cells[int(np.argmax(empty))] if empty.any() else None
        marks = reading_options.Marks.from_texts(spelled, how.way)
        return cls(name, numbers, empty, others, marks, absent if isinstance(absent, str) else None, nothing)

    @property
    def kind(self) -> str:
        """Description of the first text that is not a text value, such as `22%`, with advice; may be empty."""
        return next((said for said in map(self._describe_text, dict.fromkeys(self.others.values())) if said), "")

    @property
    def is_words(self) -> bool:
        """True if at least half of the cells that are not missing hold text values."""
        words = len(self.others)
        if self.kind:
            words = sum(count for text, count in Counter(self.others.values()).items() if not self._describe_text(text))
        return 2 * words >= max(1, int(np.sum(~self.empty)))

    def _describe_text(self, text: str) -> str:
        """Describe a text that is not a text value; `<18` is a text value if no cell is a number."""
        beside = len(self.others) + int(self.empty.sum()) < len(self.numbers)
        return (
            reading_options.describe_unreadable_text(text)
            if beside or not reading_options.BOUND.fullmatch(text)
            else ""
        )

    def levels(self, order: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the declared order, or the text values of the column: no before yes, otherwise alphabetical."""
        if order:
            return order
        words = sorted({*self.others.values(), *(f"{value:g}" for value in set(self.numbers[~self._gaps()].tolist()))})
        plain = {word.lower() for word in words}
        pairs = reading_options.OPPOSITES if len(words) <= 2 else reading_options.YES_AND_NO
        return next((pair for pair in pairs if plain <= set(pair)), tuple(words)) if words else ()

    def describe_case_variants(self, levels: Sequence[str]) -> str:
        """Return a note on text values that differ only in upper and lower case; empty if there are none."""
        spelt: dict[str, set[str]] = {level: set() for level in levels}
        alike: dict[str, list[str]] = {}
        for word in set(self.others.values()):
            spelt.get(word if word in spelt else word.lower(), set()).add(word)
        for level in levels:
            alike.setdefault(level.lower(), []).append(level)
        said = [f"{' and '.join(map(repr, sorted(words)))} are one value" for words in spelt.values() if len(words) > 1]
        said += [
            f"{' and '.join(map(repr, words))} are {len(words)} values (they differ only in capital letters)"
            for words in alike.values()
            if len(words) > 1
        ]
        return abbreviate_list(said)

    def codes(self, levels: Sequence[str]) -> NDArray[np.int64]:
        """Return the index of every cell in the levels, -1 if it is missing; raise `BadInput` for other values."""
        codes, unknown = self._places(levels)
        if unknown:
            raise BadInput(_unknown_words(self.name, {row + 1: word for row, word in unknown.items()}, levels))
        return codes

    def unknown(self, levels: Sequence[str]) -> dict[int, str]:
        """Return the text values that are not levels, by row from 0."""
        return self._places(levels)[1]

    def _places(self, levels: Sequence[str]) -> tuple[NDArray[np.int64], dict[int, str]]:
        places, unknown = {word: k for k, word in enumerate(levels)}, dict[int, str]()
        codes = np.full(len(self.numbers), -1, dtype=np.int64)
        for row in np.flatnonzero(~self.empty).tolist():
            word = self.others.get(row, f"{self.numbers[row]:g}")
            codes[row] = places.get(word, places.get(word.lower(), -1))
            if codes[row] < 0:
                unknown[row] = word
        return codes, unknown

    def select_rows(self, rows: NDArray[np.intp]) -> RawColumn:
        """Return the column for some rows in ascending order."""
        place = {row: k for k, row in enumerate(rows.tolist())} if self.others else {}
        others = {place[row]: word for row, word in self.others.items() if row in place}
        return replace(self, numbers=self.numbers[rows], empty=self.empty[rows], others=others)

    def _gaps(self) -> BoolArray:
        gaps = self.empty.copy()
        gaps[list(self.others)] = True
        return gaps


@dataclass(frozen=True, eq=False)
class RawTable:
    """The unprocessed columns of a table: features, an optional target, and other columns as arrays by name.

    `lines` returns the lines of a file, from 1, in which rows end. `declared` has the levels of ordered categories,
    from the lowest to the highest.
    """

    features: list[RawColumn]
    target: RawColumn | None
    aux: dict[str, NDArray[Any]]
    rows: int
    lines: Callable[[Collection[int]], Mapping[int, int]] | None = None
    declared: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def marks(self) -> dict[str, reading_options.Marks]:
        """Evidence of the number format, by column."""
        return {column.name: column.marks for column in self.columns}

    @property
    def is_decimal_sure(self) -> bool:
        """True if a number shows that the decimal mark is one."""
        return any(column.marks.proof for column in self.columns)

    @property
    def columns(self) -> list[RawColumn]:
        """The features, followed by the target if there is one."""
        return [*self.features, *([self.target] if self.target else [])]


def raw_table(
    names: Iterable[str],
    goal: str,
    column: Callable[[str], RawColumn],
    aux: dict[str, NDArray[Any]],
    declared: Mapping[str, Sequence[Any]] | None = None,
) -> RawTable:
    """Return the unprocessed columns of a table.

    Parameters
    ----------
    names : iterable of str
        Names of the features.
    goal : str
        Name of the target; empty without a target.
    column : callable
        Function that returns a column by name.
    aux : dict of str to (n,) array
        Group, fold and weight columns.
    declared : mapping of str to sequence, optional
        Levels of ordered categories by column, from the lowest to the highest.
    """
    features = [column(name) for name in names]
    target = column(goal) if goal else None
    first = target or (features[0] if features else None)
    orders = {
        feature.name: tuple(str(word).strip() for word in declared[feature.name])
        for feature in features if declared and feature.name in declared and feature.others
    }  # fmt: skip
    return RawTable(features, target, aux, 0 if first is None else len(first.numbers), declared=orders)


class Made(NamedTuple):
    """The parts of a data set: features (n, p), target (n,), names, other columns, and the learned preprocessing.

    `holes`, (n, p), marks the cells that were missing and are imputed; None if there are none.
    """

    X: FloatArray
    y: FloatArray
    names: tuple[str, ...]
    target: str
    aux: Mapping[str, NDArray[Any]]
    reading: reading_options.Applied | None
    holes: BoolArray | None = None


def impute_and_encode(table: RawTable, how: reading_options.Reading, wanted: reading_options.Wanted) -> Made:
    """Return the features of a table after the imputation and encoding that the options request.

    Parameters
    ----------
    table : RawTable
        The unprocessed table.
    how : Reading
        The reading options.
    wanted : Wanted
        The selected columns; states also whether the target may hold two text values, and whether the number format is
        known.

    Returns
    -------
    Made
        The parts of the data set; `reading` has the learned preprocessing.

    Raises
    ------
    BadInput
        If a column has cells that the options do not allow, or ambiguous numbers; the message names every such column.
    """
    columns = tuple(column.name for column in table.features)
    table, date_forms = numbered_dates(table, how)
    how = how.add_declared_orders(table.declared)
    _check_orders(table, how)
    _check_cells(table, how, wanted)
    if not wanted.sure:
        reading_options.check_marks(table.marks, how.sep)
    doubts = [] if wanted.sure else list(filter(None, map(describe_codes, table.columns)))
    whole, table = _complete_rows(table, how)
    if table.rows == 0 and len(whole):
        raise BadInput(
            'no row is left, because every row has a missing value; use na="mean", or drop the columns with the most '
            "missing values"
        )
    means = _fills(table, how)
    filled = tuple(column.name for column in table.features if column.name in means and column.empty.any())
    repeated = {name for column in date_forms for name in list(date_features(column, how.dates))[1:]}
    marked = tuple(name for name in filled if name not in repeated) if how.na_indicator else ()
    orders = how.orders
    levels = {column.name: column.levels(orders.get(column.name, ())) for column in table.features if column.others}
    if table.target is not None and table.target.others:
        levels[table.target.name] = table.target.levels()
    unsaid = () if wanted.sure else reading_options.both_readings(table.marks)
    notes = (*_row_notes(whole, how), *doubts, *_cell_notes(table, how, means, levels), *unsaid)
    left_out = int(np.sum(~whole))
    learnt = reading_options.Applied(how, columns, means, levels, left_out, notes, marked, filled, date_forms)
    return _assemble_parts(table, learnt)


def numbered_dates(
    table: RawTable, how: reading_options.Reading, forms: Mapping[str, str] | None = None
) -> tuple[RawTable, dict[str, str]]:
    """Return a table with numeric columns instead of dates, and the date format of each date column.

    Parameters
    ----------
    table : RawTable
        Table with dates; dates of the target become days for every choice of date features.
    how : Reading
        Options with the numbers that dates become; none by default.
    forms : mapping of str to str, optional
        Date format of each column, if it is known from other rows.

    Raises
    ------
    BadInput
        If no column holds dates, a cell of a date column is not a date, or the order of day and month is ambiguous.
    """
    if not how.dates:
        return table, {}
    conversions = {
        column.name: form_of_dates(column.name, column.others.values(), how.dates) for column in table.columns
    } if forms is None else dict(forms)  # fmt: skip
    conversions = {name: form for name, form in conversions.items() if form}
    if not conversions:
        raise BadInput("dates: no column holds dates; write them as 2024-12-31, or leave the option out")

    def convert_dates(column: RawColumn, made: Mapping[str, str]) -> list[RawColumn]:
        return (
            _numbers_of_dates(column, conversions[column.name], made, how) if column.name in conversions else [column]
        )

    features = [
        made for column in table.features for made in convert_dates(column, date_features(column.name, how.dates))
    ]
    target = table.target and convert_dates(table.target, {table.target.name: DAYS})[0]
    return replace(table, features=features, target=target), conversions


def _numbers_of_dates(
    column: RawColumn, form: str, made: Mapping[str, str], how: reading_options.Reading
) -> list[RawColumn]:
    """Return the numeric columns of a date column, one for each requested part of the date."""
    rows = np.flatnonzero(~column.empty).tolist()
    moments = []
    for row in rows:
        cell = column.others.get(row, f"{column.numbers[row]:g}")
        try:
            moments.append(read_moment(cell, form))
        except ValueError:
            raise BadInput(
                f"column {column.name!r}, row {row + 1}: {cell[:30]!r} is not a date such as "
                f"{example_of_form(form)}; write all dates in one form, or leave the cell empty"
            ) from None
    features = []
    for name, feature in made.items():
        numbers = np.full(len(column.numbers), np.nan)
        numbers[rows] = [PARTS[feature](moment) for moment in moments]
        features.append(replace(column, name=name, numbers=numbers, others={}, marks=reading_options.Marks(how.way)))
    return features


KEPT = "(row)"  # auxiliary column with the input positions of the rows that are not dropped
NO_TARGET = "(no target)"  # auxiliary column that marks new rows without a target, if others have one


def read_alike(table: RawTable, learnt: reading_options.Applied) -> Made:
    """Return the features of new rows, with the preprocessing learned from other rows.

    If rows with missing cells were dropped there, such new rows are dropped as well.

    Parameters
    ----------
    table : RawTable
        The required columns. The target, if there is one, may have missing cells: it is zero there, and the column
        `NO_TARGET` marks these rows.
    learnt : Applied
        The learned preprocessing.

    Raises
    ------
    BadInput
        If there is an unknown text value, or a missing cell in a column without a learned fill value.
    """
    columns = tuple(column.name for column in table.features)
    table, _ = numbered_dates(table, learnt.how, learnt.date_forms)
    goal = table.target.name if table.target else ""
    faults = Faults(goal, learnt.how.way, table.rows, True, table.lines, is_decimal_sure=table.is_decimal_sure)
    whole = np.ones(table.rows, dtype=bool)
    if learnt.how.na is Missing.DROP:
        whole, table = _complete_rows(table, learnt.how, targets=False)
    numbers = (1 + np.flatnonzero(whole)).tolist()  # of the kept rows, in the file
    for column in table.features:
        words = column.name in learnt.levels
        if column.name not in learnt.means and not (words and reading_options.ABSENT in learnt.levels[column.name]):
            for row in np.flatnonzero(column.empty).tolist():
                faults.add(column.name, numbers[row], None, True)
        for row, word in list(column.others.items())[: 0 if words else 1]:
            faults.add(column.name, numbers[row], word)
    faults.raise_if_any()
    _check_words(table, learnt.levels, numbers)
    table = _with_marked_targets(table, learnt.levels, numbers)
    filled = _describe_imputation(table, learnt.how, learnt.means)
    notes = tuple(f"{cells} over the rows of the fit, in {names}" for cells, names in filled)
    return _assemble_parts(table, replace(learnt, columns=columns, left_out=int(np.sum(~whole)), notes=notes))


def _with_marked_targets(
    table: RawTable, levels: Mapping[str, tuple[str, ...]], numbers: Sequence[int]
) -> RawTable:  # fmt: skip
    """Return the table of new rows, without the target if it is empty, and with a column that marks its empty cells."""
    target = table.target
    if target is None or target.empty.all():
        return replace(table, target=None)
    if target.name not in levels:
        for row, word in target.others.items():
            raise bad_cell(target.name, numbers[row], word)
    if not target.empty.any():
        return table
    return replace(table, aux={**table.aux, NO_TARGET: target.empty})


def _check_words(table: RawTable, levels: Mapping[str, tuple[str, ...]], numbers: Sequence[int]) -> None:
    """Raise `BadInput` that names the text values of all features that are not levels; `numbers` are those of rows."""
    unknown = [(column, column.unknown(levels[column.name])) for column in table.features if column.name in levels]
    said = [
        _unknown_words(column.name, {numbers[row]: word for row, word in rows.items()}, levels[column.name])
        for column, rows in unknown if rows
    ]  # fmt: skip
    if said:
        more = f"; and {several(len(said) - MOST_NAMED, 'more column')}" if len(said) > MOST_NAMED else ""
        raise BadInput("; ".join(said[:MOST_NAMED]) + more)


def _unknown_words(column: str, rows: Mapping[int, str], levels: Sequence[str]) -> str:
    """Return a description of the text values of a column, by row from 1, that are not levels."""
    first: dict[str, int] = {}
    for row, word in rows.items():
        first.setdefault(word, row)
    words = abbreviate_list([f"{word!r} in row {row}" for word, row in first.items()])
    known_levels = [level for level in levels if level != reading_options.ABSENT]
    return f"column {column!r} holds {words}, not one of its values: {abbreviate_list(known_levels)}"


def _check_cells(table: RawTable, how: reading_options.Reading, wanted: reading_options.Wanted) -> None:
    """Raise `BadInput` that names every column with cells that are not allowed."""
    goal = table.target.name if table.target else ""
    faults = Faults(goal, how.way, table.rows, wanted.has_fixed_options, table.lines, classes_by=wanted.classes_by)
    faults.is_decimal_sure = table.is_decimal_sure
    for column in table.columns:
        if how.na is Missing.ERROR:
            for row in np.flatnonzero(column.empty).tolist():
                faults.add(column.name, row + 1, column.absent, True)
        allowed = how.column_encoding(column.name) is not Encode.ERROR or (column is table.target and wanted.two_words)
        wrong: dict[int, object] = {} if allowed and column.is_words else {**column.others}
        wrong |= {row: float(column.numbers[row]) for row in np.flatnonzero(np.isinf(column.numbers)).tolist()}
        for row in sorted(wrong):
            faults.add(column.name, row + 1, wrong[row])
    if faults.found:
        _check_rows(table, how, wanted)
        if table.target is not None and table.target.is_words and len(table.target.levels()) > 2:
            _check_column(table.target, how, True)  # no option of other columns helps with such a target
        faults.subjects = name_of_subjects(table)
    faults.raise_if_any()
    for column in table.columns:
        _check_column(column, how, column is table.target)


def rows_without_data(table: RawTable) -> dict[int, str]:
    """Return the rows of a file without data, such as a second header, units or totals, with their text.

    In such a row, more than half of the numeric columns are text or empty. The last row also counts if its only text is
    one without a digit in the first column.
    """
    columns = [column for column in table.columns if not column.is_words]
    texts = {
        row: text for column in reversed(columns) if 2 * len(column.others) < table.rows
        for row, text in column.others.items() if not reading_options.describe_unreadable_text(text)
    }  # fmt: skip
    if table.lines is None or len(texts) > MOST_NAMED:
        return {}

    def has_no_data(row: int) -> bool:
        empty = sum(row in column.others or bool(column.empty[row]) for column in columns)
        is_last = row == table.rows - 1
        is_total = is_last and row in columns[0].others and not re.search(r"\d", columns[0].others[row])
        return 2 * empty > len(columns) or is_total

    return {row: texts[row] for row in sorted(texts) if has_no_data(row)}


def rows_of_sums(table: RawTable) -> list[int]:
    """Return the last row of a file if each of its numbers is the sum of the column above it; otherwise no row.

    At least two of the sums must differ from 0.
    """
    last = table.rows - 1
    if table.lines is None or last < 2:
        return []
    numbers = [column.numbers for column in table.columns if not column.is_words and np.isfinite(column.numbers[last])]
    sums = [float(np.nansum(column[:last])) for column in numbers]
    are_sums = np.isclose([column[last] for column in numbers], sums, rtol=SUM_DIGITS, atol=0.0)
    return [last] if are_sums.all() and np.count_nonzero(sums) >= 2 else []


def skipped_lines(table: RawTable, how: reading_options.Reading, rows: Iterable[int]) -> str:
    """Return the line numbers to skip if the given rows, from 0, are skipped as well."""
    lines = {} if table.lines is None else table.lines({row + 1 for row in rows})
    return how.skipping(lines.values())


def _check_rows(table: RawTable, how: reading_options.Reading, wanted: reading_options.Wanted) -> None:
    """Raise `BadInput` that names rows without data, or a row of sums, and the keyword that skips them."""
    if wanted.has_fixed_options:
        return
    if rows := rows_without_data(table):
        named = abbreviate_list([f"{text[:30]!r} in row {row + 1}" for row, text in rows.items()])
        lines = plural(len(rows), "line")
        raise BadInput(
            f"{several(len(rows), 'row')} {'holds' if len(rows) == 1 else 'hold'} text where other rows have numbers "
            f'({named}): leave the {lines} out with skip_lines="{skipped_lines(table, how, rows)}", or correct the file'
        )
    if last := rows_of_sums(table):
        raise BadInput(
            f"row {last[0] + 1}, the last one, holds the sums of the other rows: leave the line out with "
            f'skip_lines="{skipped_lines(table, how, last)}", or correct the file'
        )


def _check_orders(table: RawTable, how: reading_options.Reading) -> None:
    """Raise `BadInput` for an order that does not fit its column, and for ordinal columns without an order."""
    columns, orders = {column.name: column for column in table.features}, how.orders
    for name, order in orders.items():
        if name not in columns:
            raise BadInput(f"order: {name!r} is not a feature{did_you_mean(name, columns)}; give a text column")
        if not columns[name].others:
            raise BadInput(f"order: column {name!r} has numbers, not text values; remove it from the option")
        if unknown := columns[name].unknown(order):
            row, word = next(iter(unknown.items()))
            raise BadInput(f"order: column {name!r}, row {row + 1}: {word!r} has no rank; add it to the order")
    levels = {column.name: column.levels() for column in table.features if column.others and column.is_words}
    without = [
        name for name, words in levels.items()
        if name not in orders and len(words) > 1 and words not in reading_options.OPPOSITES
    ]  # fmt: skip
    if without and how.encode is Encode.ORDINAL:
        names, words = abbreviate_list(list(map(repr, without))), abbreviate_list(levels[without[0]])
        ranks = json.dumps(f"{without[0]}=LOWEST<...<HIGHEST", ensure_ascii=False)
        raise BadInput(
            f"{plural(len(without), 'column')} {names}: the text values have no declared order ({words}); "
            f'give all of them as order={ranks}, or encode="onehot" and order only for columns to be ranked'
        )


def name_of_subjects(table: RawTable) -> str:
    """Return the name of the feature that identifies subjects with several rows, or an empty text."""
    subjects = find_subjects(table.features) if table.target is not None else None
    return "" if subjects is None else subjects.column


def _check_column(one: RawColumn, how: reading_options.Reading, goal: bool) -> None:
    if one.empty.all() and len(one.empty) and not goal:
        raise BadInput(f"column {one.name!r} is empty in every row: give {drop_keyword(one.name)}")
    if not one.others:
        return
    levels = one.levels()
    if goal and len(levels) != 2:
        words = several(len(levels), "text value") + (
            f" ({alike})" if (alike := one.describe_case_variants(levels)) else ""
        )
        more = "; or give keep_default_na=False if missing-value codes are text values" if one.usual_codes else ""
        advice = MORE_CLASSES if len(levels) > 2 else "give numbers, or two values for two classes"
        raise BadInput(f"target {one.name!r} has {words}; {advice}{more}")
    if len(levels) > MOST_LEVELS:
        words = f"holds {len(levels):,} different text values, more than {MOST_LEVELS}"
        spec = json.dumps(f"groups:{one.name}", ensure_ascii=False)
        subjects = f"; or folds={spec} if they are subjects with several rows each"
        advice = (
            f"give {drop_keyword(one.name)}, or join some of them{subjects * (2 * len(levels) <= len(one.numbers))}"
        )
        raise BadInput(f"column {one.name!r} {words}: {advice}")
    if how.column_encoding(one.name) is Encode.ORDINAL and how.na.uses_imputation and one.empty.any():
        raise BadInput(
            f'column {one.name!r} has text values and missing values, and text has no {how.na}; give na="drop"'
        )


def _complete_rows(table: RawTable, how: reading_options.Reading, targets: bool = True) -> tuple[BoolArray, RawTable]:
    """Return the mask of kept rows and the table of these rows; `targets` requires a target in each."""
    whole = np.ones(table.rows, dtype=bool)
    if targets and table.target is not None and how.na is not Missing.ERROR:
        whole &= ~table.target.empty
    if how.na is Missing.DROP:
        for feature in table.features:
            whole &= ~feature.empty
    if whole.all():
        return whole, table
    rows = np.flatnonzero(whole)
    aux = {name: column[rows] for name, column in table.aux.items()} | {KEPT: rows}
    target = None if table.target is None else table.target.select_rows(rows)
    return whole, RawTable([column.select_rows(rows) for column in table.features], target, aux, len(rows))


def fill_value(numbers: FloatArray, na: Missing) -> float:
    """Return the mean or the median of the numbers of a column, without its missing cells.

    Parameters
    ----------
    numbers : (m,) array
        Numbers of the column, NaN for missing cells; at least one number.
    na : Missing
        A rule that imputes.

    Examples
    --------
    >>> column = np.array([1.0, np.nan, 3.0, 11.0])
    >>> fill_value(column, Missing.MEAN), fill_value(column, Missing.MEDIAN)
    (5.0, 3.0)
    """
    return float(np.nanmean(numbers) if na is Missing.MEAN else np.nanmedian(numbers))


def _fills(table: RawTable, how: reading_options.Reading) -> dict[str, float]:
    """Return the fill values of all numeric columns, since new rows may have missing cells where these have none."""
    if not how.na.uses_imputation:
        return {}
    for column in table.features:
        if column.empty.all():
            raise BadInput(
                f"column {column.name!r} is empty in every row that has a target: give {drop_keyword(column.name)}"
            )
    return {column.name: fill_value(column.numbers, how.na) for column in table.features if not column.others}


def _row_notes(kept: BoolArray, how: reading_options.Reading) -> list[str]:
    lost = int(np.sum(~kept))
    if not lost:
        return []
    why = "with empty cells" if how.na is Missing.DROP else "without a target"
    return [f"{lost:,} of {len(kept):,} rows {why} dropped"]


def describe_codes(one: RawColumn) -> str:
    """Return a note on usual missing-value codes in a column of text values, which may be text values too."""
    counts = {code: count for code, count in one.usual_codes.items() if code.replace("/", "").isalpha()}
    if not (counts and one.others and one.is_words):
        return ""
    codes = [f"{code!r} in {several(count, 'cell')}" for code, count in counts.items()]
    return (
        f"column {one.name!r}: {abbreviate_list(codes)} counted as missing; if such a code is a text value, give "
        "--no-keep-default-na (keep_default_na in Python)"
    )


def absent_note(one: RawColumn) -> str:
    """Return a note on missing cells of a text column, if cells of numeric columns are imputed."""
    cells, level = int(one.empty.sum()), reading_options.indicator_name(one.name)
    own = "is a separate level" if cells == 1 else "are a separate level"
    return f"{several(cells, 'empty cell')} of {one.name!r} {own}, {level}"


HELD_OUT_TOO = ", held-out ones included"
OVER_ALL_ROWS = f"over all rows{HELD_OUT_TOO}"  # part of the note on imputed cells


def drop_fold_wording(notes: Iterable[str]) -> tuple[str, ...]:
    """Return notes with their wording for data without held-out rows.

    Examples
    --------
    >>> drop_fold_wording([f"filled with the mean {OVER_ALL_ROWS}, in 'age'"])
    ("filled with the mean over all rows, in 'age'",)
    """
    return tuple(note.replace(OVER_ALL_ROWS, OVER_ALL_ROWS.removesuffix(HELD_OUT_TOO)) for note in notes)


def _describe_imputation(
    table: RawTable, how: reading_options.Reading, means: Mapping[str, float]
) -> list[tuple[str, str]]:
    """Return the numbers of imputed cells with their fill values and columns; empty if no cell is imputed."""
    columns = [column for column in table.features if column.name in means and column.empty.any()]
    cells = several(sum(int(column.empty.sum()) for column in columns), "empty cell")
    names = abbreviate_list([repr(column.name) for column in columns])
    return [(f"{cells} imputed by the {how.na} of their column", names)] if columns else []


def _cell_notes(
    table: RawTable, how: reading_options.Reading, means: Mapping[str, float], levels: Mapping[str, tuple[str, ...]]
) -> list[str]:
    notes = [f"{cells} {OVER_ALL_ROWS}, in {names}" for cells, names in _describe_imputation(table, how, means)]
    own = [column for column in table.features if column.name in levels and column.empty.any()]
    notes += [absent_note(column) for column in own]
    alike = ((column.name, column.describe_case_variants(levels.get(column.name, ()))) for column in table.columns)
    notes += [f"column {name!r}: {said}" for name, said in alike if said]
    for name, words in levels.items():
        if table.target is not None and name == table.target.name:
            notes.append(f"target {name!r}: {words[0]!r} is the smaller value, {words[1]!r} the larger")
    return notes


def _assemble_parts(table: RawTable, learnt: reading_options.Applied) -> Made:
    """Return the parts of a data set: one array of numbers, imputed, with text values encoded."""
    made: list[tuple[str, FloatArray]] = []
    filled: dict[str, BoolArray] = {}
    levels = dict(learnt.levels)
    for feature in table.features:
        if feature.name not in levels:
            fill = learnt.means.get(feature.name, np.nan)
            made.append((feature.name, np.where(feature.empty, fill, feature.numbers)))
            if feature.name in learnt.marked:
                made.append((reading_options.indicator_name(feature.name), feature.empty.astype(float)))
            if feature.empty.any():
                filled[feature.name] = feature.empty
            continue
        if feature.empty.any() and reading_options.ABSENT not in levels[feature.name]:
            levels[feature.name] = (*levels[feature.name], reading_options.ABSENT)
        made += _encode_text_column(feature, levels[feature.name], learnt.how.column_encoding(feature.name))
    X = np.empty((table.rows, len(made)))
    for k, (_, column) in enumerate(made):
        X[:, k] = column
    y = np.zeros(table.rows)
    goal = table.target
    if goal is not None:
        y = goal.codes(levels[goal.name]).astype(float) if goal.name in levels else goal.numbers.copy()
        y[goal.empty] = 0.0
    names = tuple(name for name, _ in made)
    taken = set(names)
    if len(taken) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"a new column would have the name {twice!r} of another column; rename one of them")
    holes = np.zeros(X.shape, dtype=bool)
    for name, empty in filled.items():
        holes[:, names.index(name)] = empty
    of_cells = replace(learnt, levels=levels), holes if filled else None
    return Made(X, y, names, "" if goal is None else goal.name, table.aux, *of_cells)


def _encode_text_column(one: RawColumn, levels: Sequence[str], encode: Encode) -> list[tuple[str, FloatArray]]:
    """Return the numeric columns of a text column: one of ranks, or one of 0/1 for each level."""
    codes = one.codes([level for level in levels if level != reading_options.ABSENT])
    codes[codes < 0] = len(levels) - 1  # the last level is that of missing cells, if there are any
    names = reading_options.feature_names(one.name, levels, encode)
    if names == (one.name,):
        return [(one.name, codes.astype(float))]
    first = len(levels) - len(names)
    return [(name, (codes == first + k).astype(float)) for k, name in enumerate(names)]


FEW_ROWS = 10  # rows, below which a permutation of 1 to n may occur by chance
SURE_LEVELS = 8  # levels, from which a repeated column names subjects whatever its name
ID = re.compile(r"(?i:(^|.*[_. -])(id|ids|uid|pid|sid|index|idx|row|rownames|obs|case|nr))|.*[a-z]I[dD]|")
SUBJECT = re.compile(r"(?i).*(subject|subj|patient|person|participant|animal|mouse|rat|child|pupil|student|id)s?")
VISIT = re.compile(r"(?i).*(visit|time|week|day|month|year|wave|session|occasion|trial|period|round|age)s?([_. -]?\d*)")


@dataclass(frozen=True)
class Subjects:
    """Rows measured on the same subjects.

    Attributes
    ----------
    column, visit : str
        Columns that name the subject and number its rows; if `visit` is empty, the name of `column` identifies it.
    count : int
        Number of subjects.
    """

    column: str
    visit: str
    count: int

    @property
    def option(self) -> str:
        """Option of `solve` that holds out all rows of a subject together."""
        return f"--folds {quote_names([f'groups:{self.column}'])}"

    @property
    def note(self) -> str:
        """Note on the column."""
        why = f"distinguished by {self.visit!r}" if self.visit else "the name suggests subjects"
        return f"several rows for each value ({why}): {self.option} holds them out together"


def quote_names(names: Iterable[str]) -> str:
    """Return names as one word of a shell command, quoted as in a CSV file if they contain commas.

    Examples
    --------
    >>> print(quote_names(["a", "b,c", "d e"]))
    'a,"b,c",d e'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(list(names))
    return shlex.quote(text.getvalue())


def numbers_rows(one: RawColumn) -> str:
    """Return the reason why a column of integers only numbers the rows, or an empty text."""
    numbers = one.numbers
    n = len(numbers)
    if one.others or one.empty.any() or n < 4 or not np.all(numbers == np.rint(numbers)):
        return ""
    ranked = np.sort(numbers)
    first = ranked[0]
    if first in (0.0, 1.0) and np.array_equal(ranked, first + np.arange(n)):
        in_order = np.array_equal(ranked, numbers)
        if in_order or n >= FEW_ROWS:
            return "numbers the rows" if in_order else f"holds {first:g} to {ranked[-1]:g}, each once: numbers the rows"
    if one.name and ID.fullmatch(one.name) and np.all(np.diff(ranked) > 0.0):
        return "every row has a different value, and its name suggests that it only numbers the rows"
    return ""


def find_subjects(features: Sequence[RawColumn]) -> Subjects | None:
    """Return the column that names subjects with several rows each, or None.

    Another column numbers the rows of each subject, or its name identifies it and it holds text or the
    rows of each subject follow one another.
    """
    for column in features:
        if column.empty.any() or not _may_name(column):
            continue
        words = [column.others.get(row, value) for row, value in enumerate(column.numbers.tolist())]
        place = {word: k for k, word in enumerate(dict.fromkeys(words))}
        codes, k = np.array([place[word] for word in words]), len(place)
        if k < 3 or 2 * np.sum(np.bincount(codes) > 1) <= k:
            continue
        visit = _find_visit_column(column, codes, features)
        if visit is not None:
            return Subjects(column.name, visit.name, k)
        is_text_or_blocks = bool(column.others) or int(np.count_nonzero(np.diff(codes))) == k - 1
        if SUBJECT.fullmatch(column.name) and is_text_or_blocks and k >= SURE_LEVELS:
            return Subjects(column.name, "", k)
    return None


def _find_visit_column(subject: RawColumn, codes: IntArray, features: Sequence[RawColumn]) -> RawColumn | None:
    """Return the column that numbers the rows of each subject, or None."""
    rows = np.bincount(codes)
    for visit in features:
        told = SUBJECT.fullmatch(subject.name) or VISIT.fullmatch(visit.name) or len(rows) >= SURE_LEVELS
        if (
            visit is not subject
            and told
            and _may_number(visit)
            and _are_visit_numbers(visit.numbers, codes, int(rows.max()))
        ):
            return visit
    return None


def _may_name(one: RawColumn) -> bool:
    """Return True if a column may name subjects: it holds text, or integers under a name such as `subject`."""
    if one.others:
        return one.is_words
    return bool(SUBJECT.fullmatch(one.name)) and bool(np.all(one.numbers == np.rint(one.numbers)))


def _may_number(one: RawColumn) -> bool:
    plain = not one.others and not one.empty.any() and len(one.numbers) > 0
    return plain and bool(np.all(one.numbers == np.rint(one.numbers))) and len(set(one.numbers.tolist())) <= MOST_LEVELS


def _are_visit_numbers(numbers: FloatArray, codes: IntArray, most: int) -> bool:
    """Return True if the numbers differ within a subject and recur in other subjects."""
    pairs, values = set(zip(codes.tolist(), numbers.tolist(), strict=True)), set(numbers.tolist())
    return len(pairs) == len(numbers) and 2 <= len(values) <= 2 * most


def is_arrow_table(data: Any) -> bool:
    """Return True for a table of polars, DuckDB, Arrow or another library that exports Arrow, except pandas."""
    return hasattr(type(data), "__arrow_c_stream__") and not hasattr(data, "iloc")


def as_pandas(data: Any) -> Any:
    """Return a table of polars, DuckDB or Arrow as a pandas frame, and any other object unchanged.

    Durations in a frame become numbers of days.

    Raises
    ------
    BadInput
        If the object exports Arrow, but not as a table of rows and columns.
    """
    if not is_arrow_table(data):
        return _with_durations_in_days(data) if hasattr(data, "isetitem") else data
    import pyarrow as pa

    need_extra("frames", f"a table of {type(data).__module__.partition('.')[0]}")
    try:
        return _with_durations_in_days(pa.table(data).to_pandas())
    except (pa.ArrowException, TypeError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise BadInput(f"data: {type(data).__name__} is not a table that can be read ({why}); give a table") from error


def _with_durations_in_days(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with durations converted to numbers of days."""
    places = [j for j, kind in enumerate(frame.dtypes) if kind.kind == "m"]
    frame = frame.copy(deep=False) if places else frame
    for j in places:
        cells = frame.iloc[:, j]
        days = [duration_in_days(cell) if there else np.nan for cell, there in zip(cells, cells.notna(), strict=True)]
        frame.isetitem(j, np.array(days, dtype=np.float64))
    return frame


def read_frame(frame: Any, wanted: reading_options.Wanted, how: reading_options.Reading) -> Made:
    """Return the parts of a data set from a frame; see :meth:`sparsecv_mio.data.dataset.Dataset.from_frame`."""
    frame = as_pandas(frame)
    if not (hasattr(frame, "iloc") and hasattr(frame, "columns")):
        lazy = "; call its .collect() first" if hasattr(frame, "collect") else ""
        kinds = "; give a table of pandas, polars, DuckDB or Arrow, a file or Dataset.from_arrays(X, y)"
        raise BadInput(f"data: a {type(frame).__name__} is not a table in memory{lazy or kinds}")
    chosen = wanted.select_columns(_names_of_columns(frame))
    aux = {chosen.header[j]: _series_ids(frame.iloc[:, j]) for j in chosen.aux}
    words = wanted.two_words and not _is_numeric(frame.iloc[:, chosen.header.index(chosen.goal)])
    cures = how.allows_nonnumeric_cells or how.decimal != "." or words
    try:
        if cures:
            return impute_and_encode(_raw_frame(frame, chosen, aux, how), how, wanted)
        X = frame_numbers(frame.iloc[:, list(chosen.features)])
        y = series_numbers(frame.iloc[:, chosen.header.index(chosen.goal)], chosen.goal)
        return Made(X, y, chosen.names, chosen.goal, aux, None)
    except BadInput:
        if not cures:
            impute_and_encode(
                _raw_frame(frame, chosen, aux, how), how, wanted
            )  # raises an error that names all invalid columns
        raise


def _is_numeric(column: pd.Series) -> bool:
    """Return True if a column of a frame holds numbers or truth values."""
    return column.to_numpy().dtype.kind in "biuf"


def _names_of_columns(frame: pd.DataFrame) -> list[str]:
    """Return the column names of a frame as text; empty for None and NaN."""
    import pandas as pd

    return ["" if name is None or name is pd.NA or name != name else str(name) for name in frame.columns]


def frame_alike(frame: pd.DataFrame, features: Sequence[str], learnt: reading_options.Applied) -> Made:
    """Return features of new rows in a frame, with the preprocessing of the rows of the model."""
    wanted = reading_options.Wanted("", learnt.source_columns(features), None, (), needed=False)
    table = _raw_frame(frame, wanted.select_columns(_names_of_columns(frame)), {}, learnt.how)
    if learnt.how.way == reading_options.POINT:
        reading_options.check_marks(table.marks)
    return read_alike(table, learnt)


def _raw_frame(
    frame: pd.DataFrame, chosen: reading_options.Selection, aux: dict[str, NDArray[Any]], how: reading_options.Reading
) -> RawTable:
    place = {name: j for j, name in enumerate(chosen.header)}
    kinds = {name: frame.dtypes.iloc[place[name]] for name in chosen.names}
    declared = {name: kind.categories.tolist() for name, kind in kinds.items() if getattr(kind, "ordered", False)}

    def column(name: str) -> RawColumn:
        return RawColumn.from_cells(name, frame.iloc[:, place[name]].tolist(), how)

    return raw_table(chosen.names, chosen.goal, column, aux, declared)


def frame_numbers(frame: Any) -> FloatArray:
    """Return all columns of a frame as numbers; `BadInput` names the first cell that is not a number."""
    X = np.empty(frame.shape)
    for j, name in enumerate(frame.columns):
        X[:, j] = series_numbers(frame.iloc[:, j], str(name))
    return X


def series_numbers(series: pd.Series[Any], name: str) -> FloatArray:
    """Return a column of a frame as numbers; `BadInput` names the first cell that is not a number."""
    if series.dtype.kind in "biuf":
        missing = series.isna().to_numpy()
        if missing.any():
            raise bad_cell(name, int(np.argmax(missing)) + 1, None)
        return series.to_numpy(dtype=np.float64).copy()
    for row, value in enumerate(series.tolist(), start=1):
        if isinstance(value, str) and reading_options.is_number(value, reading_options.POINT):
            more = "convert the column, for example by pandas.to_numeric"
            raise BadInput(f"column {name!r}, row {row}: the number {value!r} is stored as text; {more}")
        if not isinstance(value, numbers.Real | Decimal | np.bool_):
            raise bad_cell(name, row, None if series.isna().iloc[row - 1] else str(value))
    return np.array([float(value) for value in series.tolist()])


def _series_ids(series: pd.Series[Any]) -> NDArray[Any]:
    if series.dtype.kind in "biuf" and not series.isna().any():
        return series.to_numpy(dtype=None).copy()
    return series.to_numpy(dtype=object).copy()
