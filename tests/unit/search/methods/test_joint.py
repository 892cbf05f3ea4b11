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
    aim = run.method.aim()
    assert aim is None or aim.pair == likely_winner(run.run.state.bounds()) and aim.goal == np.inf
    to_end(run)
    assert run.method.aim() is None and run.method.next_cells() == []


def test_rounds_where_trees_are_expensive() -> None:
    data, folds, grid = drawn(p=40, n=60)
    run = new_run(data, folds, grid, method="joint", gap=1e-4)
    assert run.method.trees_are_expensive
    to_end(run)
    assert run.run.state.proved()


@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_a_gap_of_zero_decides_every_cell(gap: float) -> None:
    cells = to_end(drawn_run("joint", gap=gap)).run.state.cells
    assert bool(cells.decided.all()) is (gap == 0.0)
