"""`sparsecv inspect`: what it prints, the command that it proposes, its JSON."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from repository import ROOT
from slow import slow

from sparsecv_mio.cli import run
from sparsecv_mio.formulation.backends import BACKENDS
from sparsecv_mio.formulation.backends.contract import Availability, probe

UNUSABLE = re.compile(r"`solve` cannot use this file yet: |column '|.* and .* remain: too few to cross-validate$")


@pytest.fixture(autouse=True)
def wide_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def drawn(seed: int) -> pd.DataFrame:
    """Draw a file as people have them: words, gaps, ids, subjects, odd names, any target."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 40))
    v = rng.normal(size=n)

    def words(of: str, gaps: float = 0.0) -> list[str | None]:
        return [None if rng.random() < gaps else str(rng.choice(of.split(","))) for _ in range(n)]

    def numbers(share: float, other: float) -> list[float]:
        return np.where(rng.random(n) < share, other, v).tolist()

    kinds: dict[str, object] = {
        "a b": v, "x,y": rng.poisson(3, n), "-z": words("u,v,w w"), '"q': words("no,yes"), "id": np.arange(1, n + 1),
        "code": rng.permutation(n) + 1, "who": [f"s{k // 3}" for k in range(n)], "visit": [k % 3 + 1 for k in range(n)],
        "same": 1.0, "far": numbers(0.1, np.inf), "gaps": numbers(0.1, np.nan), "rare": numbers(0.7, np.nan),
        "words": words("r,s", 0.2), "name": [f"p{k}" for k in range(n)], "3": rng.integers(0, 2, n), "huge": v * 1e200,
        "day": [f"2024-01-{k % 28 + 1:02d}" for k in range(n)],
    }  # fmt: skip
    targets: list[object] = [
        v, words("no,yes"), rng.integers(0, 2, n), rng.poisson(2, n), np.exp(2 * v), rng.choice([-1, 1], n),
        numbers(0.3, np.nan), words("f,m", 0.2), 1.0, np.nan, words("a,b,c"), numbers(0.1, np.inf), v * 1e250,
    ]  # fmt: skip
    chosen = rng.choice(list(kinds), int(rng.integers(2, 8)), replace=False)
    return pd.DataFrame({name: kinds[name] for name in chosen} | {"y": targets[seed % len(targets)]})


