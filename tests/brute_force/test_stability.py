"""Instabilities, and the pair that a weight of them chooses, against enumeration of all supports."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest
from logistic_truth import fitted
from numpy.typing import NDArray
from two_class_cases import TwoClassCase, two_class_case
from zoo import RandomProblem, random_problem

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem import glm_objective
from sparsecv_mio.problem.objective import RidgeFit, fit, held_out_error, varying_columns
from sparsecv_mio.search.api import cross_validate

FloatArray = NDArray[np.float64]
INSIDE = 0.9e-9  # ties, a little inside of the engine's tolerance
TOLD_APART = 1e-10  # of two classes, whose certified objectives tell closer ones apart than squares do
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
    return cross_validate(
        case.data, case.folds, gammas=case.gammas, taus=case.taus, scale=case.scale, intercept=case.intercept,
        threads=1, stability=weight, **given,  # type: ignore[arg-type]
    )  # fmt: skip


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


def class_truth(case: TwoClassCase, gamma: float, tau: int) -> tuple[Truth, float]:
    """The same of log losses, and what rounding may do to the means."""
    data, plan, columns, doubt = case.data, case.folds, varying_columns(case.data.X).tolist(), 0.0
    how = {"scale": case.how["scale"], "intercept": case.how["intercept"], "weights": data.row_weights}
    supports = list(combinations(columns, min(tau, len(columns))))  # fewer columns are as good by rounding alone

    def every(rows: NDArray[np.int64] | None) -> list[glm_objective.GlmModel]:
        return [fitted(data.X, data.y, support, gamma, rows=rows, **how) for support in supports]

    def tied_losses(models: list[glm_objective.GlmModel], tolerance: float) -> list[FloatArray]:
        nonlocal doubt
        best = tied(models, tolerance)  # type: ignore[arg-type, type-var]
        doubt = max([doubt, *(float(one.doubt(data.X).sum()) for one in best)])
        return [one.losses(data.X, data.y, data.row_weights) for one in best]

    models = [every(None), *(every(plan.train_rows(fold)) for fold in range(plan.k))]
    total, n = Scored.of(data, plan).total, data.weight_of(slice(0, data.n)) / data.n
    both = []
    for tolerance in (TOLD_APART, OUTSIDE):
        full, *folds = [tied_losses(some, tolerance) for some in models]
        low, high = change_ends(full, folds)
        both.append((low / n, high / n))
    errors = [[float(one[plan.scored_rows(fold)].sum()) for one in tied_losses(models[fold + 1], TOLD_APART)]
              for fold in range(plan.k)]  # fmt: skip
    h = sum(map(min, errors)) / total, sum(map(max, errors)) / total
    return Truth(h, *both), 8.0 * plan.k * doubt


def check_classes(seed: int) -> tuple[bool, bool] | None:
    """One problem of two classes; None where it is refused."""
    weight = WEIGHTS[seed % 5]
    try:
        case = two_class_case(seed)
        record = case.solved(stability=weight, gap=[0.0, 1e-4, 0.3][seed // 5 % 3])
    except BadInput:
        return None
    if len(case.data.names) > 5 or not record.stability or not record.stability.chosen:
        return None
    stable, chosen = record.stability, record.stability.chosen
    for row, interval in zip(record.table, chosen.intervals, strict=True):
        one, noise = class_truth(case, row.gamma, row.tau)
        low, high = one.change
        assert interval.lower <= low * (1.0 + 1e-7) + noise, (seed, row)
        assert high <= interval.upper * (1.0 + 1e-7) + noise, (seed, row)
        criterion = [one.h[i] + weight * one.change[i] for i in (0, 1)]
        assert chosen.lower <= criterion[1] * (1.0 + 1e-7) + noise * (1.0 + weight), (seed, row)
        if (row.gamma, row.tau) == (record.gamma, record.tau):
            assert criterion[1] <= chosen.upper * (1.0 + 1e-7) + noise * (1.0 + weight), seed
            assert (
                stable.instability_lower <= high * (1.0 + 1e-7) + noise
                and stable.instability_lower <= (stable.instability) <= stable.instability_upper
            ), seed
            if not stable.estimate:
                room = 1e-6 * one.loose[1] + 4.0 * noise
                assert stable.instability_upper <= one.loose[1] + room, seed
                assert stable.instability_lower >= one.loose[0] - room, seed
    found = verify(record, case.data, case.folds)
    assert found.ok, (seed, found.failures[:2])
    return chosen.proved, stable.estimate


def test_instabilities_of_two_classes_agree_with_enumeration() -> None:
    found = [one for seed in range(8) if (one := check_classes(seed)) is not None]
    assert len(found) >= 6 and any(proved for proved, _ in found)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(12))
def test_instabilities_of_two_classes_on_300_problems(block: int) -> None:
    for seed in range(1000 + 25 * block, 1025 + 25 * block):
        check_classes(seed)
