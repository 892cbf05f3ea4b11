"""Conversion of dates and durations to numeric features."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta

from sparsecv_mio.errors import BadInput, did_you_mean

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
        raise BadInput(f'dates: {parts[0]!r} only orders day and month; add a number, as in dates="days,{parts[0]}"')
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
            "add dayfirst or monthfirst to dates"
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
