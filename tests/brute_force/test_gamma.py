"""The gamma step against the definition, coordinate descent against every single move."""

from __future__ import annotations

import numpy as np
import pytest
from runs import new_run, to_end
from truth import cv_intervals
from zoo import random_problem

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.model_space import log_taus
from sparsecv_mio.problem.objective import cv_error
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.descent import LEAST, MOST, PROGRESS, GammaCurve, gamma_proposals
from sparsecv_mio.search.loop import RowMaker, context_of
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.search.run import GridMethod

WIDER_TIES = 1.1e-9  # a little outside of the engine's tolerance


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


def check_the_end(data: Dataset, folds: FoldPlan, gammas: list[float], taus: list[int], **options: str) -> Record:
    """A descent falls with every move it takes, and no single move of tau or gamma improves its end."""
    ask = {"gap": 0.0, "threads": 1, **options}
    record = cross_validate(data, folds, gammas=gammas, taus=taus, method="descent", **ask)  # type: ignore[arg-type]
    taken = [step for step in record.descent if step.accepted]
    assert taken[0].move == "start" and taken[0].gamma == gammas[len(gammas) // 2]
    assert all(b.upper < a.upper for a, b in zip(taken, taken[1:], strict=False))
    assert (taken[-1].gamma, taken[-1].tau, taken[-1].upper) == (record.gamma, record.tau, record.upper)
    assert all(step.upper >= record.upper * (1.0 - PROGRESS) for step in record.descent)
    if record.status != "proved":
        return record
    # tau: every size at the same gamma; gamma: every one of the grid at the same size, by enumeration
    how, rounding = (record.data.scale, record.data.intercept), 1e-9 * record.upper + record.allowance
    for some, sizes in (([record.gamma], taus), (gammas, [record.tau])):
        _, high = cv_intervals(data.X, data.y, folds.labels, some, sizes, how, WIDER_TIES)
        assert high.min() >= record.upper * (1.0 - PROGRESS) - rounding, (some, sizes)
    # the gamma step: wherever the fixed supports do better, the supports that belong there do not
    standard = standardize(data, record.data.scale, record.data.intercept)
    grid = Grid.of([record.gamma], taus, data.p)
    state = to_end(new_run(standard, folds, grid)).run
    for point in gamma_proposals(state, state.bounds().best, (gammas[0], gammas[-1])):
        moved = cross_validate(data, folds, gammas=[point.gamma], taus=[record.tau], **ask)  # type: ignore[arg-type]
        assert moved.upper >= record.upper * (1.0 - 2.0 * PROGRESS)
    return record


@pytest.mark.parametrize("seed", range(12))
def test_no_single_move_improves_the_end_of_a_descent(seed: int) -> None:
    data, folds = noisy(seed)
    record = check_the_end(data, folds, [1e-3, 0.1, 10.0], list(range(0, 7)))
    assert record.status == "proved"
    assert [step.move for step in record.descent][-1] in ("line", "gamma")
    solved = [step.gamma for step in record.descent if step.move != "line"]
    assert len(set(solved)) == len(solved)


def ends_of_random_descents(seeds: range, **size: int) -> int:
    proved = 0
    for seed in seeds:
        case = random_problem(seed, **size)
        record = check_the_end(
            case.data, case.folds, case.gammas if len(case.gammas) > 1 else [1e-3, 0.1, 10.0], case.taus,
            scale=case.scale, intercept=case.intercept,
        )  # fmt: skip
        proved += record.status == "proved"
    return proved


def test_ends_of_random_descents() -> None:
    assert ends_of_random_descents(range(12), rows=25, columns=6) >= 10


@pytest.mark.slow
def test_ends_of_random_descents_at_length() -> None:
    assert ends_of_random_descents(range(5000, 5500), rows=30, columns=7) >= 450


@pytest.mark.parametrize("seed", range(4))
def test_saddle_point_rows_are_estimates_and_never_proved(seed: int) -> None:
    data, folds = noisy(seed)
    ask = {"gammas": [0.01, 0.1, 1.0], "taus": range(0, 7), "gap": 0.0, "threads": 1}
    record = cross_validate(data, folds, method="descent", tau_step="saddle", **ask)  # type: ignore[arg-type]
    assert (record.status, record.work.mios, record.work.engine) == ("limit", 0, "descent, saddle point")
    assert not np.isfinite(record.upper) and any("estimates" in line for line in record.warnings)
    taken = [step.cv_error for step in record.descent if step.accepted]
    assert taken == sorted(taken, reverse=True) and taken[-1] == record.cv_error
    names = {name: j for j, name in enumerate(data.names)}
    chosen = [sorted(names[name] for name in fold.support) for fold in record.chosen_folds]
    exact = cv_error(data.X, data.y, folds.labels, chosen, record.gamma, scale="length", intercept="fold")
    assert record.cv_error == pytest.approx(exact, rel=1e-9)
    assert verify(record, data, folds).ok
    truth = cross_validate(data, folds, **(ask | {"gammas": [record.gamma]}))  # type: ignore[arg-type]
    assert record.lower <= truth.cv_error * (1.0 + 1e-12)
    lower = {row.tau: row.lower for row in record.table}
    assert all(lower[row.tau] <= row.upper * (1.0 + 1e-12) for row in truth.table)


def saddle(data: StandardData, folds: FoldPlan, grid: Grid, threads: int = 1) -> GridMethod:
    """Every cell of a grid estimated by the saddle point, not begun."""
    options = SearchOptions(gap=0.0, threads=threads)
    rows = RowMaker(context_of(data, folds, grid, options, Deadline(None, None)), saddle=True)
    return rows.make(grid.gammas.tolist(), grid.taus.tolist())


def lower_bounds_of_estimates(seeds: range) -> None:
    """Whatever the data, scale and intercept: the lower bounds of an estimated row hold."""
    for seed in seeds:
        case = random_problem(seed, rows=25, columns=6)
        standard = standardize(case.data, case.scale, case.intercept)
        grid = Grid.of(case.gammas, case.taus, case.data.p)
        state = to_end(saddle(standard, case.folds, grid)).run
        cells = state.cells
        how = case.scale, case.intercept
        low, _ = cv_intervals(case.data.X, case.data.y, case.folds.labels, case.gammas, grid.taus.tolist(), how, 0.9e-9)
        assert (state.bounds().lower * state.context.per_row <= low * (1.0 + 1e-9)).all(), seed
        assert not cells.decided.any() and np.isfinite(cells.nominal).all()
        assert not np.isfinite(cells.upper).any()


def test_lower_bounds_of_estimates() -> None:
    lower_bounds_of_estimates(range(6))


@pytest.mark.slow
def test_lower_bounds_of_estimates_at_length() -> None:
    lower_bounds_of_estimates(range(5000, 5500))


@pytest.mark.parametrize("seed", range(3))
def test_an_estimate_has_not_seen_the_rows_it_is_scored_on(seed: int) -> None:
    """Targets that change places within a fold change nothing there but the score."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 60))
    y = X[:, 0] - X[:, 1] + 2.0 * rng.normal(size=24)
    folds = make_folds("4", Dataset.from_arrays(X, y), seed)
    mixed = y.copy()
    mixed[folds.scored_rows(2)] = rng.permutation(y[folds.scored_rows(2)])
    chosen = []
    for target in (y, mixed):
        data = standardize(Dataset.from_arrays(X, target))
        cells = to_end(saddle(data, folds, Grid.of([0.1], range(1, 8), 60))).run.cells
        chosen.append([cells.pool.supports[number].tolist() for number in cells.support[0, :, 2]])
    assert chosen[0] == chosen[1]


def test_saddle_point_finds_most_optima_of_small_problems() -> None:
    found = total = 0
    for seed in range(3):
        data, folds = noisy(seed, n=30, p=8)
        standard, grid = standardize(data), Grid.of([0.1, 1.0], range(0, 9), 8)
        guess = to_end(saddle(standard, folds, grid, threads=2)).run.cells
        exact = to_end(new_run(standard, folds, grid)).run.cells
        for pair in np.ndindex(2, 9):
            for a, b in zip(guess.support[pair], exact.support[pair], strict=True):
                total += 1
                found += guess.pool.supports[a].tolist() == exact.pool.supports[b].tolist()
    assert found >= 0.97 * total


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
    assert Record.from_json(record.to_json()) == record and verify(record, data, folds).ok


def test_tau_rule() -> None:
    assert log_taus(3, 100) == (1, 2)
    assert log_taus(1, 1) == (1,)
