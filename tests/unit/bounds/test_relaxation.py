"""The coordinates of the bounds: unit diagonal, a valid w, columns that are constant in training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from conic_program import conic_minimum  # noqa: E402
from exact import check_allowance

from sparsecv_mio.bounds import relaxation
from sparsecv_mio.bounds.relaxation import (
    Diagonal,
    comparison_allowance,
    relax_form,
    relax_problem,
    screen_by_relaxation,
    unit_diagonal,
)
from sparsecv_mio.kernels import reduced_forms
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE
from sparsecv_mio.problem.problem import SparseProblem

from .drawn import HardFold, best_support, random_problem


@pytest.mark.parametrize("seed", range(6))
def test_diagonal_is_valid_and_beats_the_penalty(seed: int) -> None:
    problem, _ = random_problem(seed, n=(6, 40)[seed % 2])
    form = unit_diagonal(problem)
    assert form is not None
    assert np.linalg.eigvalsh(form.M - np.diag(form.w))[0] > -1e-13
    if seed % 2:
        assert np.log(form.diagonal).sum() > np.log(problem.penalty).sum()
    again = unit_diagonal(problem, near=form.diagonal * 1.5)  # not valid as it is: must be shrunk
    assert again is not None and np.linalg.eigvalsh(again.M - np.diag(again.w))[0] > -1e-13
    assert reduced_forms.sharpen(form.M, 2.0 * np.ones(form.m), 20.0, 3) == -1


def test_a_column_constant_in_training_is_an_empty_place() -> None:
    mean = np.array([0.0, 5.0])
    problem = SparseProblem(np.diag([2.0, 1e-31]), np.array([1.0, 1e-16]), 3.0, np.ones(2), 0.5, 9, mean, 0.0)
    form = unit_diagonal(problem)
    assert form is not None and form.dead.tolist() == [False, True]
    assert form.c[1] == 0.0 and form.M[0, 1] == 0.0
    X, _ = form.rows(problem, np.array([[1.0, 9.0]]), np.zeros(1))
    assert X[0, 1] == 0.0


pytest.importorskip("clarabel")


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("diagonal", [Diagonal.PENALTY, Diagonal.SHARP])
def test_equals_the_conic_solver(seed: int, diagonal: Diagonal) -> None:
    problem, _ = random_problem(seed, n=(5, 30)[seed % 2], lam=(0.003, 0.1, 3.0)[seed % 3], rho=(0.0, 0.9)[seed % 2])
    form = unit_diagonal(problem, diagonal=diagonal)
    assert form is not None
    for point in relax_problem(problem, [1, 2, 4, 7], diagonal=diagonal, accuracy=1e-10):
        value = conic_minimum(problem.M, problem.c, problem.yy, form.diagonal, point.tau)
        assert point.dual <= value + 1e-7 * problem.yy
        assert abs(point.dual - value) <= 1e-7 * problem.yy and abs(point.primal - value) <= 1e-7 * problem.yy


@pytest.mark.parametrize("seed", range(6))
def test_the_value_is_that_of_its_point_and_below_every_support(seed: int) -> None:
    problem, _ = random_problem(seed, lam=0.1)
    form = unit_diagonal(problem)
    assert form is not None
    for point in relax_form(form, [0, 1, 3, problem.q], accuracy=1e-3):
        G = problem.M - np.diag(point.w)
        np.testing.assert_allclose(point.slope, problem.c - G @ point.beta, atol=1e-9)
        top = np.sort(point.slope**2 / point.w)[::-1][: point.tau].sum()
        exact = problem.yy - point.beta @ G @ point.beta - top
        slip = comparison_allowance(form, point.tau, point.beta / form.scale)
        assert 0.0 < slip < 1e-9 * problem.yy and 0.0 <= point.gap <= 2e-3
        assert point.dual == pytest.approx(exact - slip, abs=1e-10 * problem.yy)
        assert point.dual <= best_support(problem, point.tau)[0]


def test_a_matrix_singular_to_rounding_is_refused() -> None:
    problem = SparseProblem(np.ones((2, 2)), np.ones(2), 2.0, np.ones(2), 1e-20, 9, np.zeros(2), 0.0)
    with pytest.raises(ValueError, match="singular"):
        relax_problem(problem, [1], diagonal=Diagonal.SHARP)


def test_no_column_and_all_of_them_leave_no_choice() -> None:
    problem, _ = random_problem(0)
    none, full = (screen_by_relaxation(point, problem.yy) for point in relax_problem(problem, [0, problem.q]))
    assert np.all(none == DROPPED) and np.all(full == INSIDE) and len(none) == len(full) == problem.q


def test_a_generous_level_fixes_nothing() -> None:
    problem, _ = random_problem(1)
    found = screen_by_relaxation(relax_problem(problem, [3])[0], 10.0 * problem.yy)
    assert np.all(found == FREE) and len(found) == problem.q


def dual_excesses(seed: int) -> Iterator[Fraction]:
    hard = HardFold.draw(seed)
    for point in relax_problem(hard.problem(), range(4), accuracy=1e-14):
        yield Fraction(point.dual) - min(hard.exact.of_support(2.0, s)[0] for s in combinations(range(3), point.tau))


def diagonal_excesses(seed: int) -> Iterator[Fraction]:
    """Where Q is singular, no number above the penalty is a valid diagonal."""
    problem = replace(random_problem(seed)[0], lam=10.0 ** (seed % 7 - 3))
    form = unit_diagonal(problem, diagonal=Diagonal.PENALTY)
    assert form is not None
    for w, weight, scale in zip(form.w, problem.weight, form.scale, strict=True):
        yield Fraction(w) - Fraction(problem.lam) * Fraction(weight) * Fraction(scale) ** 2


@pytest.mark.parametrize(("excesses", "constant"), [(dual_excesses, "ROUNDING"), (diagonal_excesses, "SHAVED")])
def test_exact_numbers_are_within_the_allowances(
    excesses: Callable[[int], Iterator[Fraction]], constant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_allowance(excesses, range(24), [(relaxation, constant)], monkeypatch)
