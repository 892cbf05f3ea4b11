"""Restrictions beyond forced columns, as `verify` tries all supports under them.

With signs held, the fit of a support is the ridge fit of its coefficients off zero. So the optimum is the least among
plain ridge fits with the signs, of every set of columns that an allowed support holds, where beside it this support
has only columns that a sign may hold at zero (docs/theory.md, "Restrictions"). No constrained fit is made here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.restrictions import Restrictions

NOTHING = 1e-9  # of the target: a coefficient that predicts less may have either sign


@dataclass(frozen=True, eq=False)
class AllowedSupports:
    """Which sets of some columns a model may consist of, in positions among them.

    Attributes
    ----------
    names : tuple of str
        Of the columns.
    asked : Restrictions
        By the names of the data.
    together : tuple of tuples of str
        Features that are chosen all or none.
    """

    names: tuple[str, ...]
    asked: Restrictions
    together: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def sign(self) -> IntArray:
        """(q,) 1 for columns whose coefficient is not below 0, -1 for not above, else 0."""
        up, down = (np.isin(self.names, list(some)) for some in (self.asked.nonnegative, self.asked.nonpositive))
        return up.astype(np.int64) - down.astype(np.int64)

    def allows(self, support: Iterable[int]) -> bool:
        """Whether a model may consist of these columns, signs and size aside."""
        chosen, asked = {self.names[j] for j in support}, self.asked
        return (
            chosen.issuperset(asked.force_in)
            and chosen.isdisjoint(asked.force_out)
            and all(chosen.issuperset(group) or chosen.isdisjoint(group) for group in self.together)
            and all(len(chosen.intersection(group.features)) <= group.count for group in asked.at_most)
            and all(
                chosen.issuperset(one.parents) if one.every else not chosen.isdisjoint(one.parents)
                for one in asked.hierarchy
                if one.feature in chosen
            )
        )

    def holds(self, active: tuple[int, ...], tau: int, slope: FloatArray | None = None) -> bool:
        """Whether these columns are in an allowed support of up to tau, whose others a sign holds at zero.

        Parameters
        ----------
        active : tuple of int
        tau : int
        slope : (q,) array, optional
            How much adding to each coefficient would improve the fit; without it every sign may hold.
        """
        stays = self.sign != 0 if slope is None else (self.sign != 0) & (self.sign * slope <= NOTHING)
        others = [j for j in np.flatnonzero(stays).tolist() if j not in active]
        return any(
            self.allows((*active, *more))
            for size in range(min(tau - len(active), len(others)) + 1)
            for more in combinations(others, size)
        )

    def up_to(self, tau: int) -> dict[int, IntArray]:
        """Return what `holds` of up to tau columns, as the rows of a table for each size.

        Parameters
        ----------
        tau : int
        """
        q = len(self.names)
        held = set(np.flatnonzero(self.sign).tolist())
        sets = [some for size in range(min(tau, q) + 1) for some in combinations(range(q), size)]
        found: set[tuple[int, ...]] = set()
        for some in sets:
            if self.allows(some):
                loose = [j for j in some if j in held]
                for size in range(len(loose) + 1):
                    found |= {tuple(j for j in some if j not in gone) for gone in combinations(loose, size)}
        by_size = {size: sorted(one for one in found if len(one) == size) for size in range(min(tau, q) + 1)}
        return {size: np.array(rows, dtype=np.int64).reshape(len(rows), size) for size, rows in by_size.items() if rows}

    def signed_right(self, support: Iterable[int], effect: FloatArray) -> bool:
        """Whether coefficients have their signs, but for those that next to nothing comes of.

        Parameters
        ----------
        support : iterable of s int
        effect : (s,) array
            Coefficients times the lengths of their columns, over the length of the target.
        """
        return bool(np.all(self.sign[list(support)] * effect >= -NOTHING))
