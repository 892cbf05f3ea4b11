"""Pieces cover the interval, and none has a CV error below its bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from every_gamma import EveryGamma
from interval_problem import interval_problem

from sparsecv_mio.search.continuous.fits import Values
from sparsecv_mio.search.continuous.lists import AllRows, Lists
from sparsecv_mio.search.continuous.partition import Partition, Piece, held_out, held_out_of_many, least_of_greater


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


def _covered(pieces: list[Piece], sizes: list[int], ends: tuple[float, float]) -> bool:
    for size in sizes:
        of_size = sorted((piece for piece in pieces if piece.size == size), key=lambda piece: piece.low)
        edges = [ends[0], *(piece.high for piece in of_size)]
        if edges[-1] != ends[1] or [piece.low for piece in of_size] != edges[:-1]:
            return False
    return True


def test_pieces_cover_the_interval_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also amid a step and before the first: another thread makes a record of them when the limit comes."""
    one, seen = interval_problem(7, "3"), list[bool]()
    lister, sizes, ends = one.lister(), [1, 3], (1e-3, 0.5)
    search = Partition(Lists(lister, AllRows(lister, sizes)), ends, 1e-4, lambda: False)
    for name in ("_first", "_solve", "_list", "_divide", "_score"):
        plain = getattr(search, name)

        def watched(*given: object, plain: Callable[..., object] = plain) -> object:
            seen.append(_covered(search.pieces(), sizes, ends))
            return plain(*given)

        monkeypatch.setattr(search, name, watched)
    assert _covered(search.pieces(), sizes, ends)
    search.begin()
    while not search.finished:
        search.step()
    assert len(seen) > 50 and all(seen)


def test_many_held_out_errors_at_once_are_those_of_each() -> None:
    rng, given = np.random.default_rng(4), []
    for folds in (1, 3, 9, 40, 200):
        fold = np.sort(np.append(np.arange(folds), rng.integers(0, folds, 2 * folds)))
        f = rng.integers(1, 4, len(fold)) + 1e-10 * rng.random(len(fold))
        errors = rng.random((2, len(fold))) * 1e-9
        given.append((fold, Values(f, errors[0], f, rng.random(len(fold)), errors[1])))
    found = held_out_of_many(given)
    for (fold, values), row in zip(given, found.tolist(), strict=True):
        none = np.zeros(len(fold))
        plain = Values(values.f, none, values.slope, values.h, none)
        assert tuple(row) == (*held_out(fold, values), *held_out(fold, plain))
    assert held_out_of_many([]).shape == (0, 4)
