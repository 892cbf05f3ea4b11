"""The ridge ball of every cell: against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_search import drawn
from every_support import brute_force_cell
from runs import new_run

from sparsecv_mio.search.methods.parts.loss_bounds import LossBounds
from sparsecv_mio.search.methods.parts.ridge_balls import narrow_by_ridge_balls
from sparsecv_mio.search.state.deadline import Deadline


def held_out(run: Any) -> Any:
    """(2, G, T, K): least and largest held-out sums of the optima, in standard units."""
    context = run.context
    data, folds = context.data.dataset, context.folds
    ends = np.empty((2, *context.shape))
    for g, t, fold in np.ndindex(*context.shape):
        gamma, tau = float(context.grid.gammas[g]), int(context.grid.taus[t])
        cell = brute_force_cell(data.X, data.y, tau, gamma, rows=folds.train_rows(fold))
        ends[:, g, t, fold] = cell.held_out(data.X, data.y, folds.scored_rows(fold))
    return ends / context.data.y_unit**2


@pytest.mark.parametrize("noise", [0.2, 2.0])
def test_intervals_hold(noise: float) -> None:
    method = new_run(*drawn(noise=noise))
    method.begin()
    loss, cells = LossBounds(method.run), method.run.state.cells
    loss.apply()
    loss.values[1, 1] = np.inf
    before, (low, high) = cells.lower.copy(), held_out(method.run)
    narrow_by_ridge_balls(method.run, loss.values, Deadline(0.0, None, -1.0))
    assert np.array_equal(cells.lower, before)
    narrow_by_ridge_balls(method.run, loss.values, method.context.deadline)
    assert np.all(cells.lower <= low * (1.0 + 1e-7) + 1e-12) and np.all(cells.upper >= high * (1.0 - 1e-7))
    known = np.isfinite(loss.values)
    assert np.array_equal(np.isfinite(cells.upper), known) and np.all(cells.lower >= before)
