"""Options for reading a table: number format, treatment of cells, and choice of columns.

A number format has a decimal mark and may have a mark that groups digits by three. A text can be ambiguous: `1,078` is
1078 if the comma groups digits and 1.078 if it is the decimal mark. The format of a column is inferred from all of its
cells. If both formats can read every cell of a column, an error states both numbers and the options for each.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from itertools import groupby
from numbers import Integral, Real
from typing import Any, NamedTuple

from sparsecv_mio.data.dates import date_features, parse_date_parts
from sparsecv_mio.digits import MOST_NAMED, abbreviate_list, plural, quoted_name
from sparsecv_mio.errors import BadInput, did_you_mean, parse_keyword
from sparsecv_mio.words import Encode, Missing

NONE = "none"  # keyword: digits are not grouped, even if the file looks like it
SAME = {"'": "'\u2019", " ": " \u00a0\u2009\u202f"}  # marks with the same meaning
WORDS = {" ": "space", "'": "apostrophe"}

_NUMBER = r"(?:\d{1,3}(?:[.,'\u2019 \u00a0\u2009\u202f]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?"
_OTHER_NUMBER = r"\d+(?:,\d+)+(?:\.\d+)?|\d{1,3}(?:_\d{3})+(?:\.\d*)?|\d\d?(?::\d\d){1,2}(?:[.,]\d+)?(?: ?[aApP][mM])?"
_SIGN = r"[$\u20ac\u00a3\u00a5\u20b9\u20a9\u20bd%()\u2212-]|USD|EUR|GBP|CHF|JPY|\s"
BOUND = re.compile(rf"[<>\u2264\u2265~]=?\s*[+-]?{_NUMBER}")
DECORATED = re.compile(rf"(?:[<>\u2264\u2265~=+\u2013]|{_SIGN})*(?:{_NUMBER}|{_OTHER_NUMBER})(?:{_SIGN})*")
DATE = re.compile(r"(?:\d{4}-\d\d?-\d\d?|\d\d?[./-]\d\d?[./-]\d{2,4}|\d{4}/\d\d?/\d\d?)(?:[T ]\d.*)?")


class Way(NamedTuple):
    """A number format: the decimal mark, and the mark that groups digits by three, if there is one."""

    decimal: str
    thousands: str | None

    @property
    def has_groups(self) -> bool:
        """True if a mark groups digits."""
        return self.thousands not in (None, NONE)

    def changed_keywords(self, now: Way) -> str:
        """Return the keywords that request this format instead of another one."""
        changed = [f'decimal="{self.decimal}"'] if self.decimal != now.decimal else []
        if self.thousands != now.thousands:
            mark = self.thousands or NONE
            changed.append(f'thousands="{WORDS.get(mark, mark)}"')
        return " and ".join(changed)


POINT = Way(".", None)
WAYS = (
    POINT, Way(",", None), Way(".", ","), Way(",", "."), Way(".", "'"), Way(".", " "), Way(",", "'"), Way(",", " "),
)  # fmt: skip


@cache
def _grouped_digits_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    mark, point = re.escape(SAME.get(thousands, thousands)), re.escape(decimal)
    return re.compile(rf"\s*[+-]?[1-9]\d{{0,2}}(?:[{mark}]\d{{3}})+(?:{point}\d*)?\s*", re.ASCII)


def parse_number(text: str, decimal: str = ".", thousands: str | None = None) -> float:
    """Return a decimal number; raise ValueError for other text, including Python spellings such as 1_000.

    Parameters
    ----------
    decimal : str
        Decimal mark.
    thousands : str, optional
        Mark that groups digits by three.

    Examples
    --------
    >>> parse_number(" 1e-3"), parse_number("1,5", ","), parse_number("12.078,5", ",", ".")
    (0.001, 1.5, 12078.5)
    """
    if thousands is not None and thousands != NONE and _grouped_digits_pattern(decimal, thousands).fullmatch(text):
        for mark in SAME.get(thousands, thousands):
            text = text.strip().replace(mark, "")
    if "_" in text or not text.isascii():
        raise ValueError(text)
    if decimal != ".":
        if "." in text:
            raise ValueError(text)
        text = text.replace(decimal, ".")
    return float(text)


def is_number(text: str, way: Way) -> bool:
    """Return True if a text is a number in the given format."""
    try:
        parse_number(text, *way)
    except ValueError:
        return False
    return True


def describe_unreadable_text(text: str) -> str:
    """Return a description of a text that is neither a word nor a plain number, with advice; empty for a word.

    Examples
    --------
    >>> describe_unreadable_text("22%"), describe_unreadable_text("1st")
    ('numbers with signs or other separators: write plain numbers, such as -1234.5', '')
    """
    if DATE.fullmatch(text.strip()):
        return 'dates: convert them to numbers of days with dates="days"'
    is_decorated = DECORATED.fullmatch(text.strip())
    return "numbers with signs or other separators: write plain numbers, such as -1234.5" if is_decorated else ""


def possible_formats(texts: Iterable[str], now: Way, is_decimal_sure: bool = False) -> list[Way]:
    """Return the formats in which all texts are numbers: none, one, or two that read different numbers.

    Parameters
    ----------
    texts : iterable of str
        Texts that are not numbers now; a text without a digit is no number in any format and is left out.
    now : Way
        Format in which they are read; a given thousands separator admits no other formats.
    is_decimal_sure : bool
        True if other numbers of the table show that the decimal mark is one.

    Examples
    --------
    >>> possible_formats(["1,5", "k.A."], POINT), possible_formats(["1,078"], POINT)
    ([Way(decimal=',', thousands=None)], [Way(decimal=',', thousands=None), Way(decimal='.', thousands=',')])
    """
    spelled = [text for text in texts if any(map(str.isdigit, text))]
    fitting = [
        way for way in {None: WAYS, NONE: WAYS[:2]}.get(now.thousands, ())
        if (not is_decimal_sure or way.decimal == now.decimal)
        and spelled and all(is_number(text, way) for text in spelled)
    ]  # fmt: skip
    values = [parse_number(spelled[0], *way) for way in fitting]
    return fitting[:1] + [way for way, value in zip(fitting, values, strict=True) if value != values[0]][:1]


def describe_readings(text: str, now: Way, ways: Sequence[Way]) -> str:
    """Return the numbers that a text is in two formats, with the keywords for each, from the larger number on.

    Examples
    --------
    >>> describe_readings("1.078", POINT, [POINT, Way(",", ".")])
    '1078 with decimal="," and thousands="." and 1.078 with thousands="none"; give the options that apply'
    """
    read = sorted(((parse_number(text, *way), way) for way in ways), key=lambda one: -abs(one[0]))
    options = [way.changed_keywords(now if way.thousands else now._replace(thousands=NONE)) for _, way in read]
    each = [f"{value:.10g} with {keywords}" for (value, _), keywords in zip(read, options, strict=True)]
    return f"{' and '.join(each)}; give the options that apply"


class Marks(NamedTuple):
    """Evidence in the numbers of a column that the decimal mark is one.

    `grouped` is the first number whose mark could also group digits, such as `1.078`, and `row` its row from 1. `plain`
    and `large` state whether another cell is a nonzero integer without a mark, and one of at least four digits. `proof`
    states that a cell shows the mark to be a decimal mark: `1.07`, `0.576`.
    """

    way: Way
    grouped: str = ""
    row: int = 0
    plain: bool = False
    large: bool = False
    proof: bool = False

    @classmethod
    def from_texts(cls, numbers: Mapping[str, int], way: Way) -> Marks:
        """Return the evidence in texts that are numbers, each with the first row that holds it."""
        group = re.compile(rf"\s*[+-]?[1-9]\d{{0,2}}{re.escape(way.decimal)}\d{{3}}\s*", re.ASCII)
        marked = [text for text in numbers if way.decimal in text]
        grouped = next(filter(group.fullmatch, marked), "")
        digits = [text.strip().lstrip("+-").lstrip("0") for text in numbers]
        longest = max((len(text) for text in digits if text.isdigit()), default=0)
        proof = not all(map(group.fullmatch, marked))
        return cls(way, grouped.strip(), numbers.get(grouped, 0), longest > 0, longest > 3, proof)

    def is_ambiguous(self, evident: bool, semicolons: bool) -> bool:
        """Return True if the decimal mark may group digits.

        Parameters
        ----------
        evident : bool
            True if other columns show that it does not. A decimal comma next to integers, as in `1,078` and `576`, is
            still ambiguous: in the wrong format some cells would be too small by a factor of 1,000.
        semicolons : bool
            True if cells are separated by semicolons, as is usual with decimal commas; then points in every row are
            ambiguous as well. Otherwise points are ambiguous only next to integers, none of which has four digits.
        """
        if self.way.thousands is not None or not self.grouped or self.proof:
            return False
        if self.way.decimal == ".":
            return (self.plain or semicolons) and not self.large and not evident
        return self.plain or not evident


def doubts(columns: Mapping[str, Marks], sep: str | None = None) -> dict[str, str]:
    """Return a description of each column whose numbers are ambiguous, by name.

    Parameters
    ----------
    sep : str, optional
        Separator of the cells, if it was given.
    """
    evident = any(marks.proof for marks in columns.values())
    sentences = dict[str, str]()
    for name, marks in columns.items():
        if marks.is_ambiguous(evident, sep == ";"):
            mark = marks.way.decimal
            ways = Way(mark, None), Way("," if mark == "." else ".", mark)
            numbers = describe_readings(marks.grouped, marks.way, ways)
            sentences[name] = f"{marks.grouped!r} in row {marks.row} is {numbers}"
    return sentences


def check_marks(columns: Mapping[str, Marks], sep: str | None = None) -> None:
    """Raise `BadInput` that names the columns with ambiguous numbers, and the keywords for each format.

    Parameters
    ----------
    sep : str, optional
        Separator of the cells, if it was given.
    """
    if sentences := doubts(columns, sep):
        named = abbreviate_list([repr(name) for name in sentences])
        raise BadInput(f"{plural(len(sentences), 'column')} {named}: {next(iter(sentences.values()))}")


def both_readings(columns: Mapping[str, Marks]) -> tuple[str, ...]:
    """Return a note on the other numbers that a file may hold if every point has three digits after it.

    In such a file nothing shows whether points group digits; they are read as decimal marks, and this note is added.
    """
    names = [name for name, marks in columns.items() if marks.grouped and not marks.plain]
    if not names or any(marks.proof or marks.way != POINT for marks in columns.values()):
        return ()
    text, named = columns[names[0]].grouped, abbreviate_list(list(map(repr, names)))
    return (
        f"{plural(len(names), 'column')} {named}: three digits behind every point, so {text} is read as a decimal "
        f"number; if it is {text.replace('.', '')}, give --decimal , --thousands . (decimal, thousands in Python)",
    )


SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "pipe": "|"}
DECIMAL_MARKS = {"comma": ",", "point": "."}
MARKS = ",;\t |:"
OPPOSITES = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"))
YES_AND_NO = (
    *OPPOSITES, ("nein", "ja"), ("nee", "ja"), ("nej", "ja"), ("nei", "ja"), ("non", "oui"), ("no", "si"), ("no", "sí"),
    ("no", "sì"), ("não", "sim"), ("nao", "sim"), ("nie", "tak"), ("ne", "ano"), ("ei", "kyllä"),
)  # fmt: skip
OF_CELLS = (
    "decimal",
    "na",
    "na_indicator",
    "na_values",
    "keep_default_na",
    "encode",
    "order",
    "dates",
    "thousands",
)  # options that also apply to frames
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
    na_values : tuple of str
        Additional missing-value codes, numbers or words: `-999`, or `refused`.
    keep_default_na : bool
        True if the usual codes (NA, null, none and similar ones) count as missing; otherwise they are ordinary words.
    na_indicator : bool
        True to add, for every imputed column, a column of zeros and ones that marks its missing cells.
    order : tuple of (str, tuple of str)
        Text columns that are coded by rank, 0, 1, ..., for every value of `encode`; each with its values from the
        lowest to the highest.
    skip_lines : str, optional
        Numbers of lines of a text table to skip, counted from 1: `1:3,32`.
    dates : tuple of str
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
        values: dict[str, Any] = {declared_field.name: declared_field.default for declared_field in fields(cls)}
        values.update(words)
        _check_kinds(values)
        comment, encoding = values["comment"], values["encoding"]
        between, decimal = _separator_and_decimal(values["sep"], values["decimal"])
        if comment is not None and (len(comment) != 1 or comment.isalnum() or comment in MARKS):
            raise BadInput(f"comment: {comment!r} cannot begin a comment; give one character, such as #")
        try:
            codecs.lookup(encoding)
        except (LookupError, ValueError):
            raise BadInput(f"encoding: {encoding!r} is unknown; use for example latin-1, cp1252 or utf-16") from None
        index = None if values["index_col"] is None else str(values["index_col"])
        missing, words_as = (
            parse_keyword(Missing, values["na"], "na"),
            parse_keyword(Encode, values["encode"], "encode"),
        )
        if values["na_indicator"] and not missing.uses_imputation:
            raise BadInput(f"na_indicator: requires na mean or median; with {missing} no value is imputed")
        groups, nothing = _thousands(values["thousands"], decimal), _absent_words(values["na_values"])
        return cls(
            between, decimal, comment, encoding, values["header"], index, missing, words_as, groups, nothing,
            values["keep_default_na"], values["na_indicator"], _orders(values["order"]),
            _line_numbers(values["skip_lines"]), parse_date_parts(values["dates"] or ()),
        )  # fmt: skip

    @property
    def allows_nonnumeric_cells(self) -> bool:
        """True if cells that are not plain numbers are allowed."""
        encodes = self.encode is not Encode.ERROR or bool(self.order)
        return self.na is not Missing.ERROR or encodes or self.way.has_groups or bool(self.na_values or self.dates)

    @property
    def orders(self) -> dict[str, tuple[str, ...]]:
        """Levels of each column with a declared order, from the lowest to the highest."""
        return dict(self.order)

    def column_encoding(self, column: str) -> Encode:
        """Return the encoding of a text column."""
        return Encode.ORDINAL if column in self.orders else self.encode

    def add_declared_orders(self, orders: Mapping[str, tuple[str, ...]]) -> Reading:
        """Return options with the orders declared by the data, which apply to `ordinal`; `order` has priority.

        Parameters
        ----------
        orders : mapping of str to tuple of str
            Levels of each ordered category, from the lowest to the highest.
        """
        return replace(self, order=tuple({**orders, **self.orders}.items())) if self.encode is Encode.ORDINAL else self

    @cached_property
    def absent(self) -> tuple[frozenset[str], frozenset[float]]:
        """Additional missing-value codes: words in lower case, and numbers."""
        return frozenset(word.strip().lower() for word in self.na_values), frozenset(_read_numbers(self.na_values))

    @property
    def way(self) -> Way:
        """Number format."""
        return Way(self.decimal, self.thousands)

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


def _read_numbers(texts: Iterable[str]) -> Iterator[float]:
    for text in texts:
        with suppress(ValueError):
            yield parse_number(text)


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
            raise BadInput(f"{name}: {given[name]!r} is not a text")
    if not isinstance(given["index_col"], str | int | None):
        raise BadInput(f"index_col: {given['index_col']!r} is neither the name nor the position of a column")
    for name in ("header", "keep_default_na", "na_indicator"):
        if not isinstance(given[name], bool):
            raise BadInput(f"{name}: {given[name]!r} is neither True nor False")


def _thousands(given: str | None, decimal: str) -> str | None:
    """Return the mark that groups digits, from its keyword or any of its forms."""
    if given is None:
        return None
    marks = {"comma": ",", "point": ".", "dot": ".", NONE: NONE} | {word: mark for mark, word in WORDS.items()}
    forms = {form: mark for mark, several in SAME.items() for form in several}
    mark = marks.get(given.strip().lower(), forms.get(given, given))
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


def _absent_words(given: Any) -> tuple[str, ...]:
    """Return missing-value codes as texts."""
    several = given.split(",") if isinstance(given, str) else [given] if isinstance(given, Real) else given or ()
    listed = list(several) if isinstance(several, Iterable) else [None]
    if not all(isinstance(word, str | Real) for word in listed):
        raise BadInput(f"na_values: {given!r} is not a list of texts and numbers")
    return tuple(str(word).strip() for word in listed)


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


@dataclass(frozen=True)
class Wanted:
    """The columns that the user requests, before the header is known."""

    target: str | int
    features: Sequence[str] | None
    drop: Sequence[str] | None
    aux: tuple[str, ...]
    needed: bool = True  # True if the data must have the target
    index: str | None = None  # a column that only numbers the rows
    two_words: bool | None = False  # True if the target may hold two text values, None if the caller has no loss
    sure: bool = False  # True if the number format is known, as for a second read
    role: str = "id, fold, group, weight or exposure column"  # role of the columns in `aux`, for messages

    @property
    def classes_by(self) -> str:
        """Keyword that makes a target of two text values two classes."""
        return "two_words=True" if self.two_words is None else 'loss="logistic"'

    @property
    def has_fixed_options(self) -> bool:
        """True if the options are those of a record, for its data or new rows, so no others can be proposed."""
        return self.sure or not self.needed

    def select_columns(self, header: Sequence[str], void: Collection[int] = ()) -> Selection:
        """Return the positions of the requested columns in a header.

        Parameters
        ----------
        header : sequence of str
            Names of the columns.
        void : collection of int
            Positions of columns that have neither a name nor values; they are left out.

        Raises
        ------
        BadInput
            If a name is missing, unknown or given twice, or a column has two uses.

        Examples
        --------
        >>> Wanted("y", None, ["b"], ("g",)).select_columns(["a", "b", "g", "y"]).names
        ('a',)
        """
        features, drop = _words(self.features, "features"), _words(self.drop, "drop")
        names, no_features = self._complete_names(header, void)
        if no_features and features is None:
            drop = list(dict.fromkeys([*(drop or ()), *no_features]))
        if self.has_fixed_options and features is not None:  # names of a record are never positions
            if self.needed:
                _position(names, str(self.target), "target")
            _check_there(features, names)
        _check_header(names)
        goal = _target(names, self.target) if self.needed or self.target in names else None
        extra = tuple(_position(names, name, self.role) for name in dict.fromkeys(self.aux))
        if goal in extra:
            raise BadInput(
                f"column {names[goal or 0]!r} is the target and cannot give folds, weights, exposures or ids too: "
                "use another"
            )
        _check_choice(features, drop)
        places = _feature_positions(names, goal, extra if self.needed else (), features, drop)
        if not places:
            raise BadInput("no feature is left; keep at least one column in addition to the target")
        return Selection(names, goal, tuple(sorted(places)), extra)

    def _complete_names(self, header: Sequence[str], void: Collection[int]) -> tuple[tuple[str, ...], list[str]]:
        """Return the names of all columns, and the columns that are no features: void ones and the index."""
        names = tuple(f"(column {j + 1})" if j in void else name for j, name in enumerate(header))
        no_features = [names[j] for j in void]
        if self.index is not None:  # it may have no name
            place = _column(names, self.index, "index column")
            names = (*names[:place], names[place] or "(index)", *names[place + 1 :])
            no_features.append(names[place])
        return names, no_features


@dataclass(frozen=True)
class Selection:
    """Positions in a header: the target, if any, the features in file order, and the auxiliary columns by name."""

    header: tuple[str, ...]
    target: int | None
    features: tuple[int, ...]
    aux: tuple[int, ...]

    @property
    def goal(self) -> str:
        """Name of the target, empty if there is none."""
        return "" if self.target is None else self.header[self.target]

    @property
    def names(self) -> tuple[str, ...]:
        """Feature names."""
        return tuple(self.header[j] for j in self.features)

    @property
    def numeric(self) -> tuple[int, ...]:
        """Positions of every column that must hold numbers: the features, then the target."""
        return self.features if self.target is None else (*self.features, self.target)


def _feature_positions(
    names: tuple[str, ...], goal: int | None, extra: tuple[int, ...],
    features: Sequence[str] | None, drop: Sequence[str] | None,
) -> set[int]:  # fmt: skip
    """Return the positions of the features, from the columns to keep or to drop."""
    if features is None:
        gone = {_column(names, name, "dropped column") for name in drop or ()}
        if goal in gone:
            raise BadInput(
                f"column {names[goal]!r} is the target and cannot be dropped; remove it from the dropped columns"
            )
        return set(range(len(names))) - gone - {goal, *extra}
    chosen = _positions(names, features)
    if goal in chosen:
        raise BadInput(f"column {names[goal]!r} is the target and cannot be a feature; remove it from the features")
    for j in chosen.intersection(extra):
        uses = "gives folds, weights, exposures or ids and cannot be a feature"
        raise BadInput(f"column {names[j]!r} {uses}; remove it from the features")
    return chosen


def _check_header(names: tuple[str, ...]) -> None:
    for j, name in enumerate(names):
        if not name:
            raise BadInput(
                f"column {j + 1} has no name; name it in the header, or drop it with index_col={j} if it only "
                "numbers the rows"
            )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise BadInput(f"column name {twice[0]!r} is in the header more than once; give every column a different name")


def _words(given: Sequence[str | int] | None, option: str) -> list[str] | None:
    """Return names or positions of columns as a list of texts; a single value is allowed."""
    if given is None:
        return None
    several = [given] if isinstance(given, str | Integral) else given
    if not isinstance(several, Iterable) or not all(isinstance(name, str | Integral) for name in several):
        raise BadInput(f"{option}: {given!r} is not a list of column names or positions")
    return [str(name) for name in several]


def _check_choice(features: list[str] | None, drop: list[str] | None) -> None:
    if features is not None and drop is not None:
        raise BadInput("features and drop were both given; use one of the two")
    _check_repeats(features, "features")
    _check_repeats(drop, "drop")


def _check_repeats(given: Sequence[str] | None, option: str) -> None:
    twice = [name for name, count in Counter(given or ()).items() if count > 1]
    if twice:
        raise BadInput(f"column {twice[0]!r} is listed twice in {option}; list it once")


def _target(names: tuple[str, ...], target: str | int) -> int:
    word = str(target).strip()
    if not word:
        raise BadInput(f"the target is missing; give one of {_list_names(names)}")
    return _column(names, word, "target")


def _column(names: tuple[str, ...], given: str, role: str) -> int:
    """Return the position of a column given by name or, if no column has that name, by position."""
    word = str(given).strip()
    if word in names:
        return names.index(word)
    if word.isascii() and word.isdigit():
        if len(word) < 10 and int(word) < len(names):
            return int(word)
        raise BadInput(f"{role} {word} is neither a name nor one of the positions 0..{len(names) - 1}")
    return _position(names, word, role)


def _position(names: tuple[str, ...], name: str, role: str) -> int:
    if name not in names:
        if all(item.strip() in names for item in name.split(",")):
            raise BadInput(f"{role} {name!r} is the name of several columns; give a list of names")
        near = did_you_mean(name, names)
        raise BadInput(f"{role} {name!r} is not in the data{near}; the columns are {_list_names(names)}")
    return names.index(name)


def _positions(names: tuple[str, ...], features: Sequence[str]) -> set[int]:
    missing = [name for name in features if name not in names and not name.strip().isdigit()]
    if len(missing) > 1:
        _check_there(missing, names)
    return {_column(names, name, "feature") for name in features}


def _check_there(wanted: Sequence[str], names: Sequence[str]) -> None:
    """Raise `BadInput` that names the features that are not columns of the data."""
    header = set(names)
    missing = [name for name in wanted if name not in header]
    if len(missing) == 1:
        _position(tuple(names), missing[0], "feature")
    if missing:
        named = abbreviate_list([repr(name) for name in missing])
        raise BadInput(f"features {named} are not in the data; the columns are {_list_names(tuple(names))}")


def _list_names(names: tuple[str, ...]) -> str:
    """Return names for a message; a long list has the first names and the last, which is often the target."""
    if len(names) <= MOST_NAMED:
        return ", ".join(map(quoted_name, names))
    first, last = ", ".join(map(quoted_name, names[: MOST_NAMED - 1])), quoted_name(names[-1])
    return f"{first}, ..., {last} ({len(names)} in all)"
