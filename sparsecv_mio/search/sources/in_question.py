"""Which pairs are in question: neither decided nor excluded."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.search.context import SearchState
from sparsecv_mio.search.pairs import Pair

RISE = 0.1  # a rise of lower ends that is worth a slice: of the least CV error, or of what a pair misses of its goal


def taus_named(taus: IntArray) -> str:
    """Name some taus, as `tau 3` or `tau 1 to 5`."""
    ends = sorted({int(tau) for tau in taus[[0, -1]]}) if len(taus) else []
    return f"tau {' to '.join(map(str, ends))}"


def mask_of(shape: tuple[int, ...], *pairs: Pair) -> BoolArray:
    """(G, T): some pairs of a grid of a shape that begins with its gammas and taus."""
    chosen = np.zeros(shape[:2], dtype=bool)
    chosen[tuple(zip(*pairs, strict=True))] = True
    return chosen


class InQuestion:
    """What a proof of the best pair still needs.

    A pair is not in question where its lower bound excludes it, up to the gap: against the best pair of the grid once
    that is decided; before, against the best pair with no larger tau, for a proof among small taus needs no more.
    (Until then `SearchState.worth_work`, which compares with the best pair of the grid at once, may leave out more.)

    Parameters
    ----------
    state : SearchState
    """

    def __init__(self, state: SearchState) -> None:
        self.state = state

    def cells(self) -> BoolArray:
        """(G, T, K): open cells of the pairs in question."""
        beaten = self.state.cells.lower.sum(axis=2) >= self.bars()
        return np.asarray(self.state.open & ~beaten[:, :, None])

    def pairs(self) -> BoolArray:
        """(G, T): pairs in question."""
        return np.asarray(self.cells().any(axis=2))

    def bars(self) -> FloatArray:
        """(G, T): lower sums from which on a pair is not in question; inf for the best pair itself."""
        state = self.state
        upper = state.cells.upper.sum(axis=2)
        bar = np.minimum.accumulate(upper.min(axis=0))
        best = np.unravel_index(int(upper.argmin()), upper.shape)
        if state.cells.final[best].all():
            bar = np.full(len(bar), upper[best])
        bars = np.tile(bar * (1.0 - state.context.gap), (len(upper), 1))
        bars[best] = np.inf
        return bars
