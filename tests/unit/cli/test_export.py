"""`export`: what other solvers read has the same optimum."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsecv_mio.cli import run

from .diabetes import DIABETES, best_by_hand


def test_export_is_read_by_other_solvers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value, _ = best_by_hand(3, 0.1)
    for suffix in ("mps", "lp", "nl", "cbf", "ptf"):
        path = tmp_path / f"model.{suffix}"
        args = ["export", DIABETES, "--target", "y", "--tau", "3", "--gamma", "0.1", "--to", str(path)]
        assert run(args) == 0
        assert path.stat().st_size > 1000
    told = capsys.readouterr().out.splitlines()[0]
    offset, factor = (float(part) for part in told.split(" = ")[1].removesuffix(" * objective").split(" + "))
    import gurobipy
    import pyscipopt

    for suffix in ("mps", "lp"):
        with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.read(str(tmp_path / f"model.{suffix}"), env) as m:
            m.Params.MIPGap = 1e-9
            m.optimize()
            assert offset + factor * m.ObjVal == pytest.approx(value, rel=1e-5)
    for suffix in ("mps", "nl"):
        solver = pyscipopt.Model()
        solver.hideOutput()
        solver.readProblem(str(tmp_path / f"model.{suffix}"))
        solver.optimize()
        assert offset + factor * solver.getObjVal() == pytest.approx(value, rel=1e-5)
    args = ["export", DIABETES, "--target", "y", "--tau", "3", "--gamma", "1"]
    assert run([*args, "--to", str(tmp_path / "m.xyz")]) == 2
    assert "unknown ending" in capsys.readouterr().err
