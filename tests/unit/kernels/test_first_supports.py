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
    value = given[3] - paths.support_fit(given, S, 4, L, x)
    assert value == pytest.approx(objective(given, S.tolist()), rel=1e-9)
    M = given[0][np.ix_(S, S)] + np.diag(given[1][S])
    np.testing.assert_allclose(x[:4], np.linalg.solve(M, given[2][S]), atol=1e-7)


def test_a_dependent_column_gets_no_coefficient() -> None:
    given = moments(0)._replace(penalty=np.zeros(9))
    L, x = np.empty((3, 3)), np.empty(3)
    drop = paths.support_fit(given, np.array([2, 4, 7]), 3, L, x)
    assert drop == pytest.approx(given.c[2] ** 2 / given.Q[2, 2])
    assert x[1] == x[2] == 0.0


@pytest.mark.parametrize("seed", range(10))
def test_a_sweep_can_stop_and_go_on(seed: int) -> None:
    given = moments(seed)
    lams, order = np.array([0.01, 0.1, 1.0]), np.array([2, 1, 0, 1, 2])

    def found(work: float) -> np.ndarray:
        value, columns, settled = known = empty(3, 5)
        t, phase = kernel.new_tableau(9, 5), np.zeros(5, dtype=np.int64)
        while not paths.sweep(t, given, lams, known, order, phase, work):
            pass
        assert settled[:, 1:].all()
        for g in range(3):
            for s in range(1, 6):
                S = columns[g, s, :s].tolist()
                assert value[g, s] == pytest.approx(objective(paths.penalised(given, lams[g]), S), rel=1e-8)
        return value

    np.testing.assert_allclose(found(1.0), found(1e9), rtol=1e-9)


def empty(G: int, top: int) -> paths.Found:
    columns = np.full((G, top + 1, top), -1)
    return paths.Found(np.full((G, top + 1), np.inf), columns, np.zeros((G, top + 1), dtype=bool))


def test_one_gamma_of_what_is_known_and_its_penalty() -> None:
    given, known = moments(0), empty(2, 3)
    here = paths.at_gamma(known, 1)
    here.value[2], here.columns[2, 0] = 5.0, 7
    assert known.value[1, 2] == 5.0 and known.columns[1, 2, 0] == 7 and np.isinf(known.value[0]).all()
    priced = paths.penalised(given, 3.0)
    assert priced.Q is not None and np.array_equal(priced.penalty, 3.0 * given.penalty) and priced.yy == given.yy
    assert np.all(paths.penalised(given, 1e300).penalty == paths.LARGEST_PENALTY)


@pytest.mark.parametrize("seed", range(10))
def test_given_supports_at_one_gamma_or_at_all(seed: int) -> None:
    moments_here = moments(seed)
    lams = np.array([0.01, 1.0])
    seeds = np.array([[0, 1, -1, -1], [3, 5, -1, -1], [8, -1, -1, -1], [-1, -1, -1, -1], [0, 3, 5, 6]])
    at = np.array([-1, 1, 0, -1, 0])
    value, columns, settled = known = empty(2, 4)
    settled[:] = True
    paths.try_supports_at(moments_here, lams, at, seeds, known)
    for g in range(2):
        for size in range(1, 5):
            tried = [row[row >= 0].tolist() for row, where in zip(seeds, at, strict=True) if where in (g, -1)]
            given = [(objective(paths.penalised(moments_here, lams[g]), S), S) for S in tried if len(S) == size]
            assert value[g, size] == pytest.approx(min(given)[0], rel=1e-9) if given else np.isinf(value[g, size])
            if given:
                assert columns[g, size, :size].tolist() == min(given)[1] and not settled[g, size]
    assert np.all(np.isinf(value[:, 0]))


@pytest.mark.parametrize("seed", range(10))
def test_keeping_columns_out_never_worsens_and_is_seldom_idle(seed: int) -> None:
    given = moments(seed)
    value, columns, _ = known = empty(1, 3)
    here = paths.at_gamma(known, 0)
    start = np.array([[6, 7, 8]])
    paths.try_supports_at(given, np.ones(1), np.array([0]), start, known)
    before, t, saved = float(value[0, 3]), kernel.new_tableau(9, 3), kernel.new_tableau(9, 3)
    found = paths.keep_out(t, saved, given, here, 3, 10.0)
    after, S = float(value[0, 3]), columns[0, 3].tolist()
    assert found == (after < before) and after == pytest.approx(objective(given, S), rel=1e-8)
    assert not paths.keep_out(t, saved, given, here, 2, 10.0), "no support of 2"
    if found:  # what it ends at no single exchange improves
        for out in range(3):
            for into in np.setdiff1d(np.arange(9), S).tolist():
                assert objective(given, S[:out] + S[out + 1 :] + [into]) >= after * (1.0 - 1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_scores_of_listed_supports(seed: int) -> None:
    Q, weight, c, yy = given = moments(seed)
    rng = np.random.default_rng(seed)
    lams, taus = np.array([0.01, 1.0]), np.array([0, 2, 3])
    V, r = rng.standard_normal((4, 9)), rng.standard_normal(4)
    columns = np.full((2, 3, 3), -1)
    for g in range(2):
        for k, tau in enumerate(taus):
            columns[g, k, :tau] = rng.permutation([0, 1, 2, 3, 5, 6, 8])[:tau]
    f, held = np.empty((2, 3)), np.empty((2, 3))
    paths.score(given, lams, columns, taus, V, r, f, held)
    for g in range(2):
        for k, tau in enumerate(taus):
            S = columns[g, k, :tau]
            M = Q[np.ix_(S, S)] + np.diag(lams[g] * weight[S])
            beta = np.linalg.solve(M, c[S])
            assert f[g, k] == pytest.approx(yy - c[S] @ beta, rel=1e-8)
            assert held[g, k] == pytest.approx(np.sum((r - V[:, S] @ beta) ** 2), rel=1e-8)
