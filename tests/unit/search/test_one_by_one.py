"""Orders of cells: Algorithm 1, grid search, bounds alone."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn, drawn_run
from runs import new_run, to_end

from sparsecv_mio.search.one_by_one import next_in_grid, widest_of_least
from sparsecv_mio.search.pairs import likely_winner


def test_the_widest_cells_of_the_lowest_pair() -> None:
    run = drawn_run("algorithm1", threads=2)
    cells, asked = run.run.cells, run.submitted
    cells.narrow((slice(None), slice(None), slice(None)), 2.0, 9.0)
    cells.lower[1, 1] = 1.0
    cells.upper[1, 1] = [3.0, 8.0, 4.0, 7.0, 2.0]
    assert widest_of_least(run) == [(1, 1, 1), (1, 1, 3)]
    asked[1, 1] = True
    g, t = run.run.bounds().best
    assert {where[:2] for where in widest_of_least(run)} <= {(g, t)}


def test_nothing_once_it_is_proved() -> None:
    run = drawn_run("algorithm1")
    cells = run.run.cells
    cells.narrow((slice(None), slice(None), slice(None)), 2.0, 2.0)
    cells.nominal[...] = 2.0
    assert np.isfinite(run.run.bounds().ceiling) and widest_of_least(run) == []


def test_cells_in_their_order_and_of_one_pair() -> None:
    run = drawn_run("grid", threads=4)
    asked = run.submitted
    assert next_in_grid(run) == [(0, 0, fold) for fold in range(4)]
    asked[0, 0, :4] = True
    assert next_in_grid(run) == [(0, 0, 4)]
    asked[...] = True
    assert next_in_grid(run) == []


def test_it_decides_the_winner_with_less_than_all_cells() -> None:
    run, rounds = to_end(drawn_run("joint", gap=1e-4)), to_end(drawn_run())
    best = rounds.run.bounds().best
    assert run.run.bounds().best == best and run.run.cells.decided[best].all()
    assert run.mios() < run.run.cells.decided.size


def test_the_aim_is_the_likely_winner_first() -> None:
    run = drawn_run("joint", gap=1e-4)
    run.begin()
    aim = run.aid.aim()
    assert aim is None or aim.pair == likely_winner(run.run.bounds()) and aim.goal == np.inf
    to_end(run)
    assert run.aid.aim() is None and run.aid.next_cells() == []


def test_all_rows_solved_at_a_pair_raise_bounds_that_stay_true() -> None:
    truth = to_end(drawn_run()).run.cells.nominal
    run = drawn_run("joint", gap=1e-4)
    run.begin()
    cells, pair = run.run.cells, (0, 0)
    cells.lower[pair] = 0.0
    run.aid._solve_all_rows(pair)
    assert run.mios() == 1 and run.aid.solved[pair]
    assert 0.0 < float(cells.lower[pair].sum()) <= float(truth[pair].sum()) * (1.0 + 1e-9)
    assert (cells.lower <= truth * (1.0 + 1e-9)).all() and (cells.upper >= truth * (1.0 - 1e-9)).all()


def test_many_single_rows_are_bounded_in_closed_form() -> None:
    data, folds, grid = drawn(n=60, folds="loo")
    run = new_run(data, folds, grid, method="joint", gap=1e-4)
    run.begin()
    assert all(run.trees.root(g) is not None for g in range(2))
    assert np.isfinite(run.run.cells.nominal).all() and np.isfinite(run.run.cells.upper).all()
    to_end(run)
    assert run.run.proved()


@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_a_gap_of_zero_decides_every_cell(gap: float) -> None:
    cells = to_end(drawn_run("joint", gap=gap)).run.cells
    assert bool(cells.decided.all()) is (gap == 0.0)


def test_a_budget_ends_it() -> None:
    run = to_end(drawn_run("grid", mio_budget=4))
    assert run.mios() == 4 and run.exhausted and run.finished
    assert run.snapshot().work.engine == "grid on native"


def test_work_on_takes_the_next_open_cells_of_a_pair() -> None:
    run = drawn_run("algorithm1", threads=2)
    run.begin()
    pairs = run.open.any(axis=2)
    if not pairs.any():
        pytest.skip("the bounds decide every cell")
    g, t = np.argwhere(pairs)[0]
    before = int(run.submitted.sum())
    run.work_on(pairs)
    assert before < int(run.submitted.sum()) <= before + 2 and run.submitted[g, t].any()
