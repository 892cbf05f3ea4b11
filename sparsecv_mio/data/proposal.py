"""What a file asks of `solve`: columns that number the rows, rows of one subject to hold out together, its target."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.cure import RawColumn

FEW_ROWS = 10  # below, a column of 1 to n in some other order may be one by chance
MOST_VISITS = 50
SURE_LEVELS = 8  # words from which repeats are subjects, whatever their names: factors of an experiment have fewer
ID = re.compile(r"(?i:(^|.*[_. -])(id|ids|uid|pid|sid|index|idx|row|rownames|obs|case|nr))|.*[a-z]I[dD]|")
SUBJECT = re.compile(r"(?i).*(subject|subj|patient|person|participant|animal|mouse|rat|child|pupil|student|id)s?")
VISIT = re.compile(r"(?i).*(visit|time|week|day|month|year|wave|session|occasion|trial|period|round|age)s?([_. -]?\d*)")


@dataclass(frozen=True)
class Subjects:
    """Rows that are measured on the same subjects.

    Attributes
    ----------
    column, visit : str
        That name the subject and number its rows.
    count : int
        Subjects.
    """

    column: str
    visit: str
    count: int

    @property
    def option(self) -> str:
        """How `solve` holds them out together."""
        return f"--folds {quoted([f'groups:{self.column}'])}"

    @property
    def note(self) -> str:
        """What to say of the column."""
        return f"several rows each, told apart by {self.visit!r}: {self.option} holds them out together"


def quoted(names: Iterable[str]) -> str:
    """Return names as one word of a shell's command line, quoted as in a CSV file where they hold commas.

    Examples
    --------
    >>> print(quoted(["a", "b,c", "d e"]))
    'a,"b,c",d e'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(list(names))
    return shlex.quote(text.getvalue())


def numbers_rows(one: RawColumn) -> str:
    """Return why a column of whole numbers only numbers the rows; empty where it does not."""
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
        return "every row has its own: a number of the rows by its name"
    return ""


def subjects_of(features: Sequence[RawColumn]) -> Subjects | None:
    """Return which column names subjects that have several rows each, numbered by another column; None without one.

    Parameters
    ----------
    features : sequence of RawColumn
    """
    visits = [one for one in features if _may_number(one)]
    for one in features:
        if one.empty.any() or not _may_name(one):
            continue
        words = [one.others.get(row, value) for row, value in enumerate(one.numbers.tolist())]
        place = {word: k for k, word in enumerate(dict.fromkeys(words))}
        codes, k = np.array([place[word] for word in words]), len(place)
        rows = np.bincount(codes)
        if not k >= 3 or 2 * np.sum(rows > 1) <= k:
            continue
        for other in visits:
            told = SUBJECT.fullmatch(one.name) or VISIT.fullmatch(other.name)
            if other is not one and (told or k >= SURE_LEVELS) and _tells_apart(other.numbers, codes, int(rows.max())):
                return Subjects(one.name, other.name, k)
    return None


def _may_name(one: RawColumn) -> bool:
    """Whether a column may name subjects: it holds words, or whole numbers under the name of a subject."""
    if one.others:
        return one.is_words
    return bool(SUBJECT.fullmatch(one.name)) and bool(np.all(one.numbers == np.rint(one.numbers)))


def _may_number(one: RawColumn) -> bool:
    plain = not one.others and not one.empty.any() and len(one.numbers) > 0
    return plain and bool(np.all(one.numbers == np.rint(one.numbers))) and len(set(one.numbers.tolist())) <= MOST_VISITS


def _tells_apart(numbers: FloatArray, codes: IntArray, most: int) -> bool:
    """Whether numbers differ in the rows of a subject and come back in those of others."""
    pairs, values = set(zip(codes.tolist(), numbers.tolist(), strict=True)), set(numbers.tolist())
    return len(pairs) == len(numbers) and 2 <= len(values) <= 2 * most
