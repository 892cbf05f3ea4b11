"""The gamma step, coordinate descent, and the optimum over an interval of gamma, against enumeration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from every_gamma import EveryGamma
from runs import to_end
from slow import slow
from truth import Truth
from zoo import RandomProblem, random_problem

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.model_space import log_taus
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.every_gamma.descent import LEAST_GAMMA, MOST_GAMMA, GammaCurve, gamma_proposals
from sparsecv_mio.units import TIE_RTOL

WIDER_TIES = 1.1e-9  # a little outside of the engine's tolerance


def noisy(seed: int) -> RandomProblem:
    """Correlated columns and much noise: gamma matters."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6)) + 1.5 * rng.normal(size=(40, 1))
    y = X @ np.round(2.0 * rng.normal(size=6)) + rng.uniform(2.0, 12.0) * rng.normal(size=40)
    data = Dataset.from_arrays(X, y)
    folds = make_folds(("5", "loo", "blocks:7")[seed % 3], data, seed)
    return RandomProblem(data, folds, [1e-3, 0.1, 10.0], list(range(7)), "length", "fold")


@pytest.mark.parametrize("seed", range(15))
def test_curve_is_the_definition(seed: int) -> None:
    case = random_problem(seed, rows=25, columns=6)
    data = standardize(case.data, case.scale, case.intercept)
    rng = np.random.default_rng(seed)
    supports = [rng.choice(data.q, size=rng.integers(0, data.q + 1), replace=False) for _ in range(case.folds.k)]
    curve = GammaCurve(data, case.folds, supports)
    scored = int((case.folds.labels >= 0).sum())
    named = [data.columns[np.sort(s)].tolist() for s in supports]
    for gamma in (0.05, 3.0):
        exact, how = 0.0, {"scale": case.scale, "intercept": case.intercept}
        for fold, support in enumerate(named):
            model = fit(case.data.X, case.data.y, support, gamma, rows=case.folds.train_rows(fold), **how)
            exact += held_out_error(model, case.data.X, case.data.y, case.folds.scored_rows(fold)) / scored
        value, slope = curve.evaluate(gamma)
        assert value * data.y_unit**2 / scored == pytest.approx(exact, rel=1e-6)
        up, down = curve.evaluate(gamma * np.exp(1e-4)), curve.evaluate(gamma * np.exp(-1e-4))
        size = 1e-6 * value + 1e-300
        assert slope == pytest.approx((up[0] - down[0]) / 2e-4, rel=1e-5, abs=size)


@pytest.mark.parametrize("seed", range(15))
def test_minima_are_the_best_of_a_dense_grid(seed: int) -> None:
    case, rng = noisy(seed), np.random.default_rng(seed)
    supports = [np.sort(rng.choice(6, size=3, replace=False)) for _ in range(case.folds.k)]
    curve = GammaCurve(standardize(case.data), case.folds, supports)
    points = curve.minima(0.3)
    dense = [curve.evaluate(float(gamma))[0] for gamma in np.geomspace(LEAST_GAMMA, MOST_GAMMA, 400)]
    assert points[0].total <= min(dense) * (1.0 + 1e-12)
    for point in points:
        assert LEAST_GAMMA <= point.gamma <= MOST_GAMMA
        value, slope = curve.evaluate(point.gamma)
        at_end = slope > 0.0 and point.gamma == LEAST_GAMMA or slope < 0.0 and point.gamma == MOST_GAMMA
        assert at_end or abs(slope) <= 1e-8 * value


