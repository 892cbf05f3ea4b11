"""Problems of one fold: balls around fits, diagonals, spectra, and the elimination of forced columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.data.standard import ForcedColumns
from sparsecv_mio.problem import problem as module
from sparsecv_mio.problem.problem import SparseProblem, eliminate_forced_columns, level_set_radius, own_part


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("error", [0.0, 1e-3, 0.5])
def test_the_level_set_lies_in_the_ball(seed: int, error: float) -> None:
    rng, q = np.random.default_rng(seed), 4
    A = rng.standard_normal((9, q))
    M, c = A.T @ A + 0.1 * np.eye(q), rng.standard_normal(q)
    exact = np.linalg.solve(M, c)
    centre = exact + error * rng.standard_normal(q)

    def f(b: np.ndarray) -> float:
        return float(b @ M @ b - 2.0 * c @ b)

    level = f(exact) + rng.uniform(0.0, 2.0)
    g = c - M @ centre
    radius = level_set_radius(level - f(centre), float(np.sqrt(g @ np.linalg.solve(M, g))))
    half = np.linalg.inv(np.linalg.cholesky(M)).T
    steps = rng.standard_normal((4000, q))
    steps /= np.linalg.norm(steps, axis=1)[:, None]
    edge = exact + np.sqrt(level - f(exact)) * steps @ half.T  # the boundary of the level set
    distance = np.sqrt(np.einsum("ij,jk,ik->i", edge - centre, M, edge - centre))
    assert np.all(distance <= radius * (1.0 + 1e-9))
    assert distance.max() >= 0.9 * radius if error == 0.0 else distance.max() >= 0.5 * radius


KINDS = ["plain", "correlated", "wide", "copies", "scaled"]


def columns(seed: int, kind: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    n, q = (5, 8) if kind == "wide" else (20, 6)
    X = rng.standard_normal((n, q))
    if kind == "correlated":
        X = 0.1 * X + rng.standard_normal((n, 1))
    elif kind == "copies":
        X[:, 3] = -X[:, 1]
    elif kind == "scaled":
        X *= 10.0 ** rng.integers(-3, 4, q)
    return X


def valid(M: np.ndarray, w: np.ndarray) -> bool:
    """Whether `M - diag(w)` is positive semidefinite up to rounding, in units with `M_jj = 1`."""
    scale = 1.0 / np.sqrt(np.diag(M))
    return bool(np.linalg.eigvalsh((M - np.diag(w)) * scale[:, None] * scale)[0] > -1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_every_choice_is_valid(seed: int, kind: str) -> None:
    X, rng = columns(seed, kind), np.random.default_rng(seed)
    Q, penalty = X.T @ X, rng.uniform(0.01, 1.0, X.shape[1])
    M = Q + np.diag(penalty)
    smallest = max(float(np.linalg.eigvalsh(Q)[0]) - 1e-9, 0.0)
    uniform, own = penalty + smallest, own_part(M)
    assert np.all(uniform >= penalty) and valid(M, uniform)
    assert own is not None and np.all(own > 0.0) and valid(M, own)
    assert valid(M, 0.5 * (uniform + own)), "the mean of two, as the trees take it"
    V = np.linalg.inv(M)
    t = np.linalg.eigvalsh(M * np.sqrt(np.outer(np.diag(V), np.diag(V))))[0]
    np.testing.assert_allclose(own, t / np.diag(V), rtol=1e-6)


def test_a_matrix_singular_to_rounding_has_no_part_of_its_own() -> None:
    assert own_part(np.zeros((2, 2))) is None
    assert own_part(np.ones((3, 3))) is None
    with np.errstate(all="raise"):
        assert own_part(np.array([[0.0, 1.0], [1.0, 0.0]])) is None


def made(n: int, q: int, lam: float = 0.3) -> SparseProblem:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, q)), rng.normal(size=n)
    return SparseProblem(X.T @ X, X.T @ y, float(y @ y), rng.uniform(1.0, 2.0, q), lam, n, np.zeros(q), 0.0)


@pytest.mark.parametrize(("n", "q"), [(30, 5), (4, 6), (6, 6), (30, 1), (5, 0)])
@pytest.mark.parametrize("limit", [1500, 3])
def test_the_spectrum_is_bounded(n: int, q: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CUBIC_COLUMNS", limit)
    problem = made(n, q)
    low, high = problem.spectrum()
    values = np.linalg.eigvalsh(problem.Q) if q else np.zeros(1)
    assert 0.0 <= low <= max(values[0], 0.0) + 1e-15 and high >= values[-1]
    assert low > 0.5 * values[0] or q >= n or q < 2
    if 0 < q < min(n, limit):
        assert low == pytest.approx(values[0], rel=1e-9) and high == pytest.approx(values[-1], rel=1e-9)
    assert problem.with_gamma(9.0).spectrum() is problem.spectrum()


def drawn(seed: int, forced: list[int], q: int = 5, n: int = 9) -> tuple[SparseProblem, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    V, r = rng.normal(size=(n, q)) + 1.0, rng.normal(size=n)
    V[:, 4] = -V[:, 1]
    v_mean, r_mean = V.mean(axis=0), float(r.mean())
    Z, t = V - v_mean, r - r_mean
    copy_of = np.array([-1, -1, -1, -1, 1])
    weight = rng.uniform(0.5, 2.0, size=q)
    weight[4] = weight[1]
    problem = SparseProblem(
        Z.T @ Z, Z.T @ t, float(t @ t), weight, 0.3, n, v_mean, r_mean, copy_of, forced=np.array(forced, dtype=np.int64)
    )
    return problem, rng.normal(size=(4, q)), rng.normal(size=4)


def fitted(problem: SparseProblem, support: np.ndarray) -> tuple[float, np.ndarray]:
    S = np.asarray(support, dtype=np.int64)
    beta = np.linalg.solve(problem.M[np.ix_(S, S)], problem.c[S])
    return problem.yy - float(problem.c[S] @ beta), beta


@pytest.mark.parametrize("forced", [[0], [1, 3], [0, 2, 4]])
def test_objectives_predictions_and_leverages_are_those_of_the_whole(forced: list[int]) -> None:
    for seed in range(5):
        whole, V, r = drawn(seed, forced)
        part = eliminate_forced_columns(whole)
        X, u = part.rows(V, r)
        for size in range(3):
            for some in combinations(range(part.problem.q), size):
                chosen = np.array(some, dtype=np.int64)
                support = part.choice.make_support(chosen)
                value, beta = fitted(whole, support)
                reduced, own = fitted(part.problem, chosen)
                assert reduced == pytest.approx(value, rel=1e-12)
                error = r - whole.r_mean - (V - whole.v_mean)[:, support] @ beta
                left = u - part.problem.r_mean - (X - part.problem.v_mean)[:, chosen] @ own
                assert left == pytest.approx(error, abs=1e-12)
                H = (V - whole.v_mean)[:, support]
                leverage = np.einsum("ij,ji->i", H, np.linalg.solve(whole.M[np.ix_(support, support)], H.T))
                Z = part.reduce_rows(V - whole.v_mean, r)[0][:, chosen]
                mine = np.einsum("ij,ji->i", Z, np.linalg.solve(part.problem.M[np.ix_(chosen, chosen)], Z.T))
                assert mine + part.leverage(V - whole.v_mean) == pytest.approx(leverage, abs=1e-12)


def test_copies_are_those_among_the_columns_left() -> None:
    assert eliminate_forced_columns(drawn(0, [0])[0]).problem.copy_of.tolist() == [-1, -1, -1, 0]  # type: ignore[union-attr]
    assert eliminate_forced_columns(drawn(0, [1])[0]).problem.copy_of.tolist() == [-1] * 4  # type: ignore[union-attr]


def test_a_support_without_the_forced_columns_is_taken_with_them() -> None:
    choice = ForcedColumns.from_positions(4, np.array([2]))
    assert choice.inside(np.array([3, 0])).tolist() == [0, 2] and choice.make_support(np.array([2])).tolist() == [2, 3]
    assert choice.sizes([0, 1, 3]) == [0, 0, 2]


def test_tau_becomes_a_number_of_columns_with_the_adjusted_ones() -> None:
    choice = ForcedColumns.from_positions(6, np.array([0, 2, 5]), n_adjusted=2)
    assert [choice.n_columns(tau) for tau in (1, 3)] == [3, 5] and choice.sizes([0, 1, 3, 4]) == [0, 0, 2, 3]
    assert choice.max_tau == 4 and [choice.has_one_support(tau) for tau in (1, 2, 3, 4)] == [True, False, False, True]
    by_penalty = ForcedColumns.from_penalty_weights(np.array([0, 2, 5]), np.array([0.0, 1.0, 0.0, 1.0, 1.0, 1.0]))
    assert by_penalty.n_adjusted == 2 and by_penalty.others.tolist() == [1, 3, 4]


def test_columns_that_depend_on_each_other_are_eliminated_to_rounding() -> None:
    whole, *_ = drawn(1, [1, 4])
    tiny = whole.with_gamma(1e-17)
    part = eliminate_forced_columns(tiny)
    assert np.all(np.isfinite(part.problem.Q)) and part.problem.yy > 0.0
