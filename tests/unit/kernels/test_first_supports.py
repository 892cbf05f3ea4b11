"""First supports of a fold: fits, walks that stop and go on, columns kept out, scores; against plain solves."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import exchange as kernel
from sparsecv_mio.kernels import first_supports as paths

from .test_exchange import moments, objective


@pytest.mark.parametrize("seed", range(10))
def test_the_fit_of_a_support_is_the_plain_one(seed: int) -> None:
    given = moments(seed)
    S = np.array([1, 2, 4, 8])
    L, x = np.empty((5, 5)), np.empty(5)
    value = given[3] - paths.support_fit(*given[:3], S, 4, L, x)
    assert value == pytest.approx(objective(given, S.tolist()), rel=1e-9)
    M = given[0][np.ix_(S, S)] + np.diag(given[1][S])
    np.testing.assert_allclose(x[:4], np.linalg.solve(M, given[2][S]), atol=1e-7)


def test_a_dependent_column_gets_no_coefficient() -> None:
    Q, _, c, yy = moments(0)
    L, x = np.empty((3, 3)), np.empty(3)
    drop = paths.support_fit(Q, np.zeros(9), c, np.array([2, 4, 7]), 3, L, x)
    assert drop == pytest.approx(c[2] ** 2 / Q[2, 2])
    assert x[1] == x[2] == 0.0


@pytest.mark.parametrize("seed", range(10))
def test_a_sweep_can_stop_and_go_on(seed: int) -> None:
    Q, penalty, c, yy = moments(seed)
    lams, order = np.array([0.01, 0.1, 1.0]), np.array([2, 1, 0, 1, 2])

    def found(work: float) -> np.ndarray:
        value, settled = np.full((3, 6), np.inf), np.zeros((3, 6), dtype=bool)
        columns = np.full((3, 6, 5), -1)
        t, phase = kernel.new_tableau(9, 5), np.zeros(5, dtype=np.int64)
        while not paths.sweep(t, Q, penalty, c, yy, lams, value, columns, settled, order, phase, work):
            pass
        assert settled[:, 1:].all()
        for g in range(3):
            for s in range(1, 6):
                S = columns[g, s, :s].tolist()
                assert value[g, s] == pytest.approx(objective((Q, lams[g] * penalty, c, yy), S), rel=1e-8)
        return value

    np.testing.assert_allclose(found(1.0), found(1e9), rtol=1e-9)


def empty(G: int, top: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.full((G, top + 1), np.inf), np.full((G, top + 1, top), -1), np.zeros((G, top + 1), dtype=bool)


@pytest.mark.parametrize("seed", range(10))
def test_given_supports_at_one_gamma_or_at_all(seed: int) -> None:
    Q, weight, c, yy = moments(seed)
    lams = np.array([0.01, 1.0])
    seeds = np.array([[0, 1, -1, -1], [3, 5, -1, -1], [8, -1, -1, -1], [-1, -1, -1, -1], [0, 3, 5, 6]])
    at = np.array([-1, 1, 0, -1, 0])
    value, columns, settled = empty(2, 4)
    settled[:] = True
    paths.try_supports_at(Q, weight, c, yy, lams, at, seeds, value, columns, settled)
    for g in range(2):
        for size in range(1, 5):
            tried = [row[row >= 0].tolist() for row, where in zip(seeds, at, strict=True) if where in (g, -1)]
            given = [(objective((Q, lams[g] * weight, c, yy), S), S) for S in tried if len(S) == size]
            assert value[g, size] == pytest.approx(min(given)[0], rel=1e-9) if given else np.isinf(value[g, size])
            if given:
                assert columns[g, size, :size].tolist() == min(given)[1] and not settled[g, size]
    assert np.all(np.isinf(value[:, 0]))


@pytest.mark.parametrize("seed", range(10))
def test_keeping_columns_out_never_worsens_and_is_seldom_idle(seed: int) -> None:
    given = moments(seed)
    Q, penalty, c, yy = given
    value, columns, settled = empty(1, 3)
    start = np.array([[6, 7, 8]])
    paths.try_supports_at(Q, penalty, c, yy, np.ones(1), np.array([0]), start, value, columns, settled)
    before, t, saved = float(value[0, 3]), kernel.new_tableau(9, 3), kernel.new_tableau(9, 3)
    found = paths.keep_out(t, saved, Q, penalty, c, yy, value[0], columns[0], settled[0], 3, 10.0)
    after, S = float(value[0, 3]), columns[0, 3].tolist()
    assert found == (after < before) and after == pytest.approx(objective(given, S), rel=1e-8)
    assert not paths.keep_out(t, saved, Q, penalty, c, yy, value[0], columns[0], settled[0], 2, 10.0), "no support of 2"
    if found:  # what it ends at no single exchange improves
        for out in range(3):
            for into in np.setdiff1d(np.arange(9), S).tolist():
                assert objective(given, S[:out] + S[out + 1 :] + [into]) >= after * (1.0 - 1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_scores_of_listed_supports(seed: int) -> None:
    Q, weight, c, yy = moments(seed)
    rng = np.random.default_rng(seed)
    lams, taus = np.array([0.01, 1.0]), np.array([0, 2, 3])
    V, r = rng.standard_normal((4, 9)), rng.standard_normal(4)
    columns = np.full((2, 3, 3), -1)
    for g in range(2):
        for k, tau in enumerate(taus):
            columns[g, k, :tau] = rng.permutation([0, 1, 2, 3, 5, 6, 8])[:tau]
    f, held = np.empty((2, 3)), np.empty((2, 3))
    paths.score(Q, weight, c, yy, lams, columns, taus, V, r, f, held)
    for g in range(2):
        for k, tau in enumerate(taus):
            S = columns[g, k, :tau]
            M = Q[np.ix_(S, S)] + np.diag(lams[g] * weight[S])
            beta = np.linalg.solve(M, c[S])
            assert f[g, k] == pytest.approx(yy - c[S] @ beta, rel=1e-8)
            assert held[g, k] == pytest.approx(np.sum((r - V[:, S] @ beta) ** 2), rel=1e-8)
