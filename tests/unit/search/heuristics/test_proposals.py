"""Supports proposed by the batched relaxations of all folds: estimates, and nothing but."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan, make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.formulation.backends.native.cell import PathCell, PathResult
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics import proposals
from sparsecv_mio.search.heuristics.proposals import propose
from sparsecv_mio.search.state.cells import CellTable

TAUS = range(1, 7)


@pytest.fixture(scope="module")
def asked() -> tuple[StandardData, FoldPlan, Grid]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    X[:, 2] += 0.8 * X[:, 0]
    data = Dataset.from_arrays(X, X @ [3.0, 0, -2.0, 0.4, 0, 0.2] + rng.normal(size=40))
    return standardize(data), make_folds("8", data), Grid.of([0.05, 1.0], TAUS, 6)


def test_they_are_the_supports_of_the_relaxations(asked: tuple[StandardData, FoldPlan, Grid]) -> None:
    made = propose(*asked, lambda: False)
    assert made.fits == 2 * asked[1].k and set(made.error) == {0, 1}
    assert made.order([1, 0])[0] == min(made.error, key=made.error.__getitem__)
    assert made.support(0, 2, 3)[0].tolist() == [0, 2] and made.often(1, 2)[0].tolist() == [0, 2]
    assert made.support(0, 0, 0) == [] and made.often(0, 0) == []
    assert made.support(7, 2, 0) == [] and made.often(7, 2) == []


def test_a_gamma_that_the_time_left_out_comes_last(asked: tuple[StandardData, FoldPlan, Grid]) -> None:
    begun: list[int] = []
    made = propose(*asked, lambda: bool(begun) or begun.append(1) is not None)
    assert set(made.error) == {1} and made.order([0, 1]) == [1, 0] and made.support(0, 2, 0) == []


def test_hits_are_proposals_that_all_rows_do_not_name(asked: tuple[StandardData, FoldPlan, Grid]) -> None:
    _, folds, grid = asked
    made = propose(*asked, lambda: False)
    cells = CellTable.empty(2, len(grid.taus), folds.k)
    unproved = {tau: PathCell(tau, np.arange(tau), 0.0, np.inf, (), (), 0.0, False, False) for tau in TAUS}
    on_all_rows = [PathResult(unproved, 0, False)] * 2
    for fold, support in ((0, [0, 2]), (1, [0, 1]), (2, [0, 4])):  # as proposed, as on all rows, neither
        cells.decide((0, 1, fold), cells.pool.number(np.array(support)), 1.0, 1.0, 1.0, 0.0)
    assert made.hits(cells, on_all_rows, grid.taus) == 1


def test_nothing_in_a_proposal_is_a_bound() -> None:
    """Supports and estimates are handed over; the table of cells is only read."""
    source = inspect.getsource(proposals)
    for word in (".narrow(", ".decide(", "Interval"):
        assert word not in source
