"""Lists of supports below a bar hold all of them, in every training set."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from interval_problem import interval_problem

from sparsecv_mio.search.every_gamma.gamma_lists import BestOverGamma, EndLists


def test_the_clock_ends_a_list() -> None:
    one = interval_problem(6, "5")
    lister = one.lister()
    lister.is_expired = lambda: True
    assert lister.optima(0.1, {2: ()}) is None and lister.list_supports(0.1, {2: np.ones(one.folds.k)}) is None


@pytest.mark.parametrize("spec", ["loo", "4"])
@pytest.mark.parametrize("seed", range(3))
def test_every_optimum_of_an_interval_is_listed(spec: str, seed: int) -> None:
    one = interval_problem(seed, spec)
    lister, folds = one.lister(), np.arange(one.folds.k)
    lists, (low, high) = EndLists(lister, BestOverGamma(lister, [2, 4])), [(1e-3, 1e-2), (0.1, 0.5), (1.0, 1.2)][seed]
    assert not lists.has_optima(low, high, 2)
    assert lists.solve(low, [2, 4]) and lists.solve(high, [2, 4]) and lists.has_optima(low, high, 4)
    for size in (2, 4):
        fits = lists.candidate_fits(low, high, size)
        assert fits is not None
        pairs = {(f, *s) for f, s in zip(fits.fold.tolist(), fits.support.tolist(), strict=True)}
        every = np.array(list(combinations(range(6), size)))
        for lam in np.linspace(low, high, 30):
            f = np.stack([one.sets.values(folds, np.tile(s, (len(folds), 1)), lam).f for s in every])
            for fold, best in enumerate(f.argmin(axis=0).tolist()):
                assert (fold, *every[best].tolist()) in pairs
