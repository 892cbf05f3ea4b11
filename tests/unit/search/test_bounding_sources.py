"""Sources of bounds: what a step claims is true, and switched off by name a source changes no answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import pytest
from runs import change_plan, drawn, new_run, to_end
from slow import slow

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.loop import Executor
from sparsecv_mio.search.plan import SETTINGS_OF_SOURCES, Plan
from sparsecv_mio.search.sources.fold_searches import FoldSamples
from sparsecv_mio.search.sources.full_data import FullDataTrees
from sparsecv_mio.search.sources.initial_supports import FoldSupports, InitialSupports, SupportFits
from sparsecv_mio.search.sources.left_out_trees import LeftOutTrees
from sparsecv_mio.search.sources.registry import REQUIRED, SOURCES, parse_sources
from sparsecv_mio.search.sources.weighted_rows import WeightedTrees
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import Step, idle_steps
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees.subsets import UNLIMITED, is_never_expired

from .judged import check_state, do, grow_full_data, random_search


def test_a_step_that_is_stopped_may_be_repeated() -> None:
    search = new_run(*drawn(p=5, n=48, folds="loo"))
    grow_full_data(search)
    step = LeftOutTrees().step(search.state, search.plan, 0, [0, 1, 2], 100)
    search.writer.take([LeftOutTrees().run_step(step, search.problems, lambda: True)])
    assert not search.state.tried.list_stage.any() and not search.state.cells.decided.any()


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


def test_no_fold_is_searched_by_two_steps() -> None:
    """Each thread has a part of the folds; once one part is done, no step divides the folds of the other part again."""
    dataset = draw_loss("logistic", 60, 5)
    folds, grid = make_folds("7", dataset), Grid.of([0.1], [2], 5)
    search = new_run(standardize(dataset, loss=Loss.LOGISTIC), folds, grid, loss="logistic", method="auto", threads=2)
    do(search, list(InitialSupports().steps(search.state, search.plan, np.ones((1, 1), dtype=bool))))

    def steps() -> list[Step]:
        return list(FoldSupports().steps(search.state, search.plan, (0, 0)))

    first, second = steps()
    assert {*first.folds, *second.folds} == set(range(7)) and not set(first.folds) & set(second.folds)
    do(search, [second])
    assert {fold for step in steps() for fold in step.folds} == set(first.folds)
    assert not list(idle_steps(steps(), [first]))
    do(search, [first])
    assert not steps() and search.state.tried.is_pair_searched.all()
    assert np.isfinite(search.state.cells.nominal).all() and np.isfinite(search.state.objective_upper).all()


def test_a_step_that_is_stopped_says_what_it_has_fitted() -> None:
    _, search = random_search(1)
    grow_full_data(search)
    step = next(SupportFits().steps(search.state, search.plan, np.ones(search.state.context.shape[:2], dtype=bool)))
    stopped = SupportFits().run_step(step, search.problems, lambda: True)
    assert stopped.was_stopped and stopped.statements == ()


def fitted(monkeypatch: pytest.MonkeyPatch, seed: int, **settings: float) -> tuple[object, GridSearch]:
    """A search whose folds show the supports of the full data, with bounds on their objectives."""
    change_plan(monkeypatch, grows_weighted_trees=True, **settings)
    case, search = random_search(seed)
    grow_full_data(search)
    do(
        search,
        list(SupportFits().steps(search.state, search.plan, np.ones(search.state.context.shape[:2], dtype=bool))),
    )
    return case, search


def test_relaxations_and_trees_raise_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    raised = np.zeros(2, dtype=int)
    for seed in range(6):
        with monkeypatch.context() as patch:
            _, search = fitted(patch, seed)
            state, source, every = (search.state, WeightedTrees(), np.ones(search.state.context.shape[:2], dtype=bool))
            before = state.cells.lower.copy()
            do(search, list(source.relaxations(state, search.plan, every)))
            raised[0] += int((state.cells.lower > before).sum())
            before = state.cells.lower.copy()
            do(search, list(source.steps(state, search.plan, every, state.cells.nominal.sum(axis=2))))
            raised[1] += int((state.cells.lower > before).sum())
    assert (raised > 0).all()


def test_a_target_that_held_out_rows_share_with_training_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the folds before the far row every model predicts the constant: what its mean leaves of rows is rounding."""
    change_plan(monkeypatch, grows_weighted_trees=True)
    rng = np.random.default_rng(3)
    y = np.where(np.arange(24) == 23, 7.3, 0.1)
    dataset = Dataset.from_arrays(rng.normal(size=(24, 4)), y)
    data, folds = standardize(dataset), make_folds("forward:6", dataset)
    search: GridSearch = new_run(data, folds, Grid.of([0.1, 1.0], [1, 2, 3], 4))
    grow_full_data(search)
    state, every = search.state, np.ones(search.state.context.shape[:2], dtype=bool)
    do(search, list(SupportFits().steps(state, search.plan, every)))
    state.cells.nominal[...] = 2.5e-33  # what fits show of it
    do(search, list(WeightedTrees().relaxations(state, search.plan, every)))
    assert folds.k > 2 and not state.cells.lower[:, :, :-1].any()


