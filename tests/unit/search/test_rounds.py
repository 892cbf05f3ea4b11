"""Rounds of growing effort."""

from __future__ import annotations

import threading
import time
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from drawn_search import drawn, drawn_run
from runs import new_run, run_to_end, to_end

from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search import rounds
from sparsecv_mio.search import run as run_module
from sparsecv_mio.search.pairs import Grid, likely_winner
from sparsecv_mio.search.run import ROUND_EFFORT
from sparsecv_mio.trees.subsets import ROUND_GROWTH


def test_a_round_decides_its_cells_and_no_others() -> None:
    run = drawn_run()
    run.begin()
    cells = np.zeros((2, 3, 5), dtype=bool)
    cells[0, 1, [0, 3]] = True
    run.rounds.run_round(cells.any(axis=2), lambda: cells & run.open, racing=True)
    assert np.array_equal(run.run.cells.decided, cells)
    assert run.rounds.effort == ROUND_EFFORT * ROUND_GROWTH


def test_the_effort_of_a_round_is_stored() -> None:
    run, other = drawn_run(), drawn_run()
    run.begin()
    run.work_on(np.ones((2, 3), dtype=bool))
    stored = run.rounds.archive()
    other.rounds.check(stored)
    other.rounds.restore(stored)
    assert other.rounds.effort == run.rounds.effort == ROUND_EFFORT * ROUND_GROWTH
    stored["effort"] = np.array(-1)
    with pytest.raises(CorruptStore, match="effort"):
        other.rounds.check(stored)


def test_folds_are_left_out_once_those_that_are_done_exclude_their_pair() -> None:
    run = drawn_run()
    run.begin()

    def wanted() -> Any:
        return run.open & (run.run.cells.decided.any(axis=(0, 1)).sum() < 2)

    run.rounds.run_round(np.ones((2, 3), dtype=bool), wanted, racing=True)
    assert run.run.cells.decided.all(axis=(0, 1)).sum() == 2


@pytest.fixture
def run() -> Any:
    """A method that began without a limit, so that no size was decided before all rows; then one came."""
    data, folds, _ = drawn(p=38, n=40, noise=3.0)
    made = new_run(data, folds, Grid.of([0.01, 5.0], list(range(1, 6)), 38), gap=1e-4)
    made.begin()
    made.context.deadline.at = made.context.deadline.began + 600.0
    return made


def test_under_a_limit_the_model_of_all_columns_is_decided_before_trees() -> None:
    data, folds, _ = drawn(p=38, n=60, noise=3.0)
    made = new_run(data, folds, Grid.of([0.01, 5.0], [6, 38], 38), seconds=600.0, gap=1e-4)
    made.begin()
    cells = made.run.cells
    best = int(cells.upper[:, 1].sum(axis=1).argmin())  # the other gamma may be excluded at once
    assert cells.decided[best, 1].all() and np.all(cells.upper[best, 1] <= cells.lower[best, 1] * (1.0 + 1e-9))
    assert not cells.branched[:, 1].any() and not cells.decided[:, 0].all()


def test_only_a_limit_and_many_columns_go_outward() -> None:
    data, folds, grid = drawn(p=40, n=60)
    assert new_run(data, folds, grid, seconds=9.0).goes_outward
    assert not new_run(data, folds, grid).goes_outward
    assert not new_run(*drawn(p=36, n=60), seconds=9.0).goes_outward
    assert not new_run(*drawn(p=40, n=60, folds="loo"), seconds=9.0).goes_outward


