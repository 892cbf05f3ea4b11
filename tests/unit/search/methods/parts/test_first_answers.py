"""First answers: every fold its own, whatever the share of the limit, and all rows along with them."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn
from runs import new_run, record_of

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.methods.parts import first_answers
from sparsecv_mio.search.methods.parts.first_answers import answers_of_all_rows


def supports(run: object, fold: int) -> list[list[list[int]]]:
    """Supports that a fold's cells show, by gamma and tau."""
    cells = run.run.state.cells  # type: ignore[attr-defined]
    return [[cells.pool.supports[number].tolist() for number in row] for row in cells.support[:, :, fold]]


@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize("method", ["joint", "rounds", "algorithm1"])
def test_every_cell_shows_a_support_refitted_in_its_fold(
    method: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_answers, "SEARCH_SHARE", share)
    data, folds, grid = drawn(p=40, n=60)
    run = new_run(data, folds, grid, seconds=600.0, method=method)
    run.method.estimates.before_all()
    cells = run.run.state.cells
    assert run.method.estimates.done and np.isfinite(cells.nominal).all() and not cells.decided.any()
    for g, t, fold in np.ndindex(*cells.nominal.shape):
        support = cells.pool.supports[cells.support[g, t, fold]]
        fit = refit_rows(data, folds.train_rows(fold), support, float(grid.gammas[g]))
        assert len(support) == grid.taus[t]
        assert cells.value[g, t, fold] == pytest.approx(fit.objective, rel=1e-9)
        assert cells.nominal[g, t, fold] == pytest.approx(fit.held_out(data, folds.scored_rows(fold))[0], rel=1e-8)


def test_a_quick_answer_has_not_seen_the_rows_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_answers, "SEARCH_SHARE", 0.0)
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 40)), rng.normal(size=60)
    shown = []
    for change in (0.0, 50.0):
        folds = make_folds("5", Dataset.from_arrays(X, y))
        other = y.copy()
        other[folds.scored_rows(1)] += change * X[folds.scored_rows(1), 7]
        data = standardize(Dataset.from_arrays(X, other), "none")
        run = new_run(data, folds, Grid.of([0.1, 1.0], [1, 2, 3], 40), seconds=600.0)
        run.method.estimates.before_all()
        shown.append([supports(run, fold) for fold in (0, 1)])
    assert shown[0][1] == shown[1][1]
    assert shown[0][0] != shown[1][0]  # another fold trains on these rows


def test_all_rows_search_along() -> None:
    data, folds, grid = drawn(p=40, n=60)
    run = new_run(data, folds, grid)
    run.begin()
    found, alone = first_answers.first_answers(new_run(data, folds, grid).run), answers_of_all_rows(run.context)
    assert found is not None and alone is not None
    for g, t in np.ndindex(2, 3):
        fit = refit_rows(data, slice(0, data.n), found.support(g, t), float(grid.gammas[g]))
        best = run.run.state.all_rows.best[g].cells[int(grid.taus[t])]
        assert found.objective[g, t] == pytest.approx(fit.objective, rel=1e-9)
        assert alone.objective[g, t] == pytest.approx(found.objective[g, t], rel=1e-9)
        assert best.upper <= found.objective[g, t] * (1.0 + 1e-9)
        assert best.support.tolist() == found.support(g, t).tolist()


def test_a_quick_answer_is_a_record_of_every_size() -> None:
    data, folds, grid = drawn(p=40, n=60)
    run = new_run(data, folds, grid)
    records: list[Record] = []
    first_answers.first_answers(run.run, lambda: records.append(record_of(run)))
    assert len(records) == 1 and records[0].estimate and len(records[0].coefficients) == records[0].tau
    assert all(np.isfinite(row.cv_error) and row.estimate for row in records[0].table)
    shown = run.progress()
    assert shown.cv_error == min(row.cv_error for row in shown.taus) and shown.estimate
    assert shown.stage == f"searching better supports, pass {shown.stage.split()[4][:-1]}: fold 1 of 5"


def test_nothing_to_choose() -> None:
    data, folds, _ = drawn(p=40, n=60)
    run = new_run(data, folds, Grid.of([0.1], [0], 40))
    assert first_answers.first_answers(run.run) is None and answers_of_all_rows(run.context) is None
