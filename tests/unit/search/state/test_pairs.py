"""Sums over folds: the best pair, ties for the simplest, the pair to report."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn_run
from runs import to_end

from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.pairs import pair_bounds, simplest

GAMMAS, TAUS = np.array([0.1, 1.0]), np.array([1, 2, 3])


def test_sums_and_the_best_pair() -> None:
    cells = CellTable.empty(2, 3, 4)
    cells.narrow((slice(None), slice(None), slice(None)), 1.0, 3.0)
    cells.narrow((1, 2, slice(None)), 1.5, 2.0)
    now = pair_bounds(cells, GAMMAS, TAUS)
    assert now.best == (1, 2) and now.ceiling == 8.0 and now.floor == 4.0
    assert not now.proved(0.4) and now.proved(0.5)


def test_alike_pairs_give_the_smallest_tau_then_the_largest_gamma() -> None:
    cells = CellTable.empty(2, 3, 2)
    cells.narrow((slice(None), slice(None), slice(None)), 2.0, 2.0)
    assert pair_bounds(cells, GAMMAS, TAUS).best == (1, 0)
    assert simplest(np.array([[False, True, True], [False, False, True]]), GAMMAS, TAUS) == (0, 1)


def test_without_a_proof_the_least_estimate_is_reported() -> None:
    cells = CellTable.empty(2, 3, 2)
    cells.narrow((slice(None), slice(None), slice(None)), 0.0, 9.0)
    cells.narrow((0, 0, slice(None)), 0.0, 5.0)
    cells.offer((slice(None), slice(None), slice(None)), 0, np.full((2, 3, 2), 4.0), 1.0)
    cells.offer((1, 2, slice(None)), 0, np.full(2, 3.0), 0.5)
    now = pair_bounds(cells, GAMMAS, TAUS)
    assert now.best == (0, 0) and now.reported_pair(1e-4, GAMMAS, TAUS) == (1, 2)


def test_decided_cells_make_the_allowance_cover_the_width() -> None:
    state = to_end(drawn_run()).run.state
    now = state.bounds()
    tie, rounding = now.allowances()
    assert now.ceiling - now.floor <= tie + rounding and now.proved(0.0)
