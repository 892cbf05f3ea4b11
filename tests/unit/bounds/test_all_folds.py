"""The course over all folds: threads, hooks, cells that are asked for, an early end."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from sparsecv_mio.bounds.all_folds import BoundsHooks, Known, printed_ends
from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.bounds.fold import FoldBounds
from sparsecv_mio.bounds.relaxation import relax_problem
from sparsecv_mio.bounds.unit_diagonal import Diagonal
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.accumulate import training_moments
from sparsecv_mio.problem.problem import SparseProblem

from .drawn import random_data, random_problem


def test_threads_and_order_of_taus_change_nothing() -> None:
    data = random_data(2)
    standard, folds = standardize(data), make_folds("loo", data)
    one = compute_bounds(standard, folds, [0.1], [1, 2, 3])
    two = compute_bounds(standard, folds, [0.1], [3, 1, 2], threads=2)
    assert np.allclose(one.lower[:, [2, 0, 1]], two.lower) and np.allclose(one.upper[:, [2, 0, 1]], two.upper)


def test_stop_leaves_valid_intervals() -> None:
    data = random_data(3)
    stop = threading.Event()
    stop.set()
    table = compute_bounds(standardize(data), make_folds("5", data), [1.0], [2], hooks=BoundsHooks(expired=stop.is_set))
    assert np.isinf(table.upper).any() and table.cv_interval(0, 0).upper == np.inf
    assert table.to_dict()["table"][0]["upper"] is None


def test_only_cells_that_are_asked_for_are_bounded() -> None:
    data = random_data(4)
    standard, folds = standardize(data), make_folds("5", data)
    wanted = np.zeros((2, 2, 5), dtype=np.bool_)
    wanted[0, 1, 3] = wanted[1, 0, :] = True
    table = compute_bounds(standard, folds, [0.1, 1.0], [1, 3], known=Known(wanted=wanted))
    assert np.array_equal(np.isfinite(table.upper), wanted)


def test_hooks_are_told() -> None:
    data, seen = random_data(5), []
    standard, folds = standardize(data), make_folds("4", data)
    found: dict[tuple[int, int], list[np.ndarray | None]] = {}
    reused: list[tuple[int, int, float]] = []
    hooks = BoundsHooks(
        progress=lambda done, of: seen.append((done, of)),
        found=lambda g, fold, best: found.update({(g, fold): best}),
        reused=lambda asked, spared, seconds: reused.append((asked, spared, seconds)),
    )
    moments = list(training_moments(standard, folds))
    known = Known(reusing=True, moments=moments)
    table = compute_bounds(standard, folds, [0.1, 1.0], [1, 3], known=known, hooks=hooks)
    plain = compute_bounds(standard, folds, [0.1, 1.0], [1, 3])
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)] and len(found) == 8
    assert all(best is not None and len(best) == tau for best, tau in zip(found[1, 2], [1, 3], strict=True))
    assert len(reused) == 8 and all(0 <= spared <= asked == 2 for asked, spared, _ in reused)
    assert np.all(table.lower <= plain.upper) and np.all(plain.lower <= table.upper)


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
