"""CSV and TSV: separators, quotes, marks of the encoding, and every refusal with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsecv_mio.data.readers import read_dataset

from .files import refused


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
    ("a, b;c;y\n1;2;3\n", "1", "seems to be separated by semicolons"),
    ("a,y\n1;\n", "y", "has 1 cells in line 2"),
    ("1.5,2.5\n3,4\n", "1", "has numbers where its column names belong"),
    ("y\n1\n2\n", "y", "no feature is left"),
]


@pytest.mark.parametrize(("text", "target", "message"), BAD_TABLES)
def test_bad_tables(tmp_path: Path, text: str, target: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    refused(message, path, target)
