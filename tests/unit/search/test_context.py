"""The question, and what all rows are asked once."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn_run

from sparsecv_mio.search.state.cells import CellTable
from sparsecv_mio.search.state.context import BestOnAllRows, Snapshot, WorkCounts
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets


def test_a_gamma_that_was_left_out_gets_supports_and_no_bound() -> None:
    context = drawn_run().context
    all_rows = BestOnAllRows(context.data, context.grid)
    all_rows.keep({})
    assert all_rows.best == []
    cell = BestSubset.from_bounds(2, np.array([0, 3]))
    all_rows.keep({1: BestSubsets({2: cell}, 4, True)})
    assert all_rows.best[0].by_size[2].support.tolist() == [0, 3]
    assert all_rows.best[0].by_size[2].lower == 0.0 and not all_rows.best[0].by_size[2].complete


def test_counts_add_up() -> None:
    counts = WorkCounts()
    counts.add(5, {"shared": 2})
    counts.add(1, {"shared": 1, "enumerate": 4})
    assert counts == WorkCounts(6, {"shared": 3, "enumerate": 4})


def test_pairs_out_of_the_race_are_not_worth_work() -> None:
    for gap, worth in ((1e-4, False), (0.0, True)):
        state = drawn_run(gap=gap).state
        state.cells.narrow((slice(None), slice(None), slice(None)), 3.0, 9.0)
        state.cells.lower[0, 1] = 1.0
        state.cells.upper[0, 1] = 2.0
        state.cells.mark((1, 1, 2))
        found = state.worth_work()
        assert found[0, 1].all() and not found[1, 1, 2] and bool(found[1, 0].all()) is worth
        assert state.open.sum() == state.cells.final.size - 1 and not state.is_certified()
        assert np.array_equal(found, found & state.open)


def test_scored_needs_a_pair_in_every_fold_and_all_rows() -> None:
    run = drawn_run()
    run.step()
    cells = CellTable.empty(*run.context.shape)
    best = tuple(run.state.all_rows.best)
    assert not Snapshot(run.context, cells, best).has_scored_pair
    cells.offer((0, 1, slice(None)), 0, [1.0] * 5, [1.0] * 5)
    assert Snapshot(run.context, cells, best).has_scored_pair and not Snapshot(run.context, cells).has_scored_pair
