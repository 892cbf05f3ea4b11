"""What the tables hold: intervals that only tighten, estimates that cannot become intervals."""

from __future__ import annotations

import json
import threading
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import problems
import pytest
from exact import check_allowance

from sparsecv_mio.bounds import cv_error
from sparsecv_mio.bounds.cv_error import (
    BoundsHooks,
    BoundsTable,
    PrintedTable,
    bound_smooth_cv_errors,
    bound_weighted_by_all_columns,
    compute_bounds,
    printed_bounds,
    printed_ends,
)
from sparsecv_mio.bounds.fold import FoldBounds, Origin
from sparsecv_mio.bounds.more_weight import HeldOutWeightedBounds
from sparsecv_mio.bounds.relaxation import Diagonal, relax_problem
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput, Contradiction
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees.glm_subsets import make_subsets, rows_in_units

from .drawn import random_data, random_problem


def empty() -> BoundsTable:
    data = random_data()
    return BoundsTable.empty(standardize(data), make_folds("4", data), (1.0,), (1, 2))


def test_a_floor_raises_lower_ends_and_never_crosses() -> None:
    table = empty()
    numbers = np.tile([0.0, 9.0, 2.0, 5.0, Origin.CONIC, Origin.CONIC, 3.0, 1.0], (2, 1))
    for fold in range(4):
        table.put(0, fold, numbers)
    floor = np.array([[1.0, 3.0, 5.0 * (1.0 + 1e-9), -np.inf], [0.0] * 4])
    table.raise_lower(0, floor, Origin.TRAINING)
    assert table.lower[0, 0].tolist() == [2.0, 3.0, 5.0, 2.0] and np.all(table.lower[0, 1] == 2.0)
    assert [Origin(code) for code in table.low_origin[0, 0]] == [
        Origin.CONIC, Origin.TRAINING, Origin.TRAINING, Origin.CONIC
    ]  # fmt: skip
    with pytest.raises(Contradiction, match="gamma 1, tau 2, fold 2: lower"):
        table.raise_lower(0, np.array([[0.0] * 4, [0.0, 6.0, 0.0, 0.0]]), Origin.TRAINING)


def excesses_of_cv_error(seed: int) -> list[Fraction]:
    """An interval against the exact sum of the errors of the folds in units of the file."""
    table, rng = empty(), np.random.default_rng(seed)
    table.lower[:] = table.upper[:] = rng.uniform(size=table.lower.shape)
    mean = sum(map(Fraction, table.lower[0, 0])) * Fraction(table.unit) / Fraction(table.rows)
    found = table.cv_interval(0, 0)
    return [Fraction(found.lower) - mean, mean - Fraction(found.upper)]


@pytest.mark.parametrize("end", [0, 1])
def test_ends_of_a_cv_error_are_rounded_outwards(end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check_allowance(
        lambda seed: excesses_of_cv_error(seed)[end : end + 1], range(10), [(cv_error, "OUTWARD")], monkeypatch
    )


def test_printed_table_is_another_type() -> None:
    data = random_data(4)
    table = printed_bounds(standardize(data), make_folds("5", data), [1.0], [1, 2])
    assert isinstance(table, PrintedTable)
    assert not hasattr(table, "interval") and not hasattr(table, "cv_interval") and not hasattr(table, "minimum")
    assert table.to_dict()["certified"] is False
    low, high, middle = table.cv_estimates(0, 1)
    assert low <= middle * 1.5 and low <= high


def test_threads_and_order_of_taus_change_nothing() -> None:
    data = random_data(2)
    standard, folds = standardize(data), make_folds("loo", data)
    one = compute_bounds(standard, folds, [0.1], [1, 2, 3])
    two = compute_bounds(standard, folds, [0.1], [3, 1, 2], threads=2)
    assert np.allclose(one.lower[:, [2, 0, 1]], two.lower) and np.allclose(one.upper[:, [2, 0, 1]], two.upper)


def test_stop_leaves_valid_intervals() -> None:
    data = random_data(3)
    stop = threading.Event()
    stop.set()
    table = compute_bounds(
        standardize(data), make_folds("5", data), [1.0], [2], hooks=BoundsHooks(is_expired=stop.is_set)
    )
    assert np.isinf(table.upper).any() and table.cv_interval(0, 0).upper == np.inf
    assert table.to_dict()["table"][0]["upper"] is None


def test_hooks_are_told() -> None:
    data, seen, begun = random_data(5), [], []
    hooks = BoundsHooks(lambda done, of: seen.append((done, of)), begun=begun.append)
    table = compute_bounds(standardize(data), make_folds("4", data), [0.1, 1.0], [1, 3], hooks=hooks)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)] and begun == [table]


@pytest.mark.parametrize("seed", range(4))
def test_the_formula(seed: int) -> None:
    problem, _ = random_problem(seed)
    rng = np.random.default_rng(seed)
    V, r = rng.standard_normal((3, problem.q)), rng.standard_normal(3)
    fold = FoldBounds(problem, V, r)
    fold.search([2, 4], swap_rounds=1)
    for tau, (lower, upper, estimate) in zip([2, 4], printed_ends(fold, [2, 4]), strict=True):
        point = relax_problem(problem, [tau], diagonal=Diagonal.PENALTY)[0]
        reach = np.einsum("ij,ji->i", V, np.linalg.solve(problem.M, V.T))
        wide, middle = np.sqrt((fold.best[tau] - point.dual) * reach), V @ point.beta
        near = np.maximum(np.abs(r - middle) - wide, 0.0)
        assert lower == pytest.approx(near @ near, rel=1e-6, abs=1e-9)
        assert upper == pytest.approx(np.sum((np.abs(r - middle) + wide) ** 2), rel=1e-6)
        assert estimate == pytest.approx(np.sum((r - middle) ** 2), rel=1e-6)


