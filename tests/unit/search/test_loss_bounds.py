"""The training-loss bound of every cell: what it takes from the cells and from all rows, against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawn_search import drawn
from every_support import brute_force_cell
from runs import new_run, to_end

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.loss_bounds import narrow_by_ridge_balls
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.search.sources.all_rows_trees import LossBounds
from sparsecv_mio.search.sources.least_bounds import WeightBounds


def optima(run: Any) -> Any:
    """(G, T, K + 1): training objectives of every fold's optima in standard units, all rows last; and held-out sums."""
    context = run.context
    data, folds, unit = context.data.dataset, context.folds, context.data.y_unit**2
    f, h = np.empty((*context.shape[:2], folds.k + 1)), np.empty(context.shape)
    for g, gamma in enumerate(context.grid.gammas.tolist()):
        for t, tau in enumerate(context.grid.taus.tolist()):
            for fold in range(folds.k):
                cell = brute_force_cell(data.X, data.y, tau, gamma, rows=folds.train_rows(fold))
                f[g, t, fold] = cell.objective / unit
                h[g, t, fold] = cell.held_out(data.X, data.y, folds.scored_rows(fold))[0] / unit
            f[g, t, -1] = brute_force_cell(data.X, data.y, tau, gamma).objective / unit
    return f, h


def begun() -> tuple[Any, LossBounds]:
    """The part of a run, every cell of which shows an optimal support of the tau before, if there is one."""
    method = new_run(*drawn())
    method.begin()
    show(method.run, 1, 2.0)
    return method.run, LossBounds(method.run)


def show(run: Any, before: int, value: float) -> None:
    """Offer every cell the optimal support of an earlier tau, under a made-up value."""
    solved, cells = to_end(new_run(*drawn())).run.cells, run.cells
    for g, t, fold in np.ndindex(*run.context.shape):
        support = solved.pool.supports[solved.support[g, max(t - before, 0), fold]]
        cells.offer((g, t, fold), cells.pool.number(support), 1.0, value)


def test_bounds_hold_and_take_every_bound_on_all_rows() -> None:
    run, loss = begun()
    cells, (f, h) = run.cells, optima(run)
    for share in (0.5, 0.9, 1.0):
        loss.apply(share * f[:, :, -1] * (1.0 - 1e-12))
        assert np.all(run.all_rows.lower_bounds() <= f[:, :, -1] * (1.0 + 1e-9))
        assert np.all(loss.values >= f[:, :, :-1] * (1.0 - 1e-12)) and np.isfinite(loss.values).all()
        assert np.all(cells.lower <= h * (1.0 + 1e-7))
    assert np.all(cells.lower >= (f[:, :, -1:] - loss.values) - 1e-8)
    assert (cells.lower > 0.0).any()


def test_supports_found_later_are_refitted() -> None:
    run, loss = begun()
    f, _ = optima(run)
    loss.apply()
    assert (loss.values > f[:, :, :-1] * (1.0 + 1e-3)).any()
    show(run, 0, 1.0)
    loss.apply()
    np.testing.assert_allclose(loss.values, f[:, :, :-1], rtol=1e-7)


def test_a_cell_without_a_support_is_offered_the_best_on_all_rows() -> None:
    run, loss = begun()
    cells, tau = run.cells, int(run.context.grid.taus[0])
    cells.nominal[0, 0] = cells.value[0, 0] = np.inf
    loss.apply(gammas=np.array([1]))
    assert np.isinf(loss.values[0]).all() and np.isinf(cells.nominal[0, 0]).all() and np.isfinite(loss.values[1]).all()
    loss.apply()
    assert np.isfinite(loss.values).all() and np.isfinite(cells.nominal).all()
    assert set(cells.support[0, 0]) == {cells.pool.number(run.all_rows.best[0].by_size[tau].support)}


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
    loss, cells = LossBounds(method.run), method.run.cells
    loss.apply()
    loss.values[1, 1] = np.inf
    before, (low, high) = cells.lower.copy(), held_out(method.run)
    narrow_by_ridge_balls(method.run, loss.values, Deadline(0.0, None, -1.0))
    assert np.array_equal(cells.lower, before)
    narrow_by_ridge_balls(method.run, loss.values, method.context.deadline)
    assert np.all(cells.lower <= low * (1.0 + 1e-7) + 1e-12) and np.all(cells.upper >= high * (1.0 - 1e-7))
    known = np.isfinite(loss.values)
    assert np.array_equal(np.isfinite(cells.upper), known) and np.all(cells.lower >= before)
    before, pairs = cells.lower.copy(), np.arange(6).reshape(2, 3) != 2
    weight = WeightBounds(method.run, loss)
    weight.relax(pairs, Deadline(0.0, None, -1.0))
    assert np.array_equal(cells.lower, before)
    weight.relax(pairs, method.context.deadline)
    assert np.all(cells.lower <= low * (1.0 + 1e-7) + 1e-12) and (cells.lower > before).any()
    relaxed = cells.lower.copy()
    weight.branch([(0, 1), (0, 2)], 0.5 * float(high[0, 1].min()), 100, method.context.deadline)
    assert np.all(cells.lower <= low * (1.0 + 1e-7) + 1e-12) and np.all(cells.lower >= relaxed)
    assert np.array_equal(cells.lower[1, 1], before[1, 1])


def test_a_target_that_rows_left_out_share_with_training_is_no_error() -> None:
    """Of the folds before the far row every model predicts the constant: what its mean leaves of rows is rounding."""
    rng = np.random.default_rng(3)
    y = np.where(np.arange(24) == 23, 7.3, 0.1)
    dataset = Dataset.from_arrays(rng.normal(size=(24, 4)), y)
    method = new_run(standardize(dataset), make_folds("forward:6", dataset), Grid.of([0.1, 1.0], [1, 2, 3], 4))
    method.begin()
    loss = LossBounds(method.run)
    loss.apply()
    weight, pairs = WeightBounds(method.run, loss), np.ones(method.context.shape[:2], dtype=bool)
    method.run.cells.decided[...], method.run.cells.nominal[...] = False, 2.5e-33  # what fits show of it
    weight.relax(pairs, method.context.deadline)
    assert method.context.folds.k > 2 and not method.run.cells.lower[:, :, :-1].any()
