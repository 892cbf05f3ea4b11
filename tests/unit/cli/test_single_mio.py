"""Options of side constraints, and work in a thread of its own."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_lines import changed
from repository import INSTANCES

from sparsecv_mio.certificate.fit_records import FitRecord
from sparsecv_mio.cli import run
from sparsecv_mio.formulation.backends import get_backend

from .diabetes import DIABETES, USABLE, best_by_hand, table


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
    assert "certified best subset: " in capsys.readouterr().out


def test_fit_stops_at_a_limit_with_exit_code_3(tmp_path: Path) -> None:
    out, data = tmp_path / "fit.json", tmp_path / "noise.csv"
    noise = np.random.default_rng(0).standard_normal((50, 41))  # no solver proves 13 of these 40 columns best here
    np.savetxt(data, noise, delimiter=",", header=",".join([*(f"x{j}" for j in range(40)), "y"]), comments="")
    args = ["fit", str(data), "--target", "y", "--tau", "13", "--gamma", "0.01", "--backend", "highs"]
    assert run([*args, "--time-limit", "0.5", "--json", str(out), "-q"]) == 3
    record = json.loads(out.read_text())
    assert record["status"] == "limit" and record["stop"] == "time"
    assert 0.0 < record["lower"] < record["objective"] <= record["upper"]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--backend", "cplex"], 2, "backend: unknown word 'cplex'"),
        (["--backend", "scip", "--formulation", "benders"], 2, "formulation of scip: unknown word 'benders'"),
        (["--backend", "highs", "--force-in", "nose"], 2, "'nose' is not a feature"),
        (["--backend", "highs", "--force-in", "age", "--force-out", "age"], 2, "feature 'age' is in both"),
        (["--log", "somewhere.log"], 2, "backend native does not write a log"),
        (["--log", "no/such/folder/x.log", "--backend", "highs"], 2, "--log"),
        (["--gamma", "0.1,1"], 2, "has 2 values, but this command needs one"),
        (["--tau", "11"], 2, "tau 11 is out of range"),
        (["--tau", "-1"], 2, "--tau: -1 is out of range; give a whole number of at least 0"),
        (["--box", "age:1"], 2, "is not of the form FEATURE:LO:HI"),
        (["--box", "age:2:1"], 2, "are reversed"),
        (["--box", "age:x:1"], 2, "--box: 'x' is not a number"),
        (["--at-most", "age"], 2, "is not K:A,B"),
        (["--at-most", "-1:age"], 2, "at least 0"),
        (["--force-in", ","], 2, "--force-in: ',' is not a list of column names"),
        (["--gap", "1"], 2, "gap: 1 is out of range"),
        (["--time-limit", "0"], 2, "time-limit: 0 is out of range"),
        (["--threads", "0"], 2, "threads: 0 is out of range"),
        (["--start", "nose"], 2, "'nose' is not a feature"),
    ],
)
def test_fit_mistakes_are_one_line(
    args: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(changed(["fit", DIABETES, "--target", "y", "--tau", "3", "--gamma", "0.1"], args)) == code
    told = capsys.readouterr()
    assert told.out == "" and message in told.err and told.err.count("\n") == 1


def test_unusable_backends_exit_4(capsys: pytest.CaptureFixture[str]) -> None:
    if "size-limited" in get_backend("gurobi").available().licence:
        data = str(INSTANCES / "housing2.csv")
        args = ["fit", data, "--target", "medv", "--tau", "3", "--gamma", "1", "--backend", "gurobi"]
        assert run(args) == 4
        told = capsys.readouterr()
        assert told.out == "" and told.err.count("\n") == 1 and "exceeds the size limit" in told.err
    if not get_backend("mosek").available().usable:
        assert run(["fit", DIABETES, "--target", "y", "--tau", "3", "--gamma", "1", "--backend", "mosek"]) == 4
        told = capsys.readouterr()
        assert told.out == "" and told.err.count("\n") == 1 and "no licence" in told.err


def test_a_conditional_proof_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "fit.json"
    words = ["fit", DIABETES, "--target", "y", "--tau", "3", "--gamma", "0.1", "--assume-box", "5000"]
    assert run([*words, "--json", str(place)]) == 0
    told = capsys.readouterr().out
    assert "certified best subset, given that every coefficient is within 5000 of zero" in told
    assert "minimum objective of such models: in [" in told
    assert json.loads(place.read_text())["assumed_box"] == 5000.0
    assert run(["verify", str(place), DIABETES]) == 0
    assert "conditional" in capsys.readouterr().out


def test_export_is_read_by_other_solvers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value, _ = best_by_hand(3, 0.1)
    for suffix in ("mps", "lp", "nl", "cbf", "ptf"):
        path = tmp_path / f"model.{suffix}"
        args = ["export", DIABETES, "--target", "y", "--tau", "3", "--gamma", "0.1", "--to", str(path)]
        assert run(args) == 0
        assert path.stat().st_size > 1000
    told, _, tolerances, variables, *_ = capsys.readouterr().out.splitlines()
    assert variables.endswith("`sparsecv fit --force-in COLUMNS` with the same options")
    assert tolerances.endswith("may be below or above the minimum, by the tolerances of the solver")
    offset, factor = (float(part) for part in told.split(" = ")[1].partition(" * (objective")[0].split(" + "))
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
    import highspy

    path = str(tmp_path / "linear.mps")
    args = ["export", DIABETES, "--target", "y", "--tau", "3", "--gamma", "0.1", "--to", path]
    capsys.readouterr()
    assert run([*args, "--piecewise", "64"]) == 0
    words = re.fullmatch(r"piecewise linear model, 64 tangents .*: HiGHS, .* at most (\S+) below that of .*",
                         capsys.readouterr().out.splitlines()[1])  # fmt: skip
    assert words is not None
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    assert highs.readModel(path) != highspy.HighsStatus.kError
    highs.run()
    found = offset + factor * highs.getInfo().objective_function_value
    assert found <= value * (1.0 + 1e-6) and value <= found + float(words[1]) * 1.05 + 1e-6 * value
    assert run([*args, "--piecewise", "1"]) == 2 and run([*args[:-1], "m.nl", "--piecewise", "9"]) == 2
    assert "--piecewise: 1 is out of range" in capsys.readouterr().err
    args = ["export", DIABETES, "--target", "y", "--tau", "3", "--gamma", "1"]
    assert run([*args, "--to", str(tmp_path / "m.xyz")]) == 2
    assert "unknown file ending" in capsys.readouterr().err


def test_compare_writes_table_and_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["compare", DIABETES, "--target", "y", "--tau", "2,4", "--gamma", "0.1,1", "--repeats", "2"]
    assert run([*args, "--backends", "native,gurobi,gurobi:benders,highs,mosek", "--out", str(tmp_path / "out")]) == 0
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
    assert "performance" not in capsys.readouterr().err
    assert "| diabetes | all | 2 |" in (tmp_path / "out" / "compare.md").read_text()


def test_compare_and_export_take_tables_and_weights_as_solve_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import gurobipy

    rng, places = np.random.default_rng(4), ["none", "shed", "barn"] * 8
    X, weights = rng.normal(size=(24, 3)).round(3), rng.integers(0, 3, 24)
    y = (X[:, 0] - 2.0 * (np.array(places) == "none") + rng.normal(size=24) / 3).round(3)
    head, rows = "id;a;b;c;place;w;y", [f"P{k};{x[0]};{x[1]};{x[2]};{places[k]};{{}};{y[k]}" for k, x in enumerate(X)]
    weighted, repeated = tmp_path / "weighted.csv", tmp_path / "repeated.csv"
    weighted.write_text("\n".join([head, *(row.format(w) for row, w in zip(rows, weights, strict=True))]))
    again = [row.format(1) for row, w in zip(rows, weights, strict=True) for _ in range(w)]
    repeated.write_text("\n".join([head, *again]))
    how = ["-t", "y", "--sep", ";", "--drop", "id,w", "--no-keep-default-na", "--encode", "onehot", "--gamma", "0.3"]
    by_weight = [str(weighted), *how[:4], "--drop", "id", *how[6:], "--weights", "w"]
    objectives = []
    for asked in (by_weight, [str(repeated), *how]):
        compared = [*asked, "--tau", "1,2", "--repeats", "1", "--backends", "native,highs"]
        assert run(["compare", *compared, "--out", str(tmp_path / "out")]) == 0
        with open(tmp_path / "out" / "compare.csv") as stream:
            found = list(csv.DictReader(stream))
        assert {(row["status"], row["same_support"]) for row in found} == {("optimal", "True")}
        assert any("place=none" in row["support"] for row in found)
        objectives += [float(row["objective"]) for row in found if row["backend"] == "native" and row["tau"] == "2"]
        capsys.readouterr()
        model = tmp_path / "model.lp"
        assert run(["export", *asked, "--tau", "2", "--to", str(model)]) == 0
        offset, factor = map(float, re.findall(r"= (\S+) \+ (\S+) \* \(objective", capsys.readouterr().out)[0])
        with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.read(str(model), env) as solved:
            solved.Params.MIPGap = 1e-9
            solved.optimize()
            objectives.append(offset + factor * solved.ObjVal)
    assert objectives == pytest.approx([objectives[0]] * 4, rel=1e-6)
    folded = [*by_weight, "--tau", "1", "--repeats", "1", "--backends", "native", "--out", str(tmp_path)]
    assert run(["compare", *folded, "--folds", "3", "--seed", "2"]) == 0
    with open(tmp_path / "compare.csv") as stream:
        assert {row["fold"] for row in csv.DictReader(stream)} == {"0", "1", "2"}


def test_two_classes_fitted_compared_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    ill = np.where(X[:, 0] + rng.logistic(size=30) > 0.0, "yes", "no")
    data, record = tmp_path / "data.csv", tmp_path / "fit.json"
    rows = (",".join([*(f"{x:.17g}" for x in row), word]) for row, word in zip(X, ill, strict=True))
    data.write_text("\n".join(["a,b,c,ill", *rows]) + "\n")
    asked = [str(data), "--target", "ill", "--loss", "logistic", "--gamma", "0.3"]
    assert run(["fit", *asked, "--tau", "1", "--backend", "highs", "--json", str(record)]) == 0
    told = capsys.readouterr().out
    assert "(log losses plus penalty)" in told and "logistic loss: coefficients are log odds ratios of 'yes'" in told
    assert run(["verify", str(record), str(data)]) == 0 and run(["predict", str(record), str(data)]) == 0
    assert ",yes\n" in capsys.readouterr().out
    compared = [*asked, "--tau", "1,2", "--repeats", "1", "--out", str(tmp_path), "--folds", "2"]
    assert run(["compare", *compared, "--backends", "native,highs,scip,gurobi"]) == 0
    with open(tmp_path / "compare.csv") as stream:
        found = list(csv.DictReader(stream))
    assert len(found) == 2 * 2 * 4 and {row["status"] for row in found} == {"optimal"}
    assert {row["same_support"] for row in found} == {"True"}
    assert run(["export", *asked, "--tau", "1", "--to", str(tmp_path / "m.nl")]) == 0
    told = capsys.readouterr().out
    assert "sum of log losses + (gamma/2) ||b||^2" in told
    assert "constraints with exponentials and squares: SCIP reads it" in told
    for command, message in (
        (["fit", *asked, "--tau", "1", "--proof", str(tmp_path / "p"), "--class-weight", "balanced"], "--class-weight"),
        (
            ["export", *asked, "--tau", "1", "--to", str(tmp_path / "m.lp")],
            "--to: .lp files cannot represent the log loss",
        ),
        (["compare", *compared, "--backends", "highs:benders"], "formulation"),
    ):
        assert run(command) == 2
        assert message in capsys.readouterr().err


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
