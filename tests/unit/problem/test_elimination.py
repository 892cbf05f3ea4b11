"""Columns forced in, eliminated: the same objectives and predictions as the whole problem has."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.data.standard import ForcedColumns
from sparsecv_mio.problem.problem import SparseProblem, eliminate_forced_columns


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
