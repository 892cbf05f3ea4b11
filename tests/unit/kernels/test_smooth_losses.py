"""Compiled losses of rows by their codes, against numpy and long double."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels.smooth_losses import (
    LOGISTIC,
    Response,
    State,
    add_shift_roundings,
    curvatures,
    fill,
    fill_shifted,
    half_deviance_roundings,
    half_deviances,
    log_loss_roundings,
    log_losses,
    margin_sign,
    multiply_by_signs,
    new_state,
    roundings,
)
from sparsecv_mio.problem.row_losses import LOG_LOSS, PoissonLoss, RowLoss

N, LOSS = 4_000, PoissonLoss()


SIGNS = np.where(np.arange(300) % 3 == 0, -1.0, 1.0)
SHIFTED = SIGNS * np.exp(np.random.default_rng(2).uniform(-20.0, 20.0, 300))
COUNTS = np.random.default_rng(3).poisson(1.0, 300).astype(float)


@pytest.mark.parametrize(
    ("loss", "y"),
    [(LOG_LOSS, SIGNS), (LOG_LOSS, SHIFTED), (PoissonLoss(), COUNTS)],
    ids=["classes", "offsets", "counts"],
)
def test_a_code_names_the_same_loss(loss: RowLoss, y: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    m, v, n = rng.normal(size=300), rng.uniform(0.5, 2.0, 300), 300
    response, state, out = Response(v, y, loss.find_code(y)), new_state(n), np.empty(n)
    state.margins[:] = m
    fill(response, m, state)
    assert state.losses == pytest.approx(loss.losses(m, y), rel=1e-12, abs=1e-14)
    assert state.falls == pytest.approx(loss.negative_gradient(m, y), rel=1e-12, abs=1e-14)
    curvatures(response, state, out)
    assert out == pytest.approx(loss.curvatures(m, y, v), rel=1e-12)
    total = roundings(response, state, np.full(n, 1e-10), out)
    assert [margin_sign(response, i) for i in range(n)] == loss.signs(y).tolist()
    signed = m.copy()
    multiply_by_signs(response, signed)
    assert signed.tolist() == (m * loss.signs(y)).tolist()
    assert 0.0 < total <= 2.0 * float(v @ loss.roundings(m, y, 1e-10, 1e-15)) and np.all(out < 1e-6)


def test_losses_with_offsets_are_within_their_roundings() -> None:
    m, state, off = np.random.default_rng(4).uniform(-30.0, 30.0, 300), new_state(300), np.zeros(300)
    state.margins[:] = m
    fill_shifted(m, SHIFTED, state)
    shifted = m.astype(np.longdouble) + np.log(np.abs(SHIFTED).astype(np.longdouble))
    add_shift_roundings(SHIFTED, state, off)
    fall, loss = 1 / (1 + np.exp(shifted)), np.maximum(-shifted, 0) + np.log1p(np.exp(-np.abs(shifted)))
    eps = np.finfo(float).eps
    assert np.all((off > 0.0) & (off < 300.0 * eps))
    assert np.all(np.abs(state.losses - loss) <= fall * off + 8.0 * eps * loss)
    assert np.all(np.abs(state.falls - fall) <= fall * (off + 8.0 * eps))
    assert state.others == pytest.approx(np.asarray(1 - fall, dtype=float), abs=1e-13)


def test_an_unknown_code_is_refused() -> None:
    response, state, out = Response(np.ones(3), np.ones(3), 7), new_state(3), np.empty(3)
    for ask in (
        lambda: fill(response, np.zeros(3), state),
        lambda: curvatures(response, state, out),
        lambda: roundings(response, state, np.zeros(3), out),
    ):
        with pytest.raises(ValueError, match="no loss of this code"):
            ask()


def test_shares_and_log_losses_are_within_a_few_roundings() -> None:
    rng = np.random.default_rng(5)
    parts = [rng.uniform(-60, 60, 20_000), 10.0 ** rng.uniform(-300, 2.8, 2_000), np.array([0.0, -0.0, 690.0, -1e4])]
    m = np.concatenate([*parts, -parts[1]])
    shares, others, losses, rest = (np.empty(len(m)) for _ in range(4))
    log_losses(m, shares, others, losses, rest, np.empty(len(m), dtype=np.int64))
    long = m.astype(np.longdouble)
    exact = 1 / (1 + np.exp(long)), 1 / (1 + np.exp(-long)), np.maximum(-long, 0) + np.log1p(np.exp(-np.abs(long)))
    for own, true in zip((shares, others, losses), exact, strict=True):
        off = np.abs(own - true) / np.maximum(true, 1e-280)
        assert off.max() < 6 * np.finfo(float).eps


def test_errors_of_margins_are_within_the_roundings_of_log_losses() -> None:
    rng = np.random.default_rng(6)
    m, n = rng.uniform(-30, 30, 500), 500
    v, off, out, state = rng.uniform(0.1, 3.0, n), 10.0 ** rng.uniform(-12, -1, n), np.empty(n), new_state(n)
    fill(Response(v, np.ones(n), LOGISTIC), m, state)
    total = log_loss_roundings(v, state, off, out)
    moved = [np.abs(LOG_LOSS.losses(m + sign * off, np.ones(n)) - state.losses) for sign in (-1.0, 1.0)]
    slopes = [np.abs(LOG_LOSS.negative_gradient(m + sign * off, np.ones(n)) - state.falls) for sign in (-1.0, 1.0)]
    assert float(v @ np.maximum(*moved)) <= total and np.all(v * np.maximum(*slopes) <= out)


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, State]:
    """Counts and rates from 0 to 1e6 with predictors near them and far away, and what the kernel says of them."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(N) < 0.3, 0.0, 10.0 ** rng.uniform(-6, 6, N))
    near = np.log(np.where(y > 0.0, y, 1.0)) + rng.normal(size=N) * 10.0 ** rng.uniform(-9, 0.5, N)
    m, state = np.where(rng.random(N) < 0.7, near, rng.uniform(-40, 20, N)), new_state(N)
    state.margins[:] = m
    half_deviances(m, y, state.falls, state.others, state.losses)
    return m, y, state