def check_the_end(case: RandomProblem) -> Record:
    """A descent falls with every move it takes, and no single move of tau or gamma improves its end."""
    gammas, record, truth = case.gammas, case.solve(gap=0.0, method="descent"), Truth(case)
    taken = [step for step in record.descent if step.accepted]
    assert taken[0].move == "start" and taken[0].gamma == gammas[len(gammas) // 2]
    assert all(b.upper < a.upper for a, b in zip(taken, taken[1:], strict=False))
    assert (taken[-1].gamma, taken[-1].tau) == (record.gamma, record.tau)
    assert taken[-1].upper == pytest.approx(record.upper, rel=1e-13)  # bounds of the record are rounded outward
    assert all(step.upper >= record.upper * (1.0 - TIE_RTOL) for step in record.descent)
    if record.status != "proved":
        return record
    # tau: every size at the same gamma; gamma: every one of the grid at the same size, by enumeration
    rounding = 1e-9 * record.upper + record.allowance
    for gamma, tau in (*((record.gamma, tau) for tau in case.taus), *((gamma, record.tau) for gamma in gammas)):
        ends = [
            np.ldexp(1.0, rows.exponent) ** 2 * rows.optima(gamma, tau).interval(WIDER_TIES, -1.0)[1]
            for rows in map(truth.rows, range(case.folds.k))
        ]
        assert sum(ends) / case.folds.scored >= record.upper * (1.0 - TIE_RTOL) - rounding, (gamma, tau)
    # the gamma step: wherever the fixed supports do better, the supports that belong there do not
    state = to_end(replace(case, gammas=[record.gamma]).new_run()).state
    for point in gamma_proposals(state, state.bounds().best, (gammas[0], gammas[-1])):
        moved = case.solve(gammas=[point.gamma], taus=[record.tau], gap=0.0)
        assert moved.upper >= record.upper * (1.0 - 2.0 * TIE_RTOL)
    return record


@pytest.mark.parametrize("seed", [*range(3), *slow(range(3, 6))])
def test_no_single_move_improves_the_end_of_a_descent(seed: int) -> None:
    record = check_the_end(noisy(seed))
    assert record.status == "proved"
    assert [step.move for step in record.descent][-1] in ("line", "gamma")
    solved = [step.gamma for step in record.descent if step.move != "line"]
    assert len(set(solved)) == len(solved)


@pytest.mark.parametrize(
    ("seeds", "rows", "columns", "least"),
    [(range(6), 25, 6, 5), *slow([(range(12), 25, 6, 10), (range(5000, 5500), 30, 7, 450)])],
)
def test_ends_of_random_descents(seeds: range, rows: int, columns: int, least: int) -> None:
    proved = 0
    for seed in seeds:
        case = random_problem(seed, rows=rows, columns=columns)
        case = case if len(case.gammas) > 1 else replace(case, gammas=[1e-3, 0.1, 10.0])
        proved += check_the_end(case).status == "proved"
    assert proved >= least


@pytest.mark.parametrize("seed", [0, *slow([1, 2])])
def test_refined_is_apart_and_never_worse(seed: int) -> None:
    case = replace(noisy(seed), gammas=[0.01, 0.1, 1.0], taus=list(range(1, 7)))
    plain, record = (case.solve(gap=0.0, refine=refine) for refine in (False, True))
    assert (record.gamma, record.tau, record.lower, record.upper) == (plain.gamma, plain.tau, plain.lower, plain.upper)
    better = record.refined
    assert plain.refined is None and better is not None
    assert better.tau == record.tau and better.upper <= record.upper
    at = case.solve(gammas=[better.gamma], taus=[better.tau], gap=0.0)
    assert at.cv_error == pytest.approx(better.cv_error, rel=1e-9)
    assert better.lower * (1.0 - 1e-12) <= at.cv_error <= better.upper * (1.0 + 1e-12)
    assert Record.from_json(record.to_json()) == record and verify(record, case.data, case.folds).ok


def test_tau_rule() -> None:
    assert log_taus(3, 100) == (1, 2)
    assert log_taus(1, 1) == (1,)


LOW, HIGH, GAP = 1e-3, 10.0, 1e-4
QUICK, SLOW = 4, 1000


def problem(seed: int) -> tuple[FloatArray, FloatArray, str]:
    """Random rows, a target and a word for the folds: correlated or not, noisy or not, ties and copies among them."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(8, 31)), int(rng.integers(1, 9))
    X = rng.normal(size=(n, p)) + rng.choice([0.0, 0.5, 3.0]) * rng.normal(size=(n, 1))
    kind = rng.integers(4)
    if kind == 1:
        X = np.round(X)
    if kind == 2 and p > 1:
        X[:, p - 1] = X[:, 0] + rng.choice([0.0, 0.1]) * rng.normal(size=n)
    X[:2] += np.array([[1.0], [-1.0]])  # no column is constant
    beta = rng.normal(size=p) * (rng.random(p) < 0.6)
    y = X @ beta + rng.choice([0.1, 1.0, 5.0]) * rng.normal(size=n)
    return X, y, str(rng.choice(["loo", "3", "5", "blocks:4"]))


def check(seed: int) -> None:
    X, y, spec = problem(seed)
    data = Dataset.from_arrays(X, y)
    folds = make_folds(spec, data, seed)
    taus = list(range(1, X.shape[1] + 1))
    record = cross_validate(data, folds, gammas=f"{LOW}..{HIGH}", taus=taus, gap=GAP)
    truth = EveryGamma(X, y, folds, taus)
    least = truth.least(LOW, HIGH)
    assert record.continuous is not None
    assert record.lower <= least * (1.0 + 1e-9), (seed, "lower", record.lower, least)
    assert record.status == "proved", (seed, record.status)
    assert record.gap <= GAP * (1.0 + 1e-9) + record.tie_width / record.upper, (seed, "gap", record.gap)
    at = truth.h(np.array([record.gamma]), worst=True)[taus.index(record.tau), 0]
    assert at <= record.upper * (1.0 + 1e-7), (seed, "upper", record.upper, at)
    pieces = {tau: [piece for piece in record.continuous.pieces if piece.tau == tau] for tau in taus}
    for t, tau in enumerate(taus):
        assert pieces[tau][0].low == LOW and pieces[tau][-1].high == HIGH
        inside = np.array([np.sqrt(piece.low * piece.high) for piece in pieces[tau]])
        for piece, h in zip(pieces[tau], truth.h(inside)[t], strict=True):
            assert piece.lower <= h * (1.0 + 1e-9), (seed, tau, piece, h)


@pytest.mark.parametrize(  # 30: two copies, of which lists need the last digits
    "seed",
    [*range(QUICK), 30, *slow(sorted({*range(QUICK, SLOW)} - {30}))],
)
def test_the_optimum_over_an_interval_is_that_of_enumeration(seed: int) -> None:
    check(seed)


def test_what_rounding_leaves_open_ends_and_is_said() -> None:
    """Columns of 1e150 beside others: no bound, no end without a cap, and no noise of numpy."""
    case = random_problem(2, rows=30, columns=6)
    record = case.solve(gammas=f"{LOW}..{HIGH}", taus=range(1, case.data.p + 1))
    assert record.status == "limit" and record.lower == 0.0
    assert record.warnings[-1].startswith("ties or rounding errors exceed the gap: at tau = ")
