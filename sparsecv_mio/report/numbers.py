"""Numbers as they are shown: digits, unknown bounds, marks of estimates, pairs of the grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Protocol, TypeVar

ESTIMATE = "~"  # stands before a number that is an estimate


class OfTau(Protocol):
    """A row of a table by tau."""

    @property
    def tau(self) -> int:
        """Number of features."""


R = TypeVar("R", bound=OfTau)


def shown(value: float, digits: int = 6) -> str:
    """Format a number for the screen; an unknown bound is a question mark.

    Examples
    --------
    >>> shown(0.05), shown(123456.789), shown(float("inf"))
    ('0.05', '123457', '?')
    """
    return f"{value:.{digits}g}" if math.isfinite(value) else "?"


def aligned(value: float, digits: int) -> str:
    """Format as `shown`, with trailing zeros and without an exponent below 1e12: for a column of similar numbers.

    Examples
    --------
    >>> aligned(2999.8, 6)
    '2999.80'
    >>> aligned(1762506.9, 6), aligned(0.0, 6)
    ('1762507', '0')
    """
    if value == 0.0 or 10.0**digits <= abs(value) < 1e12:
        return f"{value:.0f}"
    return f"{value:#.{digits}g}".rstrip(".") if math.isfinite(value) else "?"


def interval_digits(rows: Iterable[tuple[float, float]]) -> int:
    """Return how many digits tell the ends of intervals apart, from 6 to 12; narrower ones look like a point."""
    ratios = [(high - low) / high for low, high in rows if 0.0 < low < high < math.inf]
    return min(12, max([6, *(2 - math.floor(math.log10(ratio)) for ratio in ratios if ratio > 1e-6)]))


def pair(tau: int, gamma: float) -> str:
    """Format a pair of the grid and say what its numbers are.

    Examples
    --------
    >>> pair(8, 0.0072)
    'tau = 8 features, gamma = 0.0072 (ridge weight)'
    """
    return f"tau = {tau} feature{'' if tau == 1 else 's'}, gamma = {shown(gamma)} (ridge weight)"


def marked(number: str, estimate: bool) -> str:
    """Put the mark of an estimate before a formatted number, where it is one."""
    return f"{ESTIMATE}{number}" if estimate else number


def alike(rows: Iterable[R], kind: Callable[[R], Hashable]) -> Iterator[tuple[str, list[R]]]:
    """Yield neighbouring rows of the same kind together, with the name of their taus."""
    for _, group in groupby(rows, kind):
        same = list(group)
        yield taus_named([row.tau for row in same]), same


def taus_named(taus: Sequence[int]) -> str:
    """Name ascending taus shortly; LO:HI are all from LO to HI.

    Examples
    --------
    >>> taus_named([4]), taus_named([4, 5, 6]), taus_named([1, 3, 5]), taus_named([1, 2, 4, 8, 16])
    ('4', '4:6', '1,3,5', '1,2..16')
    """
    if len(taus) > 1 and taus[-1] - taus[0] == len(taus) - 1:
        return f"{taus[0]}:{taus[-1]}"
    return ",".join(map(str, taus)) if len(taus) <= 3 else f"{taus[0]},{taus[1]}..{taus[-1]}"
