"""The gamma step against the definition, coordinate descent against every single move."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from random_problems import random_problem

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.cli import run as main
from sparsecv_mio.cli.parse import log_taus
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan, make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.objective import cv_error
from sparsecv_mio.search.descent import PROGRESS, Descent, descend
from sparsecv_mio.search.driver import Clock, cross_validate
from sparsecv_mio.search.gamma import LEAST, MOST, GammaCurve


def noisy(seed: int, n: int = 40, p: int = 6) -> tuple[Dataset, FoldPlan]:
    """Correlated columns and much noise: gamma matters."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 1.5 * rng.normal(size=(n, 1))
    y = X @ np.round(2.0 * rng.normal(size=p)) + rng.uniform(2.0, 12.0) * rng.normal(size=n)
    data = Dataset.from_arrays(X, y)
    return data, make_folds(("5", "loo", "blocks:7")[seed % 3], data, seed)


@pytest.mark.parametrize("seed", range(30))
def test_curve_is_the_definition(seed: int) -> None:
    case = random_problem(seed, rows=25, columns=6)
    data = standardize(case.data, case.scale, case.intercept)
    rng = np.random.default_rng(seed)
    supports = [rng.choice(data.q, size=rng.integers(0, data.q + 1), replace=False) for _ in range(case.folds.k)]
    curve = GammaCurve(data, case.folds, supports)
    scored = int((case.folds.labels >= 0).sum())
    named = [data.columns[np.sort(s)].tolist() for s in supports]
    for gamma in (0.05, 3.0):
        exact = cv_error(
            case.data.X, case.data.y, case.folds.labels, named, gamma, scale=case.scale, intercept=case.intercept
        )
        value, slope, bend = curve.at(gamma)
        assert value * data.y_unit**2 / scored == pytest.approx(exact, rel=1e-6)
        up, down = curve.at(gamma * np.exp(1e-4)), curve.at(gamma * np.exp(-1e-4))
        size = 1e-6 * value + 1e-300
        assert slope == pytest.approx((up[0] - down[0]) / 2e-4, rel=1e-5, abs=size)
        assert bend == pytest.approx((up[1] - down[1]) / 2e-4, rel=1e-5, abs=size)


@pytest.mark.parametrize("seed", range(30))
def test_minima_are_the_best_of_a_dense_grid(seed: int) -> None:
    data, folds = noisy(seed)
    rng = np.random.default_rng(seed)
    supports = [np.sort(rng.choice(6, size=3, replace=False)) for _ in range(folds.k)]
    curve = GammaCurve(standardize(data), folds, supports)
    points = curve.minima(0.3)
    dense = [curve.at(float(gamma))[0] for gamma in np.geomspace(LEAST, MOST, 400)]
    assert points[0].total <= min(dense) * (1.0 + 1e-12)
    for point in points:
        assert LEAST <= point.gamma <= MOST
        value, slope, _ = curve.at(point.gamma)
        at_end = slope > 0.0 and point.gamma == LEAST or slope < 0.0 and point.gamma == MOST
        assert at_end or abs(slope) <= 1e-8 * value


@pytest.mark.parametrize("seed", range(12))
def test_no_single_move_improves_the_end_of_a_descent(seed: int) -> None:
    data, folds = noisy(seed)
    taus = list(range(0, 7))
    record = descend(data, folds, gammas=[1e-3, 0.1, 10.0], taus=taus, gap=0.0, threads=1)
    assert record.status == "proved" and record.descent[0].gamma == 0.1
    uppers = [step.upper for step in record.descent]
    assert all(b < a for a, b in zip(uppers, uppers[1:], strict=False))
    assert (record.descent[-1].gamma, record.descent[-1].tau) == (record.gamma, record.tau)
    # tau: every size at the same gamma, by a run of another method
    again = cross_validate(data, folds, gammas=[record.gamma], taus=taus, gap=0.0, threads=1, method="grid")
    assert again.cv_error == pytest.approx(record.cv_error, rel=1e-9)
    # gamma: wherever the fixed supports do better, the supports that belong there do not
    clock = Clock(None, None)
    end = Descent(standardize(data), folds, taus, (1e-3, 10.0), 0.0, clock, 1, None)
    row = end.solve(record.gamma, taus)
    for point in end.proposals(row, row.bounds().best[1]):
        moved = cross_validate(data, folds, gammas=[point.gamma], taus=[record.tau], gap=0.0, threads=1)
        assert moved.upper >= record.upper * (1.0 - 2.0 * PROGRESS)


@pytest.mark.parametrize("seed", range(6))
def test_refined_is_apart_and_never_worse(seed: int) -> None:
    data, folds = noisy(seed)
    ask = {"gammas": [0.01, 0.1, 1.0], "taus": range(1, 7), "gap": 0.0, "threads": 1}
    plain = cross_validate(data, folds, **ask)  # type: ignore[arg-type]
    record = cross_validate(data, folds, refine=True, **ask)  # type: ignore[arg-type]
    assert (record.gamma, record.tau, record.lower, record.upper) == (plain.gamma, plain.tau, plain.lower, plain.upper)
    better = record.refined
    assert plain.refined is None and better is not None
    assert better.tau == record.tau and better.upper <= record.upper
    at = cross_validate(data, folds, gammas=[better.gamma], taus=[better.tau], gap=0.0, threads=1)
    assert at.cv_error == pytest.approx(better.cv_error, rel=1e-9)
    assert better.lower * (1.0 - 1e-12) <= at.cv_error <= better.upper * (1.0 + 1e-12)
    assert Record.from_json(record.to_json()) == record


def test_a_limit_ends_a_descent_with_valid_bounds() -> None:
    data, folds = noisy(1)
    record = descend(data, folds, gammas=[0.1], taus=range(1, 7), time_limit=1e-9, threads=1)
    assert record.status == "limit" and record.lower <= record.upper


def test_tau_rule() -> None:
    assert log_taus(3, 100) == (1, 2)
    assert log_taus(1, 1) == (1,)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, _ = noisy(0)
    table, out = tmp_path / "data.csv", tmp_path / "answer.json"
    head = ",".join((*data.names, "y"))
    np.savetxt(table, np.column_stack([data.X, data.y]), delimiter=",", header=head, comments="", fmt="%.17g")
    ask = ["solve", str(table), "--target", "y", "--folds", "5", "--threads", "1", "--json", str(out), "--tau", "log"]
    assert main([*ask, "--method", "descent"]) == 0
    found = json.loads(out.read_text())
    assert found["descent"][0]["move"] == "start" and found["work"]["engine"] == "descent"
    assert found["request"]["taus"] == [1, 2, 3, 4]
    assert "descent" in capsys.readouterr().out
    assert main(["verify", str(out), str(table)]) == 0
    assert main([*ask, "--gamma", "0.01,1", "--refine"]) == 0
    assert json.loads(out.read_text())["refined"]["gamma"] > 0.0
    assert "refined" in capsys.readouterr().out
    assert main(["verify", str(out), str(table)]) == 0
    assert main([*ask, "--method", "descent", "--refine"]) == 2
