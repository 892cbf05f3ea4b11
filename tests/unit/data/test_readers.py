"""Every file format gives the same data set; every bad file is refused with one line that names the place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.errors import BadInput

RNG = np.random.default_rng(3)
X = RNG.standard_normal((30, 4)) * 10.0 ** RNG.integers(-5, 5, (30, 4))
Y = RNG.standard_normal(30)
NAMES = ["x1", "x2", "x3", "x4"]
FRAME = pd.DataFrame(X, columns=NAMES).assign(y=Y)


def write(folder: Path, suffix: str) -> Path:
    path = folder / f"data{suffix}"
    if suffix in (".csv", ".tsv"):
        FRAME.to_csv(path, index=False, sep="," if suffix == ".csv" else "\t")
    elif suffix == ".parquet":
        FRAME.to_parquet(path, row_group_size=7)
    elif suffix == ".npz":
        np.savez(path, X=X, y=Y, names=np.array(NAMES))
    else:
        lines = [
            f"{y!r} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row, start=1))
            for y, row in zip(Y.tolist(), X.tolist(), strict=True)
        ]
        path.write_text("# comment\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz", ".svm", ".svmlight", ".libsvm"])
def test_every_format_gives_the_same_numbers_names_and_fingerprint(tmp_path: Path, suffix: str) -> None:
    data = read_dataset(write(tmp_path, suffix), "y")
    expected = Dataset.from_arrays(X, Y, NAMES, "y")
    assert data.names == expected.names
    assert np.array_equal(data.X, X) and np.array_equal(data.y, Y)
    assert data.X.flags.c_contiguous and not data.X.flags.writeable
    assert data.fingerprint == expected.fingerprint == Dataset.from_frame(FRAME, "y").fingerprint


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".svm"])
def test_features_and_drop_choose_columns_in_file_order(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path, suffix)
    kept = read_dataset(path, "y", features=["x4", "x2"])
    assert kept.names == ("x2", "x4")
    assert np.array_equal(kept.X, X[:, [1, 3]])
    assert read_dataset(path, "y", drop=["x1", "x3"]).fingerprint == kept.fingerprint


def test_target_by_position_and_name_before_position(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("2,a,b\n1,2,3\n4,5,6\n")
    assert read_dataset(path, "1").target == "a"
    assert read_dataset(path, 0).target == "2"
    assert read_dataset(path, 2).target == "2", "a column named 2 wins over position 2"


def test_auxiliary_columns_hold_text_or_numbers_and_are_no_features(tmp_path: Path) -> None:
    frame = FRAME.assign(who=["u", "v", "w"] * 10, day=np.arange(30) % 4)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        data = read_dataset(path, "y", aux=["who", "day"])
        assert data.names == tuple(NAMES)
        assert data.aux["who"].tolist() == frame["who"].tolist()
        assert [int(v) for v in data.aux["day"]] == frame["day"].tolist()
    np.savez(tmp_path / "a.npz", X=X, y=Y, g=np.arange(30) % 3)
    data = read_dataset(tmp_path / "a.npz", "y", aux=["g", "x1"])
    assert data.names == ("x0", "x2", "x3")
    assert np.array_equal(data.aux["x1"], X[:, 1]) and data.aux["g"].tolist() == (np.arange(30) % 3).tolist()


def test_unused_columns_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('a,note,y\n1,"two\nlines, and a comma",2\n\n+3,,4\n')
    data = read_dataset(path, "y", drop=["note"])
    assert data.X.tolist() == [[1.0], [3.0]] and data.y.tolist() == [2.0, 4.0]


def test_byte_order_mark_windows_lines_and_spaces(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes("\ufeffa, b ,y\r\n1, 2,3\r\n4,5,6\r\n".encode())
    data = read_dataset(path, "y")
    assert data.names == ("a", "b") and data.X.tolist() == [[1.0, 2.0], [4.0, 5.0]]


def test_parquet_types(tmp_path: Path) -> None:
    frame = pd.DataFrame({"i": [1, 2], "b": [True, False], "f": np.array([0.5, 1.5], np.float32), "y": [1, 3]})
    frame.index = pd.Index([5, 9])
    frame.to_parquet(tmp_path / "t.parquet")
    data = read_dataset(tmp_path / "t.parquet", "y")
    assert data.names == ("i", "b", "f") and data.X.tolist() == [[1.0, 1.0, 0.5], [2.0, 0.0, 1.5]]


def test_svmlight_names_follow_the_indices(tmp_path: Path) -> None:
    path = tmp_path / "d.svm"
    path.write_text("1 qid:3 0:5 2:7\n2 1:1\n")
    data = read_dataset(path, "y")
    assert data.names == ("x0", "x1", "x2") and data.X.tolist() == [[5.0, 0.0, 7.0], [0.0, 1.0, 0.0]]


BAD_TABLES = [
    ("", "y", "is empty: give one header line"),
    ("\n\n", "y", "is empty: give one header line"),
    ("a,y\n", "y", "has a header but no rows"),
    ("a,y\n1,2\n1,2,3\n", "y", "has 3 cells in line 3 but its header names 2 columns"),
    ("a,y\n1,2\n\n1\n", "y", "has 1 cells in line 4"),
    ("a,y\n1,2\nfoo,3\n", "y", "column 'a' holds text 'foo' in row 2 (line 3)"),
    ("a,y\n1,2\n3,\n", "y", "column 'y' is empty in row 2 (line 3)"),
    ("a,y\n1,2\n,3\n", "y", "column 'a' is empty in row 2 (line 3)"),
    ("a,y\n1,2\nNA,3\n", "y", "column 'a' has a missing value, 'NA', in row 2"),
    ("a,y\n1,nan\n2,3\n", "y", "column 'y' holds nan in row 1 (line 2)"),
    ("a,y\n1,2\n\n-inf,3\n", "y", "column 'a' holds -inf in row 2 (line 4)"),
    ("a,y\n1e999,2\n2,3\n", "y", "column 'a' holds inf in row 1"),
    ("a,y\n1_0,2\n2,3\n", "y", "column 'a' holds text '1_0'"),
    ("a,b,a\n1,2,3\n", "b", "column name 'a' stands in the header more than once"),
    ("y,a,y\n1,2,3\n", "y", "column name 'y' stands in the header more than once"),
    (",a,y\n0,1,2\n", "y", "column 1 has no name"),
    ("a,y\n1,2\n", "z", "target 'z' is not in the data: its columns are a, y"),
    ("a,y\n1,2\n", "2", "target 2 is neither a name nor one of the positions 0..1"),
    ("a,y\n1,2\n", "", "no target was named"),
    ("a;y\n1;2\n", "y", "seems to be separated by semicolons"),
    ("1.5,2.5\n3,4\n", "1", "has numbers where its column names belong"),
    ("y\n1\n2\n", "y", "no feature is left"),
]


@pytest.mark.parametrize(("text", "target", "message"), BAD_TABLES)
def test_bad_tables(tmp_path: Path, text: str, target: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    refused(message, path, target)


def refused(message: str, path: Path, target: str | int, **options: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        read_dataset(path, target, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


BAD_WORDS = [
    ({"features": ["a", "q"]}, "feature 'q' is not in the data"),
    ({"drop": ["q"]}, "dropped column 'q' is not in the data"),
    ({"features": ["a"], "drop": ["b"]}, "features and drop were both given"),
    ({"features": ["a", "a"]}, "column 'a' is named twice in features"),
    ({"drop": ["a", "a"]}, "column 'a' is named twice in drop"),
    ({"features": ["a", "y"]}, "is the target and cannot be a feature"),
    ({"drop": ["y"]}, "is the target and cannot be dropped"),
    ({"aux": ["y"]}, "is the target and cannot give the folds"),
    ({"aux": ["g"]}, "fold or group column 'g' is not in the data"),
    ({"aux": ["a"], "features": ["a"]}, "gives the folds and cannot be a feature"),
    ({"drop": ["a", "b"]}, "no feature is left"),
    ({"features": []}, "no feature is left"),
]


@pytest.mark.parametrize(("options", "message"), BAD_WORDS)
def test_bad_column_words(tmp_path: Path, options: dict[str, list[str]], message: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b,y\n1,2,3\n4,5,7\n")
    refused(message, path, "y", **options)


def test_bad_paths(tmp_path: Path) -> None:
    refused("does not exist", tmp_path / "no.csv", "y")
    refused("is a folder", tmp_path, "y")
    (tmp_path / "d.xlsx").write_text("x")
    refused("has the unknown suffix '.xlsx': use one of .csv, .tsv", tmp_path / "d.xlsx", "y")
    (tmp_path / "latin.csv").write_bytes("a,y\n1,2\n\xe9,3\n".encode("latin-1"))
    refused("is not UTF-8 text", tmp_path / "latin.csv", "y")


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2\n2 1:x\n", "column 'x1' holds text 'x' in row 2 (line 2)"),
        ("1 1:2\nfoo 1:3\n", "column 'y' holds text 'foo' in row 2 (line 2)"),
        ("1 1:2\n2 1\n", "has '1' in line 2: write index:value"),
        ("1 2:2 1:3\n", "repeats or disorders index 1 in line 1"),
        ("1 1:2\n2 1:nan\n", "column 'x1' holds nan in row 2"),
        ("# only a comment\n", "has no rows"),
    ],
)
def test_bad_svmlight(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "d.svm"
    path.write_text(text)
    refused(message, path, "y")
