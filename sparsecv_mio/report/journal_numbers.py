"""Numbers of a paper: rounded to few significant digits, with the same number of decimals for all numbers of a term.

Certified bounds and the limits of intervals are rounded outward, so that the rounded numbers are valid bounds too.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from sparsecv_mio.digits import format_lower, format_upper, format_with_zeros
from sparsecv_mio.report.coefficients import ratio

DIGITS = 3  # significant digits of estimates and of single numbers
OUTWARD_DIGITS = 4  # significant digits of certified bounds
MAX_DECIMALS = 6  # decimals of a ratio
LARGE_LOG_RATIO = 7.0  # ratios below 0.001 and above 1,000 need other decimals

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


def _find_place(value: float) -> int:
    """Return the power of ten of the first significant digit."""
    return math.floor(math.log10(abs(value)))


def find_decimals(value: float, is_ratio: bool) -> int | None:
    """Return the decimals of an estimate and of its interval; None if plain decimals do not suit its magnitude.

    Parameters
    ----------
    value : float
        Coefficient, or the width of its interval, times a step of the feature.
    is_ratio : bool
        True for the exponential of the value: an odds or rate ratio.

    Examples
    --------
    >>> [find_decimals(value, False) for value in (35.21, 0.0634, 25034.7, 0.0, 3e-8)]
    [1, 4, 0, 2, None]
    >>> [find_decimals(value, True) for value in (0.5, -0.0022, 0.00031, 9.5)]
    [2, 4, 5, None]
    """
    if not is_ratio:
        place = _find_place(value) if value else 0
        return max(DIGITS - 1 - place, 0) if -5 < place < 12 else None
    if abs(value) >= LARGE_LOG_RATIO:
        return None
    steps = [1 - _find_place(math.expm1(value))] if value else []  # two digits of the difference from 1
    return min(max(2, *steps, 1 - _find_place(math.exp(value))), MAX_DECIMALS)


def format_estimate(value: float, like: float, is_ratio: bool = False) -> str:
    """Return an estimate, or a ratio, with the decimals that `find_decimals` returns for `like`.

    Parameters
    ----------
    value : float
        Coefficient, times a step of the feature.
    like : float
        Smallest of the value and the widths of its intervals.
    is_ratio : bool
        True for the exponential of the value.

    Examples
    --------
    >>> [format_estimate(value, value) for value in (1.163, 0.0634, 25034.7, -3e-8)]
    ['1.16', '0.0634', '25035', '-3.00e-08']
    >>> [format_estimate(value, value, True) for value in (0.5, -0.0022, 9.5)]
    ['1.65', '0.9978', '13360']
    """
    decimals = find_decimals(like, is_ratio)
    if decimals is None or (is_ratio and abs(value) >= LARGE_LOG_RATIO):
        return ratio(value) if is_ratio else format_with_zeros(value, DIGITS)
    return f"{math.exp(value) if is_ratio else value + 0.0:.{decimals}f}"


def format_limits(lower: float, upper: float, like: float, is_ratio: bool = False) -> str:
    """Return the limits of the interval of a coefficient, or of its exponential, rounded outward.

    A limit that would be rounded to the null value (0, for ratios 1) or beyond has more decimals.

    Parameters
    ----------
    lower, upper : float
        Limits.
    like, is_ratio
        Arguments as for `format_estimate`.

    Examples
    --------
    >>> format_limits(-0.0812, 1.251, 1.16), format_limits(0.0, 0.405, 0.3, True), format_limits(0.001, 1.0, 0.0634)
    ('-0.09 to 1.26', '1.00 to 1.50', '0.0010 to 1.0000')
    >>> format_limits(0.0008, 0.156, 0.1, True), format_limits(-1.25, -0.002, 1.16)
    ('1.0008 to 1.17', '-1.25 to -0.002')
    """
    decimals = find_decimals(like, is_ratio)
    ends = ((lower, True), (upper, False))
    return " to ".join(_round_limit(value, decimals, is_ratio, is_lower) for value, is_lower in ends)


def _round_limit(value: float, decimals: int | None, is_ratio: bool, is_lower: bool) -> str:
    """Return a limit of an interval, rounded outward."""
    if is_ratio and abs(value) >= LARGE_LOG_RATIO:
        return ratio(value)
    limit = math.exp(value) if is_ratio else float(value)
    if decimals is None or not abs(limit) < 1e12:
        return (format_lower if is_lower else format_upper)(limit, DIGITS, format_with_zeros)
    rounding = ROUND_FLOOR if is_lower else ROUND_CEILING
    exact, null = Decimal(repr(limit)), int(is_ratio)
    if exact != null and (exact > null) == is_lower:  # rounding must not move the limit to the null value
        decimals = max(decimals, -(exact - null).adjusted())
    return str(exact.quantize(Decimal(1).scaleb(-decimals), rounding) + 0)


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
    """Return a p-value with three decimals, never as 0.

    Examples
    --------
    >>> format_p_value(0.00012), format_p_value(0.05001), format_p_value(1.0)
    ('<0.001', '0.050', '1.000')
    """
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def round_outward(lower: float, upper: float) -> tuple[str, str]:
    """Return certified bounds with few digits: the lower one rounded down, the upper one rounded up.

    Examples
    --------
    >>> round_outward(0.53350412, 0.53350418), round_outward(0.0, 3.5), round_outward(2.0, math.inf)
    (('0.5335', '0.5336'), ('0', '3.500'), ('2.000', '?'))
    >>> round_outward(1.23456e-9, 1.23457e-9), round_outward(12345.6, 12346.7)
    (('1.234e-09', '1.235e-09'), ('12345', '12347'))
    """
    form = OUTWARD_DIGITS, format_with_zeros
    return format_lower(lower, *form), format_upper(upper, *form)


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
