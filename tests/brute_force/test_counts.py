"""Everything that is said of best subsets of counts against an enumeration with its own Newton."""

from __future__ import annotations

import numpy as np
import pytest
from logistic_truth import counted, judged
from sklearn.linear_model import PoissonRegressor

from sparsecv_mio.trees.glm_subsets import GlmSubsets


@pytest.mark.parametrize("seed", [*range(16), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(16, 24))])
def test_every_claim_about_counts(seed: int) -> None:
    asked, proved = judged(seed, 5, counted)
    assert proved == asked


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
