"""Intervals of every pair of logistic searches against fits of all supports, by the definition."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import combinations

import numpy as np
import pytest
from logistic_truth import fitted
from runs import change_plan, new_run
from two_class_cases import TwoClassCase, two_class_case

from sparsecv_mio.bounds.smooth_cv_error import bound_smooth_cv_errors
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import inner_folds, make_folds, outer_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.two_classes import as_two_classes, check_training_classes
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.glm_objective import GlmModel
from sparsecv_mio.problem.objective import varying_columns
from sparsecv_mio.search.api import nested_cross_validate
from sparsecv_mio.search.options import Hooks, SearchOptions
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees import glm_tree

TIED = 1e-10  # of an objective
ROUNDING = 1e-7  # of a held-out loss


@lru_cache(maxsize=1 << 14)  # those of one case: every size takes all smaller ones
def model_of(case: TwoClassCase, gamma: float, fold: int, support: tuple[int, ...]) -> GlmModel:
    data, how = case.data, {name: case.how[name] for name in ("scale", "intercept")}
    rows = case.folds.train_rows(fold)
    return fitted(data.X, data.y, support, gamma, rows=rows, weights=data.row_weights, **how)


def truth(case: TwoClassCase, gamma: float, tau: int) -> tuple[float, float]:
    """Ends of the CV error over all supports that are optimal in a fold."""
    data, plan, columns = case.data, case.folds, varying_columns(case.data.X).tolist()
    low = high = 0.0
    for fold in range(plan.k):
        out = plan.scored_rows(fold)
        supports = [s for size in range(min(tau, len(columns)) + 1) for s in combinations(columns, size)]
        models = [model_of(case, gamma, fold, support) for support in supports]
        least = min(model.objective for model in models)
        weights = None if data.row_weights is None else data.row_weights[out]
        losses = [
            (float(model.losses(data.X[out], data.y[out], weights).sum()), float(model.doubt(data.X[out]).sum()) * 4.0)
            for model in models
            if model.objective <= least * (1.0 + TIED) + 1e-300
        ]
        low += min(loss - off for loss, off in losses)
        high += max(loss + off for loss, off in losses)
    total = Scored.of(data, plan).total
    return low / total, high / total


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 48))])
def test_every_interval_holds_the_truth(seed: int) -> None:
    try:
        case = two_class_case(seed)
        record = case.solved(time_limit=20.0, threads=1 + seed % 3)
    except BadInput as error:
        assert "one class" in str(error) or "are all of class" in str(error)
        return
    for row in record.table:
        if len(case.data.names) > 5 and row.tau > 3:
            continue
        low, high = truth(case, row.gamma, row.tau)
        assert row.lower <= high * (1.0 + ROUNDING) and row.upper >= low * (1.0 - ROUNDING), (seed, row, low, high)
        if row.folds_decided == row.folds:
            assert low * (1.0 - ROUNDING) <= row.cv_error <= high * (1.0 + ROUNDING), (seed, row, low, high)
    found = verify(record, case.data)
    assert found.ok, found.failures[:2]


@pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 220))])
def test_every_moment_of_a_search_holds_the_truth(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first steps, and after every portion of trees that are cut into the smallest pieces."""
    for name in ("FEW_SUPPORTS", "LEAPS_WORK", "BROAD"):
        monkeypatch.setattr(glm_tree, name, 1)
    change_plan(monkeypatch, first_node_limit=1, relaxed_stride=1, initial_share=-1.0 if seed % 2 else 0.05)
    try:
        case = two_class_case(seed)
        data = standardize(case.data, case.how["scale"], case.how["intercept"], loss=Loss.LOGISTIC)
        check_training_classes(case.data, case.folds, case.how["intercept"])
    except BadInput as error:
        assert "one class" in str(error) or "are all of class" in str(error)
        return
    grid, asked = Grid.of(case.gammas, case.taus, case.data.p), {"loss": "logistic", "method": "auto"}
    run = new_run(data, case.folds, grid, 600.0, gap=case.how["gap"], threads=1 + seed % 2, **asked)
    per_row = run.context.cv_error_factor
    pairs = [(g, t) for g in range(len(case.gammas)) for t, tau in enumerate(case.taus) if case.data.p <= 5 or tau <= 3]
    ends = {(g, t): truth(case, case.gammas[g], case.taus[t]) for g, t in pairs}

    def check() -> None:
        now = run.state.bounds()
        for pair, (low, high) in ends.items():
            assert now.lower[pair] * per_row <= high * (1.0 + ROUNDING), (seed, pair)
            assert now.upper[pair] * per_row >= low * (1.0 - ROUNDING), (seed, pair)

    run.begin()
    check()
    while not run.is_finished:
        run.step()
        check()


