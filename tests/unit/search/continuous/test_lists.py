"""What is listed on an interval holds every optimum anywhere on it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from interval_problem import interval_problem

from sparsecv_mio.search.continuous.lists import AllRows, Lists


@pytest.mark.parametrize("spec", ["loo", "4"])
@pytest.mark.parametrize("seed", range(3))
def test_every_optimum_of_an_interval_is_listed(spec: str, seed: int) -> None:
    one = interval_problem(seed, spec)
    lister, folds = one.lister(), np.arange(one.folds.k)
    lists, (low, high) = Lists(lister, AllRows(lister, [2, 4])), [(1e-3, 1e-2), (0.1, 0.5), (1.0, 1.2)][seed]
    assert not lists.solved(low, high, 2)
    assert lists.solve(low, [2, 4]) and lists.solve(high, [2, 4]) and lists.solved(low, high, 4)
    for size in (2, 4):
        fits = lists.on(low, high, size)
        assert fits is not None
        pairs = {(f, *s) for f, s in zip(fits.fold.tolist(), fits.support.tolist(), strict=True)}
        every = np.array(list(combinations(range(6), size)))
        for lam in np.linspace(low, high, 30):
            f = np.stack([one.sets.values(folds, np.tile(s, (len(folds), 1)), lam).f for s in every])
            for fold, best in enumerate(f.argmin(axis=0).tolist()):
                assert (fold, *every[best].tolist()) in pairs


def test_all_rows_have_certified_bounds() -> None:
    one = interval_problem(0, "4")
    whole = AllRows(one.lister(), [2, 6])
    cell = whole.at(0.1)[2]
    assert cell.lower <= cell.upper and whole.support(0.1, 6).tolist() == list(range(6))
    assert [found.tolist() for found in whole.found(2)] == [whole.support(0.1, 2).tolist()]
