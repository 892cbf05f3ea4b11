"""The loop over sources of bounds: what promises most a unit of work is done next, and what that brought is noted.

A source makes offers: slices of work, with what they promise a unit of work. That is what its slices brought so far at
the same place, or near it; it is infinite where nothing is known, so that every source is tried. A promise decides the
order of work only: bounds are what slices prove.

Whoever drives the loop comes to other work only where no source has an offer. So a source that still could do more
holds its offers back where it has had its share of the time, and never offers for ever what brings nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sparsecv_mio.search.pairs import Pair


@dataclass(frozen=True)
class Offer:
    """A slice of work.

    Attributes
    ----------
    source : Source
        Who does it.
    pairs : tuple of (int, int)
        Pairs that it is to narrow, by index.
    rate : float
        What it promises a unit of work; inf where nothing is known of it.
    """

    source: Source
    pairs: tuple[Pair, ...]
    rate: float = np.inf


class Source(Protocol):
    """What can narrow cells in slices."""

    def offers(self) -> Iterable[Offer]:
        """Return what may be done next; nothing where it can do no more, or others are due."""

    def work(self, offer: Offer) -> None:
        """Do a slice that was offered, and note what it cost and brought."""


def best_offer(sources: Sequence[Source]) -> Offer | None:
    """Return the offer that promises most a unit of work, of equal ones the first; None where there is none."""
    offers = [offer for source in sources for offer in source.offers()]
    return max(offers, key=lambda offer: offer.rate, default=None)
