"""`sparsecv glru`: options to the library, answer to the screen, to JSON and to a plot."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.cli import run
from sparsecv_mio.oracles.glru import (
    Logistic,
    Regularizer,
    SmoothedHinge,
    StepwiseOptions,
    loocv,
    make_problem,
    stepwise,
)


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((70, 4)) * [1.0, 3.0, 0.5, 1.0] + 0.7
    return X, np.where(X @ [1.0, -0.5, 1.0, 0.0] + rng.standard_normal(70) > 0.3, 5.0, 2.0)


@pytest.fixture
def file(tmp_path: Path, data: tuple[np.ndarray, np.ndarray]) -> Path:
    path = tmp_path / "data.csv"
    rows = np.column_stack(data)
    np.savetxt(path, rows, delimiter=",", header="a,b,c,d,label", comments="", fmt="%.17g")
    return path


def sparsecv(*words: object) -> int:
    return run([str(word) for word in words])


def numbers(capsys: Any, *words: object) -> dict[str, Any]:
    assert sparsecv("glru", *words, "--json", "-", "-q") == 0
    return json.loads(capsys.readouterr().out)


def signs(y: np.ndarray) -> np.ndarray:
    return np.where(y > 3.0, 1.0, -1.0)


def test_loocv_is_the_librarys_and_the_naive_one(file, data, capsys) -> None:  # type: ignore[no-untyped-def]
    found = numbers(capsys, "loocv", file, "--target", "label", "--loss", "logistic", "--reg", "l2", "--lam", 0.05)
    X, y = data
    expected = loocv(make_problem(X, signs(y), Logistic(), Regularizer(0.05)))
    assert found["errors"] == expected.errors and found["trainings"] == expected.trainings
    assert found["n"] == 70 and isinstance(found["seconds"], float) and found["labels"] == [2.0, 5.0]
    assert found["certain"] == 70 and found["guarantee"] == "certified" and found["unknown"] == 0
    naive = numbers(capsys, "loocv", file, "--target", "label", "--lam", 0.05, "--naive", "--tol", 1e-12)
    assert naive["errors"] == found["errors"] and naive["trainings"] == 70 > found["trainings"]
    approx = numbers(capsys, "loocv", file, "--target", "label", "--lam", 0.05, "--approx")
    assert approx["guarantee"] == "estimate" and abs(approx["errors"] - found["errors"]) <= 2


def test_scale_and_intercept(file, data, capsys) -> None:  # type: ignore[no-untyped-def]
    words = ("--loss", "smoothed-hinge", "--width", 0.5, "--reg", "elastic-net", "--l1", 0.02, "--lam", 0.1)
    X, y = data
    centred, model = X - X.mean(axis=0), (SmoothedHinge(0.5), Regularizer(0.1, 0.02))
    found = numbers(capsys, "loocv", file, "--target", "label", *words, "--scale", "variance", "--intercept", "global")
    assert found["errors"] == loocv(make_problem(centred / X.std(axis=0), signs(y), *model)).errors
    found = numbers(capsys, "loocv", file, "--target", "label", *words, "--intercept", "fold")
    free = SmoothedHinge(0.5), Regularizer(0.1, 0.02, intercept=True)
    assert found["errors"] == loocv(make_problem(X, signs(y), *free)).errors


@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_stepwise_with_a_validation_file(file, data, tmp_path, capsys, direction) -> None:  # type: ignore[no-untyped-def]
    X, y = data
    train, other = tmp_path / "train.csv", tmp_path / "validation.csv"
    lines = file.read_text().splitlines()
    train.write_text("\n".join(lines[:51]) + "\n")
    other.write_text("\n".join([lines[0], *lines[51:]]) + "\n")
    words = ("--target", "label", "--lam", 0.1, "--validation", other, "--direction", direction, "--ties", "first")
    found = numbers(capsys, "stepwise", train, *words)
    problem = make_problem(X[:50], signs(y[:50]), Logistic(), Regularizer(0.1))
    expected = stepwise(problem, X[50:], signs(y[50:]), StepwiseOptions(direction, ties="first"))
    assert found["selected"] == ["abcd"[j] for j in expected.selected]
    assert found["errors"] == expected.errors and found["n"] == 50 and found["n_validation"] == 20
    naive = numbers(capsys, "stepwise", train, *words, "--naive")
    assert naive["selected"] == found["selected"] and naive["trainings"] >= found["trainings"]


def test_stepwise_holds_rows_out(file, capsys) -> None:  # type: ignore[no-untyped-def]
    found = numbers(capsys, "stepwise", file, "--target", "label", "--lam", 0.1, "--holdout", 0.3, "--steps", 1)
    assert found["n"] == 49 and found["n_validation"] == 21 and len(found["path"]) == 1


def test_text(file, capsys) -> None:  # type: ignore[no-untyped-def]
    for command in ("loocv", "stepwise"):
        assert sparsecv("glru", command, file, "--target", "label", "--lam", 0.1) == 0
    shown = capsys.readouterr().out
    assert "leave-one-out errors" in shown and "selected" in shown


@pytest.mark.parametrize(
    "words",
    [
        ("loocv", "--target", "label", "--lam", "0"),
        ("loocv", "--target", "a", "--lam", "1"),
        ("loocv", "--target", "label", "--lam", "1", "--loss", "hinge"),
        ("loocv", "--target", "label", "--lam", "1", "--reg", "lasso"),
        ("loocv", "--target", "label", "--lam", "1", "--reg", "elastic_net"),
        ("loocv", "--target", "label", "--lam", "1", "--scale", "unit"),
        ("loocv", "--target", "label", "--lam", "1", "--tol", "0"),
        ("loocv", "--target", "label"),
        ("stepwise", "--target", "label", "--lam", "1", "--direction", "up"),
        ("stepwise", "--target", "label", "--lam", "1", "--holdout", "2"),
        ("stepwise", "--target", "label", "--lam", "1", "--steps", "0"),
    ],
)
def test_bad_input_is_one_line_and_code_2(file, capsys, words) -> None:  # type: ignore[no-untyped-def]
    assert sparsecv("glru", words[0], file, *words[1:]) == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith("sparsecv: error: ") and "\n" not in said


def test_a_stop_leaves_bounds(data) -> None:  # type: ignore[no-untyped-def]
    X, y = data
    stop = threading.Event()
    problem = make_problem(X, signs(y), Logistic(), Regularizer(1e-4))
    whole = loocv(problem, steps=False)
    cut = loocv(problem, steps=False, stop=stop, progress=lambda done, total: stop.set())
    assert whole.unknown == 0 and cut.trainings == 1 and cut.unknown == whole.trainings - 1
    assert cut.errors <= whole.errors <= cut.errors + cut.unknown
    found = stepwise(problem, X, signs(y), stop=stop)
    assert found.steps == () and found.selected.size == 4
