"""First answers: any search can be driven and watched, and what the first passes over the folds show is true."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn
from runs import new_run, record_of

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.state.attempts import DONE
from sparsecv_mio.search.state.pairs import Grid


def supports(run: object, fold: int) -> list[list[list[int]]]:
    """Supports that a fold's cells show, by gamma and tau."""
    cells = run.state.cells  # type: ignore[attr-defined]
    return [[cells.pool.supports[number].tolist() for number in row] for row in cells.support[:, :, fold]]


def search_folds(run: object, n_passes: int) -> None:
    """Take turns until so many passes over the folds are done."""
    while int(run.state.tried.fold_passes) < n_passes:  # type: ignore[attr-defined]
        run.step()  # type: ignore[attr-defined]


@pytest.mark.parametrize("n_passes", [1, 2, DONE])
def test_every_subproblem_shows_a_support_refitted_in_its_fold(n_passes: int) -> None:
    data, folds, grid = drawn(p=40, n=60)
    run = new_run(data, folds, grid)
    search_folds(run, n_passes)
    cells = run.state.cells
    assert np.isfinite(cells.nominal).all() and not cells.decided.any()
    for g, t, fold in np.ndindex(*cells.nominal.shape):
        support = cells.pool.supports[cells.support[g, t, fold]]
        fit = refit_rows(data, folds.train_rows(fold), support, float(grid.gammas[g]))
        assert len(support) == grid.taus[t]
        assert cells.value[g, t, fold] == pytest.approx(fit.objective, rel=1e-9)
        assert cells.nominal[g, t, fold] == pytest.approx(fit.held_out(data, folds.scored_rows(fold))[0], rel=1e-8)
        assert fit.objective <= run.state.objective_upper[g, t, fold] <= fit.objective * (1.0 + 1e-6)


def test_a_quick_answer_has_not_seen_the_rows_left_out() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 40)), rng.normal(size=60)
    shown = []
    for change in (0.0, 50.0):
        folds = make_folds("5", Dataset.from_arrays(X, y))
        other = y.copy()
        other[folds.scored_rows(1)] += change * X[folds.scored_rows(1), 7]
        data = standardize(Dataset.from_arrays(X, other), "none")
        run = new_run(data, folds, Grid.of([0.1, 1.0], [1, 2, 3], 40), seconds=600.0)
        search_folds(run, 1)
        shown.append([supports(run, fold) for fold in (0, 1)])
    assert shown[0][1] == shown[1][1]
    assert shown[0][0] != shown[1][0]  # another fold trains on these rows


def test_all_rows_search_along() -> None:
    data, folds, grid = drawn(p=40, n=60)
    run = new_run(data, folds, grid)
    run.begin()
    for g, t in np.ndindex(2, 3):
        best = run.state.all_rows.best[g].by_size[int(grid.taus[t])]
        fit = refit_rows(data, slice(0, data.n), best.support, float(grid.gammas[g]))
        assert fit.objective <= best.upper <= fit.objective * (1.0 + 1e-6)  # raised by what ties may hide


def test_a_quick_answer_is_a_record_of_every_size() -> None:
    data, folds, grid = drawn(p=40, n=60)
    run = new_run(data, folds, grid)
    search_folds(run, 1)
    records: list[Record] = [record_of(run)]
    assert len(records) == 1 and records[0].estimate and len(records[0].coefficients) == records[0].tau
    assert all(np.isfinite(row.cv_error) and row.estimate for row in records[0].table)
    shown = run.progress()
    assert shown.cv_error == min(row.cv_error for row in shown.taus) and shown.estimate
    assert shown.stage == "fold searches: tau 1 to 3"
