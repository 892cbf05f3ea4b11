"""`path`: every tau's best subset on all rows, checked, and the record that `verify` reads."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from command_lines import changed
from repository import INSTANCES
from stops import limit_after

from sparsecv_mio import Dataset, near_optimal
from sparsecv_mio.cli import run
from sparsecv_mio.digits import several
from sparsecv_mio.report.record_tables import print_near_optimal

from ..report.printing import printed

PROSTATE = str(INSTANCES / "prostate.csv")
SMALL = ["--gamma", "0.1,1", "--tau", "0:3", "--threads", "1"]


def test_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "path.json"
    assert run(["path", PROSTATE, "--target", "lpsa", *SMALL, "--json", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "gamma = 0.1 (ridge weight, the smallest of 2)" in shown and "lcavol" in shown and "--full" in shown
    assert run(["path", PROSTATE, "--target", "lpsa", *SMALL, "--full"]) == 0
    assert "gamma = 0.1" in capsys.readouterr().out
    record = json.loads(path.read_text())
    assert [(row["gamma"], row["tau"]) for row in record["path"]] == [(g, t) for g in (0.1, 1.0) for t in range(4)]
    assert run(["verify", str(path), PROSTATE]) == 0
    record["path"][2]["objective"] *= 1.01
    path.write_text(json.dumps(record))
    assert run(["verify", str(path), PROSTATE]) == 1
    assert "path[2].objective" in capsys.readouterr().err


NEAR = ["near", PROSTATE, "--target", "lpsa", "--folds", "5", "--threads", "1"]
COMMON = ["solve", PROSTATE, "--target", "lpsa", "--folds", "5", "--criterion", "common", "--threads", "1"]


def test_near(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "near.json"
    assert run([*NEAR, "--gamma", "0.1", "--tau", "2:3", "--within", "5%", "--json", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "certified to be all models with a CV error up to" in shown
    assert "in every model: lcavol" in shown and "+0%" in shown
    assert "not comparable with `solve`" in shown
    assert run(["verify", str(path), PROSTATE]) == 0
    record = json.loads(path.read_text())
    assert [size["tau"] for size in record["sizes"]] == [2, 3] and record["within"] == 0.05
    del record["models"][0]
    path.write_text(json.dumps(record))
    capsys.readouterr()
    assert run(["verify", str(path), PROSTATE]) == 1
    assert "sizes[0].models" in capsys.readouterr().out
    assert run(["report", str(path)]) == 2 and run(["predict", str(path), PROSTATE]) == 2


def test_near_by_objective_and_by_the_chosen_pair(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*NEAR, "--by", "objective", "--gamma", "1", "--most", "2", "--within", "0.5", "--tau", "3"]) == 0
    shown = capsys.readouterr().out
    assert "the best ones (--most 2)" in shown and "do not compare" not in shown
    assert run([*NEAR, "--force-in", "age", "--force-out", "svi", "--most", "all", "-q"]) == 0
    shown = capsys.readouterr().out
    assert "chosen by cross-validation" in shown and "models compared: with age; without svi" in shown


def test_near_counts_factors_as_solve_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, table = np.random.default_rng(5), tmp_path / "t.csv"
    X, level = rng.normal(size=(60, 3)), np.arange(60) % 3
    y = X[:, 0] + 0.8 * (level == 1) + 0.3 * X[:, 1] + rng.normal(size=60)
    cells = zip(X.tolist(), level.tolist(), y.tolist(), strict=True)
    table.write_text("a,b,c,wing,y\n" + "".join(f"{p},{q},{r},{'NSE'[k]},{v}\n" for (p, q, r), k, v in cells))
    asked = [str(table), "--target", "y", "--encode", "onehot", "--gamma", "0.1", "--json", str(tmp_path / "r.json")]
    counted = {}
    for command in ("solve", "path", "near"):
        for count in ([], ["--count", "columns"], ["--count", "factors"]):
            assert run([command, *asked, *count]) == 0
            assert ("wing: all levels of a column enter a model together" in capsys.readouterr().err) == (not count)
            record = json.loads((tmp_path / "r.json").read_text())
            limits = record["request"]["restrictions"]
            counted[command, tuple(count)] = (limits or {}).get("count")
            if command == "path":
                assert [row["tau"] for row in record["path"]] == [1, 2, 3, 4] + [5, 6] * (
                    count == ["--count", "columns"]
                )
                continue
            tau = record["tau"] if command == "solve" else record["sizes"][0]["tau"]
            assert counted.setdefault(("tau", tuple(count)), tau) == tau
    assert counted["near", ()] == counted["path", ()] == counted["solve", ()] == counted["near", ("--count", "factors")]
    assert counted["near", ()] == [["wing=E", "wing=N", "wing=S"]] and not counted["near", ("--count", "columns")]
    assert run(["verify", str(tmp_path / "r.json"), str(table)]) == 0
    for said in ([], ["--count", "factors"]):
        assert run(["fit", *asked, "--tau", "2", *said]) == 0
        assert ("note: each level of wing counts as a feature" in capsys.readouterr().err) == (not said)


def test_common(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "common.json"
    assert run([*COMMON, "--gamma", "0.1,1", "--json", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "of one subset for all folds" in shown and " lower" not in shown.partition("best gamma for each tau")[2]
    assert run(["verify", str(path), PROSTATE]) == 0
    assert run(["predict", str(path), PROSTATE, "--out", str(tmp_path / "p.csv")]) == 0
    assert "in cross-validation of the training rows: RMSE" in capsys.readouterr().out
    assert run(["report", str(path), "--data", PROSTATE, "--out", str(tmp_path / "r.md")]) == 0
    assert run(["plot", str(path), "--out", str(tmp_path / "r.png")]) == 0
    record = json.loads(path.read_text())
    record["lower"] = record["cv_error"] = record["upper"] = record["lower"] * 1.01
    path.write_text(json.dumps(record))
    assert run(["verify", str(path), PROSTATE]) == 1


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ([*COMMON, "--one-se"], "--one-se: not supported with --criterion common"),
        ([*COMMON, "--stability", "1"], "--stability: not supported with --criterion common"),
        ([*COMMON, "--checkpoint", "x.ck"], "--checkpoint: not supported with --criterion common"),
        (changed(COMMON, ["--folds", "holdout:0.3"]), "requires that every row is held out equally often"),
        (
            changed(NEAR, ["--folds", "forward:3"]),
            "10, 5x10 or loo, or set --by objective to rank the models by training objective",
        ),
        ([*NEAR, "--within", "-1%"], "error: --within: -0.01 is out of range"),
        ([*NEAR, "--within", "x"], "--within: 'x' is not a number"),
        ([*NEAR, "--within", "inf"], "not a finite number"),
        ([*NEAR, "--most", "0"], "--most: 0 is out of range"),
        ([*NEAR, "--gamma", "0.1,1"], "--gamma: '0.1,1' has 2 values, but this command needs one"),
        ([*NEAR, "--tau", "12"], "error: --tau: '12' is out of range; give a number from 0 to 8"),
        ([*NEAR, "--by", "cb"], "--by: unknown word 'cb'"),
        ([*NEAR, "--count", "factors", "--loss", "poisson"], "and each level of a factor counts as one feature"),
    ],
)
def test_what_is_wrong_is_one_line(command: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command) == 2
    said = capsys.readouterr().err.strip()
    assert line in said and "\n" not in said


def test_lists_without_models_say_so_and_names_with_commas_are_quoted() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    data = Dataset.from_arrays(X, X[:, 0] + 0.1 * rng.normal(size=30), names=["size, m2", "b", "c"])
    record = near_optimal(data, gamma=0.1, taus=2, within="50%", by="objective")
    assert record.within == 0.5
    text = printed(lambda console: print_near_optimal(console, record), 200)
    assert "models of 2 features within 50% of the minimum training objective (all rows)" in text
    chosen = near_optimal(data, "3", within="50%")
    text = printed(lambda console: print_near_optimal(console, chosen), 200)
    assert (
        f"models of {several(chosen.sizes[0].tau, 'feature')} within 50% of" in text and "; --tau lists other" in text
    )
    text = printed(lambda console: print_near_optimal(console, near_optimal(data, "3", gamma=0.1, taus="1:3")), 200)
    assert "models of 1 to 3 features within " in text and "(same features in every fold) of their size\n" in text
    assert 'in every model: "size, m2"' in text and "in no model: " in text
    size = replace(record.sizes[0], models=0, always=(), never=(), replacements=(), complete_to=0.0, lower=0.0)
    request = replace(record.request, time_limit=1e-9)
    empty = replace(record, status="limit", models=(), sizes=(size,), request=request)
    text = printed(lambda console: print_near_optimal(console, empty), 200)
    assert "no model yet (limit reached; not certified): " in text and "no model was evaluated before the limit" in text


def test_list_counts_replacements_and_shows_all_of_them_with_full() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 8))
    record = near_optimal(
        Dataset.from_arrays(X, X[:, 0] + 0.1 * rng.normal(size=40)), gamma=0.1, taus=2, within=0.5, by="objective"
    )
    pairs = len(record.sizes[0].replacements)
    few, every = (printed(partial(print_near_optimal, record=record, full=full), 2000) for full in (False, True))
    assert pairs == 21 and f"{pairs} pairs of features are interchangeable, as two listed models" in few
    assert few.count(" or ") == 5 and "16 more pairs: --full shows all" in few
    assert every.count(" or ") == pairs and "more pair" not in every


def test_excess_of_losses_of_rows_is_stated_in_deviance() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] + rng.normal(size=60) > 0.0).astype(float)
    asked = {"gamma": 1.0, "taus": 2, "loss": "logistic"}
    record = near_optimal(Dataset.from_arrays(X, y), within="20%", **asked)
    best, second = record.models[0].value, record.models[1].value
    shown = printed(lambda console: print_near_optimal(console, record), 200)
    assert f"20% is a difference of {0.4 * record.sizes[0].best:.3g} in deviance plus penalty" in shown
    assert "deviance plus penalty, above the best" in shown and "+0%" not in shown
    assert f"+{2.0 * (second - best):.3g}  " in shown
    share = shown.partition("; --within ")[2].partition(" ")[0]
    narrow = near_optimal(Dataset.from_arrays(X, y), within=share, **asked)
    assert abs(2.0 * (narrow.sizes[0].threshold - best) - 4.0) < 0.3
    by_cv = near_optimal(Dataset.from_arrays(X, y), "5", by="cv", **asked)
    assert "deviance" not in printed(lambda console: print_near_optimal(console, by_cv), 200)


def test_lists_that_end_without_a_limit_name_none() -> None:
    data = problem()
    record = near_optimal(data, gamma=0.1, taus=2, within=0.5, by="objective")
    size = replace(record.sizes[0], complete_to=0.0)
    for ended in (
        replace(record, status="limit", sizes=(size,)),
        replace(record, status="limit", models=(), sizes=(replace(size, models=0),)),
    ):
        text = printed(partial(print_near_optimal, record=ended), 200)
        assert "(search ended without a proof; not certified): " in text and "limit" not in text and "rounding" in text


def problem(seed: int = 0, n: int = 40, p: int = 6) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-2, 3, p) + 5.0
    y = 100.0 * (X - X.mean(0)) @ (rng.standard_normal(p) / X.std(0)) + 50.0 * rng.standard_normal(n)
    return Dataset.from_arrays(X, y)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = problem(6)
    path, out = tmp_path / "d.csv", tmp_path / "b.json"
    rows = np.column_stack([data.X, data.y])
    np.savetxt(path, rows, delimiter=",", header=",".join([*data.names, "y"]), comments="")
    words = [str(path), "--target", "y", "--folds", "5", "--gamma", "0.1,1", "--tau", "1:3"]
    assert run(["bounds", *words, "--json", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "certified" in shown and "folds solved" in shown and "gamma = 0.1" in shown
    record = json.loads(out.read_text())
    assert record["schema"] == "sparsecv-bounds/1" and record["bounds"] == "safe" and record["certified"]
    ends = record["lower"], record["upper"]
    assert ends == tuple(min(row[end] for row in record["table"]) for end in ("lower", "upper"))
    assert f"in [{ends[0]:.6g}, {ends[1]:.6g}]" in shown
    for command in ("verify", "predict"):
        assert run([command, str(out), str(path)]) == 2
        assert "was written by `sparsecv bounds` and is not a record" in capsys.readouterr().err
    assert len(record["table"]) == 6 and len(record["folds"]) == 30
    assert {"gamma", "tau", "fold", "lower", "upper", "estimate", "bound"} <= set(record["folds"][0])
    for row in record["table"]:
        mine = [x for x in record["folds"] if (x["gamma"], x["tau"]) == (row["gamma"], row["tau"])]
        assert np.isclose(sum(x["upper"] for x in mine) / data.n, row["upper"])
    assert run(["bounds", *words, "--bounds", "as-printed", "-q"]) == 0
    assert "not valid" in capsys.readouterr().out
    assert run(["bounds", *words, "--bounds", "best"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_bounds_under_a_limit_are_valid_so_far(loss: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path, out, cuts = problem(8, 40, 6), tmp_path / "d.csv", tmp_path / "b.json", 0
    y = {"squared": data.y, "logistic": data.y > np.median(data.y), "poisson": np.arange(40) % 7}[loss]
    rows = np.column_stack([data.X, y])
    np.savetxt(path, rows, delimiter=",", header=",".join([*data.names, "y"]), comments="")
    words = [str(path), "--target", "y", "--folds", "10", "--tau", "1:6", "--loss", loss, "--threads", "1"]
    words += ["--gamma", "0.01,0.1,1"]
    assert run(["bounds", *words, "--json", str(out)]) == 0
    whole = json.loads(out.read_text())
    capsys.readouterr()
    for readings in (10, 20, 40, 80, 160):
        with limit_after(readings) as seconds:
            code = run(["bounds", *words, "--time-limit", str(seconds), "--json", str(out)])
        assert code in (0, 3)
        if code == 0 or "ended before" in (said := capsys.readouterr().err) or "no answer yet" in said:
            continue
        cut = json.loads(out.read_text())
        assert cut["options"]["time_limit"] == seconds and len(cut["folds"]) == len(whole["folds"])
        for ours, full in zip(cut["folds"], whole["folds"], strict=True):
            least, most = ours["lower"], np.inf if ours["upper"] is None else ours["upper"]
            assert least <= full["upper"] * (1 + 1e-9) and full["lower"] <= most * (1 + 1e-9)
        cuts += 1
    assert cuts


def test_bounds_state_that_levels_count_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,wing,y\n" + "".join(f"{k * k % 13},{'NSE'[k % 3]},{k * k % 7}\n" for k in range(40)))
    asked = ["bounds", str(table), "--target", "y", "--encode", "onehot", "--gamma", "1", "--tau", "1:2"]
    assert run(asked) == 0 and "note: each level of wing counts as a feature; `solve`, `near" in capsys.readouterr().err
    for more in (["-q"], ["--adjust", "wing", "--tau", "1"]):
        assert run(changed(asked, more)) == 0 and "each level" not in capsys.readouterr().err
