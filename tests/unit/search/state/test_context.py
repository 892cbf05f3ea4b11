"""The question, and what all rows are asked once."""

from __future__ import annotations

import numpy as np
from drawn_search import drawn_run

from sparsecv_mio.formulation.backends.native.cell import PathCell, PathResult
from sparsecv_mio.search.state.context import AllRows


def test_units_and_shape() -> None:
    context = drawn_run().context
    assert context.shape == (2, 3, 5) and context.per_row == context.data.y_unit**2 / 30


def test_moments_and_forms_are_made_once() -> None:
    all_rows = AllRows(drawn_run().context)
    assert not all_rows.at_hand
    assert all_rows.moments is all_rows.moments and all_rows.at_hand
    assert all_rows.normal_form(1) is all_rows.normal_form(1) and all_rows.solved(1) is all_rows.solved(1)
    assert all_rows.problem(0).lam == 0.05 and all_rows.problem(1).Q is all_rows.base.Q
    inverse, beta, value = all_rows.solved(1)
    form = all_rows.normal_form(1)
    assert np.allclose(inverse @ form.matrix(), np.eye(form.m)) and np.allclose(form.matrix() @ beta, form.c)
    assert value == form.yy - form.c @ beta


def test_a_gamma_that_was_left_out_gets_supports_and_no_bound() -> None:
    all_rows = AllRows(drawn_run().context)
    all_rows.keep({})
    assert all_rows.best == []
    cell = PathCell.unproved(2, np.array([0, 3]))
    all_rows.keep({1: PathResult({2: cell}, 4, True)})
    assert all_rows.best[0].cells[2].support.tolist() == [0, 3]
    assert all_rows.best[0].cells[2].lower == 0.0 and not all_rows.best[0].cells[2].complete
