"""Functions that detect the structure of the rows: row identifiers, subjects with several rows, and time order.

The command `inspect` uses this structure to propose folds.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.columns import MOST_LEVELS, RawColumn
from sparsecv_mio.data.number_format import DAYS, FORMS, PARTS, read_moment

FEW_ROWS = 10  # rows, below which a permutation of 1 to n may occur by chance
GROUP_FOLDS = 10  # proposed folds of many subjects
MAX_GROUPS_ALONE = 20  # subjects, up to which each one is proposed as a fold; 70 took up to eight times as long
SURE_LEVELS = 8  # levels, from which a repeated column names subjects whatever its name
IN_ORDER = "numbers the rows"
ID = re.compile(r"(?i:(^|.*[_. -])(id|ids|uid|pid|sid|index|idx|row|rownames|obs|case|nr))|.*[a-z]I[dD]|")
MAX_ROWS_PER_CODE = 10  # rows of a value on average, up to which a column such as `code` may name subjects
_SUBJECTS = r"subject|subj|patient(en)?|person(en)?|participant|probande?n?|animal|mouse|rat|child|pupil|student"
_NUMBERS = r"(no|nr|num|number|nummer|key)\.?"  # ends of a name that may also state a count, as in `case_number`
SUBJECT = re.compile(
    rf"(?i)(.*({_SUBJECTS}|id)s?|(.*[_. -])?(mrn|ptn|pat)\.?|"
    rf"(.*[_. -])?({_SUBJECTS}|pat|ptn|case|fall|mrn)[_. -]*({_NUMBERS}|code|name|label))"
)  # names of subjects
SUBJECT_CODE = re.compile(rf"(?i)(.*[_. -])?(mrn|({_SUBJECTS}|pat|ptn|case|fall)[_. -]*(id|nr\.?|code))")  # no count
CODE = re.compile(r"(?i)(.*[_. -])?(case|fall|code|pt|vp|initials)")  # names that may also be those of factors
SUBJECT_HINT = re.compile(f"{_SUBJECTS}|id|mrn|pt|pat|case|fall|code|vp|initials")  # in lower case; fast to exclude
CENTRE = re.compile(
    r"(?i)(.*[_. -])?(cent(re|er)|site|hospital|clinic|practice|ward|school|zentrum|klinik)s?([_. -](id|code|name))?"
)  # names of columns of the places that contribute rows
VISIT = re.compile(r"(?i).*(visit|time|week|day|month|year|wave|session|occasion|trial|period|round|age)s?([_. -]?\d*)")
ORDERED_ROWS = 20
FORWARD_FOLDS = 5  # K of the proposed `forward:K`: the last five sixths of the rows are scored
NEIGHBOUR_CORRELATION = 0.5  # lag-1 correlation of the target, from which neighbouring rows count as similar
YEAR = re.compile(r"(?i)(.*[_. -])?(year|yr|jahr)([_. -].*)?")
WITHIN = re.compile(r"(?i)(.*[_. -])?(quarter|qtr|quartal|month|monat|week|woche|day|tag|date)([_. -].*)?")
TIME = re.compile(r"(?i)(.*[_. -])?(year|yr|jahr|date|datum|day|time|timestamp|zeit|period|t)([_. -].*)?")


@dataclass(frozen=True)
class Subjects:
    """Rows measured on the same subjects.

    Attributes
    ----------
    column, visit : str
        Columns that name the subject and number its rows; if `visit` is empty, the name of `column` identifies it.
    count : int
        Number of subjects.
    without_id : tuple of int
        Rows, from 0, in which the column is empty.
    """

    column: str
    visit: str
    count: int
    without_id: tuple[int, ...] = ()

    @property
    def option(self) -> str:
        """Option of `solve` that holds out all rows of a subject together; many subjects share ten folds."""
        n_folds = f":{GROUP_FOLDS}" if self.count > MAX_GROUPS_ALONE else ""
        return f"--folds {quote_names([f'groups:{self.column}{n_folds}'])}"

    @property
    def note(self) -> str:
        """Note on the column."""
        why = f"distinguished by {self.visit!r}" if self.visit else "the name suggests subjects"
        return f"each value has several rows ({why}): {self.option} holds the rows of a value out together"


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
    if column.texts or column.has_empty or n < 4 or not np.all(numbers == np.rint(numbers)):
        return ""
    ranked = np.sort(numbers)
    first, last, in_order = float(ranked[0]), float(ranked[-1]), np.array_equal(ranked, numbers)
    if np.array_equal(ranked, first + np.arange(n)):
        if in_order and first in (0.0, 1.0):
            return IN_ORDER
        if not in_order and n >= FEW_ROWS and not YEAR.fullmatch(column.name):
            return f"has each number from {first:.12g} to {last:.12g} once: {IN_ORDER}"
    is_named = ID.fullmatch(column.name) or SUBJECT_CODE.fullmatch(column.name)
    if column.name and is_named and np.all(np.diff(ranked) > 0.0):
        return "every row has a different value, and its name suggests that it only numbers the rows"
    return ""


def find_subjects(features: Sequence[RawColumn]) -> Subjects | None:
    """Return the column that names subjects with several rows each, or None.

    A column names subjects in two cases. Either another column numbers the rows of each subject. Or the name of the
    column suggests ids, and it holds text or the rows of each subject follow one another. Rows in which the column is
    empty are ignored.
    """
    for column in features:
        if not (column.has_text_values if column.texts else _holds_codes(column)):
            continue
        words = [column.texts.get(row, value) for row, value in enumerate(column.numbers.tolist())]
        is_named = ~column.empty
        words = [word for word, named in zip(words, is_named.tolist(), strict=True) if named]
        place = {word: k for k, word in enumerate(dict.fromkeys(words))}
        codes, k = np.array([place[word] for word in words], dtype=np.int64), len(place)
        if k < 3 or 2 * len(words) <= column.empty.size or 2 * np.sum(np.bincount(codes) > 1) <= k:
            continue
        are_blocks = int(np.count_nonzero(np.diff(codes))) == k - 1
        if not column.texts and not SUBJECT.fullmatch(column.name) and not are_blocks:
            continue
        without_id = tuple(np.flatnonzero(column.empty).tolist())
        visit = _find_visit_column(column, codes, features)
        if visit is not None:
            return Subjects(column.name, visit.name, k, without_id)
        is_subject = SUBJECT.fullmatch(column.name) and (
            are_blocks or column.texts or SUBJECT_CODE.fullmatch(column.name)
        )
        is_code = are_blocks and CODE.fullmatch(column.name) and len(words) <= MAX_ROWS_PER_CODE * k
        if (is_subject or is_code) and k >= SURE_LEVELS:
            return Subjects(column.name, "", k, without_id)
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
            and _are_visit_numbers(visit.numbers[~subject.empty], codes, int(rows.max()))
        ):
            return visit
    return None


def has_subject_name(name: str) -> bool:
    """Return True if a name may be that of a column of subjects.

    Examples
    --------
    >>> [has_subject_name(name) for name in ("Patient ID", "Pat.-Nr.", "MRN", "Code", "age")]
    [True, True, True, True, False]
    """
    has_hint = SUBJECT_HINT.search(name.lower())
    return bool(has_hint and (SUBJECT.fullmatch(name) or CODE.fullmatch(name)))


def _holds_codes(column: RawColumn) -> bool:
    """Return True if a column of numbers may name subjects: it holds integers under a name such as `subject`."""
    numbers = column.numbers[~column.empty]
    return has_subject_name(column.name) and bool(np.all(numbers == np.rint(numbers)))


def _may_number(column: RawColumn) -> bool:
    plain = not column.texts and not column.has_empty and len(column.numbers) > 0
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
class TimeOrder:
    """Rows in time order.

    Attributes
    ----------
    column : str
        Column that shows the order.
    why : str
        Reason for the conclusion.
    """

    column: str
    why: str

    @property
    def option(self) -> str:
        """Option of `solve` that trains on earlier rows only."""
        return f"--folds forward:{FORWARD_FOLDS}"

    @property
    def note(self) -> str:
        """Note on the column."""
        return (
            f"{self.why}: {self.option} predicts each row from earlier rows only, but shuffled folds also use later "
            "rows"
        )


def time_order(features: Sequence[RawColumn], target: RawColumn) -> TimeOrder | None:
    """Return the evidence that the rows are in time order, or None.

    The evidence is a date, or a year with quarters, months or days, that increases from row to row. Any other
    increasing column counts if the target correlates with its value in the previous row but the rows are not sorted by
    the target.

    Parameters
    ----------
    features : sequence of RawColumn
        All columns except the target, including columns that are not features.
    target : RawColumn
        The target.
    """
    if len(target.numbers) < ORDERED_ROWS:
        return None
    sorted_by_target = _is_growing(target.numbers, 0.0) or _is_growing(-target.numbers, 0.0)
    likeness = _likeness(target.numbers)
    for column in features:
        days = _days(column)
        if days is not None and _is_growing(days, 0.5):
            return TimeOrder(column.name, "a date that increases from row to row")
    plain = [column for column in features if not column.texts and not column.has_empty]
    by_name = _order_by_name(plain, sorted_by_target)
    if by_name is not None or sorted_by_target or likeness < NEIGHBOUR_CORRELATION:
        return by_name
    growing = next((column for column in plain if _is_growing(column.numbers, 1.0)), None)
    if growing is None:
        return None
    alike = f"the target is similar to the target of the previous row (correlation {likeness:.2f})"
    return TimeOrder(growing.name, f"increases from row to row, and {alike}, as in a time series")


def _order_by_name(columns: Sequence[RawColumn], sorted_by_target: bool) -> TimeOrder | None:
    """Return the order of a numeric column whose name states a time, including a year with its parts."""
    for times in columns:
        if not TIME.fullmatch(times.name):
            continue
        within = [column for column in columns if column is not times and WITHIN.fullmatch(column.name)]
        for within_year in within if YEAR.fullmatch(times.name) else []:
            parts = within_year.numbers
            if _is_growing(times.numbers * (np.ptp(parts) + 1.0) + (parts - parts.min()), 1.0):  # by year, then by part
                return TimeOrder(times.name, f"increases from row to row together with {within_year.name!r}")
        if _is_growing(times.numbers, 1.0) and not sorted_by_target:
            return TimeOrder(times.name, "has a name that suggests a time, and increases from row to row")
    return None


def _is_growing(numbers: FloatArray, share: float) -> bool:
    """Return True if numbers never fall from row to row, and rise in at least this share of the steps."""
    steps = np.diff(numbers)
    return bool(np.all(steps >= 0.0) and np.mean(steps > 0.0) >= share) if len(steps) else False


def _likeness(target: FloatArray) -> float:
    """Return the lag-1 correlation of the target."""
    finite = np.isfinite(target)
    off = np.where(finite, target - np.mean(target[finite]), 0.0) if finite.any() else np.zeros(1)
    off = off / (np.abs(off).max() or 1.0)
    square = float(off @ off)
    return float(off[1:] @ off[:-1]) / square if 0.0 < square < np.inf else 0.0


def _days(column: RawColumn) -> FloatArray | None:
    """Return the dates of a column as numbers; None if a cell is missing or not a date."""
    if len(column.texts) < len(column.numbers):
        return None
    texts = [column.texts[row] for row in range(len(column.numbers))]
    for form in FORMS:
        with suppress(ValueError):
            return np.array([PARTS[DAYS](read_moment(text, form)) for text in texts])
    return None
