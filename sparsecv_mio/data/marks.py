"""Numbers as people write them: decimal marks, thousands in groups of three, and which of these a column can hold.

The same text may be two numbers: `1,078` is 1078 where commas set off thousands and 1.078 where they are decimal marks.
What a column holds is judged by all of its cells, and where both readings take every one of them, neither is chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from sparsecv_mio.errors import BadInput

NONE = "none"  # said of thousands: they are not set off, whatever it looks like
SAME = {"'": "'\u2019", " ": " \u00a0\u2009\u202f"}  # marks that look alike
WORDS = {" ": "space", "'": "apostrophe"}
SHOWN = 8

_NUMBER = r"(?:\d{1,3}(?:[.,'\u2019 \u00a0\u2009\u202f]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?"
_MONEY = r"(?:[$\u20ac\u00a3\u00a5\u20b9\u20a9\u20bd]|USD|EUR|GBP|CHF|JPY)"
BOUND = re.compile(rf"[<>\u2264\u2265~]=?\s*[+-]?{_NUMBER}")
TEXTS = (  # what is no word, though no number as it stands, and what to do with it
    (BOUND, "values known as bounds alone: put a number for each, half of the limit say"),
    (re.compile(rf"[+-]?{_NUMBER}\s*%"), "numbers with a percent sign: take the signs off"),
    (
        re.compile(rf"[+-]?\s*{_MONEY}\s*[+-]?{_NUMBER}|[+-]?{_NUMBER}\s*{_MONEY}"),
        "amounts with a currency sign: take the signs off",
    ),
    (
        re.compile(rf"\(\s*{_MONEY}?\s*{_NUMBER}\s*\)|{_NUMBER}\s*[-\u2212]|[\u2212\u2013]\s*{_NUMBER}"),
        "numbers below zero without a minus sign in front: write it as -",
    ),
    (re.compile(r"\d{1,3}(?:_\d{3})+(?:\.\d*)?"), "numbers with underscores: take them out"),
    (
        re.compile(r"(?:\d{4}-\d\d?-\d\d?|\d\d?[./-]\d\d?[./-]\d{2,4}|\d{4}/\d\d?/\d\d?)(?:[T ]\d.*)?"),
        "dates: turn them into numbers of days",
    ),
    (re.compile(r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[aApP][mM])?"), "times: turn them into numbers of hours"),
    (re.compile(rf"[+-]?(?:{_NUMBER}|\d+(?:,\d+)+(?:\.\d+)?)"), "numbers with marks of another kind than the others: write all alike"),
)  # fmt: skip


class Way(NamedTuple):
    """A way to write numbers: the decimal mark, and what sets off thousands, if anything does."""

    decimal: str
    thousands: str | None

    def given(self, now: Way) -> str:
        """Return the keywords that ask for it, where another one is in force."""
        changed = [f'decimal="{self.decimal}"'] if self.decimal != now.decimal else []
        if self.thousands is not None:
            changed.append(f'thousands="{WORDS.get(self.thousands, self.thousands)}"')
        elif now.thousands is not None:
            changed.append(f'thousands="{NONE}"')
        return " and ".join(changed)


POINT, COMMA, COMMA_GROUPS, POINT_GROUPS = Way(".", None), Way(",", None), Way(".", ","), Way(",", ".")
WAYS = (
    POINT, COMMA, COMMA_GROUPS, POINT_GROUPS, Way(".", "'"), Way(".", " "), Way(",", "'"), Way(",", " "),
)  # fmt: skip
BOTH = ((COMMA, COMMA_GROUPS), (POINT, POINT_GROUPS))  # that read the same text as different numbers


@cache
def _grouped(decimal: str, thousands: str) -> re.Pattern[str]:
    mark, point = re.escape(SAME.get(thousands, thousands)), re.escape(decimal)
    return re.compile(rf"\s*[+-]?[1-9]\d{{0,2}}(?:[{mark}]\d{{3}})+(?:{point}\d*)?\s*", re.ASCII)


def parse_number(text: str, decimal: str = ".", thousands: str | None = None) -> float:
    """Read a decimal number; ValueError for text, also for the spellings that only Python knows (1_000).

    Parameters
    ----------
    text : str
    decimal : str
        The decimal mark.
    thousands : str, optional
        What sets off thousands, in groups of three digits.

    Examples
    --------
    >>> parse_number(" 1e-3"), parse_number("1,5", ","), parse_number("12.078,5", ",", ".")
    (0.001, 1.5, 12078.5)
    """
    if thousands not in (None, NONE) and _grouped(decimal, thousands).fullmatch(text):
        for mark in SAME.get(thousands, thousands):
            text = text.strip().replace(mark, "")
    if "_" in text or not text.isascii():
        raise ValueError(text)
    if decimal != ".":
        if "." in text:
            raise ValueError(text)
        text = text.replace(decimal, ".")
    return float(text)


def reads(text: str, way: Way) -> bool:
    """Whether a text is a number, written in some way."""
    try:
        parse_number(text, *way)
    except ValueError:
        return False
    return True


def what_else(text: str) -> str:
    """Say what a text is that is neither a word nor a number as it stands, and what to do with it; empty for a word.

    Examples
    --------
    >>> what_else("22%"), what_else("1st")
    ('numbers with a percent sign: take the signs off', '')
    """
    text = text.strip()
    return next((words for pattern, words in TEXTS if pattern.fullmatch(text)), "")


class Marks:
    """What the cells of a column show of how its numbers are written.

    Parameters
    ----------
    way : Way
        How they are read.

    Attributes
    ----------
    grouped : str
        The first cell whose decimal mark could set off thousands as well: `1.078`.
    plain, large : bool
        Whether another cell is a whole number without a mark, not zero; whether one of these has four digits or more.
    proof : bool
        Whether a cell shows that the decimal mark is one: `1.07`, `0.576`.
    odd : str
        The first cell that is no number.
    ways : tuple of Way
        In which all cells that are none would be.
    """

    def __init__(self, way: Way) -> None:
        self.way, self.grouped, self.odd = way, "", ""
        self.plain = self.large = self.proof = False
        said = way.thousands is not None
        self.ways: tuple[Way, ...] = () if said and way.thousands != NONE else WAYS[:2] if said else WAYS
        self._group = re.compile(rf"\s*[+-]?[1-9]\d{{0,2}}{re.escape(way.decimal)}\d{{3}}\s*", re.ASCII)

    def number(self, text: str) -> None:
        """Note a cell that is a number."""
        if self.proof:
            return
        if self.way.decimal in text:
            if self._group.fullmatch(text):
                self.grouped = self.grouped or text.strip()
            else:
                self.proof = True
        elif not self.large:
            digits = text.strip().lstrip("+-").lstrip("0")
            if digits.isdigit():
                self.plain, self.large = True, len(digits) > 3

    def text(self, text: str) -> None:
        """Note a cell that is no number."""
        self.odd = self.odd or text.strip()
        if self.ways:
            self.ways = tuple(one for one in self.ways if reads(text, one))

    def allows(self, way: Way) -> bool:
        """Whether the cells that are numbers now are so in another way too."""
        return way.decimal == self.way.decimal or not (self.proof or (self.grouped and way.thousands != self.way.decimal))

    def doubtful(self, evident: bool) -> bool:
        """Whether the decimal mark may set off thousands.

        Parameters
        ----------
        evident : bool
            Whether other columns show that it does not. A comma beside whole numbers, `1,078` and `576`, is in doubt
            all the same: read in the wrong way some cells are a thousandth of what they should be, and others not.
        """
        if self.way.thousands is not None or not self.grouped or self.proof:
            return False
        return self.plain and not evident if self.way.decimal == "." else self.plain or not evident


def ways_to_read(columns: Iterable[Marks]) -> tuple[Way, ...]:
    """Return the ways in which all columns are numbers that now hold text of that kind.

    Parameters
    ----------
    columns : iterable of Marks

    Returns
    -------
    tuple of Way
        None, one, or two that make different numbers of the same text.
    """
    every = list(columns)
    needy = [one for one in every if one.odd and one.ways]
    if not needy:
        return ()
    found = [way for way in WAYS if all(way in one.ways for one in needy) and all(one.allows(way) for one in every)]
    return next((pair for pair in BOTH if set(pair) <= set(found)), tuple(found[:1]))


def either(text: str, now: Way) -> str:
    """Say which two numbers a text may be, and how to ask for each.

    Parameters
    ----------
    text : str
        `1,078` or `1.078`.
    now : Way
        How it is read.

    Examples
    --------
    >>> either("1,078", Way(".", None))
    '\\'1,078\\' is 1078 with thousands="," and 1.078 with decimal="," and thousands="none": say which'
    """
    mark = "," if "," in text else "."
    groups = COMMA_GROUPS if mark == "," else POINT_GROUPS
    sure = Way(mark, None).given(now._replace(thousands=NONE))
    whole, part = parse_number(text, *groups), parse_number(text, mark)
    return f"{text!r} is {whole:.10g} with {groups.given(now)} and {part:.10g} with {sure}: say which"


def doubts(columns: Mapping[str, Marks]) -> dict[str, str]:
    """Return what is to be decided, by the name of a column whose numbers could be read in two ways.

    Parameters
    ----------
    columns : mapping of str to Marks
    """
    evident = any(one.proof for one in columns.values())
    found = {name: either(one.grouped, one.way) for name, one in columns.items() if one.doubtful(evident)}
    ways = ways_to_read(columns.values())
    if len(ways) > 1:
        found |= {name: either(one.odd, one.way) for name, one in columns.items() if one.odd and one.ways}
    return found


def check_marks(columns: Mapping[str, Marks]) -> None:
    """Refuse columns of numbers that could be read in two ways.

    Parameters
    ----------
    columns : mapping of str to Marks

    Raises
    ------
    BadInput
        The message names them, and how to ask for each reading.
    """
    found = doubts(columns)
    if found:
        shown = ", ".join(map(repr, list(found)[:SHOWN])) + (", ..." if len(found) > SHOWN else "")
        raise BadInput(f"column{'s' * (len(found) > 1)} {shown}: {next(iter(found.values()))}")
