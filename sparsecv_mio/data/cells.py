"""Say which cell is wrong: one line naming column and row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput

MISSING_MARKS = frozenset({"na", "n/a", "<na>", "nan", "null", "none", "?", "."})  # lower case, as exports write them


def bad_cell(column: str, row: int, value: object, line: int | None = None) -> BadInput:
    """Return the error for one cell.

    Parameters
    ----------
    column : str
    row : int
        1-based, the header not counted.
    value : object
        What the cell holds; None where it is empty.
    line : int, optional
        Its line in a text file.
    """
    where = f"row {row}" if line is None else f"row {row} (line {line})"
    if value is None or (isinstance(value, str) and not value.strip()):
        return BadInput(f"column {column!r} is empty in {where}: fill the cell, or remove the row or the column")
    if isinstance(value, str) and value.strip().lower() in MISSING_MARKS:
        return BadInput(
            f"column {column!r} has a missing value, {value.strip()!r}, in {where}: "
            "fill the cell, or remove the row or the column"
        )
    if isinstance(value, str):
        shown = value if len(value) <= 30 else value[:27] + "..."
        return BadInput(f"column {column!r} holds text {shown!r} in {where}: encode it as numbers or drop the column")
    return BadInput(f"column {column!r} holds {value} in {where}: replace it by a finite number or remove the row")


def check_finite(X: FloatArray, y: FloatArray, names: Sequence[str], target: str) -> None:
    """Raise `BadInput` at the first row that holds NaN or infinity; O(np) time, one chunk of memory.

    Parameters
    ----------
    X : (n, p) array
    y : (n,) array
    names : sequence of p str
    target : str
    """
    step = max(1, (1 << 20) // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        block, response = X[start : start + step], y[start : start + step]
        good_rows = np.isfinite(block).all(axis=1) & np.isfinite(response)
        if not good_rows.all():
            i = int(np.argmin(good_rows))
            bad = np.flatnonzero(~np.isfinite(block[i]))
            if bad.size:
                raise bad_cell(names[int(bad[0])], start + i + 1, float(block[i, bad[0]]))
            raise bad_cell(target, start + i + 1, float(response[i]))
