"""Two kinds of restrictions as they are given and stored: limits on groups of features, and parents of features."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from sparsecv_mio.errors import BadInput

ALL = "all"  # in place of a list of features: every one of them
STRONG, WEAK = "strong", "weak"
COUNT = re.compile(r"-?[0-9]{1,8}")
SEPARATORS = re.compile(r"\s*[:*]\s*|\s+")  # between the factors of a product: a:b, a*b, a b


@dataclass(frozen=True)
class AtMost:
    """At most so many of some features are in a model."""

    count: int
    features: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.count} of {', '.join(self.features)}"


@dataclass(frozen=True)
class Parents:
    """A feature that is in a model only with its parents: with all of them, or with at least one of them."""

    feature: str
    parents: tuple[str, ...]
    every: bool = True

    def __str__(self) -> str:
        return f"{self.feature} only with {(' and ' if self.every else ' or ').join(self.parents)}"


def features_of(text: str, option: str, separator: str = ",") -> tuple[str, ...]:
    """Read names separated by commas; one that holds a comma is quoted as in a CSV file.

    Parameters
    ----------
    text : str
    option : str
        For messages.
    separator : str
        In place of the comma.

    Examples
    --------
    >>> features_of('age, "a,b"', "at-most")
    ('age', 'a,b')
    """
    found = [name.strip() for name in next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])]
    if not found or "" in found:
        raise BadInput(f"{option}: {text!r} is not a list of column names separated by {separator!r}")
    return tuple(found)


def limits_of(given: Any) -> tuple[AtMost, ...]:
    """Read limits on groups: a text `2:a,b,c`, a pair `(2, ["a", "b", "c"])`, or several of these.

    Raises
    ------
    BadInput
        For what is none of these, or a count below 0.

    Examples
    --------
    >>> limits_of("2:a,b,c") == limits_of([(2, ["a", "b", "c"])])
    True
    """
    one = isinstance(given, str | AtMost) or (isinstance(given, tuple) and given and isinstance(given[0], Integral))
    return tuple(_limit(some) for some in ((given,) if one else _several(given, "at-most")))


def _limit(given: Any) -> AtMost:
    if isinstance(given, AtMost):
        count, features = given.count, tuple(given.features)
    elif isinstance(given, str):
        number, colon, names = given.partition(":")
        if not colon or not COUNT.fullmatch(number.strip()):
            raise BadInput(f"at-most: {given!r} is not K:A,B,... (at most K of the features A, B, ...)")
        count, features = int(number), features_of(names, "at-most")
    elif isinstance(given, Sequence) and len(given) == 2 and isinstance(given[0], Integral):
        count, features = int(given[0]), _names(given[1], "at-most")
    else:
        raise BadInput(f"at-most: {given!r} is neither 'K:A,B,...' nor a pair (K, features)")
    if count < 0:
        raise BadInput(f"at-most: {count} is out of range, a count is at least 0")
    return AtMost(count, features)


def parents_of(given: Any) -> tuple[Parents, ...]:
    """Read parents: `strong`, `weak`, texts `ab=a,b` (all) and `ab=a|b` (one at least), or a mapping to all parents.

    `strong` and `weak` stand for the parents that the names of products tell; see :func:`products`.

    Raises
    ------
    BadInput
        For what is none of these.

    Examples
    --------
    >>> parents_of("ab=a|b")
    (Parents(feature='ab', parents=('a', 'b'), every=False),)
    >>> parents_of({"ab": ["a", "b"]}) == parents_of(["ab=a,b"])
    True
    """
    if isinstance(given, Mapping):
        return tuple(Parents(str(name), _names(some, "hierarchy")) for name, some in given.items())
    one = isinstance(given, str | Parents)
    return tuple(_parents(some) for some in ((given,) if one else _several(given, "hierarchy")))


def _parents(given: Any) -> Parents:
    if isinstance(given, Parents):
        return Parents(given.feature, tuple(given.parents), bool(given.every))
    word = given.strip().lower() if isinstance(given, str) else ""
    if word in (STRONG, WEAK):
        return Parents(ALL, (), word == STRONG)
    name, sign, rest = given.rpartition("=") if isinstance(given, str) else ("", "", "")
    if not sign or not name.strip() or (("|" in rest) and ("," in rest)):
        raise BadInput(
            f"hierarchy: {given!r} is none of strong, weak, AB=A,B (with all parents) and AB=A|B (with one at least)"
        )
    separator = "|" if "|" in rest else ","
    return Parents(name.strip(), features_of(rest, "hierarchy", separator), separator == ",")


def _several(given: Any, option: str) -> Iterable[Any]:
    if not isinstance(given, Iterable):
        raise BadInput(f"{option}: {given!r} is not understood, see the documentation of this option")
    return given


def _names(given: Any, option: str) -> tuple[str, ...]:
    if isinstance(given, str):
        return features_of(given, option)
    if isinstance(given, Integral):
        return (str(given),)
    found = tuple(_several(given, option))
    if not found or not all(isinstance(name, str | Integral) for name in found):
        raise BadInput(f"{option}: {given!r} is not a list of features")
    return tuple(str(name) for name in found)


def products(names: Sequence[str], every: bool) -> tuple[Parents, ...]:
    """Return the parents of every feature whose name is a product of others: `a:b`, `a*b`, `a b`, `a^2`.

    Its parents are the products of one factor less that are among the features; where none is, its factors.

    Parameters
    ----------
    names : sequence of str
    every : bool
        Whether it needs all of them.

    Examples
    --------
    >>> products(["a", "b", "a:b", "b^2"], True)[1]
    Parents(feature='b^2', parents=('b',), every=True)
    """
    factors = {name: found for name in names if (found := _factors(name, names))}
    by_factors = {tuple(sorted(some.elements())): name for name, some in factors.items()}
    made = []
    for name, some in factors.items():
        smaller = []
        for factor in some:
            less = tuple(sorted((some - Counter([factor])).elements()))
            smaller.append(less[0] if len(less) == 1 else by_factors.get(less))
        above = {parent for parent in smaller if parent is not None} or set(some)
        made.append(Parents(name, tuple(sorted(above, key=list(names).index)), every))
    return tuple(made)


def _factors(name: str, names: Sequence[str]) -> Counter[str] | None:
    """Return the factors of a product, each a feature by itself; None where the name is no product."""
    known, found = set(names) - {name}, Counter[str]()
    for part in SEPARATORS.split(name.strip()):
        base, hat, power = part.rpartition("^")
        if hat and base in known and re.fullmatch("[2-9]", power):
            found[base] += int(power)
        elif part in known:
            found[part] += 1
        else:
            return None
    return found if found.total() > 1 else None
