"""Parquet and Feather: types, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from sparsecv_mio import files
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.reading_options import Reading
from sparsecv_mio.data.table_facts import inspect_file
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.api import solve

from .files import FRAME, NAMES, X, Y, refused, write


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
    refused("column 'a' holds text 'u' in row 1; give encode=\"onehot\"", path, "y")
    parquet.write_table(pa.table({"a": [1, 2, None, 4], "y": [1.0, 2.0, 3.0, 4.0]}), path, row_group_size=2)
    refused("column 'a' is empty in row 3", path, "y")
    parquet.write_table(pa.table({"a": [1.0, np.inf], "y": [1.0, 2.0]}), path)
    refused("column 'a' holds inf in row 2", path, "y")
    parquet.write_table(pa.table({"a": pa.array([], pa.float64()), "y": pa.array([], pa.float64())}), path)
    refused("the data have no rows", path, "y")
    parquet.write_table(
        pa.Table.from_arrays([pa.array([1.0]), pa.array([1.0]), pa.array([2.0])], ["a", "a", "y"]), path
    )
    refused("column name 'a' is in the header more than once", path, "y")


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
    assert found.options == ("--na mean", "--encode onehot", "--na-within folds") and (found.n, found.p) == (30, 4)


def test_bad_feather(tmp_path: Path) -> None:
    path = tmp_path / "d.feather"
    path.write_text("no feather at all")
    refused("cannot be read as Feather", path, "y")
    path.write_bytes(b"ARROW1" + bytes(100))
    refused("cannot be read as Feather", path, "y")
    feather.write_feather(pa.table({"a": pa.array([], pa.float64()), "y": pa.array([], pa.float64())}), path)
    refused("the data have no rows", path, "y")
    feather.write_feather(pa.table({"a": [1.0, None], "y": [1.0, 2.0]}), path)
    refused("column 'a' is empty in row 2", path, "y")
    refused("target 'z' is not in the data", path, "z")


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
    refused("column name 'y' is in the header more than once", path, "y")
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


def test_arrays_larger_than_memory_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "a.npz"
    np.savez_compressed(place, X=np.zeros((1000, 10)), y=np.arange(1000.0), other=np.zeros((1000, 1000)))
    monkeypatch.setattr(files, "all_memory", lambda: 100_000)
    assert read_dataset(place, target="y").n == 1000
    monkeypatch.setattr(files, "all_memory", lambda: 50_000)
    with pytest.raises(BadInput, match=r"'.*a.npz' unpacks to more than the 50,000 bytes of memory"):
        read_dataset(place, target="y")


def test_svmlight_names_follow_the_indices(tmp_path: Path) -> None:
    path = tmp_path / "d.svm"
    path.write_text("1 qid:3 0:5 2:7\n2 1:1\n")
    data = read_dataset(path, "y")
    assert data.names == ("x0", "x1", "x2") and data.X.tolist() == [[5.0, 0.0, 7.0], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2\n2 1:x\n", "has '2 1:x' in line 2; write a number and index:value pairs, with increasing indices"),
        ("1 1:2\nfoo 1:3\n", "has 'foo 1:3' in line 2; "),
        ("1 1:2\n2 1\n", "has '2 1' in line 2; "),
        ("1 2:2 1:3\n", "has '1 2:2 1:3' in line 1; "),
        ("1 1:2 1:3\n", "has '1 1:2 1:3' in line 1; "),
        ("1 -1:2\n", "has '1 -1:2' in line 1; "),
        ("1 1:2\n2 1:nan\n", "column 'x1' holds nan in row 2"),
        ("# only a comment\n", "has no rows"),
    ],
)
def test_bad_svmlight(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "d.svm"
    path.write_text(text)
    refused(message, path, "y")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz", ".svm", ".svmlight", ".libsvm"])
def test_every_format_gives_the_same_numbers_names_and_fingerprint(tmp_path: Path, suffix: str) -> None:
    data = read_dataset(write(tmp_path, suffix), "y")
    expected = Dataset.from_arrays(X, Y, NAMES, "y")
    assert data.names == expected.names
    assert np.array_equal(data.X, X) and np.array_equal(data.y, Y)
    assert data.X.flags.c_contiguous and not data.X.flags.writeable
    assert data.fingerprint == expected.fingerprint == Dataset.from_frame(FRAME, "y").fingerprint


def test_bad_paths(tmp_path: Path) -> None:
    refused("does not exist", tmp_path / "no.csv", "y")
    refused("is a folder", tmp_path, "y")
    (tmp_path / "d.doc").write_text("x")
    refused("has the unknown suffix '.doc'; use one of .csv, .tsv", tmp_path / "d.doc", "y")
    (tmp_path / "latin.csv").write_bytes("a,y\n1,2\n\xe9,3\n".encode("latin-1"))
    refused("is not UTF-8 text", tmp_path / "latin.csv", "y")


def test_an_address_is_no_file() -> None:
    with pytest.raises(BadInput, match="file 'https://example.org/a.csv': a web address is not a file; download"):
        read_dataset("https://example.org/a.csv", "y")


def test_the_advice_for_a_text_target_is_a_parameter_of_the_function_that_gives_it(tmp_path: Path) -> None:
    data = tmp_path / "ill.csv"
    frame = pd.DataFrame({"x": np.arange(12.0), "ill": ["no", "yes", "no"] * 4})
    frame.to_csv(data, index=False)
    for source in (data, frame):
        with pytest.raises(BadInput, match="give two_words=True for two classes, or encode="):
            read_dataset(source, "ill")
        with pytest.raises(BadInput, match=r'give loss="logistic" for two classes, or encode='):
            solve(source, "ill")
        assert read_dataset(source, "ill", two_words=True).y.tolist() == [0.0, 1.0, 0.0] * 4
