"""Lists of supports below a bar hold all of them, in every training set."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from interval_problem import interval_problem

SIZES = (0, 1, 3, 5, 6)


@pytest.mark.parametrize("spec", ["loo", "5"])
@pytest.mark.parametrize("lam", [1e-3, 0.4])
def test_lists_are_those_of_enumeration(spec: str, lam: float) -> None:
    one = interval_problem(6, spec)
    lister, folds = one.lister(), np.arange(one.folds.k)
    best = lister.optima(lam, {size: () for size in SIZES})
    assert best is not None
    bars = {size: best[size].bar * 1.05 for size in SIZES}
    listed = lister.below(lam, bars)
    assert listed is not None and lister.nodes > 0
    for size in SIZES:
        pairs = {(f, *s) for f, s in zip(listed[size].fold.tolist(), listed[size].support.tolist(), strict=True)}
        least = np.full(len(folds), np.inf)
        for support in combinations(range(6), size):
            f = one.sets.values(folds, np.tile(np.array(support, dtype=np.int64), (len(folds), 1)), lam).f
            least = np.minimum(least, f)
            for fold in np.flatnonzero(f <= bars[size] * (1.0 - 1e-9)).tolist():
                assert (fold, *support) in pairs
        assert np.allclose(best[size].bar, least, rtol=1e-7)


def test_the_clock_ends_a_list() -> None:
    one = interval_problem(6, "5")
    lister = one.lister()
    lister.expired = lambda: True
    assert lister.optima(0.1, {2: ()}) is None and lister.below(0.1, {2: np.ones(one.folds.k)}) is None
