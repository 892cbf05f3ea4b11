"""Every fold left out of fits of the full data: a step solves and bounds as enumeration does."""

from __future__ import annotations

import numpy as np
import pytest
from engines import ENGINES
from runs import new_run

from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.sources.left_out_trees import LeftOutTrees
from sparsecv_mio.search.state.attempts import BOUNDED, SOLVED
from sparsecv_mio.search.state.pairs import Grid

from .enumerated import drawn
from .judged import check_state, do, grow_full_data, patch_all, random_search


@pytest.mark.parametrize("engine", ["enumerate", "shared"])
@pytest.mark.parametrize("seed", range(10))
def test_what_is_solved_or_bounded_is_true(seed: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_all(monkeypatch, ENGINES[engine])
    case, search = random_search(700 + seed)
    if not search.plan.leaves_folds_out:
        return  # folds that leave rows out that they do not score
    grow_full_data(search)
    state, source = search.state, LeftOutTrees()
    do(search, list(source.steps(state, search.plan, np.ones(state.context.shape[:2], dtype=bool), 0)))
    assert (state.tried.list_stage >= BOUNDED).all() and not state.cells.decided.any()
    check_state(case, search)
    for g in range(len(case.gammas)):
        do(search, [source.step(state, search.plan, g, range(state.context.shape[:2][1]), 1000)])
    assert (state.tried.list_stage == SOLVED).all()
    check_state(case, search)


def loo_search() -> GridSearch:
    data = drawn(1, 48, 5)
    grid = Grid.of([0.1, 1.0], [1, 2, 3], 5)
    search: GridSearch = new_run(standardize(data), make_folds("loo", data), grid)
    grow_full_data(search)
    return search


def test_a_step_that_is_stopped_may_be_repeated() -> None:
    search = loo_search()
    step = LeftOutTrees().step(search.state, search.plan, 0, [0, 1, 2], 100)
    search.writer.take([LeftOutTrees().run(step, search.problems, lambda: True)])
    assert not search.state.tried.list_stage.any() and not search.state.cells.decided.any()
