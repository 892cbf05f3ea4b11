"""Everything that is said of best subsets of counts against an enumeration with its own Newton."""

from __future__ import annotations

import pytest
from logistic_truth import counted, judged


@pytest.mark.parametrize("seed", range(40))
def test_every_claim_about_counts(seed: int) -> None:
    asked, proved = judged(seed, 5, counted)
    assert 0 <= proved <= asked
