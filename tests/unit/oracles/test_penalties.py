"""Penalties: proximal steps, conjugates and the k-support norm against definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from conjugates import penalty_conjugate
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsecv_mio.oracles.glru import Regularizer
from sparsecv_mio.oracles.iacv import KSupport


@pytest.mark.parametrize(
    "regularizer",
    [Regularizer(0.7), Regularizer(0.4, 0.3), Regularizer(0.0, 0.6), Regularizer(0.5, 0.2, True)],
    ids=str,
)
def test_regulariser_against_its_definition(regularizer: Regularizer) -> None:
    grid = np.linspace(-40.0, 40.0, 160_001)
    extra = [0.0] if regularizer.intercept else []
    values = np.array([regularizer.value(np.array([w, *extra])) for w in (0.0, 1.5, -2.0)])
    expected = [0.5 * regularizer.ridge * w * w + regularizer.l1 * abs(w) for w in (0.0, 1.5, -2.0)]
    assert np.allclose(values, expected)
    line = 0.5 * regularizer.ridge * grid**2 + regularizer.l1 * np.abs(grid)
    for c in (-0.55, -0.1, 0.0, 0.2, 0.59):
        score = np.array([c, *extra])
        best = int(np.argmax(c * grid - line))
        assert penalty_conjugate(regularizer, score) == pytest.approx(c * grid[best] - line[best], abs=1e-6)
        low, high = regularizer.conjugate_ends(score, score)
        assert low[0] - 1e-3 <= grid[best] <= high[0] + 1e-3
        for w in (-1.0, 0.0, 0.4):
            point = np.array([w, *extra])
            plain = regularizer.value(point) + penalty_conjugate(regularizer, score) - w * c
            assert regularizer.residual(point, score).sum() == pytest.approx(plain, abs=1e-12)


def test_l1_ends_are_infinite_at_and_beyond_the_threshold() -> None:
    l1 = Regularizer(0.0, 1.0)
    low, high = l1.conjugate_ends(np.array([-1.0, -0.9, -0.5]), np.array([0.5, 0.9, 1.0]))
    assert low.tolist() == [-np.inf, 0.0, 0.0] and high.tolist() == [0.0, 0.0, np.inf]
    assert penalty_conjugate(l1, np.array([1.0, -1.0])) == 0.0 and penalty_conjugate(l1, np.array([1.1, 0.0])) == np.inf
    assert penalty_conjugate(Regularizer(1.0, intercept=True), np.array([0.0, 0.1])) == np.inf


def brute_k_support(theta, k):
    """`min sum theta^2 / z` by trying every set of entries held at z = 1, the rest sharing what is left."""
    size = np.abs(theta)
    live = np.flatnonzero(size > 0)
    if live.size <= k:
        return float(np.sum(size**2))
    values = []
    for r in range(k):
        for top in itertools.combinations(live, r):
            rest = np.setdiff1d(live, top)
            z = size[rest] * (k - r) / size[rest].sum()
            if np.all(z <= 1 + 1e-12):
                values.append(np.sum(size[list(top)] ** 2) + size[rest].sum() ** 2 / (k - r))
    return float(min(values))


def bisect_prox(v, s, k):
    """Theory section 4: bisection on mu of `z = clip(|v| / mu - 2 s, 0, 1)`."""
    a, shift = np.abs(v), 2 * s
    if np.sum(a > 0) <= k:
        return v / (1 + shift)
    low, high = 0.0, 1e12
    for _ in range(400):
        t = 0.5 * (low + high)
        low, high = (t, high) if np.clip(a * t - shift, 0, 1).sum() < k else (low, t)
    z = np.clip(a * high - shift, 0, 1)
    return v * z / (z + shift)


@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 6), st.floats(1e-3, 10.0))
@settings(max_examples=200, deadline=None)
def test_k_support(seed, p, k, s):
    rng = np.random.default_rng(seed)
    v = rng.standard_normal((3, p)).round(1 if seed % 2 else 6)  # ties and zeros
    penalty = KSupport(k)
    for row in v:
        assert penalty.value(row) == pytest.approx(brute_k_support(row, k), rel=1e-9, abs=1e-12)
    b = penalty.prox(v, s)
    for row, got in zip(v, b, strict=True):
        assert got == pytest.approx(bisect_prox(row, s, k), rel=1e-7, abs=1e-9)
    for row, at in zip(v, b, strict=True):
        objective = 0.5 * ((at - row) ** 2).sum() + s * penalty.value(at)
        for _ in range(20):
            other = at + 10.0 ** rng.uniform(-5, 0) * rng.standard_normal(p)
            assert objective <= 0.5 * ((other - row) ** 2).sum() + s * penalty.value(other) + 1e-12


@pytest.mark.parametrize(
    "penalty",
    [Regularizer(2.0, intercept=True), Regularizer(2.0), Regularizer(0.0, 1.0, intercept=True), Regularizer(0.0, 1.0)],
)
def test_prox_minimises(penalty):
    rng = np.random.default_rng(0)
    v = rng.standard_normal((5, 3))
    b = penalty.prox(v, 0.4)
    objective = 0.5 * ((b - v) ** 2).sum(axis=1) + 0.4 * np.array([penalty.value(row) for row in b])
    for _ in range(300):
        other = b + 10.0 ** rng.uniform(-6, 0) * rng.standard_normal(b.shape) * (rng.random(b.shape) < 0.5)
        assert np.all(
            objective
            <= 0.5 * ((other - v) ** 2).sum(axis=1) + 0.4 * np.array([penalty.value(row) for row in other]) + 1e-13
        )
