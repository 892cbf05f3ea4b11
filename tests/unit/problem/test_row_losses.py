"""Losses of rows: their formulas, the bounds that every row loss states, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem import objective
from sparsecv_mio.problem.glm_objective import fit_of_data, weighted_losses
from sparsecv_mio.problem.row_losses import LOG_LOSS, PoissonLoss, SquaredError, row_loss
from sparsecv_mio.targets import Loss

LOSS, SQUARES = PoissonLoss(), SquaredError()


def drawn(seed: int, n: int = 2_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-6, 8, n), np.where(rng.random(n) < 0.3, 0.0, 10.0 ** rng.uniform(-3, 4, n))


def plain(t: np.ndarray, y: np.ndarray) -> np.ndarray:
    t, y = t.astype(np.longdouble), y.astype(np.longdouble)
    return np.exp(t) - y * t - (y - y * np.log(np.where(y > 0.0, y, 1.0)))


def test_the_loss_is_half_the_deviance() -> None:
    from sklearn.metrics import mean_poisson_deviance

    t, y = drawn(1)
    exact = plain(t, y)
    assert LOSS.losses(t, y) == pytest.approx(exact.astype(float), rel=1e-10, abs=1e-8)
    assert np.all(np.abs(LOSS.losses(t.astype(np.longdouble), y) - exact) <= 1e-13 * (1.0 + y + np.exp(t)))
    assert float(LOSS.losses(t, y).mean()) == pytest.approx(mean_poisson_deviance(y, np.exp(t)) / 2.0, rel=1e-12)


def test_exposures_are_weights_and_rates() -> None:
    rng = np.random.default_rng(2)
    counts, e, w, t = (
        rng.poisson(3.0, 50).astype(float),
        rng.uniform(0.1, 9.0, 50),
        rng.uniform(0.5, 2.0, 50),
        rng.normal(size=50),
    )
    y, v = LOSS.encode_targets(counts, w, e)
    assert v * LOSS.losses(t, y) == pytest.approx(w * LOSS.losses(t + np.log(e), counts), rel=1e-11, abs=1e-12)
    assert LOSS.encode_targets(counts)[0] is counts and np.all(LOSS.encode_targets(counts)[1] == 1.0)
    assert LOSS.origin(y, v) == pytest.approx(np.log((w * counts).sum() / (w * e).sum()))


def test_slopes_and_curvatures_are_derivatives() -> None:
    t, y = drawn(3)
    step = 1e-5
    ahead, behind = (plain(t + sign * step, y) for sign in (1.0, -1.0))
    assert -LOSS.negative_gradient(t, y) == pytest.approx(
        ((ahead - behind) / (2 * step)).astype(float), rel=1e-5, abs=1e-4
    )
    assert LOSS.curvatures(t, y, 2.0) == pytest.approx(2.0 * np.exp(t)) and np.all(
        LOSS.gradient_scale(t, y) >= np.abs(LOSS.negative_gradient(t, y))
    )


def test_held_out_losses_lie_between_their_ends() -> None:
    rng = np.random.default_rng(4)
    t, y = drawn(5)
    low, high = t - rng.uniform(0, 2, len(t)), t + rng.uniform(0, 2, len(t))
    least, most = LOSS.bound_losses(low, high, y)
    for share in np.linspace(0.0, 1.0, 9):
        exact = plain(low + share * (high - low), y)
        assert np.all(least * (1.0 - 1e-14) <= exact) and np.all(exact <= most * (1.0 + 1e-14))
        reach = np.maximum(high - t, t - low)
        assert np.all(np.abs(exact - plain(t, y)) <= LOSS.rises(t, y, reach) * (1.0 + 1e-9) + 1e-9)
    low, high, y = np.array([-np.inf, -800.0, 0.0]), np.array([np.inf, 0.0, 900.0]), np.array([2.0, 0.0, 1.0])
    least, most = LOSS.bound_losses(low, high, y)
    assert least.tolist() == [0.0, 0.0, 0.0] and most[0] == most[2] == np.inf and 1.0 <= most[1] < 1.0 + 1e-12
    assert np.all(LOSS.bound_losses(np.full(3, 800.0), np.full(3, 1e9), y)[0] >= 1e300)  # losses there are no floats


def test_what_has_no_fit_is_refused() -> None:
    for y in (np.array([-1.0, 2.0]), np.array([np.nan, 1.0])):
        with pytest.raises(BadInput, match="must contain counts"):
            LOSS.check(y, intercept=False)
    with pytest.raises(BadInput, match="so the intercept has no finite optimum"):
        LOSS.check(np.zeros(3), intercept=True)
    LOSS.check(np.zeros(3), intercept=False)


def test_a_word_names_its_loss() -> None:
    assert row_loss(Loss.LOGISTIC) is LOG_LOSS and row_loss(Loss.POISSON).name == "poisson"
    sums = [loss for loss in Loss if loss.target.is_sum_over_rows]
    assert {loss: row_loss(loss).name for loss in sums} == {loss: str(loss) for loss in sums}
    for loss in set(Loss).difference(sums):
        with pytest.raises(BadInput, match=f"loss {loss}: not supported here, because single rows have no loss"):
            row_loss(loss)
    with pytest.raises(BadInput, match="its fits use moments"):
        _ = row_loss(Loss.SQUARED).find_code(np.ones(1))


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
    least, most = SQUARES.bound_losses(low, high, y)
    reach = np.maximum(high - t, t - low)
    for share in np.linspace(0.0, 1.0, 9):
        exact = SQUARES.losses(low + share * (high - low), y)
        assert np.all(least <= exact * (1.0 + 1e-12)) and np.all(exact <= most * (1.0 + 1e-12))
        assert np.all(np.abs(exact - SQUARES.losses(t, y)) <= SQUARES.rises(t, y, reach) * (1.0 + 1e-9) + 1e-12)
    step = 1e-6
    slope = (SQUARES.losses(t + step, y) - SQUARES.losses(t - step, y)) / (2.0 * step)
    assert -SQUARES.negative_gradient(t, y) == pytest.approx(slope, rel=1e-6, abs=1e-6)
    assert np.all(SQUARES.curvatures(t, y, 3.0) == 6.0) and np.all(
        SQUARES.gradient_scale(t, y, 3.0) >= SQUARES.curvatures(t, y, 3.0)
    )
    fine = SQUARES.losses(t.astype(np.longdouble), y.astype(np.longdouble))
    assert np.all(np.abs(fine - SQUARES.losses(t, y)) <= SQUARES.roundings(t, y, 0.0, 2.3e-16))
    assert np.all(SQUARES.least_curvature(t, low, high, y) == 2.0)


def test_infinite_targets_are_refused() -> None:
    with pytest.raises(BadInput, match="finite targets"):
        SQUARES.check(np.array([np.inf]), intercept=False)
