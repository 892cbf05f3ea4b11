"""NPZ files, and what they share with other files that hold a matrix and a target."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.dataset import Dataset, assemble, shaped
from sparsecv_mio.data.select import Wanted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import check_unpacked


def read_npz(path: Path, wanted: Wanted) -> Dataset:
    """Read the arrays X, y and names of an NPZ file; group and fold columns are arrays of their own or columns of X."""
    if not zipfile.is_zipfile(path):
        raise BadInput(f"file {str(path)!r} is not an NPZ archive: save it with numpy.savez(file, X=X, y=y)")
    try:
        with np.load(path, allow_pickle=False) as store:
            used = [key for key in store.files if key in ("X", "y", "names", *wanted.aux)]
            sizes = {one.filename.removesuffix(".npy"): one.file_size for one in store.zip.infolist()}
            check_unpacked(path, sum(sizes.get(key, 0) for key in used))
            arrays = {key: store[key] for key in used}
    except BadInput:
        raise
    except (ValueError, EOFError, KeyError, OverflowError, NotImplementedError, RecursionError, SyntaxError,
            MemoryError, TokenError, zlib.error, zipfile.BadZipFile) as error:  # fmt: skip
        why = (str(error) or type(error).__name__).splitlines()[0]
        raise BadInput(f"file {str(path)!r} cannot be read as NPZ: {why}") from error
    for key in ("X", "y"):
        if key not in arrays:
            raise BadInput(f"file {str(path)!r} has no array {key!r}: save it with numpy.savez(file, X=X, y=y)")
    X = _array(arrays.pop("X"), "X", 2, path)
    y = _array(arrays.pop("y"), "y", 1, path)
    if X.shape[0] != y.shape[0]:
        raise BadInput(f"file {str(path)!r} has {X.shape[0]} rows in X but {y.shape[0]} in y: give one target per row")
    names = arrays.pop("names", None)
    labels = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(name) for name in names.reshape(-1)]
    if len(labels) != X.shape[1]:
        raise BadInput(f"file {str(path)!r} has {X.shape[1]} columns in X but {len(labels)} names: give one a column")
    return from_matrix(path, wanted, X, y, labels, arrays)


def from_matrix(
    path: Path, wanted: Wanted, X: FloatArray, y: FloatArray, names: list[str], extra: dict[str, NDArray[Any]]
) -> Dataset:
    """Select columns of a matrix whose target is called `y`.

    Parameters
    ----------
    path : Path
        For messages.
    wanted : Wanted
    X : (n, p) array
    y : (n,) array
    names : list of p str
    extra : dict of str to (n,) array
        Group and fold columns that stand beside the matrix.

    Raises
    ------
    BadInput
        Another target was asked for, or a name is wrong.
    """
    if wanted.needed and str(wanted.target) != "y":
        raise BadInput(f"file {str(path)!r} holds its target under the name 'y': ask for target y, not {wanted.target}")
    chosen = wanted.within([*names, "y", *extra])
    aux = dict(extra)
    aux.update({chosen.header[j]: X[:, j].copy() for j in chosen.aux if j < X.shape[1]})
    if len(chosen.features) < X.shape[1]:
        X = X[:, list(chosen.features)]
    return assemble(np.ascontiguousarray(X), y, chosen.names, "y", aux)


def _array(values: NDArray[Any], key: str, ndim: int, path: Path) -> FloatArray:
    if values.dtype.kind not in "biuf":
        raise BadInput(f"array {key!r} of {str(path)!r} has the type {values.dtype}, not numbers: save it as float64")
    values = shaped(values, f"array {key!r} of {str(path)!r}", ndim)
    with np.errstate(over="ignore"):  # a number that float64 does not hold is named as one that is not finite
        return values.astype(np.float64, copy=False)
