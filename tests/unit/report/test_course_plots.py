"""Drawings of a trace: of every method."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from repository import INSTANCES

from sparsecv_mio.cli import run as main
from sparsecv_mio.oracles.glru import Logistic, Regularizer, StepwiseOptions, loocv, make_problem, stepwise
from sparsecv_mio.oracles.iacv import Erm, default_step, gd, run
from sparsecv_mio.report.course_plots import draw, plot_loocv, plot_report, plot_stepwise
from sparsecv_mio.report.figures import panels

SERVO = str(INSTANCES / "servo.csv")
ASK = ["solve", SERVO, "--target", "class", "--folds", "blocks:20", "--gamma", "0.1,1", "--tau", "1:5"]
ASK += ["--threads", "1"]


def test_drawings_of_a_descent(tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    assert main([*ASK, "--method", "descent", "--folds", "4", "--tau", "1:3", "--trace", str(trace), "-q"]) in (0, 3)
    assert main(["plot", str(trace), "--out", str(tmp_path / "a.png")]) == 0
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_drawings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "run.jsonl"
    assert main([*ASK, "--method", "algorithm1", "--trace", str(trace), "-q"]) == 0
    for name, magic in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
        assert main(["plot", str(trace), "--out", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes().startswith(magic)
    assert main(["plot", str(trace), "--out", str(tmp_path / "a.txt")]) == 2
    assert "--out" in capsys.readouterr().err
    assert main(["plot", SERVO, "--out", str(tmp_path / "b.png")]) == 2
    assert "was not written by `sparsecv collect`" in capsys.readouterr().err


def test_both_figures_are_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(30) > 0.0, 1.0, -1.0)
    problem = make_problem(X[:20], y[:20], Logistic(), Regularizer(0.1))
    plot_loocv(loocv(problem), y[:20], tmp_path / "loocv.png", "leave-one-out")
    for options in (StepwiseOptions(), StepwiseOptions(max_steps=0)):
        found = stepwise(problem, X[20:], y[20:], options)
        plot_stepwise(found, tmp_path / f"{len(found.steps)}.pdf", "stepwise")
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 3 and min(sizes) > 5000


@pytest.mark.parametrize("methods", [("iacv",), ("ns", "baseline", "exact")])
def test_a_run_is_drawn(methods: tuple[str, ...], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    erm = Erm(X, np.sign(X[:, 0] + rng.standard_normal(20)), Logistic(), Regularizer(2.0), 0.5)
    report = run(erm, gd(default_step(erm)), 20, methods=methods)
    plot_report(report, tmp_path / "run.png", "a run")
    assert (tmp_path / "run.png").stat().st_size > 5000


def test_repeats_are_a_median_and_a_band_and_rounding_is_left_out() -> None:
    _, axes = panels(1, 2, (6, 3))
    steps, values = np.array([1, 2, 3]), np.array([[1e-17, 1.0, 2.0], [1e-17, 3.0, 4.0], [1e-17, 5.0, 9.0]])
    draw(axes[0, 0], steps, {"iacv": values}, "error")
    assert np.array_equal(axes[0, 0].lines[0].get_ydata(), [np.nan, 3.0, 4.0], equal_nan=True)
    assert len(axes[0, 0].collections) == 1 and axes[0, 0].get_yscale() == "log"
    draw(axes[0, 1], steps, {"iacv": values[0]}, "seconds", log=False)
    assert axes[0, 1].lines[0].get_ydata().tolist() == [1e-17, 1.0, 2.0] and axes[0, 1].get_yscale() == "linear"
