"""Packed and oddly written text becomes plain lines; what cannot be unpacked is refused."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

from sparsecv_mio import files
from sparsecv_mio.data import opened as module
from sparsecv_mio.data.opened import kind_of, opened
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.reading import STRICT, Reading
from sparsecv_mio.errors import BadInput


def lines(path: Path, how: Reading) -> list[bytes]:
    with opened(path, how) as handle:
        return handle.read().split(b"\n")


def test_comments_leave_their_line_empty_and_blanks_become_tabs(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes('  a  "b  c" y\r\n# no\r\n1 2   3\n'.encode("utf-16"))
    assert lines(path, Reading.of(sep="space", comment="#", encoding="utf-16")) == [
        b'a\t"b  c"\ty\r', b"\r", b"1\t2\t3", b"",
    ]  # fmt: skip


def test_what_is_no_text_or_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,y\n\xff\xfe,1\n")
    with pytest.raises(BadInput, match="is not text in utf-8: try another encoding"):
        lines(path, Reading.of(comment="#"))
    monkeypatch.setattr(module, "LONGEST_LINE", 4)
    path.write_text("a,y,and,more")
    with pytest.raises(BadInput, match="it is no table"):
        lines(path, Reading.of(comment="#"))


def test_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_text("no archive")
    with pytest.raises(BadInput, match="is no ZIP archive"):
        kind_of(path)
    with zipfile.ZipFile(path, "w") as store:
        store.writestr("one.csv", "a,y\n1,2\n")
        store.writestr("__MACOSX/one.csv", "junk")
    assert kind_of(path) == ".csv" and lines(path, STRICT) == [b"a,y", b"1,2", b""]
    with zipfile.ZipFile(path, "a") as store:
        store.writestr("two.csv", "a,y\n1,2\n")
    with pytest.raises(BadInput, match="holds 2 files: pack the table alone"):
        kind_of(path)
    (tmp_path / "b.csv.gz").write_text("no gzip")
    with pytest.raises(BadInput, match="cannot be unpacked: Not a gzipped file"):
        lines(tmp_path / "b.csv.gz", STRICT)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.zip"])
def test_what_unpacks_to_more_than_memory(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, text = tmp_path / name, "a,y\n" + "1,2\n" * 100_000
    if name.endswith(".gz"):
        place.write_bytes(gzip.compress(text.encode()))
    else:
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as store:
            store.writestr("a.csv", text)
    assert read_dataset(place, target="y").n == 100_000
    monkeypatch.setattr(files, "memory", lambda: 300_000)
    with pytest.raises(BadInput, match="unpacks to more than the 300,000 bytes of memory"):
        read_dataset(place, target="y")
