"""The grid of a search: texts become ridge weights and support sizes, and what they are where none are given.

Pure functions without a numerical library; the message on a wrong text is one line that names the option.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real

from sparsecv_mio.errors import BadInput
from sparsecv_mio.restrictions import NONE, Restrictions
from sparsecv_mio.units import GAMMA_RANGE

DEFAULT_GAMMAS, WIDE_GAMMAS = "1e-3:10:15", "0.05:10:9"  # the second of data with no fewer columns than training rows
FEW_FEATURES = 30  # of which every size is tried by default
LEAST_MAX_TAU, MOST_MAX_TAU, ROWS_A_FEATURE = 10, 50, 8  # of more features; docs/defaults.md has the evidence
MAX_COUNT = 10_000
EVEN = 1e-3  # relative difference of the steps of a logarithmic grid
MOST_DIGITS = 18  # of a whole number: more is never meant


RANGE_SIGN = ".."  # between the ends of an interval of gammas


@dataclass(frozen=True)
class GammaInterval:
    """Every ridge weight from `low` to `high`, both included: in place of a list of gammas.

    Raises
    ------
    BadInput
        Unless `1e-300 <= low < high <= 1e300`.

    Examples
    --------
    >>> GammaInterval(1e-3, 10.0)
    GammaInterval(low=0.001, high=10.0)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not all(isinstance(end, Real) for end in (self.low, self.high)):
            raise BadInput(f"gammas: the ends of {self} are not numbers")
        if not GAMMA_RANGE[0] <= self.low < self.high <= GAMMA_RANGE[1]:
            raise BadInput(f"gammas: {self} is no interval of positive numbers, the lower end first")

    def __str__(self) -> str:
        return f"{self.low:g}{RANGE_SIGN}{self.high:g}"


def interval(text: str, option: str = "--gamma") -> GammaInterval | None:
    """Read an interval of ridge weights, `LO..HI`; None where a text is a list of them.

    Parameters
    ----------
    text : str
    option : str
        Its name, for messages.

    Examples
    --------
    >>> interval("1e-3..10"), interval("0.1,1")
    (GammaInterval(low=0.001, high=10.0), None)
    """
    if RANGE_SIGN not in text:
        return None
    parts = text.split(RANGE_SIGN)
    if len(parts) != 2:
        raise BadInput(f"{option}: {text!r} is not an interval LO..HI")
    low, high = _positive(parts[0], option), _positive(parts[1], option)
    if low >= high:
        advice = f"write {low:g}" if low == high else f"write {parts[1]}{RANGE_SIGN}{parts[0]}"
        raise BadInput(f"{option}: {text!r} is {'a single gamma' if low == high else 'reversed'}, {advice}")
    return GammaInterval(low, high)


def number(text: str, option: str) -> float:
    """Return a finite number.

    Examples
    --------
    >>> number("1e-3", "--gap")
    0.001
    """
    try:
        value = float(_plain(text))
    except ValueError:
        raise BadInput(f"{option}: {text.strip()!r} is not a number") from None
    if not math.isfinite(value):
        raise BadInput(f"{option}: {text.strip()!r} is not a finite number")
    return value


def whole(text: str, option: str) -> int:
    """Return a whole number of at most 18 digits.

    Examples
    --------
    >>> whole("12", "--seed")
    12
    """
    if len(text.strip()) > MOST_DIGITS + 1:
        raise BadInput(f"{option}: {text.strip()!r} is not a whole number of at most {MOST_DIGITS} digits")
    try:
        return int(_plain(text))
    except ValueError:
        raise BadInput(f"{option}: {text.strip()!r} is not a whole number") from None