def test_before_any_tree_every_pair_has_a_lower_end_and_the_best_one_an_upper_end() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 8))
    data = Dataset.from_arrays(X, (X[:, :4].sum(axis=1) + rng.logistic(size=200) > 0.0).astype(float))
    columns = standardize(as_two_classes(data), loss=Loss.LOGISTIC)
    grid = Grid.of([0.1, 1.0], list(range(3, 9)), 8)
    run = new_run(columns, make_folds("10", data), grid, 600.0, loss="logistic", method="auto")
    run.begin()
    now = run.state.bounds()
    assert now.lower.min() > 0.5 * now.ceiling
    assert now.ceiling < 1.3 * now.nominal.min()


def test_a_run_repeats_itself() -> None:
    case = two_class_case(0)
    first, again = case.solved(), case.solved()
    assert np.array_equal(first.chosen_folds.error, again.chosen_folds.error)
    counts = [[(one.source, one.problems, one.nodes) for one in record.work.sources] for record in (first, again)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("seed", [6081, 6285, 6293, pytest.param(5222, marks=pytest.mark.slow)])
def test_columns_far_from_0_without_an_intercept(seed: int) -> None:
    """Normal equations lose the digits of what such columns have apart: their fits are taken from the rows."""
    case = two_class_case(seed)
    record = case.solved()
    found = verify(record, case.data)
    assert found.ok, found.failures[:2]
    assert record.status == "proved"


def check_nested(seed: int) -> bool:
    """Compare what nested cross-validation says with a search without each outer fold; False where none could be."""
    try:
        case = two_class_case(seed)
        options = SearchOptions.of(loss="logistic", threads=1, **case.how)
        record = nested_cross_validate(case.data, case.folds, 3, case.gammas, case.taus, options, Hooks())
    except BadInput:
        return False  # one class outside of an outer fold, or too few rows
    data, nested = case.data, record.nested
    assert nested is not None and nested.classes is not None and len(nested.folds) == 3
    outer, low, high, total = outer_folds(3, case.folds, data), 0.0, 0.0, 0.0
    how = {"scale": case.how["scale"], "intercept": case.how["intercept"]}
    for one in nested.folds:
        train, test = outer.train_rows(one.fold), data.take(outer.scored_rows(one.fold))
        training = data.take(train)
        inner = replace(case, data=training, folds=inner_folds(case.folds, train, training))
        chosen = inner.solved()
        assert (one.gamma, one.tau, one.support) == (chosen.gamma, chosen.tau, chosen.support), seed
        columns = [data.names.index(name) for name in one.support]
        model = fitted(training.X, training.y, columns, one.gamma, weights=training.row_weights, **how)
        loss = float(model.losses(test.X, test.y, test.row_weights).sum())
        off = ROUNDING * loss + 4.0 * float(model.doubt(test.X).sum())
        low, high, total = low + loss - off, high + loss + off, total + test.weight_of(slice(0, test.n))
    assert nested.classes.lower <= high / total and low / total <= nested.classes.upper, seed
    assert low / total <= nested.error <= high / total, seed
    assert nested.classes.lower <= nested.error <= nested.classes.upper, seed
    if seed % 3 == 0:
        found = verify(record, data, case.folds)
        assert found.ok, (seed, found.failures[:2])
        assert Record.from_json(record.to_json()) == record
    return True


def test_outer_errors_are_inside_their_intervals() -> None:
    assert sum(check_nested(seed) for seed in range(5)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_hundreds_of_outer_errors(first: int) -> None:
    assert sum(check_nested(seed) for seed in range(first, first + 50)) > 20


def check_bounds(seed: int) -> bool:
    """Intervals without branching hold the truth; False where a fold trains on one class."""
    try:
        case = two_class_case(seed)
        check_training_classes(case.data, case.folds, case.how["intercept"])
    except BadInput:
        return False
    data = standardize(case.data, case.how["scale"], case.how["intercept"], loss=Loss.LOGISTIC)
    table = bound_smooth_cv_errors(data, case.folds, case.gammas, case.taus)
    for g, gamma in enumerate(case.gammas):
        for t, tau in enumerate(case.taus):
            if data.q > 5 and tau > 3:
                continue
            low, high = truth(case, gamma, tau)
            ends = table.cv_interval(g, t)
            assert ends.lower <= high * (1.0 + ROUNDING) and ends.upper >= low * (1.0 - ROUNDING), (seed, gamma, tau)
    return True


def test_intervals_without_branching_hold_the_truth() -> None:
    assert sum(check_bounds(seed) for seed in range(6)) > 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 500, 100))
def test_hundreds_of_intervals_without_branching(first: int) -> None:
    assert sum(check_bounds(seed) for seed in range(first, first + 100)) > 40
