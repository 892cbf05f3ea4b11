"""Methods that count MIOs on the one loop: Algorithm 1, grid search, bounds alone, the joint search, budgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_search import drawn_run
from runs import to_end

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.grid_search import limit_to_budget
from sparsecv_mio.search.orders.algorithm1 import first_bounds
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees
from sparsecv_mio.search.steps import Step


def bounded(method: str, **words: Any) -> Any:
    """A search whose folds are bounded, before any subproblem is solved."""
    run = drawn_run(method, **words)
    while steps := list(first_bounds(run.state, run.plan, []) or ()):
        for step in steps:
            run.executor.submit(step)
            run.writer.take(run.executor.collect_findings())
    return run


@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_a_gap_of_zero_solves_every_subproblem(gap: float) -> None:
    cells = to_end(drawn_run("joint", gap=gap)).state.cells
    assert bool(cells.decided.all()) is (gap == 0.0)


def test_a_budget_ends_a_grid_search() -> None:
    run = to_end(drawn_run("grid", mio_budget=4))
    assert run.n_trees == 4 and run.snapshot().work.engine == "grid on native" and run.name == "grid"


def test_a_budget_counts_what_is_running_and_what_a_step_counts_as() -> None:
    run = bounded("grid", mio_budget=5)
    steps = [Step(SubproblemTrees.name, 0, (0,), (fold,), (1,), n_mios=fold % 2) for fold in range(8)]
    assert len(list(limit_to_budget(steps, run.state, run.plan, []))) == 8
    run.state.tried.n_mios[...] = 3
    assert [step.folds for step in limit_to_budget(steps, run.state, run.plan, steps[:2])] == [(0,), (1,), (2,)]


def test_a_budget_lasts_over_a_checkpoint() -> None:
    first, again = drawn_run("grid", mio_budget=6), drawn_run("grid", mio_budget=6)
    for _ in first.turns():
        if first.n_trees >= 3:
            break
    again.resume(first.checkpoint())
    assert again.n_trees == first.n_trees
    for _ in again.turns():
        pass
    assert again.n_trees == 6 and again.state.tried.has_root.all()


@pytest.mark.parametrize("method", ["grid", "joint"])
def test_near_ties_that_a_vendor_leaves_are_listed_by_trees_of_this_package(method: str) -> None:
    pytest.importorskip("highspy", reason="HiGHS is not installed")
    a = [-0.3671, -1.6379, 0.0258, 1.1266, -0.7264, 1.6279]
    b = np.array([-2.3245, 0.2766, -0.1144, -0.0582, 1.1595, -0.8081])
    c = np.array([0.5822, -0.8066, 0.6203, -0.6028, -1.3161, -0.3488])
    y = [0.6674, -0.3188, 1.2167, -0.4563, 0.1081, -1.5969]
    data = Dataset.from_arrays(np.column_stack([a, b, c, -c, -c, b]), y)  # three copies of one column, two of another
    record = cross_validate(
        data, make_folds("holdout:0.4", data, 3), gammas=[5e-6], taus=[4], scale="variance", method=method,
        backend="highs", gap=0.0, threads=1,
    )  # fmt: skip
    assert record.status == "proved" and record.chosen_folds.decided.all()
