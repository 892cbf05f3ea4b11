"""Logistic regression on small hostile problems: every bound holds the truth of an enumeration."""

from __future__ import annotations

import os

import pytest
from logistic_truth import judged

FIRST = 1_000_000 * int(os.environ.get("FUZZ_SEED", "0"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + int(os.environ.get("FUZZ_EXAMPLES", "12"))))
def test_bounds_hold_the_truth(seed: int) -> None:
    judged(seed)
