"""Lists on all rows against one tree per fold: every interval they leave behind holds the held-out error."""

from __future__ import annotations

import numpy as np
import pytest
from runs import new_run
from test_engines import all_cells, problem

from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.methods.joint import JointSearch
from sparsecv_mio.search.options import Grid
from sparsecv_mio.search.shared_tree.engines import Engine
from sparsecv_mio.search.shared_tree.list_bounds import (
    apply_by_refits,
    apply_in_closed_form,
    incumbent_values,
)

ROUNDING = 1e-7


def inside(run: JointSearch, truth: np.ndarray, known: np.ndarray, where: str) -> None:
    """Assert that no interval misses a held-out error that is known."""
    slip = ROUNDING * truth + 1e-12 * run.context.data.n
    assert np.all((run.run.state.cells.lower <= truth + slip)[known]), where
    assert np.all((run.run.state.cells.upper >= truth - slip)[known]), where


def check(seed: int, count: dict[str, int]) -> None:
    """First intervals, then lists below random thresholds, applied to all folds at once and one by one."""
    case = problem(seed)
    try:
        alone = all_cells(case, Engine.PER_FOLD)
    except BadInput:
        return
    exact = alone.run.state.cells
    known = exact.decided & (exact.upper - exact.lower <= ROUNDING * exact.upper)
    truth = np.where(known, exact.nominal, 0.0)
    grid = Grid.of(case.gammas, case.taus, case.data.p)
    data = standardize(case.data, case.scale, case.intercept)
    run: JointSearch = new_run(data, case.folds, grid, method="joint", gap=1e-4)
    run.method.trees.engine = Engine.ENUMERATE  # however few the folds
    run.begin()
    inside(run, truth, known, f"seed {seed}, first intervals")
    count["roots"] = count.get("roots", 0) + sum(run.method.trees.root(g) is not None for g in range(len(grid.gammas)))
    rng, cells = np.random.default_rng(seed), run.run.state.cells
    for g, t in np.ndindex(cells.lower.shape[:2]):
        folds = np.flatnonzero(run.method.open[g, t])
        if not run.method.lists.near_optimal(g).usable or not len(folds):
            continue
        ubar = incumbent_values(run.method.by_cell.solver, (g, t), folds)
        threshold = rng.uniform(ubar.min(), (ubar + 2.0 * cells.nominal[g, t, folds]).max())
        listed, _ = run.method.lists.near_optimal(g).below(int(grid.taus[t]), threshold, 100_000)
        assert listed is not None
        root = run.method.trees.root(g)
        if root is not None:
            served = apply_in_closed_form(root, t, listed)
            count["in closed form"] = count.get("in closed form", 0) + int(served.sum())
            inside(run, truth, known, f"seed {seed}, in closed form")
        before = cells.decided.sum()
        apply_by_refits(run.method.by_cell.solver, (g, t), folds, listed)
        count["by refits"] = count.get("by refits", 0) + len(folds)
        count["decided"] = count.get("decided", 0) + int(cells.decided.sum() - before)
        inside(run, truth, known, f"seed {seed}, by refits")
    both = known & cells.decided
    assert np.allclose(cells.nominal[both], truth[both], rtol=ROUNDING, atol=1e-12 * run.context.data.n)


@pytest.mark.parametrize("block", range(8))
def test_lists_against_one_tree_per_fold(block: int) -> None:
    count: dict[str, int] = {}
    for seed in range(10 * block, 10 * block + 10):
        check(seed, count)
    assert min(count.get(name, 0) for name in ("roots", "in closed form", "by refits", "decided")) > 0, count


@pytest.mark.slow
def test_lists_at_length(capsys: pytest.CaptureFixture[str]) -> None:
    count: dict[str, int] = {}
    for seed in range(10_000, 11_500):
        check(seed, count)
    with capsys.disabled():
        print(f"\nlists on all rows, 1500 problems: {count}")
