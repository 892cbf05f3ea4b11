"""The order of work outward from the likely winner and from small tau."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from drawn_search import drawn
from runs import new_run, run_to_end

from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.methods.parts import outward
from sparsecv_mio.search.methods.parts.outward import GROWTH, NEW, OPEN


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A method begun under a limit, whose first efforts leave cells open, and no size has few supports."""
    monkeypatch.setattr(outward, "FIRST_EFFORT", 1)
    monkeypatch.setattr(outward, "FEW_SUPPORTS", 0)
    data, folds, _ = drawn(p=40, n=50, noise=4.0)
    made = new_run(data, folds, Grid.of([0.001, 0.01, 5.0], list(range(1, 8)), 40), seconds=600.0, gap=1e-4)
    made.begin()
    return made


def test_only_a_limit_and_many_columns_go_outward() -> None:
    data, folds, grid = drawn(p=40, n=60)
    assert new_run(data, folds, grid, seconds=9.0).method.goes_outward
    assert new_run(data, folds, grid, seconds=9.0, engine="per-fold").method.goes_outward
    assert not new_run(data, folds, grid).method.goes_outward
    assert not new_run(data, folds, grid, seconds=9.0, engine="enumerate").method.goes_outward
    assert not new_run(*drawn(p=36, n=60), seconds=9.0).method.goes_outward
    assert not new_run(*drawn(p=40, n=60, folds="loo"), seconds=9.0).method.goes_outward


def test_small_sizes_are_decided_before_better_supports_are_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outward, "FEW_SUPPORTS", 40 * 39 // 2)  # tau 1 and 2
    data, folds, _ = drawn(p=40, n=50)
    run = new_run(data, folds, Grid.of([0.01, 5.0], [1, 2, 5], 40), seconds=600.0, gap=1e-4)
    said: list[str] = []
    run.run.signals.listen(doing=said.append)
    run.begin()
    trees, better = (next(k for k, words in enumerate(said) if start in words) for start in ("trees: tau", "pass 2"))
    assert said[0] == "searching first supports: fold 1 of 5" and trees < better
    assert "trees: tau 1, fold 1 of 5" in said and "trees: tau 2, fold 1 of 5" in said
    assert not [words for words in said[:better] if "tau 5" in words]
    cells = run.run.state.cells
    small = np.array([[True, True, False]] * 2)
    assert run.run.state.bounds().within(small, run.context.grid.gammas, run.context.grid.taus).proved(1e-4)
    assert cells.decided.all(axis=2)[:, :2].any(axis=0).all()
    for g, t, fold in np.argwhere(cells.decided[:, :2]).tolist():
        rows, gamma = folds.train_rows(fold), float(run.context.grid.gammas[g])
        fits = [refit_rows(data, rows, np.array(one), gamma) for one in combinations(range(40), t + 1)]
        best = min(fits, key=lambda fit: fit.objective).held_out(data, folds.scored_rows(fold))[0]
        assert cells.lower[g, t, fold] * (1 - 1e-9) <= best <= cells.upper[g, t, fold] * (1 + 1e-9)


def test_the_first_steps_bound_every_pair(run: Any) -> None:
    cells = run.run.state.cells
    assert np.all(cells.lower.sum(axis=2)[-1] > 0.0) and np.isfinite(run.method.outward.loss.values).all()


def test_the_winner_then_the_taus_up_to_it_then_outward(run: Any) -> None:
    steps, seen = run.method.outward, []
    while run.method.goes_outward and not run.finished and len(seen) < 60:
        tries, first = steps.tries.copy(), steps.tries_of_winner
        run.step()
        grown = np.flatnonzero(steps.tries > tries)
        if steps.tries_of_winner > first:
            seen.append("winner")
        elif len(grown):
            seen.append("first" if not tries.any() else "new" if tries[grown[0]] == 0 else "again")
            if seen[-1] == "new":  # no smaller tau was left out
                assert not steps._pairs_in_question()[:, : grown[0]][:, steps.tries[: grown[0]] == 0].any()
        else:
            seen.append("look")
    assert seen[0] == "winner" and "winner" not in seen[2:] and seen.count("look") == 1
    assert seen.index("first") < seen.index("look")
    assert {"new", "again"} <= set(seen)
    assert run.run.state.proved()


def test_new_taus_and_open_ones_take_turns(run: Any) -> None:
    steps = run.method.outward
    steps.tries[:3] = (1, 2, 1)
    steps.in_question = lambda: np.ones(run.context.shape, dtype=bool)
    steps.spent[:] = (5, 5)
    assert steps._next() == (range(3, 4), NEW)
    steps.spent[:] = (6, 5)
    assert steps._next() == (range(1), OPEN)
    steps.tries[0] = 3
    assert steps._next() == (range(2, 3), OPEN)
    steps.tries[:] = 1
    assert steps._next()[1] == OPEN
    assert GROWTH > 1


def test_excluded_pairs_are_left_open(run: Any) -> None:
    run_to_end(run)
    cells, now = run.run.state.cells, run.run.state.bounds()
    assert now.proved(1e-4) and not cells.decided.all()
    assert cells.decided[now.best].all()


def test_what_is_stored_is_checked(run: Any) -> None:
    steps = run.method.outward
    stored = {name: np.array(value) for name, value in steps.archive().items()}
    stored["outward_tries"] = stored["outward_tries"] + 3
    steps.check(stored)
    steps.restore(stored)
    assert steps.tries.tolist() == stored["outward_tries"].tolist() and not steps.looked
    stored["outward_tries"] = stored["outward_tries"] + 1000
    with pytest.raises(CorruptStore, match="outward_tries"):
        steps.check(stored)
