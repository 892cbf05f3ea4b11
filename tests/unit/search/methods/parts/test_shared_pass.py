"""The pass over the gammas for all folds at once: what is left out where trees are expensive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_search import drawn, drawn_run
from runs import new_run, to_end

from sparsecv_mio.search.methods.parts import shared_pass
from sparsecv_mio.search.state.pairs import likely_winner


def begun(monkeypatch: pytest.MonkeyPatch, most_left: float, **words: Any) -> Any:
    """A run that takes trees for expensive, after its first steps and one step more."""
    monkeypatch.setattr(shared_pass, "EXPENSIVE_NODES", -1)
    monkeypatch.setattr(shared_pass, "MOST_LEFT", most_left)
    run = drawn_run(**{"gap": 0.05, **words})
    run.begin()
    run.step()
    return run


def test_the_likely_winner_is_decided_and_what_it_excludes_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(monkeypatch, 1.0)
    given, state = run.method.shared_pass, run.run.state
    assert given.bounded and given.excludes
    assert state.cells.decided[likely_winner(state.bounds())].all() and not state.cells.decided.all()
    assert np.array_equal(given.wanted, state.worth_work()) and not np.array_equal(given.wanted, state.open)
    to_end(run)
    assert state.proved() and not state.cells.decided.all()


def test_it_is_given_up_where_little_is_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    given = begun(monkeypatch, -1.0).method.shared_pass
    assert given.bounded and not given.excludes and np.array_equal(given.wanted, given.run.state.open)


@pytest.mark.parametrize("words", [{"gap": 0.0}, {"one_se": True}, {"engine": "shared"}])
def test_nothing_is_left_out_where_all_is_asked_for(monkeypatch: pytest.MonkeyPatch, words: dict[str, Any]) -> None:
    assert not begun(monkeypatch, 1.0, **words).method.shared_pass.bounded


def test_where_it_stands_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(monkeypatch, 1.0)
    other = drawn_run(gap=0.05)
    other.resume(run.archive())
    assert other.method.shared_pass.bounded and other.method.shared_pass.excludes
    assert to_end(run).run.state.bounds().best == _carried_on(other).run.state.bounds().best


def _carried_on(run: Any) -> Any:
    while not run.finished:
        run.step()
    run.finish()
    return run


def test_folds_that_are_left_out_together_are_bounded_in_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_pass, "EXPENSIVE_NODES", -1)
    monkeypatch.setattr(shared_pass, "MOST_LEFT", 1.0)
    data, folds, grid = drawn(n=60, folds="loo")
    run = new_run(data, folds, grid, gap=0.05)
    run.begin()
    run.step()
    cells = run.run.state.cells
    assert np.isfinite(cells.nominal).all() and np.isfinite(cells.upper).all() and (cells.lower > 0.0).any()
