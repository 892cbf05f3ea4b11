"""Cells that cannot be numbers: one line with column and row."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.cells import bad_cell, check_finite
from sparsecv_mio.errors import BadInput


@pytest.mark.parametrize(
    ("value", "line", "told"),
    [
        (None, None, "column 'a' is empty in row 3: "),
        ("  ", 4, "column 'a' is empty in row 3 (line 4): "),
        ("N/A", None, "has a missing value, 'N/A', in row 3"),
        ("five", None, "holds text 'five' in row 3"),
        ("x" * 50, None, f"holds text '{'x' * 27}...' in row 3"),
        (float("inf"), None, "holds inf in row 3"),
    ],
)
def test_what_a_cell_holds_is_said(value: object, line: int | None, told: str) -> None:
    message = str(bad_cell("a", 3, value, line))
    assert told in message and "\n" not in message


@pytest.mark.parametrize("wide", [False, True])
def test_the_first_bad_row_is_named(wide: bool) -> None:
    p = 400_000 if wide else 2  # wide: the rows are checked three at a time
    X, y, names = np.zeros((7, p)), np.zeros(7), [f"x{j}" for j in range(p)]
    check_finite(X, y, names, "y")
    y[5] = np.nan
    with pytest.raises(BadInput, match="column 'y' holds nan in row 6"):
        check_finite(X, y, names, "y")
    X[4, 1] = -np.inf
    with pytest.raises(BadInput, match="column 'x1' holds -inf in row 5"):
        check_finite(X, y, names, "y")
