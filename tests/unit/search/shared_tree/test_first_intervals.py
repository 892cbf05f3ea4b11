"""First intervals and first supports of every fold, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.search.shared_tree.first_intervals import first_intervals, offer_supports, well_known
from sparsecv_mio.search.shared_tree.root_node import RootNode

from .enumerated import VARIANTS, Enumerated


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_first_intervals_hold_the_truth(seed: int, spec: str, intercept: str) -> None:
    case = Enumerated(seed, spec=spec, intercept=intercept)
    root = RootNode(case.leave_out, 0, [0, 1, 2])
    first_intervals(root)
    case.check_cells()
    assert np.isfinite(case.cells.upper).mean() > 0.9 and np.isfinite(case.cells.nominal).all()
    assert not case.cells.decided.any()


def test_a_cell_shows_the_best_support_offered() -> None:
    case = Enumerated(7)
    root = RootNode(case.leave_out, 0, [0, 1, 2])
    first_intervals(root)
    offered = [(support, size - 1) for size in case.taus.tolist() for support in case.supports(size)]
    offer_supports(root, [support for support, _ in offered], [t for _, t in offered])
    np.testing.assert_allclose(case.cells.nominal[0], case.truth(), rtol=1e-8)
    case.check_cells()


def test_a_support_whose_error_is_not_known_is_not_shown() -> None:
    case = Enumerated()
    root = RootNode(case.leave_out, 0, [0, 1])
    scores = root.scores(0, case.folds.k).copy()
    scores.error[0, 3] = scores.held_out[0, 3] + 1.0
    known = well_known(root, scores)
    assert not known[0, 3] and known[0, :3].all() and not known[2].any()  # nothing was asked of the last row
