"""`bounds`: options to the library, answer to the screen, to JSON and to a figure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.search.api import cross_validate


def problem(seed: int = 0, n: int = 40, p: int = 6) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-2, 3, p) + 5.0
    y = 100.0 * (X - X.mean(0)) @ (rng.standard_normal(p) / X.std(0)) + 50.0 * rng.standard_normal(n)
    return Dataset.from_arrays(X, y)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = problem(6)
    path, out, plot = tmp_path / "d.csv", tmp_path / "b.json", tmp_path / "b.png"
    rows = np.column_stack([data.X, data.y])
    np.savetxt(path, rows, delimiter=",", header=",".join([*data.names, "y"]), comments="")
    words = [str(path), "--target", "y", "--folds", "5", "--gamma", "0.1,1", "--tau", "1:3"]
    assert run(["bounds", *words, "--json", str(out), "--plot", str(plot)]) == 0
    shown = capsys.readouterr().out
    assert "certified" in shown and "folds decided" in shown and "gamma = 0.1" in shown
    record = json.loads(out.read_text())
    assert record["schema"] == "sparsecv-bounds/1" and record["bounds"] == "safe" and record["certified"]
    assert len(record["table"]) == 6 and len(record["folds"]) == 30
    assert {"gamma", "tau", "fold", "lower", "upper", "estimate", "bound"} <= set(record["folds"][0])
    for row in record["table"]:
        mine = [x for x in record["folds"] if (x["gamma"], x["tau"]) == (row["gamma"], row["tau"])]
        assert np.isclose(sum(x["upper"] for x in mine) / data.n, row["upper"])
    assert plot.stat().st_size > 5000
    assert run(["bounds", *words, "--bounds", "as-printed", "-q"]) == 0
    assert "not valid" in capsys.readouterr().out
    assert run(["bounds", *words, "--bounds", "best"]) == 2
    assert run(["bounds", *words, "--plot", str(tmp_path / "b.txt")]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_bounds_with_forced_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path, out = problem(7), tmp_path / "d.csv", tmp_path / "b.json"
    rows = np.column_stack([data.X, data.y])
    np.savetxt(path, rows, delimiter=",", header=",".join([*data.names, "y"]), comments="")
    words = [str(path), "--target", "y", "--folds", "5", "--gamma", "0.1,1", "--tau", "2:5", "--force-in", "x1,x4"]
    assert run(["bounds", *words, "--force-out", "x0", "--json", str(out)]) == 0
    bounds = json.loads(out.read_text())
    assert bounds["options"]["force_in"] == ["x1", "x4"] and bounds["options"]["force_out"] == ["x0"]
    record = cross_validate(
        data, "5", gammas=[0.1, 1.0], taus=range(2, 6), force_in=["x1", "x4"], force_out="x0", gap=0.0, threads=1
    )
    for ours, true in zip(bounds["table"], record.table, strict=True):
        assert (ours["gamma"], ours["tau"]) == (true.gamma, true.tau)
        assert ours["lower"] <= true.cv_error * (1 + 1e-9) and true.cv_error <= ours["upper"] * (1 + 1e-9)
    capsys.readouterr()
    assert run(["bounds", *words, "--tau", "1:2"]) == 2
    assert "tau 1 is below" in capsys.readouterr().err
