"""Options for reading a table, and the preprocessing that these options define."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from itertools import groupby
from numbers import Real
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.number_format import (
    NONE,
    SAME,
    WORDS,
    NumberFormat,
    date_features,
    parse_date_parts,
    parse_texts,
)
from sparsecv_mio.digits import MOST_NAMED, abbreviate_list, plural, several
from sparsecv_mio.errors import BadInput, did_you_mean, parse_keyword
from sparsecv_mio.model_space import parse_names
from sparsecv_mio.words import Encode, Missing

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "pipe": "|"}
DECIMAL_MARKS = {"comma": ",", "point": "."}
MARKS = ",;\t |:"
OPPOSITES = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"))
YES_AND_NO = (
    *OPPOSITES, ("nein", "ja"), ("nee", "ja"), ("nej", "ja"), ("nei", "ja"), ("non", "oui"), ("no", "si"), ("no", "sí"),
    ("no", "sì"), ("não", "sim"), ("nao", "sim"), ("nie", "tak"), ("ne", "ano"), ("ei", "kyllä"),
)  # fmt: skip
OF_CELLS = (  # options that also apply to frames
    "decimal", "thousands", "na", "na_indicator", "na_values", "keep_default_na", "encode", "order", "categories",
    "dates",
)  # fmt: skip
MAY_LACK = ("sep", "comment", "thousands")
ABSENT = "(missing)"  # level of missing cells in a text column


@dataclass(frozen=True)
class Reading:
    """Options for reading a file; the default options reject everything except a clean table of numbers.

    Attributes
    ----------
    sep : str, optional
        Separator of cells: a character, `comma`, `semicolon`, `tab`, `pipe`, or `space` for any run of blanks. The
        default is a comma for `.csv` and a tab for `.tsv` and `.txt` files.
    decimal : str
        Decimal mark.
    comment : str, optional
        Prefix of lines that are skipped.
    encoding : str
        Encoding of the text.
    header : bool
        True if the first line names the columns; otherwise the names are `x0`, `x1`, ...
    index_col : str, optional
        Name or position of a column that only numbers the rows.
    na : {"error", "drop", "mean", "median"}
        Treatment of empty cells and codes such as NA: an error, removal of their rows, or a fill by the mean or the
        median of the column over all rows.
    encode : {"error", "onehot", "ordinal"}
        Treatment of columns of text values: an error, a column of zeros and ones for every value, or ranks.
    thousands : str, optional
        Mark that groups digits by three: a comma, a point, `space` or `apostrophe`, in all of their forms; `none` if
        digits are not grouped, even if the file looks like it. By default digits are not grouped, and ambiguous numbers
        raise an error.
    na_values : str, number, sequence of these, or mapping
        Additional missing-value codes, numbers or words: `-999`, or `refused`; `bmi=-9` for one column. A mapping has
        the codes of each column.
    keep_default_na : bool
        True if the usual codes (NA, null, none and similar ones) count as missing; otherwise they are ordinary words.
    na_indicator : bool
        True to add, for every imputed column, a column of zeros and ones that marks its missing cells.
    order : mapping of str to sequence of str, or str
        Text columns that are coded by rank, 0, 1, ..., for every value of `encode`; each with its values from the
        lowest to the highest. As text, `size=small<large`. Numbers in such a column are categories too.
    categories : str or sequence of str
        Columns whose values, also numbers, are categories; `encode` is then `onehot` for these columns by default.
    skip_lines : str, optional
        Numbers of lines of a text table to skip, counted from 1: `1:3,32`.
    dates : str or sequence of str
        The numbers that every column of dates becomes: `days` since 1970-01-01 under the name of the column; `year`,
        `month` and `weekday` (1 is Monday) as columns such as `sold.year`. `dayfirst` or `monthfirst` states the order
        where the dates do not show it.
    """

    sep: str | None = None
    decimal: str = "."
    comment: str | None = None
    encoding: str = "utf-8"
    header: bool = True
    index_col: str | None = None
    na: Missing = Missing.ERROR
    encode: Encode = Encode.ERROR
    thousands: str | None = None
    na_values: tuple[str, ...] = ()
    keep_default_na: bool = True
    na_indicator: bool = False
    order: tuple[tuple[str, tuple[str, ...]], ...] = ()
    categories: tuple[str, ...] = ()
    skip_lines: str | None = None
    dates: tuple[str, ...] = ()

    @classmethod
    def from_keywords(cls, **words: Any) -> Reading:
        r"""Return checked reading options.

        Parameters
        ----------
        **words
            The fields of the class, by name. `order` is a mapping of columns to lists of words, or texts such as
            `size=small<medium<large`.

        Raises
        ------
        BadInput
            The message names the option.
        TypeError
            If a keyword is unknown.

        Examples
        --------
        >>> how = Reading.from_keywords(sep="semicolon", decimal=",", na="mean")
        >>> how.sep, how.decimal, str(how.na)
        (';', ',', 'mean')
        """
        values: dict[str, Any] = {declared.name: declared.default for declared in fields(cls)} | words
        _check_kinds(values)
        comment, index_col, na = values["comment"], values["index_col"], parse_keyword(Missing, values["na"], "na")
        sep, decimal = _separator_and_decimal(values["sep"], values["decimal"])
        if comment is not None and (len(comment) != 1 or comment.isalnum() or comment in MARKS):
            raise BadInput(f"comment: {comment!r} cannot begin a comment; give one character, such as #")
        try:
            codecs.lookup(values["encoding"])
        except (LookupError, ValueError):
            wrong = values["encoding"]
            raise BadInput(f"encoding: {wrong!r} is unknown; use for example latin-1, cp1252 or utf-16") from None
        if values["na_indicator"] and not na.uses_imputation:
            raise BadInput(f"na_indicator: requires na mean or na median; na {na} imputes no value")
        checked = {
            "sep": sep, "decimal": decimal, "thousands": _thousands(values["thousands"], decimal), "na": na,
            "encode": parse_keyword(Encode, values["encode"], "encode"), "na_values": _codes(values["na_values"]),
            "index_col": None if index_col is None else str(index_col), "order": _orders(values["order"]),
            "categories": _column_names(values["categories"], "categories"),
            "skip_lines": _line_numbers(values["skip_lines"]), "dates": parse_date_parts(values["dates"] or ()),
        }  # fmt: skip
        return cls(**values | checked)

    @property
    def orders(self) -> dict[str, tuple[str, ...]]:
        """Levels of each column with a declared order, from the lowest to the highest."""
        return dict(self.order)

    def column_encoding(self, column: str) -> Encode:
        """Return the encoding of a text column."""
        if column in self.orders:
            return Encode.ORDINAL
        return Encode.ONEHOT if self.encode is Encode.ERROR and column in self.categories else self.encode

    def add_declared_orders(self, orders: Mapping[str, tuple[str, ...]]) -> Reading:
        """Return options with the orders declared by the data, which apply to `ordinal`; `order` has priority.

        Parameters
        ----------
        orders : mapping of str to tuple of str
            Levels of each ordered category, from the lowest to the highest.
        """
        return replace(self, order=tuple({**orders, **self.orders}.items())) if self.encode is Encode.ORDINAL else self

    def missing_words(self, column: str) -> frozenset[str]:
        """Return the additional missing-value codes of a column in lower case."""
        return frozenset(code.removeprefix(f"{column}=").lower() for code in self.na_values)

    def missing_numbers(self, column: str) -> tuple[float, ...]:
        """Return the additional missing-value codes of a column that are numbers."""
        return _find_numbers(self.missing_words(column))

    @property
    def number_format(self) -> NumberFormat:
        """Number format."""
        return NumberFormat(self.decimal, self.thousands)

    @property
    def needs_rewriting(self) -> bool:
        """True if the text must be rewritten before it is a plain table."""
        plain = self.comment is None and self.skip_lines is None and self.sep != " "
        return not plain or codecs.lookup(self.encoding).name != "utf-8"

    @cached_property
    def skipped_lines(self) -> tuple[range, ...]:
        """Ranges of the line numbers to skip."""
        return tuple(_line_range(text) for text in self.skip_lines.split(",")) if self.skip_lines else ()

    def skipping(self, lines: Iterable[int]) -> str:
        """Return the line numbers to skip, with further ones added.

        Parameters
        ----------
        lines : iterable of int
            Further line numbers.

        Examples
        --------
        >>> Reading.from_keywords(skip_lines="1").skipping([3, 4, 32])
        '1,3:4,32'
        """
        parts = [] if self.skip_lines is None else [self.skip_lines]
        for _, run in groupby(enumerate(sorted(lines)), key=lambda place: place[1] - place[0]):
            numbers = [line for _, line in run]
            parts.append(f"{numbers[0]}:{numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}")
        return ",".join(parts)

    def changed_options(self) -> list[str]:
        """Return the names of the options that differ from their defaults."""
        return [f.name for f in fields(self) if getattr(self, f.name) != f.default]


def _separator_and_decimal(sep: str | None, decimal: str) -> tuple[str | None, str]:
    """Return the separator (None for the default) and the decimal mark, after checking both."""
    decimal = DECIMAL_MARKS.get(decimal.strip().lower(), decimal)
    between = None if sep is None else SEPARATORS.get(sep.strip().lower(), sep.replace("\\t", "\t"))
    if between is not None and (len(between) != 1 or between.isalnum() or between in '"\r\n'):
        raise BadInput(f"sep: {sep!r} is not a separator; give one character, or one of {', '.join(SEPARATORS)}")
    if decimal not in (".", ",") or decimal == between:
        taken = f'is already the separator; give decimal="{"," if decimal == "." else "."}"'
        raise BadInput(f"decimal: {decimal!r} {taken if decimal == between else 'is not a decimal mark; use . or ,'}")
    return between, decimal


def _check_kinds(given: Mapping[str, Any]) -> None:
    """Raise an error for unknown option names and for values of the wrong type."""
    names = [field.name for field in fields(Reading)]
    for unknown in set(given) - set(names):
        meant = did_you_mean(unknown, names)
        raise TypeError(f"unexpected keyword argument {unknown!r}{meant}")
    for name in ("sep", "decimal", "comment", "encoding", "na", "encode", "thousands"):
        if not isinstance(given[name], str) and (given[name] is not None or name not in MAY_LACK):
            raise BadInput(f"{name}: {given[name]!r} is not a text; give a text")
    if not isinstance(given["index_col"], str | int | None):
        raise BadInput(
            f"index_col: {given['index_col']!r} is neither the name nor the position of a column; give one of these"
        )
    for name in ("header", "keep_default_na", "na_indicator"):
        if not isinstance(given[name], bool):
            raise BadInput(f"{name}: {given[name]!r} is neither True nor False; give one of these")


def _thousands(given: str | None, decimal: str) -> str | None:
    """Return the mark that groups digits, from its keyword or any of its forms."""
    if given is None:
        return None
    forms = {form: mark for mark, several in SAME.items() for form in several}
    marks = {"comma": ",", "point": ".", "dot": "."} | {word: mark for mark, word in WORDS.items()} | forms
    mark = marks.get(given.strip().lower() or given, given)
    if mark not in (",", ".", NONE, *WORDS):
        raise BadInput(
            f"thousands: {given!r} is not a thousands separator; use comma, point, space, apostrophe or none"
        )
    if mark == decimal:
        point = "," if decimal == "." else "."
        raise BadInput(
            f'thousands: {given!r} is already the decimal mark; give decimal="{point}" too, or thousands="none"'
        )
    return mark


def _codes(given: Any) -> tuple[str, ...]:
    """Return missing-value codes as texts; a code of one column begins with its name: `bmi=-9`."""
    if isinstance(given, Mapping):
        return tuple(f"{column}={code}" for column, codes in given.items() for code in _codes(codes))
    several = given.split(",") if isinstance(given, str) else [given] if isinstance(given, Real) else given or ()
    listed = list(several) if isinstance(several, Iterable) else [None]
    if not all(isinstance(word, str | Real) for word in listed):
        raise BadInput(f"na_values: {given!r} is not a list of texts and numbers; give such a list")
    return tuple(str(word).strip() for word in listed)


@lru_cache(maxsize=64)
def _find_numbers(words: frozenset[str]) -> tuple[float, ...]:
    """Return the numbers among some words; computed once for all columns with the same words."""
    return tuple(value for value in parse_texts(tuple(words)).tolist() if value == value) if words else ()


def _column_names(given: Any, option: str) -> tuple[str, ...]:
    """Return column names from a text or several names."""
    if isinstance(given, str):
        return parse_names(given, option)
    if not isinstance(given, Iterable | None):
        raise BadInput(f"{option}: {given!r} is not a list of column names; give such a list")
    return tuple(map(str, given or ()))


ORDER_FORM = "give the values of a column from the lowest to the highest, as 'size=small<medium<large'"


def _line_range(text: str) -> range:
    """Return the line numbers in a text such as `3` or `1:3`; raise ValueError for any other text."""
    first, _, last = text.partition(":")
    lines = range(int(first), int(last or first) + 1)
    if not lines or lines[0] < 1:
        raise ValueError(text)
    return lines


def _line_numbers(given: Any) -> str | None:
    """Return line numbers as one text, from a text, a number or several numbers."""
    if given is None or given == "none":
        return None
    several = isinstance(given, Iterable) and not isinstance(given, str)
    text = ",".join(str(number) for number in given) if several else str(given).replace(" ", "")
    try:
        for item in text.split(","):
            _line_range(item)
    except ValueError:
        raise BadInput(f"skip_lines: {given!r} is not a list of line numbers; count from 1, as in 1:3,32") from None
    return text


def order_text(column: str, words: Sequence[str]) -> str:
    """Return the order of the levels of a column as text in the form of the option.

    Parameters
    ----------
    column : str
        The name of the column.
    words : sequence of str
        Levels of the column, from the lowest to the highest.

    Examples
    --------
    >>> order_text("size", ["small", "large"]), Reading.from_keywords(order=order_text("age", ["<18", "18+"])).orders
    ('size=small<large', {'age': ('<18', '18+')})
    """
    text = io.StringIO()
    csv.writer(text, delimiter="<", lineterminator="").writerow(words)
    return f"{column}={text.getvalue()}"


def _orders(given: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the ordered levels of columns, from a mapping or from texts such as `size=small<medium<large`."""
    orders = list[tuple[str, tuple[str, ...]]]()
    for column, listed in given.items() if isinstance(given, Mapping) else _split_orders(given):
        if isinstance(listed, str):
            listed = next(csv.reader([listed], delimiter="<"), [])
        words = tuple(str(word).strip() for word in listed) if isinstance(listed, Iterable) else ()
        if len(words) < 2 or not all(words) or len(set(words)) < len(words):
            fault = f"not a list of two or more different values for column {column!r}"
            raise BadInput(f"order: {listed!r} is {fault}; {ORDER_FORM}")
        name = str(column).strip()
        if name in dict(orders):
            raise BadInput(f"order: column {name!r} is given twice; {ORDER_FORM}")
        orders.append((name, words))
    return tuple(orders)


