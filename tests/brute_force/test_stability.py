"""Instabilities, and the pair that a weight of them chooses, against enumeration of all supports."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from zoo import RandomProblem, random_problem

from sparsecv_mio.certificate.records import Record
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


def check(seed: int, rows: int = 14, columns: int = 5) -> tuple[bool, bool]:
    """One problem: every interval holds the truth, decided ones are no wider than ties; the choice is the best pair."""
    case, weight = random_problem(70_000 + seed, rows=rows, columns=columns), WEIGHTS[seed % 5]
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


def test_instabilities_and_the_choice_agree_with_enumeration() -> None:
    found = [check(seed) for seed in range(24)]
    assert any(proved for proved, _ in found) and any(estimate for _, estimate in found)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(24))
def test_instabilities_and_the_choice_on_600_problems(block: int) -> None:
    for seed in range(1000 + 25 * block, 1025 + 25 * block):
        check(seed)
