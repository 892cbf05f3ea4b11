"""Packed and oddly written text becomes plain lines; what cannot be unpacked is refused."""

from __future__ import annotations

import gc
import gzip
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio import files
from sparsecv_mio.data import text_tables
from sparsecv_mio.data import text_tables as module
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.reading_options import STRICT, Reading
from sparsecv_mio.data.text_tables import TextTable, format_suffix
from sparsecv_mio.errors import BadInput

from .files import refused


def lines(path: Path, how: Reading) -> list[bytes]:
    table = TextTable.from_path(path, ".csv", how)
    return table.text.read_bytes().split(b"\n")


def test_comments_leave_their_line_empty_and_blanks_become_tabs(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes('  a  "b  c" y\r\n# no\r\n1 2   3\n'.encode("utf-16"))
    assert lines(path, Reading.from_keywords(sep="space", comment="#", encoding="utf-16")) == [
        b'a\t"b  c"\ty\r', b"\r", b"1\t2\t3", b"",
    ]  # fmt: skip


def test_what_is_no_text_or_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,y\n\xff\xfe,1\n")
    with pytest.raises(BadInput, match="is not text in utf-8; try another encoding"):
        lines(path, Reading.from_keywords(comment="#"))
    monkeypatch.setattr(module, "LONGEST_LINE", 4)
    path.write_text("a,y,and,more")
    with pytest.raises(BadInput, match="so it is not a table"):
        lines(path, Reading.from_keywords(comment="#"))


def test_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_text("no archive")
    with pytest.raises(BadInput, match="is not a ZIP archive"):
        format_suffix(path)
    with zipfile.ZipFile(path, "w") as store:
        store.writestr("one.csv", "a,y\n1,2\n")
        store.writestr("__MACOSX/one.csv", "junk")
    assert format_suffix(path) == ".csv" and lines(path, STRICT) == [b"a,y", b"1,2", b""]
    with zipfile.ZipFile(path, "a") as store:
        store.writestr("two.csv", "a,y\n1,2\n")
    with pytest.raises(BadInput, match="holds 2 files; pack only the table"):
        format_suffix(path)
    (tmp_path / "b.csv.gz").write_text("no gzip")
    with pytest.raises(BadInput, match="cannot be unpacked: Not a gzipped file"):
        lines(tmp_path / "b.csv.gz", STRICT)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.zip"])
def test_what_unpacks_to_more_than_memory(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, text = tmp_path / name, "a,y\n" + "1,2\n" * 20_000
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if name.endswith(".gz"):
        place.write_bytes(gzip.compress(text.encode()))
    else:
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as store:
            store.writestr("a.csv", text)
    assert read_dataset(place, target="y").n == 20_000
    assert not list(tmp_path.glob("sparsecv-*"))  # the unpacked text was here
    monkeypatch.setattr(files, "all_memory", lambda: 60_000)
    with pytest.raises(BadInput, match="unpacks to more than the 60,000 bytes of memory"):
        read_dataset(place, target="y")


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
    ("", "y", "is empty; give one header line"),
    ("\n\n", "y", "is empty; give one header line"),
    ("a,y\n", "y", "has a header but no rows"),
    ("a,y\n1,2\n1,2,3\n", "y", "has 3 cells in line 3 but its header names 2 columns"),
    ("a,y\n1,2\n\n1\n", "y", "has 1 cell in line 4"),
    ("a,y\n1,2\nfoo,3\n", "y", "column 'a' holds text 'foo' in row 2 (line 3)"),
    ("a,y\n1,2\n3,\n", "y", "column 'y' is empty in row 2 (line 3)"),
    ("a,y\n1,2\n,3\n", "y", "column 'a' is empty in row 2 (line 3)"),
    ("a,y\n1,2\nNA,3\n", "y", "column 'a' has the missing-value code 'NA' in row 2"),
    ("a,y\n1,nan\n2,3\n", "y", "column 'y' has the missing-value code 'nan' in row 1 (line 2)"),
    ("a,y\n1,2\n\n-inf,3\n", "y", "column 'a' holds -inf in row 2 (line 4)"),
    ("a,y\n1e999,2\n2,3\n", "y", "column 'a' holds inf in row 1"),
    ("a,y\n1_0,2\n2,3\n", "y", "column 'a' holds text '1_0'"),
    ("a,b,a\n1,2,3\n", "b", "column name 'a' is in the header more than once"),
    ("y,a,y\n1,2,3\n", "y", "column name 'y' is in the header more than once"),
    (",a,y\n0,1,2\n", "y", "column 1 has no name"),
    ("a,y\n1,2\n", "z", "target 'z' is not in the data; the columns are a, y"),
    ("a,y\n1,2\n", "2", "target 2 is neither a name nor one of the positions 0..1"),
    ("a,y\n1,2\n", "", "the target is missing"),
    ('"a" "b" "y"\n"1" 1 2 3\n"2" 3 4 5\n', "y", "seems to be separated by blanks"),
    ("a,b,y\n1,1,2,3\n2,3,4,5\n", "y", "3 column names but 4 cells in each line: its first column has no name"),
    ("a,y\n1,2,\n2,3,\n", "y", "has 3 cells in line 2 but its header names 2 columns"),
    ("a;y\n1;2\n", "y", "seems to be separated by semicolons"),
    ("a, b;c;y\n1;2;3\n", "1", "seems to be separated by semicolons"),
    ("a;y\n1,5;2\n2,25;3\n", "y", 'separated by semicolons; give sep="semicolon"'),
    ("a;y\n1.234,5;2\n2;3\n", "y", 'give sep="semicolon"'),
    ("a;y\n1,078;2\n2;3\n", "y", 'separated by semicolons; give sep="semicolon"'),
    ("a,y\n1;\n", "y", "has 1 cell in line 2"),
    ("1.5,2.5\n3,4\n", "1", "has numbers where its column names belong"),
    ("y\n1\n2\n", "y", "no feature is left"),
]


@pytest.mark.parametrize(("text", "target", "message"), BAD_TABLES)
def test_bad_tables(tmp_path: Path, text: str, target: str, message: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    refused(message, path, target)


def test_lines_and_quotes_may_cross_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tables, "BLOCK_BYTES", 64)
    path = tmp_path / "data.csv"
    path.write_text("note,a,y\n" + "".join(f'"{"x" * (k % 9)}\n",{k},{k * k}\n' for k in range(200)))
    data = read_dataset(path, "y", drop=["note"])
    assert data.X[:, 0].tolist() == list(range(200)) and data.y.tolist() == [k * k for k in range(200)]
    wide = np.random.default_rng(0).standard_normal((5, 400))
    pd.DataFrame(wide).add_prefix("c").to_csv(path, index=False)
    assert np.array_equal(read_dataset(path, "c0").X, wide[:, 1:])


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning", "error::ResourceWarning")
def test_a_rewritten_file_is_closed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("# note\na,y\n1,2\n2,4\n")
    assert read_dataset(tmp_path / "a.csv", "y", comment="#").n == 2
    gc.collect(1)  # young objects: the others of a long run take seconds
