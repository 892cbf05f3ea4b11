"""The part of the grid in which the best pair is proved, while the whole grid is not.

A part holds every tau up to some size at every gamma, every tau from some gamma on, and the pair with the least upper
bound of all, wherever that is, unless more is proved without it. Of the pairs in it the same is asked as of the grid:
`upper - lower <= gap upper + ties + rounding`, `upper` the least upper bound of a pair of the part, `lower` the least
lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.search.state.pairs import PairBounds
from sparsecv_mio.units import CROSSING_RTOL


@dataclass(frozen=True, eq=False)
class ProvedPart:
    """Some of the smallest taus at every gamma, and some of the largest gammas at every tau.

    Attributes
    ----------
    taus, gammas : int
        How many of the smallest taus, and of the largest gammas; one of the two may be 0.
    bounds : PairBounds
        Of the pairs in the part.
    """

    taus: int
    gammas: int
    bounds: PairBounds


def proved_part(now: PairBounds, gap: float, gammas: FloatArray, taus: IntArray) -> ProvedPart | None:
    """Return a part of the grid in which the best pair is proved: as many taus as possible, then as many gammas.

    Parameters
    ----------
    now : PairBounds
        Of the whole grid.
    gap : float
    gammas, taus : arrays
        The grid, ascending.

    Returns
    -------
    ProvedPart or None
        None where there is none.

    Notes
    -----
    O(G T K + G^2 T).
    """
    columns, rows = np.arange(len(taus)), np.arange(len(gammas))[:, None]
    best = np.zeros(now.lower.shape, dtype=bool)
    best[now.best] = True

    def proved(part: BoolArray) -> PairBounds | None:
        """Try a part with the best pair of the grid, then without."""
        for pairs in (part | best, part):
            found = now.within(pairs, gammas, taus)
            if found.proved(gap):
                return found
        return None

    for most in [*_perhaps_proved(now, gap), 0]:
        small = np.broadcast_to(columns < most, now.lower.shape)
        inside = proved(small) if most else None
        if most and inside is None:
            continue
        for count in range(len(gammas), 0, -1):
            both = proved(small | (rows >= len(gammas) - count))
            if both is not None:
                return ProvedPart(most, count, both)
        if inside is not None:
            return ProvedPart(most, 0, inside)
    return None


def proved_ends(
    now: PairBounds, gap: float, gammas: FloatArray, taus: IntArray
) -> tuple[int | None, float | None] | None:
    """Return the largest tau and the least gamma of the part that is proved; either may be None, as the whole.

    Parameters
    ----------
    now : PairBounds
        Of the whole grid.
    gap : float
    gammas, taus : arrays
        The grid, ascending.
    """
    part = proved_part(now, gap, gammas, taus)
    if part is None:
        return None
    return (
        int(taus[part.taus - 1]) if part.taus else None,
        float(gammas[-part.gammas]) if part.gammas else None,
    )


def _perhaps_proved(now: PairBounds, gap: float) -> list[int]:
    """How many of the smallest taus may be proved at every gamma, the largest number first; the others surely are not.

    Counts every width of a decided pair as ties: one pass over the table.
    """
    cells = now.cells
    width = np.empty_like(now.lower)
    for t in range(width.shape[1]):  # one tau at a time: with many folds the widths of all would take much memory
        width[:, t] = np.where(cells.decided[:, t], cells.upper[:, t] - cells.lower[:, t], 0.0).sum(axis=1)
    lower = np.minimum.accumulate(now.lower.min(axis=0))
    room = np.maximum.accumulate(width.max(axis=0)) + float(width[now.best])
    fine = np.zeros(len(lower), dtype=bool)
    for upper in (np.full(len(lower), now.upper.min()), np.minimum.accumulate(now.upper.min(axis=0))):
        known = np.isfinite(upper)
        bar = np.where(known, upper, 0.0)
        fine |= known & (bar - lower <= (gap + 2.0 * CROSSING_RTOL) * bar + room)
    return (np.flatnonzero(fine)[::-1] + 1).tolist()
