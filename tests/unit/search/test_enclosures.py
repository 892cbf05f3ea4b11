"""Ridge balls of single folds: intervals of held-out losses that hold every optimum."""

from __future__ import annotations

import numpy as np
import pytest
from runs import change_plan

from sparsecv_mio.search.sources.enclosures import Enclosures
from sparsecv_mio.search.sources.support_fits import SupportFits

from .judged import check_state, do, grow_full_data, random_search


@pytest.mark.parametrize("seed", range(12))
def test_intervals_hold_the_truth(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever supports the folds show: here those of the full data, or worse ones of another size."""
    change_plan(monkeypatch, encloses_folds=True)
    case, search = random_search(seed)
    grow_full_data(search)
    state, source, every = search.state, Enclosures(), np.ones(search.state.context.shape[:2], dtype=bool)
    assert not list(source.steps(state, search.plan, every)), "no fold has an upper bound on its objective"
    do(search, list(SupportFits().steps(state, search.plan, every)))
    lower = state.cells.lower.copy()
    steps = list(source.steps(state, search.plan, every))
    assert [step.folds for step in steps] == [(fold,) for fold in range(case.folds.k)]
    do(search, steps)
    check_state(case, search)
    assert np.all(state.cells.lower >= lower) and state.tried.is_enclosed.all() and not state.cells.decided.any()
    assert not list(source.steps(state, search.plan, every)), "a fold is enclosed once"