def _plain(text: str) -> str:
    """Return the text of a number; ValueError for other digits than 0 to 9, and for 1_000, which only Python reads."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return text


def gammas(text: str, option: str = "--gamma") -> tuple[float, ...]:
    """Read ridge weights: a list `0.01,0.1,1` or `LO:HI:COUNT`, logarithmic, both ends included.

    Parameters
    ----------
    text : str
    option : str
        Its name, for messages.

    Returns
    -------
    tuple of float
        Ascending, each once.

    Examples
    --------
    >>> gammas("1,0.1,1")
    (0.1, 1.0)
    >>> gammas("0.01:1:3")
    (0.01, 0.1, 1.0)
    """
    if RANGE_SIGN in text:
        raise BadInput(f"{option}: {text!r} is an interval, which goes with solve; give a list or LO:HI:COUNT")
    if ":" not in text:
        return tuple(sorted({_positive(part, option) for part in text.split(",")}))
    parts = text.split(":")
    if len(parts) != 3:
        raise BadInput(f"{option}: {text!r} is not a list of numbers nor LO:HI:COUNT")
    low, high, count = _positive(parts[0], option), _positive(parts[1], option), whole(parts[2], option)
    if low > high:
        raise BadInput(f"{option}: {text!r} is reversed, write {parts[1]}:{parts[0]}:{parts[2]}")
    if not 1 <= count <= MAX_COUNT or (count == 1 and low < high):
        raise BadInput(f"{option}: COUNT of {text!r} must be from 2 to {MAX_COUNT}")
    if low == high:
        return (low,)
    # ten to a rounded power: a grid over decades holds 0.1 and 1, not their neighbours
    first, last = math.log10(low), math.log10(high)
    inner = (10.0 ** round(first + (last - first) * i / (count - 1), 12) for i in range(1, count - 1))
    return (low, *inner, high)


def _positive(text: str, option: str) -> float:
    value = number(text, option)
    if not GAMMA_RANGE[0] <= value <= GAMMA_RANGE[1]:
        raise BadInput(f"{option}: {text.strip()!r} is out of range, a gamma is a positive number")
    return value


def taus(text: str, p: int, option: str = "--tau") -> tuple[int, ...]:
    """Read support sizes: `K`, `LO:HI` (both included) or a list of these, from 0 to the number of features p.

    Parameters
    ----------
    text : str
    p : int
        Features.
    option : str
        Its name, for messages.

    Returns
    -------
    tuple of int
        Ascending, each once.

    Examples
    --------
    >>> taus("0,3:5", 10)
    (0, 3, 4, 5)
    """
    found: set[int] = set()
    for part in text.split(","):
        ends = [whole(end, option) for end in part.split(":")]
        if len(ends) > 2:
            raise BadInput(f"{option}: {part.strip()!r} is not a support size K nor a range LO:HI")
        low, high = ends[0], ends[-1]
        if low > high:
            raise BadInput(f"{option}: {part.strip()!r} is reversed, write {high}:{low}")
        if low < 0 or high > p:
            raise BadInput(f"{option}: {part.strip()!r} is out of range, the data have {p} features: give 0 to {p}")
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def text_of_gammas(values: Iterable[float]) -> str:
    """Write ridge weights as `gammas` reads them, to four digits.

    Examples
    --------
    >>> text_of_gammas(gammas("1e-3:10:15")[-5:]), text_of_gammas([0.1]), text_of_gammas([0.1, 0.5, 1.0])
    ('0.7197:10:5', '0.1', '0.1,0.5,1')
    """
    values = list(values)
    listed = [f"{value:.4g}" for value in values]
    if len(values) > 2:
        steps = [math.log(high / low) for low, high in pairwise(values)]
        if max(steps) - min(steps) < EVEN:
            return f"{listed[0]}:{listed[-1]}:{len(values)}"
    return ",".join(listed)


def text_of_taus(values: Iterable[int]) -> str:
    """Write support sizes, ascending, as `taus` reads them.

    Examples
    --------
    >>> text_of_taus([0, 3, 4, 5, 8, 9]), text_of_taus([2])
    ('0,3:5,8,9', '2')
    """
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    parts = [f"{run[0]}:{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs]
    return ",".join(parts)


def default_taus(p: int, n_train: int) -> tuple[int, ...]:
    """Return every support size from 1 to p, but to n_train - 1 at most; of more than 30 features not every one.

    The largest is then one feature for every 8 training rows, but at least 10 and at most 50.

    Parameters
    ----------
    p : int
        Features.
    n_train : int
        Rows of the smallest training set.

    Examples
    --------
    >>> default_taus(4, 100)
    (1, 2, 3, 4)
    >>> [default_taus(1000, n)[-1] for n in (9, 50, 180, 900)]
    [8, 10, 22, 50]
    """
    largest = p if p <= FEW_FEATURES else max(LEAST_MAX_TAU, min(n_train // ROWS_A_FEATURE, MOST_MAX_TAU))
    return tuple(range(1, max(1, min(p, n_train - 1, largest)) + 1))


def log_taus(p: int, n_train: int) -> tuple[int, ...]:
    """Return the support sizes 1, 2, .. with `tau log tau <= min(n_train, p)`.

    Larger supports cannot be recovered from so few rows (the paper's rule).

    Examples
    --------
    >>> log_taus(10, 100)
    (1, 2, 3, 4, 5)
    """
    most = min(n_train, p)
    return tuple(tau for tau in range(1, max(most, 1) + 1) if tau * math.log(tau) <= most)


def default_gammas(p: int, n_train: int, count: int | None = None) -> tuple[float, ...]:
    """Return 15 ridge weights from 0.001 to 10; of no fewer features than training rows, 9 from 0.05 on.

    Parameters
    ----------
    p : int
        Features.
    n_train : int
        Rows of the smallest training set.
    count : int, optional
        How many, in place of 15 and 9.

    Examples
    --------
    >>> [len(default_gammas(p, 90)) for p in (89, 90)], default_gammas(90, 90)[0]
    ([15, 9], 0.05)
    """
    low, high, most = (WIDE_GAMMAS if p >= n_train else DEFAULT_GAMMAS).split(":")
    return gammas(f"{low}:{high}:{most if count is None else count}", "gammas")


def gammas_of(
    given: str | float | Iterable[float] | None, p: int, n_train: int, option: str = "gammas"
) -> tuple[float, ...]:
    """Return the ridge weights that a text, a number or several stand for.

    Parameters
    ----------
    given : str, float, iterable of float, or None
        A text as for `gammas`, None for `default_gammas`.
    p : int
        Features.
    n_train : int
        Rows of the smallest training set.
    option : str
        Its name, for messages.

    Raises
    ------
    BadInput
        For what is no number.

    Examples
    --------
    >>> gammas_of(0.1, 4, 50), gammas_of("0.1,1", 4, 50), len(gammas_of(None, 4, 50))
    ((0.1,), (0.1, 1.0), 15)
    """
    if given is None:
        return default_gammas(p, n_train)
    return gammas(given, option) if isinstance(given, str) else _numbers(given, option)


def taus_of(
    given: str | int | Iterable[int] | None,
    p: int,
    n_train: int,
    option: str = "taus",
    restrictions: Restrictions = NONE,
) -> tuple[int, ...]:
    """Return the support sizes that a text, a number or several stand for.

    Parameters
    ----------
    given : str, int, iterable of int, or None
        A text as for `taus`; the word `log` for `log_taus`, None for `default_taus`. These two start at the number of
        features that are forced in.
    p : int
        Features, without those that are forced out.
    n_train : int
        Rows of the smallest training set.
    option : str
        Its name, for messages.
    restrictions : Restrictions, optional
        By the names of the data.

    Raises
    ------
    BadInput
        For what is no whole number, or a text that is out of range.

    Examples
    --------
    >>> taus_of(3, 10, 50), taus_of(range(1, 3), 10, 50), taus_of("2:4", 10, 50), taus_of(None, 4, 50)
    ((3,), (1, 2), (2, 3, 4), (1, 2, 3, 4))
    """
    if given is None or (isinstance(given, str) and given.strip().lower() == "log"):
        own = default_taus if given is None else log_taus
        least = len(restrictions.force_in)
        return tuple(tau for tau in own(p, n_train) if tau >= least) or (least,)
    if isinstance(given, str):
        return taus(given, p, option)
    found = _numbers(given, option)
    for value in found:
        if value != int(value):
            raise BadInput(f"{option}: {value:g} is not a whole number")
    return tuple(int(value) for value in found)


def _numbers(given: float | Iterable[float], option: str) -> tuple[float, ...]:
    """Return one number or several; `option` for messages."""
    if not isinstance(given, Real | Iterable):
        raise BadInput(f"{option}: {given!r} is not a number nor a list of numbers")
    found = [given] if isinstance(given, Real) else list(given)
    for value in found:
        if not isinstance(value, Real) or not math.isfinite(value):
            raise BadInput(f"{option}: {value!r} is not a finite number")
    return tuple(float(value) for value in found)
