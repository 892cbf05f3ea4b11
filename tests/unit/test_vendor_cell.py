"""Cells that a vendor solves: what is made of supports whose columns are collinear to rounding."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search import vendor_cell
from sparsecv_mio.search.vendor_cell import VendorCells


def far_from_the_origin() -> SparseProblem:
    """Products of columns that are all one number: next to 1e16 the penalty is rounded away."""
    return SparseProblem(np.full((3, 3), 1e16), np.full(3, 1e8), 2.0, np.ones(3), 1e-3, 4, np.zeros(3), 0.0)


def test_a_support_that_moments_cannot_fit_has_no_known_value() -> None:
    problem, pair = far_from_the_origin(), np.array([0, 1])
    assert vendor_cell._value(problem, pair) == np.inf
    assert 2.0 <= vendor_cell._value(problem, np.zeros(0, dtype=np.int64)) <= 2.0 * (1.0 + 1e-12)
    cell = vendor_cell._as_cell(problem, 2, [pair], 0.5, True)
    assert not cell.complete and cell.candidates == ()
    assert cell.lower == 0.5 and cell.upper == np.inf


def test_it_is_no_point_to_cut_at() -> None:
    cells = VendorCells("highs", Limits, lambda: False)
    cells.remember(far_from_the_origin(), np.array([0, 1]))
    assert len(cells.points) == 0
