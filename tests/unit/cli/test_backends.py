"""`backends`: who is usable, and why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparsecv_mio.cli import run
from sparsecv_mio.formulation.backends import BACKENDS
from sparsecv_mio.formulation.backends.base import Availability
from sparsecv_mio.formulation.backends.vendor import probe


def test_backends_says_who_is_usable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "backends.json"
    assert run(["backends", "--json", str(out)]) == 0
    shown = capsys.readouterr().out
    rows = json.loads(out.read_text())["backends"]
    assert [row["name"] for row in rows] == list(BACKENDS)
    for row in rows:
        assert row["name"] in shown
        assert row["usable"] or row["why"]
        assert row["formulations"] and row["limits"]


def test_what_is_missing_is_installed_by_the_name_it_has_on_an_index() -> None:
    missing = probe("no_such_solver", lambda module: Availability(True, ""))
    assert not missing.usable and missing.hint == "pip install no_such_solver pyomo"
