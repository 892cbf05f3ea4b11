"""Cells that cannot be numbers: one line with column and row."""

from __future__ import annotations

import numpy as np
import pytest

from sparsecv_mio.data.cells import bad_cell, check_finite, stand_in_notes
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


def test_numbers_that_stand_for_nothing() -> None:
    X = np.column_stack([np.arange(8.0), np.full(8, 99.0), 20.0 * np.arange(8)])
    assert stand_in_notes(X, X[:, 0], "abc", "y") == ()
    X[3, 0], X[5, 2] = -999.0, 9999.0
    notes = stand_in_notes(X, np.array([1.0, 99.0, 2, 3, 4, 5, 6, 7]), "abc", "y")
    assert [note[:21] for note in notes] == ["column 'a' holds -999", "column 'c' holds 9999", "column 'y' holds 99, "]
    X[:, 2] = [9000.0, 9999.0, 3.0, 700.0, 20.0, 8000.0, 1.0, 2.0]
    assert len(stand_in_notes(X, X[:, 1], "abc", "y")) == 1
