"""The cells of a table before any treatment: the numbers, the empty cells and the texts of each column."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import time, timedelta
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, is_missing_cell
from sparsecv_mio.data.column_choice import drop_keyword
from sparsecv_mio.data.number_format import (
    Evidence,
    collect_evidence,
    duration_in_days,
    make_text_array,
    parse_duration,
    parse_texts,
)
from sparsecv_mio.data.reading_options import OPPOSITES, YES_AND_NO, Reading
from sparsecv_mio.digits import abbreviate_list
from sparsecv_mio.errors import BadInput
from sparsecv_mio.units import exceeds_double

MOST_LEVELS = 50  # text values that a feature may have
MISSING_CODES = frozenset({"na", "n/a", "<na>", "nan", "null", "none", "?", "."})  # lower case, as in exports

_NUMBER = r"(?:\d{1,3}(?:[.,'\u2019 \u00a0\u2009\u202f]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?"
_OTHER_NUMBER = r"\d+(?:,\d+)+(?:\.\d+)?|\d{1,3}(?:_\d{3})+(?:\.\d*)?|\d\d?(?::\d\d){1,2}(?:[.,]\d+)?(?: ?[aApP][mM])?"
_SIGNS = r"(?:[$\u20ac\u00a3\u00a5\u20b9\u20a9\u20bd%()\u2212\s-]|USD|EUR|GBP|CHF|JPY)"
BOUND = re.compile(rf"[<>\u2264\u2265~]=?\s*[+-]?{_NUMBER}")
LIKE_NUMBER = re.compile(rf"(?:[<>\u2264\u2265~=+\u2013]|{_SIGNS})*(?:{_NUMBER}|{_OTHER_NUMBER}){_SIGNS}*")
DATE = re.compile(r"(?:\d{4}-\d\d?-\d\d?|\d\d?[./-]\d\d?[./-]\d{2,4}|\d{4}/\d\d?/\d\d?)(?:[T ]\d.*)?")


def is_unreadable(text: str) -> bool:
    """Return True for a text that is a date or a number with signs or marks, and thus no text value.

    Examples
    --------
    >>> [is_unreadable(text) for text in ("22%", "2024-01-05", "1,078", "1st", "18-35")]
    [True, True, True, False, False]
    """
    return bool(DATE.fullmatch(text) or LIKE_NUMBER.fullmatch(text))


def word_of_category(category: object) -> str:
    """Return the text of a category, as that of an equal number in a file; empty if it is missing.

    Examples
    --------
    >>> [word_of_category(category) for category in (3.0, " low ", None, float("nan"))]
    ['3', 'low', '', '']
    """
    if is_missing_cell(category):
        return ""
    return f"{category:.15g}" if isinstance(category, Real) else str(category).strip()


def is_compound(cell: object) -> bool:
    """Return True for a cell of a frame that is neither a number nor a text, nor one date or interval.

    Examples
    --------
    >>> [is_compound(cell) for cell in ([1, 2], 1j, b"ab", object(), "ab", 2.0)]
    [True, True, True, True, False, False]
    """
    kinds = list | tuple | dict | set | frozenset | bytes | bytearray | complex | np.ndarray | time
    is_plain_object = type(cell).__repr__ is object.__repr__ or type(cell).__name__ == "DateOffset"
    return isinstance(cell, kinds) or is_plain_object


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
    code : str
        Missing-value code of the first such cell; empty if it is an empty cell.
    texts : dict of int to str
        Text by row, for cells that are neither numbers nor missing.
    evidence : Evidence
        Evidence of the number format.
    codes : dict of str to int
        Usual missing-value codes in the column, as written, with their numbers of cells; codes that the reading options
        name are not included.
    has_categories : bool
        True if the texts are categories that a frame declares, so that `3` or `22%` is a text value too.
    duration : str
        The first text, if all texts were durations, such as `306 days`, and became numbers of days; otherwise empty.
    """

    name: str
    numbers: FloatArray
    empty: BoolArray
    code: str = ""
    texts: dict[int, str] = field(default_factory=dict)
    evidence: Evidence = Evidence()
    codes: Mapping[str, int] = field(default_factory=dict)
    has_categories: bool = False
    duration: str = ""

    @cached_property
    def has_empty(self) -> bool:
        """True if a cell is missing."""
        return bool(self.empty.any())

    @classmethod
    def from_numbers(cls, name: str, numbers: FloatArray, how: Reading) -> RawColumn:
        """Return a column of numbers, of which NaN and the missing-value codes of the options are missing."""
        numbers = np.asarray(numbers, dtype=np.float64)
        return cls(name, numbers, np.isnan(numbers)).with_number_codes(how)

    @classmethod
    def from_cells(cls, name: str, cells: Sequence[Any], how: Reading) -> RawColumn:
        """Return the column of cells that are numbers, texts, durations or other objects of a frame.

        Parameters
        ----------
        name : str
            Name of the column.
        cells : sequence
            The cells.
        how : Reading
            Number format and missing-value codes.
        """
        numbers, texts = np.full(len(cells), np.nan), [""] * len(cells)
        for row, cell in enumerate(cells):
            if isinstance(cell, Real | Decimal | np.bool_):
                if exceeds_double(cell):
                    raise BadInput(
                        f"column {name!r} holds a number in row {row + 1} that is too large for double precision; "
                        f"rescale the column, or {drop_keyword(name)}"
                    )
                numbers[row] = float(cell)
            elif isinstance(cell, timedelta) and cell == cell:
                numbers[row] = duration_in_days(cell)
            elif not is_missing_cell(cell):
                if is_compound(cell):
                    raise BadInput(
                        f"column {name!r} holds a value of type {type(cell).__name__} in row {row + 1} "
                        f"({repr(cell)[:40]}); give one number or text in each cell, or {drop_keyword(name)}"
                    )
                texts[row] = str(cell)
        column = read_texts(name, texts, how)
        are_numbers = ~np.isnan(numbers)  # cells that were not texts
        column = replace(
            column, numbers=np.where(are_numbers, numbers, column.numbers), empty=column.empty & ~are_numbers
        )
        return (column if are_numbers.any() else column.with_durations()).with_number_codes(how)

    @classmethod
    def from_categories(cls, name: str, cells: Sequence[Any], how: Reading) -> RawColumn:
        """Return the column of cells that are categories of a frame, each of which is a text value.

        Parameters
        ----------
        name : str
            Name of the column.
        cells : sequence
            The cells.
        how : Reading
            Missing-value codes.
        """
        words = {row: word_of_category(cell) for row, cell in enumerate(cells)}
        missing = how.missing_words(name) | (MISSING_CODES if how.keep_default_na else frozenset())
        texts = {row: word for row, word in words.items() if word and word.lower() not in missing}
        empty = np.ones(len(cells), dtype=bool)
        empty[list(texts)] = False
        return cls(name, np.full(len(cells), np.nan), empty, texts=texts, has_categories=True)

    def with_number_codes(self, how: Reading) -> RawColumn:
        """Return the column in which the numbers among the missing-value codes of the options are missing."""
        codes = how.missing_numbers(self.name)
        if not codes:
            return self
        are_codes = np.isin(self.numbers, list(codes))
        if not are_codes.any():
            return self
        empty = self.empty | are_codes
        first = int(np.argmax(empty))
        code = f"{self.numbers[first]:g}" if are_codes[first] else self.code
        return replace(self, numbers=np.where(are_codes, np.nan, self.numbers), empty=empty, code=code)

    def as_categories(self) -> RawColumn:
        """Return the column with each of its numbers as a text value."""
        words = {row: word_of_category(self.numbers[row]) for row in np.flatnonzero(~np.isnan(self.numbers)).tolist()}
        return replace(
            self, numbers=np.full(len(self.numbers), np.nan), texts=dict(sorted((self.texts | words).items())),
            evidence=Evidence(), has_categories=True,
        )  # fmt: skip

    def with_durations(self) -> RawColumn:
        """Return the column with numbers of days if all of its cells that are not empty are durations."""
        if self.texts and len(self.texts) + int(self.empty.sum()) == len(self.numbers):
            with suppress(ValueError):  # if a cell is not a duration, all cells are text values
                numbers = self.numbers.copy()
                numbers[list(self.texts)] = list(map(parse_duration, self.texts.values()))
                return replace(self, numbers=numbers, texts={}, duration=next(iter(self.texts.values())))
        return self

    @cached_property
    def unreadable(self) -> str:
        """The first text that is a date or a number with signs; empty if there is none."""
        return next((text for text in dict.fromkeys(self.texts.values()) if self._is_unreadable(text)), "")

    @cached_property
    def has_text_values(self) -> bool:
        """True if at least half of the cells that are not missing hold text values."""
        counts = Counter(self.texts.values())
        values = sum(count for text, count in counts.items() if not self._is_unreadable(text))
        return 2 * values >= max(1, int(np.sum(~self.empty)))

    def _is_unreadable(self, text: str) -> bool:
        """Return True for a text that is no text value; `<18` is a text value if no cell is a number."""
        if self.has_categories:
            return False
        has_numbers = len(self.texts) + int(self.empty.sum()) < len(self.numbers)
        return is_unreadable(text) and (has_numbers or not BOUND.fullmatch(text))

    def levels(self, order: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the declared order, or the text values of the column: no before yes, otherwise alphabetical."""
        if order:
            return order
        numbers = set(self.numbers[~np.isnan(self.numbers)].tolist())
        words = sorted({*self.texts.values(), *map(word_of_category, numbers)})
        if self.has_categories and words and not np.isnan(parse_texts(words)).any():
            words.sort(key=float)
        plain = {word.lower() for word in words}
        pairs = OPPOSITES if len(words) <= 2 else YES_AND_NO
        return next((pair for pair in pairs if plain <= set(pair)), tuple(words)) if words else ()

    def describe_case_variants(self, levels: Sequence[str]) -> str:
        """Return a note on text values that differ only in upper and lower case; empty if there are none."""
        variants: dict[str, set[str]] = {}
        for word in {*self.texts.values()} if levels else ():
            variants.setdefault(word.lower(), set()).add(word)
        notes = []
        for words in (sorted(words) for words in variants.values() if len(words) > 1):
            count = len({self._find_level(word, levels) for word in words})
            number = "one value" if count == 1 else f"{count} values (they differ only in capital letters)"
            notes.append(f"{' and '.join(map(repr, words))} count as {number}")
        return abbreviate_list(sorted(notes))

    @staticmethod
    def _find_level(word: str, levels: Sequence[str]) -> int:
        """Return the position of a text value in the levels, also in lower case; -1 if it is none of them."""
        return next((levels.index(form) for form in (word, word.lower()) if form in levels), -1)

    def level_codes(self, levels: Sequence[str]) -> tuple[NDArray[np.int64], dict[int, str]]:
        """Return the position of every cell in the levels (-1: empty or unknown), and unknown values by row from 0."""
        codes, unknown = np.full(len(self.numbers), -1, dtype=np.int64), dict[int, str]()
        code_of_word: dict[str, int] = {}
        for row in np.flatnonzero(~self.empty).tolist():
            word = self.texts.get(row) or word_of_category(self.numbers[row])
            if word not in code_of_word:
                code_of_word[word] = self._find_level(word, levels)
            codes[row] = code_of_word[word]
            if codes[row] < 0:
                unknown[row] = word
        return codes, unknown

    def select_rows(self, rows: NDArray[np.intp]) -> RawColumn:
        """Return the column for some rows in ascending order."""
        place = {row: k for k, row in enumerate(rows.tolist())} if self.texts else {}
        texts = {place[row]: word for row, word in self.texts.items() if row in place}
        return replace(self, numbers=self.numbers[rows], empty=self.empty[rows], texts=texts)


@dataclass(frozen=True, eq=False)
class RawTable:
    """The columns of a table before any treatment: features, an optional target, and other columns as arrays by name.

    `find_lines` returns the lines of a file, from 1, in which rows end. `declared` has the levels of ordered
    categories, from the lowest to the highest. `X` has the numbers of all features if they are stored in one array.
    """

    features: list[RawColumn]
    target: RawColumn | None
    aux: dict[str, NDArray[Any]]
    find_lines: Callable[[Collection[int]], Mapping[int, int]] | None = None
    declared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    X: FloatArray | None = None

    @property
    def columns(self) -> list[RawColumn]:
        """The features, followed by the target if there is one."""
        return [*self.features, *([self.target] if self.target else [])]

    def with_categories(self, how: Reading) -> RawTable:
        """Return the table in which the numbers of some features are categories, as the options request."""
        names = {*how.categories, *how.orders}
        features = [column.as_categories() if column.name in names else column for column in self.features]
        return replace(self, features=features) if names else self

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0].numbers) if self.columns else 0

    @property
    def evidence(self) -> dict[str, Evidence]:
        """Evidence of the number format by column."""
        return {column.name: column.evidence for column in self.columns}


class TextColumns:
    """Columns of texts that are read block by block; the numbers of the features are stored in one array.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    goal : str
        Name of the target, which is the last column; empty without a target.
    n_rows : int
        Upper bound on the number of rows.
    how : Reading
        Number format and missing-value codes.

    Attributes
    ----------
    n_rows : int
        Number of rows that have been read.
    """

    def __init__(self, names: Sequence[str], goal: str, n_rows: int, how: Reading) -> None:
        self.names, self.goal, self.how, self.n_rows = names, goal, how, 0
        self.X = np.empty((n_rows, len(names) - bool(goal)))
        self.y = np.empty(n_rows if goal else 0)
        self._empty: dict[int, BoolArray] = {}
        self._first_code: dict[int, str] = {}
        self._codes: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self._texts: defaultdict[int, dict[int, str]] = defaultdict(dict)
        self._evidence: dict[int, Evidence] = {}

    def add(self, texts: Any) -> None:
        """Append a block of rows.

        Parameters
        ----------
        texts : sequence of str or pyarrow.Array
            Texts of all columns, one column after the other; missing texts are empty cells.
        """
        from pyarrow import compute

        texts = make_text_array(texts) if isinstance(texts, Sequence) else texts
        texts = compute.fill_null(texts, make_text_array([""])[0]) if texts.null_count else texts
        texts = compute.utf8_trim_whitespace(texts)
        numbers = parse_texts(texts, self.how.number_format).reshape(len(self.names), -1)
        rows, p = slice(self.n_rows, self.n_rows + numbers.shape[1]), self.X.shape[1]
        self.X[rows] = numbers[:p].T
        if self.goal:
            self.y[rows] = numbers[p]
        are_numbers = ~np.isnan(numbers)
        self._add_other_cells(texts, are_numbers)
        self._add_evidence(texts, are_numbers)
        self.n_rows = rows.stop

    def _add_other_cells(self, texts: Any, are_numbers: BoolArray) -> None:
        """Store the cells of a block that are missing, and those that are texts."""
        how, n_rows = self.how, are_numbers.shape[1]
        usual = MISSING_CODES if how.keep_default_na else frozenset()
        for j in np.flatnonzero(~are_numbers.all(axis=1)).tolist():
            requested = how.missing_words(self.names[j])
            for place in np.flatnonzero(~are_numbers[j]).tolist():
                row, text = self.n_rows + place, texts[j * n_rows + place].as_py()
                word = text.lower()
                is_requested = word in requested
                if text and not is_requested and word not in usual:
                    self._texts[j][row] = text
                    continue
                if j not in self._empty:
                    self._empty[j], self._first_code[j] = np.zeros(len(self.X), dtype=bool), text
                self._empty[j][row] = True
                if text and not is_requested:
                    self._codes[j][text] += 1

    def _add_evidence(self, texts: Any, are_numbers: BoolArray) -> None:
        """Add the evidence of the number format, unless the point is known to be the decimal mark."""
        is_settled = self.how.decimal == "." and any(evidence.is_settled for evidence in self._evidence.values())
        if self.how.thousands is None and not is_settled:
            for j, evidence in collect_evidence(texts, are_numbers, self.how.decimal, self.n_rows).items():
                self._evidence[j] = self._evidence.get(j, Evidence()).add(evidence)

    def columns(self) -> list[RawColumn]:
        """Return the columns, in which numbers may be missing-value codes, and texts durations."""
        n, none = self.n_rows, np.broadcast_to(np.zeros(1, dtype=bool), self.n_rows)
        cells = [*self.X[:n].T, *([self.y[:n]] if self.goal else [])]
        return [
            RawColumn(
                name, numbers, self._empty[j][:n] if j in self._empty else none, self._first_code.get(j, ""),
                self._texts.get(j, {}), self._evidence.get(j, Evidence()), self._codes.get(j, {}),
            ) for j, (name, numbers) in enumerate(zip(self.names, cells, strict=True))
        ]  # fmt: skip

    def build_table(self, aux: dict[str, NDArray[Any]], find_lines: Any) -> RawTable:
        """Return the table of all rows.

        Parameters
        ----------
        aux : dict of str to (n,) array
            Group, fold and weight columns.
        find_lines : callable
            Function as for `RawTable`.
        """
        columns = [column.with_durations().with_number_codes(self.how) for column in self.columns()]
        for j, column in enumerate(columns[: self.X.shape[1]]):
            if column.numbers.base is not self.X:  # durations, or without missing-value codes
                self.X[: self.n_rows, j] = column.numbers
                columns[j] = replace(column, numbers=self.X[: self.n_rows, j])
        features, target = (columns[:-1], columns[-1]) if self.goal else (columns, None)
        return RawTable(features, target, aux, find_lines, X=self.X[: self.n_rows])


def read_texts(name: str, texts: Any, how: Reading) -> RawColumn:
    """Return the column of a sequence or an Arrow array of texts."""
    columns = TextColumns([name], "", len(texts), how)
    columns.add(texts)
    return columns.columns()[0]


def build_table(
    read: Callable[[str], RawColumn], features: Sequence[str], goal: str, n_rows: int, aux: dict[str, NDArray[Any]],
    declared: Mapping[str, Iterable[Any]] = {},
) -> RawTable:  # fmt: skip
    """Return the table of columns that are read one after the other.

    Parameters
    ----------
    read : callable
        Function that returns a column by name.
    features : sequence of str
        Names of the features.
    goal : str
        Name of the target; empty without a target.
    n_rows : int
        Number of rows.
    aux : dict of str to (n,) array
        Group, fold and weight columns.
    declared : mapping of str to iterable
        Levels of ordered categories by column, from the lowest to the highest.
    """
    X, columns = np.empty((n_rows, len(features))), list[RawColumn]()
    for j, name in enumerate(features):
        column = read(name)
        X[:, j] = column.numbers
        columns.append(replace(column, numbers=X[:, j]))
    orders = {
        column.name: tuple(map(word_of_category, declared[column.name]))
        for column in columns if column.name in declared and column.texts
    }  # fmt: skip
    return RawTable(columns, read(goal) if goal else None, aux, None, orders, X)
