"""Near-optimal lists of two classes against fits of all supports, by the definition."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np
import problems
import pytest
from glm_cases import two_class_case
from glm_claims import of_common, of_near
from logistic_truth import fitted

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.counts import as_counts
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.near.glm_values import GlmValues
from sparsecv_mio.near.near_optimal import near_optimal
from sparsecv_mio.problem.glm_refit import refit_glm
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
