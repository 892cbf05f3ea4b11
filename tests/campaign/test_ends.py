"""Searches, lists and fits on data made to lose digits, with time limits: they end, in time, with what is true."""

from __future__ import annotations

import os

import pytest
from counts import CAMPAIGN, COUNTS
from ends import tried

FIRST = 1_000_000 * int(os.environ.get("FUZZ_SEED", "0"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + int(os.environ.get("FUZZ_EXAMPLES", "12"))))
def test_a_run_ends_with_what_is_true(seed: int) -> None:
    line = tried(seed) if CAMPAIGN else tried(seed, 0.8)
    COUNTS[f"ends: {line['what']} {line.get('status', 'refused in one line')}"] += 1
    assert not line["wrong"], line
    assert not (CAMPAIGN and line.get("late")), line
