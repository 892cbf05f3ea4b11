"""Lists, common subsets and averages of smooth losses against the definition, and altered ones."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import problems
import pytest
from glm_cases import count_case, two_class_case
from glm_claims import of_common, of_near
from logistic_truth import fitted

from sparsecv_mio.certificate.parts import NOT_AVERAGED
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_counts
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.near.glm_values import make_support_values
from sparsecv_mio.near.near_optimal import near_optimal
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.search.answer.average_fits import SmoothAverageFits
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.targets import Loss


def test_supports_that_normal_equations_cannot_value_are_valued_from_the_rows() -> None:
    """Long doubles leave some of the first problem's fits open, so that its table is compared with the definition."""
    case = two_class_case(363)
    record = best_common_subset(case.data, case.folds, gammas=case.gammas, taus=case.taus, loss="logistic", **case.how)
    how, data = {name: case.how[name] for name in ("scale", "intercept")}, case.data
    w = np.ones(data.n) if data.row_weights is None else data.row_weights
    for row in record.table:
        support, lost = [data.names.index(name) for name in row.support], 0.0
        for fold in range(case.folds.k):
            out = case.folds.scored_rows(fold)
            model = fitted(data.X, data.y, support, row.gamma, rows=case.folds.train_rows(fold), weights=w, **how)
            lost += float(model.losses(data.X[out], data.y[out], w[out]).sum())
        assert row.cv_error == pytest.approx(lost / case.truth.sizes.sum(), rel=1e-7)
    case = two_class_case(41)
    how = {name: case.how[name] for name in ("scale", "intercept")}
    record = near_optimal(
        case.data, case.folds, gamma=case.gammas[0], taus=case.taus, loss="logistic", within=0.1, by="cv", **how
    )  # fmt: skip
    assert [*of_near(case.truth, record, 0.1)] == [] and verify(record, case.data, case.folds).ok


def test_of_equal_columns_the_table_has_that_of_the_model() -> None:
    """`verify` refused it: the second one was found, the first is reported."""
    case = two_class_case(70005)
    record = best_common_subset(case.data, case.folds, gammas=case.gammas, taus=case.taus, loss="logistic", **case.how)
    assert [*of_common(case.truth, record, case.how["gap"])] == []
    report = verify(record, case.data, case.folds)
    assert report.ok, report.failures


@pytest.mark.parametrize("folds", ["loo", "30", "4"])
def test_supports_beyond_the_limit_need_no_more_than_one_step(folds: str) -> None:
    """Their values lie above it; others are those of fits without each fold, to the digits that are said."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 4))
    counts = as_counts(Dataset.from_arrays(X, rng.poisson(np.exp(0.5 + 0.6 * X[:, 0] - 0.4 * X[:, 1])).astype(float)))
    data, plan = standardize(counts, "length", "fold", loss=Loss.POISSON), make_folds(folds, counts)
    at = make_support_values(data, plan, "a test", 4)(0.5)
    supports = [np.array(some) for size in (1, 2, 3) for some in combinations(range(4), size)]
    truth = []
    for some in supports:
        fits = [refit_glm(data, plan.train_rows(fold), some, 0.5) for fold in range(plan.k)]
        truth.append(sum(fit.held_out(data, plan.scored_rows(fold))[0] for fold, fit in enumerate(fits)))
    for limit in (np.inf, float(np.median(truth)) / 60.0):
        values, errors = at.values(supports, limit)
        for value, error, right in zip(values, errors, np.array(truth) / 60.0, strict=True):
            assert value - error <= right * (1.0 + 1e-12) and error <= 1e-7 * right
            assert right <= (value + error) * (1.0 + 1e-12) if right <= limit else value - error > limit


@pytest.mark.parametrize("spec", ["5", "loo"])
def test_values_that_the_time_was_over_for_are_bounds(spec: str) -> None:
    data = as_counts(problems.counts(4, 30, 3, {0: 1.0}))
    values = make_support_values(standardize(data, loss=Loss.POISSON), make_folds(spec, data), "a test", 3)(0.1)
    supports = [np.array([0]), np.array([0, 2])]
    true, off = values.values(supports)
    assert np.isfinite(off).all()
    for looks in range(4):
        seen = iter(range(looks))
        values.is_expired = partial(lambda left: next(left, None) is None, seen)
        value, error = values.values(supports)
        assert (value <= true + off).all() and (value + error >= true - off).all()
        assert looks or np.isinf(error).all()


def test_an_altered_average_is_refused() -> None:
    """Weights, distances, the model and its error within folds, each altered alone."""
    case = count_case(15, 4)
    record = case.solved(gap=0.0, model="average", own_error=True)
    average = record.average
    assert average is not None and average.within_folds is not None and verify(record, case.data).ok
    first, model, within = average.pairs[0], average.model, average.within_folds
    altered = {
        "weight": replace(average, pairs=(replace(first, weight=first.weight + 1e-3), *average.pairs[1:])),
        "distance": replace(average, pairs=(replace(first, distance=first.distance + 1e-2), *average.pairs[1:])),
        "missed": replace(average, missed=average.missed * 1.01 + 1e-9),
        "intercept": replace(average, model=replace(model, intercept=model.intercept + 1e-4)),
        "objective": replace(average, model=replace(model, objective=model.objective * 1.01 + 1e-6)),
        "error": replace(average, within_folds=replace(within, error=within.error * 1.001)),
    }
    for name, other in altered.items():
        report = verify(replace(record, average=other), case.data)
        assert any(failure.field.startswith("average") for failure in report.failures), (name, report.failures)


def test_pairs_of_one_model_have_one_distance_with_single_rows_left_out() -> None:
    rng = np.random.default_rng(2)
    X, some = rng.normal(size=(30, 3)), rng.random(30) < 0.15
    y = some * rng.integers(1, 9, 30)
    y[:2] = 1, 2
    data = Dataset.from_arrays(X, y.astype(float))
    how: dict[str, Any] = {"loss": "poisson", "scale": "none", "model": "average", "gap": 0.01, "threads": 1}
    record = cross_validate(data, "loo", gammas=[0.01, 10.0], taus=[0, 1, 3], **how)
    assert record.average is not None and verify(record, data).ok
    assert [pair.distance for pair in record.average.pairs if pair.tau == 0] == [0.0, 0.0]  # one was 0.96


def test_without_time_for_the_losses_of_single_rows_there_is_no_average(monkeypatch: pytest.MonkeyPatch) -> None:
    data = problems.counts(3, 40, 3, {0: 0.5})
    by_rows = SmoothAverageFits.losses_of_single_rows
    monkeypatch.setattr(SmoothAverageFits, "losses_of_single_rows", lambda *asked: by_rows(*asked[:-1], lambda: True))
    record = cross_validate(data, "loo", gammas=[0.1, 1.0], taus=[1, 2], loss="poisson", model="average", threads=1)
    assert record.average is None and record.warnings[-1] == NOT_AVERAGED and verify(record, data).ok


def test_without_time_there_is_no_average_of_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    data = problems.counts(3, 40, 3, {0: 0.5})
    of_folds = SmoothAverageFits.averages_of_folds
    monkeypatch.setattr(SmoothAverageFits, "averages_of_folds", lambda *asked: of_folds(*asked[:-1], lambda: True))
    how: dict[str, Any] = {"loss": "poisson", "model": "average", "own_error": True, "threads": 1}
    record = cross_validate(data, "loo", gammas=[0.1, 1.0], taus=[1, 2], **how)
    assert record.average is not None and record.average.within_folds is None and verify(record, data).ok
