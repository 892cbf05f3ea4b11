"""The course over all folds: threads, hooks, cells that are asked for, an early end."""

from __future__ import annotations

import threading

import numpy as np

from sparsecv_mio.bounds.all_folds import BoundsHooks, Known
from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.accumulate import training_moments

from .drawn import random_data


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
