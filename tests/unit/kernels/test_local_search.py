"""The tableau of exchanges against plain linear algebra, and local optima against every exchange tried out."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import local_search as kernel
from sparsecv_mio.kernels import local_search as paths


def moments(seed: int, n: int = 20, q: int = 9) -> kernel.PenalisedMoments:
    """Q, penalty, c, yy of random rows, one column twice and one of zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, q)) @ (np.eye(q) + 0.5 * rng.standard_normal((q, q)))
    X[:, 4], X[:, 7] = X[:, 2], 0.0
    y = X[:, 0] - X[:, 3] + rng.standard_normal(n)
    return kernel.PenalisedMoments(X.T @ X, 10.0 ** rng.uniform(-1, 1) * np.ones(q), X.T @ y, float(y @ y))


def objective(given: kernel.PenalisedMoments, support: list[int]) -> float:
    """f(S) by a plain solve."""
    Q, penalty, c, yy = given
    M = Q[np.ix_(support, support)] + np.diag(penalty[support])
    return yy - float(c[support] @ np.linalg.solve(M, c[support]))


def check(t: kernel.Tableau, given: kernel.PenalisedMoments) -> None:
    """Every number of the tableau against the definition in the head of the kernel."""
    Q, penalty, c, _ = given
    s = int(t.size[0])
    S = t.members[:s].tolist()
    M = Q + np.diag(penalty)
    V = np.linalg.inv(M[np.ix_(S, S)])
    scale = float(np.abs(Q).max())
    np.testing.assert_allclose(t.V[:s, :s], V, rtol=1e-7, atol=1e-9 * np.abs(V).max(initial=0.0))
    np.testing.assert_allclose(t.T[:s], V @ M[S], atol=1e-7)
    np.testing.assert_allclose(t.beta[:s], V @ c[S], atol=1e-7)
    np.testing.assert_allclose(t.g, c - M[:, S] @ V @ c[S], atol=1e-8 * scale)
    np.testing.assert_allclose(t.d, np.diag(M) - np.einsum("ja,ab,bj->j", M[:, S], V, M[S]), atol=1e-8 * scale)
    assert t.now[0] == pytest.approx(objective(given, S), rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_the_tableau_is_what_the_definition_says_after_any_changes(seed: int) -> None:
    given = moments(seed)
    rng = np.random.default_rng(seed)
    t = kernel.new_tableau(9, 6)
    kernel.clear(t, given)
    for _ in range(40):
        s = int(t.size[0])
        outside = np.setdiff1d(np.arange(9), t.members[:s])
        if s < 6 and (s == 0 or rng.random() < 0.6):
            kernel.add(t, given, int(rng.choice(outside)))
        else:
            kernel.drop(t, int(rng.integers(s)))
        check(t, given)
        assert len(set(t.members[: t.size[0]].tolist())) == t.size[0]


@pytest.mark.parametrize("seed", range(10))
def test_exchanges_end_where_none_helps(seed: int) -> None:
    given = moments(seed)
    t = kernel.new_tableau(9, 4)
    assert kernel.load(t, given, np.array([5, 6, 7, 8]), 4)
    kernel.exchange(t, given, kernel.MOST_EXCHANGES)
    check(t, given)
    S = t.members[:4].tolist()
    for out in range(4):
        for into in np.setdiff1d(np.arange(9), S).tolist():
            assert objective(given, S[:out] + S[out + 1 :] + [into]) >= t.now[0] * (1.0 - 1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_cheapest_and_best_are(seed: int) -> None:
    given = moments(seed)
    t = kernel.new_tableau(9, 5)
    assert kernel.load(t, given, np.array([0, 1, 5]), 3)
    added = [objective(given, [0, 1, 5, j]) if j not in (0, 1, 5) else np.inf for j in range(9)]
    assert added[kernel.best_to_add(t)] == pytest.approx(min(added), rel=1e-9)
    left = [objective(given, [j for j in (0, 1, 5) if j != i]) for i in (0, 1, 5)]
    assert left[kernel.cheapest_to_drop(t)] == pytest.approx(min(left), rel=1e-9)


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
                assert value[g, s] == pytest.approx(objective(paths.penalise_moments(given, lams[g]), S), rel=1e-8)
        return value

    np.testing.assert_allclose(found(1.0), found(1e9), rtol=1e-9)


def empty(G: int, top: int) -> paths.BestKnown:
    columns = np.full((G, top + 1, top), -1)
    return paths.BestKnown(np.full((G, top + 1), np.inf), columns, np.zeros((G, top + 1), dtype=bool))


def test_one_gamma_of_what_is_known_and_its_penalty() -> None:
    given, known = moments(0), empty(2, 3)
    here = paths.supports_at_gamma(known, 1)
    here.value[2], here.columns[2, 0] = 5.0, 7
    assert known.value[1, 2] == 5.0 and known.columns[1, 2, 0] == 7 and np.isinf(known.value[0]).all()
    priced = paths.penalise_moments(given, 3.0)
    assert priced.Q is not None and np.array_equal(priced.penalty, 3.0 * given.penalty) and priced.yy == given.yy
    assert np.all(paths.penalise_moments(given, 1e300).penalty == paths.LARGEST_PENALTY)


@pytest.mark.parametrize("seed", range(10))
def test_given_supports_at_one_gamma_or_at_all(seed: int) -> None:
    moments_here = moments(seed)
    lams = np.array([0.01, 1.0])
    seeds = np.array([[0, 1, -1, -1], [3, 5, -1, -1], [8, -1, -1, -1], [-1, -1, -1, -1], [0, 3, 5, 6]])
    at = np.array([-1, 1, 0, -1, 0])
    value, columns, settled = known = empty(2, 4)
    settled[:] = True
    paths.try_seed_supports(moments_here, lams, at, seeds, known)
    for g in range(2):
        for size in range(1, 5):
            tried = [row[row >= 0].tolist() for row, where in zip(seeds, at, strict=True) if where in (g, -1)]
            given = [(objective(paths.penalise_moments(moments_here, lams[g]), S), S) for S in tried if len(S) == size]
            assert value[g, size] == pytest.approx(min(given)[0], rel=1e-9) if given else np.isinf(value[g, size])
            if given:
                assert columns[g, size, :size].tolist() == min(given)[1] and not settled[g, size]
    assert np.all(np.isinf(value[:, 0]))


@pytest.mark.parametrize("seed", range(10))
def test_keeping_columns_out_never_worsens_and_is_seldom_idle(seed: int) -> None:
    given = moments(seed)
    value, columns, _ = known = empty(1, 3)
    here = paths.supports_at_gamma(known, 0)
    start = np.array([[6, 7, 8]])
    paths.try_seed_supports(given, np.ones(1), np.array([0]), start, known)
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
