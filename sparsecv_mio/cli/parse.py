"""Functions that parse the values of options, and that adapt the names of options in messages to the command line."""

from __future__ import annotations

import ast
import math
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sparsecv_mio.errors import BadInput, UnusableColumns, match_keyword
from sparsecv_mio.model_space import (
    EVERY_FACTOR,
    FORCING,
    SIGNS,
    Restrictions,
    finite_number,
    parse_integer,
    parse_names,
)

IN_PYTHON = {"taus": "tau", "gammas": "gamma"}
PLACES = (  # of the name of an option in a message: "gap: 2 is ...", "tau 99 is ...", "... requires method grid"
    re.compile(r"^([a-z][a-z_-]*)(?=:| ['\d.-]| [^ ]+:|, [a-z_-]+: )"),
    re.compile(r"(?<=, )([a-z][a-z_-]*)(?=: )"),  # of two options that contradict each other
    re.compile(r"(?<= requires )([a-z][a-z_-]*)(?= [a-z])"),
    re.compile(r"(?<= not supported with )([a-z][a-z_-]*)(?=[ ;,])"),
    re.compile(r"(?<=: )([a-z][a-z_-]*)(?= requires )"),
    re.compile(r"(?<=; )([a-z][a-z_-]*)(?=(?: [^ ]+)?: requires )"),
)
GIVEN = re.compile(r"""\b([a-z][a-z_]*)=(\[(?:"(?:[^"\\]|\\.)*"(?:, )?)+\]|"(?:[^"\\]|\\.)*"|False|\d+)(?![\w(])""")


def with_dashes(message: str, options: Collection[str]) -> str:
    """Return a message with the names of options in command-line form.

    Parameters
    ----------
    options : collection of str
        Options of the command, such as `--tau`; other words are left unchanged.

    Examples
    --------
    >>> with_dashes("taus: '99' is out of range", ["--tau"])
    "--tau: '99' is out of range"
    >>> with_dashes("one-se: requires method auto or joint, not bounds", ["--one-se", "--method"])
    '--one-se: requires --method auto or joint, not bounds'
    >>> with_dashes('give sep="space" and drop=["a", "b c"]', ["--sep", "--drop"])
    "give --sep space and --drop 'a,b c'"
    >>> with_dashes("give header=False", ["--no-header"])
    'give --no-header'
    """
    defined = set(options)

    def rewrite_name(found: re.Match[str]) -> str:
        word = IN_PYTHON.get(found[1], found[1]).replace("_", "-")
        return f"--{word}" if f"--{word}" in defined else found[1]

    def rewrite_setting(found: re.Match[str]) -> str:
        name = found[1].replace("_", "-")
        word, off = f"--{name}", f"--no-{name}"
        if not defined & {word, off} or "\0" in found[2]:  # a text of a file may hold any character
            return found[0]
        if found[2] == "False":
            return off
        value = ast.literal_eval(found[2])
        if isinstance(value, list):
            value = ",".join(f'"{name}"' if "," in name else name for name in value)
        return f"{word} {shlex.quote(str(value))}"

    message = GIVEN.sub(rewrite_setting, message)
    for place in PLACES:
        message = place.sub(rewrite_name, message)
    return message


def positive(value: float | None, option: str, zero: bool = False) -> None:
    """Check that a number is finite and positive.

    Parameters
    ----------
    value : float or None
        Value of the option; None (not given) is accepted.
    option : str
        Name of the option in messages.
    zero : bool
        True if 0 is allowed.

    Raises
    ------
    BadInput
        If it is not positive and finite.
    """
    if value is not None and not (0.0 < value < math.inf or (zero and value == 0.0)):
        room = "at least 0" if zero else "above 0"
        raise BadInput(f"{option}: {value:g} is out of range; give a finite number {room}")


def seconds_or_none(text: str, option: str) -> float | None:
    """Return the seconds of a time limit; None for the keyword `none`.

    Examples
    --------
    >>> seconds_or_none("60", "--time-limit"), seconds_or_none("none", "--time-limit")
    (60.0, None)
    """
    return None if text.strip().lower() == "none" else finite_number(text, option)


def count_or_all(text: str, option: str) -> int | None:
    """Return an integer; None for the keyword `all`."""
    return None if text.strip().lower() == "all" else parse_integer(text, option)


def names(text: str | None, option: str) -> list[str] | None:
    """Return the column names in a comma-separated text; a name with a comma is quoted as in a CSV file.

    Examples
    --------
    >>> names('age, "a,b"', "--features")
    ['age', 'a,b']
    """
    return None if text is None else list(parse_names(text, option))


def reference(text: str | None, how: Any) -> Sequence[str]:
    """Return the reference levels for coefficients of factors.

    Parameters
    ----------
    text : str, optional
        Levels separated by commas.
    how : SearchOptions or PathOptions
        Options of the run.

    Raises
    ------
    BadInput
        If the other options do not let all levels of a factor enter together.
    """
    levels = names(text, "--reference") or ()
    if levels:
        try:
            replace(how, restrictions=replace(how.restrictions, count=EVERY_FACTOR))
        except BadInput as error:
            why = str(error).removeprefix("count: ")
            raise BadInput(f"reference: {why}") from None
    return levels


@contextmanager
def advice_with_reference(levels: Collection[str]) -> Iterator[None]:
    """Complete advice to force levels out or to count columns, which are not supported with reference levels.

    Parameters
    ----------
    levels : collection of str
        The given reference levels.
    """
    try:
        yield
    except UnusableColumns as error:
        if not levels:
            raise
        raise BadInput(f"{error}; with --force-out or --count columns, also remove --reference") from None


def restrictions(**given: Any) -> Restrictions:
    """Return the restrictions that options describe.

    Parameters
    ----------
    **given
        Texts of options, by the name of the field of :class:`~sparsecv_mio.model_space.Restrictions`; features are
        separated by commas.
    """
    lists = {name: names(given.get(name), "--" + name.replace("_", "-")) for name in (*FORCING, *SIGNS)}
    return Restrictions(**{name: value for name, value in (given | lists).items() if value})


def model_word(words: Sequence[str], option: str) -> Callable[[str], str]:
    """Return the callback of --loss or --penalty: like `word`, with `l2` for `ridge` and hyphens for underscores."""

    def settle(text: str) -> str:
        plain = text.strip().lower().replace("-", "_")
        return match_keyword("ridge" if plain == "l2" else plain, words, option)

    return settle


def tolerance(value: float) -> None:
    """Raise `BadInput` unless a relative duality gap is in (0, 1)."""
    if not 0.0 < value < 1.0:
        raise BadInput(f"--tol: {value} is out of range; give a relative duality gap above 0 and below 1")
