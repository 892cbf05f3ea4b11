"""What would complete a proof."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio import grids
from sparsecv_mio.certificate.parts import SearchRequest
from sparsecv_mio.certificate.record import Region
from sparsecv_mio.search.advice import LONGEST, advice, longer_limit
from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.pairs import pair_bounds
from sparsecv_mio.search.state.region import proved_part


def request(limit: float | None = 20.0) -> SearchRequest:
    return SearchRequest((0.01, 0.1, 1.0, 10.0), tuple(range(1, 31)), 1e-4, False, limit, 2)


def region(up_to_tau: int | None, from_gamma: float | None) -> Region:
    return Region(up_to_tau, from_gamma, 0.1, 3, 1.0, 1.0, 1.0, 0.0, 0.0)


def test_only_parts_with_the_reported_pair_are_advised() -> None:
    inside, outside = advice(request(), region(9, 0.1), 0.1, 9, {}), advice(request(), region(9, 0.1), 0.01, 10, {})
    assert (inside.tau, inside.gamma) == ("1:9", "0.1:10:3") and (outside.tau, outside.gamma) == (None, None)
    nothing = advice(request(), None, 0.1, 3, {})
    assert (nothing.tau, nothing.gamma, nothing.time_limit) == (None, None, None)


def test_what_is_advised_is_proved_by_itself() -> None:
    gap, gammas, taus, advised = 0.05, np.array([0.1, 1.0, 10.0]), np.arange(1, 5), 0
    for seed in range(600):
        rng, cells = np.random.default_rng(seed), CellTable.empty(3, 4, 1)
        h, width = rng.uniform(1.0, 1.2, size=(3, 4, 1)), rng.choice([0.0, 0.1], size=(3, 4, 1), p=[0.4, 0.6])
        cells.narrow(np.s_[:, :, :], h * (1.0 - width * rng.random(h.shape)), h * (1.0 + width * rng.random(h.shape)))
        cells.offer(np.s_[:, :, :], np.zeros(h.shape, dtype=np.int32), h, np.ones(h.shape))
        now = pair_bounds(cells, gammas, taus)
        part = proved_part(now, gap, gammas, taus)
        if part is None or now.proved(gap):
            continue
        ends = int(taus[part.taus - 1]) if part.taus else None, float(gammas[-part.gammas]) if part.gammas else None
        (g, t), (best_g, best_t) = now.reported_pair(gap, gammas, taus), part.bounds.best
        where = Region(*ends, float(gammas[best_g]), int(taus[best_t]), 1.0, 1.0, 1.0, 0.0, 0.0)
        asked = SearchRequest(tuple(gammas.tolist()), tuple(taus.tolist()), gap)
        found = advice(asked, where, float(gammas[g]), int(taus[t]), {})
        every = np.ones((3, 4), dtype=bool)
        small = every & np.isin(taus, grids.taus(found.tau or "0", 4))
        large = every & np.isin(gammas, grids.gammas(found.gamma or "99"))[:, None]
        for pairs in (small, large):
            assert not pairs.any() or now.within(pairs, gammas, taus).proved(gap), seed
            advised += int(pairs.any())
    assert advised > 40


@pytest.mark.parametrize("growth", [1.05, 1.2, 1.4])
def test_a_limit_follows_the_growth_of_the_costs(growth: float) -> None:
    seconds = {tau: 20.0 * growth ** (tau - 20) for tau in range(4, 21)}
    found = longer_limit(request(), seconds)
    exact = max(20.0 * growth**10, 30.0)
    assert found is not None and exact <= found * (1.0 + 1e-9) and found <= 2.0 * exact


def test_no_limit_is_advised_without_grounds() -> None:
    steep = {tau: 20.0 * 8.0 ** (tau - 10) for tau in range(4, 11)}
    assert LONGEST < 20.0 * 8.0**20 and longer_limit(request(), steep) is None
    assert longer_limit(request(), {1: 0.5, 8: 1.0}) is None
    assert longer_limit(request(None), {tau: float(tau) for tau in range(1, 9)}) is None
    # taus that came together cost nothing more: half as long again
    assert longer_limit(request(), dict.fromkeys((5, 6, 7), 2.0)) == 30.0
