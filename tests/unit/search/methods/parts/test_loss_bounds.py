"""The training-loss bound of every cell: what it takes from the cells and from all rows, against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
from drawn_search import drawn
from every_support import brute_force_cell
from runs import new_run, to_end

from sparsecv_mio.search.methods.parts.loss_bounds import LossBounds


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
    solved, cells = to_end(new_run(*drawn())).run.state.cells, run.state.cells
    for g, t, fold in np.ndindex(*run.context.shape):
        support = solved.pool.supports[solved.support[g, max(t - before, 0), fold]]
        cells.offer((g, t, fold), cells.pool.number(support), 1.0, value)


def test_bounds_hold_and_take_every_bound_on_all_rows() -> None:
    run, loss = begun()
    cells, (f, h) = run.state.cells, optima(run)
    for share in (0.5, 0.9, 1.0):
        loss.apply(share * f[:, :, -1] * (1.0 - 1e-12))
        assert np.all(run.state.all_rows.lower_bounds() <= f[:, :, -1] * (1.0 + 1e-9))
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
    cells, tau = run.state.cells, int(run.context.grid.taus[0])
    cells.nominal[0, 0] = cells.value[0, 0] = np.inf
    loss.apply(gammas=np.array([1]))
    assert np.isinf(loss.values[0]).all() and np.isinf(cells.nominal[0, 0]).all() and np.isfinite(loss.values[1]).all()
    loss.apply()
    assert np.isfinite(loss.values).all() and np.isfinite(cells.nominal).all()
    assert set(cells.support[0, 0]) == {cells.pool.number(run.state.all_rows.best[0].cells[tau].support)}
