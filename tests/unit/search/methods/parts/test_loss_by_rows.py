"""The training-loss bound by rows: bounds of held-out errors against enumeration, and what is worked on first."""

from __future__ import annotations

from typing import Any

import numpy as np
from drawn_search import drawn
from every_support import brute_force_cell
from runs import new_run

from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.methods.by_rows import ByRows
from sparsecv_mio.search.methods.parts.loss_by_rows import LossByRows


def begun() -> tuple[Any, ByRows, LossByRows]:
    """Return a search by rows with first answers, whose training objectives are noted."""
    method = ByRows(new_run(*drawn()).run)
    method.begin()
    context, cells, loss = method.context, method.run.state.cells, LossByRows(method.run)
    for where in np.ndindex(*context.shape):
        g, _, fold = where
        support = cells.pool.supports[cells.support[where]]
        gamma = float(context.grid.gammas[g])
        loss.note(where, refit_rows(context.data, context.folds.train_rows(fold), support, gamma))
    return method.run, method, loss


def test_bounds_of_all_rows_hold_in_every_fold() -> None:
    run, method, loss = begun()
    context, cells = run.context, run.state.cells
    data, folds, unit = context.data.dataset, context.folds, context.data.y_unit**2
    gamma, taus = float(context.grid.gammas[0]), context.grid.taus.tolist()

    def optimum(tau: int, fold: int) -> tuple[float, float]:
        cell = brute_force_cell(data.X, data.y, tau, gamma, rows=folds.train_rows(fold))
        return cell.objective / unit, cell.held_out(data.X, data.y, folds.scored_rows(fold))[0] / unit

    true = np.array([[optimum(tau, fold) for fold in range(folds.k)] for tau in taus])
    best = int(np.argmin(true[:, :, 1].sum(axis=1)))
    cells.narrow((0, best), 0.0, true[best, :, 1] * (1.0 + 1e-9))
    wanted = np.ones(context.shape, dtype=bool)
    pairs, enough = loss.promising(wanted, 100), loss.enough()
    assert pairs[0].any() and not pairs[0, best] and loss.winner_first(wanted) is wanted
    loss.bound(method._rows_of(None, 0), 0, list(range(len(taus))), 100)
    assert (loss.tried[0] == 100).all() and (loss.tried[1:] == 0).all()
    for t, tau in enumerate(taus):
        whole = brute_force_cell(data.X, data.y, tau, gamma).objective / unit
        found = run.state.all_rows.best[0].cells[tau].lower
        assert found <= whole * (1.0 + 1e-9)
        assert not enough[0, t] < whole or found >= enough[0, t] * (1.0 - 1e-9)
    assert (loss.values[0] >= true[:, :, 0] * (1.0 - 1e-12)).all()
    assert (cells.lower[0] <= true[:, :, 1] * (1.0 + 1e-7)).all() and (cells.lower[0] > 0.0).any()


def test_the_likely_winner_comes_first() -> None:
    run, _, loss = begun()
    run.state.cells.upper[...] = np.inf
    wanted = np.ones(run.context.shape, dtype=bool)
    first = loss.winner_first(wanted)
    assert first.sum() == run.context.folds.k and not loss.promising(wanted, 100).any()
