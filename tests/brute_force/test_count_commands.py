"""What other commands say of counts against an enumeration: near lists, common subsets, stability, nested, bounds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from count_cases import CountCase, count_case
from logistic_truth import least, long_losses

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.bounds.smooth_cv_error import bound_smooth_cv_errors
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.counts import check_training_counts
from sparsecv_mio.data.folds import inner_folds, outer_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.near.near_optimal import near_optimal
from sparsecv_mio.problem.glm_objective import fit_of_data
from sparsecv_mio.problem.objective import varying_columns
from sparsecv_mio.search.api import nested_cross_validate
from sparsecv_mio.search.options import Hooks, SearchOptions
from sparsecv_mio.targets import Loss

ROUNDING = 1e-7  # of a value
WITHIN = 0.05


def drawn(seed: int, most: int = 4) -> CountCase | None:
    """A case whose training rows all have a count above 0."""
    case = count_case(seed, most)
    try:
        check_training_counts(case.data, case.folds, case.how["intercept"])
    except BadInput:
        return None
    return case


class Truth:
    """Values of every support of a case by its own Newton."""

    def __init__(self, case: CountCase) -> None:
        self.case, self.data = case, case.data
        self.columns = varying_columns(case.data.X).tolist()
        self.total = sum(case.data.weight_of(case.folds.scored_rows(fold)) for fold in range(case.folds.k))
        self.objective, self.common = cache(self._objective), cache(self._common)

    def supports(self, size: int) -> list[tuple[int, ...]]:
        return list(combinations(self.columns, min(size, len(self.columns))))

    def _objective(self, S: tuple[int, ...], gamma: float) -> float:
        problem = self.case.problem(np.arange(self.data.n), gamma)
        return float(least(problem.select_columns(np.array(S, dtype=np.int64))).value)

    def _common(self, S: tuple[int, ...], gamma: float) -> float:
        """CV error of a support that every fold has, the middle of what its own Newton leaves open."""
        case, columns, loss = self.case, np.array(S, dtype=np.int64), 0.0
        for fold in range(case.folds.k):
            problem, out = (
                case.problem(case.folds.train_rows(fold), gamma).select_columns(columns),
                case.folds.scored_rows(fold),
            )
            y, v = case._outside(out)
            low, high = long_losses(problem, least(problem), self.data.X[np.ix_(out, columns)], y)
            loss += 0.5 * float(v @ low + v @ high)
        return loss / self.total


def check_near(seed: int, by: str) -> bool:
    """Every support within the share is listed, no other, each with its value."""
    case = drawn(seed)
    sizes = [] if case is None else [tau for tau in case.taus if tau > 0]
    if case is None or not sizes:
        return False
    truth, gamma = Truth(case), max(case.gammas)
    how = {name: case.how[name] for name in ("scale", "intercept")}
    record = near_optimal(
        case.data, case.folds, gamma=gamma, taus=sizes, within=WITHIN, by=by, loss="poisson",
        exposure=case.data.exposure, time_limit=30.0, **how,
    )  # fmt: skip
    found = verify(record, case.data)
    assert found.ok, (seed, found.failures[:2])
    if record.status != "proved":
        return False
    value = truth.objective if by == "objective" else truth.common
    for size in record.sizes:
        values = {S: value(S, gamma) for S in truth.supports(size.tau)}
        best = min(values.values())
        listed = {
            tuple(sorted(case.data.names.index(name) for name in model.support)): model.value
            for model in record.models
            if model.tau == size.tau
        }
        for S, known in values.items():
            room = ROUNDING * known + 1e-12
            if known < best * (1.0 + WITHIN) - room:
                assert S in listed, (seed, by, S, known, best)
            if S in listed:
                assert abs(listed[S] - known) <= room, (seed, by, S, known, listed[S])
                assert known <= best * (1.0 + WITHIN) + room, (seed, by, S, known, best)
        assert set(listed) <= set(values)
    return True


def check_common(seed: int) -> bool:
    """The interval of the least CV error of one subset for all folds holds it, and the reported one has it."""
    case = drawn(seed)
    taus = [] if case is None else [tau for tau in case.taus if tau > 0]
    if case is None or not taus:
        return False
    truth = Truth(case)
    record = best_common_subset(
        case.data, case.folds, gammas=case.gammas, taus=taus, loss="poisson", exposure=case.data.exposure,
        time_limit=30.0, **case.how,
    )  # fmt: skip
    found = verify(record, case.data)
    assert found.ok, (seed, found.failures[:2])
    values = {(S, g): truth.common(S, g) for g in case.gammas for tau in taus for S in truth.supports(tau)}
    best = min(values.values())
    assert record.lower <= best * (1.0 + ROUNDING) and record.upper >= best * (1.0 - ROUNDING), (seed, best)
    S = tuple(sorted(case.data.names.index(name) for name in record.support))
    assert values[S, record.gamma] == pytest.approx(record.cv_error, rel=ROUNDING)
    return record.status == "proved"


def check_stability(seed: int) -> bool:
    """The interval of the instability holds that of every pair of optima, and the pair that is chosen is the best."""
    case = drawn(seed)
    if case is None:
        return False
    weight = 0.5
    record = case.solved(stability=weight, time_limit=30.0)
    found = verify(record, case.data)
    assert found.ok, (seed, found.failures[:2])
    if record.status != "proved" or record.stability is None or record.stability.chosen is None:
        return False
    truth, plan, data = Truth(case), case.folds, case.data
    how = {name: case.how[name] for name in ("scale", "intercept")}

    def losses(gamma: float, tau: int, rows: Any) -> list[FloatArray]:
        models = [fit_of_data(data, Loss.POISSON, S, gamma, rows=rows, **how) for S in truth.supports(tau)]
        least_one = min(model.objective for model in models)
        return [
            model.compute_row_losses(data, slice(0, data.n))[0]
            for model in models
            if model.objective <= least_one * (1.0 + 1e-9)
        ]

    def instability(gamma: float, tau: int) -> tuple[float, float]:
        ends = []
        for full in losses(gamma, tau, None):
            changes = [
                [float(np.abs(one - full).sum()) for one in losses(gamma, tau, plan.train_rows(fold))]
                for fold in range(plan.k)
            ]
            ends.append((max(min(some) for some in changes), max(max(some) for some in changes)))
        total = data.weight_of(slice(0, data.n))
        return min(low for low, _ in ends) / total, max(high for _, high in ends) / total

    low, high = instability(record.gamma, record.tau)
    stable = record.stability
    room = 1e-6 * high + 1e-9
    assert stable.instability_lower <= low + room and stable.instability_upper >= high - room, (seed, low, high)
    criteria = []
    for row in record.table:
        ends = instability(row.gamma, row.tau)
        criteria.append(case.truth(row.gamma, row.tau)[1] + weight * ends[1])
        if (row.gamma, row.tau) == (record.gamma, record.tau):
            own = case.truth(row.gamma, row.tau)[0] + weight * ends[0]
    if stable.chosen is not None and stable.chosen.proved:
        assert own <= min(criteria) * (1.0 + 1e-6) + 1e-9, (seed, own, min(criteria))
    return True


def check_nested(seed: int) -> bool:
    """Without each outer fold the reported pair is the best of its rows, and its fit scores the fold."""
    case = drawn(seed)
    if case is None:
        return False
    options = SearchOptions.of(loss="poisson", exposure=case.data.exposure, threads=1, time_limit=60.0, **case.how)
    try:
        outer = outer_folds(3, case.folds, case.data)
        record = nested_cross_validate(case.data, case.folds, 3, case.gammas, case.taus, options, Hooks())
    except BadInput:
        return False
    found = verify(record, case.data)
    assert found.ok, (seed, found.failures[:2])
    if record.nested is None or len(record.nested.folds) < 3:
        return False
    for one in record.nested.folds:
        rows = outer.train_rows(one.fold)
        training = case.data.take(rows)
        inside = replace(case, data=training, folds=inner_folds(case.folds, rows, training))
        least_high = min(inside.truth(gamma, tau)[1] for gamma in case.gammas for tau in case.taus)
        if one.status == "proved":
            assert one.cv_error <= least_high * (1.0 + ROUNDING) + 1e-12, (seed, one.cv_error, least_high)
        columns = np.array(sorted(case.data.names.index(name) for name in one.support), dtype=np.int64)
        problem, out = (
            inside.problem(np.arange(training.n), one.gamma).select_columns(columns),
            outer.scored_rows(one.fold),
        )
        y, v = case._outside(out)
        ends = [float(v @ e) for e in long_losses(problem, least(problem), case.data.X[np.ix_(out, columns)], y)]
        total = case.data.weight_of(out)
        assert ends[0] * (1 - ROUNDING) <= one.error * total <= ends[1] * (1 + ROUNDING) + 1e-12, (seed, one, ends)
    return True


def check_bounds(seed: int) -> bool:
    """Intervals without branching hold the truth."""
    case = drawn(seed)
    if case is None:
        return False
    data = standardize(case.data, case.how["scale"], case.how["intercept"], loss=Loss.POISSON)
    table = bound_smooth_cv_errors(data, case.folds, case.gammas, case.taus)
    for g, gamma in enumerate(case.gammas):
        for t, tau in enumerate(case.taus):
            low, high = case.truth(gamma, tau)
            ends = table.cv_interval(g, t)
            assert ends.lower <= high * (1.0 + ROUNDING) and ends.upper >= low * (1.0 - ROUNDING), (seed, gamma, tau)
    return True


CHECKS = {
    "near": lambda seed: check_near(seed, "objective"), "near by cv": lambda seed: check_near(seed, "cv"),
    "common": check_common, "stability": check_stability, "nested": check_nested, "bounds": check_bounds,
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_what_is_said_of_counts_holds(name: str) -> None:
    seeds = 3 if name in ("nested", "stability") else 6
    assert sum(CHECKS[name](seed) for seed in range(seeds)) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("first", range(100, 500, 50))
def test_hundreds_of_answers_about_counts(name: str, first: int) -> None:
    assert sum(CHECKS[name](seed) for seed in range(first, first + 50)) > 10
