"""Side constraints on the support of one model and on its coefficients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import Restrictions, Term

SIGNS = (0.0, math.inf), (-math.inf, 0.0)  # boxes of sign constraints


@dataclass(frozen=True)
class SideConstraints:
    """Constraints in addition to the limit of tau features, on columns 0..q-1 of a problem in standard coordinates.

    Attributes
    ----------
    forced_in, forced_out : tuple of int
        Columns in every support, and in no support.
    terms : tuple of Term
        Terms of several columns, which are included together, and adjustment columns, whose count is 0; `at_most` and
        `parents` name the first column of a term that counts once.
    at_most : tuple of (int, tuple of int)
        Limits `(k, columns)`: at most k of these columns.
    box : tuple of (int, float, float)
        Boxes `(j, lo, hi)`: `lo <= b_j <= hi` if j is in the support. A column outside the support is zero, even if 0
        is not in its box. `-inf` / `inf` mark an open side, so a sign constraint is a box.

    Raises
    ------
    BadInput
        If a box is empty or k is negative.

    Notes
    -----
    With side constraints a smaller support may be better, so the limit of tau remains an inequality (theory section 0).

    Examples
    --------
    >>> SideConstraints(forced_in=(0,), box=((1, 0.0, float("inf")),)).has_coefficient_bounds
    True
    """

    forced_in: tuple[int, ...] = ()
    forced_out: tuple[int, ...] = ()
    terms: tuple[Term, ...] = ()
    at_most: tuple[tuple[int, tuple[int, ...]], ...] = ()
    box: tuple[tuple[int, float, float], ...] = ()
    parents: tuple[tuple[int, tuple[int, ...], bool], ...] = ()

    def __post_init__(self) -> None:
        for j, lo, hi in self.box:
            if not (lo <= hi and lo < math.inf and hi > -math.inf):
                raise BadInput(f"column {j}: no coefficient is within the bounds {lo} to {hi}")
        for k, columns in self.at_most:
            if k < 0:
                raise BadInput(f"at most {k} of {len(columns)} columns: the count must not be negative")

    @property
    def has_coefficient_bounds(self) -> bool:
        """True if any coefficient is bounded."""
        return bool(self.box)

    @property
    def has_only_bounds(self) -> bool:
        """True if supports are restricted by forced columns alone."""
        return not (self.terms or self.at_most or self.parents)

    @property
    def needs(self) -> frozenset[str]:
        """Names of the constraint types in use, as backends declare them."""
        kinds = {
            "force": self.forced_in or self.forced_out,
            "together": [term for term in self.terms if term.count > 1],
            "count": [term for term in self.terms if 0 < term.count < len(term.columns)],
            "at_most": self.at_most,
            "parents": self.parents,
            "sign": self.box,
            "box": [bounds for _, *bounds in self.box if tuple(bounds) not in SIGNS],
        }
        return frozenset(name for name, used in kinds.items() if used)

    def linear_rows(self, q: int, tau: int) -> Iterator[tuple[str, FloatArray, float, float]]:
        """Yield the kind, the (q,) coefficients and the bounds of each linear row on the indicators z of a model.

        Parameters
        ----------
        q : int
            Number of columns.
        tau : int
            Maximum number of features.
        """
        columns = np.arange(q)
        yield "budget", self.feature_counts(q), -math.inf, float(tau)
        for k, limited in self.at_most:
            yield "at_most", np.isin(columns, limited).astype(np.float64), -math.inf, float(k)
        for term in self.terms:
            for j in term.columns[1:]:
                yield "together", np.asarray((columns == term.columns[0]) * 1.0 - (columns == j)), 0.0, 0.0
        for j, parents, every in self.parents:
            for needed in [(i,) for i in parents] if every else [parents]:
                yield "parents", np.asarray((columns == j) * 1.0 - np.isin(columns, needed)), -math.inf, 0.0

    def count(self, support: Iterable[int]) -> int:
        """Return the number of features that a support counts as."""
        chosen = set(support)
        return len(chosen) - sum(max(len(chosen.intersection(term.columns)) - term.count, 0) for term in self.terms)

    def feature_counts(self, q: int) -> FloatArray:
        """Return (q,) numbers of features: 0 for an adjustment column and all but the first column of a factor, else 1.

        Parameters
        ----------
        q : int
            Number of columns.
        """
        counts = np.ones(q)
        counts[[j for term in self.terms for j in term.columns[term.count :]]] = 0.0
        return counts

    def columns(self, tau: int) -> int:
        """Return the maximum number of columns of a support of tau features, with the adjustment columns."""
        more = sorted((len(term.columns) - term.count for term in self.terms if term.count), reverse=True)
        return tau + sum(more[:tau]) + sum(len(term.columns) for term in self.terms if not term.count)

    def fixed(self, q: int) -> tuple[FloatArray, FloatArray]:
        """Return (q,) bounds of the indicators: 1, 1 for forced columns, 0, 0 for excluded ones, else 0, 1."""
        low, high = np.zeros(q), np.ones(q)
        low[list(self.forced_in)] = 1.0
        high[list(self.forced_out)] = 0.0
        return low, high

    def interval(self, q: int) -> tuple[FloatArray, FloatArray]:
        """Return (q,) arrays lo and hi with the box of every column, the intersection of several boxes."""
        lo, hi = np.full(q, -np.inf), np.full(q, np.inf)
        for j, a, b in self.box:
            lo[j], hi[j] = max(lo[j], a), min(hi[j], b)
        if np.any(lo > hi):
            j = int(np.argmax(lo > hi))
            raise BadInput(f"column {j}: no coefficient is within all of its bounds")
        return lo, hi

    def boxes(self, q: int) -> tuple[FloatArray, FloatArray] | None:
        """Return `interval(q)`, or None if no coefficient is bounded."""
        return self.interval(q) if self.box else None

    def allows(self, support: Iterable[int], tau: int) -> bool:
        """Return True if a support meets all constraints other than boxes."""
        chosen = set(support)
        return (
            self.count(chosen) <= tau
            and chosen.issuperset(self.forced_in)
            and chosen.isdisjoint(self.forced_out)
            and all(chosen.issuperset(term.columns) or chosen.isdisjoint(term.columns) for term in self.terms)
            and all(len(chosen.intersection(columns)) <= k for k, columns in self.at_most)
            and all(
                chosen.issuperset(columns) if every else not chosen.isdisjoint(columns)
                for j, columns, every in self.parents
                if j in chosen
            )
        )


FREE = SideConstraints()


def constraints_of(
    data: StandardData,
    restrictions: Restrictions | None = None,
    together: Sequence[Sequence[str]] = (),
) -> SideConstraints:
    """Return restrictions and further side constraints in standard coordinates.

    A feature that is constant or forced out is in no support, and neither is a feature that needs it as a parent.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates, in which a coefficient b of the file is `b * divisor_j / y_unit`.
    restrictions : Restrictions, optional
        Restrictions by names of the data; by default those of the data except adjustment columns.
    together : sequence of sequences of str
        Groups of columns that are included together.

    Raises
    ------
    BadInput
        If a name is unknown, or a constant column must be included together with others.
    """
    restrictions = data.restrictions if restrictions is None else restrictions
    position = {name: j for j, name in enumerate(data.names)}
    for group in together:
        _check_places(group, position, data, "together")
    terms = [term.convert_to_positions(position) for term in restrictions.terms(data.dataset.names, together)]
    low, high = data.standard_bounds(restrictions)
    bounded = np.flatnonzero(np.isfinite(low) | np.isfinite(high)).tolist()
    boxes = tuple((j, float(low[j]), float(high[j])) for j in bounded)
    for group in restrictions.count:  # its first name represents it, even if that column is constant
        varying = [position[name] for name in group if name in position]
        position |= {name: varying[0] for name in group[:1] if varying}
    parents, never = _parents(restrictions, position)
    never |= set(range(data.q)).difference(*(term.columns for term in terms))
    return SideConstraints(
        forced_in=tuple(sorted(j for term in terms if term.always for j in term.columns)),
        forced_out=tuple(sorted(never)),
        terms=tuple(term for term in terms if len(term.columns) > 1 or not term.count),
        at_most=tuple((limit.count, tuple(position[name] for name in limit.features if name in position))
                      for limit in restrictions.at_most),
        box=boxes,
        parents=parents,
    )  # fmt: skip


Rules = tuple[tuple[int, tuple[int, ...], bool], ...]


def _parents(restrictions: Restrictions, position: Mapping[str, int]) -> tuple[Rules, set[int]]:
    """Return the parents of columns, and the columns whose parents are missing."""
    parents, never = [], set()
    for rule in restrictions.hierarchy:
        if rule.feature not in position:
            continue
        above = tuple(position[name] for name in rule.parents if name in position)
        lacking = len(above) < len(rule.parents) if rule.every else not above
        if lacking:
            never.add(position[rule.feature])
        else:
            parents.append((position[rule.feature], above, rule.every))
    return tuple(parents), never


def _check_places(names: Sequence[str], position: Mapping[str, int], data: StandardData, option: str) -> None:
    """Raise `BadInput` for a name that is not a varying column."""
    for name in names:
        if name not in position:
            constant = name in data.dataset.names
            reason = (
                f"feature {name!r} is constant; leave it out of this restriction"
                if constant
                else f"{name!r} is not a feature"
            )
            raise BadInput(f"{option}: {reason}")
