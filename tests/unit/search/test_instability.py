"""The choice by CV error and weighted instability from a table of intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecv_mio.search.answer.instability import Instabilities
from sparsecv_mio.search.state.cells import CellTable


def test_a_change_that_is_not_known_has_no_lower_end() -> None:
    """As of a fold of counts without which predictors overflow."""
    cells, some = CellTable.empty(1, 1, 2), object.__new__(Instabilities)
    cells.decided[...] = True
    some.cells = cells
    full: Any = None
    found, doubt = np.array([1.0, np.inf]), np.array([0.25, np.inf])
    with np.errstate(invalid="raise"):
        assert some._interval(0, 0, full, found, doubt) == (0.75, np.inf)
