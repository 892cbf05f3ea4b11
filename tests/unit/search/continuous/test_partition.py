"""Pieces cover the interval, and none has a CV error below its bound."""

from __future__ import annotations

import numpy as np
import pytest
from every_gamma import EveryGamma
from interval_problem import interval_problem

from sparsecv_mio.search.continuous.lists import AllRows, Lists
from sparsecv_mio.search.continuous.partition import Partition, least_of_greater


def test_the_greater_of_two_lines() -> None:
    assert least_of_greater(np.array([[0.0, 2.0], [1.0, 1.0]])) == 1.0
    assert least_of_greater(np.array([[0.0, 2.0], [3.0, -1.0]])) == 1.0
    assert least_of_greater(np.array([[2.0, 1.0], [0.0, 0.0]])) == 1.0


@pytest.mark.parametrize("spec", ["loo", "3"])
def test_a_search_can_end_at_any_step(spec: str) -> None:
    one = interval_problem(7, spec)
    lister, taus, ends = one.lister(), [1, 3, 5], (1e-3, 0.5)
    search = Partition(Lists(lister, AllRows(lister, taus)), ends, 1e-5, lambda: False)
    truth = EveryGamma(one.data.dataset.X, one.data.dataset.y, one.folds, taus)
    least, unit = truth.least(2e-3, 1.0, 300), one.data.y_unit**2 / one.folds.scored
    search.begin()
    steps = 0
    while not search.finished:
        assert search.lower * unit <= least * (1.0 + 1e-9) and search.upper * unit >= least * (1.0 - 1e-9)
        search.step()
        steps += 1
    assert steps > 0 and search.lower >= (1.0 - 1e-5) * search.upper
    for t, tau in enumerate(taus):
        pieces = sorted((piece for piece in search.pieces() if piece.size == tau), key=lambda piece: piece.low)
        assert (pieces[0].low, pieces[-1].high) == ends
        assert all(a.high == b.low for a, b in zip(pieces[:-1], pieces[1:], strict=True))
        h = truth.h(np.array([2.0 * piece.middle for piece in pieces]))[t]
        assert all(piece.lower * unit <= value * (1.0 + 1e-9) for piece, value in zip(pieces, h, strict=True))


def test_without_time_nothing_is_claimed() -> None:
    one = interval_problem(7, "3")
    lister = one.lister()
    search = Partition(Lists(lister, AllRows(lister, [2])), (1e-3, 1.0), 1e-4, lambda: True)
    search.begin()
    assert search.best is None and search.lower == 0.0 and search.upper == np.inf
