"""Every method keeps its contract, and the loop drives it from the first step to the last."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest
from drawn_search import drawn, drawn_run
from runs import new_run, record_of, to_end

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search import pairs
from sparsecv_mio.search import run as first_answers
from sparsecv_mio.search.grid_state import DONE
from sparsecv_mio.search.observers import Watched
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.search.run import (
    GridMethod,
    Run,
    StoredPart,
    answers_of_all_rows,
    best_on_all_rows,
    decide_beyond_proof,
    fit_all_rows,
    pairs_for_rule,
    run_to_end,
)
from sparsecv_mio.words import Method

METHODS = [str(word) for word in Method if word not in (Method.AUTO, Method.DESCENT)]
OLD = [method for method in METHODS if method != Method.ROUNDS]


def members(protocol: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(protocol) if not name.startswith("_")}


def missing(one: object, protocol: type) -> list[str]:
    """Members of a protocol that an object has not."""
    return [name for name in sorted(members(protocol)) if not hasattr(one, name)]


@pytest.mark.parametrize("method", [*METHODS, "descent"])
def test_every_search_can_be_driven_and_watched(method: str) -> None:
    search = drawn_run(method)
    assert missing(search, Watched) == []
    assert {"begin", "step", "finished", "finish"} <= members(Watched) and search.context.gap == 0.0


@pytest.mark.parametrize("method", OLD)
def test_every_method_keeps_the_contract(method: str) -> None:
    one = drawn_run(method)
    assert missing(one, GridMethod) == [] and isinstance(one.run, Run) and one.run.context is one.context
    assert [missing(part, StoredPart) for part in one.parts] == [[]] * len(one.parts)
    assert one.mios() == 0 and one.engine() and one.open.shape == one.context.shape and not one.exhausted


class Three:
    """Three steps."""

    def __init__(self) -> None:
        self.done: list[str] = []

    @property
    def finished(self) -> bool:
        return len(self.done) == 3

    def step(self) -> None:
        self.done.append("step")

    def finish(self) -> None:
        self.done.append("finish")


def test_the_loop_steps_until_it_is_finished() -> None:
    course = Three()
    run_to_end(course)  # type: ignore[arg-type]
    assert course.done == ["step", "step", "step", "finish"]


@pytest.mark.parametrize("in_turn", [False, True])
def test_bounds_hold_the_optimum_of_every_gamma(in_turn: bool) -> None:
    exact, run = drawn_run("joint").run, drawn_run("joint").run
    fit_all_rows(exact, [0, 1], 1 << 40)
    fit_all_rows(run, [1, 0], 0, in_turn)
    for g in range(2):
        for tau, cell in run.all_rows.best[g].by_size.items():
            optimum = exact.all_rows.best[g].by_size[tau]
            assert optimum.complete and cell.lower <= optimum.upper * (1.0 + 1e-9) and cell.upper >= optimum.lower
    assert run.counts.nodes <= exact.counts.nodes


def test_a_gamma_left_out_gets_the_supports_of_the_nearest_without_a_proof() -> None:
    run = drawn_run("joint", seconds=1e-9).run
    fit_all_rows(run, [1, 0], 0)
    first, other = run.all_rows.best[1], run.all_rows.best[0]
    assert [cell.support.tolist() for cell in other.by_size.values()] == [
        cell.support.tolist() for cell in first.by_size.values()
    ]
    assert all(cell.lower == 0.0 and not cell.complete for cell in other.by_size.values())


def test_an_open_pair_is_solved_on() -> None:
    run = drawn_run("joint")
    run.begin()
    cell = best_on_all_rows(run.run, 0, 2, 1 << 20)
    assert cell.complete and cell.tau == 2 and sorted(cell.support.tolist()) == [0, 3]


def supports(run: object, fold: int) -> list[list[list[int]]]:
    """Supports that a fold's cells show, by gamma and tau."""
    cells = run.run.cells  # type: ignore[attr-defined]
    return [[cells.pool.supports[number].tolist() for number in row] for row in cells.support[:, :, fold]]


def search_folds(run: object, n_passes: int) -> None:
    """Take turns until so many passes over the folds are done."""
    while int(run.state.fold_passes) < n_passes:  # type: ignore[attr-defined]
        run.step()  # type: ignore[attr-defined]


@pytest.mark.parametrize("n_passes", [1, 2, DONE])
def test_every_subproblem_shows_a_support_refitted_in_its_fold(n_passes: int) -> None:
    data, folds, grid = drawn(p=40, n=60)
    run = new_run(data, folds, grid)
    search_folds(run, n_passes)
    cells = run.run.cells
    assert np.isfinite(cells.nominal).all() and not cells.decided.any()
    for g, t, fold in np.ndindex(*cells.nominal.shape):
        support = cells.pool.supports[cells.support[g, t, fold]]
        fit = refit_rows(data, folds.train_rows(fold), support, float(grid.gammas[g]))
        assert len(support) == grid.taus[t]
        assert cells.value[g, t, fold] == pytest.approx(fit.objective, rel=1e-9)
        assert cells.nominal[g, t, fold] == pytest.approx(fit.held_out(data, folds.scored_rows(fold))[0], rel=1e-8)
        assert fit.objective <= run.state.objective_upper[g, t, fold] <= fit.objective * (1.0 + 1e-6)


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("method", ["joint", "algorithm1"])
def test_every_cell_shows_a_support_refitted_in_its_fold(method: str, late: bool) -> None:
    data, folds, grid = drawn(p=40, n=60)
    run = new_run(data, folds, grid, seconds=600.0, method=method)
    run.context.deadline.began -= 600.0 * late  # no time for better supports
    run.estimates.before_all()
    cells = run.run.cells
    assert run.estimates.done and np.isfinite(cells.nominal).all() and not cells.decided.any()
    for g, t, fold in np.ndindex(*cells.nominal.shape):
        support = cells.pool.supports[cells.support[g, t, fold]]
        fit = refit_rows(data, folds.train_rows(fold), support, float(grid.gammas[g]))
        assert len(support) == grid.taus[t]
        assert cells.value[g, t, fold] == pytest.approx(fit.objective, rel=1e-9)
        assert cells.nominal[g, t, fold] == pytest.approx(fit.held_out(data, folds.scored_rows(fold))[0], rel=1e-8)


