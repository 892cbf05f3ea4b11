"""Survival times of rows: events and censoring, delayed entry, strata, and the method for tied events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.targets import Ties


@dataclass(frozen=True, eq=False)
class Survival:
    """What the rows of a data set have in addition to their times, which are the target.

    Attributes
    ----------
    is_event : (n,) bool array
        True if the time is that of an event, False if it is that of censoring.
    entry : (n,) array, optional
        Time after which a row is at risk; by default it is always at risk.
    stratum : (n,) int array, optional
        Stratum of each row, from 0; by default there is one stratum.
    ties : Ties
        Method for tied events.
    """

    is_event: BoolArray
    entry: FloatArray | None = None
    stratum: IntArray | None = None
    ties: Ties = Ties.EFRON

    def __post_init__(self) -> None:
        for of_rows in (self.is_event, self.entry, self.stratum):
            if of_rows is not None:
                of_rows.setflags(write=False)

    def take(self, rows: IntArray) -> Survival:
        """Return the same for some rows, in the given order."""
        entry = None if self.entry is None else self.entry[rows]
        stratum = None if self.stratum is None else self.stratum[rows]
        return replace(self, is_event=self.is_event[rows], entry=entry, stratum=stratum)

    def join(self, other: Survival) -> Survival:
        """Return the same for these rows and then those of another part of the data."""
        entry = None if self.entry is None or other.entry is None else np.append(self.entry, other.entry)
        stratum = None if self.stratum is None or other.stratum is None else np.append(self.stratum, other.stratum)
        return replace(self, is_event=np.append(self.is_event, other.is_event), entry=entry, stratum=stratum)

    def count_at_risk(self, times: FloatArray) -> IntArray:
        """Return, for each row, the number of rows of its stratum that are at risk at its time. O(n log n).

        Parameters
        ----------
        times : (n,) array
            Times of the rows.
        """
        stratum = np.zeros(len(times), dtype=np.int64) if self.stratum is None else self.stratum
        entry = np.full(len(times), -np.inf) if self.entry is None else self.entry
        rank = np.unique(np.concatenate([times, entry]), return_inverse=True)[1].reshape(2, -1)
        keys = stratum * (2 * len(times)) + rank  # ascending by stratum, then by time
        ends, later = (stratum + 1) * (2 * len(times)), np.zeros((2, len(times)), dtype=np.int64)
        for row, of_rows in enumerate(keys):
            ordered = np.sort(of_rows)
            later[row] = np.searchsorted(ordered, ends) - np.searchsorted(ordered, keys[0])
        return later[0] - later[1]

    def are_matched_sets(self, times: FloatArray) -> bool:
        """Return True if each stratum has one time and at most one event: conditional logistic regression.

        Parameters
        ----------
        times : (n,) array
            Times of the rows.
        """
        if self.stratum is None or self.entry is not None or np.bincount(self.stratum, self.is_event).max() > 1.0:
            return False
        return bool(np.all(times == times[self.first_of_stratum]))

    @property
    def first_of_stratum(self) -> IntArray:
        """(n,): the first row of the stratum of each row."""
        stratum = np.zeros(len(self.is_event), dtype=np.int64) if self.stratum is None else self.stratum
        _, first, place = np.unique(stratum, return_index=True, return_inverse=True)
        return np.asarray(first[place])

    @property
    def n_strata(self) -> int:
        """Number of strata; 1 without strata."""
        return 1 if self.stratum is None else len(np.unique(self.stratum))

    def weigh_events(self, weights: FloatArray | None) -> FloatArray:
        """Return the (n,) weights of the rows in means of losses: those of the events, 0 for other rows."""
        events = self.is_event.astype(np.float64)
        return events if weights is None else events * weights

    def digest(self, update: Callable[[bytes], object]) -> None:
        """Pass all numbers to a function that hashes them."""
        update(b"event" + self.is_event.astype("<f8").tobytes())
        if self.entry is not None:
            update(b"entry" + (self.entry + 0.0).astype("<f8", copy=False).tobytes())
        if self.stratum is not None:
            update(b"strata" + self.stratum.astype("<f8").tobytes())
        update(b"ties" + self.ties.encode())
