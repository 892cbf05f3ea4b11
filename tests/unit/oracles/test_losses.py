"""Losses against finite differences, and their conjugates against a search."""

from __future__ import annotations

import numpy as np
import pytest
from conjugates import conjugate

from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.glru import (
    ConjugateLoss,
    Huber,
    Logistic,
    Regularizer,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    make_loss,
    make_regularizer,
)
from sparsecv_mio.oracles.losses import Poisson, SmoothLoss

LOSSES = (Squared(1.0), Huber(0.7), Huber(2.0), SquaredHinge(), SmoothedHinge(0.5), SmoothedHinge(1.5), Logistic())
GRID = np.linspace(-60.0, 60.0, 240_001)


def responses(loss: SmoothLoss) -> tuple[float, ...]:
    return (-1.0, 1.0) if loss.labels else (-1.3, 0.0, 2.0)


def inside(loss: ConjugateLoss, y: float) -> np.ndarray:
    low, high = (float(end[0]) for end in loss.dual_range(np.array([y])))
    return np.linspace(max(low, -2.5), min(high, 2.5), 21)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_conjugate_is_the_supremum(loss: ConjugateLoss) -> None:
    for y in responses(loss):
        for alpha in inside(loss, y):
            best = np.max(-alpha * GRID - loss.value(GRID, np.full_like(GRID, y)))
            found = float(conjugate(loss, np.array([-alpha]), np.array([y]))[0])
            # the grid's end cuts off the supremum of the logistic loss where alpha is at the end of its range
            assert found == pytest.approx(best, abs=2e-6 if 0.0 < abs(alpha) < 1.0 else 1e-5)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_conjugate_is_infinite_outside_of_the_dual_range_and_zero_at_zero(loss: ConjugateLoss) -> None:
    for y in responses(loss):
        one = np.array([y])
        low, high = loss.dual_range(one)
        assert conjugate(loss, np.zeros(1), one)[0] == 0.0
        for end, beyond in ((low, -1e-3), (high, 1e-3)):
            if np.isfinite(end[0]):
                assert np.isfinite(conjugate(loss, -end, one)[0])
                assert conjugate(loss, -(end + beyond), one)[0] == np.inf
                assert loss.residual(np.zeros(1), end + beyond, one)[0] == np.inf


@pytest.mark.parametrize("loss", [*LOSSES, Squared(2.0), Poisson()], ids=repr)
def test_derivative_and_curvature(loss: SmoothLoss) -> None:
    t = np.linspace(-4.0, 4.0, 161) + 0.0137
    step = 1e-6
    for y in (0.0, 1.0, 3.0) if isinstance(loss, Poisson) else responses(loss):
        response = np.full_like(t, y)
        slope = (loss.value(t + step, response) - loss.value(t - step, response)) / (2 * step)
        assert np.allclose(loss.derivative(t, response), slope, atol=1e-8)
        bend = (loss.derivative(t + step, response) - loss.derivative(t - step, response)) / (2 * step)
        assert np.allclose(loss.curvature(t, response), bend, atol=1e-5)
        assert np.all(loss.curvature(t, response) <= loss.smoothness + 1e-15)
        if isinstance(loss, ConjugateLoss):
            low, high = loss.dual_range(response)
            assert np.all((-loss.derivative(t, response) >= low) & (-loss.derivative(t, response) <= high))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_residual_is_the_fenchel_young_sum(loss: ConjugateLoss) -> None:
    t = np.linspace(-4.0, 4.0, 33)
    for y in responses(loss):
        response = np.full_like(t, y)
        for alpha in inside(loss, y):
            a = np.full_like(t, alpha)
            plain = loss.value(t, response) + conjugate(loss, -a, response) + a * t
            assert np.allclose(loss.residual(t, a, response), plain, atol=1e-12)
        assert np.all(loss.residual(t, -loss.derivative(t, response), response) <= 1e-30)


def test_a_small_logistic_residual_keeps_its_digits() -> None:
    loss, y = Logistic(), np.ones(1)
    for t in (-8.0, 0.3, 6.0):
        share = -float(loss.derivative(np.array([t]), y)[0])
        for step in (1e-9, 1e-6, 0.9e-3, 1.1e-3):
            d = step * share * (1 - share)
            exact = 0.5 * d**2 / (share * (1 - share))
            assert float(loss.residual(np.array([t]), np.array([share + d]), y)[0]) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_ray_bounds_the_conjugate_along_shrinking(loss: ConjugateLoss) -> None:
    for y in responses(loss):
        for alpha in inside(loss, y)[1:-1]:
            a, response = np.array([alpha]), np.array([y])
            slope, curvature = loss.ray(a, response)
            at = lambda s, a=a, r=response: float(conjugate(loss, -s * a, r)[0])  # noqa: E731
            assert float(slope[0]) == pytest.approx((at(1.0) - at(1.0 - 1e-7)) / 1e-7, abs=1e-5)
            for s in (0.999, 0.9, 0.5, 0.1):
                bound = at(1.0) + (s - 1.0) * float(slope[0]) + 0.5 * (1.0 - s) ** 2 * float(curvature[0]) / s
                assert at(s) <= bound + 1e-12


@pytest.mark.parametrize(
    "call",
    [
        lambda: make_loss("hinge"),
        lambda: make_loss("squared", 1.0),
        lambda: Huber(0.0),
        lambda: SmoothedHinge(-1.0),
        lambda: Logistic().check(np.array([0.0, 1.0])),
        lambda: Regularizer(-1.0),
        lambda: Regularizer(0.0, 0.0),
        lambda: make_regularizer("lasso", 1.0),
        lambda: make_regularizer("ridge", 0.0),
        lambda: make_regularizer("elastic_net", 1.0),
        lambda: make_regularizer("l1", 1.0, l1=2.0),
    ],
)
def test_wrong_words_and_numbers_are_one_line(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_logistic_is_stable_far_out() -> None:
    far = np.array([-800.0, 800.0])
    assert np.isfinite(Logistic().value(far, np.ones(2))).all()
    assert np.isfinite(Logistic().derivative(far, -np.ones(2))).all()
