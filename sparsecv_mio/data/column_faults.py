"""Columns that are not features: identifiers of rows or of subjects, and columns with cells that are not numbers.

`RULES` gives the advice for each kind of refused cell.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.column_choice import drop_keyword
from sparsecv_mio.data.columns import BOUND, DATE, MOST_LEVELS, RawColumn, RawTable, is_unreadable
from sparsecv_mio.data.number_format import POINT, NumberFormat, describe_formats, is_number
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.digits import MOST_NAMED, several
from sparsecv_mio.errors import BadInput

FEW_ROWS = 10  # rows, below which a permutation of 1 to n may occur by chance
GROUP_FOLDS = 10  # proposed folds of many subjects
MAX_GROUPS_ALONE = 20  # subjects, up to which each one is proposed as a fold; 70 took up to eight times as long
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
        """Option of `solve` that holds out all rows of a subject together; many subjects share ten folds."""
        n_folds = f":{GROUP_FOLDS}" if self.count > MAX_GROUPS_ALONE else ""
        return f"--folds {quote_names([f'groups:{self.column}{n_folds}'])}"

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


def numbers_rows(column: RawColumn) -> str:
    """Return the reason why a column of integers only numbers the rows, or an empty text."""
    numbers = column.numbers
    n = len(numbers)
    if column.texts or column.empty.any() or n < 4 or not np.all(numbers == np.rint(numbers)):
        return ""
    ranked = np.sort(numbers)
    first = ranked[0]
    if first in (0.0, 1.0) and np.array_equal(ranked, first + np.arange(n)):
        in_order = np.array_equal(ranked, numbers)
        if in_order or n >= FEW_ROWS:
            return "numbers the rows" if in_order else f"holds {first:g} to {ranked[-1]:g}, each once: numbers the rows"
    if column.name and ID.fullmatch(column.name) and np.all(np.diff(ranked) > 0.0):
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
        words = [column.texts.get(row, value) for row, value in enumerate(column.numbers.tolist())]
        place = {word: k for k, word in enumerate(dict.fromkeys(words))}
        codes, k = np.array([place[word] for word in words]), len(place)
        if k < 3 or 2 * np.sum(np.bincount(codes) > 1) <= k:
            continue
        visit = _find_visit_column(column, codes, features)
        if visit is not None:
            return Subjects(column.name, visit.name, k)
        is_text_or_blocks = bool(column.texts) or int(np.count_nonzero(np.diff(codes))) == k - 1
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


def _may_name(column: RawColumn) -> bool:
    """Return True if a column may name subjects: it holds text, or integers under a name such as `subject`."""
    if column.texts:
        return column.has_text_values
    return bool(SUBJECT.fullmatch(column.name)) and bool(np.all(column.numbers == np.rint(column.numbers)))


def _may_number(column: RawColumn) -> bool:
    plain = not column.texts and not column.empty.any() and len(column.numbers) > 0
    return (
        plain
        and bool(np.all(column.numbers == np.rint(column.numbers)))
        and len(set(column.numbers.tolist())) <= MOST_LEVELS
    )


def _are_visit_numbers(numbers: FloatArray, codes: IntArray, most: int) -> bool:
    """Return True if the numbers differ within a subject and recur in other subjects."""
    pairs, values = set(zip(codes.tolist(), numbers.tolist(), strict=True)), set(numbers.tolist())
    return len(pairs) == len(numbers) and 2 <= len(values) <= 2 * most


def is_name_like(levels: int, cells: int) -> bool:
    """Return True if a text column has nearly one value for each row, so it names its rows and is not a feature."""
    return levels > MOST_LEVELS or levels >= max(3, cells)


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
        """Decimal mark with which all texts of the column are numbers, if the mark in use is another one."""
        other = NumberFormat("," if self.number_format.decimal == "." else ".", None)
        return other.decimal if all(is_number(text, other) for text in self.column.texts.values()) else ""

    @property
    def missing_codes(self) -> str:
        """Texts of the column as missing-value codes, or the first of them."""
        texts = sorted(set(self.column.texts.values()))
        return str(self.value) if len(texts) > MOST_NAMED or "," in "".join(texts) else ",".join(texts)

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
        advice = next(advice for applies, advice in RULES if applies(self))
        return (advice.replace(", or {drop}", "") if self.is_target else advice).format(
            drop=drop_keyword(self.column.name), formats=self.formats, codes=self.missing_codes, value=self.value,
            other_decimal=self.other_decimal, count=self.count, rows=len(self.column.numbers),
            classes_by=self.classes_by,
            groups=json.dumps(f"groups:{self.column.name}", ensure_ascii=False),
        )  # fmt: skip


RULES: tuple[tuple[Callable[[Fault], bool], str], ...] = (  # the first rule that applies gives the advice
    (lambda at: at.are_new_rows and at.is_missing, "fill the cell, or leave the row out"),
    (
        lambda at: at.are_new_rows and isinstance(at.value, str) and bool(at.other_decimal),
        'give decimal="{other_decimal}" if the numbers have this decimal mark',
    ),
    (lambda at: at.are_new_rows, "write it as in the data of the model, or leave the row out"),
    (
        lambda at: at.is_missing and at.count == len(at.column.numbers) and not at.is_target,
        "it is empty in every row; give {drop}",
    ),
    (lambda at: at.is_missing and at.is_target, 'give na="drop"'),
    (
        lambda at: at.is_missing and at.value in at.column.codes,
        'give na="drop" or na="mean", or keep_default_na=False if {value!r} is a text value',
    ),
    (lambda at: at.is_missing, 'give na="drop" or na="mean"'),
    (lambda at: not isinstance(at.value, str), "replace it by a finite number, or leave the row out"),
    (lambda at: bool(DATE.fullmatch(str(at.value))), 'give dates="days" if these are dates, or {drop}'),
    (lambda at: bool(at.formats), "give {formats}"),
    (
        lambda at: bool(BOUND.fullmatch(str(at.value))),
        "a bound, such as a detection limit, is not a number; replace it by one in the file, give "
        'na_values="{codes}" and na="drop" if it is to count as missing, or {drop}',
    ),
    (lambda at: is_unreadable(str(at.value)), "write plain numbers, such as -1234.5, or {drop}"),
    (
        lambda at: 2 * at.count < len(at.column.numbers),
        'text in {count} of {rows} cells: correct them, give na_values="{codes}" and na="drop" if they mark missing '
        "values, or {drop}",
    ),
    (
        lambda at: at.is_target,
        'give {classes_by} for two classes, or encode="onehot" for the numbers 0 and 1',
    ),
    (
        lambda at: at.names_subjects,
        "several rows for each value; give folds={groups} to hold them out together, or {drop}",
    ),
    (
        lambda at: len(set(at.column.texts.values())) > MOST_LEVELS,
        "nearly every row has a different value, so it names the rows and is not a feature; give {drop}",
    ),
    (
        lambda at: is_name_like(len(set(at.column.texts.values())), at.count),
        'every row has a different value, so it may name the rows; give {drop}, or encode="onehot" for a feature',
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
    faults = []
    for column in table.columns:
        fault = partial(
            Fault, column, is_target=column is table.target, are_new_rows=are_new_rows,
            number_format=how.number_format, classes_by=classes_by,
        )  # fmt: skip
        if column.empty.any() and not allows_missing(column):
            row, count = int(np.argmax(column.empty)), int(column.empty.sum())
            faults.append(fault(row + 1, column.code, count, is_missing=True))
        if column.texts and not allows_texts(column):
            unreadable = column.unreadable
            row = next(row for row, text in column.texts.items() if not unreadable or text == unreadable)
            faults.append(fault(row + 1, column.texts[row], len(column.texts)))
        infinite = np.flatnonzero(np.isinf(column.numbers))
        if infinite.size:
            faults.append(fault(int(infinite[0]) + 1, float(column.numbers[infinite[0]]), infinite.size))
    return sorted(faults, key=lambda fault: fault.row)


def raise_faults(faults: Sequence[Fault], table: RawTable) -> None:
    """Raise `BadInput` that names every invalid column, with the options for its cells.

    Parameters
    ----------
    faults : sequence of Fault
        The cells that are refused; without any, nothing is raised.
    table : RawTable
        Their table.
    """
    if not faults:
        return
    subjects = find_subjects(table.features) if table.target is not None else None
    faults = [replace(at, names_subjects=subjects is not None and at.column.name == subjects.column) for at in faults]
    lines = table.find_lines({fault.row for fault in faults}) if table.find_lines is not None else {}
    said = [fault.describe(lines.get(fault.row)) for fault in faults]
    if len(faults) == 1:
        raise BadInput(f"column {said[0]}: {faults[0].advise()}")
    columns = list(dict.fromkeys(fault.column.name for fault in faults))
    parts = [
        f"{words} ({several(fault.count, 'cell')}; {fault.advise()})"
        for words, fault in zip(said, faults, strict=True) if fault.column.name in columns[:MOST_NAMED]
    ]  # fmt: skip
    others = len(columns) - MOST_NAMED
    more = f", and {several(others, 'more column')}" if others > 0 else ""
    more += "; `sparsecv inspect` proposes options for the whole file" if lines and not faults[0].are_new_rows else ""
    raise BadInput(
        f"{several(len(columns), 'column')} {'have' if len(columns) > 1 else 'has'} cells that are not numbers: "
        f"{', '.join(parts)}{more}"
    )
