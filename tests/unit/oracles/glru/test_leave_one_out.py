"""Bounds of all leave-one-out predictions at once, and GLRU as an oracle."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.oracles.base import CertifiedOracle, EstimateOracle
from sparsecv_mio.oracles.glru import (
    Logistic,
    Regularizer,
)
from sparsecv_mio.oracles.glru.leave_one_out import GlruOracle, leave_one_out_bounds
from sparsecv_mio.oracles.glru.newton import NewtonOracle

from .fits import LOSSES, RIDGES, fitted


@pytest.mark.parametrize("regularizer", [*RIDGES, Regularizer(0.3, intercept=True)], ids=str)
def test_all_leave_one_out_bounds_are_the_single_ones(regularizer: Regularizer) -> None:
    for loss in LOSSES:
        fit = fitted(loss, regularizer)
        together, oracle = leave_one_out_bounds(fit), GlruOracle(fit, "sharp" if not regularizer.intercept else "best")
        for i in range(14):
            alone = oracle.leave_out(np.array([i]))
            assert together.lower[i] == pytest.approx(alone.lower[0], abs=1e-7)
            assert together.upper[i] == pytest.approx(alone.upper[0], abs=1e-7)


def test_oracles_keep_the_protocol() -> None:
    fit = fitted(Logistic(), RIDGES[0])
    glru, step = GlruOracle(fit), NewtonOracle(fit)
    assert isinstance(glru, CertifiedOracle) and glru.guarantee == "certified"
    assert isinstance(step, EstimateOracle) and step.guarantee == "estimate"
    joint = glru.leave_out(np.array([1, 2, 3]))
    assert joint.lower.shape == (3,) and step.leave_out(np.array([1, 2])).value.shape == (2,)
