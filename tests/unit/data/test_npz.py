"""NPZ: its arrays and its refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio import files
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.errors import BadInput

from .files import X, Y, refused


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


def test_arrays_larger_than_memory_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "a.npz"
    np.savez_compressed(place, X=np.zeros((1000, 10)), y=np.arange(1000.0), other=np.zeros((1000, 1000)))
    monkeypatch.setattr(files, "memory", lambda: 100_000)
    assert read_dataset(place, target="y").n == 1000
    monkeypatch.setattr(files, "memory", lambda: 50_000)
    with pytest.raises(BadInput, match=r"'.*a.npz' unpacks to more than the 50,000 bytes of memory"):
        read_dataset(place, target="y")
