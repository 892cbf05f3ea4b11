"""Error messages for columns with cells that are not numbers.

`RULES` lists the kinds of cells that are not numbers, each with the advice that ends its error message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sparsecv_mio.data.column_choice import drop_keyword
from sparsecv_mio.data.columns import BOUND, DATE, MOST_LEVELS, RawColumn, RawTable, is_unreadable
from sparsecv_mio.data.number_format import DAYS, POINT, NumberFormat, describe_formats, form_of_dates, is_number
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.data.row_structure import find_subjects, is_name_like
from sparsecv_mio.digits import MOST_NAMED, several
from sparsecv_mio.errors import BadInput


@dataclass(frozen=True)
class Fault:
    """The cells of a column that are refused for one reason: the first of them, and their number.

    Attributes
    ----------
    column : RawColumn
        The column.
    row : int
        First row of such a cell, from 1.
    value : str or float
        Its text or number; the missing-value code or an empty text if the cell is missing.
    count : int
        Number of such cells.
    is_missing, is_target : bool
        True if the cells are missing; True if the column is the target.
    are_new_rows : bool
        True for new rows of a model, which have no options for cells.
    names_subjects : bool
        True if the column names subjects with several rows each.
    number_format : NumberFormat
        Format in which numbers are read.
    classes_by : str
        Keyword that makes a target of two text values two classes.
    """

    column: RawColumn
    row: int
    value: str | float
    count: int
    is_missing: bool = False
    is_target: bool = False
    are_new_rows: bool = False
    names_subjects: bool = False
    number_format: NumberFormat = POINT
    classes_by: str = 'loss="logistic"'

    @property
    def formats(self) -> str:
        """Options with which the text is a number; empty if there are none."""
        return describe_formats(str(self.value), self.number_format)

    @property
    def other_decimal(self) -> str:
        """Decimal mark with which all texts of the column are numbers, if no cell has the mark in use."""
        other = NumberFormat("," if self.number_format.decimal == "." else ".", None)
        numbers = self.column.numbers[np.isfinite(self.column.numbers)]
        if np.any(numbers % 1.0):  # the mark in use is that of other cells
            return ""
        return other.decimal if all(is_number(text, other) for text in self.column.texts.values()) else ""

    @property
    def is_ambiguous_date(self) -> bool:
        """True if the text is a date of a column in which the day or the month may come first."""
        if not DATE.fullmatch(str(self.value)):
            return False
        try:
            form_of_dates(self.column.name, self.column.texts.values(), (DAYS,))
        except BadInput:
            return True
        return False

    @property
    def missing_codes(self) -> str:
        """Texts of the column as missing-value codes, or the first of them."""
        texts = sorted(set(self.column.texts.values()))
        return str(self.value) if len(texts) > MOST_NAMED or "," in "".join(texts) else ",".join(texts)

    def find_rows(self) -> list[int]:
        """Return the rows, from 0, of the refused cells."""
        if self.is_missing:
            return [int(row) for row in np.flatnonzero(self.column.empty)]
        if isinstance(self.value, str):
            return list(self.column.texts)
        return [int(row) for row in np.flatnonzero(np.isinf(self.column.numbers))]

    def find_reasons(self) -> dict[int, str]:
        """Return the rows, from 0, of the refused cells, each with the reason."""
        column = self.column
        return {
            row: f"column {column.name!r} " + (f"holds {column.texts[row]!r:.40}" if row in column.texts else
                                               "is empty" if self.is_missing else "is infinite")
            for row in self.find_rows()
        }  # fmt: skip

    def describe(self, line: int | None = None) -> str:
        """Return a description of the first cell, with its line in a file."""
        where = f"row {self.row}" if line is None else f"row {self.row} (line {line})"
        name, value = self.column.name, self.value
        if self.is_missing:
            return f"{name!r} {f'has the missing-value code {value!r}' if value else 'is empty'} in {where}"
        if not isinstance(value, str):
            return f"{name!r} holds {value} in {where}"
        if DATE.fullmatch(value):
            return f"{name!r} holds {value[:30]!r}, which looks like a date, in {where}"
        return f"{name!r} holds text {value if len(value) <= 30 else f'{value[:27]}...'!r} in {where}"

    def advise(self) -> str:
        """Return the advice of the first rule that applies."""
        advice, is_above = next(advice for applies, advice in RULES if applies(self)), str(self.value)[:1] in ">\u2265"
        return (advice.replace(", or {drop}", "") if self.is_target else advice).format(
            drop=drop_keyword(self.column.name), formats=self.formats, codes=self.missing_codes, value=self.value,
            other_decimal=self.other_decimal, count=self.count, rows=len(self.column.numbers),
            classes_by=self.classes_by, instead="the limit" if is_above else "half the limit",
            extreme="highest" if is_above else "lowest",
            groups=json.dumps(f"groups:{self.column.name}", ensure_ascii=False),
        )  # fmt: skip


RULES: tuple[tuple[Callable[[Fault], bool], str], ...] = (  # the first rule that applies gives the advice
    (lambda at: at.are_new_rows and at.is_missing, "fill the cell, or leave the row out"),
    (
        lambda at: at.are_new_rows and isinstance(at.value, str) and bool(at.other_decimal),
        'give decimal="{other_decimal}" if the numbers have this decimal mark',
    ),
    (lambda at: at.are_new_rows, "write the value as in the data of the model, or leave the row out"),
    (
        lambda at: at.is_missing and at.count == len(at.column.numbers) and not at.is_target,
        "it is empty in every row; give {drop}",
    ),
    (lambda at: at.is_missing and at.is_target, 'give na="drop"'),
    (
        lambda at: at.is_missing and at.names_subjects,
        "write the subject of the row or leave the row out, and give folds={groups} to hold subjects out together, or "
        "{drop}",
    ),
    (
        lambda at: at.is_missing and 2 * at.count > len(at.column.numbers) and not at.column.codes,
        'most of its cells are empty; give {drop}, or na="mean"',
    ),
    (
        lambda at: at.is_missing and at.value in at.column.codes,
        'give na="drop" or na="mean", or keep_default_na=False if {value!r} is a text value',
    ),
    (lambda at: at.is_missing, 'give na="drop" or na="mean"'),
    (
        lambda at: at.column.has_categories,
        'the column has categories; give encode="onehot", convert them to numbers, or {drop}',
    ),
    (lambda at: not isinstance(at.value, str), "replace it by a finite number, or leave the row out"),
    (
        lambda at: at.is_ambiguous_date,
        'give dates="days,dayfirst" if these are dates that begin with the day, dates="days,monthfirst" if they begin '
        "with the month, or {drop}",
    ),
    (lambda at: bool(DATE.fullmatch(str(at.value))), 'give dates="days" if these are dates, or {drop}'),
    (lambda at: bool(at.formats), "give {formats}"),
    (
        lambda at: bool(BOUND.fullmatch(str(at.value))),
        "a bound, such as a detection limit, is not a number; write a number instead (for example {instead}), or "
        '{drop}, or, to remove the rows with the {extreme} values, give na_values="{codes}" and na="drop"',
    ),
    (lambda at: is_unreadable(str(at.value)), "write plain numbers, such as -1234.5, or {drop}"),
    (
        lambda at: 2 * at.count < int(np.sum(~at.column.empty)),
        'text in {count} of {rows} cells; correct them, give na_values="{codes}" and na="drop" or na="mean" if they '
        "mark missing values, or {drop}",
    ),
    (
        lambda at: at.is_target,
        'give {classes_by} for two classes, or encode="onehot" for the numbers 0 and 1',
    ),
    (
        lambda at: at.names_subjects,
        "each value has several rows; give folds={groups} to hold the rows of a value out together, or {drop}",
    ),
    (
        lambda at: len(set(at.column.texts.values())) > MOST_LEVELS,
        "nearly every row has a different value, so it identifies the rows and is not a feature; give {drop}",
    ),
    (
        lambda at: is_name_like(len(set(at.column.texts.values())), at.count),
        'every row has a different value, so the column may identify the rows; give {drop} to leave it out, or '
        'encode="onehot" to use it as a feature',
    ),
    (lambda at: True, 'give encode="onehot", or {drop}'),
)  # fmt: skip


def find_faults(
    table: RawTable, how: Reading, allows_texts: Callable[[RawColumn], bool],
    allows_missing: Callable[[RawColumn], bool], are_new_rows: bool, classes_by: str = "",
) -> list[Fault]:  # fmt: skip
    """Return the cells that are refused, in the order of their rows.

    Parameters
    ----------
    table : RawTable
        The table.
    how : Reading
        Options with which it was read.
    allows_texts, allows_missing : callable
        Functions that return True if a column may have texts, or missing cells.
    are_new_rows : bool
        True for rows that are read with the options of a record.
    classes_by : str
        Keyword that makes a target of two text values two classes.
    """
    faults = list[Fault]()
    for column in table.columns:
        is_infinite = np.isinf(column.numbers)
        if not (column.texts or column.has_empty or is_infinite.any()):
            continue
        fault = partial(
            Fault, column, is_target=column is table.target, are_new_rows=are_new_rows,
            number_format=how.number_format, classes_by=classes_by,
        )  # fmt: skip
        if column.has_empty and not allows_missing(column):
            row, count = int(np.argmax(column.empty)), int(column.empty.sum())
            faults.append(fault(row + 1, column.code, count, is_missing=True))
        if column.texts and not allows_texts(column):
            unreadable = column.unreadable
            row = next(row for row, text in column.texts.items() if not unreadable or text == unreadable)
            faults.append(fault(row + 1, column.texts[row], len(column.texts)))
        if is_infinite.any():
            row = int(np.argmax(is_infinite))
            faults.append(fault(row + 1, float(column.numbers[row]), int(is_infinite.sum())))
    return sorted(faults, key=lambda fault: fault.row)


def raise_faults(faults: Sequence[Fault], table: RawTable, remedy: str = "") -> None:
    """Raise `BadInput` that names every invalid column, with the options for its cells.

    Parameters
    ----------
    faults : sequence of Fault
        The cells that are refused; without any, nothing is raised.
    table : RawTable
        Their table.
    remedy : str
        End of the message.
    """
    if not faults:
        return
    subjects = find_subjects(table.features) if table.target is not None else None
    faults = [replace(at, names_subjects=subjects is not None and at.column.name == subjects.column) for at in faults]
    lines = table.find_lines({fault.row for fault in faults}) if table.find_lines is not None else {}
    said = [fault.describe(lines.get(fault.row)) for fault in faults]
    if len(faults) == 1:
        raise BadInput(f"column {said[0]}; {faults[0].advise()}{remedy}")
    columns = list(dict.fromkeys(fault.column.name for fault in faults))
    parts = [
        f"{words} ({several(fault.count, 'cell')}; {fault.advise()})"
        for words, fault in zip(said, faults, strict=True) if fault.column.name in columns[:MOST_NAMED]
    ]  # fmt: skip
    others = len(columns) - MOST_NAMED
    more = f", and {several(others, 'more column')}" if others > 0 else ""
    more += "; `sparsecv inspect` proposes options for the whole file" if lines and not faults[0].are_new_rows else ""
    cells = "invalid cells" if faults[0].are_new_rows else "cells that are not numbers"
    raise BadInput(
        f"{several(len(columns), 'column')} {'have' if len(columns) > 1 else 'has'} {cells}: "
        f"{', '.join(parts)}{more}{remedy}"
    )
