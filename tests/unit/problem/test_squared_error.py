"""Squared error as a row loss: the values of the definition by moments, and the bounds that every row loss states."""

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem import objective
from sparsecv_mio.problem.glm_objective import fit_of_data, weighted_losses
from sparsecv_mio.problem.row_losses import SquaredError
from sparsecv_mio.targets import Loss

LOSS = SquaredError()


@pytest.mark.parametrize("intercept", ["fold", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_by_rows_are_those_by_moments(intercept: str, weighted: bool) -> None:
    rng = np.random.default_rng(5)
    X, y = 3.0 + rng.normal(size=(30, 4)), 2.0 + rng.normal(size=30)
    weights = rng.uniform(0.5, 2.0, 30) if weighted else None
    data = Dataset.from_arrays(X, y)
    data = Dataset.from_arrays(X, y) if weights is None else data_with_weights(data, weights)
    gamma, columns, how = 0.7, [0, 2], {"scale": "length", "intercept": intercept}
    ours = fit_of_data(data, Loss.SQUARED, columns, gamma, **how)
    ridge = objective.ridge_weights(columns, [], gamma)
    theirs = objective.fit(data.X, data.y, columns, ridge, weights=data.row_weights, **how)
    assert ours.beta == pytest.approx(theirs.beta, rel=1e-10)
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-12)
    squares = weighted_losses(data, Loss.SQUARED, ours.predictors(data.X))
    assert squares == pytest.approx((1.0 if weights is None else weights) * (y - ours.predictors(X)) ** 2)


def data_with_weights(data: Dataset, weights: np.ndarray) -> Dataset:
    from sparsecv_mio.data.weights import weighted_rows

    return weighted_rows(data, weights, "w")


def test_bounds_hold_on_their_ranges() -> None:
    rng = np.random.default_rng(1)
    low, y = 3.0 * rng.normal(size=200), 3.0 * rng.normal(size=200)
    high = low + rng.exponential(size=200)
    t = rng.uniform(low, high)
    least, most = LOSS.bound_losses(low, high, y)
    reach = np.maximum(high - t, t - low)
    for share in np.linspace(0.0, 1.0, 9):
        exact = LOSS.losses(low + share * (high - low), y)
        assert np.all(least <= exact * (1.0 + 1e-12)) and np.all(exact <= most * (1.0 + 1e-12))
        assert np.all(np.abs(exact - LOSS.losses(t, y)) <= LOSS.rises(t, y, reach) * (1.0 + 1e-9) + 1e-12)
    step = 1e-6
    slope = (LOSS.losses(t + step, y) - LOSS.losses(t - step, y)) / (2.0 * step)
    assert -LOSS.falls(t, y) == pytest.approx(slope, rel=1e-6, abs=1e-6)
    assert np.all(LOSS.curvatures(t, y, 3.0) == 6.0) and np.all(LOSS.sizes(t, y, 3.0) >= LOSS.curvatures(t, y, 3.0))
    fine = LOSS.losses(t.astype(np.longdouble), y.astype(np.longdouble))
    assert np.all(np.abs(fine - LOSS.losses(t, y)) <= LOSS.roundings(t, y, 0.0, 2.3e-16))
    assert np.all(LOSS.least_curvature(t, low, high, y) == 2.0)


def test_infinite_targets_are_refused() -> None:
    with pytest.raises(BadInput, match="finite targets"):
        LOSS.check(np.array([np.inf]), intercept=False)
