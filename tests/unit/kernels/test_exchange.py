"""The tableau of exchanges against plain linear algebra, and local optima against every exchange tried out."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import exchange as kernel


def moments(seed: int, n: int = 20, q: int = 9) -> kernel.Moments:
    """Q, penalty, c, yy of random rows, one column twice and one of zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, q)) @ (np.eye(q) + 0.5 * rng.standard_normal((q, q)))
    X[:, 4], X[:, 7] = X[:, 2], 0.0
    y = X[:, 0] - X[:, 3] + rng.standard_normal(n)
    return kernel.Moments(X.T @ X, 10.0 ** rng.uniform(-1, 1) * np.ones(q), X.T @ y, float(y @ y))


def objective(given: kernel.Moments, support: list[int]) -> float:
    """f(S) by a plain solve."""
    Q, penalty, c, yy = given
    M = Q[np.ix_(support, support)] + np.diag(penalty[support])
    return yy - float(c[support] @ np.linalg.solve(M, c[support]))


def check(t: kernel.Tableau, given: kernel.Moments) -> None:
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
    kernel.exchange(t, given)
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
