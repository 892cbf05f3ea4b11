"""Functions that format numbers and names for the screen, reports, tables and messages.

A number is written with the requested number of significant digits. Numbers from 1 to 1e12 always show all digits
before the decimal point, so that large numbers can be compared. Long lists of names are shortened, and names that
contain a comma are quoted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_CEILING, Context

WHOLE_BELOW = 1e12  # numbers from here on are written with an exponent


UNKNOWN = "?"  # an unknown number


def format_number(value: float, digits: int = 6) -> str:
    """Return a number as text; an unknown bound is a question mark.

    Parameters
    ----------
    value : float
        The number.
    digits : int
        Number of significant digits. Below 1e12, all digits before the decimal point are written.

    Examples
    --------
    >>> format_number(0.05), format_number(123456.789), format_number(26227614.9)
    ('0.05', '123457', '26227615')
    >>> format_number(24753.4, 3), format_number(2.5e12), format_number(float("inf"))
    ('24753', '2.5e+12', '?')
    """
    if _has_longer_whole_part(value, digits):
        return f"{value:.0f}"
    return f"{value:.{digits}g}" if math.isfinite(value) else UNKNOWN


def plural(count: int, thing: str) -> str:
    """Return the singular or the plural of a noun, such as `row` or `rows`."""
    return thing if count == 1 else f"{thing}s"


def several(count: int, thing: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> several(1, "row"), several(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {plural(count, thing)}"


MOST_NAMED = 8  # names in a list; for longer lists the number of the other names is given


def abbreviate_list(names: Sequence[str]) -> str:
    """Return names as a list; a long list ends with the number of the names that are not shown.

    Examples
    --------
    >>> abbreviate_list(["a", "b"]), abbreviate_list(list("abcdefghijklmno"))
    ('a, b', 'a, b, c, d, e, f, g, h and 7 more')
    """
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


CONTROLS = {code: chr(0x2400 + code) for code in range(32) if code not in (9, 10)}  # visible forms of control codes
CONTROLS |= dict.fromkeys(range(0x7F, 0xA0), "\ufffd")  # a name of a column must not control the terminal


def quoted_name(name: str) -> str:
    """Return a name for a list of names: quoted, as in a CSV file, if it contains a comma or an outer blank.

    Examples
    --------
    >>> quoted_name("age"), quoted_name("size, m2")
    ('age', '"size, m2"')
    """
    return '"' + name.replace('"', '""') + '"' if any(mark in name for mark in ',;"') or name != name.strip() else name


def format_share(value: float) -> str:
    """Return a fraction, such as R^2, as text; it may be far below 0.

    Examples
    --------
    >>> format_share(0.70314), format_share(-12.0), format_share(-5.66846871e38)
    ('0.7031', '-12.0000', '-5.66847e+38')
    """
    return f"{value:.4f}" if abs(value) < WHOLE_BELOW else format_number(value)


def format_lower(value: float, digits: int = 6, form: Callable[[float, int], str] = format_number) -> str:
    """Return a lower bound as text, rounded down.

    Examples
    --------
    >>> format_lower(0.60482176), format_lower(26227614.9), format_lower(2.0, 4, format_with_zeros)
    ('0.604821', '26227614', '2.000')
    """
    return form(-round_upward(-value, max(digits, _count_whole_digits(value))), digits)


def format_upper(value: float, digits: int = 6, form: Callable[[float, int], str] = format_number) -> str:
    """Return an upper bound as text, rounded up.

    Examples
    --------
    >>> format_upper(0.60482171), format_upper(26227614.2), format_upper(math.inf)
    ('0.604822', '26227615', '?')
    """
    return form(round_upward(value, max(digits, _count_whole_digits(value))), digits)


def _count_whole_digits(value: float) -> int:
    return len(str(int(abs(value)))) if abs(value) < WHOLE_BELOW else 0


def format_interval(lower: float, upper: float, digits: int = 6) -> str:
    """Return an interval as text, rounded outward.

    Examples
    --------
    >>> format_interval(0.25, 1234567.8), format_interval(0.0, float("inf"))
    ('[0.25, 1234568]', '[0, ?]')
    """
    return f"[{format_lower(lower, digits)}, {format_upper(upper, digits)}]"


def format_with_zeros(value: float, digits: int) -> str:
    """Return a number as `shown` does, with trailing zeros, for a column of similar numbers.

    Examples
    --------
    >>> format_with_zeros(2999.8, 6)
    '2999.80'
    >>> format_with_zeros(1762506.9, 6), format_with_zeros(0.0, 6)
    ('1762507', '0')
    """
    if value == 0.0 or not math.isfinite(value) or _has_longer_whole_part(value, digits):
        return format_number(value, digits)
    return f"{value:#.{digits}g}".rstrip(".")


def _has_longer_whole_part(value: float, digits: int) -> bool:
    return 10.0**digits - 0.5 <= abs(value) < WHOLE_BELOW


def round_upward(value: float, digits: int = 2) -> float:
    """Return a number rounded up to some significant digits.

    Examples
    --------
    >>> round_upward(1.1234), -round_upward(-1.1234, 3), round_upward(0.0), round_upward(math.inf)
    (1.2, 1.12, 0.0, inf)
    """
    return float(Context(digits, ROUND_CEILING).create_decimal(repr(float(value))))


def interval_digits(rows: Iterable[tuple[float, float]]) -> int:
    """Return the number of digits (6 to 12) that distinguishes the bounds of intervals; narrower ones look like points.

    Examples
    --------
    >>> interval_digits([(1.0, 2.0)]), interval_digits([(1.0, 1.00004)])
    (6, 7)
    """
    ratios = [(high - low) / high for low, high in rows if 0.0 < low < high < math.inf]
    return min(12, max([6, *(2 - math.floor(math.log10(ratio)) for ratio in ratios if ratio > 1e-6)]))
