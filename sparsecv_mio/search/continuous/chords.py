"""Concave functions between their chords and their tangents: who can be least somewhere on an interval of lam."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.search.continuous.fits import Values


def first_of(fold: IntArray) -> IntArray:
    """Return where each run of equal numbers starts."""
    return np.flatnonzero(np.concatenate(([True], fold[1:] != fold[:-1])))


def kinks(
    ends: tuple[float, float], values: tuple[FloatArray, FloatArray], slopes: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Where the tangents at both ends of an interval meet, as a share of the way, and how high above the chord there.

    Parameters
    ----------
    ends : two floats
    values, slopes : two (K,) arrays each
        Of K concave functions at the ends.

    Returns
    -------
    share, excess : (K,) arrays
        No concave function with these values and slopes is above its chord by more than `excess`.
    """
    length = ends[1] - ends[0]
    rise = values[1] - values[0]
    before, after = np.maximum(slopes[0] * length - rise, 0.0), np.maximum(rise - slopes[1] * length, 0.0)
    total = before + after
    share = np.where(total > 0.0, after / np.where(total > 0.0, total, 1.0), 0.5)
    return share, share * before


@dataclass(frozen=True, eq=False)
class Envelope:
    """The least objective of each fold at both ends of an interval, among fits sorted by fold.

    Attributes
    ----------
    starts, member : (K,), (P,) int arrays
        First fit of each fold, and the place of a fit's fold among them.
    left, right : (K,) arrays
        Least objectives.
    share, excess : (K,) arrays
        As `kinks` returns them, of the least objective.
    error : (K,) array
        Bound on the rounding of any objective of the fold at either end.
    """

    starts: IntArray
    member: IntArray
    left: FloatArray
    right: FloatArray
    share: FloatArray
    excess: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, ends: tuple[float, float], fold: IntArray, left: Values, right: Values) -> Envelope:
        """Find the least objectives at both ends.

        Parameters
        ----------
        ends : two floats
        fold : (P,) int array
            Ascending.
        left, right : Values
            Of the P fits at the ends.
        """
        starts = first_of(fold)
        member = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(fold))))
        least = [np.minimum.reduceat(side.f, starts) for side in (left, right)]
        slopes = (
            np.minimum.reduceat(np.where(left.f == least[0][member], left.slope, np.inf), starts),
            np.maximum.reduceat(np.where(right.f == least[1][member], right.slope, -np.inf), starts),
        )
        share, excess = kinks(ends, (least[0], least[1]), slopes)
        error = np.maximum.reduceat(np.maximum(left.f_error, right.f_error), starts)
        return cls(starts, member, least[0], least[1], share, excess, error)

    def may_win(self, left: Values, right: Values) -> BoolArray:
        """(P,): whether a fit can be the least of its fold anywhere on the interval.

        By concavity its objective is above its chord, and the least one below the tangents at both ends: a fit stays
        only if its chord is below these at an end or where they meet.
        """
        over_left, over_right = left.f - self.left[self.member], right.f - self.right[self.member]
        share, room = self.share[self.member], 4.0 * self.error[self.member]
        at_kink = (1.0 - share) * over_left + share * over_right - self.excess[self.member]
        return np.asarray(np.minimum(np.minimum(over_left, over_right), at_kink) <= room)
