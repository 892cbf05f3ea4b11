"""The choice by CV error and weighted instability from a table of intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_search import drawn_run
from runs import to_end

from sparsecv_mio.search.answer.instability import Instabilities, StabilityTable, is_closed, stability_table
from sparsecv_mio.search.state.cells import CellTable


def table(**changes: np.ndarray) -> StabilityTable:
    h, change = np.array([[1.0, 1.2, 1.5]]), np.array([[0.5, 0.2, 0.0]])
    known = np.ones((1, 3), dtype=bool)
    parts = dict(zip(("h_lower", "h_upper", "h", "lower", "upper", "nominal"), (h, h, h, *[change] * 3), strict=True))
    return StabilityTable(None, **(parts | {"known": known} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(("weight", "tau"), [(0.0, 0), (0.5, 0), (1.0, 1), (2.0, 2)])
def test_a_larger_weight_takes_a_more_stable_pair(weight: float, tau: int) -> None:
    found = table().choose(weight, 0.0, np.array([0.1]), np.array([1, 2, 3]))
    assert found.pair == (0, tau) and found.proved
    assert found.lower <= found.nominal <= found.upper


def test_open_pairs_that_may_win_are_missing() -> None:
    known = np.array([[True, True, False]])
    unknown = table(lower=np.array([[0.5, 0.2, 0.0]]), upper=np.array([[0.5, 0.2, np.inf]]), known=known)
    assert unknown.missing(0.5, 0.0).tolist() == [[False, False, False]]
    assert unknown.missing(2.0, 0.0).tolist() == [[False, False, True]]
    found = unknown.choose(2.0, 0.0, np.array([0.1]), np.array([1, 2, 3]))
    assert not found.proved and found.lower <= 1.5
    assert is_closed(1.0, 1.1, 0.1, 0.0) and not is_closed(1.0, 1.2, 0.1, 0.0) and not is_closed(1.0, np.inf, 0.1, 0.0)


def test_a_change_that_is_not_known_has_no_lower_end() -> None:
    """As of a fold of counts without which predictors overflow."""
    cells, some = CellTable.empty(1, 1, 2), object.__new__(Instabilities)
    cells.decided[...] = True
    some.cells = cells
    full: Any = None
    found, doubt = np.array([1.0, np.inf]), np.array([0.25, np.inf])
    with np.errstate(invalid="raise"):
        assert some._interval(0, 0, full, found, doubt) == (0.75, np.inf)


def test_a_pair_is_computed_again_only_where_something_is_new() -> None:
    run = to_end(drawn_run())
    context, state = run.context, run.state
    instabilities = Instabilities(context, state.cells)
    cell = state.all_rows.best[0].by_size[int(context.grid.taus[0])]
    first = instabilities.pair_instability(0, 0, cell)
    assert first is instabilities.pair_instability(0, 0, cell) and first.known
    assert first.lower <= first.nominal <= first.upper <= first.lower * (1.0 + 1e-9) + 1e-12
    found = stability_table(instabilities, state.bounds(), state.all_rows.best, (0.0, 1.0))
    assert found.known.any() and (found.lower <= found.upper).all()