@pytest.mark.parametrize(("p", "seconds"), [(38, 600.0), (38, None), (36, 600.0)])
def test_of_many_columns_and_folds_a_limit_has_all_gammas_relaxed_and_scored_before_trees(
    p: int, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, plan, _ = drawn(p=p, n=60, folds="loo", noise=3.0)
    made = new_run(data, plan, Grid.of([0.5, 5.0], [1, 2, 3], p), seconds=seconds, gap=1e-4)
    seen, fit = [], rounds.fit_all_rows

    def fitted(run: Any, order: Any, effort: int, **words: Any) -> None:
        scored = bool(np.isfinite(run.cells.nominal).all())
        seen.append((effort > 0, scored, words["until"] is not None))
        fit(run, order, effort, **words)

    monkeypatch.setattr(rounds, "fit_all_rows", fitted)
    made.begin()
    assert seen == ([(False, False, False), (True, True, True)] if p > 36 and seconds else [(True, False, False)])


def test_small_sizes_are_decided_before_better_supports_are_searched_for() -> None:
    data, folds, _ = drawn(p=40, n=50)
    run = new_run(data, folds, Grid.of([0.01, 5.0], [1, 2, 5], 40), seconds=600.0, gap=1e-4)
    said: list[str] = []
    run.run.signals.listen(doing=said.append)
    run.begin()
    trees, better = (next(k for k, words in enumerate(said) if start in words) for start in ("trees: tau", "pass 2"))
    assert said[0] == "searching first supports: fold 1 of 5" and trees < better
    assert "trees: tau 1, fold 1 of 5" in said and "trees: tau 2, fold 1 of 5" in said
    assert not [words for words in said[:better] if "tau 5" in words]
    cells = run.run.cells
    small = np.array([[True, True, False]] * 2)
    assert run.run.bounds().within(small, run.context.grid.gammas, run.context.grid.taus).proved(1e-4)
    assert cells.decided.all(axis=2)[:, :2].any(axis=0).all()
    for g, t, fold in np.argwhere(cells.decided[:, :2]).tolist():
        rows, gamma = folds.train_rows(fold), float(run.context.grid.gammas[g])
        fits = [refit_rows(data, rows, np.array(one), gamma) for one in combinations(range(40), t + 1)]
        best = min(fits, key=lambda fit: fit.objective).held_out(data, folds.scored_rows(fold))[0]
        assert cells.lower[g, t, fold] * (1 - 1e-9) <= best <= cells.upper[g, t, fold] * (1 + 1e-9)


def test_the_first_steps_bound_every_pair(run: Any) -> None:
    cells = run.run.cells
    assert np.all(cells.lower.sum(axis=2)[-1] > 0.0) and np.isfinite(run.outward.all_rows.loss.values).all()


def test_the_winner_then_the_taus_up_to_it_then_outward(run: Any) -> None:
    steps, seen = run.outward, []
    sweeps = steps.sweeps
    while run.goes_outward and not run.finished and len(seen) < 60:
        tries, first = sweeps.tries.copy(), steps.winner_tried
        run.step()
        grown = np.flatnonzero(sweeps.tries > tries)
        if steps.winner_tried > first:
            seen.append("winner")
        elif len(grown):
            seen.append("first" if not tries.any() else "new" if tries[grown[0]] == 0 else "again")
            if seen[-1] == "new":  # no smaller tau was left out
                assert not steps.in_question.pairs()[:, : grown[0]][:, sweeps.tries[: grown[0]] == 0].any()
        else:
            seen.append("bounds")
    assert seen[0] == "winner" and "winner" not in seen[2:]  # solved by the first try, as the next one
    assert seen.index("first") < seen.index("bounds")
    assert {"new", "again"} & set(seen)
    assert run.run.proved()


def test_the_pair_with_the_best_estimate_is_tried_while_it_may_exclude_others(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, shape, tried = run.outward, run.context.shape[:2], list[int]()
    winner = steps.sweeps.leader(shape[1] - 1)
    monkeypatch.setattr(steps.folds, "grow", lambda pairs, effort: tried.append(effort))  # trees that never end
    excluded = np.ones(shape, dtype=bool)
    monkeypatch.setattr(steps, "_may_be_excluded_by", lambda pair: excluded)
    monkeypatch.setattr(steps.in_question, "pairs", lambda: np.ones(shape, dtype=bool))
    run.context.deadline.at = np.inf
    for _ in range(4):
        run.step()
    assert tried == [rounds.ROUND_EFFORT << k for k in range(4)], "without a limit"
    run.context.deadline.at = time.monotonic() + 100.0
    steps.winner_seconds = 24.0 / run.context.folds.k
    assert steps._winner_is_due(winner), "the next try takes 48 of 100 s"
    steps.winner_seconds = 26.0 / run.context.folds.k
    assert not steps._winner_is_due(winner), "the next try takes 52 of 100 s"
    steps.winner_seconds = 0.0
    excluded[:, 1:] = False
    assert not steps._winner_is_due(winner), "few pairs may be excluded"


def test_a_single_gamma_of_many_columns_goes_outward_without_a_limit() -> None:
    data, folds, _ = drawn(p=130, n=60)
    assert new_run(data, folds, Grid.of([0.1], [1, 2], 130), gap=1e-4).goes_outward
    assert not new_run(data, folds, Grid.of([0.1], [1, 2], 130), gap=0.0).goes_outward
    narrow, plan, _ = drawn(p=120, n=60)
    assert not new_run(narrow, plan, Grid.of([0.1], [1, 2], 120), gap=1e-4).goes_outward


def test_excluded_pairs_are_left_open(run: Any) -> None:
    run_to_end(run)
    cells, now = run.run.cells, run.run.bounds()
    assert now.proved(1e-4) and not cells.decided.all()
    assert cells.decided[now.best].all()


def test_what_is_stored_is_checked(run: Any) -> None:
    steps = run.outward.sweeps
    stored = {name: np.array(value) for name, value in steps.archive().items()}
    stored["outward_tries"] = stored["outward_tries"] + 3
    steps.check(stored)
    steps.restore(stored)
    assert steps.tries.tolist() == stored["outward_tries"].tolist()
    stored["outward_tries"] = stored["outward_tries"] + 1000
    with pytest.raises(CorruptStore, match="outward_tries"):
        steps.check(stored)


def begun(monkeypatch: pytest.MonkeyPatch, **words: Any) -> Any:
    """A run that takes trees for expensive, after its first steps and one step more."""
    monkeypatch.setattr(rounds, "trees_take_long", lambda run: True)
    run = drawn_run(**{"gap": 0.05, **words})
    run.begin()
    run.step()
    return run


def test_the_likely_winner_is_decided_and_what_it_excludes_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(monkeypatch)
    state = run.run
    assert run.shared_pass.bounded
    assert state.cells.decided[likely_winner(state.bounds())].all() and not state.cells.decided.all()
    to_end(run)
    assert state.proved() and not state.cells.decided.all()


def test_nothing_is_left_out_where_trees_are_cheap() -> None:
    run = to_end(drawn_run(gap=0.05))
    assert not run.shared_pass.excludes and run.run.cells.decided.all()


@pytest.mark.parametrize("words", [{"gap": 0.0}, {"one_se": True}])
def test_nothing_is_left_out_where_all_is_asked_for(monkeypatch: pytest.MonkeyPatch, words: dict[str, Any]) -> None:
    assert not begun(monkeypatch, **words).shared_pass.bounded


def test_where_it_stands_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(monkeypatch)
    other = drawn_run(gap=0.05)
    other.resume(run.checkpoint())
    assert other.shared_pass.excludes and np.array_equal(other.run.cells.decided, run.run.cells.decided)
    assert to_end(run).run.bounds().best == _carried_on(other).run.bounds().best


def _carried_on(run: Any) -> Any:
    while not run.finished:
        run.step()
    run.finish()
    return run


def test_folds_that_are_left_out_together_are_bounded_in_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "trees_take_long", lambda run: True)
    data, folds, grid = drawn(n=60, folds="loo")
    run = new_run(data, folds, grid, gap=0.05)
    run.begin()
    run.step()
    cells = run.run.cells
    assert np.isfinite(cells.nominal).all() and np.isfinite(cells.upper).all() and (cells.lower > 0.0).any()


def test_steps_lead_to_a_proof_and_bounds_only_tighten() -> None:
    run = drawn_run()
    run.begin()
    low, high = run.run.cells.lower.copy(), run.run.cells.upper.copy()
    while not run.finished:
        run.step()
        cells = run.run.cells
        assert (cells.lower >= low).all() and (cells.upper <= high).all()
        low, high = cells.lower.copy(), cells.upper.copy()
    assert run.run.proved() and run.run.cells.decided.all()
    assert run.mios() <= run.run.cells.decided.size
    assert run.snapshot().work.engine == "per-fold"


def test_work_on_decides_the_pairs_asked_for() -> None:
    run = drawn_run(gap=0.5)
    run.begin()
    pairs = np.zeros((2, 3), dtype=bool)
    pairs[1, 2] = True
    run.work_on(pairs)
    assert run.run.cells.decided[1, 2].all() and not run.open[1, 2].any()


def test_a_limit_leaves_time_for_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it is kept here: the search ends at once, the best subset on all rows is found, and the search goes on."""
    run = drawn_run(seconds=1000.0)
    run.context.deadline.began -= 9000.0  # the last tenth of the limit is left
    order = list[str]()
    monkeypatch.setattr(run, "model_is_open", lambda: "model" not in order)
    monkeypatch.setattr(run, "prove_model", lambda: order.append("model"))
    step = run.step
    monkeypatch.setattr(run, "step", lambda: (order.append("step"), step()))
    run.begin()
    run_module.run_with_model(run)
    assert order[0] == "model" and run.run.proved()


@pytest.mark.parametrize("at_once", [1, 3])
def test_the_model_is_proved_alone_or_beside_the_search(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here its proof waits until the search has gone on, which it does where slices are done by others."""
    run, gone_on = drawn_run(seconds=1000.0), threading.Event()
    run.context.deadline.began -= 9000.0  # the last tenth of the limit is left
    run.context.hands.at_once = at_once
    asked, prove, step = list[bool](), run.prove_model, run.step

    def proved(beside: bool = False) -> None:
        asked.append(gone_on.wait(60.0) if beside else gone_on.is_set())
        prove(beside)

    monkeypatch.setattr(run, "model_is_open", lambda: not asked)
    monkeypatch.setattr(run, "prove_model", proved)
    monkeypatch.setattr(run, "step", lambda: (step(), gone_on.set()))
    run.begin()
    run_module.run_with_model(run)
    assert asked == [at_once > 1] and run.run.proved()
    g, t = run.run.reported_pair()
    assert run.run.all_rows.best[g].by_size[int(run.context.grid.taus[t])].complete
