"""Intervals never cross silently."""

from __future__ import annotations

import math

import pytest

from sparsecv_mio.errors import Contradiction
from sparsecv_mio.units import KEEP_RTOL, TIE_RTOL, Interval


def test_both_ends_belong_to_an_interval() -> None:
    assert 1.0 in Interval(1.0, 2.0) and 2.0 in Interval(1.0, 2.0) and 2.1 not in Interval(1.0, 2.0)
    assert 5.0 in Interval(-math.inf, math.inf)


@pytest.mark.parametrize(("lower", "upper"), [(2.0, 1.0), (math.nan, 1.0), (0.0, math.nan), (math.inf, -math.inf)])
def test_crossed_or_missing_ends_raise(lower: float, upper: float) -> None:
    with pytest.raises(Contradiction):
        Interval(lower, upper)


def test_tighten_only_tightens_and_covers_both_within_the_allowance() -> None:
    assert Interval(0.0, 2.0).tighten(Interval(1.0, 5.0)) == Interval(1.0, 2.0)
    assert Interval(-math.inf, math.inf).tighten(Interval(1.0, 5.0)) == Interval(1.0, 5.0)
    assert Interval(0.0, 1.0).tighten(Interval(1.1, 2.0), allowance=0.2) == Interval(1.0, 1.1)
    with pytest.raises(Contradiction, match="by more than"):
        Interval(0.0, 1.0).tighten(Interval(1.1, 2.0), allowance=0.05)


def test_pruning_keeps_every_tie() -> None:
    assert TIE_RTOL < KEEP_RTOL
