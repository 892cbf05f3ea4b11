"""Near-optimal lists of two classes against fits of all supports, by the definition."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
import problems
import pytest
from logistic_truth import fitted
from two_class_cases import TwoClassCase, two_class_case

from sparsecv_mio.certificate.fit_records import CommonRecord, NearRecord
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.counts import as_counts
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.near.glm_values import GlmValues
from sparsecv_mio.near.near_optimal import UNKNOWN, near_optimal
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.problem.objective import varying_columns
from sparsecv_mio.targets import Loss

ROUNDING = 1e-7  # of a value, as `verify` allows


def how_of(case: TwoClassCase) -> dict[str, str]:
    return {name: case.how[name] for name in ("scale", "intercept")}


def values_of(case: TwoClassCase, gamma: float, tau: int, by: str) -> dict[tuple[str, ...], float]:
    """Values of all supports of a size, by their features."""
    data, plan, columns = case.data, case.folds, varying_columns(case.data.X).tolist()
    how, values = how_of(case) | {"weights": data.row_weights}, {}
    for support in combinations(columns, min(tau, len(columns))):
        if by == "objective":
            value = fitted(data.X, data.y, support, gamma, **how).objective
        else:
            value = total = 0.0
            for fold in range(plan.k):
                model = fitted(data.X, data.y, support, gamma, rows=plan.train_rows(fold), **how)
                rows = plan.scored_rows(fold)
                weights = None if data.row_weights is None else data.row_weights[rows]
                value += float(model.losses(data.X[rows], data.y[rows], weights).sum())
                total += len(rows) if weights is None else float(weights.sum())
            value /= total
        values[tuple(data.names[j] for j in support)] = value
    return values


def check_near(seed: int) -> int:
    """Compare the lists of a problem with all supports; how many models they hold."""
    try:
        case = two_class_case(seed)
    except BadInput:
        return 0
    rng = np.random.default_rng([32, seed])
    within = float(rng.choice([0.0, 0.01, 0.1, 1.0, 20.0]))
    most = None if rng.random() < 0.6 else int(rng.integers(1, 12))
    gamma, by = case.gammas[0], str(rng.choice(["objective", "objective", "cv"]))
    try:
        record = near_optimal(
            case.data, case.folds, gamma=gamma, taus=case.taus, loss="logistic", within=within, most=most, by=by,
            **how_of(case),
        )  # fmt: skip
    except BadInput:
        assert by == "cv"  # a fold trains on one class
        return 0
    unsure = UNKNOWN in record.warnings
    assert record.by == by and record.status == ("limit" if unsure else "proved"), seed
    for size in record.sizes:
        truth = values_of(case, gamma, size.tau, by)
        listed = {model.support: model.value for model in record.models if model.tau == size.tau}
        least = min(truth.values())
        room = ROUNDING * least * (2.0 + within)
        assert size.lower <= least + room, seed
        if unsure and not size.complete:
            continue
        assert abs(size.best - least) <= room and abs(size.threshold - (1.0 + within) * least) <= room, seed
        assert set(listed) <= set(truth) and len(listed) == size.models, seed
        assert all(abs(value - truth[support]) <= room * (1.0 + within) for support, value in listed.items()), seed
        assert size.complete or (most is not None and size.models == most), seed
        missing = [s for s, value in truth.items() if value < size.complete_to - room and s not in listed]
        assert not missing and max(listed.values()) <= size.threshold + room, (seed, missing)
        certain = [s for s, value in listed.items() if size.complete or value < size.complete_to]
        assert not certain or set(size.always) == set.intersection(*map(set, certain)), seed
        assert not certain or not set(size.never) & set().union(*certain), seed
    if seed % 5 == 0:
        assert NearRecord.from_json(record.to_json()) == record
        report = verify(record, case.data, case.folds if by == "cv" else None)
        assert report.ok, (seed, report.failures)
    return len(record.models)


def check_common(seed: int) -> bool:
    """Compare the best common subset of a problem with all supports at all gammas; whether there was one."""
    try:
        case = two_class_case(seed)
        record = best_common_subset(
            case.data, case.folds, gammas=case.gammas, taus=case.taus, loss="logistic", gap=case.how["gap"],
            **how_of(case),
        )  # fmt: skip
    except BadInput:
        return False
    unsure, least = UNKNOWN in record.warnings, np.inf
    assert record.status == "proved" or unsure, seed
    for row in record.table:
        truth = values_of(case, row.gamma, row.tau, "cv")
        mine = min(truth.values())
        least = min(least, mine)
        assert row.lower <= mine * (1.0 + ROUNDING), (seed, row, mine)
        assert unsure or abs(row.cv_error - truth[row.support]) <= ROUNDING * truth[row.support], (seed, row)
    assert record.lower <= least * (1.0 + ROUNDING) and least <= record.upper * (1.0 + ROUNDING), seed
    gap = case.how["gap"]
    assert unsure or record.cv_error <= least * (1.0 + gap / (1.0 - gap) + ROUNDING), seed
    if seed % 5 == 0:
        assert CommonRecord.from_json(record.to_json()) == record
        report = verify(record, case.data, case.folds)
        assert report.ok, (seed, report.failures)
    return True


def test_common_subsets_are_those_of_enumeration() -> None:
    assert sum(check_common(seed) for seed in range(8)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_hundreds_of_common_subsets(first: int) -> None:
    assert sum(check_common(seed) for seed in range(first, first + 50)) > 20


def test_lists_are_those_of_enumeration() -> None:
    assert sum(check_near(seed) for seed in range(12)) > 30


def test_supports_that_normal_equations_cannot_value_are_valued_from_the_rows() -> None:
    assert check_common(363) and check_near(41)


def test_of_equal_columns_the_table_has_that_of_the_model() -> None:
    assert check_common(70005)  # `verify` refused it: the second one was found, the first is reported


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 600, 100))
def test_hundreds_of_lists(first: int) -> None:
    assert sum(check_near(seed) for seed in range(first, first + 100)) > 200


@pytest.mark.parametrize("folds", ["loo", "30", "4"])
def test_supports_beyond_the_limit_need_no_more_than_one_step(folds: str) -> None:
    """Their values lie above it; others are those of fits without each fold, to the digits that are said."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 4))
    counts = as_counts(Dataset.from_arrays(X, rng.poisson(np.exp(0.5 + 0.6 * X[:, 0] - 0.4 * X[:, 1])).astype(float)))
    data, plan = standardize(counts, "length", "fold", loss=Loss.POISSON), make_folds(folds, counts)
    at = GlmValues(data, plan).with_gamma(0.5, 4)
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
    values = GlmValues(standardize(data, loss=Loss.POISSON), make_folds(spec, data)).with_gamma(0.1, 3)
    supports = [np.array([0]), np.array([0, 2])]
    true, off = values.values(supports)
    assert np.isfinite(off).all()
    for looks in range(4):
        seen = iter(range(looks))
        values.expired = partial(lambda left: next(left, None) is None, seen)
        value, error = values.values(supports)
        assert (value <= true + off).all() and (value + error >= true - off).all()
        assert looks or np.isinf(error).all()
