"""Who can be least among concave functions, from values and slopes at two ends."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.search.continuous.chords import Envelope, first_of, kinks
from sparsecv_mio.search.continuous.fits import Values


def test_runs_start_where_numbers_change() -> None:
    assert first_of(np.array([2, 2, 5, 7, 7])).tolist() == [0, 2, 3]


def test_tangents_of_a_parabola_meet_in_the_middle() -> None:
    share, excess = kinks((0.0, 2.0), (np.zeros(1), np.zeros(1)), (np.ones(1) * 4.0, -np.ones(1) * 4.0))
    assert share.tolist() == [0.5] and excess.tolist() == [4.0]


@pytest.mark.parametrize("seed", range(20))
def test_no_winner_is_dropped(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, mu = rng.normal(size=(30, 3)) ** 2, rng.random(size=(30, 3)) * 0.3
    yy = 10.0 + 2.0 * rng.random(30) + (a / (mu + 1.0)).sum(axis=1)
    fold, zero = np.repeat([0, 1, 2], 10), np.zeros(30)

    def values(lam: float) -> Values:
        f, slope = yy - (a / (mu + lam)).sum(axis=1), (a / (mu + lam) ** 2).sum(axis=1)
        return Values(f, zero, slope, zero, zero)

    low, high = 1.0, 1.0 + 2.0 * rng.random()
    left, right = values(low), values(high)
    envelope = Envelope.of((low, high), fold, left, right)
    kept = envelope.may_win(left, right)
    for lam in np.linspace(low, high, 101):
        f = values(lam).f.reshape(3, 10)
        assert kept[f.argmin(axis=1) + np.array([0, 10, 20])].all()
        share = (lam - low) / (high - low)
        chord = (1.0 - share) * envelope.left + share * envelope.right
        assert np.all(f.min(axis=1) <= chord + envelope.excess + 1e-12)
