"""Numbers as people write them: decimal marks, thousands in groups of three, and which of these a column can hold.

The same text may be two numbers: `1,078` is 1078 where commas set off thousands and 1.078 where they are decimal marks.
What a column holds is judged by all of its cells, and where both readings take every one of them, neither is chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
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
    (
        re.compile(rf"[+-]?(?:{_NUMBER}|\d+(?:,\d+)+(?:\.\d+)?)"),
        "numbers with marks of another kind than the others: write all alike",
    ),
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
BOTH = {",": (COMMA, COMMA_GROUPS), ".": (POINT, POINT_GROUPS)}  # by mark, what it may mean before three digits


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
    if thousands is not None and thousands != NONE and _grouped(decimal, thousands).fullmatch(text):
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


def reads_somehow(text: str) -> bool:
    """Whether a text is a number in some way or other."""
    return any(reads(text, way) for way in WAYS)


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
    against : str
        The cell that is no number in any way that the cells before it allow.
    """

    def __init__(self, way: Way) -> None:
        self.way, self.grouped, self.odd, self.against = way, "", "", ""
        self.plain = self.large = self.proof = False
        self._mark = way.decimal
        said = way.thousands is not None
        self.ways: tuple[Way, ...] = () if said and way.thousands != NONE else WAYS[:2] if said else WAYS
        self._group = re.compile(rf"\s*[+-]?[1-9]\d{{0,2}}{re.escape(way.decimal)}\d{{3}}\s*", re.ASCII)

    def number(self, text: str) -> None:
        """Note a cell that is a number."""
        if self.proof:
            return
        if self._mark in text:
            if self._group.fullmatch(text):
                self.grouped = self.grouped or text.strip()
            else:
                self.proof = True
        elif not self.plain or (not self.large and len(text) > 3):
            digits = text.strip().lstrip("+-").lstrip("0")
            if digits.isdigit():
                self.plain, self.large = True, self.large or len(digits) > 3

    def text(self, text: str) -> None:
        """Note a cell that is no number."""
        self.odd = self.odd or text.strip()
        if self.ways:
            self.ways = tuple(one for one in self.ways if reads(text, one))
            self.against = "" if self.ways or text.strip() == self.odd else text.strip()

    def allows(self, way: Way) -> bool:
        """Whether the cells that are numbers now are so in another way too."""
        if way.decimal == self.way.decimal:
            return True
        return not self.proof and (not self.grouped or way.thousands == self.way.decimal)

    def doubtful(self, evident: bool, semicolons: bool) -> bool:
        """Whether the decimal mark may set off thousands.

        Parameters
        ----------
        evident : bool
            Whether other columns show that it does not. A comma beside whole numbers, `1,078` and `576`, is in doubt
            all the same: read in the wrong way some cells are a thousandth of what they should be, and others not.
        semicolons : bool
            Whether cells are between semicolons, as where commas are decimal marks: then points in every row are in
            doubt as well. Else they are so beside whole numbers alone, none of which has four digits.
        """
        if self.way.thousands is not None or not self.grouped or self.proof:
            return False
        if self.way.decimal == ".":
            return (self.plain or semicolons) and not self.large and not evident
        return self.plain or not evident


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
    other = next((way for way in found[1:] if _witness(every, (found[0], way))), None)
    return tuple(found[:1]) if other is None else (found[0], other)


def _witness(columns: Iterable[Marks], ways: Sequence[Way]) -> str:
    """Return a text of which two ways make different numbers, empty where there is none."""
    texts = (text for one in columns for text in (one.odd if one.ways else "", one.grouped) if text)
    return next((text for text in texts if parse_number(text, *ways[0]) != parse_number(text, *ways[1])), "")


def either(text: str, now: Way, ways: Sequence[Way]) -> str:
    r"""Say which two numbers a text may be, and how to ask for each.

    Parameters
    ----------
    text : str
        `1,078` or `1.078`.
    now : Way
        How it is read.
    ways : sequence of two Way

    Examples
    --------
    >>> either("1,078", POINT, (COMMA, COMMA_GROUPS))
    '\'1,078\' is 1078 with thousands="," and 1.078 with decimal="," and thousands="none": say which'
    """
    first, second = sorted(((parse_number(text, *way), way) for way in ways), key=lambda one: -abs(one[0]))
    asked = [way.given(now if way.thousands else now._replace(thousands=NONE)) for way in (first[1], second[1])]
    return f"{text!r} is {first[0]:.10g} with {asked[0]} and {second[0]:.10g} with {asked[1]}: say which"


def doubts(columns: Mapping[str, Marks], sep: str | None = None) -> dict[str, str]:
    """Return what is to be decided, by the name of a column whose numbers could be read in two ways.

    Parameters
    ----------
    columns : mapping of str to Marks
    sep : str, optional
        What is between the cells, where that was said.
    """
    every = columns.values()
    evident, ways = any(one.proof for one in every), ways_to_read(every)
    found = dict[str, str]()
    for name, one in columns.items():
        if len(ways) > 1 and (text := _witness([one], ways)):
            found[name] = either(text, one.way, ways)
        elif one.doubtful(evident, sep == ";"):
            found[name] = either(one.grouped, one.way, BOTH[one.way.decimal])
    return found


def check_marks(columns: Mapping[str, Marks], sep: str | None = None) -> None:
    """Refuse columns of numbers that could be read in two ways.

    Parameters
    ----------
    columns : mapping of str to Marks
    sep : str, optional
        What is between the cells, where that was said.

    Raises
    ------
    BadInput
        The message names them, and how to ask for each reading.
    """
    found = doubts(columns, sep)
    if found:
        shown = ", ".join(map(repr, list(found)[:SHOWN])) + (", ..." if len(found) > SHOWN else "")
        raise BadInput(f"column{'s' * (len(found) > 1)} {shown}: {next(iter(found.values()))}")
