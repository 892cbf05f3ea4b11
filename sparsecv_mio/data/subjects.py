"""Columns that identify rows: identifiers of single rows, and identifiers of subjects with several rows each."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.columns import MOST_LEVELS, RawColumn

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


def numbers_rows(one: RawColumn) -> str:
    """Return the reason why a column of integers only numbers the rows, or an empty text."""
    numbers = one.numbers
    n = len(numbers)
    if one.texts or one.empty.any() or n < 4 or not np.all(numbers == np.rint(numbers)):
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


def _may_name(one: RawColumn) -> bool:
    """Return True if a column may name subjects: it holds text, or integers under a name such as `subject`."""
    if one.texts:
        return one.has_text_values
    return bool(SUBJECT.fullmatch(one.name)) and bool(np.all(one.numbers == np.rint(one.numbers)))


def _may_number(one: RawColumn) -> bool:
    plain = not one.texts and not one.empty.any() and len(one.numbers) > 0
    return plain and bool(np.all(one.numbers == np.rint(one.numbers))) and len(set(one.numbers.tolist())) <= MOST_LEVELS


def _are_visit_numbers(numbers: FloatArray, codes: IntArray, most: int) -> bool:
    """Return True if the numbers differ within a subject and recur in other subjects."""
    pairs, values = set(zip(codes.tolist(), numbers.tolist(), strict=True)), set(numbers.tolist())
    return len(pairs) == len(numbers) and 2 <= len(values) <= 2 * most


def is_name_like(levels: int, cells: int) -> bool:
    """Return True if a text column has nearly one value for each row, so it names its rows and is not a feature."""
    return levels > MOST_LEVELS or levels >= max(3, cells)
