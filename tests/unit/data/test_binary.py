"""Parquet and NPZ: their types and their refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from sparsecv_mio.data.readers import read_dataset

from .files import X, Y, refused


def test_parquet_types(tmp_path: Path) -> None:
    frame = pd.DataFrame({"i": [1, 2], "b": [True, False], "f": np.array([0.5, 1.5], np.float32), "y": [1, 3]})
    frame.index = pd.Index([5, 9])
    frame.to_parquet(tmp_path / "t.parquet")
    data = read_dataset(tmp_path / "t.parquet", "y")
    assert data.names == ("i", "b", "f") and data.X.tolist() == [[1.0, 1.0, 0.5], [2.0, 0.0, 1.5]]


def test_bad_parquet(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    path.write_text("no parquet at all")
    refused("cannot be read as Parquet", path, "y")
    parquet.write_table(pa.table({"a": ["u", "v"], "y": [1.0, 2.0]}), path)
    refused("column 'a' has the type string, not numbers", path, "y")
    parquet.write_table(pa.table({"a": [1, 2, None, 4], "y": [1.0, 2.0, 3.0, 4.0]}), path, row_group_size=2)
    refused("column 'a' is empty in row 3", path, "y")
    parquet.write_table(pa.table({"a": [1.0, np.inf], "y": [1.0, 2.0]}), path)
    refused("column 'a' holds inf in row 2", path, "y")
    parquet.write_table(pa.table({"a": pa.array([], pa.float64()), "y": pa.array([], pa.float64())}), path)
    refused("the data has no rows", path, "y")
    parquet.write_table(
        pa.Table.from_arrays([pa.array([1.0]), pa.array([1.0]), pa.array([2.0])], ["a", "a", "y"]), path
    )
    refused("column name 'a' stands in the header more than once", path, "y")


def test_bad_npz(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    path.write_text("zip?")
    refused("is not an NPZ archive", path, "y")
    np.savez(path, X=X)
    refused("has no array 'y'", path, "y")
    np.savez(path, X=X, y=Y[:-1])
    refused("has 30 rows in X but 29 in y", path, "y")
    np.savez(path, X=X, y=Y, names=np.array(["a"]))
    refused("has 4 columns in X but 1 names", path, "y")
    np.savez(path, X=X, y=Y, names=np.array(["a", "b", "c", "y"]))
    refused("column name 'y' stands in the header more than once", path, "y")
    np.savez(path, X=X.astype(str), y=Y)
    refused("not numbers", path, "y")
    np.savez(path, X=X[0], y=Y)
    refused("'X' of", path, "y")
    np.savez(path, X=X, y=Y)
    refused("holds its target under the name 'y'", path, "x0")
    with path.open("wb") as handle:
        np.save(handle, X)
    refused("is not an NPZ archive", path, "y")
    np.savez(path, X=np.array([[1.0, None]], dtype=object), y=Y)
    refused("cannot be read as NPZ", path, "y")
