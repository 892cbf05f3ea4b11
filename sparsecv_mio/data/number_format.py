"""Functions that convert texts to numbers: numbers of several formats, dates and durations.

A number format consists of a decimal mark and, optionally, a mark between groups of three digits. A text such as
`1.078` is ambiguous: the number is 1.078 if the point is the decimal mark, and 1078 if the point groups digits. If the
numbers of a column do not show which meaning applies, the program raises an error whose message names the option for
each meaning. Dates are converted to numbers of days, or to parts such as the year and the month. Durations are
converted to numbers of days.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray
from sparsecv_mio.digits import abbreviate_list, plural
from sparsecv_mio.errors import BadInput, did_you_mean

NONE = "none"  # keyword: digits are not grouped, even if the file looks like it
SAME = {"'": "'\u2019", " ": " \u00a0\u2009\u202f"}  # marks with the same meaning
WORDS = {" ": "space", "'": "apostrophe"}
NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity)$"  # with a decimal point


class NumberFormat(NamedTuple):
    """A number format: the decimal mark, and the mark that groups digits by three, if there is one."""

    decimal: str
    thousands: str | None

    def describe_change(self, now: NumberFormat) -> str:
        """Return the keywords that request this format instead of another one."""
        changed = [f'decimal="{self.decimal}"'] if self.decimal != now.decimal else []
        mark = self.thousands or NONE
        changed += [f'thousands="{WORDS.get(mark, mark)}"'] if self.thousands != now.thousands else []
        return " and ".join(changed)


POINT = NumberFormat(".", None)
FORMATS = tuple(
    NumberFormat(*marks) for marks in ((".", None), (",", None), *product(".,", ",.' ")) if len({*marks}) > 1
)


def make_text_array(texts: Sequence[str]) -> Any:
    """Return texts as an Arrow array, without `pyarrow.array`, which loads pandas.

    Parameters
    ----------
    texts : sequence of str
        The texts.
    """
    import pyarrow as pa

    words = [text.encode("utf-8", "replace") for text in texts]
    ends = np.cumsum([0, *map(len, words)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(words), pa.py_buffer(ends), pa.py_buffer(b"".join(words)))


def parse_texts(texts: Any, number_format: NumberFormat = POINT) -> FloatArray:
    """Return the numbers in texts; NaN for every other text, including Python spellings such as 1_000.

    Parameters
    ----------
    texts : sequence of str or pyarrow.Array
        Texts; blanks around a number are ignored.
    number_format : NumberFormat
        Decimal mark and mark between groups of digits.

    Examples
    --------
    >>> parse_texts([" 1e-3", "1,5", "x"]), parse_texts(["12.078,5", "1.5"], NumberFormat(",", "."))
    (array([0.001,   nan,   nan]), array([12078.5,     nan]))
    """
    import pyarrow as pa
    from pyarrow import compute

    texts = compute.utf8_trim_whitespace(make_text_array(texts) if isinstance(texts, Sequence) else texts)
    decimal, thousands = number_format
    if thousands not in (None, NONE):
        mark = f"[{re.escape(SAME.get(str(thousands), str(thousands)))}]"
        grouped = rf"^[+-]?[1-9]\d{{0,2}}(?:{mark}\d{{3}})+(?:{re.escape(decimal)}\d*)?$"
        plain = compute.replace_substring_regex(texts, mark, "")
        texts = compute.if_else(compute.match_substring_regex(texts, grouped), plain, texts)
    if decimal != ".":
        texts = compute.replace_substring(compute.replace_substring(texts, ".", "?"), decimal, ".")
    with suppress(pa.ArrowInvalid):  # a text is not a number
        return to_numpy(compute.cast(texts, pa.float64()))
    are_numbers = compute.match_substring_regex(texts, NUMBER)
    return to_numpy(compute.cast(compute.if_else(are_numbers, texts, make_text_array(["nan"])[0]), pa.float64()))


def parse_cells(cells: Sequence[Any], number_format: NumberFormat) -> tuple[list[Any], Evidence]:
    """Return cells with numbers in place of texts that are numbers, and the evidence of their number format.

    Parameters
    ----------
    cells : sequence
        Texts, numbers and other objects.
    number_format : NumberFormat
        Format of the texts.
    """
    texts = [cell.strip() if isinstance(cell, str) else "" for cell in cells]
    if not any(texts):
        return list(cells), Evidence()
    numbers = parse_texts(texts, number_format)
    are_numbers = ~np.isnan(numbers)
    evidence = collect_evidence(make_text_array(texts), are_numbers[None], number_format.decimal).get(0, Evidence())
    values = zip(numbers.tolist(), are_numbers.tolist(), cells, strict=True)
    return [number if is_numeric else cell for number, is_numeric, cell in values], evidence


def is_number(text: str, number_format: NumberFormat = POINT) -> bool:
    """Return True if a text is a number in the given format."""
    return not math.isnan(parse_texts([text], number_format)[0])


def to_numpy(column: Any) -> NDArray[Any]:
    """Return an Arrow column without missing cells as a numpy array, without `to_numpy` of Arrow, which loads pandas.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray
        Numbers or truth values.
    """
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [np.from_dlpack(chunk) for chunk in chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.empty(0)


class Evidence(NamedTuple):
    """Evidence, from the texts of a column, that the decimal mark of the format does not group digits.

    `text` is the first number whose mark could also group digits, such as `1.078`, and `row` its row from 1.
    `has_whole` and `has_large` state whether another cell is a nonzero integer without a mark, and one of at least four
    digits. `is_settled` states that a cell shows the mark to be a decimal mark: `1.07`, `0.576`.
    """

    text: str = ""
    row: int = 0
    has_whole: bool = False
    has_large: bool = False
    is_settled: bool = False

    def add(self, other: Evidence) -> Evidence:
        """Return the evidence of this part of a column and of a later one."""
        first = self if self.text else other
        return Evidence(first.text, first.row, *(a or b for a, b in zip(self[2:], other[2:], strict=True)))


FEW_TEXTS = 1_000  # first texts of a table, which nearly always show that the point is the decimal mark


def collect_evidence(texts: Any, are_numbers: BoolArray, decimal: str, start: int = 0) -> dict[int, Evidence]:
    """Return the evidence in the texts of several columns by position, without columns that have none.

    Parameters
    ----------
    texts : pyarrow.Array
        Texts of all columns, without blanks around them, one column after the other.
    are_numbers : (m, r) bool array
        True for texts of a column (a row of the array) that are numbers.
    decimal : str
        Decimal mark. A point needs no further evidence if one of the first texts shows it to be the decimal mark.
    start : int
        Number of rows before these.
    """
    from pyarrow import compute

    def matching(pattern: str, n_texts: int = are_numbers.size) -> BoolArray:
        is_match = to_numpy(compute.match_substring_regex(texts[:n_texts], pattern)).astype(bool)
        return np.asarray(is_match & are_numbers.reshape(-1)[:n_texts])

    mark, rows = re.escape(decimal), are_numbers.shape[1]
    grouped = rf"^[+-]?[1-9]\d{{0,2}}{mark}\d{{3}}$"
    if decimal == ".":
        few = min(FEW_TEXTS, are_numbers.size)
        settling = np.flatnonzero(matching(mark, few) & ~matching(grouped, few))
        if settling.size:
            return {int(settling[0]) // rows: Evidence(is_settled=True)}
    marked = matching(mark).reshape(are_numbers.shape)
    if not marked.any():
        return {}
    in_groups, whole, large = (
        matching(pattern).reshape(are_numbers.shape)
        for pattern in (grouped, r"^[+-]?0*[1-9]\d*$", r"^[+-]?0*[1-9]\d{3,}$")
    )
    evidence = {}
    for j in np.flatnonzero(np.any(marked | whole, axis=1)).tolist():
        row = int(np.argmax(in_groups[j])) if in_groups[j].any() else None
        text, place = ("", 0) if row is None else (texts[j * rows + row].as_py(), start + row + 1)
        settled = bool(np.any(marked[j] & ~in_groups[j]))
        evidence[j] = Evidence(text, place, bool(whole[j].any()), bool(large[j].any()), settled)
    return evidence


def describe_formats(text: str, now: NumberFormat) -> str:
    """Return the options with which a text is a number, each with its number, from the largest on; empty for others.

    Parameters
    ----------
    text : str
        The text.
    now : NumberFormat
        Format in which numbers are read; a given thousands separator admits no other formats.

    Examples
    --------
    >>> print(describe_formats("1,5", POINT), describe_formats("1,078", POINT), sep="; ")
    decimal="," (1.5); thousands="," (1078) or decimal="," and thousands="none" (1.078)
    """
    formats: dict[float, NumberFormat] = {}
    for number_format in FORMATS if now.thousands in (None, NONE) else ():
        if is_number(text, number_format):
            formats.setdefault(float(parse_texts([text], number_format)[0]), number_format)
    if len(formats) > 1:
        formats = {value: each._replace(thousands=each.thousands or NONE) for value, each in formats.items()}
    largest_first = sorted(formats.items(), key=lambda item: -abs(item[0]))
    return " or ".join(f"{each.describe_change(now)} ({value:.10g})" for value, each in largest_first)


def describe_ambiguous(columns: Mapping[str, Evidence], now: NumberFormat, are_new: bool = False) -> dict[str, str]:
    """Return a description of each column whose numbers are ambiguous, with the options that settle it.

    A decimal comma next to integers, as in `1,078` and `576`, is always ambiguous: in the wrong format some cells would
    be too small by a factor of 1,000. Points are settled by decimals in another column and by an integer of four
    digits.

    Parameters
    ----------
    columns : mapping of str to Evidence
        Evidence by column.
    now : NumberFormat
        Format in which the numbers are read; a given thousands separator settles it.
    are_new : bool
        True for new rows of a model, in which points are ambiguous only next to integers.
    """
    is_point, is_settled = now.decimal == ".", any(evidence.is_settled for evidence in columns.values())

    def is_ambiguous(evidence: Evidence) -> bool:
        if not evidence.text or evidence.is_settled or now.thousands is not None:
            return False
        if is_point:
            return not (is_settled or evidence.has_large) and (evidence.has_whole or not are_new)
        return evidence.has_whole or not is_settled

    return {
        name: f"{evidence.text!r} in row {evidence.row} is ambiguous; give {describe_formats(evidence.text, now)}"
        for name, evidence in columns.items() if is_ambiguous(evidence)
    }  # fmt: skip


def check_ambiguous(descriptions: Mapping[str, str]) -> None:
    """Raise `BadInput` that names the columns with ambiguous numbers, and the options that settle them.

    Parameters
    ----------
    descriptions : mapping of str to str
        Result of :func:`describe_ambiguous`.
    """
    if descriptions:
        named = abbreviate_list([repr(name) for name in descriptions])
        raise BadInput(f"{plural(len(descriptions), 'column')} {named}: {next(iter(descriptions.values()))}")


FORMS = (
    "%Y-%m-%d", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%m/%d/%y",
    "%d/%m/%y", "%Y-%m",
)  # fmt: skip
FIRST_TEXTS = 20  # texts of a column that decide which forms are tried on all of them
FIRST_FORMS = {"dayfirst": "%d", "monthfirst": "%m"}
DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1)
DAYS = "days"
PARTS: dict[str, Callable[[datetime], float]] = {
    DAYS: lambda moment: (moment - EPOCH) / DAY,
    "year": lambda moment: moment.year,
    "month": lambda moment: moment.month,
    "weekday": lambda moment: moment.isoweekday(),
}
CLOCK = re.compile(r"[T ](\d{1,2}):(\d\d)(?::(\d\d(?:[.,]\d+)?))?(?: ?([aApP])[mM])?(?: ?(?:Z|[+-]\d\d:?\d\d))?$")
_CLOCK_TIME = r"(\d{1,2}):(\d\d):(\d\d(?:\.\d+)?)"
DURATIONS = (  # of pandas and Python, of ISO 8601; groups: sign, days, hours, minutes, seconds
    re.compile(rf"()(-?\d+) days?,?(?: \+?{_CLOCK_TIME})?"),
    re.compile(r"(-?)P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"),
)


def parse_date_parts(given: object) -> tuple[str, ...]:
    """Return the numbers that dates become, and which of day and month comes first, from a text or several words.

    Parameters
    ----------
    given : object
        A text such as `year,month`, or an iterable of such words.

    Raises
    ------
    BadInput
        A word is unknown, or no number is requested.

    Examples
    --------
    >>> parse_date_parts("year, month"), parse_date_parts(())
    (('year', 'month'), ())
    """
    listed = given.split(",") if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    parts = tuple(dict.fromkeys(str(word).strip().lower() for word in listed))
    allowed = (*PARTS, *FIRST_FORMS)
    for word in parts:
        if word not in allowed:
            raise BadInput(
                f"dates: {word!r} is unknown{did_you_mean(word, allowed)}; give one or more of {', '.join(allowed)}"
            )
    if len(parts) == 1 and parts[0] in FIRST_FORMS:
        raise BadInput(
            f"dates: {parts[0]!r} states only the order of day and month; add the part of the date to compute, as in "
            f'dates="days,{parts[0]}"'
        )
    if set(FIRST_FORMS) <= set(parts):
        raise BadInput(
            f"dates: {','.join(parts)!r} is not a valid combination; give one or more of {', '.join(PARTS)}, "
            f"and at most one of {', '.join(FIRST_FORMS)}"
        )
    return parts


def date_features(column: str, parts: Iterable[str]) -> dict[str, str]:
    """Return the features that a column of dates becomes, each with the number that it holds.

    Parameters
    ----------
    column : str
        The name of the column.
    parts : iterable of str
        The words of `parse_date_parts`.

    Examples
    --------
    >>> date_features("sold", ("days", "month"))
    {'sold': 'days', 'sold.month': 'month'}
    """
    return {column if name == DAYS else f"{column}.{name}": name for name in parts if name in PARTS}


def read_moment(text: str, form: str) -> datetime:
    """Return the date in a text, with its clock time as written; ValueError for any other text.

    Parameters
    ----------
    text : str
        A date, which a clock time may follow; a time zone is ignored.
    form : str
        One of `FORMS`.

    Examples
    --------
    >>> read_moment("5.1.2024 3:30 pm", "%d.%m.%Y")
    datetime.datetime(2024, 1, 5, 15, 30)
    """
    clock = CLOCK.search(text)
    day = datetime.strptime(text[: clock.start()] if clock else text, form)
    if clock is None:
        return day
    hours, minutes, seconds, half = clock.groups()
    hour = int(hours) if half is None else int(hours) % 12 + 12 * (half in "pP")
    return day + timedelta(hours=hour, minutes=int(minutes), seconds=float((seconds or "0").replace(",", ".")))


def _is_date(text: str, form: str) -> bool:
    """Return True if a text is a date of a form."""
    try:
        read_moment(text, form)
    except ValueError:
        return False
    return True


def form_of_dates(column: str, texts: Iterable[str], parts: Iterable[str]) -> str:
    """Return the form in which most texts of a column are dates; empty where they are not.

    Parameters
    ----------
    column : str
        The name of the column, for messages.
    texts : iterable of str
        The cells that are not empty.
    parts : iterable of str
        The words of `parse_date_parts`, which may state whether days or months come first.

    Raises
    ------
    BadInput
        Either the day or the month may come first.

    Examples
    --------
    >>> form_of_dates("sold", ["5/1/2024", "31/12/2023"], ["days"]), form_of_dates("sold", ["yes"], ["days"])
    ('%d/%m/%Y', '')
    """
    every = list(dict.fromkeys(texts))
    likely = [form for form in FORMS if any(_is_date(text, form) for text in every[:FIRST_TEXTS])]
    counts = {form: sum(_is_date(text, form) for text in every) for form in likely}
    most = max(counts.values(), default=0)
    forms = [form for form, count in counts.items() if count == most]
    if 2 * most <= len(every):
        return ""
    if len(forms) > 1:
        first = next((mark for word, mark in FIRST_FORMS.items() if word in parts), "")
        forms = [form for form in forms if first and form.startswith(first)]
    if not forms:
        raise BadInput(
            f"dates: {every[0]!r} in column {column!r} may begin with the day or the month; "
            "add dayfirst or monthfirst to dates, as in "
            f'dates="{",".join([*parts, "dayfirst"])}"'
        )
    return forms[0]


def example_of_form(form: str) -> str:
    """Return the last day of 2024 in a form.

    Parameters
    ----------
    form : str
        One of `FORMS`.

    Examples
    --------
    >>> example_of_form("%d.%m.%Y")
    '31.12.2024'
    """
    return date(2024, 12, 31).strftime(form)


def parts_of_form(form: str) -> str:
    """Return the parts of a date in the order of a form.

    Parameters
    ----------
    form : str
        One of `FORMS`.

    Examples
    --------
    >>> parts_of_form("%d.%m.%Y")
    'day.month.year'
    """
    return re.sub(r"%(.)", lambda match: {"d": "day", "m": "month"}.get(match[1], "year"), form)


def duration_in_days(duration: timedelta) -> float:
    """Return the days of a duration, to the microsecond.

    Parameters
    ----------
    duration : datetime.timedelta
        The duration, of pandas too.

    Examples
    --------
    >>> duration_in_days(timedelta(hours=36))
    1.5
    """
    return timedelta(duration.days, duration.seconds, duration.microseconds) / DAY


def parse_duration(text: str) -> float:
    """Return the days of a duration as pandas, Python or ISO 8601 write it; ValueError for any other text.

    Parameters
    ----------
    text : str
        The text, `2 days 12:00:00` or `P2DT12H` for one.

    Examples
    --------
    >>> parse_duration("-1 days +12:00:00"), parse_duration("PT36H")
    (-0.5, 1.5)
    """
    match = next((match for pattern in DURATIONS if (match := pattern.fullmatch(text.strip()))), None)
    if match is None:
        raise ValueError(text)
    sign, days, hours, minutes, seconds = match.groups(default="0")
    length = timedelta(int(days), float(seconds), hours=int(hours), minutes=int(minutes))
    return duration_in_days(-length if sign == "-" else length)