def _split_orders(given: Any) -> list[list[str]]:
    """Return the column and the listed levels of every text."""
    texts = [given] if isinstance(given, str) else given or ()
    if not isinstance(texts, Iterable) or not all(isinstance(text, str) and "=" in text for text in texts):
        raise BadInput(f"order: {given!r} is not a column with its values; {ORDER_FORM}")
    return [text.split("=", 1) for text in texts]


STRICT = Reading()


@dataclass(frozen=True)
class Applied:
    """The preprocessing of a data set, which is stored to transform new rows in the same way.

    Attributes
    ----------
    how : Reading
        Requested options.
    columns : tuple of str
        Feature columns as named in the file; a text column may have become several features.
    means : mapping of str to float
        Mean or median over all rows that replaces missing cells, by column.
    levels : mapping of str to tuple of str
        Levels by text column; includes the target if it holds two text values.
    left_out : int
        Number of rows that were dropped.
    marked : tuple of str
        Columns with an additional column that marks their missing cells.
    filled : tuple of str, optional
        Columns with imputed cells; None if they are not known.
    notes : tuple of str
        Sentences about the preprocessing for the user.
    date_forms : mapping of str to str
        Date format of each date column, such as `%Y-%m-%d`.
    absent : mapping of str to int, optional
        Number of rows with a missing cell of each text column whose missing cells are a level; None if not known.
    invalid : mapping of int to str, optional
        Row numbers of new rows, from 1, that were dropped because of an invalid value, each with the reason; None if
        such rows are an error.
    """

    how: Reading
    columns: tuple[str, ...]
    means: Mapping[str, float] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: int = 0
    notes: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    filled: tuple[str, ...] | None = None
    date_forms: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, int] | None = None
    invalid: Mapping[int, str] | None = None

    @property
    def invalid_rows_warning(self) -> str:
        """Warning that lists the new rows that were dropped because of an invalid value; empty if there are none."""
        if not self.invalid:
            return ""
        rows, reasons = plural(len(self.invalid), "row"), list(dict.fromkeys(self.invalid.values()))
        more = f"; and {several(len(reasons) - MOST_NAMED, 'other value')}" if len(reasons) > MOST_NAMED else ""
        return f"no prediction for {rows} {STRICT.skipping(self.invalid)}: {'; '.join(reasons[:MOST_NAMED])}{more}"

    @property
    def is_told(self) -> bool:
        """True if new rows need preprocessing; False for a plain table that has only notes."""
        return bool(self.how.changed_options() or self.means or self.levels or self.left_out)

    @property
    def factors(self) -> tuple[str, ...]:
        """Text columns that became several features, one for each level."""
        return tuple(name for name in self.levels if len(self.column_features(name)) > 1)

    def source_columns(self, features: Collection[str]) -> list[str]:
        """Return the columns of the file from which some features are made."""
        return [name for name in self.columns if any(made in features for made in self.column_features(name))]

    def column_features(self, column: str) -> tuple[str, ...]:
        """Return the features that are made from a column of the file."""
        if column in self.levels:
            return feature_names(column, self.levels[column], self.how.column_encoding(column))
        numbers = date_features(column, self.how.dates) if column in self.date_forms else (column,)
        return (*numbers, *(indicator_name(name) for name in numbers if name in self.marked))


