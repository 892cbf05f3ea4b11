"""The pair to report is scored in every fold, whatever the time."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn
from runs import new_run

from sparsecv_mio.search.methods.parts import reported_pair


def test_a_limit_leaves_one_pair_scored_with_bounds() -> None:
    data, folds, grid = drawn()
    run = new_run(data, folds, grid, seconds=60.0)
    run.method._fit_all_rows()
    assert not np.isfinite(run.run.state.cells.nominal).any()
    run.context.deadline.stop.set()
    run.score_reported_pair()
    cells = run.run.state.cells
    pair = run.run.state.bounds().reported_pair(0.0, grid.gammas, grid.taus)
    assert np.isfinite(cells.nominal[pair]).all() and np.isfinite(cells.upper[pair]).all()


def test_many_small_folds_are_scored_in_closed_form() -> None:
    data, folds, grid = drawn(n=40, folds="loo")
    run = new_run(data, folds, grid)
    run.method._fit_all_rows()
    reported_pair._score_in_closed_form(run.run, run.method.trees, 1, 1)
    exact = new_run(data, folds, grid)
    exact.method._fit_all_rows()
    reported_pair._visit(exact.run, (1, 1), np.arange(40))
    ours, theirs = run.run.state.cells, exact.run.state.cells
    assert np.allclose(ours.nominal[1, 1], theirs.nominal[1, 1], rtol=1e-8)


def test_nothing_before_anything_is_known() -> None:
    run = new_run(*drawn())
    run.score_reported_pair()
    assert not np.isfinite(run.run.state.cells.nominal).any()
