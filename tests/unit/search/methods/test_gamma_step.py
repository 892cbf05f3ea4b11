"""h as a function of gamma at fixed supports: values, slopes and minima."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn, drawn_run
from runs import to_end

from sparsecv_mio.search.methods.gamma_step import GammaCurve, log_uniform, proposals


def test_slope_and_bend_are_derivatives() -> None:
    data, folds, _ = drawn()
    curve = GammaCurve(data, folds, [np.array([0, 3])] * folds.k)
    for gamma in (0.01, 0.3, 4.0):
        step = 1e-5
        low, here, high = (curve.at(float(gamma * np.exp(t))) for t in (-step, 0.0, step))
        assert here[1] == pytest.approx((high[0] - low[0]) / (2 * step), rel=1e-5, abs=1e-8)
        assert here[2] == pytest.approx((high[1] - low[1]) / (2 * step), rel=1e-5, abs=1e-8)


def test_minima_beat_a_fine_grid() -> None:
    data, folds, _ = drawn()
    curve = GammaCurve(data, folds, [np.array([0, 2])] * folds.k)
    best = curve.minima(0.5)[0]
    assert best.total <= min(curve.at(float(gamma))[0] for gamma in np.geomspace(1e-3, 10.0, 200)) * (1.0 + 1e-9)
    assert len(log_uniform(0.1, 10.0)) == 9


def test_proposals_lower_h() -> None:
    state = to_end(drawn_run()).run.state
    pair = state.bounds().best
    for point in proposals(state, pair, (1e-3, 10.0)):
        assert point.total < float(state.cells.nominal[pair].sum())


@pytest.mark.filterwarnings("error")
def test_slopes_that_overflow_say_nothing() -> None:
    data, folds, _ = drawn()
    curve = GammaCurve(data, folds, [np.array([0, 3])] * folds.k)
    curve.part, curve.pole = curve.part * 1e100, np.zeros_like(curve.pole)
    for gamma in (1e-300, 1e-60, 1.0):
        assert curve.minima(gamma, 1e-300, 10.0) is not None
