"""Numbers rounded for a table or a text of a paper: few significant digits, and equal decimals in a column.

Certified bounds are rounded outward, so that a rounded interval states no more than the exact one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from sparsecv_mio.digits import format_lower, format_number, format_upper, format_with_zeros
from sparsecv_mio.report.coefficients import ratio

DIGITS = 3  # significant digits of the largest number of a column, and of single numbers
OUTWARD_DIGITS = 4  # significant digits of certified bounds
MAX_DECIMALS = 4  # decimals of a column of ratios, and significant digits with equal decimals

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


def format_column(values: Sequence[float]) -> list[str]:
    """Return the numbers of a column with the same number of decimals, unless their magnitudes differ much.

    Examples
    --------
    >>> format_column([35.21, 0.5126]), format_column([35.21, 0.005126]), format_column([25034.7])
    (['35.21', '0.51'], ['35.2', '0.00513'], ['25035'])
    """
    places = [_find_place(value) for value in values if value and math.isfinite(value)] or [DIGITS]
    decimals = max(DIGITS - 1 - max(places), 1 - min(places), 0)  # two digits of the smallest number
    has_exponents = not -5 < min(places) <= max(places) < 12
    if has_exponents or (decimals > 0 and decimals + max(places) >= MAX_DECIMALS):
        return [format_with_zeros(value, DIGITS) for value in values]
    return [f"{value + 0.0:.{decimals}f}" if math.isfinite(value) else format_number(value) for value in values]


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
    if any(abs(value) >= 7.0 for value in logarithms):  # ratios below 0.001 and above 1,000 need other decimals
        return [ratio(value) for value in logarithms]
    steps = [-_find_place(math.expm1(value)) for value in logarithms if value]
    decimals = max([2, *steps, *(1 - _find_place(math.exp(value)) for value in logarithms)])
    if decimals > MAX_DECIMALS:
        return [ratio(value) for value in logarithms]
    return [f"{math.exp(value):.{decimals}f}" for value in logarithms]


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
