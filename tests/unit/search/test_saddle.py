"""The saddle-point iteration: a valid bound at any moment, near the relaxation's value in the end."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn as drawn_from_drawn_search

from sparsecv_mio.bounds.relaxation import Diagonal, relax_problem
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.saddle import Rows, guess, saddle_point, supports_of

LAM = 0.5


def drawn() -> tuple[np.ndarray, np.ndarray, SparseProblem]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((20, 60)) / 4.0
    y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(20)
    return X, y, SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(60), LAM, 20, np.zeros(60), 0.0)


@pytest.mark.parametrize("tau", [1, 2, 5])
def test_near_the_relaxation_and_never_above(tau: int) -> None:
    X, y, problem = drawn()
    exact = relax_problem(problem, [tau], diagonal=Diagonal.PENALTY, accuracy=1e-9)[0]
    found = saddle_point(X, y, LAM, tau, iterations=3000)
    assert found.dual <= exact.primal + 1e-12 and found.dual >= exact.dual - 0.02 * problem.yy
    assert abs(found.z.sum() - tau) < 1e-9 and np.all((found.z >= 0.0) & (found.z <= 1.0 + 1e-12))


def test_the_value_is_that_of_its_point_wherever_it_ends() -> None:
    X, y, _ = drawn()
    for found in (
        saddle_point(X, y, LAM, 3, iterations=7),
        saddle_point(X, y, LAM, 3, start=y, iterations=20),
        saddle_point(X, y, LAM, 3, expired=lambda: True),
    ):
        squares = np.sort((X.T @ found.r) ** 2)[::-1][:3].sum()
        exact = 2.0 * found.r @ y - found.r @ found.r - squares / LAM
        assert found.dual <= exact and found.dual == pytest.approx(exact, abs=1e-10)


def test_supports_of_every_size() -> None:
    data, _, _ = drawn_from_drawn_search()
    rows = Rows.of(data, slice(0, data.n))
    found = supports_of(rows, 0.5, {tau: guess(rows, 0.5, tau, 50, None) for tau in (0, 1, 2, 6)})
    assert [len(found[tau]) for tau in (0, 1, 2, 6)] == [0, 1, 2, 6] and found[2].tolist() == [0, 3]
