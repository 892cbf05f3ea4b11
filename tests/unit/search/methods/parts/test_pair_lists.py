"""Lists for a pair raise its lower sum, and never above the truth."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn_run
from runs import to_end

from sparsecv_mio.search.methods.parts.pair_lists import Aim


def test_a_list_raises_bounds_that_stay_true() -> None:
    truth = to_end(drawn_run()).run.state.cells.nominal
    run = drawn_run("joint", gap=1e-4)
    run.begin()
    cells, pair = run.run.state.cells, (0, 0)
    goal = float(truth[pair].sum()) * 0.9
    before = float(cells.lower[pair].sum())
    aim = Aim(pair, goal)
    assert run.method.lists.may_list(aim, run.method.open)
    run.method.lists.list_pair(aim, run.method.open)
    assert run.method.lists.count == 1 and run.method.lists.attempts[pair] >= 1
    assert before <= float(cells.lower[pair].sum()) <= float(truth[pair].sum()) * (1.0 + 1e-9)
    assert (cells.lower <= truth * (1.0 + 1e-9)).all() and (cells.upper >= truth * (1.0 - 1e-9)).all()


def test_few_open_folds_are_no_case_for_a_list() -> None:
    run = drawn_run("joint", gap=1e-4)
    run.begin()
    open_cells = np.zeros((2, 3, 5), dtype=bool)
    open_cells[0, 0, 0] = True
    assert not run.method.lists.may_list(Aim((0, 0), 1.0), open_cells)
