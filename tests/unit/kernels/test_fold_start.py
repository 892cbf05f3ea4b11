"""The form with unit diagonal, and backward elimination from all columns."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels.fold_start import eliminate, unit_form

from .plain import KINDS, Small, small


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_unit_diagonal(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    penalty, mean = rng.uniform(0.5, 2.0, problem.q), rng.standard_normal(problem.q)
    M, c, scale, dead, longest = unit_form(problem.G, penalty, problem.c, mean, 1e-20)
    gone = problem.G.diagonal() <= 1e-20 * mean**2
    assert np.array_equal(dead, gone) and gone.any() == ((problem.X == 0).all(axis=0)).any()
    Q = np.where(gone[:, None] | gone, 0.0, problem.G)
    expected = 1.0 / np.sqrt(Q.diagonal() + penalty)
    assert np.allclose(scale, expected) and longest == pytest.approx(np.max(np.abs(mean) * expected))
    assert np.allclose(M, (Q + np.diag(penalty)) * np.outer(expected, expected)) and np.all(M.diagonal() == 1.0)
    assert np.allclose(c, np.where(gone, 0.0, problem.c * expected))


def backward(problem: Small) -> list[tuple[int, ...]]:
    """Supports of plain backward elimination, largest first."""
    held = list(range(problem.q))
    path = [tuple(held)]
    while len(held) > 1:
        held = min(([j for j in held if j != out] for out in held), key=problem.value)
        path.append(tuple(held))
    return path


@pytest.mark.parametrize("seed", [k for k in range(16) if KINDS[k % len(KINDS)] not in ("copies", "tied")])
def test_elimination_is_the_greedy_one(seed: int) -> None:
    problem = small(seed)
    best, supports = np.full(problem.q + 1, np.inf), np.zeros((problem.q + 1, problem.q), dtype=np.bool_)
    assert eliminate(problem.M, problem.c, problem.yy, best, supports)
    for support in backward(problem):
        assert best[len(support)] == pytest.approx(problem.value(support), rel=1e-9)
        assert problem.value(np.flatnonzero(supports[len(support)])) == pytest.approx(best[len(support)], rel=1e-9)


def test_better_supports_are_kept_and_a_singular_matrix_is_refused() -> None:
    problem = small(0)
    best, supports = np.full(problem.q + 1, -1.0), np.zeros((problem.q + 1, problem.q), dtype=np.bool_)
    assert eliminate(problem.M, problem.c, problem.yy, best, supports)
    assert np.all(best == -1.0) and not supports.any()
    assert not eliminate(np.ones((2, 2)), np.ones(2), 1.0, np.full(3, np.inf), np.zeros((3, 2), dtype=np.bool_))
