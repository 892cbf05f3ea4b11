"""The certificate asks the clock: without time its curve is coarse, and its pieces are the same."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from interval_problem import interval_problem

from sparsecv_mio.grids import GammaInterval
from sparsecv_mio.search.continuous.asked import Interval
from sparsecv_mio.search.continuous.certified import CURVE_POINTS, Found, certified, coarse_first
from sparsecv_mio.search.continuous.lists import AllRows, Lists
from sparsecv_mio.search.continuous.partition import Partition, held_out
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.options import SearchOptions

TAUS = [1, 3, 8]  # one beyond the columns


def _found(spec: str) -> tuple[Interval, Found]:
    one = interval_problem(7, spec)
    lister = one.lister()
    sizes = sorted({min(tau, one.data.q) for tau in TAUS})
    search = Partition(Lists(lister, AllRows(lister, sizes)), (0.005, 1.0), 1e-4, lambda: False)
    search.begin()
    while not search.finished:
        search.step()
    asked = Interval(one.data.dataset, one.folds, GammaInterval(0.01, 2.0), TAUS, SearchOptions(gap=1e-4), Hooks())
    return asked, Found(one.data, search.pieces(), search.best, 0.25)


def _best_size(found: Found) -> int | None:
    return None if found.best is None else found.best.size


@pytest.mark.parametrize("spec", ["loo", "3"])
def test_every_point_of_the_curve_is_that_of_the_fits(spec: str) -> None:
    asked, found = _found(spec)
    made = certified(asked, found, _best_size(found), lambda: False)
    assert len(made.curve_gammas) > CURVE_POINTS // 2
    expected: dict[float, float] = {}
    inner = np.geomspace(0.005, 1.0, CURVE_POINTS)
    for piece in found.pieces:
        if piece.fits is not None and found.best is not None and piece.size == found.best.size:
            between = inner[(inner > piece.low) & (inner < piece.high)].tolist()
            expected |= {2.0 * lam: held_out(piece.fits.fold, piece.fits.values(lam))[0] * 0.25 for lam in between}
    curve = dict(zip(made.curve_gammas, made.curve_errors, strict=True))
    assert expected and expected.items() <= curve.items()


def test_without_time_the_curve_is_coarse() -> None:
    asked, found = _found("3")
    full = certified(asked, found, _best_size(found), lambda: False)
    curve = dict(zip(full.curve_gammas, full.curve_errors, strict=True))
    points = []
    for most in (0, 40):
        asks = count()
        made = certified(asked, found, _best_size(found), lambda asks=asks, most=most: next(asks) >= most)  # type: ignore[misc]
        assert made.pieces == full.pieces and made.supports == full.supports
        assert dict(zip(made.curve_gammas, made.curve_errors, strict=True)).items() <= curve.items()
        points.append(len(made.curve_gammas))
    assert points[1] == points[0] + 40 < len(curve)


def test_far_points_come_first() -> None:
    order = coarse_first(CURVE_POINTS)
    assert sorted(order) == list(range(CURVE_POINTS)) and coarse_first(0) == []
    assert sorted(order[:15]) == list(range(0, CURVE_POINTS, 27))
