"""Adjustment columns and allowed supports of a record, computed for `verify` without code of the search.

Adjustment columns are in every model, but in no support of the record, and tau does not count them. `reference_levels`
looks up the reference level of each factor that counts as one feature.

With restrictions other than forced columns, `verify` tries all supports that the restrictions allow. The fit of a
support under sign constraints equals the unconstrained ridge fit on the columns of the support whose coefficients are
not zero. `verify` therefore takes the minimum over the unconstrained ridge fits whose coefficients have the required
signs. From each allowed support, `verify` removes every combination of the columns whose coefficients have a bound of
0, and tries the remaining sets of columns (docs/theory.md, "Restrictions"). With other bounds, each set is fitted
within its bounds (`problem.objective.fit_bounded_ridge`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Any

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.parts import iterate_parts
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.digits import abbreviate_list, quoted_name
from sparsecv_mio.errors import BadInput, CorruptStore, did_you_mean
from sparsecv_mio.model_space import NONE, Restrictions, Term, word_of_factor
from sparsecv_mio.units import ACCURATE_RTOL

SUPPORTS = ("support", "always")  # fields that hold the features of one support
NO_EFFECT = ACCURATE_RTOL  # share of the target; a smaller effect may have either sign
References = Mapping[str, Sequence[str]]  # all columns of the factor, by level


def complete_factors(support: Iterable[str], factors: Iterable[Sequence[str]]) -> set[str]:
    """Return a support with all columns of each factor from which it has a column.

    A draw without the rows of a level has no column for this level, but its model may contain the factor.

    Parameters
    ----------
    support : iterable of str
        Columns of a model.
    factors : iterable of sequences of str
        Columns that enter a model together.

    Examples
    --------
    >>> sorted(complete_factors(["a", "f=1"], [("f=1", "f=2")]))
    ['a', 'f=1', 'f=2']
    """
    columns = set(support)
    return columns.union(*(factor for factor in factors if columns & set(factor)))


def restrictions_of(record: Any) -> Restrictions:
    """Return the restrictions of a record of any kind."""
    holder = getattr(record, "request", None) or getattr(record, "side", None)
    restrictions: Restrictions | None = getattr(holder, "restrictions", None)
    return restrictions or NONE


def adjustment_columns(record: Any) -> tuple[str, ...]:
    """Return the adjustment columns of a record of any kind."""
    return restrictions_of(record).adjust


def restrictions_of_fits(record: Any) -> Restrictions:
    """Return the restrictions on which the fit of a given support depends: adjustment columns and bounds."""
    every = restrictions_of(record)
    names = ("adjust", "nonnegative", "nonpositive", "coef_bounds")
    return Restrictions(**{name: getattr(every, name) for name in names})


def check_supports(record: Any) -> None:
    """Raise `CorruptStore` if a support of a record names an adjustment column.

    Parameters
    ----------
    record : record of any kind
        Record.
    """
    adjusted = adjustment_columns(record)
    for _, inside in iterate_parts(record) if adjusted else ():
        supports = [*inside.get("supports", ()), *(inside[name] for name in SUPPORTS if name in inside)]
        name = next((name for name in adjusted for support in supports if name in support), None)
        if name is not None:
            raise CorruptStore(f"record: a support contains {name!r}, but adjustment columns are never in a support")


@dataclass(frozen=True, eq=False)
class AllowedSupports:
    """The sets of columns that restrictions allow as supports, as positions.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    asked : Restrictions
        Restrictions by names of the data.
    together : tuple of tuples of str
        Groups of features that enter together.
    """

    names: tuple[str, ...]
    asked: Restrictions
    together: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms of models, by positions; the terms of adjustment columns have the count 0."""
        place = {name: j for j, name in enumerate(self.names)}
        return tuple(term.convert_to_positions(place) for term in self.asked.terms(self.names, self.together))

    @cached_property
    def selectable(self) -> tuple[Term, ...]:
        """The terms that count as features."""
        return tuple(term for term in self.terms if term.count)

    @cached_property
    def adjusted_columns(self) -> tuple[int, ...]:
        """Positions of the adjustment columns, which every model has."""
        return tuple(j for term in self.terms if not term.count for j in term.columns)

    def columns(self, tau: int) -> int:
        """Return the maximum number of columns of a model of up to tau features, with the adjustment columns."""
        more = sorted((len(term.columns) - term.count for term in self.selectable), reverse=True)
        return min(tau + sum(more[:tau]) + len(self.adjusted_columns), len(self.names))

    def count(self, support: Iterable[int]) -> int:
        """Return the number of features that a support counts as."""
        chosen = set(support)
        return sum(min(len(chosen.intersection(term.columns)), term.count) for term in self.terms)

    @cached_property
    def _possible(self) -> frozenset[int]:
        return frozenset(j for term in self.terms for j in term.columns)

    @cached_property
    def sign(self) -> IntArray:
        """(q,) 1 for columns whose lower bound is 0, -1 for those whose upper bound is 0, else 0."""
        low, high = self.ends
        return (low == 0.0).astype(np.int64) - (high == 0.0).astype(np.int64)

    @cached_property
    def ends(self) -> FloatArray:
        """(2, q) lower and upper bounds on coefficients, in units of the file; infinite if there are none."""
        by_name = self.asked.bounds
        return np.array([by_name.get(name, (-np.inf, np.inf)) for name in self.names]).reshape(len(self.names), 2).T

    def allows(self, support: Iterable[int]) -> bool:
        """Return True if a model may have exactly these columns, apart from signs and size."""
        places, restrictions = set(support), self.asked
        chosen = {self.names[j] for j in places}
        return (
            chosen.issuperset(name for name in restrictions.forced_columns if name in self.names)  # others are constant
            and self._possible.issuperset(places)
            and all(places.issuperset(term.columns) or places.isdisjoint(term.columns) for term in self.terms)
            and all(len(chosen.intersection(group.features)) <= group.count for group in restrictions.at_most)
            and all(
                chosen.issuperset(rule.parents) if rule.every else not chosen.isdisjoint(rule.parents)
                for rule in restrictions.hierarchy
                if rule.feature in chosen
            )
        )

    def holds(self, active: tuple[int, ...], tau: int, slope: FloatArray | None = None) -> bool:
        """Return True if these columns, and others that signs force to zero, are an allowed support of up to tau.

        Parameters
        ----------
        slope : (q,) array, optional
            Decrease of the objective by increasing each coefficient; without it, every sign constraint may be active.
        """
        stays = self.sign != 0 if slope is None else (self.sign != 0) & (self.sign * slope <= NO_EFFECT)
        others = [j for j in np.flatnonzero(stays).tolist() if j not in active]
        return any(self.allows((*active, *more)) for more in _subsets(others, tau - self.count(active)))

    def support_tables(self, tau: int) -> dict[int, IntArray]:
        """Return the sets that `holds` accepts for up to tau features, one table for each number of columns."""
        signed, by_size = set(np.flatnonzero(self.sign).tolist()), defaultdict[int, set[tuple[int, ...]]](set)
        for terms in _subsets(self.selectable, tau):
            columns = {j for term in terms for j in term.columns}.union(self.adjusted_columns)
            if sum(term.count for term in terms) <= tau and self.allows(columns):
                for at_zero in _subsets(sorted(columns & signed), len(columns)):
                    by_size[len(columns) - len(at_zero)].add(tuple(sorted(columns.difference(at_zero))))
        return {
            size: np.array(sorted(by_size[size]), dtype=np.int64).reshape(len(by_size[size]), size)
            for size in sorted(by_size)
        }

    def exactly(self, tau: int) -> list[IntArray]:
        """Return the allowed supports of exactly tau features, one table for each number of columns."""
        of_size = (
            rows[[self.count(row) == tau for row in rows.tolist()]] for rows in self.support_tables(tau).values()
        )
        return [rows for rows in of_size if len(rows)]

    def has_required_signs(self, support: Iterable[int], effect: FloatArray, negligible: float = NO_EFFECT) -> bool:
        """Return True if coefficients have the required signs, apart from negligible ones.

        Parameters
        ----------
        support : sequence of s int
            Positions of the columns.
        effect : (s,) array
            Coefficients times the lengths of their columns, divided by the length of the target.
        negligible : float
            Size up to which an effect may have either sign; 0 for a fit in fractions.
        """
        return bool(np.all(self.sign[list(support)] * effect >= -negligible))


