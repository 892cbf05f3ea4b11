"""Near-optimal lists and common subsets against enumeration: every support fitted by the definition, in every fold."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from itertools import combinations, count
from typing import Any

import numpy as np
import pytest
from exact import ExactProblem
from slow import slow
from zoo import RandomProblem, forced_problem, random_problem

from sparsecv_mio.certificate.fit_records import CommonRecord, NearRecord
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.loss_targets import as_counts
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted, weighted_rows
from sparsecv_mio.fits.fit_options import NearOptions
from sparsecv_mio.model_space import NONE
from sparsecv_mio.near import collecting
from sparsecv_mio.near import near_optimal as near_optimal_module
from sparsecv_mio.near.collecting import Branch, CommonError, FoldRows, all_rows, branch_part
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.near.near_optimal import NO_CV_ERRORS, NearBest, NearSearch, near_optimal
from sparsecv_mio.problem.glm_objective import fit_of_data
from sparsecv_mio.problem.objective import fit, held_out_error, varying_columns
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments

RTOL = 1e-7  # of a value, beside the rounding of residuals against the targets


@dataclass(frozen=True)
class Truth:
    """Values of all supports of one size at one gamma, by their features, and what rounding may do to them."""

    values: dict[tuple[str, ...], float]
    slack: float


def whole_problem(seed: int) -> RandomProblem:
    """A random problem whose folds hold out every row equally often; rows with weights now and then."""
    case = forced_problem(seed, 24, 7)
    rng = np.random.default_rng([31, seed])
    data = case.data
    if rng.random() < 0.25:
        data = weighted_rows(data, rng.choice([0.25, 1.0, 2.0, 3.5], size=data.n), "w")
    k = int(rng.integers(2, min(data.n, 8) + 1))
    spec = str(rng.choice(["loo", "loo", str(k), f"2x{k}"]))
    gammas = (10.0 ** rng.uniform(-3.0, 1.5, size=int(rng.integers(1, 4)))).tolist()
    return replace(case, data=data, folds=make_folds(spec, data, seed), gammas=sorted(gammas))


def truth_of(case: RandomProblem, gamma: float, tau: int, by: str) -> Truth:
    data, names = case.data, case.data.names
    X, y, weights = data.X, data.y, data.row_weights
    free = [j for j in varying_columns(X).tolist() if names[j] not in case.restrictions.force_out]
    forced = [j for j in free if names[j] in case.restrictions.force_in]
    size = min(tau, len(free))
    how = {"scale": case.scale, "intercept": case.intercept, "weights": weights}
    values = {}
    for rest in combinations([j for j in free if j not in forced], size - len(forced)):
        support = sorted([*forced, *rest])
        if by == "objective":
            value = fit(X, y, support, gamma, **how).objective
        else:
            value = 0.0
            for fold in range(case.folds.k):
                model = fit(X, y, support, gamma, rows=case.folds.train_rows(fold), **how)
                value += held_out_error(model, X, y, case.folds.scored_rows(fold), weights)
            scored = case.folds.order[: case.folds.scored]
            value /= len(scored) if weights is None else float(weights[scored].sum())
        values[tuple(names[j] for j in support)] = value
    n = 1.0 if by == "cv" else float(data.n)
    least = min(values.values())
    size_of = float(np.ptp(y) if case.intercept != "none" else np.abs(y).max())
    noise = 1e-12 * size_of * np.sqrt(n)
    return Truth(values, RTOL * least + noise * (2.0 * np.sqrt(least) + noise))


def check_near(seed: int) -> int:
    """Compare the lists of a problem with all supports; how many models they hold."""
    case = whole_problem(seed)
    rng = np.random.default_rng([32, seed])
    by, within = str(rng.choice(["cv", "objective"])), float(rng.choice([0.0, 0.01, 0.1, 1.0, 20.0]))
    most = None if rng.random() < 0.6 else int(rng.integers(1, 12))
    gamma = case.gammas[0]
    asked = {"gamma": gamma, "taus": case.taus, "by": by, "within": within, "most": most}
    record = near_optimal(case.data, case.folds, **asked, **case.how)
    unsure = NO_CV_ERRORS in record.warnings
    assert record.status == ("limit" if unsure else "proved"), seed
    for size in record.sizes:
        truth = truth_of(case, gamma, size.tau, by)
        listed = {model.support: model.value for model in record.models if model.tau == size.tau}
        least, slack = min(truth.values.values()), truth.slack * (2.0 + within)
        if unsure and not size.complete:
            assert size.lower <= least + slack and not size.always + size.never, seed
            continue
        assert abs(size.best - least) <= slack and size.lower <= least + slack, seed
        assert abs(size.threshold - (1.0 + within) * least) <= slack * (1.0 + within), seed
        assert set(listed) <= set(truth.values) and len(listed) == size.models, seed
        for support, value in listed.items():
            own = slack * max(1.0, truth.values[support] / max(least, 1e-300))
            assert abs(value - truth.values[support]) <= own, (seed, support)
            assert value <= size.threshold + slack, seed
        assert size.complete or (most is not None and size.models == most), seed
        missing = [s for s, v in truth.values.items() if v < size.complete_to - slack and s not in listed]
        assert not missing, (seed, missing)
        certain = [s for s, v in listed.items() if size.complete or v < size.complete_to]
        every = set(case.data.names) - set(case.restrictions.force_out)
        assert not certain or set(size.always) == set.intersection(*map(set, certain)), seed
        assert not certain or not set(size.never) & set().union(*certain), seed
        assert set(size.never) <= every, seed
    if seed % 5 == 0:
        assert NearRecord.from_json(record.to_json()) == record
        report = verify(record, case.data, case.folds)
        assert report.ok, (seed, report.failures)
    return len(record.models)


def check_common(seed: int) -> float:
    """Compare the best common subset of a problem with all supports at all gammas; the gap that was reached."""
    case = whole_problem(10_000 + seed)
    gap = float(np.random.default_rng([33, seed]).choice([0.0, 1e-4, 0.01]))
    record = best_common_subset(case.data, case.folds, gammas=case.gammas, taus=case.taus, gap=gap, **case.how)
    unsure = NO_CV_ERRORS in record.warnings
    assert record.status == "proved" or unsure, seed
    least = np.inf
    for row in record.table:
        truth = truth_of(case, row.gamma, row.tau, "cv")
        mine, slack = min(truth.values.values()), truth.slack
        least = min(least, mine)
        assert row.lower <= mine + slack, (seed, row, mine)
        own = slack * max(1.0, row.cv_error / max(mine, 1e-300))
        assert unsure or abs(row.cv_error - truth.values[row.support]) <= own, (seed, row)
    assert record.lower <= least + slack and least <= record.upper + slack, seed
    assert unsure or record.cv_error <= least * (1.0 + gap / (1.0 - gap)) + 2.0 * slack, seed
    if seed % 5 == 0:
        assert CommonRecord.from_json(record.to_json()) == record
        report = verify(record, case.data, case.folds)
        assert report.ok, (seed, report.failures)
    return record.gap


@pytest.mark.parametrize("seeds", [range(10), *slow(range(first, first + 100) for first in range(0, 1000, 100))])
def test_lists_are_those_of_enumeration(seeds: range) -> None:
    assert sum(check_near(seed) for seed in seeds) > 2 * len(seeds)  # models: the lists are not all of one


def test_lists_of_nearly_perfect_fits_pass_verify() -> None:
    one = random_problem(90007, rows=24, columns=7)  # 1e-9 of the targets' squares is left, 10 digits lost by moments
    record = near_optimal(one.data, one.folds, gamma=one.gammas[0], taus=5, by="objective", within=0.0, **one.how)
    assert verify(record, one.data, one.folds).ok


@pytest.mark.parametrize("seeds", [range(8), *slow(range(first, first + 100) for first in range(0, 500, 100))])
def test_common_subsets_are_those_of_enumeration(seeds: range) -> None:
    for seed in seeds:
        check_common(seed)


def check_parts(seed: int) -> int:
    """The problems of a branch are below the values of all its supports; how many were compared."""
    case = whole_problem(20_000 + seed)
    data = standardize(case.data, case.scale, case.intercept, NONE)
    problem = all_rows(data, "a test").with_gamma(case.gammas[0])
    criterion = CommonError(FoldRows(data, case.folds, problem), problem, data.q)
    order = np.random.default_rng([34, seed]).permutation(data.q)
    cuts = np.sort(np.random.default_rng([35, seed]).integers(0, data.q + 1, size=2))
    inside, outside, free = (np.sort(some) for some in np.split(order, cuts))
    branch, compared = Branch(inside, outside), 0
    for part in (branch_part(criterion.below, branch, criterion.folds.residual_rate), criterion.weighted(branch)):
        for size in range(len(free) + 1) if part is not None else ():
            for rest in combinations(free.tolist(), size):
                support = np.sort(np.append(inside, np.array(rest, dtype=np.int64)))
                (value,), (error,) = criterion.values([support])
                fitted = fit_from_moments(part.problem, [np.searchsorted(part.columns, support)])
                f, blur = float(fitted.value[0]), float(fitted.value_error[0])
                if np.isfinite(error + blur):
                    room = error * part.rate + blur + 1e-9 * part.problem.size
                    assert f <= part.rate * value + part.offset + room, (seed, branch, support)
                    compared += 1
    return compared


def test_the_problems_of_branches_are_below_their_supports() -> None:
    assert sum(check_parts(seed) for seed in range(100)) > 500


def test_branches_that_are_split_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PATH_SLICE", 1), ("STEP_NODES", 2), ("LEAST_SPLIT", 0)):
        monkeypatch.setattr(collecting, name, value)
    for seed in range(40, 56):
        check_near(seed)
        check_common(seed)


def test_a_limit_leaves_bounds_that_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PATH_SLICE", 1), ("STEP_NODES", 2), ("LEAST_SPLIT", 0)):
        monkeypatch.setattr(collecting, name, value)
    cut = 0
    for seed in range(16):
        case = whole_problem(30_000 + seed)
        data = standardize(case.data, case.scale, case.intercept, case.restrictions)
        problem = all_rows(data, "a test").with_gamma(case.gammas[0])
        criterion = CommonError(FoldRows(data, case.folds, problem), problem, data.q)
        tau = min(case.taus[len(case.taus) // 2], data.q)
        holder, looks = NearBest([tau], 0.3, None), count()
        collection = collecting.Collection(criterion, holder, lambda looks=looks, seed=seed: next(looks) > seed % 3)
        collection.run()
        cut += not collection.finished
        found = holder.result(tau, collection.unseen(tau))
        truth, unit = truth_of(case, case.gammas[0], tau, "cv"), criterion.folds.unit
        listed = {frozenset(data.names[j] for j in one.support.tolist()) for one in found.models}
        assert found.lower * unit <= min(truth.values.values()) + truth.slack, seed
        missing = [s for s, v in truth.values.items() if v < found.complete_to * unit - 2.0 * truth.slack]
        assert all(frozenset(s) in listed for s in missing), seed
    assert cut > 4


@pytest.mark.parametrize("by", ["cv", "objective"])
def test_rows_of_weight_zero_and_folds_are_given_to_verify(by: str) -> None:
    """Folds of all rows or of those that count, though a list by the objective needs none."""
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(16, 4)), rng.integers(0, 3, 16).astype(float)
    data = Dataset.from_arrays(X, X[:, 0] + rng.normal(size=16), aux={"w": weights})
    counting, folds = weighted(data, weights, lambda rows: make_folds("4", rows), name="w")
    record = near_optimal(counting, folds if by == "cv" else None, gamma=0.3, taus=[1, 2], within=0.2, by=by)
    every = make_folds("4", data)
    for rows, plan in ((data, None), (data, folds), (counting, folds), (data, every), (counting, every)):
        report = verify(record, rows, plan)
        assert report.ok or (by == "cv" and plan is every)


def test_features_that_replace_each_other_are_neither_left_out_nor_said_twice() -> None:
    case = whole_problem(5)
    record = near_optimal(case.data, gamma=1.0, taus=[2], within=2.0, folds=case.folds, scale=case.scale)
    size = record.sizes[0]
    assert len(size.replacements) > 1 and len(size.always) + len(size.never) < case.data.p
    assert verify(record, case.data, case.folds).ok
    most = size.replacements[0]
    fewer = tuple(one for one in size.replacements if one is not most)
    for changed in (
        replace(size, replacements=()),
        replace(size, replacements=(most, most)),
        replace(size, never=(*size.never, *size.never[:1])) if size.never else replace(size, replacements=()),
        *([replace(size, replacements=fewer)] if most.pairs > min(one.pairs for one in fewer) else []),
    ):
        report = verify(replace(record, sizes=(changed,)), case.data, case.folds)
        assert not report.ok


@pytest.mark.parametrize("seed", [1, 9, 10, 16])
def test_the_interval_of_the_best_value_contains_it_where_exposures_span_decades(seed: int) -> None:
    rng = np.random.default_rng(seed)
    exposure, x = 10.0 ** rng.uniform(-3, 3, 8), rng.normal(size=(8, 1))
    data = as_counts(Dataset.from_arrays(x, rng.poisson(3000.0 * exposure).astype(float), aux={"e": exposure}), "e")
    plan = make_folds(np.arange(8) % 3, data)
    size = near_optimal(data, plan, gamma=0.1, taus=1, loss="poisson", by="cv", exposure="e").sizes[0]
    error = 0.0
    for fold in range(plan.k):
        model = fit_of_data(data, Loss.POISSON, (0,), 0.1, scale="length", intercept="fold", rows=plan.train_rows(fold))
        error += model.held_out(data, plan.scored_rows(fold))[0] / data.n
    assert size.lower <= error <= size.best


@pytest.mark.parametrize("seed", range(4))
def test_without_a_ridge_nearly_dependent_columns_are_listed(seed: int) -> None:
    """Columns whose singular values have a ratio of 1e-11 have no fit by moments: fractions give the value."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((11, 5))
    X[:, 3] = 2.0 * X[:, 0] * (1.0 + 1e-11 * rng.standard_normal(11))
    data = Dataset.from_arrays(X, X[:, 1] + 2.0 * rng.standard_normal(11), names=list("abcde"))
    record = near_optimal(data, gamma=0.0, taus=3, within=1.0, by="objective", most=None)
    exact = ExactProblem.from_data(data, None, ("none", "fold"), range(5))
    values = {support: float(exact.of_support(0.0, support)[0]) for support in exact.supports(3)}
    (size,) = record.sizes
    listed = {tuple(sorted(data.names.index(name) for name in model.support)): model.value for model in record.models}
    best = min(values.values())
    assert size.lower <= best * (1.0 + RTOL) and min(listed.values()) == pytest.approx(best, rel=RTOL)
    for support, value in values.items():
        if value <= size.complete_to * (1.0 - RTOL):
            assert listed[support] == pytest.approx(value, rel=RTOL)
    assert any({0, 3} <= set(support) for support in listed) and verify(record, data).ok


