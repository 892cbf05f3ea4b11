"""Greedy and local first supports against their plain definitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.kernels.local_search import PenalisedMoments, new_tableau
from sparsecv_mio.kernels.starts import (
    add_one_by_one,
    backward_elimination,
    eliminate,
    forward_selection,
    improve_by_swaps,
    support_values,
    try_supports,
    unit_form,
)

from .plain import KINDS, Small, small

UNTIED = [k for k in range(16) if KINDS[k % len(KINDS)] not in ("copies", "tied")]


def empty(problem: Small) -> tuple[np.ndarray, np.ndarray]:
    return np.full(problem.q + 1, np.inf), np.zeros((problem.q + 1, problem.q), dtype=np.bool_)


def masks_of(problem: Small, supports) -> np.ndarray:
    masks = np.zeros((len(supports), problem.q), dtype=np.bool_)
    for mask, support in zip(masks, supports, strict=True):
        mask[list(support)] = True
    return masks


def assert_true_values(problem: Small, best: np.ndarray, supports: np.ndarray) -> None:
    for size in np.flatnonzero(np.isfinite(best)):
        assert supports[size].sum() == size
        assert best[size] == pytest.approx(problem.value(np.flatnonzero(supports[size])), rel=1e-8)


@pytest.mark.parametrize("seed", UNTIED)
def test_forward_selection(seed: int) -> None:
    problem = small(seed)
    best, supports = empty(problem)
    top = max(problem.q - 1, 1)
    forward_selection(problem.M, problem.c, problem.yy, top, best, supports)
    held: list[int] = []
    for size in range(1, top + 1):
        held = min(([*held, j] for j in range(problem.q) if j not in held), key=problem.value)
        assert best[size] == pytest.approx(problem.value(held), rel=1e-8)
    assert_true_values(problem, best, supports)
    path = np.zeros((top, problem.q), dtype=np.bool_)
    moments = PenalisedMoments(problem.M, np.zeros(problem.q), problem.c, problem.yy)
    add_one_by_one(new_tableau(problem.q, top), moments, path)
    assert np.array_equal(path[-1], np.isin(np.arange(problem.q), held))


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_swaps_end_where_no_swap_helps(seed: int) -> None:
    problem = small(seed)
    for size in range(1, problem.q):
        best, supports = empty(problem)
        start = tuple(range(size))
        try_supports(problem.M, problem.c, problem.yy, masks_of(problem, [start]), best, supports)
        improve_by_swaps(problem.M, problem.c, problem.yy, size, best, supports, 100)
        assert_true_values(problem, best, supports)
        held = np.flatnonzero(supports[size]).tolist()
        swapped = (
            problem.value([*(set(held) - {out}), into]) for out in held for into in set(range(problem.q)) - set(held)
        )
        assert min(swapped) >= best[size] * (1.0 - 1e-9) and best[size] <= problem.value(start) * (1.0 + 1e-12)


def test_swaps_without_a_start_or_a_choice_do_nothing() -> None:
    problem = small(0)
    for size, first in ((0, 1.0), (problem.q, 1.0), (2, np.inf)):
        best, supports = empty(problem)
        best[size] = first
        improve_by_swaps(problem.M, problem.c, problem.yy, size, best, supports, 5)
        assert best[size] == first and not supports.any()


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_given_supports(seed: int) -> None:
    problem = small(seed)
    every = [s for size in range(problem.q + 1) for s in combinations(range(problem.q), size)]
    values = np.empty(len(every))
    support_values(problem.M, problem.c, problem.yy, masks_of(problem, every), values)
    assert np.allclose(values, [problem.value(s) for s in every], rtol=1e-8)
    best, supports = empty(problem)
    try_supports(problem.M, problem.c, problem.yy, masks_of(problem, every), best, supports)
    assert np.isinf(best[0]), "the support without columns is nobody's start"
    for size in range(1, problem.q + 1):
        assert best[size] == pytest.approx(problem.best(size)[0], rel=1e-8)
    assert_true_values(problem, best, supports)


def test_singular_supports_have_no_value() -> None:
    values = np.empty(2)
    masks = np.array([[True, True], [True, False]])
    support_values(np.ones((2, 2)), np.ones(2), 3.0, masks, values)
    assert values.tolist() == [np.inf, 2.0]


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


@pytest.mark.parametrize("seed", UNTIED)
def test_backward_elimination(seed: int) -> None:
    """From an inverse that is at hand and from the matrix alike."""
    problem = small(seed)
    (best, supports), (other, masks) = empty(problem), empty(problem)
    V = np.linalg.inv(problem.M)
    beta = V @ problem.c
    backward_elimination(V.copy(), beta.copy(), problem.yy - problem.c @ beta, best, supports)
    assert eliminate(problem.M, problem.c, problem.yy, other, masks)
    held = list(range(problem.q))
    while held:
        assert best[len(held)] == pytest.approx(problem.value(held), rel=1e-8)
        assert other[len(held)] == pytest.approx(problem.value(held), rel=1e-9)
        held = min(([j for j in held if j != out] for out in held), key=problem.value)
    assert_true_values(problem, best, supports)
    assert_true_values(problem, other, masks)


def test_better_supports_are_kept_and_a_singular_matrix_is_refused() -> None:
    problem = small(0)
    best, supports = np.full(problem.q + 1, -1.0), np.zeros((problem.q + 1, problem.q), dtype=np.bool_)
    assert eliminate(problem.M, problem.c, problem.yy, best, supports)
    assert np.all(best == -1.0) and not supports.any()
    assert not eliminate(np.ones((2, 2)), np.ones(2), 1.0, np.full(3, np.inf), np.zeros((3, 2), dtype=np.bool_))
