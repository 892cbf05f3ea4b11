"""The joint search: decide the likely winner, raise the others to the goal."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn, drawn_run
from runs import new_run, to_end

from sparsecv_mio.search.state.pairs import likely_winner


def test_it_decides_the_winner_with_less_than_all_cells() -> None:
    run, rounds = to_end(drawn_run("joint", gap=1e-4)), to_end(drawn_run())
    best = rounds.run.state.bounds().best
    assert run.run.state.bounds().best == best and run.run.state.cells.decided[best].all()
    assert run.method.mios() < run.run.state.cells.decided.size


def test_the_aim_is_the_likely_winner_first() -> None:
    run = drawn_run("joint", gap=1e-4)
    run.begin()
    aim = run.method.aid.aim()
    assert aim is None or aim.pair == likely_winner(run.run.state.bounds()) and aim.goal == np.inf
    to_end(run)
    assert run.method.aid.aim() is None and run.method.aid.next_cells(run.method.by_cell) == []


def test_all_rows_solved_at_a_pair_raise_bounds_that_stay_true() -> None:
    truth = to_end(drawn_run()).run.state.cells.nominal
    run = drawn_run("joint", gap=1e-4)
    run.begin()
    cells, pair = run.run.state.cells, (0, 0)
    cells.lower[pair] = 0.0
    run.method.aid._solve_all_rows(pair)
    assert run.method.mios() == 1 and run.method.aid.solved[pair]
    assert 0.0 < float(cells.lower[pair].sum()) <= float(truth[pair].sum()) * (1.0 + 1e-9)
    assert (cells.lower <= truth * (1.0 + 1e-9)).all() and (cells.upper >= truth * (1.0 - 1e-9)).all()


def test_many_single_rows_are_bounded_in_closed_form() -> None:
    data, folds, grid = drawn(n=60, folds="loo")
    run = new_run(data, folds, grid, method="joint", gap=1e-4)
    run.begin()
    assert all(run.method.trees.root(g) is not None for g in range(2))
    assert np.isfinite(run.run.state.cells.nominal).all() and np.isfinite(run.run.state.cells.upper).all()
    to_end(run)
    assert run.run.state.proved()


@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_a_gap_of_zero_decides_every_cell(gap: float) -> None:
    cells = to_end(drawn_run("joint", gap=gap)).run.state.cells
    assert bool(cells.decided.all()) is (gap == 0.0)
