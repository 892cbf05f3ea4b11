"""Log losses and their slopes by the kernel against long double."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.kernels.log_loss import log_loss_roundings, log_losses
from sparsecv_mio.kernels.row_losses import LOGISTIC, Response, fill, new_state
from sparsecv_mio.problem.row_losses import LOG_LOSS


def test_shares_and_losses_are_within_a_few_roundings() -> None:
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


def test_what_margins_are_off_by_is_within_the_roundings() -> None:
    rng = np.random.default_rng(6)
    m, n = rng.uniform(-30, 30, 500), 500
    v, off, out, state = rng.uniform(0.1, 3.0, n), 10.0 ** rng.uniform(-12, -1, n), np.empty(n), new_state(n)
    fill(Response(v, np.ones(n), LOGISTIC), m, state)
    total = log_loss_roundings(v, state, off, out)
    moved = [np.abs(LOG_LOSS.losses(m + sign * off, m) - state.losses) for sign in (-1.0, 1.0)]
    slopes = [np.abs(LOG_LOSS.falls(m + sign * off, m) - state.falls) for sign in (-1.0, 1.0)]
    assert float(v @ np.maximum(*moved)) <= total and np.all(v * np.maximum(*slopes) <= out)
