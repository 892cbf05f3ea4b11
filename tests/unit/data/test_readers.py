"""Every file format gives the same data set; a path that is no data file is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.readers import read_dataset

from .files import FRAME, NAMES, X, Y, refused, write


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
    refused("has the unknown suffix '.doc': use one of .csv, .tsv", tmp_path / "d.doc", "y")
    (tmp_path / "latin.csv").write_bytes("a,y\n1,2\n\xe9,3\n".encode("latin-1"))
    refused("is not UTF-8 text", tmp_path / "latin.csv", "y")
