"""svmlight / libsvm text: `target index:value index:value ... # comment`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.delimited import blame_cell
from sparsecv_mio.data.npz import from_matrix
from sparsecv_mio.data.select import Wanted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import check_numbers


def read_svmlight(path: Path, wanted: Wanted) -> Dataset:
    """Read the file as a dense array whose columns are named `x` and their index in the file.

    An index 0 anywhere makes the first feature `x0`, else it is `x1`. Indices no row mentions are columns of zeros.
    """
    from sklearn.datasets import load_svmlight_file

    try:
        sparse, y = load_svmlight_file(str(path), dtype=np.float64, zero_based=True)
    except (ValueError, OverflowError, UnicodeDecodeError) as error:
        _blame_line(path)
        raise BadInput(f"file {str(path)!r} cannot be read as svmlight: {str(error).splitlines()[0]}") from error
    if sparse.shape[0] == 0:
        raise BadInput(f"file {str(path)!r} has no rows: give one line per row")
    first = 0 if sparse.nnz == 0 or int(sparse.indices.min()) == 0 else 1
    check_numbers(path, sparse.shape[0], sparse.shape[1])
    X = np.ascontiguousarray(sparse[:, first:].toarray())
    return from_matrix(path, wanted, X, y, [f"x{j + first}" for j in range(X.shape[1])], {})


def _blame_line(path: Path) -> None:
    """Raise `BadInput` at the first line that is no svmlight; return where every line is fine."""
    row = 0
    with path.open(encoding="utf-8", errors="replace") as handle:
        for line, text in enumerate(handle, start=1):
            words = text.partition("#")[0].split()
            if not words:
                continue
            row += 1
            blame_cell(words[0], "y", row, line)
            last = -1
            for word in words[1:]:
                index, colon, value = word.partition(":")
                if index == "qid":
                    continue
                if not colon or not (index.isascii() and index.isdigit()):
                    raise BadInput(f"file {str(path)!r} has {word!r} in line {line}: write index:value")
                if int(index) <= last:
                    raise BadInput(f"file {str(path)!r} repeats or disorders index {index} in line {line}: sort them")
                last = int(index)
                blame_cell(value, f"x{index}", row, line)
