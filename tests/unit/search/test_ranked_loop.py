"""The loop over sources, with sources that are tables whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.search.ranked_loop import Offer, best_offer


class Table:
    """Raises lower bounds (G, T) towards what it can prove: half of what is left a slice, at its own cost.

    It promises what its last slice brought at a pair; what a formula says, here more than any slice brings, before.
    """

    def __init__(self, lower: FloatArray, reach: FloatArray, cost: float) -> None:
        self.lower, self.reach, self.cost = lower, reach, cost
        self.gains = np.full(lower.shape, np.inf)
        self.asked: list[tuple[int, int]] = []

    def offers(self) -> list[Offer]:
        gap = np.where(self.reach - self.lower > 1e-6, self.reach - self.lower, 0.0)
        return [Offer(self, ((int(g), int(t)),), float(self.gains[g, t])) for g, t in np.argwhere(gap > 0.0)]

    def work(self, offer: Offer) -> None:
        (pair,) = offer.pairs
        left = self.reach[pair] - self.lower[pair]
        rise = left if left < 1e-3 else 0.5 * left
        self.lower[pair] += rise
        self.gains[pair] = rise / self.cost
        self.asked.append(pair)


def to_the_end(sources: Sequence[Table], budget: float = np.inf) -> float:
    """Work until nothing is offered, or the budget is spent; what was spent."""
    spent = 0.0
    while spent < budget and (offer := best_offer(sources)):
        offer.source.work(offer)
        spent += sources[0].cost if offer.source is sources[0] else sources[1].cost
        assert spent < 1e4, "it ends"
    return spent


@pytest.mark.parametrize("seed", range(20))
def test_the_loop_ends_with_all_that_can_be_proved_and_starves_no_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, lower = rng.uniform(0.5, 1.0, (3, 4)), np.zeros((3, 4))
    weak, strong = Table(lower, truth * rng.uniform(0.3, 1.0, truth.shape), 1.0), Table(lower, truth, 5.0)
    to_the_end([weak, strong])
    assert np.allclose(lower, truth, atol=1e-5) and np.all(lower <= truth)
    assert set(weak.asked + strong.asked) == set(np.ndindex(3, 4))


@pytest.mark.parametrize("seed", range(20))
def test_what_brings_more_a_unit_of_work_does_more_of_it(seed: int) -> None:
    """Of two sources of the same reach; what is promised are slices of before, when more was left."""
    truth, lower = np.random.default_rng(seed).uniform(0.5, 1.0, (2, 3)), np.zeros((2, 3))
    cheap, dear = Table(lower, truth, 1.0), Table(lower, truth, 1e2)
    to_the_end([cheap, dear])
    assert 0 < 2 * len(dear.asked) < len(cheap.asked)
    assert np.allclose(lower, truth, atol=1e-5)


def test_every_gain_that_was_taken_was_the_best_one_offered() -> None:
    truth, lower = np.array([[1.0, 0.4, 0.8]]), np.zeros((1, 3))
    table, other = Table(lower, truth, 1.0), Table(lower, np.zeros((1, 3)), 1.0)
    for _ in range(3):
        table.work(best_offer([table, other]))  # type: ignore[arg-type]
    assert sorted(table.asked) == [(0, 0), (0, 1), (0, 2)], "those that were never tried come first"
    while offer := best_offer([table, other]):
        assert offer.rate == max(each.rate for each in table.offers())
        table.work(offer)


def test_nothing_is_taken_where_nothing_is_offered() -> None:
    assert best_offer([]) is None
    assert best_offer([Table(np.ones((1, 1)), np.ones((1, 1)), 1.0)]) is None
