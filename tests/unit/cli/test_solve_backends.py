"""`solve` by another backend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparsecv_mio.cli import run
from sparsecv_mio.formulation.backends import get_backend

from .diabetes import DIABETES, USABLE


@pytest.mark.parametrize("backend", [name for name in USABLE if name != "native"])
def test_solve_takes_a_backend_alone(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The method follows from the backend, the record says which; the answer is that of the native engine."""
    args = ["solve", DIABETES, "--target", "y", "--folds", "3", "--gamma", "0.1", "--tau", "2,3", "-q"]
    assert run([*args, "--json", str(tmp_path / "native.json")]) == 0
    assert run([*args, "--json", str(tmp_path / "other.json"), "--backend", backend]) == 0
    truth, found = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("native", "other"))
    assert found["work"]["engine"] == f"joint on {backend}" and found["work"]["mios"] > 0
    assert (found["status"], found["tau"], found["support"]) == ("proved", truth["tau"], truth["support"])
    assert found["cv_error"] == pytest.approx(truth["cv_error"], rel=1e-9)
    capsys.readouterr()
    assert run([*args, "--backend", backend, "--method", "rounds"]) == 2
    assert "backend" in capsys.readouterr().err


def test_solve_by_a_backend_that_is_unusable_or_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["solve", DIABETES, "--target", "y", "--folds", "3", "--gamma", "0.1", "--tau", "2", "--backend"]
    assert run([*args, "cplex"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    if not get_backend("mosek").available().usable:
        assert run([*args, "mosek"]) == 4
        told = capsys.readouterr()
        assert told.out == "" and told.err.count("\n") == 1 and "no licence" in told.err
