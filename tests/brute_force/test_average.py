"""The averaged model against a plain implementation: weights from refits, and every subset of every size tried."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from zoo import RandomProblem, random_problem

from sparsecv_mio.certificate.records import Average, Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.problem.objective import RidgeFit, fit, held_out_error, varying_columns

FloatArray = NDArray[np.float64]
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


def squares(case: RandomProblem, gamma: float, tau: int) -> FloatArray:
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
    errors = {pair: squares(case, *pair) / unit for pair in pairs}
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


def check(case: RandomProblem, record: Record, average: Average) -> None:
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


@pytest.mark.parametrize("block", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 10))])
def test_average_is_that_of_a_plain_implementation(block: int) -> None:
    """Weights, average and best subset, on 25 random problems (slow: 50) of many kinds."""
    compared, most = 0, 50 if block else 25
    for seed in range(100 * block, 100 * block + 100):
        case = random_problem(seed, 16, 6)
        record = case.solve(gap=0.0, model="average")
        assert record.average is not None, record.warnings
        report = verify(record, case.data, case.folds)
        assert report.ok, (seed, report.failures[:3])
        if not unclear(case, record):
            compared += 1
            check(case, record, record.average)
        if compared == most:
            break
    assert compared == most
