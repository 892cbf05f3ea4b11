"""Columns minimised out, and columns divided by the root of a diagonal."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels.forms import Fold
from sparsecv_mio.kernels.reduction import normalise, reduce_problem

from .plain import KINDS, fold_of, small


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_reduction_keeps_objective_and_residuals(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    M, c, yy, q = problem.M, problem.c, problem.yy, problem.q
    X, u = rng.standard_normal((3, q)), rng.standard_normal(3)
    for held in {0, 1, q // 2, q}:
        order = rng.permutation(q)
        inside, free = order[:held], order[held : held + 3]
        left, ok = reduce_problem(fold_of(problem, X, u), inside, free, np.full(len(free), 0.5))
        M_f, c_f, yy_f, w, X_f, u_f = left
        b = rng.standard_normal(len(free))
        full = np.zeros(q)
        full[free] = b
        full[inside] = np.linalg.solve(M[np.ix_(inside, inside)], c[inside] - M[np.ix_(inside, free)] @ b)
        assert np.all(w == 0.5)
        assert ok and np.isclose(yy - 2 * c @ full + full @ M @ full, yy_f - 2 * c_f @ b + b @ M_f @ b)
        assert np.allclose(u - X @ full, u_f - X_f @ b)


def test_a_singular_block_is_refused() -> None:
    inside, free = np.array([0, 1]), np.array([2])
    fold = Fold(np.ones((3, 3)), np.ones(3), 1.0, np.ones(3), np.zeros((0, 3)), np.zeros(0))
    assert not reduce_problem(fold, inside, free, np.ones(1))[1]


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_normal_form(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    w, X = rng.uniform(0.1, 2.0, problem.q), rng.standard_normal((2, problem.q))
    (G, c, yy, lipschitz), rows, root = normalise(Fold(problem.M, problem.c, problem.yy, w, X, np.zeros(2)))
    assert yy == problem.yy and lipschitz >= np.linalg.eigvalsh(G)[-1] * (1.0 - 1e-12)
    assert np.allclose(root, w**-0.5) and np.allclose(c, problem.c * root) and np.allclose(rows, X * root)
    assert np.allclose(G, problem.M * np.outer(root, root) - np.eye(problem.q))
