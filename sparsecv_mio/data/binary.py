"""Parquet and NPZ files."""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.cells import bad_cell
from sparsecv_mio.data.dataset import Dataset, FloatArray, assemble
from sparsecv_mio.data.select import Selection, Wanted
from sparsecv_mio.errors import BadInput

BATCH_NUMBERS = 1 << 22


def read_parquet(path: Path, wanted: Wanted) -> Dataset:
    """Read a few columns of one row group at a time into one preallocated array.

    Peak memory is X plus one column of the longest row group, or 32 MB where that is more.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            # pandas writes its row index as such a column; it numbers the rows and is no measurement.
            header = [name for name in file.schema_arrow.names if not re.fullmatch(r"__index_level_\d+__", name)]
            chosen = wanted.within(header)
            for j in chosen.numeric:
                _check_type(header[j], file.schema_arrow.field(header[j]).type)
            X, y, aux = _fill(file, chosen)
    except pa.ArrowException as error:
        raise BadInput(f"file {str(path)!r} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    return assemble(X, y, chosen.names, header[chosen.target], aux)


def _fill(file: Any, chosen: Selection) -> tuple[FloatArray, FloatArray, dict[str, NDArray[Any]]]:
    names, target = chosen.names, chosen.header[chosen.target]
    n = file.metadata.num_rows
    X, y = np.empty((n, len(names))), np.empty(n)
    extra: dict[str, list[NDArray[Any]]] = {chosen.header[j]: [] for j in chosen.aux}
    start = 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        stop, step = start + rows, max(1, BATCH_NUMBERS // max(1, rows))
        for first in range(0, len(names), step):
            some = list(names[first : first + step])
            table = file.read_row_group(group, columns=some, use_threads=False)
            for k, name in enumerate(some, start=first):
                X[start:stop, k] = _numbers(table[name], name, start)
        y[start:stop] = _numbers(file.read_row_group(group, columns=[target])[target], target, start)
        for name, parts in extra.items():
            parts.append(_ids(file.read_row_group(group, columns=[name])[name]))
        start = stop
    return X, y, {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in extra.items()}


def _check_type(name: str, kind: Any) -> None:
    import pyarrow as pa

    test = pa.types
    if not (test.is_integer(kind) or test.is_floating(kind) or test.is_boolean(kind) or test.is_decimal(kind)):
        raise BadInput(f"column {name!r} has the type {kind}, not numbers: encode it as numbers or drop the column")


def _numbers(column: Any, name: str, start: int) -> FloatArray:
    import pyarrow as pa

    if column.null_count:
        empty = column.is_null().to_numpy()
        raise bad_cell(name, start + int(np.argmax(empty)) + 1, None)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return column.to_numpy()


def _ids(column: Any) -> NDArray[Any]:
    import pyarrow as pa

    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return np.array(column.to_pylist(), dtype=object)
    return column.to_numpy()


def read_npz(path: Path, wanted: Wanted) -> Dataset:
    """Read the arrays X, y and names of an NPZ file; group and fold columns are arrays of their own or columns of X."""
    if not zipfile.is_zipfile(path):
        raise BadInput(f"file {str(path)!r} is not an NPZ archive: save it with numpy.savez(file, X=X, y=y)")
    try:
        with np.load(path, allow_pickle=False) as store:
            arrays = {key: store[key] for key in store.files if key in ("X", "y", "names", *wanted.aux)}
    except (ValueError, EOFError, KeyError, OverflowError, NotImplementedError, RecursionError, zlib.error,
            zipfile.BadZipFile) as error:  # fmt: skip
        raise BadInput(f"file {str(path)!r} cannot be read as NPZ: {str(error).splitlines()[0]}") from error
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
    """Select columns of a matrix whose target is called `y`."""
    if str(wanted.target) != "y":
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
    if ndim == 1 and values.ndim == 2 and values.shape[1] == 1:
        values = values.reshape(-1)
    if values.ndim != ndim:
        raise BadInput(f"array {key!r} of {str(path)!r} has {values.ndim} dimensions: it must have {ndim}")
    with np.errstate(over="ignore"):  # a number that float64 does not hold is named as one that is not finite
        return values.astype(np.float64, copy=False)
