"""Expected costs of cells follow what was spent."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn_run

from sparsecv_mio.search.methods.parts.cell_costs import FIRST_NODES, MOST_TRIES
from sparsecv_mio.search.methods.parts.fold_rounds import EFFORT_GROWTH, FIRST_EFFORT


def test_a_fold_that_cost_more_is_expected_to() -> None:
    run = drawn_run("joint")
    costs, folds = run.method.costs, np.arange(5)
    assert (costs.expected(folds) == FIRST_NODES).all()
    run.method.by_cell.submitted[0, 0, :2] = True
    costs.note((0, 0, 1), 900)
    assert costs.expected(folds)[1] == costs.expected(folds).max() and costs.mean > 0.0


def test_tries_raise_effort_and_cost() -> None:
    costs = drawn_run("joint").method.costs
    where = (1, 2, 3)
    assert costs.effort(where) == FIRST_EFFORT
    cells = np.zeros((2, 3, 5), dtype=bool)
    cells[where] = True
    for _ in range(MOST_TRIES + 3):
        costs.try_again(cells)
    assert costs.tries[where] == MOST_TRIES and costs.tried.sum() == 1
    assert costs.growth(1, 2, np.array([3]))[0] == float(EFFORT_GROWTH) ** MOST_TRIES


def test_a_cell_that_is_not_decided_may_be_handed_over_again() -> None:
    run = drawn_run("joint")
    run.method.by_cell.submitted[0, 1, 0] = True
    run.method.costs.note((0, 1, 0), 10)
    assert not run.method.by_cell.submitted[0, 1, 0] and run.method.costs.tries[0, 1, 0] == 1
