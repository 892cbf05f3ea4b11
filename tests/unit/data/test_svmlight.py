"""svmlight files: names after the indices, and every refusal with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsecv_mio.data.readers import read_dataset

from .files import refused


def test_svmlight_names_follow_the_indices(tmp_path: Path) -> None:
    path = tmp_path / "d.svm"
    path.write_text("1 qid:3 0:5 2:7\n2 1:1\n")
    data = read_dataset(path, "y")
    assert data.names == ("x0", "x1", "x2") and data.X.tolist() == [[5.0, 0.0, 7.0], [0.0, 1.0, 0.0]]


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