def indicator_name(column: str) -> str:
    """Return the name of the column that marks the missing cells of another column.

    Examples
    --------
    >>> indicator_name("age")
    'age=(missing)'
    """
    return f"{column}={ABSENT}"


def feature_names(column: str, levels: Sequence[str], encode: Encode) -> tuple[str, ...]:
    """Return the names of the features that a text column becomes.

    Two opposites, such as no and yes, become one feature with the name of the column, as do all levels under `ordinal`.
    Any other two levels become one feature named after the second level. More levels become one feature each.

    Parameters
    ----------
    column : str
        Name of the column.
    levels : sequence of str
        Levels of the column.
    encode : Encode
        Requested encoding.

    Examples
    --------
    >>> feature_names("sex", ("f", "m"), Encode.ONEHOT), feature_names("ill", ("no", "yes"), Encode.ONEHOT)
    (('sex=m',), ('ill',))
    >>> feature_names("size", ("L", "M", "S"), Encode.ONEHOT)
    ('size=L', 'size=M', 'size=S')
    """
    if encode is Encode.ORDINAL or tuple(levels) in OPPOSITES:
        return (column,)
    return tuple(f"{column}={level}" for level in (levels[1:] if len(levels) == 2 else levels))


HELD_OUT_TOO = ", held-out ones included"
OVER_ALL_ROWS = f"over all rows{HELD_OUT_TOO}"  # part of the note on imputed cells


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


