"""The types of arrays are named once; columns beside ones."""

from __future__ import annotations

import re

import numpy as np
from repository import ROOT

from sparsecv_mio.arrays import beside_ones, put_beside_ones

DEFINED = re.compile(r"^(\w+) = NDArray\[np\.(?:float64|int64|bool_)\]$", re.MULTILINE)


def test_no_other_module_names_them_again() -> None:
    package = ROOT / "sparsecv_mio"
    named = {path.relative_to(package).as_posix(): DEFINED.findall(path.read_text()) for path in package.rglob("*.py")}
    assert named.pop("arrays.py") == ["FloatArray", "IntArray", "BoolArray"]
    assert {path: names for path, names in named.items() if names and not path.startswith("kernels/")} == {}


def test_columns_beside_ones_are_found_where_they_are_and_nowhere_else() -> None:
    X = np.arange(12.0).reshape(4, 3)
    whole = put_beside_ones(X, np.array([2, 0]))
    assert whole.tolist() == [[1.0] * 4, X[:, 2].tolist(), X[:, 0].tolist()]
    assert beside_ones(whole[1:].T) is whole
    others = (X, whole[1:].T.copy(), whole[1:].T[::-1], whole[:2].T, whole[1:, :3].T)
    assert all(beside_ones(other) is None for other in others)
    whole[0, 1] = 0.5
    assert beside_ones(whole[1:].T) is None