def positions(names: Iterable[str], index: Mapping[str, int], adjusted: Iterable[str] = ()) -> tuple[int, ...] | None:
    """Return the sorted positions of the features of a support, and of the adjustment columns, which it does not name.

    None if a name is unknown or there twice.

    Parameters
    ----------
    names : iterable of str
        The features.
    index : mapping of str to int
        Positions by name.
    adjusted : iterable of str
        Names of the adjustment columns.
    """
    columns = [index.get(name) for name in (*names, *adjusted)]
    if None in columns or len(set(columns)) < len(columns):
        return None
    return tuple(sorted(j for j in columns if j is not None))


def _subsets(things: Sequence[Any], most: int) -> Iterator[tuple[Any, ...]]:
    """Yield the subsets with at most `most` elements, smaller ones first."""
    return chain.from_iterable(combinations(things, size) for size in range(min(most, len(things)) + 1))


def reference_levels(names: Sequence[str], dataset: Dataset, restrictions: Restrictions) -> References:
    """Return the columns of the factors of the given reference levels.

    Parameters
    ----------
    names : sequence of str
        Reference levels, one for each factor, such as `city=Oslo`.
    dataset : Dataset
        The data whose columns are the levels.
    restrictions : Restrictions
        The restrictions that state which columns count as one feature.

    Raises
    ------
    BadInput
        If a name is not a level, two levels belong to one factor, or a row does not have exactly one level of a factor.
    """
    if not names:
        return {}
    factors, levels_of_factors = restrictions.resolve_names(dataset.names).count, dict[str, Sequence[str]]()
    forced_out_levels = set(filter(lambda name: "=" in name, restrictions.force_out))
    for name in names:
        columns = next((some for some in factors if name in some), None)
        if "=" in name and any(one.split("=")[0] == name.split("=")[0] for one in restrictions.adjust):
            raise BadInput(
                f"reference: {name!r} belongs to a factor of --adjust, whose reference is always the first level; "
                f"remove {name!r} from --reference"
            )
        if name in forced_out_levels:
            raise BadInput(
                f"reference: {name!r} is forced out, so the coefficients of its factor are already differences from "
                f"{name!r}; remove {name!r} from --reference"
            )
        if columns is None:
            levels_there = [column for some in factors for column in some]
            give = f"the levels are {abbreviate_list(list(map(quoted_name, levels_there)))}"
            give = (
                did_you_mean(name, levels_there) or f": {give if factors else 'this option requires --count factors'}"
            )
            raise BadInput(f"reference: {name!r} is not a level of a factor that counts as one feature{give}")
        if columns in levels_of_factors.values():
            raise BadInput(
                f"reference: {name!r} is a second level of {word_of_factor(columns)!r}; give one level for each factor"
            )
        word = word_of_factor(columns)
        forced_out = next((each for each in restrictions.force_out if each.startswith(f"{word}=")), None)
        if forced_out is not None:
            raise BadInput(
                f"reference: {forced_out!r} is forced out, so the coefficients of {word!r} are already differences "
                f"from {forced_out!r}; remove {name!r} from --reference (to get differences from {name!r}, force out "
                f"{name!r} instead of {forced_out!r})"
            )
        levels = dataset.X[:, [dataset.names.index(column) for column in columns]]
        if not np.all((levels == 0.0) | (levels == 1.0)) or not np.all(levels.sum(axis=1) == 1.0):
            raise BadInput(
                f"reference: every row needs exactly one level of {word_of_factor(columns)!r}, but some rows have none "
                "or several; leave the option out for this factor"
            )
        levels_of_factors[name] = columns
    return levels_of_factors