def exact(m: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Falls, means and losses in long double."""
    long, positive = m.astype(np.longdouble), np.where(y > 0.0, y, 1.0).astype(np.longdouble)
    u = long - np.log(positive)
    loss = np.where(y > 0.0, positive * (np.expm1(u) - u), np.exp(long))
    return np.where(y > 0.0, -positive * np.expm1(u), -np.exp(long)), np.exp(long), loss


def test_half_deviances_are_as_near_as_their_roundings_say() -> None:
    m, y, state = drawn(1)
    falls, means, losses = exact(m, y)
    off, out = np.zeros(N), np.empty(N)
    v = np.ones(1)
    assert np.all(np.abs(state.others - means) <= 100 * np.finfo(float).eps * means)
    whole = half_deviance_roundings(np.ones(N), y, state, off, out)
    assert float(np.abs(state.losses - losses).sum()) <= whole and np.all(np.abs(state.falls - falls) <= out)
    for row in range(200):
        here = State(*(part[row : row + 1] for part in state))
        alone = half_deviance_roundings(v, y[row : row + 1], here, np.zeros(1), np.empty(1))
        assert abs(state.losses[row] - losses[row]) <= alone
    twins = LOSS.negative_gradient(m, y), LOSS.curvatures(m, y), LOSS.losses(m, y)
    for own, twin, room in zip((state.falls, state.others, state.losses), twins, (1e-12, 1e-12, 1e-9), strict=True):
        assert own == pytest.approx(twin, rel=room, abs=1e-11)


def test_errors_of_margins_are_within_the_roundings_of_half_deviances() -> None:
    m, y, state = drawn(2)
    off, out = 10.0 ** np.random.default_rng(3).uniform(-14, -0.5, N), np.empty(N)
    before = off.copy()
    total = half_deviance_roundings(np.ones(N), y, state, off, out)
    assert np.all(off > before)
    moved = [np.abs(exact(m + sign * before, y)[2] - state.losses) for sign in (-1.0, 1.0)]
    slopes = [np.abs(exact(m + sign * before, y)[0] - state.falls) for sign in (-1.0, 1.0)]
    assert float(np.maximum(*moved).sum()) <= total and np.all(np.maximum(*slopes) <= out)
    assert np.all(np.maximum(*moved) <= LOSS.roundings(m, y, before, np.finfo(float).eps))


def test_curvatures_are_below_every_ratio_of_the_range() -> None:
    m, y, _ = drawn(4)
    rng = np.random.default_rng(5)
    first = m + rng.normal(size=N) * 10.0 ** rng.uniform(-5, 1, N)
    ends = np.array([first, first + 10.0 ** rng.uniform(-5, 1, N)])
    for share in (0.0, 0.3, 1.0):
        D = ((1.0 - share) * ends[0] + share * ends[1] - m).astype(np.longdouble)
        ratio = np.exp(m.astype(np.longdouble)) * 2 * (np.expm1(D) - D) / D**2
        assert np.all(LOSS.least_curvature(m, *ends, y) <= ratio * (1 + 1e-17 / D**2))


def test_means_that_are_no_numbers_are_infinite_losses() -> None:
    falls, means, losses = np.empty(3), np.empty(3), np.empty(3)
    half_deviances(np.array([800.0, 800.0, -800.0]), np.array([0.0, 3.0, 3.0]), falls, means, losses)
    assert losses[:2].tolist() == [np.inf, np.inf] and means.tolist() == [np.inf, np.inf, 0.0]
    assert losses[2] == pytest.approx(3.0 * (800.0 + np.log(3.0) - 1.0))
