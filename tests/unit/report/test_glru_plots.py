"""Figures of GLRU."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sparsecv_mio.oracles.glru import Logistic, Regularizer, StepwiseOptions, loocv, make_problem, stepwise
from sparsecv_mio.report.glru_plots import plot_loocv, plot_stepwise


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
