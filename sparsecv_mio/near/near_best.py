"""Supports near the best of their size: what is kept while they are met, and what is certain in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from sparsecv_mio.arrays import IntArray

UNKNOWN = "some models could not be valued: their columns are collinear, and the penalty is next to nothing beside them"
SPARE = 64  # supports kept beyond twice the number that is wanted, between two cuts


@dataclass(frozen=True, eq=False)
class Valued:
    """A support, its value, and a bound on the rounding error of that."""

    support: IntArray
    value: float
    error: float


@dataclass(frozen=True, eq=False)
class NearList:
    """What is certain of one size, in standard units; the fields of `certificate.near_records.NearSize`."""

    tau: int
    best: float
    lower: float
    threshold: float
    complete_to: float
    models: tuple[Valued, ...]

    @property
    def certain(self) -> tuple[Valued, ...]:
        """The models below `complete_to`, of which none is missing; all of a complete list."""
        if self.complete_to >= self.threshold:
            return self.models
        return tuple(one for one in self.models if one.value < self.complete_to)


@dataclass
class _Size:
    found: dict[bytes, Valued] = field(default_factory=dict)
    best: float = np.inf
    cut: float = np.inf
    unknown: bool = False


class NearBest:
    """Takes supports and keeps those within a ratio of the best of their size.

    Parameters
    ----------
    taus : sequence of int
    within : float
        The ratio less 1.
    most : int or None
        Supports of a size that are wanted, the best ones.
    """

    def __init__(self, taus: Sequence[int], within: float, most: int | None) -> None:
        self.taus, self.within, self.most = tuple(taus), within, most
        self._sizes = {tau: _Size() for tau in self.taus}

    def threshold(self, tau: int) -> float:
        """Value up to which supports of a size are wanted."""
        size = self._sizes[tau]
        return min((1.0 + self.within) * size.best, size.cut)

    def take(self, support: IntArray, value: float, error: float) -> None:
        """Take a support.

        Parameters
        ----------
        support : int array
            Ascending.
        value, error : float
        """
        size = self._sizes.get(len(support))
        if size is None:
            return
        if not np.isfinite(value + error):
            size.unknown = True
            return
        size.best = min(size.best, value + error)
        if value - error <= self.threshold(len(support)):
            size.found[support.tobytes()] = Valued(support, value, error)
        if self.most is not None and len(size.found) > 2 * self.most + SPARE:
            ranked = sorted(size.found.values(), key=lambda one: one.value)
            last = ranked[self.most]  # the first that is too many says how far the list is complete
            size.cut = min(size.cut, last.value + last.error)
            kept = {one.support.tobytes(): one for one in ranked if one.value - one.error <= size.cut}
            size.found = kept

    @property
    def unknown(self) -> bool:
        """Whether some support could not be valued: nothing is certain of its size."""
        return any(size.unknown for size in self._sizes.values())

    def best(self, tau: int) -> Valued | None:
        """Return the best support of a size so far."""
        return min(self._sizes[tau].found.values(), key=lambda one: one.value, default=None)

    def result(self, tau: int, unseen: float) -> NearList:
        """Return what is certain of a size.

        Parameters
        ----------
        tau : int
        unseen : float
            No support that was not taken has a value below this, unless it was above the threshold.
        """
        size = self._sizes[tau]
        unseen = 0.0 if size.unknown else unseen
        ranked = sorted(size.found.values(), key=lambda one: (one.value, one.support.tolist()))
        if not ranked:
            return NearList(tau, np.inf, 0.0, np.inf, min(unseen, 0.0), ())
        first = ranked[0]
        threshold = (1.0 + self.within) * first.value
        room = (1.0 + self.within) * first.error
        listed = [one for one in ranked if one.value - one.error <= threshold + room]
        complete_to = min(threshold, unseen)
        if self.most is not None and len(listed) > self.most:
            after = listed[self.most]
            complete_to = min(complete_to, after.value - after.error)
            listed = listed[: self.most]
        lower = max(min(min(one.value - one.error for one in ranked), unseen), 0.0)
        return NearList(tau, first.value, min(lower, first.value), threshold, complete_to, tuple(listed))


def replacements(supports: Sequence[IntArray], q: int) -> Counter[tuple[int, int]]:
    """Count the pairs of supports of one size that differ by one column in the place of another, by these two.

    Parameters
    ----------
    supports : sequence of int arrays
    q : int
        Number of columns.

    Notes
    -----
    O(L s log L) for L supports of s columns. Two sets of s - 1 columns are the same if two random 64-bit sums over them
    agree.

    Examples
    --------
    >>> dict(replacements([np.array([0, 1]), np.array([0, 2]), np.array([1, 3])], 4))
    {(0, 3): 1, (1, 2): 1}
    """
    if len(supports) < 2 or not len(supports[0]):
        return Counter()
    table = np.array(supports, dtype=np.int64)
    codes = np.random.default_rng(0).integers(0, 1 << 63, size=(2, q), dtype=np.int64)[:, table]
    first, second = (code.sum(axis=1)[:, None] - code for code in codes)  # of the support without each of its columns
    order = np.lexsort((first.ravel(), second.ravel()))
    same = (np.diff(first.ravel()[order]) == 0) & (np.diff(second.ravel()[order]) == 0)
    group = np.concatenate(([0], np.cumsum(~same)))
    columns = table.ravel()[order]
    rest = csr_array((np.ones(len(group)), (group, columns)), shape=(int(group[-1]) + 1, q))
    pairs = np.triu((rest.T @ rest).toarray(), 1)
    found = np.argwhere(pairs > 0.0)
    return Counter({(int(a), int(b)): int(pairs[a, b]) for a, b in found})
