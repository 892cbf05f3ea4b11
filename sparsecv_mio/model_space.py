"""The set of models that a search compares: required and excluded columns, ridge weights and support sizes.

The functions convert texts and lists to `Restrictions`, ridge weights and support sizes, and supply default values.
They have no side effects and need no numerical library. A text that cannot be parsed raises an error whose one-line
message names the option.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, pairwise
from numbers import Integral, Real
from typing import Any, Self

from sparsecv_mio.digits import MOST_NAMED, abbreviate_list, quoted_name
from sparsecv_mio.errors import BadInput, UnusableColumns, did_you_mean
from sparsecv_mio.targets import DEFAULT_LOSS, Loss
from sparsecv_mio.units import GAMMA_RANGE, exceeds_double

ALL = "all"  # keyword for the list of all features
COEF_BOUNDS = "coef_bounds"
LARGEST_BOUND = 1e100  # largest absolute value of a bound on a coefficient; its inverse is the smallest
RANGE_SIGN = ".."  # separates the bounds of an interval
STRONG, WEAK = "strong", "weak"
COUNT = re.compile(r"-?[0-9]{1,8}")
QUOTED = re.compile(r'"(?:[^"]|"")*"')
SEPARATORS = re.compile(r"\s*[:*]\s*|\s+")  # separators of the factors of a product: a:b, a*b, a b


@dataclass(frozen=True)
class AtMost:
    """A limit on the number of features of a group in a model."""

    count: int
    features: tuple[str, ...]

    def __str__(self) -> str:
        return self.describe({})

    def describe(self, words: Mapping[str, str]) -> str:
        """Return the limit as text, with other names for some features."""
        return f"{self.count} of {', '.join(quoted_name(words.get(name, name)) for name in self.features)}"


@dataclass(frozen=True)
class Parents:
    """A rule that a feature is in a model only with all of its parents, or with at least one of them."""

    feature: str
    parents: tuple[str, ...]
    every: bool = True

    def __str__(self) -> str:
        return self.describe({})

    def describe(self, words: Mapping[str, str]) -> str:
        """Return the rule as text, with other names for some features."""
        parents = (" and " if self.every else " or ").join(quoted_name(words.get(name, name)) for name in self.parents)
        return f"{quoted_name(words.get(self.feature, self.feature))} only with {parents}"


def unquoted_name(text: str) -> str:
    """Return a name without the quotes that it may have, as in a CSV file.

    Examples
    --------
    >>> unquoted_name('"size, m2"'), unquoted_name(" size, m2")
    ('size, m2', 'size, m2')
    """
    word = text.strip()
    return word[1:-1].replace('""', '"') if len(word) > 1 and word[0] == word[-1] == '"' else word


def parse_names(text: str, option: str, separator: str = ",") -> tuple[str, ...]:
    """Return the names in a comma-separated text; a name that contains a comma is quoted as in a CSV file.

    Parameters
    ----------
    text : str
        Text with the names.
    option : str
        Name of the option in messages.
    separator : str
        Separator of the names.

    Examples
    --------
    >>> parse_names('age, "a,b"', "at_most")
    ('age', 'a,b')
    """
    names = [name.strip() for name in next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])]
    if not names or "" in names:
        raise BadInput(f"{option}: {text!r} is not a list of column names separated by {separator!r}")
    return tuple(names)


def parse_limits(given: Any) -> tuple[AtMost, ...]:
    """Return limits on groups from a text `2:a,b,c`, a pair `(2, ["a", "b", "c"])`, or several of these.

    Raises
    ------
    BadInput
        If the input has another form, or a count is negative.

    Examples
    --------
    >>> parse_limits("2:a,b,c") == parse_limits([(2, ["a", "b", "c"])])
    True
    """
    alone = isinstance(given, str | AtMost) or (isinstance(given, tuple) and given and isinstance(given[0], Integral))
    return tuple(_limit(some) for some in ((given,) if alone else _several(given, "at_most")))


def _limit(given: Any) -> AtMost:
    if isinstance(given, AtMost):
        count, features = given.count, tuple(given.features)
    elif isinstance(given, str):
        number, colon, names = given.partition(":")
        if not colon or not COUNT.fullmatch(number.strip()):
            raise BadInput(f"at_most: {given!r} is not K:A,B,... (at most K of the features A, B, ...)")
        count, features = int(number), parse_names(names, "at_most")
    elif isinstance(given, Sequence) and len(given) == 2 and isinstance(given[0], Integral):
        count, features = int(given[0]), _given_names(given[1], "at_most")
    else:
        raise BadInput(f"at_most: {given!r} is neither 'K:A,B,...' nor a pair (K, features)")
    if count < 0:
        raise BadInput(f"at_most: {count} is out of range; give a count of at least 0")
    return AtMost(count, features)


def parse_hierarchy(given: Any) -> tuple[Parents, ...]:
    """Return hierarchy rules from `strong`, `weak`, texts `ab=a,b` or `ab=a|b`, or a mapping.

    `ab=a,b` requires all parents, as a mapping from features to parents does, and `ab=a|b` at least one. `strong` and
    `weak` derive the parents from the names of products; see :func:`products`.

    Raises
    ------
    BadInput
        If the input has another form.

    Examples
    --------
    >>> parse_hierarchy("ab=a|b")
    (Parents(feature='ab', parents=('a', 'b'), every=False),)
    >>> parse_hierarchy({"ab": ["a", "b"]}) == parse_hierarchy(["ab=a,b"])
    True
    """
    if isinstance(given, Mapping):
        return tuple(Parents(str(name), _given_names(some, "hierarchy")) for name, some in given.items())
    alone = isinstance(given, str | Parents)
    return tuple(_parents(some) for some in ((given,) if alone else _several(given, "hierarchy")))


def _parents(given: Any) -> Parents:
    if isinstance(given, Parents):
        return Parents(given.feature, tuple(given.parents), bool(given.every))
    word = given.strip().lower() if isinstance(given, str) else ""
    if word in (STRONG, WEAK):
        return Parents(ALL, (), word == STRONG)
    bare = QUOTED.sub(lambda match: "_" * len(match[0]), given) if isinstance(given, str) else ""
    cut = bare.rfind("=")
    name, parents, marks = (given[:cut], given[cut + 1 :], bare[cut + 1 :]) if cut > 0 else ("", "", "")
    if not name.strip() or ("|" in marks and "," in marks):
        raise BadInput(
            f"hierarchy: {given!r} is not one of strong, weak, AB=A,B (all parents) and AB=A|B (at least one parent)"
        )
    separator = "|" if "|" in marks else ","
    return Parents(unquoted_name(name), parse_names(parents, "hierarchy", separator), separator == ",")


def _several(given: Any, option: str) -> Iterable[Any]:
    if not isinstance(given, Iterable):
        raise BadInput(f"{option}: {given!r} is neither a text nor a list; give a text or a list")
    return given


def _given_names(given: Any, option: str) -> tuple[str, ...]:
    if isinstance(given, str):
        return parse_names(given, option)
    if isinstance(given, Integral):
        return (str(given),)
    names = tuple(_several(given, option))
    if not names or not all(isinstance(name, str | Integral) for name in names):
        raise BadInput(f"{option}: {given!r} is not a list of features; give names or positions")
    return tuple(str(name) for name in names)


@dataclass(frozen=True)
class CoefficientBounds:
    """Bounds on the coefficient of a feature in a model, in the units of the file; None for an open side."""

    feature: str
    low: float | None
    high: float | None

    def __str__(self) -> str:
        low, high = ("" if end is None else f"{end:g}" for end in (self.low, self.high))
        return f"{quoted_name(self.feature)} in [{low or '-inf'}, {high or 'inf'}]"

    @property
    def ends(self) -> tuple[float, float]:
        """Lower and upper bound; infinite for an open side."""
        return -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high


def parse_coef_bounds(given: Any) -> tuple[CoefficientBounds, ...]:
    """Return bounds on coefficients from a text `a=0..1,b=..5`, or a mapping from features to pairs (low, high).

    Raises
    ------
    BadInput
        If the input has another form, an end is not a number or too large or small for the arithmetic, or the lower end
        is above the upper one.

    Examples
    --------
    >>> [str(bounds) for bounds in parse_coef_bounds("a=0..1, b=..5")]
    ['a in [0, 1]', 'b in [-inf, 5]']
    >>> parse_coef_bounds({"a": (0, 1), "b": (None, 5)}) == parse_coef_bounds("a=0..1,b=..5")
    True
    """
    if isinstance(given, str):
        given = [_named_bounds(text) for text in parse_names(given, COEF_BOUNDS)]
    pairs = given.items() if isinstance(given, Mapping) else _several(given, COEF_BOUNDS)
    return tuple(pair if isinstance(pair, CoefficientBounds) else _bounds(*_pair(pair)) for pair in pairs)


def _named_bounds(text: str) -> tuple[str, tuple[str, str]]:
    name, _, ends = text.rpartition("=")
    low, dots, high = ends.partition(RANGE_SIGN)
    if not name.strip() or not dots:
        raise BadInput(f"{COEF_BOUNDS}: {text!r} is not NAME=LOW..HIGH; write for example age=0..1, or age=..5")
    return unquoted_name(name), (low.strip(), high.strip())


def _pair(given: Any) -> tuple[Any, Any]:
    """Return a feature and its pair of ends."""
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise BadInput(
            f"{COEF_BOUNDS}: {given!r} is not a mapping from features to bounds; give for example {{'age': (0, 1)}}"
        )
    return given[0], given[1]


def _bounds(name: Any, ends: Any) -> CoefficientBounds:
    """Return the bounds of a feature; an end that is None, empty or infinite is open."""
    if isinstance(ends, str) or not isinstance(ends, Sequence) or len(ends) != 2:
        raise BadInput(f"{COEF_BOUNDS}: the bounds {ends!r} of {name!r} are not (low, high); use None for no bound")
    low, high = (_end(name, end) for end in ends)
    if low is None and high is None:
        raise BadInput(f"{COEF_BOUNDS}: {name!r} has no bound; give a lower or an upper bound, or leave it out")
    if low is not None and high is not None and low > high:
        raise BadInput(
            f"{COEF_BOUNDS}: the bounds {low:g} and {high:g} of {name!r} are reversed; give the lower bound first"
        )
    if low == high == 0.0:
        raise BadInput(f"{COEF_BOUNDS}: the bounds of {name!r} allow only 0; use force_out")
    return CoefficientBounds(str(name), low, high)


def _end(name: Any, given: Any) -> float | None:
    value = finite_number(given, COEF_BOUNDS) if isinstance(given, str) and given else given
    if value in (None, "", -math.inf, math.inf):
        return None
    if not isinstance(value, Real) or not math.isfinite(value):
        raise BadInput(f"{COEF_BOUNDS}: the bound {given!r} of {name!r} is not a number; use None for no bound")
    end = float(value)
    if end and not 1.0 / LARGEST_BOUND <= abs(end) <= LARGEST_BOUND:
        raise BadInput(
            f"{COEF_BOUNDS}: the bound {end:g} of {name!r} is out of range; give 0, or a number with an absolute "
            f"value from {1.0 / LARGEST_BOUND:g} to {LARGEST_BOUND:g}, or leave this side open"
        )
    return end


def _describe_intervals(bounds: Sequence[CoefficientBounds]) -> Iterable[str]:
    """Return the intervals of some coefficients in words, or the number of features if these are many."""
    many = f"bounds on the coefficients of {len(bounds)} features"
    return (many,) if len(bounds) > MOST_NAMED else map(str, bounds)


def products(names: Sequence[str], every: bool) -> tuple[Parents, ...]:
    """Return the parents of every feature whose name is a product of others: `a:b`, `a*b`, `a b`, `a^2`.

    The parents are the features that are products with one factor less; if there are none, the parents are the factors.

    Parameters
    ----------
    names : sequence of str
        Names of all features.
    every : bool
        True if all parents are required, False if one is enough.

    Examples
    --------
    >>> products(["a", "b", "a:b", "b^2"], True)[1]
    Parents(feature='b^2', parents=('b',), every=True)
    """
    factors = {name: factors_of_name for name in names if (factors_of_name := _factors(name, names))}
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
    """Return the factors of a product if each is a feature; None if the name is not a product."""
    others, powers = set(names) - {name}, Counter[str]()
    for factor in SEPARATORS.split(name.strip()):
        base, hat, power = factor.rpartition("^")
        if hat and base in others and re.fullmatch("[2-9]", power):
            powers[base] += int(power)
        elif factor in others:
            powers[factor] += 1
        else:
            return None
    return powers if powers.total() > 1 else None


COLUMNS, FACTORS = "columns", "factors"  # units that count as one feature
EVERY_FACTOR = ((FACTORS,),)  # keyword for all factors, before their columns are known


def _similar_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the first names that differ only after their last underscore, as levels of an encoder do.

    Examples
    --------
    >>> _similar_names(["age", "onehotencoder__city_Bergen", "onehotencoder__city_Oslo"])
    ('onehotencoder__city_Bergen', 'onehotencoder__city_Oslo')
    """
    groups = _groups_of_names((name for name in names if name.rfind("_") > 0), lambda name: name.rpartition("_")[0])
    return next(iter(groups), ())


