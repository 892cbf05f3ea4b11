"""The balls that hold the new optimum: which lies in which."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.oracles.glru import (
    IntervalMethod,
    Logistic,
    change_rows,
    coefficient_intervals,
    train,
)

from .problems import LOSSES, RIDGES, fitted


def test_the_midpoint_ball_lies_in_the_papers_and_best_in_all() -> None:
    for loss in LOSSES:
        region = change_rows(fitted(loss, RIDGES[0]), [0])
        shift = float(np.linalg.norm(region.center - region.w))
        assert shift + region.radius <= region.primal_radius * (1 + 1e-9)
        assert region.radius <= region.primal_radius / np.sqrt(2.0) * (1 + 1e-9)
        assert region.radius_about_w <= region.primal_radius * (1 + 1e-9)
        assert region.dual_radius_sharp <= region.dual_radius * (1 + 1e-9)
        assert 0.5 * region.gap * (1 - 1e-9) <= region.slack <= region.gap
        boxes = {method: coefficient_intervals(region, method) for method in IntervalMethod}
        for method in (IntervalMethod.PRIMAL, IntervalMethod.DUAL, IntervalMethod.SHARP):
            assert np.all(boxes[IntervalMethod.BEST].lower >= boxes[method].lower - 1e-12)
            assert np.all(boxes[IntervalMethod.BEST].upper <= boxes[method].upper + 1e-12)


def test_removing_a_row_of_an_exact_fit_halves_the_radius() -> None:
    problem = fitted(Logistic(), RIDGES[0]).problem
    region = change_rows(train(problem, tol=1e-14), [4])
    assert region.radius == pytest.approx(0.5 * region.primal_radius, rel=1e-6)
