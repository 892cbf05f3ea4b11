"""Instabilities, the pair that a weight of them chooses, and averaged models, against enumeration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from slow import slow
from zoo import RandomProblem, random_problem

from sparsecv_mio.certificate.records import Average, Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.problem.objective import RidgeFit, fit, held_out_error, varying_columns

FloatArray = NDArray[np.float64]
INSIDE = 0.9e-9  # ties, a little inside of the engine's tolerance
OUTSIDE = 64e-9  # what may pass for tied
WEIGHTS = (0.0, 0.1, 1.0, 10.0, 300.0)


@dataclass(frozen=True)
class Truth:
    """h and instability of a pair over its tied optima, and over all supports that may pass for tied."""

    h: tuple[float, float]
    change: tuple[float, float]
    loose: tuple[float, float]


def tied(fits: list[RidgeFit], tolerance: float) -> list[RidgeFit]:
    least = min(one.objective for one in fits)
    return [one for one in fits if one.objective <= least * (1.0 + tolerance)]


def squares(case: RandomProblem, model: RidgeFit) -> FloatArray:
    residual = model.residuals(case.data.X, case.data.y, np.arange(case.data.n)) * model.coordinates.y_unit
    return np.asarray(residual**2)


def change_ends(full: list[FloatArray], folds: list[list[FloatArray]]) -> tuple[float, float]:
    ends = []
    for model in full:
        by_fold = [[float(np.abs(other - model).mean()) for other in fold] for fold in folds]
        ends.append((max(map(min, by_fold)), max(map(max, by_fold))))
    return min(low for low, _ in ends), max(high for _, high in ends)


def truth(case: RandomProblem, gamma: float, tau: int) -> Truth:
    data, plan, columns = case.data, case.folds, varying_columns(case.data.X).tolist()
    supports = list(combinations(columns, min(tau, len(columns))))

    def every(rows: NDArray[np.int64] | None) -> list[RidgeFit]:
        how = {"scale": case.scale, "intercept": case.intercept, "rows": rows}
        return [fit(data.X, data.y, support, gamma, **how) for support in supports]  # type: ignore[arg-type]

    full, folds = every(None), [every(plan.train_rows(fold)) for fold in range(plan.k)]
    errors = [
        [held_out_error(one, data.X, data.y, plan.scored_rows(fold)) for one in tied(fits, INSIDE)]
        for fold, fits in enumerate(folds)
    ]
    found = [
        change_ends(
            [squares(case, one) for one in tied(full, tolerance)],
            [[squares(case, one) for one in tied(fits, tolerance)] for fits in folds],
        )
        for tolerance in (INSIDE, OUTSIDE)
    ]
    h = sum(map(min, errors)) / plan.scored, sum(map(max, errors)) / plan.scored
    return Truth(h, *found)


def solved(case: RandomProblem, seed: int, weight: float) -> Record:
    given = [
        {"gap": 0.0}, {"gap": 1e-4}, {"gap": 0.3}, {"method": "grid", "mio_budget": seed % 7},
        {"method": "joint", "mio_budget": seed % 5}, {"method": "algorithm1", "gap": 1e-3},
    ][seed // 5 % 6]  # fmt: skip
    return case.solve(stability=weight, **given)


def check(seed: int) -> tuple[bool, bool]:
    """One problem: every interval holds the truth, decided ones are no wider than ties; the choice is the best pair."""
    case, weight = random_problem(70_000 + seed, rows=14, columns=5), WEIGHTS[seed % 5]
    record = solved(case, seed, weight)
    assert not verify(record, case.data, case.folds).failures
    assert record.stability is not None and record.stability.chosen is not None
    stable, chosen = record.stability, record.stability.chosen
    known = {(g, t): truth(case, g, t) for g, t in product(case.gammas, case.taus)}
    level = float(np.mean((case.data.y - (0.0 if case.intercept == "none" else case.data.y.mean())) ** 2))
    noise = 1e-12 * level
    for row, interval in zip(record.table, chosen.intervals, strict=True):
        low, high = known[row.gamma, row.tau].change
        assert interval.lower <= low * (1.0 + 1e-9) + noise, (seed, row)
        assert high <= interval.upper * (1.0 + 1e-9) + noise, (seed, row)
    mine = known[record.gamma, record.tau]
    assert stable.instability_lower <= mine.change[0] * (1.0 + 1e-9) + noise
    assert mine.change[1] <= stable.instability_upper * (1.0 + 1e-9) + noise
    assert stable.instability_lower <= stable.instability <= stable.instability_upper
    if not stable.estimate:
        room = 1e-6 * mine.loose[1] + 1e-8 * level
        assert stable.instability_upper <= mine.loose[1] + room and stable.instability_lower >= mine.loose[0] - room
    lows, highs = ({pair: one.h[i] + weight * one.change[i] for pair, one in known.items()} for i in (0, 1))
    assert chosen.lower <= min(lows.values()) * (1.0 + 1e-9) + noise * (1.0 + weight)
    assert highs[record.gamma, record.tau] <= chosen.upper * (1.0 + 1e-9) + noise * (1.0 + weight)
    if chosen.proved:
        best = min(highs.values())
        room = record.request.gap * chosen.upper + chosen.allowance + 1e-9 * best + noise * (1.0 + weight)
        assert lows[record.gamma, record.tau] <= best + room
    return chosen.proved, stable.estimate


@pytest.mark.parametrize(
    "seeds", [range(14, 24), *slow([range(24), *(range(first, first + 100) for first in range(1000, 1600, 100))])]
)
def test_instabilities_and_the_choice_agree_with_enumeration(seeds: range) -> None:
    found = [check(seed) for seed in seeds]
    assert any(proved for proved, _ in found) and any(estimate for _, estimate in found)


GAMMA, SHARE = 1e-6, 0.005


def fitted(case: RandomProblem, support: Any, gamma: float, rows: Any = None, y: FloatArray | None = None) -> RidgeFit:
    data = case.data
    target = data.y if y is None else y
    return fit(data.X, target, support, gamma, scale=case.scale, intercept=case.intercept, rows=rows)


def best(case: RandomProblem, gamma: float, tau: int, rows: Any = None, y: FloatArray | None = None) -> RidgeFit:
    """The best subset of a size by trying all."""
    columns = varying_columns(case.data.X).tolist()
    every = combinations(columns, min(tau, len(columns)))
    return min((fitted(case, one, gamma, rows, y) for one in every), key=lambda model: model.objective)


def squared_errors(case: RandomProblem, gamma: float, tau: int) -> FloatArray:
    """Mean squared held-out error of every row; NaN where no fold scores it."""
    data, plan = case.data, case.folds
    total, times = np.zeros(data.n), np.zeros(data.n)
    for fold in range(plan.k):
        model, rows = best(case, gamma, tau, plan.train_rows(fold)), plan.scored_rows(fold)
        total[rows] += np.array([held_out_error(model, data.X, data.y, rows[i : i + 1]) for i in range(len(rows))])
        times[rows] += 1.0
    with np.errstate(invalid="ignore"):
        return total / times


def all_pairs(case: RandomProblem, record: Record) -> list[tuple[float, int]]:
    """Pairs of the table, and those of all columns."""
    pairs = [(row.gamma, row.tau) for row in record.table]
    every = len(varying_columns(case.data.X))
    if every > max(record.request.taus):
        pairs += [(gamma, every) for gamma in sorted({gamma for gamma, _ in pairs})]
    return pairs


def plain_weights(case: RandomProblem, record: Record) -> FloatArray:
    """Weights of all pairs, each row as often as it is scored."""
    pairs, every = all_pairs(case, record), len(varying_columns(case.data.X))
    unit = float(np.var(case.data.y))  # the squares of squares overflow where targets are huge
    errors = {pair: squared_errors(case, *pair) / unit for pair in pairs}
    times = np.bincount(case.folds.all_scored, minlength=case.data.n)
    seen = times > 0
    least, counts = errors[record.gamma, record.tau][seen], times[seen] / times.sum()
    n, z = int(seen.sum()), []
    for pair in pairs:
        d = errors[pair][seen] - least
        mean = float(d @ counts)
        se = math.sqrt(float((counts * (d - mean)) @ (counts * (d - mean))) * n / max(n - 1, 1))
        z.append(0.0 if mean <= 1e-9 * float(least @ counts) else mean / se if se > 0.0 else math.inf)
    weight = np.array([math.exp(-one - one * one) for one in z])
    weight[weight < 0.02 * weight.max()] = 0.0
    models = [(gamma, min(tau, every)) for gamma, tau in pairs]  # larger taus have no more columns: one model
    weight[[models.index(one) < i for i, one in enumerate(models)]] = 0.0
    weight /= weight.sum()
    target, most = np.zeros(case.data.n), min(max(record.request.taus), every)
    for (gamma, tau), share in zip(pairs, weight.tolist(), strict=True):
        target += share * best(case, gamma, tau).predict(case.data.X) if share else 0.0
    if best(case, GAMMA, most, y=target).objective / case.data.n > SHARE * record.cv_error:
        weight[len(record.table) :] = 0.0  # no size is near the average with fits of all columns
    return np.asarray(weight / weight.sum())


def unclear(case: RandomProblem, record: Record) -> bool:
    """Whether ties or fits that are next to perfect leave several right answers."""
    tied = any(row.upper - row.lower > 1e-10 * row.upper for row in record.table)
    largest = np.abs(case.data.X).max(axis=0)
    for gamma, tau in all_pairs(case, record):  # floats have no digits of what all but dependent columns predict
        model = best(case, gamma, tau)
        tied |= float(largest[list(model.support)] @ np.abs(model.beta)) > 1e8 * float(np.std(case.data.y))
    return tied or record.cv_error < 1e-12 * float(np.var(case.data.y)) or record.status != "proved"


def check_average(case: RandomProblem, record: Record, average: Average) -> None:
    weights = plain_weights(case, record)
    said = np.array([pair.weight for pair in average.pairs])
    assert said == pytest.approx(weights, rel=1e-4, abs=1e-7)
    target = np.zeros(case.data.n)
    for pair in average.used:
        assert pair.fit is not None and not pair.estimate
        columns = [case.data.names.index(name) for name in average.supports[pair.fit]]
        model, least = fitted(case, columns, pair.gamma), best(case, pair.gamma, pair.tau)
        assert model.objective == pytest.approx(least.objective, rel=1e-7, abs=1e-20 * float(np.var(case.data.y)))
        target += pair.weight * model.predict(case.data.X)  # of several best ones that one
    allowed, n = SHARE * record.cv_error, case.data.n
    found = average.model
    least = best(case, GAMMA, found.tau, y=target)
    negligible = 1e-10 * float(target @ target) + 1e-25 * float(case.data.y @ case.data.y)
    assert found.proved or found.objective < negligible
    assert found.objective == pytest.approx(least.objective, rel=1e-6, abs=negligible)
    most = min(max(record.request.taus), len(varying_columns(case.data.X)))
    assert least.objective / n <= allowed * (1.0 + 1e-6) or found.tau == most
    if found.tau > 0:
        fewer = best(case, GAMMA, found.tau - 1, y=target).objective
        assert fewer / n > allowed * (1.0 - 1e-6)
        assert average.fewer is not None and average.fewer <= fewer * (1.0 + 1e-9)


@pytest.mark.parametrize("block", [0, *slow(range(1, 10))])
def test_average_is_that_of_a_plain_implementation(block: int) -> None:
    """Weights, average and best subset, on 12 random problems (slow: 50) of many kinds."""
    compared, most = 0, 50 if block else 12
    for seed in range(100 * block, 100 * block + 100):
        case = random_problem(seed, 16, 6)
        record = case.solve(gap=0.0, model="average")
        assert record.average is not None, record.warnings
        report = verify(record, case.data, case.folds)
        assert report.ok, (seed, report.failures[:3])
        if not unclear(case, record):
            compared += 1
            check_average(case, record, record.average)
        if compared == most:
            break
    assert compared == most