def _groups_of_names(names: Iterable[str], stem: Callable[[str], str]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of two or more names with the same stem."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(stem(name), []).append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def parse_count_groups(given: Any) -> tuple[tuple[str, ...], ...]:
    """Return the groups of columns that count as one feature, from `columns`, `factors` or given groups.

    Raises
    ------
    BadInput
        If the input has another form.

    Examples
    --------
    >>> parse_count_groups("columns"), parse_count_groups([["a", "b"], ["c", "d", "e"]])
    ((), (('a', 'b'), ('c', 'd', 'e')))
    """
    if isinstance(given, str):
        word = given.strip().lower()
        if word not in (COLUMNS, FACTORS):
            raise BadInput(
                f"count: {given!r} is neither {COLUMNS} nor {FACTORS}{did_you_mean(word, (COLUMNS, FACTORS))}"
            )
        return EVERY_FACTOR if word == FACTORS else ()
    return tuple(_given_names(columns, "count") for columns in _several(given, "count"))


def find_factors(names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return the columns of each factor: names with the same text before an equals sign.

    Examples
    --------
    >>> find_factors(["age", "city=Bergen", "city=Oslo", "sex=m"])
    (('city=Bergen', 'city=Oslo'),)
    """
    return _groups_of_names((name for name in names if "=" in name), lambda name: word_of_factor((name,)))


def word_of_factor(columns: Sequence[str]) -> str:
    """Return the name of a factor: the text before the equals sign, or its first column.

    Examples
    --------
    >>> word_of_factor(["city=Bergen", "city=Oslo"])
    'city'
    """
    return columns[0].partition("=")[0] or columns[0]


def words_of_terms(names: Sequence[str], factors: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the names of columns, with the name of a factor instead of all of its columns.

    Examples
    --------
    >>> words_of_terms(["age", "city=Bergen", "city=Oslo"], [["city=Bergen", "city=Oslo"]])
    ('age', 'city')
    """
    words = {name: word_of_factor(columns) for columns in factors for name in columns}
    return tuple(dict.fromkeys(words.get(name, name) for name in names))


@dataclass(frozen=True)
class Term:
    """A column, or several columns that enter a model together: the unit that a search includes or excludes.

    Attributes
    ----------
    columns : tuple of str, or of int
        Names, or positions among some columns, ascending.
    count : int
        Number of features that the term adds to tau: 1 for a column or a factor, 0 for an adjustment column, else the
        number of columns.
    penalty : float
        Factor of the ridge weight of the coefficients: 1, or 0 for an adjustment column.
    always : bool
        True if every model contains the term.

    Examples
    --------
    >>> Restrictions(force_in="a", adjust="b").terms(["a", "b", "c"])[1]
    Term(columns=('b',), count=0, penalty=0.0, always=True)
    """

    columns: tuple[Any, ...]
    count: int = 1
    penalty: float = 1.0
    always: bool = False

    def convert_to_positions(self, place: Mapping[Any, int]) -> Term:
        """Return the term with positions instead of names, without columns that have no position."""
        columns = tuple(place[column] for column in self.columns if column in place)
        return replace(self, columns=columns, count=min(self.count, len(columns)))


Column = str | int
Limits = str | Iterable[str | AtMost | tuple[int, Iterable[Column]]]
Hierarchy = str | Iterable[str | Parents] | Mapping[str, Iterable[Column]]
Bounds = str | Mapping[Column, tuple[float | None, float | None]] | Iterable[CoefficientBounds]


@dataclass(frozen=True)
class Restrictions:
    """Restrictions on the models that are searched; all other models are excluded.

    Attributes
    ----------
    force_in : str or sequence of str
        Features in every model. They are penalised like all others and count towards tau.
    force_out : str or sequence of str
        Features in no model, as if the data did not have them.
    at_most : str or sequence
        Limits on the number of features of a group in a model: `2:a,b,c`, `(2, ["a", "b", "c"])` or several of these.
    hierarchy : str, mapping or sequence of str
        Features that are in a model only with their parents, such as interactions with their factors. As text,
        `strong`, `weak`, `ab=a,b` (with both parents) or `ab=a|b` (with at least one).
    nonnegative, nonpositive : str or sequence of str
        Features whose coefficient is at least, or at most, zero. A model is then the fit under these sign constraints.
        A feature with coefficient zero under its sign constraint counts towards tau only if it is forced in or a
        parent.
    coef_bounds : str or mapping of str to (number, number)
        Bounds on coefficients, in the units of the file; as text, `a=0..1,b=..5`. A coefficient may always be zero,
        because its feature may be left out of a model, unless the feature is forced in. The feature `all` stands for
        all features without bounds of their own.
    adjust : str or sequence of str
        Columns that every model adjusts for, like the intercept: always included, not penalised, not counted in tau.
    count : str or sequence of sequences of str
        Groups of columns that enter a model together and count as one feature. In the input, `factors` means the
        columns `city=Bergen`, `city=Oslo`, ... of every encoded text column, and `columns` means no group. Limits and
        parents refer to a factor by its name; after `within` they refer to its first column.

    Notes
    -----
    In the input, a feature is given by its name or, if no feature has that name, by its position from 0. `within`
    converts
    positions to names.

    Examples
    --------
    >>> Restrictions(force_in=["b", 0]).resolve_names(["a", "b", "c"]).force_in
    ('a', 'b')
    """

    force_in: tuple[str, ...] = ()
    force_out: tuple[str, ...] = ()
    at_most: tuple[AtMost, ...] = ()
    hierarchy: tuple[Parents, ...] = ()
    nonnegative: tuple[str, ...] = ()
    nonpositive: tuple[str, ...] = ()
    coef_bounds: tuple[CoefficientBounds, ...] = ()
    adjust: tuple[str, ...] = ()
    count: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", parse_count_groups(self.count))
        for name in (*FORCING, *SIGNS):
            object.__setattr__(self, name, _given_features(getattr(self, name), name))
        object.__setattr__(self, "at_most", parse_limits(self.at_most))
        object.__setattr__(self, "hierarchy", parse_hierarchy(self.hierarchy))
        object.__setattr__(self, COEF_BOUNDS, parse_coef_bounds(self.coef_bounds))

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    @property
    def forced_columns(self) -> tuple[str, ...]:
        """Columns that are in every model."""
        return (*self.force_in, *self.adjust)

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Lower and upper bounds of bounded coefficients by feature, with sign constraints; needs names of the data."""
        ends = [(name, 0.0, math.inf) for name in self.nonnegative]
        ends += [(name, -math.inf, 0.0) for name in self.nonpositive]
        ends += [(bounds.feature, *bounds.ends) for bounds in self.coef_bounds]
        by_feature: dict[str, tuple[float, float]] = {}
        for name, low, high in ends:
            before = by_feature.get(name, (-math.inf, math.inf))
            by_feature[name] = max(before[0], low), min(before[1], high)
        return by_feature

    @property
    def has_bounds(self) -> bool:
        """True if a bound on a coefficient is neither 0 nor infinite.

        A fit under signs alone is the fit without constraints on the columns whose coefficients are not zero.
        """
        return any(end != 0.0 and math.isfinite(end) for ends in self.bounds.values() for end in ends)

    @property
    def has_only_bounds(self) -> bool:
        """True if all restrictions beyond forcing are bounds on coefficients, and not all of these are signs."""
        return self.has_bounds and set(self.side_constraints) <= {*SIGNS, COEF_BOUNDS}

    def terms(self, names: Sequence[str], together: Iterable[Sequence[str]] = ()) -> tuple[Term, ...]:
        """Return the terms of models; each column that is not forced out is in exactly one term.

        Parameters
        ----------
        names : sequence of str
            Columns of the data.
        together : iterable of sequences of str
            Further groups of columns that enter a model together, each column counted as a feature. Groups without a
            column in the data are ignored.

        Examples
        --------
        >>> [term.columns for term in Restrictions(count=[["a", "c"]], force_out="b").terms(["a", "b", "c", "d"])]
        [('a', 'c'), ('d',)]
        """
        outside, inside, free = set(self.force_out), set(self.forced_columns), set(self.adjust)
        of_name = {
            name: Term((name,), 0, 0.0, True) if name in free else Term((name,), always=name in inside)
            for name in names
        }
        groups = [(group, True) for group in self.count] + [(group, False) for group in together]
        for group, counted_once in groups:
            members = list(dict.fromkeys(of_name[name] for name in group if name in of_name))
            if not counted_once and not of_name.keys() >= set(group):
                outside.update(group)
            if len(members) > 1:
                inner = set(chain.from_iterable(member.columns for member in members))
                columns = tuple(name for name in names if name in inner)
                count = 1 if counted_once else sum(member.count for member in members)
                of_name |= dict.fromkeys(columns, Term(columns, count, always=any(some.always for some in members)))
        return tuple(term for term in dict.fromkeys(of_name.values()) if outside.isdisjoint(term.columns))

    def penalties(self, names: Sequence[str]) -> list[float]:
        """Return the factor of the ridge weight of each column."""
        free = set(self.adjust)
        return [0.0 if name in free else 1.0 for name in names]

    def check_vary(self, constant: Container[str]) -> None:
        """Raise `BadInput` for a constant column in every model, unless it is a level of a factor that counts once.

        If the levels of a factor are separate features, a model without one of them has a free place in tau. The errors
        of such a model and of the other models cannot be compared.

        Parameters
        ----------
        constant : container of str
            Columns of the data that are constant.
        """
        faults = {name: f"adjust: column {name!r} is constant, like the intercept" for name in self.adjust}
        faults |= {name: f"force_in: feature {name!r} is constant, so it cannot be selected" for name in self.force_in}
        may_lack = {name for group in self.count if not all(one in constant for one in group) for name in group}
        for name in (*self.force_in, *self.adjust):
            if name in constant and (name in self.adjust or name not in may_lack):
                factors = " or, for a level of a text column, give --count factors" if name in self.force_in else ""
                raise BadInput(f"{faults[name]}; remove it from this option{factors}")

    def named_columns(self) -> Iterator[tuple[str, str]]:
        """Yield every column that a restriction names, with the name of the field."""
        for field in (*FORCING, *SIGNS):
            yield from ((field, name) for name in getattr(self, field))
        yield from ((COEF_BOUNDS, bounds.feature) for bounds in self.coef_bounds)
        yield from (("count", name) for columns in self.count for name in columns)
        yield from (("at_most", name) for limit in self.at_most for name in limit.features)
        yield from (("hierarchy", name) for rule in self.hierarchy for name in (rule.feature, *rule.parents))

    @property
    def side_constraints(self) -> tuple[str, ...]:
        """Names of the restrictions in use other than forcing features in or out."""
        return tuple(name for name in BEYOND_FORCING if getattr(self, name))

    def words(self, features: int | None = None) -> str:
        """Return the restrictions as one sentence; long lists are replaced by their lengths.

        Parameters
        ----------
        features : int, optional
            Number of features of the data, to recognise a sign constraint on all of them.

        Examples
        --------
        >>> Restrictions(at_most="1:a,b", hierarchy="ab=a|b", nonnegative="c").words()
        'at most 1 of a, b; ab only with a or b; c not below 0'
        >>> Restrictions(nonnegative="all").words()
        'no coefficient below 0'
        """
        against = self._reference_levels()
        without = tuple(name for name in self.force_out if name not in against)
        forced = (("adjusted for", self.adjust), ("with", self.force_in), ("without", without))
        together = () if self.count == EVERY_FACTOR else self.count
        factors = [word_of_factor(columns) for columns in together]
        said = [f"{text} {abbreviate_names(words_of_terms(some, together))}" for text, some in forced if some]
        if against:
            said[0] += f" (levels against {abbreviate_names(against)})"
        if self.count:
            said.append(
                "all levels of a factor together, counted as one feature"
                + (f" ({abbreviate_names(factors)})" if factors else "")
            )
        firsts = {columns[0]: word_of_factor(columns) for columns in self.count}
        said += [f"at most {limit.describe(firsts)}" for limit in self.at_most]
        if len(self.hierarchy) > MOST_NAMED:
            said.append(f"{len(self.hierarchy)} features enter only with their parents (--hierarchy)")
        else:
            said += [rule.describe(firsts) for rule in self.hierarchy]
        for text, some in (("below 0", self.nonnegative), ("above 0", self.nonpositive)):
            every = some == (ALL,) or len(some) == features
            said += [f"no coefficient {text}" if every else f"{abbreviate_names(some)} not {text}"] if some else []
        return "; ".join([*said, *_describe_intervals(self.coef_bounds)])

    def _reference_levels(self) -> tuple[str, ...]:
        """Return the levels that are excluded because all other levels of a factor are adjusted for."""
        adjusted = {word_of_factor((name,)) for name in self.adjust if "=" in name}
        return tuple(name for name in self.force_out if "=" in name and word_of_factor((name,)) in adjusted)

    def _adjusted_reference_levels(self, place: dict[str, int], constant: bool) -> set[int]:
        """Return the positions of the first levels of the adjusted factors, which the intercept represents."""
        levels = [_levels(word.strip(), place) for word in self.adjust]
        first_levels = [positions[0] for positions in levels if len(positions) > 1]
        return set(first_levels if constant else first_levels[1:])

    def resolve_names(self, names: Sequence[str], constant: bool = True) -> Self:
        """Return the restrictions with the names of the data, in the order of the data.

        Parameters
        ----------
        names : sequence of str
            Features of the data.
        constant : bool
            True if models have an intercept. Otherwise the first level of the first factor that is adjusted for takes
            its place.

        Raises
        ------
        BadInput
            If a feature is unknown, a feature is forced in and out, or no feature is left.
        """
        if not self:
            return self
        place = {name: j for j, name in enumerate(names)}
        inside, outside, adjusting = (_find_positions(getattr(self, name), place, name) for name in FORCING)
        references = self._adjusted_reference_levels(place, constant)
        for option, some in (("force_in", inside), ("force_out", outside)):
            if twice := some & adjusting:
                name = names[min(twice)]
                raise _adjusted_twice(option, name)
        outside, adjusting = outside | references, adjusting - references
        factors = self._resolve_factors(names, outside | adjusting)
        for columns in factors:
            places = {place[name] for name in columns}
            inside |= places if inside & places else set()
        if contradicted := inside & outside:
            name = names[min(contradicted)]
            raise BadInput(f"force_in, force_out: feature {name!r} is in both options; remove it from one of the two")
        inner, outer, always = (tuple(names[j] for j in sorted(some)) for some in (inside, outside, adjusting))
        shaped = replace(self, count=factors)._resolve_constraints(names)
        shaped = replace(shaped, force_in=inner, force_out=outer, adjust=always)
        shaped.check_adjustment()
        if len(outside) + len(adjusting) == len(names):
            raise BadInput(
                f"{'adjust' if adjusting else 'force_out'}: no feature is left to select; remove a feature from this "
                "option"
            )
        return shaped

    def check_adjustment(self) -> None:
        """Raise `BadInput` if an adjustment column has a second role; needs names of the data."""
        for option, name in self.named_columns():
            if option not in ("adjust", "count") and name in self.adjust:
                raise _adjusted_twice(option, name)

    def _resolve_factors(self, names: Sequence[str], others: set[int]) -> tuple[tuple[str, ...], ...]:
        """Return the factors by names of the data, without excluded and adjustment columns."""
        place = {name: j for j, name in enumerate(names)}
        factors = find_factors(names) if self.count == EVERY_FACTOR else self.count
        if self.count and not factors:
            similar = _similar_names(names)
            listed = f", or list the columns of each factor in Python, [[{', '.join(map(repr, similar))}], ...]"
            raise BadInput(
                "count: the data have no factor with two or more columns, such as city=Bergen and city=Oslo; leave "
                'this option out, or encode a column of three or more values (encode="onehot" of `solve`, and '
                'categories="COLUMN" if the values are numbers; in a '
                'pipeline, OneHotEncoder(feature_name_combiner="{}={}".format, sparse_output=False) and '
                f"set_output(transform='pandas')){listed if similar else ''}"
            )
        made = [sorted(_find_positions(columns, place, "count") - others) for columns in factors]
        seen: set[int] = set()
        for columns in made:
            if twice := seen & set(columns):
                raise BadInput(f"count: column {names[min(twice)]!r} is in two factors; remove it from one of them")
            seen |= set(columns)
        bounded = {**{option: getattr(self, option) for option in SIGNS},
                   COEF_BOUNDS: [bounds.feature for bounds in self.coef_bounds]}  # fmt: skip
        for option, features in bounded.items():
            for j in sorted(_find_positions([name for name in features if name != ALL], place, option) & seen):
                raise UnusableColumns(
                    f"{option}, count: column {names[j]!r} is a level of a factor; its coefficient is a deviation from "
                    'the mean of the levels and cannot be bounded; give count="columns"'
                )
        return tuple(tuple(names[j] for j in columns) for columns in sorted(made) if len(columns) > 1)

    def _resolve_constraints(self, names: Sequence[str]) -> Self:
        """Return the restrictions beyond forcing by names, with `all`, `strong` and `weak` expanded."""
        place = {name: j for j, name in enumerate(names)}
        adjusted = {names[j] for j in _find_positions(self.adjust, place, "adjust")}  # including a first level
        by_name = _ByName(tuple(names), self.count, adjusted)
        parents = [parent for rule in self.hierarchy for parent in by_name.parents(rule)]
        groups = tuple(AtMost(limit.count, by_name.columns(limit.features, "at_most")) for limit in self.at_most)
        signs = [by_name.columns(getattr(self, name), name) for name in SIGNS]
        contradicted = sorted(set(signs[0]) & set(signs[1]))
        if contradicted:
            raise BadInput(
                f"nonnegative, nonpositive: feature {contradicted[0]!r} is in both options, so its coefficient is 0; "
                "remove it from one of the two, or use force_out"
            )
        bounds = by_name.coefficient_bounds(self.coef_bounds)
        shaped = replace(
            self, at_most=groups, hierarchy=tuple(dict.fromkeys(parents)), nonnegative=signs[0], nonpositive=signs[1],
            coef_bounds=bounds,
        )  # fmt: skip
        for name, (low, high) in shaped.bounds.items():
            if low > high or low == high == 0.0:
                option = "nonnegative" if name in signs[0] else "nonpositive"
                raise UnusableColumns(
                    f"{option}, {COEF_BOUNDS}: the bounds of {name!r} allow no coefficient except 0; exclude this "
                    f"feature by force_out={json.dumps([name])}"
                )
        return shaped

    @property
    def unit_of_tau(self) -> str:
        """The unit that tau counts: a term, which may be a factor of several columns, or a feature of one column."""
        return "term" if self.count else "feature"

    def n_selectable_features(self, p: int) -> int:
        """Return the number of features among p columns that may be chosen; a factor counts as one."""
        return p - len(self.force_out) - len(self.adjust) - sum(len(columns) - 1 for columns in self.count)

    def features(self, columns: Iterable[str]) -> int:
        """Return the number of features that some columns count as."""
        chosen = set(columns)
        return len(chosen) - sum(max(len(chosen.intersection(factor)) - 1, 0) for factor in self.count)

    def check_sizes(self, taus: Iterable[int], p: int) -> None:
        """Raise `BadInput` for a support size that no model can have.

        Parameters
        ----------
        taus : iterable of int
            Support sizes.
        p : int
            Number of features of the data.
        """
        least, most = self.features(self.force_in), self.n_selectable_features(p)
        for tau in taus:
            if tau < least:
                raise BadInput(f"tau {tau} is below the number of features that are forced in; use {least} to {most}")
            if tau > most:
                which = "may be chosen" if self.adjust else "are not forced out"
                raise BadInput(f"tau {tau} is above the number of features that {which}; use at most {most}")


class _ByName:
    """Lookup of the names in restrictions among the names of the data; a factor becomes its first column."""

    def __init__(self, names: tuple[str, ...], factors: Iterable[tuple[str, ...]], adjusted: Container[str]) -> None:
        self.names, self.place = names, {name: j for j, name in enumerate(names)}
        self.firsts = {name: columns[0] for columns in factors for name in columns}
        self.all = tuple(name for name in names if name not in adjusted and name not in self.firsts)
        words = [word_of_factor((name,)) if name in self.firsts else name for name in names]
        self.first_of = {word: self.firsts.get(name, name) for word, name in zip(words[::-1], names[::-1], strict=True)}
        self.words = list(dict.fromkeys(words))

    def columns(self, given: Sequence[str], option: str) -> tuple[str, ...]:
        """Return the columns that an option names, in the order of the data."""
        if tuple(given) == (ALL,) and ALL not in self.place:
            return self.all
        places = sorted(_find_positions([self.first_of.get(word, word) for word in given], self.place, option))
        return tuple(dict.fromkeys(self.firsts.get(self.names[j], self.names[j]) for j in places))

    def coefficient_bounds(self, given: Iterable[CoefficientBounds]) -> tuple[CoefficientBounds, ...]:
        """Return bounds by names of the data, in their order; those of a feature replace those of `all`."""
        by_column: dict[str, CoefficientBounds] = {}
        own = set[str]()
        for bounds in given:
            is_all = bounds.feature == ALL and ALL not in self.place
            columns = self.columns([bounds.feature], COEF_BOUNDS)
            if not is_all and own.intersection(columns):
                raise BadInput(f"{COEF_BOUNDS}: feature {bounds.feature!r} has bounds twice; give one interval")
            own |= set() if is_all else set(columns)
            by_column |= {name: replace(bounds, feature=name) for name in columns if not (is_all and name in own)}
        return tuple(by_column[name] for name in self.names if name in by_column)

    def parents(self, rule: Parents) -> list[Parents]:
        """Return a rule by names of the data, or the rules that `strong` and `weak` expand to."""
        if (rule.feature, rule.parents) != (ALL, ()):
            child, above = self.columns([rule.feature], "hierarchy")[0], self.columns(rule.parents, "hierarchy")
            if child in above:
                raise BadInput(f"hierarchy: feature {child!r} is its own parent; name other features")
            return [Parents(child, above, rule.every)]
        made, first_of = products(self.words, rule.every), self.first_of
        if not made:
            raise BadInput(
                "hierarchy: no feature has the name of a product (a:b, a*b, a b, a^2); name the products, as in AB=A,B"
            )
        return [
            Parents(first_of[own.feature], tuple(first_of[word] for word in own.parents), own.every) for own in made
        ]


def abbreviate_names(names: Sequence[str]) -> str:
    """Return names as a list, quoted if they contain a comma; a long list ends with the number of the others."""
    return abbreviate_list(list(map(quoted_name, names)))


def _adjusted_twice(option: str, name: str) -> BadInput:
    """Return the error for an adjustment column that another option names too."""
    return BadInput(
        f"adjust, {option}: column {name!r} is in both options, but adjustment columns take no part in the selection; "
        f"remove {name!r} from one of the two options"
    )


def _given_features(given: Any, option: str) -> tuple[str, ...]:
    """Return the given features as texts, without repetition."""
    if not isinstance(given, str | Integral | Iterable):
        raise BadInput(f"{option}: {given!r} is neither a feature nor a list of features; give names or positions")
    columns = [given] if isinstance(given, str | Integral) else list(given)
    for column in columns:
        if not isinstance(column, str | Integral):
            raise BadInput(f"{option}: {column!r} is neither the name nor the position of a feature; give one of these")
    return tuple(dict.fromkeys(str(column) for column in columns))


def _levels(word: str, place: dict[str, int]) -> list[int]:
    """Return the positions of the columns of an encoded text column, or nothing for a feature."""
    return [] if word in place else [j for name, j in place.items() if name.startswith(f"{word}=")]


def _split(text: str) -> list[str]:
    return next(csv.reader([text], skipinitialspace=True), [text])


def _find_positions(given: Sequence[str], place: dict[str, int], option: str) -> set[int]:
    """Return the positions of features given by name, or by position if no feature has that name.

    The name of an encoded text column selects the columns of its levels. A text that is not the name of a feature is
    split at its commas.
    """
    places = set()
    for text in chain.from_iterable([name] if name.strip() in place else _split(name) for name in given):
        word = text.strip()
        if text in place or word in place:
            places.add(place[text if text in place else word])
        elif word.isascii() and word.isdigit() and len(word) < 10 and int(word) < len(place):
            places.add(int(word))
        elif option != "hierarchy" and (levels := _levels(word, place)):
            places.update(levels)
        else:
            others = "columns of the target, folds, weights or ids cannot be selected"
            where = did_you_mean(text, place) or f": there are {abbreviate_names(list(place))}; {others}"
            raise BadInput(f"{option}: {text!r} is not a feature{where}")
    return places


FORCING, SIGNS = ("force_in", "force_out", "adjust"), ("nonnegative", "nonpositive")
NONE = Restrictions()
RESTRICTIONS = tuple(field.name for field in fields(Restrictions))
BEYOND_FORCING = tuple(name for name in RESTRICTIONS if name not in FORCING)


DEFAULT_GAMMAS, WIDE_GAMMAS = "1e-3:10:15", "0.05:10:9"  # the second if columns are not fewer than training rows
FEW_FEATURES = 30  # features, up to which every size is tried by default
MOST_FULL = 300  # features, up to which the model of all features is tried as well
LEAST_MAX_TAU, MOST_MAX_TAU, ROWS_A_FEATURE = 10, 50, 8  # sizes for more features; see docs/defaults.md
MAX_COUNT = 10_000  # maximum number of grid values, tangents or repeats; a larger one is taken for a mistake
EVEN_STEPS = 1e-3  # relative difference of steps up to which a grid counts as logarithmic
MOST_DIGITS = 18  # maximum number of digits of an integer


@dataclass(frozen=True)
class GammaInterval:
    """An interval of ridge weights from `low` to `high`, both included, instead of a list of gammas.

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
            raise BadInput(f"gammas: {self.low!r} and {self.high!r} are not two numbers; give the ends as numbers")
        if not GAMMA_RANGE[0] <= self.low < self.high <= GAMMA_RANGE[1]:
            raise BadInput(f"gammas: {self} is not an interval of positive numbers; give LO..HI with LO below HI")

    def __str__(self) -> str:
        return f"{self.low:g}{RANGE_SIGN}{self.high:g}"


def interval(text: str, option: str = "--gamma") -> GammaInterval | None:
    """Return the interval of ridge weights of a text `LO..HI`, or None if the text is a list.

    Parameters
    ----------
    text : str
        Text to parse.
    option : str
        Name of the option in messages.

    Examples
    --------
    >>> interval("1e-3..10"), interval("0.1,1")
    (GammaInterval(low=0.001, high=10.0), None)
    """
    if RANGE_SIGN not in text:
        return None
    parts = text.split(RANGE_SIGN)
    if len(parts) != 2:
        raise BadInput(f"{option}: {text!r} is not an interval; write LO..HI with two numbers")
    low, high = _positive(parts[0], option), _positive(parts[1], option)
    if low >= high:
        advice = f"write {low:g}" if low == high else f"write {parts[1]}{RANGE_SIGN}{parts[0]}"
        raise BadInput(f"{option}: {text!r} is {'a single gamma' if low == high else 'reversed'}; {advice}")
    return GammaInterval(low, high)


def finite_number(text: str, option: str) -> float:
    """Return a finite number.

    Examples
    --------
    >>> finite_number("1e-3", "--gap")
    0.001
    """
    try:
        value = float(_plain(text))
    except ValueError:
        share, _, rest = text.strip().partition("%")
        is_percentage = text.strip().endswith("%") and not rest
        remedy = f"write {finite_number(share, option) / 100.0:g}" if is_percentage else "give a number"
        raise BadInput(f"{option}: {text.strip()!r} is not a number; {remedy}") from None
    if not math.isfinite(value):
        raise BadInput(f"{option}: {text.strip()!r} is not a finite number; give such a number")
    return value


def parse_integer(text: str, option: str) -> int:
    """Return an integer of at most 18 digits.

    Examples
    --------
    >>> parse_integer("12", "--seed")
    12
    """
    if len(text.strip()) > MOST_DIGITS + 1:
        raise BadInput(f"{option}: {text.strip()!r} is too long; give a whole number of at most {MOST_DIGITS} digits")
    try:
        return int(_plain(text))
    except ValueError:
        ends = re.fullmatch(r"(\d+)\s*-\s*(\d+)", text.strip()) if "tau" in option else None
        repeats = describe_repeats(text, option) or "; give a whole number"
        advice = repeats if ends is None else f"; for a range write {ends[1]}:{ends[2]}"
        raise BadInput(f"{option}: {text.strip()!r} is not a whole number{advice}") from None


def describe_repeats(text: str, option: str) -> str:
    """Return the advice for outer folds `RxK`, which nested cross-validation does not repeat; empty for other values.

    Examples
    --------
    >>> describe_repeats("3x5", "--nested")
    '; give --nested 5 with 3 different values of --seed, and average the 3 nested CV errors'
    """
    found = re.fullmatch(r"(\d+)\s*x\s*(\d+)", text.strip())
    if found is None or not option.endswith("nested"):
        return ""
    times, seed = found[1], option.replace("nested", "seed")
    return (
        f"; give {option} {found[2]} with {times} different values of {seed}, and average the {times} nested CV errors"
    )


def _plain(text: str) -> str:
    """Return the text of a number; raise ValueError for digits other than 0 to 9 and for underscores."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return text


def gammas(text: str, option: str = "--gamma") -> tuple[float, ...]:
    """Return the ridge weights of a list of numbers and logarithmic ranges `LO:HI:COUNT`, both ends included.

    The value 0 means least squares; a range must start above 0.

    Parameters
    ----------
    text : str
        List of numbers and ranges.
    option : str
        Name of the option in messages.

    Returns
    -------
    tuple of float
        Ascending, each once.

    Examples
    --------
    >>> gammas("1,0.1,1")
    (0.1, 1.0)
    >>> gammas("0,0.01:1:3")
    (0.0, 0.01, 0.1, 1.0)
    """
    if RANGE_SIGN in text:
        raise BadInput(f"{option}: {text!r} is an interval, which is not supported here; give a list or LO:HI:COUNT")
    words = text.split(",")
    return tuple(sorted({gamma for word in words for gamma in _gammas_of_word(word, option)}))


def _gammas_of_word(text: str, option: str) -> tuple[float, ...]:
    """Return one ridge weight, or a logarithmic range of ridge weights."""
    if ":" not in text:
        has_digits = any(digit in "123456789" for digit in text.lower().partition("e")[0])  # 1e-400 becomes 0
        return (0.0,) if finite_number(text, option) == 0.0 and not has_digits else (_positive(text, option, ", or 0"),)
    parts = text.split(":")
    if len(parts) != 3:
        raise BadInput(f"{option}: {text!r} is neither a list of numbers nor LO:HI:COUNT")
    if finite_number(parts[0], option) == 0.0:
        raise BadInput(
            f"{option}: {text!r} is a logarithmic grid, which cannot start at 0; write 0,LO:{parts[1]}:{parts[2]}"
        )
    low, high, count = _positive(parts[0], option), _positive(parts[1], option), parse_integer(parts[2], option)
    if low > high:
        raise BadInput(f"{option}: {text!r} is reversed; write {parts[1]}:{parts[0]}:{parts[2]}")
    if not 1 <= count <= MAX_COUNT or (count == 1 and low < high):
        raise BadInput(f"{option}: COUNT of {text!r} must be from 2 to {MAX_COUNT}")
    if low == high:
        return (low,)
    # powers of ten with a rounded exponent, so that a grid over decades contains exactly 0.1 and 1
    first, last = math.log10(low), math.log10(high)
    inner = (10.0 ** round(first + (last - first) * i / (count - 1), 12) for i in range(1, count - 1))
    return (low, *inner, high)


def _positive(text: str, option: str, also: str = "") -> float:
    value, (low, high) = finite_number(text, option), GAMMA_RANGE
    if not low <= value <= high:
        raise BadInput(f"{option}: {text.strip()!r} is out of range; give a gamma from {low:g} to {high:g}{also}")
    return value


def taus(text: str, p: int, option: str = "--tau") -> tuple[int, ...]:
    """Return the support sizes of a text: a list of `K` and `LO:HI` (both included), from 0 to p.

    Parameters
    ----------
    text : str
        List of sizes and ranges.
    p : int
        Number of features.
    option : str
        Name of the option in messages.

    Returns
    -------
    tuple of int
        Ascending, each once.

    Examples
    --------
    >>> taus("0,3:5", 10)
    (0, 3, 4, 5)
    """
    sizes: set[int] = set()
    for word in text.split(","):
        ends = [parse_integer(end, option) for end in word.split(":")]
        if len(ends) > 2:
            raise BadInput(f"{option}: {word.strip()!r} is neither a model size nor a range; write K or LO:HI")
        low, high = ends[0], ends[-1]
        if low > high:
            raise BadInput(f"{option}: {word.strip()!r} is reversed; write {high}:{low}")
        if low < 0 or high > p:
            raise size_out_of_range(f"{option}: {word.strip()!r}", p)
        sizes.update(range(low, high + 1))
    return tuple(sorted(sizes))


def size_out_of_range(size: str, p: int) -> BadInput:
    """Return the error for a model size that is negative or larger than the number of features.

    Parameters
    ----------
    size : str
        Name and value of the option.
    p : int
        Number of features.
    """
    return BadInput(f"{size} is out of range; give a number from 0 to {p} (n_features = {p})")


def check_grid(gammas: Sequence[float], taus: Sequence[int], p: int) -> None:
    """Check the ridge weights and sizes of a grid.

    Parameters
    ----------
    gammas : sequence of float
        Ridge weights.
    taus : sequence of int
        Sizes.
    p : int
        Number of features.

    Raises
    ------
    BadInput
        If the grid is empty, a gamma is neither 0 nor in 1e-300 .. 1e300, or a tau is not an integer in 0 .. p.
    """
    if len(gammas) == 0 or len(taus) == 0:
        raise BadInput("the grid is empty; give at least one gamma and one tau")
    for gamma in gammas:
        if not (gamma == 0.0 or GAMMA_RANGE[0] <= gamma <= GAMMA_RANGE[1]):
            raise BadInput(f"gamma {gamma:g} is out of range; give 0, or a number from 1e-300 to 1e300")
    for tau in taus:
        if not 0 <= tau <= p or tau != int(tau):
            raise size_out_of_range(f"tau {tau}", p)


def text_of_gammas(values: Iterable[float]) -> str:
    """Return ridge weights as a text that `gammas` parses, to four digits.

    Examples
    --------
    >>> text_of_gammas(gammas("1e-3:10:15")[-5:]), text_of_gammas([0.0, 0.1]), text_of_gammas([0.1, 0.5, 1.0])
    ('0.7197:10:5', '0,0.1', '0.1,0.5,1')
    """
    values = list(values)
    listed = [f"{value:.4g}" for value in values]
    if values[0] == 0.0 and len(values) > 1:
        return f"0,{text_of_gammas(values[1:])}"
    if len(values) > 2:
        steps = [math.log(high / low) for low, high in pairwise(values)]
        if max(steps) - min(steps) < EVEN_STEPS:
            return f"{listed[0]}:{listed[-1]}:{len(values)}"
    return ",".join(listed)


def text_of_taus(values: Iterable[int]) -> str:
    """Return ascending support sizes as a text that `taus` parses.

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


def default_taus(p: int, n_train: int, all_features: bool = True) -> tuple[int, ...]:
    """Return the default support sizes: every size from 1 to p, at most n_train - 1; fewer beyond 30 features.

    With more than 30 features, the largest size is one feature for every 8 training rows, but at least 10 and at most
    50. If there are at most 300 features, and fewer features than training rows, the model of all features is added: it
    is a single support, which needs no search.

    Parameters
    ----------
    p : int
        Number of features.
    n_train : int
        Rows of the smallest training set.
    all_features : bool
        True if the model of all features may be added to the smaller sizes.

    Examples
    --------
    >>> default_taus(4, 100), default_taus(40, 80)
    ((1, 2, 3, 4), (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 40))
    >>> [default_taus(1000, n)[-1] for n in (9, 50, 180, 900)]
    [8, 10, 22, 50]
    """
    largest = p if p <= FEW_FEATURES else max(LEAST_MAX_TAU, min(n_train // ROWS_A_FEATURE, MOST_MAX_TAU))
    sizes = tuple(range(1, max(1, min(p, n_train - 1, largest)) + 1))
    return (*sizes, p) if all_features and sizes[-1] < p < n_train and p <= MOST_FULL else sizes


def log_taus(p: int, n_train: int) -> tuple[int, ...]:
    """Return the support sizes 1, 2, ... with `tau log tau <= min(n_train, p)`.

    By the rule of the paper, larger supports cannot be recovered from n_train rows.

    Examples
    --------
    >>> log_taus(10, 100)
    (1, 2, 3, 4, 5)
    """
    most = min(n_train, p)
    return tuple(tau for tau in range(1, max(most, 1) + 1) if tau * math.log(tau) <= most)


def default_gammas(p: int, n_train: int, count: int | None = None, loss: Loss = DEFAULT_LOSS) -> tuple[float, ...]:
    """Return 15 ridge weights from 0.001 to 10, or 9 from 0.05 to 10 if p is at least n_train.

    With logistic loss, return 5 values from 0.3 to 30, and with Poisson loss 7 values from 3 to 3,000. Both ranges are
    divided by the number of rows of the smallest training set and rounded to two digits (docs/defaults.md).

    Parameters
    ----------
    p : int
        Number of features.
    n_train : int
        Rows of the smallest training set.
    count : int, optional
        Number of values instead of the default number.
    loss : Loss
        Loss of the fits.

    Examples
    --------
    >>> [len(default_gammas(p, 90)) for p in (89, 90)], default_gammas(90, 90)[0]
    ([15, 9], 0.05)
    >>> [float(f"{gamma:.2g}") for gamma in default_gammas(30, 512, loss=Loss.LOGISTIC)]
    [0.00059, 0.0019, 0.0059, 0.019, 0.059]
    """
    if loss.target.gammas_over_rows is not None:
        least, largest, of_loss = loss.target.gammas_over_rows
        ends = ":".join(f"{float(f'{end / n_train:.2g}'):g}" for end in (least, largest))
        return gammas(f"{ends}:{of_loss if count is None else count}", "gammas")
    low, high, most = (WIDE_GAMMAS if p >= n_train else DEFAULT_GAMMAS).split(":")
    return gammas(f"{low}:{high}:{most if count is None else count}", "gammas")


def parse_gammas(
    given: str | float | Iterable[float] | None, p: int, n_train: int, option: str = "gammas", loss: Loss = DEFAULT_LOSS
) -> tuple[float, ...]:
    """Return ridge weights from a text, a number or several numbers.

    Parameters
    ----------
    given : str, float, iterable of float, or None
        Ridge weights; a text as for `gammas`, None for `default_gammas`.
    p : int
        Number of features.
    n_train : int
        Rows of the smallest training set.
    option : str
        Name of the option in messages.
    loss : Loss
        Loss of the fits, for the default values.

    Raises
    ------
    BadInput
        If a value is not a number.

    Examples
    --------
    >>> parse_gammas(0.1, 4, 50), parse_gammas("0.1,1", 4, 50), len(parse_gammas(None, 4, 50))
    ((0.1,), (0.1, 1.0), 15)
    """
    if given is None:
        return default_gammas(p, n_train, loss=loss)
    return gammas(given, option) if isinstance(given, str) else _given_numbers(given, option)


def parse_taus(
    given: str | int | Iterable[int] | None,
    p: int,
    n_train: int,
    option: str = "taus",
    restrictions: Restrictions = NONE,
    all_features: bool = False,
) -> tuple[int, ...]:
    """Return support sizes from a text, a number or several numbers.

    Parameters
    ----------
    given : str, int, iterable of int, or None
        Support sizes; a text as for `taus`, `log` for `log_taus`, None for `default_taus`. The last two start at the
        number of features that are forced in.
    p : int
        Number of features, without those forced out.
    n_train : int
        Rows of the smallest training set.
    option : str
        Name of the option in messages.
    restrictions : Restrictions, optional
        Restrictions by names of the data.
    all_features : bool
        True if None includes the model of all features, provided that every set of features is allowed.

    Raises
    ------
    BadInput
        If a value is not an integer, or a text is out of range.

    Examples
    --------
    >>> parse_taus(3, 10, 50), parse_taus(range(1, 3), 10, 50), parse_taus("2:4", 10, 50), parse_taus(None, 4, 50)
    ((3,), (1, 2), (2, 3, 4), (1, 2, 3, 4))
    """
    if given is None or (isinstance(given, str) and given.strip().lower() == "log"):
        every = all_features and not restrictions.side_constraints
        own = default_taus(p, n_train, every) if given is None else log_taus(p, n_train)
        least = restrictions.features(restrictions.force_in)
        return tuple(tau for tau in own if tau >= least) or (least,)
    if isinstance(given, str):
        return taus(given, p, option)
    numbers = _given_numbers(given, option)
    for value in numbers:
        if value != int(value):
            raise BadInput(f"{option}: {value:g} is not a whole number; give whole numbers")
    return tuple(int(value) for value in numbers)


def _given_numbers(given: float | Iterable[float], option: str) -> tuple[float, ...]:
    """Return one or several given numbers as a tuple."""
    if not isinstance(given, Real | Iterable):
        raise BadInput(f"{option}: {given!r} is neither a number nor a list of numbers; give one of these")
    numbers = [given] if isinstance(given, Real) else list(given)
    for value in numbers:
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or exceeds_double(value) or not math.isfinite(value):
            raise BadInput(f"{option}: {repr(value)[:30]} is not a finite number; give finite numbers")
    return tuple(float(value) for value in numbers)
