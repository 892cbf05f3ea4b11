"""The end of a search: ends that plain arithmetic refuses are withdrawn, and the status says so."""

from __future__ import annotations

import numpy as np
import problems
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.search import running_search
from sparsecv_mio.search.answer import recheck
from sparsecv_mio.search.answer.recheck import recheck_snapshot
from sparsecv_mio.search.state.context import Snapshot

GAMMAS, TAUS = [0.01, 1.0], [1, 2, 3]


def problem() -> tuple[Dataset, FoldPlan]:
    data = problems.linear(5, 40, 5, {0: 1.0, 3: -2.0}, noise=0.3)
    return data, make_folds("4", data)


def solved_after(monkeypatch: pytest.MonkeyPatch, change, taus=tuple(TAUS)) -> sc.Record:
    """Solve where the cells are altered before they are looked at again."""

    def altered(snapshot: Snapshot) -> Snapshot:
        change(snapshot.cells)
        return recheck_snapshot(snapshot)

    monkeypatch.setattr(running_search, "recheck_snapshot", altered)
    monkeypatch.setattr(recheck, "RECHECK_SHARE", np.inf)  # of every cell, however long that takes
    return sc.cross_validate(*problem(), gammas=GAMMAS, taus=taus, gap=0.0)


def test_right_ends_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = sc.cross_validate(*problem(), gammas=GAMMAS, taus=TAUS, gap=0.0)
    looked = solved_after(monkeypatch, lambda cells: None)
    assert looked.status == plain.status == "proved" and looked.table == plain.table


@pytest.mark.parametrize("share", [0.9, 0.999])
def test_an_end_that_a_refit_refuses_is_withdrawn(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    def shrink(cells) -> None:
        for array in (cells.lower, cells.upper, cells.nominal):
            array[:, :, 2] *= share

    record = solved_after(monkeypatch, shrink)
    assert record.status == "doubtful" and record.upper == np.inf
    assert any("fold 3" in words and "please report" in words for words in record.warnings)
    assert all(row.upper == np.inf for row in record.table) and not any("\n" in words for words in record.warnings)


def test_a_support_with_a_better_neighbour_is_no_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its held-out error is right; that it is the best subset of the fold is not."""
    data, folds = problem()
    unit = standardize(data).y_unit ** 2

    def exchange(cells) -> None:
        for g, gamma in enumerate(GAMMAS):
            model = fit(data.X, data.y, [1, 2], gamma, rows=folds.train_rows(0))
            error = held_out_error(model, data.X, data.y, folds.scored_rows(0)) / unit
            for array in (cells.lower, cells.upper, cells.nominal):
                array[g, 0, 0] = error
            cells.support[g, 0, 0] = cells.pool.number(np.array([1, 2]))

    record = solved_after(monkeypatch, exchange, [2])
    assert record.status == "doubtful" and any("fit better" in words for words in record.warnings)
    assert record.table[0].lower <= record.table[0].upper == np.inf
