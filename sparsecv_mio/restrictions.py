"""Restrictions: which features the models of a search may use, and with which signs, by the names of the features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, TypedDict

from sparsecv_mio.errors import BadInput, did_you_mean
from sparsecv_mio.families import ALL, AtMost, Parents, limits_of, parents_of, products

MOST_SAID = 6  # names in a row, beyond which their number is said
Column = str | int
Limits = str | Iterable[str | AtMost | tuple[int, Iterable[Column]]]
Hierarchy = str | Iterable[str | Parents] | Mapping[str, Iterable[Column]]


class RestrictionKeywords(TypedDict, total=False):
    """The fields of `Restrictions` as they may be given: a name, a position, or several."""

    force_in: Column | Iterable[Column]
    force_out: Column | Iterable[Column]
    at_most: Limits
    hierarchy: Hierarchy
    nonnegative: Column | Iterable[Column]
    nonpositive: Column | Iterable[Column]


@dataclass(frozen=True)
class Restrictions:
    """What every model must and may not contain. Supports that keep to it are compared, and no others.

    Attributes
    ----------
    force_in : tuple of str
        Features in every model. They are penalised as all others are, and count in tau.
    force_out : tuple of str
        Features in no model: as if the data did not have them.
    at_most : tuple of AtMost
        Groups of which no model contains more features than so many.
    hierarchy : tuple of Parents
        Features that are in a model only with their parents: interactions with their factors.
    nonnegative, nonpositive : tuple of str
        Features whose coefficient is at least, or at most, zero: a model is then the fit with these signs held. One
        that a sign holds at zero counts in tau where it is forced in or a parent; else it is as well left out.

    Notes
    -----
    As given, a feature is named, or counted from 0 where no feature has that name; `within` turns it into names.

    Examples
    --------
    >>> Restrictions(force_in=["b", 0]).within(["a", "b", "c"]).force_in
    ('a', 'b')
    """

    force_in: tuple[str, ...] = ()
    force_out: tuple[str, ...] = ()
    at_most: tuple[AtMost, ...] = ()
    hierarchy: tuple[Parents, ...] = ()
    nonnegative: tuple[str, ...] = ()
    nonpositive: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("force_in", "force_out", "nonnegative", "nonpositive"):
            object.__setattr__(self, name, _columns(getattr(self, name), name))
        object.__setattr__(self, "at_most", limits_of(self.at_most))
        object.__setattr__(self, "hierarchy", parents_of(self.hierarchy))

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    @property
    def beyond_forcing(self) -> tuple[str, ...]:
        """Names of the kinds in use that say more than which features are forced in or out."""
        return tuple(name for name in RESTRICTIONS[2:] if getattr(self, name))

    def words(self, features: int | None = None) -> str:
        """Return the restrictions as one text, long lists by their number.

        Parameters
        ----------
        features : int, optional
            Of the data, to tell a sign of every one.

        Examples
        --------
        >>> Restrictions(at_most="1:a,b", hierarchy="ab=a|b", nonnegative="c").words()
        'at most 1 of a, b; ab only with a or b; c not below 0'
        >>> Restrictions(nonnegative="all").words()
        'no coefficient below 0'
        """
        forced = (("with", self.force_in), ("without", self.force_out))
        said = [f"{text} {_listed(some)}" for text, some in forced if some]
        said += [f"at most {one}" for one in self.at_most]
        if len(self.hierarchy) > MOST_SAID:
            said.append(f"{len(self.hierarchy)} features only with their parents")
        else:
            said += map(str, self.hierarchy)
        for text, some in (("below 0", self.nonnegative), ("above 0", self.nonpositive)):
            every = some == (ALL,) or len(some) == features
            said += [f"no coefficient {text}" if every else f"{_listed(some)} not {text}"] if some else []
        return "; ".join(said)

    def within(self, names: Sequence[str]) -> Restrictions:
        """Return the same by the names of the data, in their order.

        Parameters
        ----------
        names : sequence of str
            Features of the data.

        Raises
        ------
        BadInput
            For an unknown feature, one that is forced in and out, or no feature left.
        """
        if not self:
            return self
        place = {name: j for j, name in enumerate(names)}
        inside, outside = (_found(getattr(self, name), place, name) for name in ("force_in", "force_out"))
        both = sorted(inside & outside)
        if both:
            raise BadInput(f"force-in, force-out: feature {names[both[0]]!r} is in both: take it off one of them")
        if len(outside) == len(names):
            raise BadInput("force-out: no feature is left, take one off")
        inner, outer = (tuple(names[j] for j in sorted(some)) for some in (inside, outside))
        return replace(self._shape_within(names), force_in=inner, force_out=outer)

    def _shape_within(self, names: Sequence[str]) -> Restrictions:
        """Return the restrictions beyond forcing by the names of the data, `all`, `strong` and `weak` spelt out."""
        place = {name: j for j, name in enumerate(names)}

        def named(some: Sequence[str], option: str) -> tuple[str, ...]:
            if tuple(some) == (ALL,) and ALL not in place:
                return tuple(names)
            return tuple(names[j] for j in sorted(_found(some, place, option)))

        parents: list[Parents] = []
        for one in self.hierarchy:
            if (one.feature, one.parents) == (ALL, ()):
                found = products(names, one.every)
                if not found:
                    raise BadInput("hierarchy: no feature has the name of a product (a:b, a*b, a b, a^2): name them")
                parents += found
            else:
                child, above = named([one.feature], "hierarchy")[0], named(one.parents, "hierarchy")
                if child in above:
                    raise BadInput(f"hierarchy: feature {child!r} is its own parent")
                parents.append(Parents(child, above, one.every))
        groups = tuple(AtMost(one.count, named(one.features, "at_most")) for one in self.at_most)
        signs = [named(getattr(self, name), name) for name in ("nonnegative", "nonpositive")]
        both = sorted(set(signs[0]) & set(signs[1]))
        if both:
            raise BadInput(f"nonnegative, nonpositive: feature {both[0]!r} is in both, force it out instead")
        return replace(
            self, at_most=groups, hierarchy=tuple(dict.fromkeys(parents)), nonnegative=signs[0], nonpositive=signs[1]
        )

    def left(self, p: int) -> int:
        """Return how many of p features are not forced out."""
        return p - len(self.force_out)

    def check_sizes(self, taus: Iterable[int], p: int) -> None:
        """Raise `BadInput` for a support size that no model can have.

        Parameters
        ----------
        taus : iterable of int
        p : int
            Features of the data.
        """
        least, most = len(self.force_in), self.left(p)
        for tau in taus:
            if tau < least:
                raise BadInput(f"tau {tau} is below the number of features that are forced in: use {least} to {most}")
            if tau > most:
                raise BadInput(f"tau {tau} is above the number of features that are not forced out: use at most {most}")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_SAID
    return ", ".join(names[:MOST_SAID]) + (f" and {more} more" if more > 0 else "")


def _columns(given: Any, option: str) -> tuple[str, ...]:
    """Return features as given, as texts, each once."""
    if isinstance(given, str | Integral):
        given = (given,)
    if not isinstance(given, Iterable):
        raise BadInput(f"{option.replace('_', '-')}: {given!r} is not a feature nor a list of features")
    found = list(given)
    for one in found:
        if not isinstance(one, str | Integral):
            raise BadInput(f"{option.replace('_', '-')}: {one!r} is neither the name nor the position of a feature")
    return tuple(dict.fromkeys(str(one) for one in found))


def _found(given: Sequence[str], place: dict[str, int], option: str) -> set[int]:
    """Return the positions of features given by name, or by position where none has that name."""
    found = set()
    for text in given:
        word = text.strip()
        if text in place or word in place:
            found.add(place[text if text in place else word])
        elif word.isascii() and word.isdigit() and len(word) < 10 and int(word) < len(place):
            found.add(int(word))
        else:
            where = did_you_mean(text, place)
            raise BadInput(f"{option.replace('_', '-')}: there is no feature {text!r}{where}")
    return found


NONE = Restrictions()
RESTRICTIONS = tuple(field.name for field in fields(Restrictions))
