"""`solve` on real data: answers, records, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from every_support import brute_force_cv_error
from repository import INSTANCES

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.cli import run
from sparsecv_mio.errors import BackendFailed, SparseCVWarning
from sparsecv_mio.problem.objective import fit
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.options import Hooks

PROSTATE, DIABETES, SERVO = (str(INSTANCES / f"{name}.csv") for name in ("prostate", "diabetes", "servo"))
SMALL = ["--gamma", "0.1,1", "--tau", "0:3", "--threads", "1"]
Solve = Callable[..., dict[str, Any]]


@pytest.fixture
def solve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Solve:
    """Run `solve`, then `verify` its record; the record's fields."""

    def call(data: str, *options: str, code: int = 0) -> dict[str, Any]:
        path = tmp_path / "record.json"
        assert run(["solve", data, *options, "--json", str(path)]) == code, capsys.readouterr().err
        assert run(["verify", str(path), data]) == 0
        return dict(json.loads(path.read_text()))

    return call


def table(name: str) -> tuple[np.ndarray, list[str]]:
    path = INSTANCES / f"{name}.csv"
    return np.loadtxt(path, delimiter=",", skiprows=1), path.read_text().splitlines()[0].split(",")


def test_the_answer_is_the_brute_force_minimum(solve: Solve, capsys: pytest.CaptureFixture[str]) -> None:
    record = solve(PROSTATE, "--target", "lpsa", "--folds", "blocks:20", "--gap", "0", *SMALL)
    numbers, names = table("prostate")
    X, y = numbers[:, :-1], numbers[:, -1]
    from sparsecv_mio.data.dataset import Dataset
    from sparsecv_mio.data.folds import make_folds

    labels = make_folds("blocks:20", Dataset.from_arrays(X, y)).labels
    h = {(g, t): brute_force_cv_error(X, y, labels, t, g)[1] for g in (0.1, 1.0) for t in range(4)}
    best = min(h, key=lambda pair: h[pair])
    assert (record["gamma"], record["tau"]) == best and record["status"] == "proved"
    assert record["cv_error"] == pytest.approx(h[best], rel=1e-9)
    for row in record["table"]:
        assert row["lower"] - 1e-9 <= h[row["gamma"], row["tau"]] <= row["upper"] + 1e-9
    model = fit(X, y, [names.index(name) for name in record["support"]], best[0])
    assert list(record["coefficients"].values()) == pytest.approx(model.beta.tolist(), rel=1e-7)
    shown = capsys.readouterr().out
    assert shown.startswith(f"certified choice (gap 0): tau = {best[1]} features, gamma = {best[0]:g}")
    for text in (
        "CV error",
        "on held-out rows: RMSE ",
        "lcavol",
        "(intercept)",
        f"best gamma for each tau (reported: tau = {best[1]})",
        "97 rows; 8 features; ",
    ):
        assert text in shown


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (DIABETES, ["--target", "y", "--folds", "loo"]),
        (DIABETES, ["--target", "y", "--folds", "groups:sex"]),
        (DIABETES, ["--target", "10", "--intercept", "global", "--scale", "variance"]),
        (PROSTATE, ["--target", "lpsa", "--folds", "holdout:0.2", "--seed", "3"]),
        (PROSTATE, ["--target", "lpsa", "--folds", "column:gleason", "--intercept", "none"]),
        (PROSTATE, ["--target", "lpsa", "--folds", "blocks:10", "--scale", "none", "--drop", "age,pgg45"]),
        (SERVO, ["--target", "class", "--folds", "groups:motor_E"]),
        (SERVO, ["--target", "class", "--folds", "5", "--features", "pgain_3,pgain_4,motor_A,vgain_1", "--one-se"]),
    ],
)
def test_every_kind_of_run_is_proved_and_verified(solve: Solve, data: str, options: list[str]) -> None:
    record = solve(data, *options, *SMALL)
    assert record["status"] == "proved"
    assert record["lower"] <= record["cv_error"] <= record["upper"]
    assert len(record["table"]) == 8 and len(record["chosen_folds"]) == record["folds"]["k"]
    column = options[options.index("--folds") + 1].partition(":")[2] if "--folds" in options else ""
    assert column not in record["data"]["names"]


