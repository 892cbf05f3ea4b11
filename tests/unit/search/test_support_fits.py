"""Fits of supports in every fold: their objectives bound those of the optima."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.search.sources.support_fits import SupportFits

from .judged import check_state, do, grow_full_data, random_search


@pytest.mark.parametrize("seed", range(8))
def test_bounds_by_fitted_supports_hold_the_truth(seed: int) -> None:
    case, search = random_search(seed)
    grow_full_data(search)
    state, source = search.state, SupportFits()
    every = np.ones(state.context.shape[:2], dtype=bool)
    steps = list(source.steps(state, search.plan, every))
    assert [step.folds for step in steps] == [(fold,) for fold in range(case.folds.k)]
    do(search, steps)
    check_state(case, search)
    assert np.isfinite(state.objective_upper).all() and np.isfinite(state.cells.nominal).all()
    assert not list(source.steps(state, search.plan, every)), "what was fitted is not fitted again"


def test_a_step_that_is_stopped_says_what_it_has_fitted() -> None:
    _, search = random_search(1)
    grow_full_data(search)
    step = next(SupportFits().steps(search.state, search.plan, np.ones(search.state.context.shape[:2], dtype=bool)))
    stopped = SupportFits().run(step, search.problems, lambda: True)
    assert stopped.was_stopped and stopped.statements == ()
