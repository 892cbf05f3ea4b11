"""`fit`, `backends`, `compare` and `export`: answers, files, exit codes, one line for every mistake."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from repository import INSTANCES

from sparsecv_mio.certificate.codec import parse_object
from sparsecv_mio.certificate.fit_record import FitRecord
from sparsecv_mio.cli import run
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.formulation.backends import BACKENDS, get_backend

DIABETES = str(INSTANCES / "diabetes.csv")
USABLE = [name for name in BACKENDS if get_backend(name).available().usable]


def table(path: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    with open(path) as stream:
        names = stream.readline().strip().split(",")
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    return names[:-1], rows[:, :-1], rows[:, -1]


def best_by_hand(tau: int, gamma: float) -> tuple[float, tuple[str, ...]]:
    """The definition: scale by the centred length, then every support."""
    names, X, y = table(DIABETES)
    X = X - X.mean(axis=0)
    X /= np.linalg.norm(X, axis=0)
    y = y - y.mean()
    found = []
    for support in itertools.combinations(range(len(names)), tau):
        V = X[:, support]
        beta = np.linalg.solve(V.T @ V + gamma / 2 * np.eye(tau), V.T @ y)
        value = float(np.sum((y - V @ beta) ** 2) + gamma / 2 * np.sum(beta**2))
        found.append((value, tuple(names[j] for j in support)))
    return min(found)


@pytest.mark.parametrize("backend", USABLE)
def test_fit_is_the_best_subset(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "fit.json"
    args = ["fit", DIABETES, "--target", "y", "--tau", "3", "--gamma", "0.1", "--backend", backend, "--json", str(out)]
    assert run(args) == 0
    record = json.loads(out.read_text())
    value, support = best_by_hand(3, 0.1)
    assert record["schema"] == "sparsecv-fit/1"
    assert (record["backend"], record["status"], record["tau"], record["gamma"]) == (backend, "proved", 3, 0.1)
    assert tuple(record["support"]) == support
    assert record["objective"] == pytest.approx(value, rel=1e-10)
    assert record["lower"] <= value * (1 + 1e-12) and record["upper"] >= value * (1 - 1e-12)
    assert record["upper"] - record["lower"] <= 1e-7 * record["upper"] + record["allowance"]
    assert record["allowance"] <= 2.6e-6 * np.sum((table(DIABETES)[2] - table(DIABETES)[2].mean()) ** 2)
    names, X, y = table(DIABETES)
    prediction = record["intercept"] + sum(record["coefficients"][k] * X[:, names.index(k)] for k in support)
    assert np.mean(y - prediction) == pytest.approx(0.0, abs=1e-9)
    assert record["nodes"] >= 0 and record["seconds"] >= 0.0
    assert FitRecord.from_json(out.read_text()).support == support
    assert "proved" in capsys.readouterr().out


def test_fit_record_refuses_another_schema() -> None:
    with pytest.raises(CorruptStore, match="schema"):
        FitRecord.from_json('{"schema": "sparsecv/1"}')


def test_fit_under_side_constraints(tmp_path: Path) -> None:
    out = tmp_path / "fit.json"
    args = [
        "fit", DIABETES, "--target", "y", "--tau", "4", "--gamma", "0.1", "--backend", "gurobi", "--json", str(out),
        "--force-in", "age", "--force-out", "bmi", "--together", "s1,s2", "--at-most", "1:s3,s4,s5",
        "--box", "bp:0:0.5", "--box", "age::0", "-q",
    ]  # fmt: skip
    assert run(args) == 0
    record = json.loads(out.read_text())
    chosen = set(record["support"])
    assert "age" in chosen and "bmi" not in chosen
    assert ("s1" in chosen) == ("s2" in chosen)
    assert len(chosen & {"s3", "s4", "s5"}) <= 1
    assert 0.0 <= record["coefficients"].get("bp", 0.0) <= 0.5 * (1 + 1e-12)
    assert record["coefficients"]["age"] <= 0.0


def test_fit_stops_at_a_limit_with_exit_code_3(tmp_path: Path) -> None:
    out, data = tmp_path / "fit.json", tmp_path / "noise.csv"
    noise = np.random.default_rng(0).standard_normal((50, 41))  # no solver proves 13 of these 40 columns best here
    np.savetxt(data, noise, delimiter=",", header=",".join([*(f"x{j}" for j in range(40)), "y"]), comments="")
    args = ["fit", str(data), "--target", "y", "--tau", "13", "--gamma", "0.01", "--backend", "highs"]
    assert run([*args, "--time-limit", "0.5", "--json", str(out), "-q"]) == 3
    record = json.loads(out.read_text())
    assert record["status"] == "limit" and record["stop"] == "time"
    assert 0.0 < record["lower"] < record["objective"] <= record["upper"]


@pytest.mark.parametrize("backend", USABLE)
def test_threads_are_taken_or_said_to_be_ignored(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["fit", DIABETES, "--target", "y", "--tau", "2", "--gamma", "0.1", "--backend", backend]
    assert run(args) == 0
    assert capsys.readouterr().err == ""
    assert run([*args, "--threads", "2"]) == 0
    told = capsys.readouterr().err
    taken = "threads" in get_backend(backend).capabilities.limits
    assert told == ("" if taken else f"sparsecv: warning: backend {backend} uses one thread, not 2\n")


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--backend", "cplex"], 2, "there is no backend 'cplex'"),
        (["--backend", "scip", "--formulation", "benders"], 2, "backend scip has no formulation 'benders'"),
        (["--backend", "native", "--force-in", "age"], 2, "does not take: force"),
        (["--backend", "highs", "--force-in", "nose"], 2, "there is no feature 'nose'"),
        (["--backend", "highs", "--force-in", "age", "--force-out", "age"], 2, "no support of at most 3 features"),
        (["--log", "somewhere.log"], 2, "backend native writes no log"),
        (["--log", "no/such/folder/x.log", "--backend", "highs"], 2, "--log"),
        (["--gamma", "0.1,1"], 2, "one MIO has one gamma"),
        (["--tau", "11"], 2, "tau 11 is out of range"),
        (["--box", "age:1"], 2, "is not FEATURE:LO:HI"),
        (["--box", "age:2:1"], 2, "is reversed"),
        (["--at-most", "age"], 2, "is not K:A,B"),
        (["--node-limit", "0"], 2, "--node-limit"),
        (["--start", "nose"], 2, "there is no feature 'nose'"),
    ],
)
def test_fit_mistakes_are_one_line(
    args: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fit", DIABETES, "--target", "y", "--tau", "3", "--gamma", "0.1", *args]) == code
    told = capsys.readouterr()
    assert told.out == "" and message in told.err and told.err.count("\n") == 1


def test_unusable_backends_exit_4(capsys: pytest.CaptureFixture[str]) -> None:
    if "size-limited" in get_backend("gurobi").available().licence:
        data = str(INSTANCES / "housing2.csv")
        args = ["fit", data, "--target", "medv", "--tau", "3", "--gamma", "1", "--backend", "gurobi"]
        assert run(args) == 4
        told = capsys.readouterr()
        assert told.out == "" and told.err.count("\n") == 1 and "past the size limit" in told.err
    if not get_backend("mosek").available().usable:
        assert run(["fit", DIABETES, "--target", "y", "--tau", "3", "--gamma", "1", "--backend", "mosek"]) == 4
        told = capsys.readouterr()
        assert told.out == "" and told.err.count("\n") == 1 and "no licence" in told.err


def test_backends_says_who_is_usable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "backends.json"
    assert run(["backends", "--json", str(out)]) == 0
    shown = capsys.readouterr().out
    rows = parse_object(out.read_text())["backends"]
    assert [row["name"] for row in rows] == list(BACKENDS)
    for row in rows:
        assert row["name"] in shown
        assert row["usable"] or row["why"]
        assert row["formulations"] and row["limits"]


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


def test_compare_writes_table_csv_and_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["compare", DIABETES, "--target", "y", "--tau", "2,4", "--gamma", "0.1,1", "--repeats", "2"]
    assert run([*args, "--backends", "native,gurobi,gurobi:bigm,highs,mosek", "--out", str(tmp_path / "out")]) == 0
    with open(tmp_path / "out" / "compare.csv") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 4 * 5
    for row in rows:
        assert row["backend_version"] and row["numpy"] and row["cores"]
        if row["backend"] != "mosek":
            truth, _ = best_by_hand(int(row["tau"]), float(row["gamma"]))
            assert row["status"] == "optimal" and row["same_support"] == "True"
            assert float(row["objective"]) == pytest.approx(truth, rel=1e-9)
            assert float(row["true_gap"]) <= 1e-12
    assert (tmp_path / "out" / "compare.png").read_bytes().startswith(b"\x89PNG")
    assert "performance" not in capsys.readouterr().err
    assert "| diabetes | all | 2 |" in (tmp_path / "out" / "compare.md").read_text()


def test_compare_by_folds_and_its_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["compare", DIABETES, "--target", "y", "--tau", "2", "--gamma", "1", "--repeats", "1"]
    args += ["--out", str(tmp_path)]
    assert run([*args, "--backends", "native,highs", "--folds", "3"]) == 0
    with open(tmp_path / "compare.csv") as stream:
        assert {row["fold"] for row in csv.DictReader(stream)} == {"0", "1", "2"}
    capsys.readouterr()
    for extra, message in (
        (["--backends", "native,cplex"], "there is no backend 'cplex'"),
        (["--repeats", "0"], "--repeats"),
        (["--target", "y,z"], "2 names for 1 files"),
    ):
        assert run([*args, *extra]) == 2
        assert message in capsys.readouterr().err
    assert run([*args, "--backends", "mosek"]) == (0 if get_backend("mosek").available().usable else 4)


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
    assert "--backend" in capsys.readouterr().err


def test_solve_by_a_backend_that_is_unusable_or_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["solve", DIABETES, "--target", "y", "--folds", "3", "--gamma", "0.1", "--tau", "2", "--backend"]
    assert run([*args, "cplex"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    if not get_backend("mosek").available().usable:
        assert run([*args, "mosek"]) == 4
        told = capsys.readouterr()
        assert told.out == "" and told.err.count("\n") == 1 and "no licence" in told.err