def test_a_fold_file(solve: Solve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "folds.csv"
    file.write_text("fold\n" + "\n".join(str(i % 4) for i in range(97)))
    record = solve(PROSTATE, "--target", "lpsa", "--folds", f"file:{file}", *SMALL)
    assert record["folds"]["k"] == 4


def test_npz_files_need_no_target(solve: Solve, tmp_path: Path) -> None:
    numbers, names = table("prostate")
    np.savez(tmp_path / "prostate.npz", X=numbers[:, :-1], y=numbers[:, -1], names=np.array(names[:-1]))
    ours = solve(str(tmp_path / "prostate.npz"), *SMALL)
    assert ours["cv_error"] == pytest.approx(solve(PROSTATE, "--target", "lpsa", *SMALL)["cv_error"], rel=1e-12)


def test_constant_and_repeated_columns_are_warnings(solve: Solve, tmp_path: Path, capsys: Any) -> None:
    numbers, names = table("prostate")
    wide = np.column_stack([numbers, -numbers[:, 0], np.ones(len(numbers))])
    path = tmp_path / "wide.csv"
    np.savetxt(path, wide, delimiter=",", header=",".join([*names, "copy", "one"]), comments="")
    record = solve(str(path), "--target", "lpsa", *SMALL)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("sparsecv: warning: ")]
    assert len(lines) == len(record["warnings"]) == 2
    assert "'one' is constant" in lines[0] and "'copy'" in lines[1]


def test_record_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", PROSTATE, "--target", "lpsa", *SMALL, "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["schema"] == "sparsecv/2"
    assert "CV error" in captured.err


def test_quiet_shows_the_answer_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", PROSTATE, "--target", "lpsa", *SMALL, "--quiet"]) == 0
    captured = capsys.readouterr()
    assert "CV error" in captured.out and "every tau" not in captured.out and captured.err == ""


@pytest.mark.parametrize("place", ["nowhere/record.json", "."])
def test_an_unwritable_record_is_refused_before_the_work(place: str, tmp_path: Path, capsys: Any) -> None:
    assert run(["solve", PROSTATE, "--target", "lpsa", "--json", str(tmp_path / place)]) == 2
    assert "--json" in capsys.readouterr().err


def test_a_limit_leaves_valid_bounds(solve: Solve, capsys: pytest.CaptureFixture[str]) -> None:
    hard = ["--target", "y", "--gamma", "0.01", "--tau", "10:12", "--time-limit", "1", "--threads", "1"]
    record = solve(str(INSTANCES / "diabetes64.csv"), *hard, code=3)
    assert record["status"] == "limit"
    assert record["upper"] is None or record["lower"] < record["upper"]  # None: a slow machine, nothing bounded yet
    assert record["lower"] <= record["cv_error"] <= (record["upper"] or np.inf)
    assert "limit reached" in capsys.readouterr().out


def test_a_lost_cluster_is_a_warning(
    solve: Solve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*given: Any, hooks: Hooks, **more: Any) -> Record:
        assert hooks.lost is not None
        hooks.lost(BackendFailed("the dask cluster was lost (closed): what was left was computed here"))
        return cross_validate(*given, **more)

    monkeypatch.setattr("sparsecv_mio.search.api.cross_validate", search)
    assert solve(PROSTATE, "--target", "lpsa", *SMALL)["status"] == "proved"
    assert "warning: the dask cluster was lost (closed)" in capsys.readouterr().err


def test_forced_features_are_in_every_fold(solve: Solve, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--target", "lpsa", "--folds", "5", "--gamma", "0.1,1", "--force-in", "age", "--force-out", "svi,lbph")
    record = solve(PROSTATE, *options)
    assert record["request"]["taus"] == list(range(1, 7)) and record["status"] == "proved"
    models = [record["support"], *(fold["support"] for fold in record["chosen_folds"])]
    assert all("age" in model and not {"svi", "lbph"} & set(model) for model in models)
    shown = capsys.readouterr().out
    assert "models compared: with age; without lbph, svi" in shown
    for wrong, message in ((("--force-in", "agee"), "did you mean 'age'?"), (("--force-in", "svi"), "is in both")):
        assert run(["solve", PROSTATE, *options[:6], "--force-out", "svi", *wrong]) == 2
        assert message in capsys.readouterr().err


def test_an_option_on_its_way_out_says_so_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sparsecv_mio.data.readers import read_dataset
    from sparsecv_mio.search.api import cross_validate

    words = ["solve", PROSTATE, "--target", "lpsa", "--folds", "5", *SMALL]
    for option, said in (
        (["--oracles", "glru"], "oracles has no effect and will be removed in 0.4; use --sources"),
        (
            ["--refine"],
            "refine will be removed in 0.4; use --gamma LO..HI, which certifies the best gamma of an interval",
        ),
    ):
        assert run([*words, *option]) == 0
        (line,) = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
        assert line.startswith(f"sparsecv: warning: --{said}")
    assert run([*words, "--sources=-enclosures"]) == 0 and "warning" not in capsys.readouterr().err
    with pytest.warns(SparseCVWarning, match="oracles has no effect and will be removed in 0.4"):
        cross_validate(read_dataset(PROSTATE, "lpsa"), "5", gammas=1.0, taus=2, oracles="iacv")