def test_a_quick_answer_has_not_seen_the_rows_left_out() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 40)), rng.normal(size=60)
    shown = []
    for change in (0.0, 50.0):
        folds = make_folds("5", Dataset.from_arrays(X, y))
        other = y.copy()
        other[folds.scored_rows(1)] += change * X[folds.scored_rows(1), 7]
        data = standardize(Dataset.from_arrays(X, other), "none")
        run = new_run(data, folds, Grid.of([0.1, 1.0], [1, 2, 3], 40), seconds=600.0)
        search_folds(run, 1)
        shown.append([supports(run, fold) for fold in (0, 1)])
    assert shown[0][1] == shown[1][1]
    assert shown[0][0] != shown[1][0]  # another fold trains on these rows


def test_all_rows_search_along() -> None:
    data, folds, grid = drawn(p=40, n=60)
    run = new_run(data, folds, grid)
    run.begin()
    old = new_run(data, folds, grid, method="joint").run
    found, alone = first_answers.first_answers(old), answers_of_all_rows(run.context)
    assert found is not None and alone is not None
    for g, t in np.ndindex(2, 3):
        fit = refit_rows(data, slice(0, data.n), found.support(g, t), float(grid.gammas[g]))
        best = run.run.all_rows.best[g].by_size[int(grid.taus[t])]
        assert found.objective[g, t] == pytest.approx(fit.objective, rel=1e-9)
        assert alone.objective[g, t] == pytest.approx(found.objective[g, t], rel=1e-9)
        assert best.upper <= found.objective[g, t] * (1.0 + 1e-6)  # raised by what ties may hide
        assert best.support.tolist() == found.support(g, t).tolist()


def test_a_quick_answer_is_a_record_of_every_size() -> None:
    data, folds, grid = drawn(p=40, n=60)
    run = new_run(data, folds, grid)
    search_folds(run, 1)
    records: list[Record] = [record_of(run)]
    assert len(records) == 1 and records[0].estimate and len(records[0].coefficients) == records[0].tau
    assert all(np.isfinite(row.cv_error) and row.estimate for row in records[0].table)
    shown = run.progress()
    assert shown.cv_error == min(row.cv_error for row in shown.taus) and shown.estimate
    assert shown.stage == "supports of all folds: pass 1"


def test_nothing_to_choose() -> None:
    data, folds, _ = drawn(p=40, n=60)
    run = new_run(data, folds, Grid.of([0.1], [0], 40), method="joint")
    assert first_answers.first_answers(run.run) is None and answers_of_all_rows(run.context) is None


def test_the_rule_is_sure_of_its_pair() -> None:
    run = to_end(drawn_run("joint", gap=0.05, one_se=True))
    now, asked = run.run.bounds(), run.context
    rule = pairs.one_se_rule(now, now.best, asked.grid.gammas, asked.grid.taus, asked.scored, asked.data.y_unit**2)
    assert not rule.missing.any() and not pairs_for_rule(run).any()


def test_a_wider_gap_without_the_rule_asks_for_nothing() -> None:
    run = drawn_run("joint", gap=0.5)
    run.begin()
    before = run.run.cells.decided.sum()
    decide_beyond_proof(run, run.context)
    assert run.run.cells.decided.sum() == before
    decide_beyond_proof(run, replace(run.context, request=replace(run.context.request, one_se=True)))
    assert run.run.cells.decided.sum() > before


@pytest.mark.parametrize("method", ["rounds", "joint", "grid"])
def test_there_and_back(method: str) -> None:
    run, other = drawn_run(method), drawn_run(method)
    run.begin()
    run.step()
    stored = run.checkpoint()
    other.resume(stored)
    assert other.run.counts == run.run.counts
    for name, array in other.checkpoint().items():
        if not name.endswith("accounts"):  # what is computed again is booked again
            assert np.array_equal(array, stored[name]), name
    if method != "rounds":
        assert stored["run.begun"]


def test_another_grid_is_refused() -> None:
    data, folds, _ = drawn()
    run, other = drawn_run(), new_run(data, folds, Grid.of([0.1], [1, 2, 3], 6))
    run.begin()
    with pytest.raises(CorruptStore):
        other.resume(run.checkpoint())
    assert other.run.all_rows.best == []


def test_counts_that_are_no_counts() -> None:
    run = drawn_run()
    run.begin()
    stored = run.checkpoint()
    stored["run.by_engine"] = np.array('{"shared": "many"}')
    with pytest.raises(CorruptStore, match="counts"):
        drawn_run().resume(stored)


def test_stored_within_the_first_steps_it_begins_anew() -> None:
    run, other = drawn_run("joint"), drawn_run("joint")
    other.resume(run.checkpoint())
    assert other.begun and other.run.all_rows.best


def test_a_snapshot_stays_as_it_was() -> None:
    run = drawn_run()
    run.step()
    snapshot = run.snapshot()
    decided = snapshot.cells.decided.copy()
    run_to_end(run)
    assert np.array_equal(snapshot.cells.decided, decided) and not decided.all()
    assert run.snapshot().cells.decided.all() and run.snapshot().scored
    assert len(snapshot.best) == 2 and snapshot.best[0] is run.run.all_rows.best[0]
