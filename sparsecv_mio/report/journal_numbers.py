"""Numbers rounded for a table or a text of a paper: few significant digits, and equal decimals in a column.

Certified bounds are rounded outward, so that a rounded interval states no more than the exact one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from sparsecv_mio.digits import UNKNOWN, format_number
from sparsecv_mio.report.coefficients import ratio

DIGITS = 3  # significant digits of the largest number of a column, and of single numbers
MIN_DIGITS, MAX_DIGITS = 2, 4  # significant digits of the smallest and the largest number with equal decimals
BOUND_DIGITS = 4  # significant digits of certified bounds
MIN_RATIO_DECIMALS, MAX_RATIO_DECIMALS = 2, 4  # decimals of a column of ratios
MAX_LOG_RATIO = 7.0  # larger logarithms of ratios are not written with equal decimals
MIN_PLACE, MAX_PLACE = -5, 9  # powers of ten of numbers that are written without an exponent

MINUS, SUPERSCRIPTS, PLAIN_DIGITS = "\N{MINUS SIGN}", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"


def print_number(text: str) -> str:
    """Return a number with the minus sign of printed texts, and with a power of ten for an exponent.

    Examples
    --------
    >>> print_number("-3.00e-08"), print_number("0.12")
    ('−3.00 × 10⁻⁸', '0.12')
    """
    to_powers = str.maketrans(PLAIN_DIGITS, SUPERSCRIPTS)
    powers = re.sub(
        r"(?<=\d)e[+]?(-?)0*(\d+)", lambda found: f" × 10{(found[1] + found[2]).translate(to_powers)}", text
    )
    return powers.replace("-", MINUS)


def describe_bounds(lower: float, upper: float) -> str:
    """Return certified bounds, rounded outward; empty if they exclude nothing.

    Examples
    --------
    >>> describe_bounds(0.51134, 0.54642), describe_bounds(0.0, 0.54642), describe_bounds(0.0, math.inf)
    ('between 0.5113 and 0.5465', 'at most 0.5465', '')
    """
    low, high = map(print_number, round_outward(lower, upper))
    if not math.isfinite(upper):
        return f"at least {low}" if lower > 0.0 else ""
    return f"between {low} and {high}" if lower > 0.0 else f"at most {high}"


def _find_place(value: float) -> int:
    """Return the power of ten of the first significant digit."""
    return math.floor(math.log10(abs(value)))


def _is_plain(value: float) -> bool:
    """Return True for a number that is written with its significant digits and without an exponent."""
    return bool(value) and math.isfinite(value) and MIN_PLACE <= _find_place(value) <= MAX_PLACE


def find_decimals(values: Sequence[float]) -> list[int]:
    """Return the number of decimals of each value of a column: the same for all, unless their magnitudes differ much.

    Examples
    --------
    >>> find_decimals([35.21, 0.5126]), find_decimals([35.21, 0.005126]), find_decimals([25034.7])
    ([2, 2], [1, 5], [0])
    """
    places = [_find_place(value) for value in values if _is_plain(value)]
    if not places:
        return [0] * len(values)
    common = max(DIGITS - 1 - max(places), MIN_DIGITS - 1 - min(places), 0)
    if common == 0 or common + max(places) < MAX_DIGITS:
        return [common] * len(values)
    return [max(DIGITS - 1 - _find_place(value), 0) if _is_plain(value) else 0 for value in values]


def format_decimals(value: float, decimals: int) -> str:
    """Return a number with some decimals; a number that is rounded to 0 has no sign.

    Examples
    --------
    >>> format_decimals(-0.0004, 2), format_decimals(1.5, 2), format_decimals(3e-8, 10), format_decimals(math.inf, 2)
    ('0.00', '1.50', '3.00e-08', '?')
    """
    if not math.isfinite(value):
        return UNKNOWN
    if value and not _is_plain(value):
        return f"{value:.{DIGITS - 1}e}"
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0.0 else text


def format_column(values: Sequence[float]) -> list[str]:
    """Return the numbers of a column with the decimals of :func:`find_decimals`."""
    return [format_decimals(value, decimals) for value, decimals in zip(values, find_decimals(values), strict=True)]


def format_ratios(logarithms: Sequence[float]) -> list[str]:
    """Return odds or rate ratios with equal decimals, of which the smallest difference from 1 needs one.

    Parameters
    ----------
    logarithms : sequence of float
        Logarithms of the ratios: coefficients, times a step of the feature.

    Examples
    --------
    >>> format_ratios([0.5, -0.0022]), format_ratios([0.5, 0.0]), format_ratios([0.5, 0.00031])
    (['1.649', '0.998'], ['1.65', '1.00'], ['1.6487', '1.0003'])
    >>> format_ratios([9.5, 0.5])
    ['13360', '1.649']
    """
    steps = [-_find_place(math.expm1(value)) for value in logarithms if value and abs(value) < MAX_LOG_RATIO]
    smallest = [
        MIN_DIGITS - 1 - _find_place(math.exp(min(value, 0.0))) for value in logarithms if value > -MAX_LOG_RATIO
    ]
    decimals = max([MIN_RATIO_DECIMALS, *steps, *smallest])
    if decimals > MAX_RATIO_DECIMALS or any(abs(value) >= MAX_LOG_RATIO for value in logarithms):
        return [ratio(value) for value in logarithms]
    return [format_decimals(math.exp(value), decimals) for value in logarithms]


def format_limits(lower: float, upper: float, is_ratio: bool) -> str:
    """Return the limits of the interval of a coefficient, or of its exponential, with equal decimals.

    Examples
    --------
    >>> format_limits(-0.0812, 1.25, False), format_limits(0.0, 0.405, True)
    ('-0.081 to 1.250', '1.00 to 1.50')
    """
    return " to ".join((format_ratios if is_ratio else format_column)([lower, upper]))


def format_percent(share: float) -> str:
    """Return a share in per cent, without decimals; shares near 0 and 1 are not rounded to these numbers.

    Examples
    --------
    >>> format_percent(0.875), format_percent(0.999), format_percent(0.001), format_percent(1.0)
    ('88%', '>99%', '<1%', '100%')
    """
    if 0.0 < share < 0.01:
        return "<1%"
    return ">99%" if 0.99 < share < 1.0 else f"{100.0 * share:.0f}%"


def format_p_value(value: float) -> str:
    """Return a p-value with three decimals, rounded up.

    Examples
    --------
    >>> format_p_value(0.00012), format_p_value(0.05001), format_p_value(1.0)
    ('<0.001', '0.051', '1.000')
    """
    return "<0.001" if value < 0.001 else f"{math.ceil(1000.0 * value) / 1000.0:.3f}"


def round_outward(lower: float, upper: float) -> tuple[str, str]:
    """Return certified bounds with few digits: the lower one rounded down, the upper one rounded up.

    Examples
    --------
    >>> round_outward(0.53350412, 0.53350418), round_outward(0.0, 3.5), round_outward(2.0, math.inf)
    (('0.5335', '0.5336'), ('0', '3.500'), ('2.000', '?'))
    >>> round_outward(1.23456e-9, 1.23457e-9)
    ('1.234e-9', '1.235e-9')
    """
    sizes = [bound for bound in (lower, upper) if bound and math.isfinite(bound)]
    if not sizes:
        return format_number(lower), format_number(upper)
    place = _find_place(max(sizes))
    is_plain, last = MIN_PLACE <= place <= MAX_PLACE, place - BOUND_DIGITS + 1
    unit = Decimal(1).scaleb(min(last, 0) if is_plain else last)

    def rounded(bound: float, mode: str) -> str:
        if not bound or not math.isfinite(bound):
            return format_number(bound)
        near = Decimal(bound).quantize(unit, mode)
        return f"{near:f}" if is_plain else f"{near:.{BOUND_DIGITS - 1}e}"

    return rounded(lower, ROUND_FLOOR), rounded(upper, ROUND_CEILING)


def round_number(value: float, digits: int = DIGITS) -> str:
    """Return a single number with few significant digits.

    Parameters
    ----------
    value : float
        The number.
    digits : int
        Number of significant digits.

    Examples
    --------
    >>> round_number(0.00719686), round_number(0.5335, 2), round_number(12345.6)
    ('0.00720', '0.53', '12346')
    """
    if not value or not math.isfinite(value):
        return format_number(value)
    return format_decimals(value, max(digits - 1 - _find_place(value), 0))
