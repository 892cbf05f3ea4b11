"""Regularisers of GLRU against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from conjugates import penalty_conjugate

from sparsecv_mio.oracles.glru import (
    Regularizer,
)


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
