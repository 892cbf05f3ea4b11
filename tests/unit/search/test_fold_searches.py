"""Local searches in folds, against all subsets and plain fits: what they find, claim, store, and leave when stopped."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from every_support import brute_force_cell
from plain_ridge import ridge
from runs import drawn, new_context, new_run

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.parallel import Clock, Hands, Moment
from sparsecv_mio.problem import objective
from sparsecv_mio.problem.moment_fits import ForwardSelection, WeightedRows
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import row_moments, training_moments
from sparsecv_mio.search.accounts import Accounts
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems import fold_local_search
from sparsecv_mio.search.problems.fold_local_search import (
    FoldPaths,
    LocalSearches,
    LocalSearchOfFold,
    columns_to_add,
    make_fold_search,
    make_seed_table,
    residuals,
    search_all_passes,
)
from sparsecv_mio.search.problems.protocol import Problems, SupportsOfPass
from sparsecv_mio.search.problems.support_searches import FoldPasses, bound_objectives
from sparsecv_mio.search.sources.fold_searches import FoldSearches
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.search.state.context import SearchState
from sparsecv_mio.search.state.grid_state import GridState
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import FullDataBounds, Step, SubproblemBounds
from sparsecv_mio.search.writer import Writer
from sparsecv_mio.trees.subsets import is_never_expired

LABELS = np.arange(24) % 3
FOLDS = folds_from_labels(LABELS)
TOP = 5


def random_data(seed: int, p: int = 60, intercept: str = "fold", held_out: float = 0.0) -> StandardData:
    """24 rows; `held_out` scales what is added to the response of fold 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((24, p)) + 0.7 * rng.standard_normal((24, 1))
    y = X[:, 0] + X[:, p // 3] - X[:, 2 * p // 3] + 0.5 * rng.standard_normal(24)
    y[LABELS == 0] += held_out * rng.standard_normal(8)
    return standardize(Dataset.from_arrays(X, y), "length", intercept)


class SearchesAlone(Problems):
    """Problems of which nothing is used but the search in all folds."""

    def __init__(self, data: StandardData, folds: FoldPlan, grid: Grid) -> None:
        self.passes = FoldPasses(data, folds, grid)

    def search_folds(
        self, gammas: Sequence[int], taus: Sequence[int], n_passes: int, n_threads: int, until: Clock,
        are_estimates: bool = False,
    ) -> SupportsOfPass:  # fmt: skip
        return self.passes.search(gammas, taus, n_passes, n_threads, until, are_estimates)

    def full(self, gamma: int) -> Any:
        raise AssertionError(gamma)

    def fold(self, fold: int, gamma: int) -> Any:
        raise AssertionError(fold, gamma)

    def clear(self) -> None:
        self.passes.clear()


def new_state() -> GridState:
    data, folds, grid = drawn(p=8, n=24, folds="4")
    return GridState.unknown(SearchState.from_context(new_context(data, folds, grid)), 0.0)


def problems_of(state: GridState) -> SearchesAlone:
    return SearchesAlone(state.context.data, state.context.folds, state.context.grid)


PLAN = Plan(searches_all_folds=True)
BY_ROWS = pytest.mark.parametrize("by_rows", [False, True])


def every_pass(state: GridState) -> list[Step]:
    """Do all passes, and let the writer take them; the steps that were done."""
    source, problems, writer, done = FoldSearches(), problems_of(state), Writer(state, PLAN, Accounts(state)), []
    while steps := list(source.steps(state, PLAN, np.ones(state.context.shape[:2], dtype=bool))):
        writer.take([source.run_step(step, problems, is_never_expired) for step in steps])
        done += steps
    return done


def optimum(state: GridState, g: int, t: int, fold: int) -> tuple[float, tuple[int, ...]]:
    """The smallest objective of a fold, or of the full data, of all subsets, and its support."""
    data, folds, grid = state.context.data, state.context.folds, state.context.grid
    rows = np.arange(data.n) if fold == ALL_ROWS else folds.train_rows(fold)
    problem = row_moments(data, rows).problem(data, float(grid.gammas[g]))
    return min((ridge(problem, s)[1], s) for s in combinations(range(data.q), int(grid.taus[t])))


@BY_ROWS
def test_it_finds_the_best_of_all_subsets(by_rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_rows:
        monkeypatch.setattr(fold_local_search, "PRODUCT_BYTES", 0)
    state = new_state()
    steps = every_pass(state)
    assert [step.n_passes for step in steps] == list(range(len(steps))) and len(steps) >= 3
    assert int(state.tried.fold_passes) == DONE and state.has_supports.all() and state.tried.is_pair_searched.all()
    data, folds, grid, cells = state.context.data, state.context.folds, state.context.grid, state.cells
    for g, t, fold in np.ndindex(*state.context.shape):
        least, support = optimum(state, g, t, fold)
        shown = cells.pool.supports[cells.support[g, t, fold]]
        fit = refit_rows(data, folds.train_rows(fold), shown, float(grid.gammas[g]))
        assert shown.tolist() == list(support) and cells.value[g, t, fold] == pytest.approx(least, rel=1e-9)
        assert cells.nominal[g, t, fold] == pytest.approx(fit.held_out(data, folds.scored_rows(fold))[0], rel=1e-9)
        assert least <= state.objective_upper[g, t, fold] <= least * (1.0 + 1e-6)
    for g, t in np.ndindex(*state.context.shape[:2]):
        least, support = optimum(state, g, t, ALL_ROWS)
        subset = state.full_subset((g, t))
        assert subset.support.tolist() == list(support) and least <= subset.upper <= least * (1.0 + 1e-6)
    assert (
        not cells.lower.any() and not cells.decided.any() and not state.tried.round
    )  # nothing is proved, no tree grown


@BY_ROWS
def test_a_pass_is_the_same_without_the_passes_before(by_rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if by_rows:
        monkeypatch.setattr(fold_local_search, "PRODUCT_BYTES", 0)
    state, source = new_state(), FoldSearches()
    problems, everywhere = problems_of(state), np.ones(state.context.shape[:2], dtype=bool)
    (step,) = source.steps(state, PLAN, everywhere)
    for n_passes in range(3):
        one = replace(step, n_passes=n_passes)
        here = source.run_step(one, problems, is_never_expired)
        there = source.run_step(pickle.loads(pickle.dumps(one)), problems_of(state), is_never_expired)
        assert here.is_finished == there.is_finished and len(here.statements) == len(there.statements) == 4
        for mine, other in zip(here.statements, there.statements, strict=True):
            if isinstance(mine, SubproblemBounds):
                for name in ("best", "held_out", "objective", "objective_upper"):
                    assert np.array_equal(getattr(mine, name), getattr(other, name))
            else:
                assert isinstance(mine, FullDataBounds) and isinstance(other, FullDataBounds)
                assert [cell.upper for cell in mine.subsets.by_size.values()] == [
                    cell.upper for cell in other.subsets.by_size.values()
                ]


def test_the_first_pass_is_done_whatever_the_time_and_others_end_with_theirs() -> None:
    state, source = new_state(), FoldSearches()
    problems, everywhere = problems_of(state), np.ones(state.context.shape[:2], dtype=bool)
    (step,) = source.steps(state, PLAN, everywhere)
    assert step.seconds == np.inf
    stopped = source.run_step(step, problems, lambda: True)
    assert stopped.was_stopped and not stopped.is_finished and len(stopped.statements) == 4
    Writer(state, PLAN, Accounts(state)).take([stopped])
    assert np.isfinite(state.cells.nominal).all() and not state.tried.fold_passes  # it may be done again
    ended = source.run_step(replace(step, n_passes=1, seconds=-1.0), problems, is_never_expired)
    assert ended.is_finished and not ended.was_stopped


def test_a_support_with_a_column_that_the_search_has_let_go_has_no_bound() -> None:
    data, folds, _ = drawn(p=8, n=24, folds="4")
    few = np.array([0, 2, 3, 5])
    narrow = data.only(few)
    problem = row_moments(narrow, folds.train_rows(0)).problem(narrow, 1.0)
    search = LocalSearchOfFold(0, problem, np.array([0.05]), 2, few)
    upper = bound_objectives(search, 0, [np.array([2, 5]), np.array([2, 4])])
    exact = refit_rows(data, folds.train_rows(0), np.array([2, 5]), 0.1).objective
    assert exact <= upper[0] <= exact * (1.0 + 1e-6) and upper[1] == np.inf


def supports(run: object, fold: int) -> list[list[list[int]]]:
    """Supports that a fold's cells show, by gamma and tau."""
    cells = run.state.cells  # type: ignore[attr-defined]
    return [[cells.pool.supports[number].tolist() for number in row] for row in cells.support[:, :, fold]]


def search_folds(run: object, n_passes: int) -> None:
    """Take turns until so many passes over the folds are done."""
    while int(run.state.tried.fold_passes) < n_passes:  # type: ignore[attr-defined]
        run.take_turn()  # type: ignore[attr-defined]


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


LAMS = np.array([0.01, 0.5])


def test_paths_have_full_supports_even_where_none_is_known() -> None:
    data = random_data(0, p=8)
    problem = row_moments(data, FOLDS.train_rows(0)).problem(data, 1.0)
    search = LocalSearchOfFold(0, problem, LAMS, 4)
    search.learn(np.array([[6, 7, -1, -1]]), np.array([0]))
    paths = search.paths(np.array([0, 2, 4]), *data.about(FOLDS.scored_rows(0), problem.v_mean, problem.r_mean))
    assert paths.support(0, 1).tolist() == [6, 7] and paths.support(0, 2).tolist() == [0, 1, 6, 7]
    assert [len(paths.support(1, t)) for t in range(3)] == [0, 2, 4] and search.last is paths
    for g, t in np.ndindex(2, 3):
        fit = ridge(problem.with_gamma(2.0 * LAMS[g]), paths.support(g, t))
        assert paths.objective[g, t] == pytest.approx(fit[1], rel=1e-9)


def begun(late: bool = False) -> LocalSearches:
    data = random_data(1, p=12)
    searches = LocalSearches(data, FOLDS, Grid.of([0.1, 1.0, 5.0], [0, 1, 3], 12), 1, Moment(lambda: late), Hands())
    for fold, moments in training_moments(data, FOLDS):
        problem = moments.problem(data, 1.0)
        searches.begin(LocalSearchOfFold(fold, problem, searches.lams, searches.top), make_seed_table([], searches.top))
    return searches


def test_a_pass_ends_with_the_time() -> None:
    searches = begun(late=True)
    assert len(searches.by_fold) == 3 and list(searches.walk()) == []


def first_search(data: StandardData, fold: int, top: int) -> tuple[LocalSearchOfFold, WeightedRows, ForwardSelection]:
    """A search on what forward selection picked."""
    rows = WeightedRows(data, FOLDS)
    forward = ForwardSelection(rows, [fold], *rows.squares_and_slopes([fold]), 0.05, TOP)
    forward.pick_columns(lambda: False)
    searches = LocalSearches(data, FOLDS, Grid.of([0.1], [top], data.q), 1, Moment(), Hands())
    search = make_fold_search(searches, fold, np.sort(forward.picked[0]))
    search.sweep([0], lambda: False)
    return search, rows, forward


@pytest.mark.parametrize("seed", range(5))
def test_the_rows_left_out_have_no_influence(seed: int) -> None:
    found = []
    for held_out in (0.0, 1.0):
        search, rows, forward = first_search(random_data(seed, held_out=held_out), 0, TOP)
        more = columns_to_add(search, rows, rows.squares_and_slopes([0])[0][0].astype(np.float32))
        assert not np.isin(more, search.among).any() and len(more) > 0
        found.append((forward.picked[0], more.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(3))
def test_residuals_are_those_of_plain_refits(seed: int) -> None:
    data = random_data(seed)
    search, rows, _ = first_search(data, 1, 2)
    train = FOLDS.train_rows(1)
    supports: list[list[int]] = [[]]
    for size in (1, 2):
        supports.append(search.best_supports()[0, size, :size].tolist())
    supports += [np.delete(chosen, a).tolist() for chosen in supports[1:] for a in range(len(chosen))]
    found = residuals(search, rows) * data.y_unit
    assert len(found) == len(supports)
    dataset = data.dataset
    for residual, support in zip(found, supports, strict=True):
        fit = objective.fit(dataset.X, dataset.y, support, 0.1, rows=train)
        plain = dataset.y[train] - fit.predict(dataset.X[train])
        np.testing.assert_allclose(residual[train], plain, atol=1e-8)
        assert np.all(residual[LABELS == 1] == 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_working_sets_find_what_all_columns_find(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, grid = random_data(seed), Grid.of([0.01, 0.1, 1.0], [0, 1, 2, 3, 5], 60)
    results = []
    for most in (1200, 0):
        monkeypatch.setattr(fold_local_search, "EXACT_COLUMNS", most)
        last = {paths.fold: paths for paths in search_all_passes(data, FOLDS, grid, threads=2)}
        results.append(last)
    ratio = np.array([results[1][fold].objective / results[0][fold].objective for fold in range(3)])
    assert np.mean(np.abs(ratio - 1.0) < 1e-7) > 0.9 and np.all(ratio < 1.05)


def test_sizes_beyond_the_table_are_answered_by_its_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    data, grid = random_data(0), Grid.of([0.1, 1.0], [1, 6, 60], 60)
    monkeypatch.setattr(fold_local_search, "STORE_BYTES", 8 * 216)
    for paths in search_all_passes(data, FOLDS, grid):
        assert [len(paths.support(0, t)) for t in range(3)] == [1, 6, 6]


@pytest.mark.parametrize("most", [1200, 0])
def test_a_stop_at_once_still_gives_every_fold_an_answer(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, grid = random_data(0), Grid.of([0.1, 1.0], [1, 6, 60], 60)
    monkeypatch.setattr(fold_local_search, "EXACT_COLUMNS", most)
    found = list(search_all_passes(data, FOLDS, grid, until=Moment(lambda: True), seeds=[np.array([3, 50])]))
    assert [paths.fold for paths in found] == [0, 1, 2]
    for paths in found:
        assert np.all(np.isfinite(paths.held_out))
        assert [len(set(paths.support(0, t).tolist())) for t in range(3)] == [1, 6, 60]


def draw_with_copies(seed: int, n: int = 24, p: int = 8) -> Dataset:
    """Correlated columns, one twice, one constant."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.4 * rng.standard_normal((p, p)))
    X[:, 5], X[:, 6] = X[:, 1], 3.0
    return Dataset.from_arrays(X, X[:, 0] + X[:, 2] - X[:, 3] + rng.standard_normal(n))


def last_paths(
    data: StandardData, folds: FoldPlan, gammas: Sequence[float], taus: Sequence[int], **more: object
) -> dict[int, FoldPaths]:
    """The last answer of every fold; none is worse than the one before, all are supports of tau columns."""
    grid = Grid.of(list(gammas), list(taus), data.dataset.p)
    found: dict[int, FoldPaths] = {}
    for paths in search_all_passes(data, folds, grid, **more):  # type: ignore[arg-type]
        before = found.get(paths.fold)
        assert before is None or np.all(paths.objective <= before.objective)
        assert np.all(np.isfinite(paths.objective)) and np.all(np.isfinite(paths.held_out))
        for g in range(len(grid.gammas)):
            for t, tau in enumerate(grid.taus.tolist()):
                assert len(set(paths.support(g, t).tolist())) == min(tau, data.q)
        found[paths.fold] = paths
    assert sorted(found) == list(range(folds.k))
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("scale", ["length", "variance", "none"])
@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_values_are_plain_refits_and_optima_are_found(seed: int, scale: str, intercept: str) -> None:
    dataset = draw_with_copies(seed)
    data = standardize(dataset, scale, intercept)
    labels = np.arange(24) % 3
    gammas, taus = [0.01, 1.0], [0, 2, 3, 8]
    found = last_paths(data, folds_from_labels(labels), gammas, taus, threads=1 + seed % 2)
    missed = 0
    for fold, paths in found.items():
        train, test = np.flatnonzero(labels != fold), np.flatnonzero(labels == fold)
        for g, gamma in enumerate(gammas):
            for t, tau in enumerate(taus):
                support = data.columns[paths.support(g, t)].tolist()
                plain = objective.fit(
                    dataset.X, dataset.y, support, gamma, scale=scale, intercept=intercept, rows=train
                )
                error = objective.held_out_error(plain, dataset.X, dataset.y, test)
                assert paths.objective[g, t] * data.y_unit**2 == pytest.approx(plain.objective, rel=1e-7)
                assert paths.held_out[g, t] * data.y_unit**2 == pytest.approx(error, rel=1e-5)
                best = brute_force_cell(dataset.X, dataset.y, tau, gamma, scale=scale, intercept=intercept, rows=train)
                missed += plain.objective > best.objective * (1.0 + 1e-7)
    assert missed == 0


def test_odd_data_have_an_answer() -> None:
    """More columns than training rows, tau beyond these, a column and a target that are constant in training."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((9, 14))
    X[:, 3] = np.arange(9) < 3
    y = np.where(np.arange(9) < 3, rng.standard_normal(9), 2.0)
    data = standardize(Dataset.from_arrays(X, y))
    folds = folds_from_labels(np.arange(9) // 3)
    found = last_paths(data, folds, [1e-300, 1e-9, 1e300], [1, 5, 13, 14])
    assert np.all(found[0].objective == 0.0)


@pytest.mark.parametrize("taus", [[1, 2, 38], [38]])
def test_all_columns_are_an_answer_that_needs_no_search(taus: list[int]) -> None:
    """Of many columns, whatever the largest size below them is."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 38))
    X[:, 7] = 1.0
    dataset = Dataset.from_arrays(X, X[:, :4].sum(axis=1) + rng.standard_normal(60))
    data, labels = standardize(dataset), np.arange(60) % 3
    for fold, paths in last_paths(data, folds_from_labels(labels), [0.01, 1.0], taus).items():
        train, test = np.flatnonzero(labels != fold), np.flatnonzero(labels == fold)
        for g, gamma in enumerate([0.01, 1.0]):
            plain = objective.fit(dataset.X, dataset.y, list(range(38)), gamma, rows=train)
            error = objective.held_out_error(plain, dataset.X, dataset.y, test)
            assert paths.support(g, -1).tolist() == list(range(data.q))
            assert paths.objective[g, -1] * data.y_unit**2 == pytest.approx(plain.objective, rel=1e-7)
            assert paths.held_out[g, -1] * data.y_unit**2 == pytest.approx(error, rel=1e-5)


def test_lower_bounds_allow_for_the_rounding_of_both_objectives() -> None:
    """With v = 9/2 and u = 4 in both folds, or V = 5 for the weights t, of which the smallest is 1/20."""
    found: list[Any] = []
    state = SimpleNamespace(
        slip=0.25, objective_upper=np.array([[[4.0, 4.0]]]), weighted={1: np.full((10, 1, 1), 5.0)},
        context=SimpleNamespace(folds=SimpleNamespace(k=2, scores_all_left_out=np.ones(2, dtype=bool))),
        cells=SimpleNamespace(narrow=lambda *_: found.append(_[1])),
    )  # fmt: skip
    Writer._raise_rows(SimpleNamespace(state=state), 0, np.array([0]), np.array([4.5]))
    assert found.pop().tolist() == [0.25, pytest.approx(0.75 / 0.05)]
