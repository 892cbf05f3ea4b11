"""Fold and group ids: from columns and files to integer labels."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import check_readable

MOST_BYTES, MOST_BYTES_A_ROW = 1 << 20, 1 << 12  # of a fold file
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.0*)?")


def as_ids(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Return ids as int64 where all are whole numbers, else as floats or text.

    Text that spells whole numbers counts as numbers, so a CSV and a Parquet file give the same folds.

    Raises
    ------
    BadInput
        At the first missing id; `what` names the column or file.

    Examples
    --------
    >>> as_ids(np.array(["10", " 2"]), "column 'g'").tolist()
    [10, 2]
    """
    if values.dtype.kind in "biu":
        return values.astype(np.int64)
    if values.dtype.kind == "f":
        missing = np.flatnonzero(~np.isfinite(values))
        if missing.size:
            raise BadInput(f"{what} has no id in row {int(missing[0]) + 1}: give every row one")
        whole = np.all((values == np.rint(values)) & (np.abs(values) < 2.0**53))
        return values.astype(np.int64) if whole else values
    texts = ["" if _missing(value) else str(value).strip() for value in values.tolist()]
    if "" in texts:
        raise BadInput(f"{what} has no id in row {texts.index('') + 1}: give every row one")
    if all(WHOLE_NUMBER.fullmatch(text) for text in texts):
        return np.array([int(text.partition(".")[0]) for text in texts], dtype=np.int64)
    return np.array(texts)


def _missing(value: object) -> bool:
    # NaN and pandas' NaT differ from themselves; pandas' NA prints as such and has no truth value to ask for.
    return value is None or repr(value) == "<NA>" or (isinstance(value, float) and value != value)


def group_labels(values: NDArray[Any], what: str) -> IntArray:
    """Return 0..k-1, one label per distinct id in sorted order."""
    ids = as_ids(values, what)
    return np.unique(ids, return_inverse=True)[1].reshape(-1).astype(np.int64)


def fold_labels(values: NDArray[Any], what: str) -> IntArray:
    """Return labels of ids that number the folds: -1 (or any whole number below 0) means never held out.

    Whole numbers must run without a gap: a missing number is an empty fold. Text is taken as it comes.

    Examples
    --------
    >>> fold_labels(np.array([3, 1, 2, -1]), "column 'f'").tolist()
    [2, 0, 1, -1]
    """
    ids = as_ids(values, what)
    if ids.dtype.kind != "i":
        return group_labels(ids, what)
    held = ids >= 0
    labels = np.full(ids.shape, -1, dtype=np.int64)
    distinct, inverse = np.unique(ids[held], return_inverse=True)
    gaps = np.flatnonzero(np.diff(distinct) > 1)
    if gaps.size:
        lost = int(distinct[gaps[0]]) + 1
        raise BadInput(
            f"{what} has no row with fold id {lost} although ids run from {distinct[0]} to {distinct[-1]}: an empty "
            "fold; number the folds without gaps, or use groups:COLUMN for ids that are names"
        )
    labels[held] = inverse.reshape(-1)
    return labels


def read_lines(path: Path, n: int, kind: str, item: str) -> list[list[str]]:
    """Read a CSV with a line per row of the data, and perhaps a header line.

    Parameters
    ----------
    path : Path
    n : int
        Rows of the data.
    kind, item : str
        What the messages call the file and an entry.

    Returns
    -------
    list of n or, with a header, n + 1 lists of str, all of one length

    Raises
    ------
    BadInput
        If the file cannot be read, has lines of several lengths, or does not hold n lines.
    """
    what = f"{kind} {str(path)!r}"
    lines: list[list[str]] = []
    try:
        if not path.exists():
            raise BadInput(f"{what} does not exist: check the path after file:")
        check_readable(path, kind, most=MOST_BYTES + MOST_BYTES_A_ROW * n)
        with path.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(handle)
            for row in reader:
                if lines and row and len(row) != len(lines[0]):
                    raise BadInput(
                        f"{what} has {len(row)} columns in line {reader.line_num} and {len(lines[0])} in the first: "
                        f"give one {item} a line{', or one for every repeat' if kind == 'fold file' else ''}"
                    )
                if row:
                    lines.append([cell.strip() for cell in row])
    except BadInput:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise BadInput(f"{what} cannot be read as CSV: {str(error).splitlines()[0]}") from error
    if len(lines) not in (n, n + 1):
        raise BadInput(
            f"{what} has {len(lines)} lines but the data has {n} rows: give one {item} per row, header optional"
        )
    return lines


def read_fold_file(path: Path, n: int) -> NDArray[Any]:
    """Read a CSV with a fold id per row, in a column per repeat; the number of lines tells a header line.

    Returns
    -------
    (n, R) array of text

    Raises
    ------
    BadInput
        If the file cannot be read, has lines of several lengths, or does not hold n lines.
    """
    what = f"fold file {str(path)!r}"
    ids = read_lines(path, n, "fold file", "fold id")
    if len(ids) == n + 1:
        return np.array(ids[1:])
    names = [column for column in np.array(ids).T if n > 1 and as_ids(column, what).dtype.kind != "i"]
    if any(as_ids(column[1:], what).dtype.kind == "i" for column in names):
        raise BadInput(f"{what} has {n - 1} ids below its header but the data has {n} rows: give one id per row")
    return np.array(ids)
