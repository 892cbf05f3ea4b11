"""Everything that is said of best subsets of counts against an enumeration with its own Newton."""

from __future__ import annotations

import numpy as np
import pytest
from count_cases import CountCase, count_case
from logistic_truth import counted, judged
from sklearn.linear_model import PoissonRegressor

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.errors import BadInput
from sparsecv_mio.trees.glm_subsets import GlmSubsets

ROUNDING = 1e-7  # of a held-out loss


@pytest.mark.parametrize("seed", [*range(16), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(16, 24))])
def test_every_claim_about_counts(seed: int) -> None:
    asked, proved = judged(seed, 5, counted)
    assert proved == asked


def checked(seed: int) -> CountCase | None:
    """Check every interval of a search, and that its record is verified; None where a fold has zeros alone."""
    try:
        case = count_case(seed)
        record = case.solved(time_limit=20.0)
    except BadInput as error:
        assert "all have the count 0" in str(error), (seed, str(error))
        return None
    for row in record.table:
        low, high = case.truth(row.gamma, row.tau)
        assert row.lower <= high * (1.0 + ROUNDING) and row.upper >= low * (1.0 - ROUNDING), (seed, row, low, high)
        if row.folds_decided == row.folds:
            assert low * (1.0 - ROUNDING) <= row.cv_error <= high * (1.0 + ROUNDING), (seed, row, low, high)
    found = verify(record, case.data)
    assert found.ok, (seed, found.failures[:2])
    return case


@pytest.mark.parametrize("seed", range(8))
def test_every_interval_of_a_search_holds_the_truth(seed: int) -> None:
    checked(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 400, 50))
def test_hundreds_of_searches(first: int) -> None:
    assert sum(checked(seed) is not None for seed in range(first, first + 50)) > 30


@pytest.mark.parametrize("seed", range(8))
def test_fits_of_all_columns_are_those_of_scikit_learn(seed: int) -> None:
    """Its objective is the mean of half deviances, weighted, and alpha / 2 times the squares."""
    problem = counted(8 * seed)  # plain ones: columns about 1, weights 1
    alpha = problem.gamma / problem.v.sum()
    model = PoissonRegressor(
        alpha=alpha, fit_intercept=problem.intercept, solver="newton-cholesky", tol=1e-12, max_iter=1000
    ).fit(problem.X, problem.y, sample_weight=problem.v)
    fits = GlmSubsets(problem).refit([np.arange(problem.p)])
    assert fits.coefficients[0] == pytest.approx(model.coef_, rel=1e-8, abs=1e-8)
    assert fits.intercept[0] == pytest.approx(model.intercept_, rel=1e-8, abs=1e-8)
