"""Logistic regression on small hostile problems: every bound holds the truth of an enumeration.

The suite takes two seeds here; `brute_force/test_logistic.py` has its many.
"""

from __future__ import annotations

import os

import pytest
from logistic_truth import harder, judged

FIRST = 1_000_000 * int(os.environ.get("FUZZ_SEED", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("FUZZ_EXAMPLES", "2")))


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_hold_the_truth(seed: int) -> None:
    judged(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_hold_with_weights_far_apart_copies_and_tiny_units(seed: int) -> None:
    judged(seed, 5, harder)
