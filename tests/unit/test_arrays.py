"""The types of arrays are named once."""

from __future__ import annotations

import re

from repository import ROOT

DEFINED = re.compile(r"^(\w+) = NDArray\[np\.(?:float64|int64|bool_)\]$", re.MULTILINE)


def test_no_other_module_names_them_again() -> None:
    package = ROOT / "sparsecv_mio"
    named = {path.relative_to(package).as_posix(): DEFINED.findall(path.read_text()) for path in package.rglob("*.py")}
    assert named.pop("arrays.py") == ["FloatArray", "IntArray", "BoolArray"]
    assert {path: names for path, names in named.items() if names and not path.startswith("kernels/")} == {}
