"""Half deviances of counts in numpy: the formula, intervals of held-out losses, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.row_losses import LOG_LOSS, PoissonLoss, row_loss
from sparsecv_mio.targets import Loss

LOSS, EPS = PoissonLoss(), np.finfo(float).eps


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
    assert -LOSS.falls(t, y) == pytest.approx(((ahead - behind) / (2 * step)).astype(float), rel=1e-5, abs=1e-4)
    assert LOSS.curvatures(t, y, 2.0) == pytest.approx(2.0 * np.exp(t)) and np.all(
        LOSS.sizes(t, y) >= np.abs(LOSS.falls(t, y))
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
        with pytest.raises(BadInput, match="must be counts"):
            LOSS.check(y, intercept=False)
    with pytest.raises(BadInput, match="so the intercept has no finite optimum"):
        LOSS.check(np.zeros(3), intercept=True)
    LOSS.check(np.zeros(3), intercept=False)


def test_a_word_names_its_loss() -> None:
    assert row_loss(Loss.LOGISTIC) is LOG_LOSS and row_loss(Loss.POISSON).name == "poisson"
    assert {loss: row_loss(loss).name for loss in Loss} == {loss: str(loss) for loss in Loss}
    with pytest.raises(BadInput, match="its fits use moments"):
        _ = row_loss(Loss.SQUARED).code