def describe_imputed_cells(counts: Mapping[str, int], fill: str) -> list[tuple[str, str]]:
    """Return a note on the number of imputed cells and their fill values, with the names of their columns."""
    names = abbreviate_list([repr(name) for name, count in counts.items() if count])
    n_cells = sum(counts.values())
    whose = "its" if n_cells == 1 else "their"
    return [(f"{several(n_cells, 'missing value')} imputed by the {fill} of {whose} column", names)] if names else []


def with_weights_in_notes(reading: Applied, counts: Mapping[str, int]) -> Applied:
    """Return the preprocessing with the note on imputed cells for rows with weights, which fill values ignore.

    Parameters
    ----------
    reading : Applied
        The preprocessing of all rows.
    counts : mapping of str to int
        Numbers of imputed cells in the rows of positive weight, by column.

    Examples
    --------
    >>> reading = Applied(Reading(na=Missing.MEAN), ("a",), notes=(f"2 missing values imputed {OVER_ALL_ROWS}",))
    >>> with_weights_in_notes(reading, {"a": 1}).notes
    ("1 missing value imputed by the unweighted mean of its column over all rows, held-out ones included, in 'a'",)
    """
    notes = [note for note in reading.notes if OVER_ALL_ROWS not in note]
    place = next((place for place, note in enumerate(reading.notes) if OVER_ALL_ROWS in note), len(notes))
    said = describe_imputed_cells(counts, f"unweighted {reading.how.na}")
    notes[place:place] = [f"{cells} {OVER_ALL_ROWS}, in {names}" for cells, names in said]
    return replace(reading, notes=tuple(notes))


def drop_fold_wording(notes: Iterable[str]) -> tuple[str, ...]:
    """Return notes with their wording for data without held-out rows.

    Examples
    --------
    >>> drop_fold_wording([f"filled with the mean {OVER_ALL_ROWS}, in 'age'"])
    ("filled with the mean over all rows, in 'age'",)
    """
    return tuple(note.replace(OVER_ALL_ROWS, OVER_ALL_ROWS.removesuffix(HELD_OUT_TOO)) for note in notes)