def test_what_is_singular_to_rounding_has_no_interval() -> None:
    problem = SparseProblem(np.ones((2, 2)), np.ones(2), 2.0, np.ones(2), 1e-20, 9, np.zeros(2), 0.0)
    lower, upper, _ = printed_ends(FoldBounds(problem, np.ones((1, 2)), np.ones(1)), [1])[0]
    assert lower == 0.0 and upper == np.inf


@pytest.mark.parametrize(("gammas", "taus", "word"), [([], [1], "empty"), ([-1.0], [1], "gamma"), ([1.0], [99], "tau")])
def test_misuse_is_one_line(gammas: list[float], taus: list[int], word: str) -> None:
    data = random_data()
    with pytest.raises(BadInput, match=word) as error:
        compute_bounds(standardize(data), make_folds("5", data), gammas, taus)
    assert "\n" not in str(error.value)


def test_solve_by_bounds_alone() -> None:
    from sparsecv_mio.search.api import cross_validate

    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 7))
    X[:, 1:4] += X[:, :1]
    dataset = Dataset.from_arrays(X, X[:, 0] + X[:, 4] + 2.0 * rng.standard_normal(40))
    folds = make_folds("5", dataset)
    truth = cross_validate(dataset, folds, gammas=[0.01, 0.1], taus=range(1, 7), method="rounds", gap=0.0)
    record = cross_validate(dataset, folds, gammas=[0.01, 0.1], taus=range(1, 7), method="bounds")
    assert record.status == "limit" and record.work.mios == 0
    assert record.lower <= truth.cv_error <= record.upper
    for options in ({"mio_budget": 2}, {"backend": "highs"}):
        with pytest.raises(BadInput):
            cross_validate(dataset, folds, gammas=[0.1], taus=[1], method="bounds", **options)


def two_classes() -> Dataset:
    return problems.classes(3, 80, 5, {0: 1.0})


def test_intervals_hold_what_a_search_decides() -> None:
    data = two_classes()
    plan = make_folds("stratified:4", data)
    table = bound_smooth_cv_errors(standardize(data, loss=Loss.LOGISTIC), plan, [0.1, 1.0], [1, 3])
    record = cross_validate(data, plan, gammas=[0.1, 1.0], taus=[1, 3], loss="logistic", gap=0.0)
    for row in record.table:
        ends = table.cv_interval([0.1, 1.0].index(row.gamma), [1, 3].index(row.tau))
        assert 0.0 < ends.lower <= row.cv_error <= ends.upper < np.inf
        assert ends.lower > 0.5 * row.cv_error


@pytest.mark.parametrize("loss", [Loss.LOGISTIC, Loss.POISSON])
def test_held_out_rows_with_more_weight(loss: Loss) -> None:
    data = two_classes()
    if loss == Loss.POISSON:
        data = Dataset.from_arrays(data.X, np.random.default_rng(4).poisson(np.exp(data.X[:, 0])).astype(float))
    plan, gammas, taus = make_folds("4", data), np.array([0.1, 1.0, 9.0]), np.arange(1, 6)
    standard = standardize(data, loss=loss)
    for fold in range(4):
        bounds = HeldOutWeightedBounds(gammas, taus)
        bound_weighted_by_all_columns(standard, plan, fold, bounds)
        rows, training = rows_in_units(standard, plan.scored_rows(fold)), make_subsets(standard, plan.train_rows(fold))
        for g, gamma in enumerate(gammas.tolist()):
            at, every = training.with_gamma(gamma), [np.array(s) for s in combinations(range(5), 2)]
            fits, low, high = at.score_supports(every, *rows)
            best = int(np.argmin(fits.upper))
            values = np.full((3, 5), np.inf)
            values[g, 1] = fits.upper[best]
            said = bounds.held_out_errors(values)
            assert np.count_nonzero(said) == 1 and 0.3 * low[best] < said[g, 1] <= high[best]
        assert np.all(np.diff(bounds.lower, axis=1) > 0.0) and np.all(bounds.lower[:, :, 0] == bounds.lower[:, :, 4])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, table, out = two_classes(), tmp_path / "t.csv", tmp_path / "b.json"
    rows = [",".join(map(str, [*row, "yes" if y else "no"])) for row, y in zip(data.X, data.y, strict=True)]
    table.write_text("\n".join(["a,b,c,d,e,y", *rows]))
    asked = ["bounds", str(table), "--target", "y", "--loss", "logistic", "--gamma", "0.1", "--tau", "1:2"]
    assert run([*asked, "--json", str(out)]) == 0
    assert "supports of a local search" in capsys.readouterr().out
    record = json.loads(out.read_text())
    assert record["options"]["loss"] == "logistic" and len(record["table"]) == 2
    assert run([*asked, "--bounds", "as-printed"]) == 2
    assert "--bounds as-printed" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(4))
def test_estimates_lie_within_the_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 5))
    data = Dataset.from_arrays(X, X[:, 0] + 0.5 * rng.normal(size=30))
    table = compute_bounds(standardize(data), make_folds("5", data), [0.01, 1.0, 100.0], [1, 2, 3])
    for g, t in np.ndindex(3, 3):
        ends = table.cv_interval(g, t)
        assert ends.lower <= table.cv_estimate(g, t) <= ends.upper
