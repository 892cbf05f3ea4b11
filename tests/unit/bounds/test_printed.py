"""The printed interval, row by row, from the formula."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.bounds.printed import printed_ends
from sparsecv_mio.bounds.relaxation import relax_problem
from sparsecv_mio.bounds.unit_diagonal import Diagonal
from sparsecv_mio.problem.problem import SparseProblem

from .drawn import random_problem


@pytest.mark.parametrize("seed", range(4))
def test_the_formula(seed: int) -> None:
    problem, _ = random_problem(seed)
    rng = np.random.default_rng(seed)
    V, r = rng.standard_normal((3, problem.q)), rng.standard_normal(3)
    fold = FoldBounds(problem, V, r)
    fold.search([2, 4], swap_rounds=1)
    for tau, (lower, upper, estimate) in zip([2, 4], printed_ends(fold, [2, 4]), strict=True):
        point = relax_problem(problem, [tau], diagonal=Diagonal.PENALTY)[0]
        reach = np.einsum("ij,ji->i", V, np.linalg.solve(problem.M, V.T))
        wide, middle = np.sqrt((fold.best[tau] - point.dual) * reach), V @ point.beta
        near = np.maximum(np.abs(r - middle) - wide, 0.0)
        assert lower == pytest.approx(near @ near, rel=1e-6, abs=1e-9)
        assert upper == pytest.approx(np.sum((np.abs(r - middle) + wide) ** 2), rel=1e-6)
        assert estimate == pytest.approx(np.sum((r - middle) ** 2), rel=1e-6)


def test_what_is_singular_to_rounding_has_no_interval() -> None:
    problem = SparseProblem(np.ones((2, 2)), np.ones(2), 2.0, np.ones(2), 1e-20, 9, np.zeros(2), 0.0)
    lower, upper, _ = printed_ends(FoldBounds(problem, np.ones((1, 2)), np.ones(1)), [1])[0]
    assert lower == 0.0 and upper == np.inf
