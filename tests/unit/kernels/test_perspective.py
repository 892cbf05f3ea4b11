"""The relaxation of one node: its parts against their formulas, its value closed from both sides."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.kernels import perspective as kernel
from sparsecv_mio.kernels.forms import Stop

from . import plain
from .plain import KINDS, Small, node_of, small


def node(seed: int) -> tuple[Small, np.ndarray, np.ndarray, int]:
    """A problem, some columns inside, some free (others dropped), and k with 0 < k < free; wide ones included."""
    kind = KINDS[seed % len(KINDS)]
    problem = small(seed, "tall" if kind == "one column" else kind)
    rng = np.random.default_rng(1000 + seed)
    order = rng.permutation(problem.q)
    held = int(rng.integers(0, 3))
    free = np.sort(order[held : problem.q - int(rng.integers(0, 2))])
    return problem, np.sort(order[:held]), free, int(rng.integers(1, len(free)))


def on_node(problem: Small, inside: np.ndarray, free: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    b = np.zeros(problem.q)
    members = np.concatenate([inside, free])
    b[members] = rng.standard_normal(len(members)) * (rng.random(len(members)) < 0.8)
    return b


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_values_of_a_node(seed: int) -> None:
    problem, inside, free, k = node(seed)
    rng = np.random.default_rng(seed)
    b, g, buffer, heap = on_node(problem, inside, free, rng), np.full(problem.q, 7.0), np.empty(problem.q), np.empty(k)
    members = np.concatenate([inside, free])
    quad = kernel.gradient(problem.G, problem.c, members, b, g)
    assert quad == pytest.approx(b @ problem.G @ b)
    assert np.allclose(g[members], (problem.c - problem.G @ b)[members])
    outside = np.setdiff1d(np.arange(problem.q), members)
    assert np.all(g[outside] == 7.0)
    at = node_of(inside, free, k)
    value = kernel.dual_value(problem.yy, quad, g, at, buffer, heap)
    assert value == pytest.approx(plain.dual(problem, inside, free, k, b))
    value = kernel.primal_value(problem.form, quad, b, at, buffer, heap)
    assert value == pytest.approx(plain.primal(problem, inside, free, k, b))


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_proximal_step(seed: int) -> None:
    problem, inside, free, k = node(seed)
    rng = np.random.default_rng(seed)
    y, g = on_node(problem, inside, free, rng), rng.standard_normal(problem.q)
    b, buffer, step = np.zeros(problem.q), np.empty(problem.q), 0.3
    kernel.proximal_step(y, g, step, node_of(inside, free, k), buffer, b)
    expected, _ = plain.proximal(y[free] + step * g[free], k, step)
    assert np.allclose(b[free], expected, atol=1e-9) and np.allclose(b[inside], (y + step * g)[inside] / (1 + step))


def relaxed(problem: Small, inside, free, k, bar=np.inf, rel=1e-9, steps=2000):
    q = problem.q
    b, g, best_b, best_g = (np.zeros(q) for _ in range(4))
    found = kernel.relax(problem.form, node_of(inside, free, k), Stop(bar, rel, steps), b, g, best_b, best_g)
    return *found, best_b, best_g


@pytest.mark.parametrize("seed", range(5 * len(KINDS)))
def test_relaxation_is_closed_from_both_sides(seed: int) -> None:
    """The dual value is that of the point returned, no primal one is below the minimum: where they meet it is."""
    problem, inside, free, k = node(seed)
    bar = problem.yy * 1e6
    dual, primal, steps, b, g = relaxed(problem, inside, free, k, bar, 1e-16)
    assert dual == pytest.approx(plain.dual(problem, inside, free, k, b), rel=1e-9, abs=1e-12 * problem.yy)
    members = np.concatenate([inside, free])
    assert np.allclose(g[members], (problem.c - problem.G @ b)[members])
    assert primal - dual <= 1e-9 * problem.yy and steps <= 2000
    rng = np.random.default_rng(seed)
    for _ in range(20):
        anywhere = on_node(problem, inside, free, rng)
        assert plain.dual(problem, inside, free, k, anywhere) <= primal + 1e-9 * problem.yy
        assert plain.primal(problem, inside, free, k, anywhere) >= dual - 1e-9 * problem.yy
        support = [*inside, *rng.permutation(free)[:k]]
        assert problem.value(support) >= dual - 1e-9 * problem.yy


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_relaxation_stops_at_the_bar(seed: int) -> None:
    problem, inside, free, k = node(seed)
    exact = relaxed(problem, inside, free, k, problem.yy * 1e6, 1e-16)[0]
    dual, *_ = relaxed(problem, inside, free, k, bar=0.5 * exact, rel=0.0)
    assert 0.5 * exact <= dual <= exact * (1.0 + 1e-9)
    dual, primal, steps, *_ = relaxed(problem, inside, free, k, bar=np.inf, rel=0.0, steps=0)
    assert steps == 0 and dual <= exact + 1e-9 * problem.yy <= primal + 2e-9 * problem.yy
