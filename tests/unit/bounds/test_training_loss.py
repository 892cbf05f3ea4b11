"""The training-loss bound against enumeration of every support."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsecv_mio.bounds.training_loss import enough_on_all_rows, training_loss_bound
from sparsecv_mio.problem.objective import fit, held_out_error


def drawn(seed: int) -> tuple[dict[tuple[int, ...], tuple[float, float, float]], np.random.Generator]:
    """For every support of a size (objective on all rows, objective without a fold, held-out error), at random."""
    rng = np.random.default_rng(seed)
    n, p, tau = int(rng.integers(6, 20)), int(rng.integers(2, 6)), int(rng.integers(1, 3))
    X = rng.normal(size=(n, p)) + rng.uniform(0, 2) * rng.normal(size=(n, 1))
    if rng.random() < 0.3:
        X[:, -1] = X[:, 0]  # copies: optima that are not unique
    y = X @ rng.normal(size=p) + rng.uniform(0.1, 3) * rng.normal(size=n) + 5.0
    gamma, intercept = 10.0 ** rng.uniform(-2, 1), str(rng.choice(["fold", "global", "none"]))
    test = rng.choice(n, size=int(rng.integers(1, n // 2)), replace=False)
    train = np.setdiff1d(np.arange(n), test)
    found = {}
    for s in combinations(range(p), tau):
        whole = fit(X, y, s, gamma, intercept=intercept)
        part = fit(X, y, s, gamma, intercept=intercept, rows=train)
        found[s] = whole.objective, part.objective, held_out_error(part, X, y, test)
    return found, rng


def optima(found: dict[tuple[int, ...], tuple[float, float, float]]) -> list[tuple[int, ...]]:
    least = min(inside for _, inside, _ in found.values())
    return [s for s, (_, inside, _) in found.items() if inside <= least * (1.0 + 1e-9)]


@pytest.mark.parametrize("block", range(4))
def test_every_optimum_of_a_fold(block: int) -> None:
    tight = 0
    for seed in range(100 * block, 100 * block + 100):
        found, rng = drawn(seed)
        best = min(f for f, _, _ in found.values())
        v = best * (1.0 - rng.choice([0.0, 1e-3, 0.2]))
        for s in optima(found):
            u = found[s][1] * (1.0 + rng.choice([0.0, 1e-3, 0.2]))
            bound = float(training_loss_bound(v, u))
            assert bound <= found[s][2] + 1e-9 * best
            tight += bound > 0.0
    assert tight > 10


@pytest.mark.parametrize("block", range(4))
def test_with_a_list(block: int) -> None:
    """An optimum of the fold is on the list, or its held-out error is past the threshold less a feasible value."""
    outside = raised = 0
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        found, rng = drawn(seed)
        values = np.array([f for f, _, _ in found.values()])
        for s in optima(found):
            threshold = rng.uniform(values.min(), found[s][0])  # so that s is not on the list
            outside += 1
            bound = float(training_loss_bound(threshold, found[s][1]))
            assert bound <= found[s][2] + 1e-9 * threshold
            raised += bound > float(training_loss_bound(values.min(), found[s][1])) and bound > 0.0
    assert outside >= 100 and raised > 0


def test_an_unknown_value_bounds_nothing() -> None:
    found = training_loss_bound(np.array([3.0, np.inf, np.inf]), np.array([np.nan, np.inf, 1.0]))
    assert found.tolist() == [-np.inf, -np.inf, np.inf]


def test_allowances_are_taken_off_in_turn() -> None:
    """To the last bit, so that certificates do not depend on who computes them."""
    rng = np.random.default_rng(0)
    v, u, a, b = rng.uniform(1, 2, (4, 100))
    assert np.array_equal(training_loss_bound(v, u, a, b), ((v - u) - a) - b)
    assert training_loss_bound(v[:3, None], u).shape == (3, 100)


@pytest.mark.parametrize("seed", range(20))
def test_the_least_bound_on_all_rows_that_is_enough(seed: int) -> None:
    rng = np.random.default_rng(seed)
    known, fold = rng.uniform(0.0, 3.0, size=(2, 4, 5)), rng.uniform(4.0, 9.0, size=(2, 4, 5))
    fold[rng.random(size=fold.shape) < 0.2] = np.inf
    bar = known.sum(axis=-1) + rng.uniform(-1.0, 9.0, size=(2, 4))

    def reached(v: np.ndarray) -> np.ndarray:
        return np.maximum(known, training_loss_bound(v[..., None], fold)).sum(axis=-1)

    v, usable = enough_on_all_rows(known, fold, bar), np.isfinite(fold).any(axis=-1)
    idle = known.sum(axis=-1) >= bar
    assert np.all(v[idle] == 0.0) and np.all(np.isinf(v[~idle & ~usable]))
    working = ~idle & usable
    np.testing.assert_allclose(reached(v)[working], bar[working], rtol=1e-12)
    assert np.all(np.isinf(enough_on_all_rows(known, fold, np.full((2, 4), np.inf))))