EXACT_FITS = [
    ([[0, 3, 0], [-2, -1, 2], [-1, 2, 1], [-2, 3, 2]], [1.5, -0.5, 1, 1.5], "none", "fold", ["01", "12"]),
    ([[-4, -2, 1, -2], [2, -2, -1, 1], [-4, 3, 2, -2], [-2, -2, 3, -1], [4, -1, 3, 2], [2, -2, 0, 1]],
     [1, -1, 2, 3, 3, 0], "length", "none", ["012", "023", "123"]),
]  # fmt: skip


@pytest.mark.parametrize(("X", "y", "scale", "intercept", "truth"), EXACT_FITS)
@pytest.mark.parametrize("gamma", [1e-12, 1e-13, 1e-14, 1e-16, 1e-20, 1e-300])
def test_lists_of_exact_fits_omit_no_duplicate(
    monkeypatch: pytest.MonkeyPatch, X: list[list[float]], y: list[float], scale: str, intercept: str,
    truth: list[str], gamma: float,
) -> None:  # fmt: skip
    data = Dataset.from_arrays(np.array(X, dtype=float), np.array(y, dtype=float))

    def listed() -> NearRecord:
        return near_optimal(
            data, "3", gamma=gamma, taus=[len(truth[0])], by="objective", within=0.01, scale=scale, intercept=intercept
        )

    record = listed()
    supports = ["".join(name[1:] for name in model.support) for model in record.models]
    assert record.status == "proved" and sorted(supports) == truth
    report = verify(record, data)
    assert report.ok and not report.caveat
    monkeypatch.setattr(collecting, "least_of_all_columns", lambda problem: 1e-12)  # too large by rounding
    short = listed()
    assert len(short.models) == len(truth) or not verify(short, data).ok or verify(short, data).caveat


def test_a_stop_after_the_choice_leaves_the_model_of_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 60))
    data = Dataset.from_arrays(X, X[:, 3] - X[:, 7] + 0.1 * rng.normal(size=40))
    stop, prepare = threading.Event(), near_optimal_module.prepare_values

    def stop_afterwards(*given: Any) -> Any:
        prepared = prepare(*given)
        stop.set()
        return prepared

    monkeypatch.setattr(near_optimal_module, "prepare_values", stop_afterwards)
    monkeypatch.setattr(collecting, "likely_supports", lambda *_: [])  # its first local search takes seconds
    search = NearSearch(data, make_folds("4", data), NearOptions.of(), Deadline(None, stop))
    record = search.solve(0.1, None)
    assert record.status == "interrupted" and len(record.models) == 1 and verify(record, data).ok
    assert set(record.models[0].support) >= {"x3", "x7"}
