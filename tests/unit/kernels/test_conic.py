"""How far a sum of squares can move: formulas, candidates inside every bound, and as sharp as a conic solver."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import conic as kernel
from sparsecv_mio.kernels.forms import Candidates, Effort, Fold, Rounding
from sparsecv_mio.kernels.perspective import relax

from . import plain
from .plain import KINDS, Small, all_free, small

pytest.importorskip("clarabel")
from conic_program import conic_minimum  # noqa: E402

SEVERAL = [k for k in range(16) if KINDS[k % len(KINDS)] != "one column"]


def centre_of(problem: Small, k: int) -> tuple[np.ndarray, float, float]:
    """Solution of the relaxation, dual and primal value."""
    b, g, best_b, best_g = (np.zeros(problem.q) for _ in range(4))
    stop = kernel.absolute(problem.yy, 1e-10 * problem.yy, 5000)
    dual, primal, _ = relax(problem.form, all_free(problem.q, k), stop, b, g, best_b, best_g)
    return best_b, dual, primal


@pytest.mark.parametrize("seed", SEVERAL)
def test_relaxation_at_the_root(seed: int) -> None:
    problem = small(seed)
    q, every = problem.q, np.arange(problem.q)
    for k in range(1, q):
        b, dual, primal = centre_of(problem, k)
        assert dual == pytest.approx(plain.dual(problem, every[:0], every, k, b), abs=1e-10 * problem.yy)
        exact = conic_minimum(problem.M, problem.c, problem.yy, np.ones(q), k)
        assert abs(dual - exact) <= 1e-7 * problem.yy and abs(primal - exact) <= 1e-7 * problem.yy


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_formulas(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    b, length, t = rng.standard_normal(q), rng.uniform(0.5, 2.0, q), float(rng.uniform(-0.5, 2.0))
    rounding = Rounding(1e-3, 2.0, 0.0, length)
    assert kernel.allowance(rounding, b) == pytest.approx(1e-3 * (2.0 + length @ np.abs(b)) ** 2)
    for rows in (0, 1, 4):
        X, u = rng.standard_normal((rows, q)), rng.standard_normal(rows)
        G, c = np.empty((q, q)), np.empty(q)
        yy = kernel.augmented(problem.G, problem.c, problem.yy, X, u, t, G, c)
        assert np.allclose(G, problem.G + t * X.T @ X) and np.allclose(c, problem.c + t * X.T @ u)
        assert yy == pytest.approx(problem.yy + t * u @ u)
        assert kernel.squares(X, u, b) == pytest.approx(np.sum((u - X @ b) ** 2))
        columns = np.linalg.norm(X, axis=0)
        size = np.linalg.norm(u) + columns @ np.abs(b) + np.linalg.norm(columns) * 3.0
        assert kernel.size_of_rows(X, u, b, 3.0) == pytest.approx(size**2)


def test_gap_and_weights() -> None:
    assert kernel.gap_of(Candidates(2, 5.0, 3.0), 10.0) == 2.0
    assert kernel.gap_of(Candidates(2, 3.0, 3.0), 10.0) == kernel.LEAST_GAP * 10.0
    assert kernel.next_weight(2.0, 4.0, 0.0, np.inf) == 4.0
    assert kernel.next_weight(1.0, 1e9, 0.0, np.inf) == 100.0, "a step has an end"
    assert kernel.next_weight(2.0, 4.0, 2.0, 3.0) == pytest.approx(np.sqrt(6.0))
    assert kernel.next_weight(2.0, 4.0, 0.0, 3.0) == pytest.approx(0.9)
    assert kernel.next_weight(2.0, 0.25, 2.0, np.inf) == 6.0


@pytest.mark.parametrize("seed", SEVERAL)
def test_size_of_candidates(seed: int) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    w = rng.uniform(0.2, 1.0, problem.q)  # at most the penalty
    for k in range(problem.q + 1):
        bound = kernel.size_of_candidates(problem.yy, 1.0 / w, k)
        widest = np.sort(1.0 / w)[::-1][:k].sum()
        assert bound == pytest.approx(np.sqrt(problem.yy) * (1.0 + 2.0 * np.sqrt(widest)))
        for point in plain.candidates(problem, k, problem.yy, rng, each=2) if k else []:
            assert np.sqrt(problem.yy) + 2.0 * np.abs(point).sum() <= bound * (1.0 + 1e-9)


@pytest.mark.parametrize("seed", SEVERAL)
@pytest.mark.parametrize("room", [1e-9, 0.05])
def test_least_and_most_squares(seed: int, room: float) -> None:
    problem, rng = small(seed), np.random.default_rng(seed)
    q = problem.q
    k = int(rng.integers(1, q))
    ubar = problem.best(k)[0] * (1.0 + room)
    rows = 1 + seed % 4
    X, u = rng.standard_normal((rows, q)), 2.0 * rng.standard_normal(rows)
    b, dual, primal = centre_of(problem, k)
    norm, ones = float(np.sqrt(problem.yy)), np.ones(q)
    candidates, rounding = Candidates(k, ubar, primal), Rounding(1e-15, norm, norm, ones)
    low = kernel.least_squares(problem.form, candidates, X, u, b, Effort(25, 3000), rounding)
    reach = float(np.linalg.eigvalsh(X @ np.linalg.solve(problem.M, X.T))[-1]) * (1.0 + 1e-9)
    shares = np.linspace(0.1, 0.9, 9)
    fold = Fold(problem.M, problem.c, problem.yy, ones, X, u)
    high = kernel.most_squares(fold, candidates, reach, b, shares, 3000, rounding)
    for point in plain.candidates(problem, k, ubar, rng):
        held = float(np.sum((u - X @ point) ** 2))
        assert low <= held * (1.0 + 1e-9) + 1e-9 and held <= high * (1.0 + 1e-9) + 1e-9

    def lower(t: float) -> float:
        moved = problem.M + t * X.T @ X, problem.c + t * X.T @ u, problem.yy + t * u @ u
        return (conic_minimum(*moved, ones, k) - ubar) / t

    def upper(s: float) -> float:
        t = s / reach
        moved = problem.M - t * X.T @ X, problem.c - t * X.T @ u, problem.yy - t * u @ u
        return (ubar - conic_minimum(*moved, (1.0 - s) * ones, k)) / t

    size = float(u @ u) + high
    trained = lower(1.0)
    assert low >= trained - 0.02 * size, "t = 1 is the training-loss bound"
    assert low >= max(lower(float(t)) for t in np.geomspace(0.01, 100.0, 9)) - 0.05 * size
    exact = [upper(float(s)) for s in shares]
    assert min(exact) - 1e-6 * size <= high <= min(exact[4], exact[0]) + 0.05 * size
