"""The gap of an outcome."""

from __future__ import annotations

import math

import pytest

from sparsecv_mio.formulation.outcome import Outcome, Stop


def test_outcome_gap() -> None:
    assert Outcome(Stop.TIME, None).gap == math.inf
    assert Outcome(Stop.OPTIMAL, (0,), 0.0, 0.0).gap == 0.0
    assert Outcome(Stop.OPTIMAL, (0,), 0.9, 1.0).gap == pytest.approx(0.1)
