"""The supports that side constraints allow, and the columns that a chosen or excluded column requires or rules out.

A set of columns is stored as an integer with bit j set for column j, so that a node needs only a few bit operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.constraints import SideConstraints


def make_mask(columns: Iterable[int]) -> int:
    """Return a set of columns as an integer with one bit for each column.

    Examples
    --------
    >>> make_mask([0, 3])
    9
    """
    return sum(1 << j for j in set(columns))


def columns_in_mask(mask: int) -> Iterator[int]:
    """Yield the columns of a bit mask in ascending order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def column_array(mask: int) -> IntArray:
    """Return the columns of a bit mask as an array in ascending order.

    Examples
    --------
    >>> column_array(9).tolist()
    [0, 3]
    """
    bits = np.frombuffer(mask.to_bytes((mask.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")).astype(np.int64)


class Family:
    """Supports of at most tau features among q columns under side constraints, except boxes.

    Parameters
    ----------
    q : int
        Number of columns.
    tau : int
        Maximum number of features: a factor counts as one, an adjustment column does not count.
    constraints : SideConstraints
        Side constraints; their boxes are ignored.

    Attributes
    ----------
    forced, free : int
        Columns of every support, and the other columns that may be chosen.
    caps : list of (int, int)
        Limits `(k, columns)`: a support has at most k of these columns.
    factors : list of int
        Sets of columns that are chosen all or none and count as one.
    whole : list of int
        For each column, the columns of its factor; the column alone if it belongs to no factor.
    first : int
        Columns that are counted: the first one of each factor, and all others except adjustment columns.
    need : list of int
        For each column, all columns that must be chosen with it: itself, its parents and their parents.
    one_of : list of (int, int)
        Rules `(j, columns)`: column j requires at least one of these columns.
    """

    def __init__(self, q: int, tau: int, constraints: SideConstraints) -> None:
        self.q, self.tau = q, tau
        self.factors = [make_mask(term.columns) for term in constraints.terms if term.count == 1]
        self.whole = [1 << j for j in range(q)]
        for factor in self.factors:
            for j in columns_in_mask(factor):
                self.whole[j] = factor
        self.first = make_mask(np.flatnonzero(constraints.feature_counts(q)).tolist())
        self.forced, out = self._complete_factors(constraints.forced_in), self._complete_factors(constraints.forced_out)
        self.free = make_mask(range(q)) & ~out & ~self.forced
        self.contradicts = bool(self.forced & out)
        self.caps = [(k, self._complete_factors(columns)) for k, columns in constraints.at_most]
        self.one_of = [(j, make_mask(columns)) for j, columns, every in constraints.parents if not every]
        self.need = [1 << j for j in range(q)]
        for j, columns, every in constraints.parents:
            if every:
                self.need[j] |= make_mask(columns)
        for term in constraints.terms:
            for j in term.columns:
                self.need[j] |= make_mask(term.columns)
        self._close()
        self._bringing = make_mask(j for j in range(q) if self.need[j] != self.whole[j])  # columns that require others

    @classmethod
    def require_support(cls, q: int, tau: int, constraints: SideConstraints) -> tuple[Family, int]:
        """Return a family and one of its supports.

        Parameters
        ----------
        q, tau : int
            Number of columns, and maximum size of a support.
        constraints : SideConstraints
            Side constraints; their boxes are ignored.

        Raises
        ------
        BadInput
            If the family is empty.
        """
        family = cls(q, tau, constraints)
        least = None if family.contradicts else family.complete_mask(0, family.free)
        if least is None:
            raise BadInput(
                f"tau {tau}: no model of at most {tau} features satisfies the restrictions; give a larger tau, or "
                "relax a restriction"
            )
        return family, least

    def _complete_factors(self, columns: Iterable[int]) -> int:
        """Return a set of columns as a bit mask, each factor completed."""
        mask = 0
        for j in columns:
            mask |= self.whole[j]
        return mask

    def _close(self) -> None:
        """Add the parents of parents to `need`."""
        changed = True
        while changed:
            changed = False
            for j in range(self.q):
                whole = self.need[j]
                for parent in columns_in_mask(self.need[j]):
                    whole |= self.need[parent]
                changed |= whole != self.need[j]
                self.need[j] = whole

    def count(self, columns: int) -> int:
        """Return the number of features of a set of columns that holds each factor completely or not at all."""
        return (columns & self.first).bit_count()

    @property
    def root(self) -> tuple[int, int] | None:
        """Included and free columns of the root node, which holds all supports; None if no support is allowed."""
        return None if self.contradicts else self.settle(self.forced, self.free)

    def settle(self, inside: int, free: int) -> tuple[int, int] | None:
        """Return the included and free columns of a node after all forced choices; None if the node has no support.

        Parameters
        ----------
        inside, free : int
            Included and free columns.
        """
        while True:
            included = self._add_required_columns(inside, free)
            if included is None or included & ~(inside | free):
                return None
            possible = self._drop_impossible_columns(included, free & ~included)
            if possible is None or (included, possible) == (inside, free):
                return None if possible is None else (inside, free)
            inside, free = included, possible

    def _add_required_columns(self, inside: int, free: int) -> int | None:
        """Return the included columns and all columns that they require; None if a required parent is excluded."""
        for factor in self.factors:
            if inside & factor:
                inside |= factor
        for j in columns_in_mask(inside & self._bringing):
            inside |= self.need[j]
        for j, parents in self.one_of:
            if inside >> j & 1 and not inside & parents:
                parents_left = free & parents
                if not parents_left:
                    return None
                if parents_left & (parents_left - 1) == 0:
                    inside |= parents_left
        return inside

    def _drop_impossible_columns(self, inside: int, free: int) -> int | None:
        """Return the free columns that can still be added; None if too many columns are included."""
        for factor in self.factors:
            if factor & ~(inside | free):
                free &= ~factor
        room = self.tau - self.count(inside)
        if room < 0:
            return None
        free = free if room else 0
        for k, columns in self.caps:
            taken = self.count(inside & columns)
            if taken > k:
                return None
            if taken == k:
                free &= ~columns
        for j in columns_in_mask(free & self._bringing):
            extra = self.need[j] & ~inside
            if extra & ~free or self.count(extra) > room:
                free &= ~self.whole[j]
        for j, parents in self.one_of:
            if free >> j & 1 and not parents & (inside | free):
                free &= ~self.whole[j]
        return free

    def allows(self, support: int) -> bool:
        """Return True if a support is in the family."""
        return (
            support & ~(self.forced | self.free) == 0
            and support & self.forced == self.forced
            and self.count(support) <= self.tau
            and all(self.count(support & columns) <= k for k, columns in self.caps)
            and all(self.need[j] & ~support == 0 for j in columns_in_mask(support))
            and all(support & parents for j, parents in self.one_of if support >> j & 1)
        )

    def complete_mask(self, support: int, among: int) -> int | None:
        """Return a support of the family that contains given columns and what these require; None if none exists.

        Parameters
        ----------
        support, among : int
            Columns to include, and columns that may be added if required.
        """
        node = self.settle(support | self.forced, among & self.free & ~support)
        while node is not None:
            inside, free = node
            if self.allows(inside):
                return inside
            unmet = [free & some for j, some in self.one_of if inside >> j & 1 and not inside & some]
            if not unmet:
                return None
            parent = unmet[0] & -unmet[0]
            completion = self.complete_mask(inside | parent, free)
            if completion is not None:
                return completion
            node = self.settle(inside, free & ~parent)
        return None

    def greedily(self, order: Iterable[int], inside: int = 0) -> int | None:
        """Return a support of the family built by adding columns in a given order, each with its required columns.

        Parameters
        ----------
        order : iterable of int
            Columns in the order in which they are tried.
        inside : int
            Columns to begin with.
        """
        chosen = self.complete_mask(inside, self.free)
        if chosen is None:
            return None
        for j in order:
            if self.count(chosen) == self.tau:
                break
            if self.free >> j & 1 and not chosen >> j & 1:
                larger: int | None = chosen | self.need[j]
                if self.one_of:
                    larger = self.complete_mask(chosen | 1 << j, self.free)
                elif not self.allows(chosen | self.need[j]):
                    larger = None
                chosen = chosen if larger is None else larger
        return chosen

    def apart(self) -> list[tuple[int, int]]:
        """Return limits on groups that do not overlap, smaller groups first: the limits that a relaxation can use."""
        groups: list[tuple[int, int]] = []
        for k, columns in sorted(self.caps, key=lambda cap: (cap[1] & ~self.forced).bit_count()):
            if not any(columns & mask for _, mask in groups):
                groups.append((k, columns))
        return groups


def complete_support(
    q: int, tau: int, constraints: SideConstraints, support: IntArray, among: Sequence[int]
) -> tuple[int, ...]:
    """Return an allowed support that contains given columns, completed from other given columns.

    If no such support exists, the given columns are returned alone.

    Parameters
    ----------
    q, tau : int
        Number of columns, and maximum size of a support.
    constraints : SideConstraints
        Side constraints; their boxes are ignored.
    support : int array
        Columns to include.
    among : sequence of int
        Columns that may be added.
    """
    columns = support.tolist()
    completion = Family(q, tau, constraints).complete_mask(make_mask(columns), make_mask(among))
    return tuple(sorted(columns)) if completion is None else tuple(columns_in_mask(completion))