@pytest.mark.parametrize("seed", [*range(13), *slow(range(13, 130))])
def test_every_command_that_is_proposed_runs(
    seed: int, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")  # no command is cut where the screen ends
    data = tmp_path / "data.csv"
    drawn(seed).to_csv(data, index=False)
    assert run(["inspect", str(data), "-t", "y"]) == 0
    lines = capfd.readouterr().out.splitlines()
    commands = [line for line in lines if line.startswith("sparsecv ")]
    assert commands or any(UNUSABLE.match(line) for line in lines)
    for command in commands:
        assert run([*shlex.split(command)[1:], "--gamma", "0.1", "--time-limit", "60", "-q"]) in (0, 3), command
    capfd.readouterr()


def test_exposures_that_are_named_are_no_feature(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data, rng = tmp_path / "data.csv", np.random.default_rng(3)
    drawn = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    drawn.assign(**{"at risk": rng.integers(1, 9, 40)}, ill=rng.poisson(2, 40)).to_csv(data, index=False)
    for given in ([], ["--features", "a,b,c"], ["--loss", "poisson"]):
        assert run(["inspect", str(data), "-t", "ill", "--exposure", "at risk", *given]) == 0
        shown = capfd.readouterr().out
        assert "the exposure" in shown and "40 rows, 3 features" in shown
        (command,) = [line for line in shown.splitlines() if line.startswith("sparsecv ")]
        assert command.endswith("--loss poisson --exposure 'at risk'")
        assert run([*shlex.split(command)[1:], "--gamma", "0.1", "--tau", "1", "-q"]) == 0, command
        capfd.readouterr()
    for given, said in (
        (["risk"], "'risk' is the target, or is not a column (did you mean 'at risk'?); name another column"),
        (["c", "--loss", "squared"], "requires --loss poisson"),
    ):
        assert run(["inspect", str(data), "-t", "ill", "--exposure", *given]) == 2
        assert f"--exposure: {said}" in capfd.readouterr().err


def test_successes_of_trials_are_proposed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": np.round(rng.normal(size=60), 3), "eggs": rng.integers(3, 20, 60)})
    frame["age"] = rng.integers(20, 60, 60)  # always larger, but no row of another order would exceed it
    frame["hatched"] = rng.binomial(frame["eggs"], 0.5)
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert run(["inspect", str(tmp_path / "a.csv"), "-t", "hatched"]) == 0
    shown = " ".join(capfd.readouterr().out.split())
    assert "the target is at most 'eggs' in every row; if it counts successes of 'eggs' trials" in shown
    assert "'age' trials" not in shown and shown.count("--trials") == 1
    command = re.search(r"sparsecv (solve \S+ --target hatched --loss logistic --trials eggs)", shown)
    assert command is not None and run([*shlex.split(command[1]), "--tau", "1", "--gamma", "0.1", "-q"]) == 0
    frame.rename(columns={"age": "n_trials"}).to_csv(tmp_path / "b.csv", index=False)  # a name is enough
    assert run(["inspect", str(tmp_path / "b.csv"), "-t", "hatched"]) == 0
    assert "successes of 'n_trials' trials" in " ".join(capfd.readouterr().out.split())
    frame.assign(hatched=frame["hatched"] + 1, eggs=frame["eggs"].to_numpy()[::-1]).to_csv(
        tmp_path / "c.csv", index=False
    )
    assert run(["inspect", str(tmp_path / "c.csv"), "-t", "hatched"]) == 0
    assert "--trials" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("name", "first", "in_order", "is_noted"),
    [
        ("plot_id", 1, True, True),
        ("subject_no", 10001, False, True),
        ("t", 1, True, False),
        ("year", 1950, False, False),
    ],
)
def test_columns_that_number_the_rows_are_noted(
    name: str, first: int, in_order: bool, is_noted: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    order = np.arange(40) if in_order else rng.permutation(40)
    frame = pd.DataFrame({name: first + order, "x": rng.normal(size=40), "y": rng.normal(size=40)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert run(["solve", str(tmp_path / "a.csv"), "-t", "y", "--tau", "1", "--gamma", "1", "-q"]) == 0
    assert (f"--drop {name} leaves it out" in capfd.readouterr().err) == is_noted
    assert run(["inspect", str(tmp_path / "a.csv"), "-t", "y"]) == 0
    assert ("numbers the rows" in capfd.readouterr().out) == (is_noted or name == "t")


def test_what_is_fitted_to_two_words_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data, record = tmp_path / "data.csv", tmp_path / "r.json"
    X = np.random.default_rng(1).normal(size=(40, 2))
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "ill": np.where(X[:, 0] > 0, "yes", "no")}).to_csv(data, index=False)
    assert run(["inspect", str(data), "-t", "ill"]) == 0
    shown = capfd.readouterr().out
    assert "--loss logistic models the probability of 'yes' (" in " ".join(shown.split())
    assert "--target ill --loss logistic\n" in shown and "--encode" not in shown and "5 gammas" in shown
    line = "target 'ill' has two values, 'no' (0) and 'yes' (1): squared-error loss fits a linear probability"
    solve = ["solve", str(data), "-t", "ill", "--gamma", "0.1", "--encode", "onehot", "--json", str(record)]
    assert run(solve) == 0
    assert f"note: {line}" in capfd.readouterr().err
    assert run([*solve, "-q"]) == 0
    assert "note:" not in capfd.readouterr().err
    assert run(["verify", str(record), str(data)]) == 0
    assert run(["predict", str(record), str(data)]) == 0
    capfd.readouterr()
    assert run(["solve", str(data), "-t", "ill", "--gamma", "0.1"]) == 2
    said = capfd.readouterr().err
    assert "give --loss logistic for two classes, or --encode onehot" in said and said.count("\n") == 1
    pd.read_csv(data).assign(town=["Oslo", "Bonn"] * 20).to_csv(data, index=False)
    assert run(["solve", str(data), "-t", "ill", "--gamma", "0.1"]) == 2
    said = capfd.readouterr().err
    assert "(40 cells; give --loss logistic for two classes, or --encode onehot for the numbers 0 and 1)" in said
    assert said.count("two classes") == 1 and said.count("\n") == 1


def test_without_a_target_and_with_many_columns(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "wide.csv"
    X = np.random.default_rng(0).normal(size=(12, 60))
    np.savetxt(data, X, delimiter=",", header=",".join(f"c{j}" for j in range(60)), comments="")
    assert run(["inspect", str(data)]) == 0
    shown = capfd.readouterr().out
    assert "20 more columns: --full lists all" in shown and "give the column to predict" in shown
    assert run(["inspect", str(data), "--full", "-t", "c0"]) == 0
    assert "59 features" in capfd.readouterr().out


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


def test_the_page_on_files_shows_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/guide/files.md").read_text(encoding="utf-8")
    data, screen = re.findall(r"```(?:text|console)\n(.*?)```", page, re.DOTALL)[:2]
    (tmp_path / "survey.csv").write_text(data)
    monkeypatch.chdir(tmp_path)
    command, _, screen = screen.partition("\n")
    assert run(shlex.split(command.removeprefix("$ sparsecv "))) == 0
    assert capsys.readouterr().out.split() == screen.split()


def test_inspect_writes_options_of_solve_as_the_command_line_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("a,b,grade\n" + "".join(f"{k},{k * k % 7},{'xyz'[k % 3]}\n" for k in range(30)))
    assert run(["inspect", str(tmp_path / "t.csv"), "--target", "grade"]) == 0
    shown = capsys.readouterr().out
    assert "--loss logistic" in shown and not re.search(r"\w=[\"\[]", shown)
