"""Parquet and Feather: types, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from sparsecv_mio.data.inspection import inspect_file
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.reading import Reading

from .files import FRAME, NAMES, X, Y, refused


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
    refused("column 'a' holds text 'u' in row 1: encode it as numbers or drop the column; or read it with", path, "y")
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


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_feather_is_read_part_by_part(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "d.feather"
    feather.write_feather(FRAME.assign(g=["u", "v"] * 15), path, compression=compression, chunksize=7)
    data = read_dataset(path, "y", aux=["g"])
    assert data.names == tuple(NAMES) and np.array_equal(data.X, X) and np.array_equal(data.y, Y)
    assert data.aux["g"].tolist() == ["u", "v"] * 15
    assert read_dataset(path, "y", features=["x3", "x1"], drop=None).names == ("x1", "x3")
    frame = FRAME.assign(x1=pd.Categorical(["a", "b"] * 15), x2=np.where(np.arange(30) < 6, np.nan, X[:, 1]))
    frame.to_feather(tmp_path / "d.arrow")
    kept = read_dataset(tmp_path / "d.arrow", "y", encode="onehot", na="mean")
    assert kept.names == ("x1=b", "x2", "x3", "x4") and kept.n == 30
    found = inspect_file(tmp_path / "d.arrow", "y", Reading(), None)
    assert found.options == ("--na mean", "--encode onehot") and (found.n, found.p) == (30, 4)


def test_bad_feather(tmp_path: Path) -> None:
    path = tmp_path / "d.feather"
    path.write_text("no feather at all")
    refused("cannot be read as Feather", path, "y")
    path.write_bytes(b"ARROW1" + bytes(100))
    refused("cannot be read as Feather", path, "y")
    feather.write_feather(pa.table({"a": pa.array([], pa.float64()), "y": pa.array([], pa.float64())}), path)
    refused("the data has no rows", path, "y")
    feather.write_feather(pa.table({"a": [1.0, None], "y": [1.0, 2.0]}), path)
    refused("column 'a' is empty in row 2", path, "y")
    refused("target 'z' is not in the data", path, "z")
