"""NPZ: its arrays and its refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np

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
