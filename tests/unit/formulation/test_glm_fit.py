"""Fits of one support beside an enumeration in long double, and the expansion of F around them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from logistic_truth import drawn, harder, least

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.loss_targets import as_counts
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.formulation.task import expand_around_fit, fit_glm
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.problem.moment_fits import refit_moments
from sparsecv_mio.targets import Loss


@pytest.mark.parametrize("seed", range(24))
def test_the_objective_is_an_upper_bound_and_tight(seed: int) -> None:
    problem = (drawn if seed % 2 else harder)(seed, 4).centre_columns()[0]
    for size in range(problem.p + 1):
        for S in combinations(range(problem.p), size):
            fit, truth = fit_glm(problem, S), least(problem.select_columns(np.array(S, dtype=np.int64)))
            assert fit.support == S
            value = float(truth.value)
            assert value - truth.off <= fit.objective <= value + fit.shortfall + truth.off
            assert fit.objective - fit.shortfall <= value + truth.off
            if seed % 2:  # weights of rows that span 16 orders leave more rounding
                assert fit.objective <= value * (1.0 + 1e-9) + truth.off
            assert problem.objective(fit.theta(problem)) == pytest.approx(fit.objective, rel=1e-9, abs=fit.shortfall)


def test_the_expansion_has_the_fit_as_its_own() -> None:
    """Around the fit of a support, the quadratic's fit of that support is the same; it is exact to second order."""
    for seed in (1, 3, 8, 9, 15):
        problem = drawn(seed, 4).centre_columns()[0]
        S = tuple(range(max(problem.p - 1, 1)))
        fit = fit_glm(problem, S)
        around = expand_around_fit(problem, fit)
        size = np.abs(fit.beta).max()
        assert refit_moments(around, S).beta == pytest.approx(fit.beta, rel=1e-5, abs=1e-6 * size)


def test_a_column_that_is_constant_in_the_training_rows_has_no_coefficient() -> None:
    """Under next to no ridge rounding gave it one, which counts where the row that it tells apart is scored."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 2)), rng.poisson(500.0, 40).astype(float)
    X[:, 0] = 0.0
    X[33, 0] = 416.0
    data = standardize(as_counts(Dataset.from_arrays(X, y)), scale="none", loss=Loss.POISSON)
    train = np.setdiff1d(np.arange(40), [33, 34])
    both, alone = (refit_glm(data, train, np.array(S), 1e-4) for S in ([0, 1], [1]))
    assert both.beta[0] == 0.0 and both.beta[1] == pytest.approx(alone.beta[0], rel=1e-12)
    outside = np.array([33, 34])
    (losses, off), (without, _) = both.losses(data, outside), alone.losses(data, outside)
    assert losses == pytest.approx(without, rel=1e-9, abs=1e-12) and np.all(off <= 1e-10)
