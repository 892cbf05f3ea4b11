"""Texts of options become values. Pure functions; the message on a wrong text is one line that names the option."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence

from sparsecv_mio.errors import BadInput
from sparsecv_mio.units import GAMMA_RANGE, MOST_THREADS
from sparsecv_mio.words import one_of

DEFAULT_GAMMAS = "1e-3:10:15"
MAX_TAU = 30
MAX_COUNT = 10_000
MOST_DIGITS = 18  # of a whole number: more is never meant


def number(text: str, option: str) -> float:
    """Return a finite number.

    Examples
    --------
    >>> number("1e-3", "--gap")
    0.001
    """
    try:
        value = float(text)
    except ValueError:
        raise BadInput(f"{option}: {text.strip()!r} is not a number") from None
    if not math.isfinite(value):
        raise BadInput(f"{option}: {text.strip()!r} is not a finite number")
    return value


def whole(text: str, option: str) -> int:
    """Return a whole number of at most 18 digits."""
    try:
        if len(text.strip()) > MOST_DIGITS + 1:
            raise BadInput(f"{option}: {text.strip()!r} is not a whole number of at most {MOST_DIGITS} digits")
        return int(text)
    except ValueError:
        raise BadInput(f"{option}: {text.strip()!r} is not a whole number") from None


def count(value: int | None, option: str, least: int = 1, most: int = 10**MOST_DIGITS) -> None:
    """Check that a whole number is in range.

    Parameters
    ----------
    value : int or None
        None, an option that was left out, passes.
    option : str
        Its name, for the message.
    least, most : int
        The range, both included.

    Raises
    ------
    BadInput
        It is out of range.
    """
    if value is not None and not least <= value <= most:
        room = f"at least {least}" if value < least else f"at most {most:,}"
        raise BadInput(f"{option}: {value} is out of range, give {room}")


def positive(value: float | None, option: str, zero: bool = False) -> None:
    """Check that a number is finite and positive.

    Parameters
    ----------
    value : float or None
        None, an option that was left out, passes.
    option : str
        Its name, for the message.
    zero : bool
        Whether 0 is allowed too.

    Raises
    ------
    BadInput
        It is not.
    """
    if value is not None and not (0.0 < value < math.inf or (zero and value == 0.0)):
        room = "at least 0" if zero else "above 0"
        raise BadInput(f"{option}: {value:g} is out of range, give a finite number {room}")


def names(text: str | None, option: str) -> list[str] | None:
    """Column names separated by commas; a name that holds a comma is quoted as in a CSV file.

    Examples
    --------
    >>> names('age, "a,b"', "--features")
    ['age', 'a,b']
    """
    if text is None:
        return None
    found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not found or "" in found:
        raise BadInput(f"{option}: {text!r} is not a list of column names separated by commas")
    return found


def word(words: Iterable[str], option: str) -> Callable[[str | None], str | None]:
    """Return the callback of an option that takes one of some words."""

    def settle(text: str | None) -> str | None:
        return None if text is None else one_of(text, words, option)

    return settle


def penalty(words: Sequence[str]) -> Callable[[str], str]:
    """Return the callback of --penalty: as `word`, with `l2` another name of `ridge` and a hyphen for an underscore."""

    def settle(text: str) -> str:
        plain = text.strip().lower().replace("-", "_")
        return one_of("ridge" if plain == "l2" else plain, words, "--penalty")

    return settle


def gammas(text: str) -> tuple[float, ...]:
    """Read ridge weights: a list `0.01,0.1,1` or `LO:HI:COUNT`, logarithmic, both ends included.

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
    option = "--gamma"
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


def taus(text: str, p: int) -> tuple[int, ...]:
    """Read support sizes: `K`, `LO:HI` (both included) or a list of these, from 0 to the number of features p.

    Returns
    -------
    tuple of int
        Ascending, each once.

    Examples
    --------
    >>> taus("0,3:5", 10)
    (0, 3, 4, 5)
    """
    option = "--tau"
    found: set[int] = set()
    for part in text.split(","):
        ends = [whole(end, option) for end in part.split(":")]
        if len(ends) > 2:
            raise BadInput(f"{option}: {part.strip()!r} is not a support size K nor a range LO:HI")
        low, high = ends[0], ends[-1]
        if low > high:
            raise BadInput(f"{option}: {part.strip()!r} is reversed, write {high}:{low}")
        if low < 0 or high > p:
            raise BadInput(f"{option}: {part.strip()!r} is out of range, the data have {p} features")
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def default_taus(p: int, n_train: int) -> tuple[int, ...]:
    """Return the support sizes 1 .. min(p, n_train - 1, 30).

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
    """
    return tuple(range(1, max(1, min(p, n_train - 1, MAX_TAU)) + 1))


def sizes(text: str | None, p: int, n_train: int) -> tuple[int, ...]:
    """Read the support sizes of `solve`.

    Parameters
    ----------
    text : str or None
        A list as for `taus`, the word `log` for `log_taus`, or None for `default_taus`.
    p : int
        Features.
    n_train : int
        Rows of the smallest training set.

    Returns
    -------
    tuple of int
        Ascending, each once.
    """
    if text is None:
        return default_taus(p, n_train)
    return log_taus(p, n_train) if text.strip().lower() == "log" else taus(text, p)


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


def tolerance(value: float) -> None:
    """Raise `BadInput` unless a relative duality gap is in (0, 1)."""
    if not 0.0 < value < 1.0:
        raise BadInput(f"--tol: {value} is out of range, a relative duality gap is above 0 and below 1")


def threads(value: int | None, cores: int) -> int:
    """Check a number of threads, and return it; all cores by default."""
    count(value, "--threads", most=MOST_THREADS)
    return cores if value is None else value
