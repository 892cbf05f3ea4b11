"""First intervals of every fold, from the fits on all rows alone: each holds the held-out error of its cell."""

from __future__ import annotations

import numpy as np
import pytest
from runs import new_run
from test_engines import all_cells, problem

from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.words import Engine

ROUNDING = 1e-7


def check(seed: int) -> int:
    """Compare first intervals with one tree per fold; at how many gammas they come from closed forms."""
    case = problem(seed)
    try:
        alone = all_cells(case, Engine.PER_FOLD)
    except BadInput:
        return 0
    exact = alone.run.cells
    known = exact.decided & (exact.upper - exact.lower <= ROUNDING * exact.upper)
    truth = np.where(known, exact.nominal, 0.0)
    grid = Grid.of(case.gammas, case.taus, case.data.p)
    data = standardize(case.data, case.scale, case.intercept)
    run = new_run(data, case.folds, grid, method="joint", gap=1e-4)
    run.trees.engine = Engine.ENUMERATE  # however few the folds
    run.begin()
    cells, slip = run.run.cells, ROUNDING * truth + 1e-12 * data.n
    assert np.all((cells.lower <= truth + slip)[known]) and np.all((cells.upper >= truth - slip)[known]), f"seed {seed}"
    return sum(run.trees.root(g) is not None for g in range(len(grid.gammas)))


@pytest.mark.parametrize("block", range(4))
def test_first_intervals_against_one_tree_per_fold(block: int) -> None:
    assert sum(check(seed) for seed in range(10 * block, 10 * block + 10)) > 0


@pytest.mark.slow
def test_first_intervals_at_length() -> None:
    for seed in range(10_000, 11_500):
        check(seed)