@pytest.mark.parametrize("folds", ["5", "loo"])
def test_every_subproblem_shows_a_support_of_its_fold(folds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, plan, grid = drawn(p=8, n=60, folds=folds)
    exact = to_end(new_run(data, plan, grid)).state.cells
    change_plan(monkeypatch, samples_folds=True)
    search = new_run(data, plan, grid)
    grow_full_data(search)
    state, every = search.state, np.ones(search.state.context.shape[:2], dtype=bool)
    low, high = state.cells.lower.copy(), state.cells.upper.copy()
    do(search, list(FoldSamples().steps(state, search.plan, every)))
    cells = state.cells
    assert int(state.tried.fold_passes) == DONE and np.isfinite(cells.nominal).all() and not cells.decided.any()
    assert np.array_equal(high, cells.upper) and np.all(cells.lower >= low)
    assert (cells.value >= exact.value * (1.0 - 1e-9)).all()
    assert np.mean(cells.value <= exact.value * (1.0 + 1e-9)) > 0.9
    assert not list(FoldSamples().steps(state, search.plan, every)), "once in a search"


@pytest.mark.parametrize("seed", range(8))
def test_what_a_sample_claims_is_true(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    change_plan(monkeypatch, samples_folds=True)
    case, search = random_search(600 + seed)
    grow_full_data(search)
    do(
        search,
        list(FoldSamples().steps(search.state, search.plan, np.ones(search.state.context.shape[:2], dtype=bool))),
    )
    if seed != 5:  # there the leverages of two folds are so large that no fit of the full data scores them
        assert np.isfinite(search.state.cells.nominal).all()
    check_state(case, search)


def test_a_limit_leaves_one_pair_scored_with_bounds() -> None:
    data, folds, grid = drawn()
    search = new_run(data, folds, grid, seconds=60.0)
    grow_full_data(search)
    assert not np.isfinite(search.state.cells.nominal).any()
    search.context.deadline.stop.set()
    search.score_reported_pair()
    cells = search.state.cells
    pair = search.state.bounds().reported_pair(0.0, grid.gammas, grid.taus)
    assert np.isfinite(cells.nominal[pair]).all() and np.isfinite(cells.upper[pair]).all()


def test_nothing_before_anything_is_known() -> None:
    search = new_run(*drawn())
    search.score_reported_pair()
    assert not np.isfinite(search.state.cells.nominal).any()


def test_no_fold_is_searched_alone_where_the_sampled_folds_agree() -> None:
    search = new_run(*drawn(p=40, n=400, folds="loo", noise=0.1))
    grow_full_data(search)
    steps = list(FoldSamples().steps(search.state, search.plan, np.ones((2, 3), dtype=bool)))
    findings = [FoldSamples().run_step(step, search.problems, is_never_expired) for step in steps]
    assert [found.n_problems for found in findings] == [2], "the sample alone, and none of the 400 folds"


CASES: dict[str, dict[str, Any]] = {
    "squared": {},
    "squared, leave-one-out": {"folds": "loo"},
    "squared, many columns": {"n": 70, "p": 40, "taus": [1, 2, 3]},
    "squared, joint": {"method": "joint"},
    "squared, algorithm1": {"method": "algorithm1"},
    "squared, signs": {"nonnegative": "all", "p": 4, "folds": "3"},
    "logistic": {"loss": "logistic"},
    "logistic, leave-one-out": {"loss": "logistic", "folds": "loo", "n": 26},
    "poisson": {"loss": "poisson"},
    "poisson, leave-one-out": {"loss": "poisson", "folds": "loo", "n": 30},
}
SLOW_CASE = "poisson, leave-one-out"  # logistic loss takes the same steps
SWITCHED = [name for name in SOURCES if name not in REQUIRED]


@cache
def draw_loss(loss: str, n: int, p: int) -> Dataset:
    rng = np.random.default_rng(p)
    X = rng.normal(size=(n, p))
    X[:, 1] += X[:, 0]
    signal = X[:, 0] - 0.7 * X[:, 2] + 0.4 * X[:, 3]
    y = signal + rng.normal(size=n)
    if loss == "logistic":
        y = (signal + rng.logistic(size=n) > 0).astype(float)
    return Dataset.from_arrays(X, rng.poisson(np.exp(0.4 * signal)).astype(float) if loss == "poisson" else y)


def solved(n: int = 50, p: int = 6, folds: str = "4", loss: str = "squared", **words: Any) -> Record:
    data = draw_loss(loss, n, p)
    words = {"gammas": [0.1, 1.0], "taus": range(min(p, 4) + 1), "threads": 1, **words}
    return cross_validate(data, make_folds(folds, data), loss=loss, **words)


@pytest.mark.parametrize("case", [*(name for name in CASES if name != SLOW_CASE), *slow([SLOW_CASE])])
def test_the_answer_stays_the_same(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    submit, submitted = Executor.submit, Counter[str]()

    def noted(executor: Executor, step: Step) -> None:
        # first trees of all sizes give supports, others the model of a pair that is reported: always on
        is_needed = step.source == FullDataTrees.name and step.node_limit == UNLIMITED
        submitted[step.source] += not is_needed
        submit(executor, step)

    monkeypatch.setattr(Executor, "submit", noted)
    whole = solved(**CASES[case])
    used = [name for name in SWITCHED if submitted[name]]
    assert whole.status == "proved"
    for off in (*(f"-{name}" for name in used), "none"):
        submitted.clear()
        record = solved(**CASES[case], sources=off)
        assert (record.status, record.gamma, record.tau) == ("proved", whole.gamma, whole.tau), off
        assert record.cv_error == pytest.approx(whole.cv_error, rel=1e-9), off
        assert record.support == whole.support, off
        is_off = [name for name in SWITCHED if f"-{name}" in (record.request.sources or ())]
        assert not any(submitted[name] for name in is_off) and is_off == (SWITCHED if off == "none" else [off[1:]])


def test_every_switch_is_a_setting_of_the_plan() -> None:
    assert set(SETTINGS_OF_SOURCES) <= set(SWITCHED)
    names = {setting.name for setting in fields(Plan)}
    assert names.issuperset(name for settings in SETTINGS_OF_SOURCES.values() for name in settings)


def test_names() -> None:
    every = tuple(f"-{name}" for name in SWITCHED)
    assert parse_sources("all") == parse_sources(None) == () and parse_sources("none") == every
    assert parse_sources("-Weighted_Trees, -enclosures") == ("-enclosures", "-weighted trees")
    assert parse_sources(parse_sources("-support fits")) == ("-support fits",)
    assert parse_sources("support-fits") == tuple(name for name in every if name != "-support fits")


def test_the_record_has_the_plan() -> None:
    record = solved(folds="loo", sources="-left-out-trees", time_limit=60.0)
    plan = {setting.name: setting for setting in record.work.plan}
    assert list(plan) == [setting.name for setting in fields(Plan)]
    assert plan["orders"].setting == ("together",) and plan["sources_off"].setting == ("left-out trees",)
    assert plan["leaves_folds_out"].setting is False and plan["leaves_folds_out"].is_default
    assert plan["slice_seconds"].setting == 3.0 and not plan["slice_seconds"].is_default
    assert plan["mio_budget"].setting is None and plan["mio_budget"].is_default
    assert Record.from_json(record.to_json()) == record
    data = draw_loss("squared", 50, 6)
    assert verify(record, data, make_folds("loo", data)).ok
