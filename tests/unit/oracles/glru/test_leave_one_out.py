"""Bounds of all leave-one-out predictions at once are those of the rows one by one."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.oracles.glru import (
    Regularizer,
)
from sparsecv_mio.oracles.glru.leave_one_out import GlruOracle, leave_one_out_bounds

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
