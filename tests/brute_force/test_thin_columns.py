"""Intervals of records against exact fractions: thin columns, and columns without a penalty."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from draws import WAYS
from engines import ENGINES, patch_all
from exact import ExactProblem
from slow import slow
from thin_columns import END_RTOL, false_ends, thin_case

import sparsecv_mio as sc
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.data.weights import weighted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.near.near_optimal import NO_CV_ERRORS, near_optimal
from sparsecv_mio.problem import refit
from sparsecv_mio.search.api import cross_validate


@pytest.mark.parametrize("seed", range(12))
def test_bounds_contain_the_exact_numbers_to_the_last_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p, tau = int(rng.integers(6, 10)), int(rng.integers(2, 4)), int(rng.integers(1, 3))
    X = np.round(rng.normal(size=(n, p)), 2)
    y = np.round(X @ rng.normal(size=p) * 3.0 + rng.normal(size=n) / 4.0, 3)
    if seed % 3 == 0:
        X[1, -1], y[1] = 1001.0, 498.617  # a row far from the others
    scale, gamma = ("none", "length", "variance")[seed % 3], (0.5, 1.0, 10.0)[seed // 4]
    data = Dataset.from_arrays(X, y)
    plan = folds_from_labels(np.arange(n) % 3 if seed % 2 else np.arange(n))
    record = cross_validate(data, plan, gammas=[gamma], taus=[tau], scale=scale, gap=0.0, time_limit=120)
    folds, whole = (ExactProblem.from_data(data, rows, (scale, "fold"), range(p)) for rows in (plan, None))
    least = min(whole.of_support(gamma, support)[0] for support in whole.supports(tau))
    assert Fraction(record.refit.lower) <= least <= Fraction(record.refit.upper)
    low, high = folds.cv_error(gamma, tau)
    for pair in (record, *record.table):
        assert Fraction(pair.lower) <= low and high <= Fraction(pair.upper)


@pytest.mark.parametrize("intercept", ["fold", "none"])
def test_a_fill_value_does_not_make_a_column_constant(intercept: str) -> None:
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    X[11, 0] = 1e20
    data = Dataset.from_arrays(X, y)
    folds = make_folds("5", data)
    record = cross_validate(data, folds, gammas=[0.1, 1.0], taus=[2], scale="none", intercept=intercept, gap=0.0)
    assert record.cv_error > 1e36 and verify(record, data, folds).ok


def test_copies_without_an_intercept_are_told_apart_by_what_moves() -> None:
    rng = np.random.default_rng(3)
    noise = 1e-13 * rng.normal(size=(20, 2))
    X = np.column_stack([5.0 * (1.0 + noise[:, 0]), 1000.0 * (1.0 + noise[:, 1]), rng.normal(size=20)])
    data = Dataset.from_arrays(X, 10.0 * (noise[:, 0] - noise[:, 1]) / 1e-13 + rng.normal(size=20))
    folds = make_folds("2", data)
    record = cross_validate(data, folds, gammas=[0.09], taus=[1, 2, 3], intercept="none", gap=0.0)
    assert verify(record, data, folds).ok
    assert set(record.support) >= {"x0", "x1"}  # which only together have what the target has


@pytest.mark.parametrize("fractions", [True, False])
def test_a_support_whose_value_rounding_hides_is_on_no_list(fractions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a few huge cells nothing is left of the rest, and a coefficient takes what the other gives."""
    if not fractions:  # as of many rows
        monkeypatch.setattr(refit, "EXACT_WORK", 0)
    rng = np.random.default_rng(11)
    X = rng.normal(size=(28, 3))
    X[:14, 0], X[[3, 17], 1], X[23, 2] = 1.03351841e11, -1e21, -1e25
    y = np.where(np.arange(28) < 14, 6.28893938e10, rng.normal(size=28))
    y[[3, 17]] = -1.24099379e20
    data = Dataset.from_arrays(X, y)
    record = near_optimal(data, "loo", gamma=2e-4, taus=[2, 3], by="cv", within=1.0, scale="none")
    exact = ExactProblem.from_data(data, make_folds("loo", data), ("none", "fold"), range(3))
    for model in record.models:
        true = float(exact.of_support(2e-4, [data.names.index(name) for name in model.support])[1])
        assert model.value == pytest.approx(true, rel=1e-6)
    assert (record.status, NO_CV_ERRORS in record.warnings) == (("proved", False) if fractions else ("limit", True))


def test_columns_that_one_cell_makes_alike_are_apart_without_its_row() -> None:
    """Both are next to nothing there beside their penalty, and predict the row left out, of 1e28, a little apart."""
    case = thin_case(602_630)
    assert not false_ends(case, case.solved())


@pytest.mark.parametrize("seed", [400_089, 400_249, 400_331, *slow([400_076, 400_534, 400_561])])
def test_verify_refuses_no_right_end(seed: int) -> None:
    """Its own refits had lost their digits here, or a changed model or an average had."""
    case = thin_case(seed)
    for more in ({}, {"model": "average"}, {"stability": 10.0}):
        record = replace(case, words=case.words | more).solved()
        assert not false_ends(case, record)
        assert verify(record, case.data, case.folds).ok


@pytest.mark.parametrize(
    ("seed", "more"),
    [*((seed, {}) for seed in (400_076, 400_134, 400_167, 400_393, 400_710)), (400_162, {"model": "average"})],
)
def test_the_allowance_of_an_open_pair_is_of_its_lower_end(
    seed: int, more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees on the rows stop at upper ends that are right and many orders of magnitude too high.

    Where rounding takes the digits of errors, it may also tell a pair from the best one that is as good.
    """
    patch_all(monkeypatch, WAYS["branch on the rows"])
    case = thin_case(seed)
    record = replace(case, words=case.words | more).solved()
    assert not false_ends(case, record)
    assert verify(record, case.data, case.folds).ok


METHODS = ("auto", "joint", "rounds", "grid", "algorithm1", "bounds", *ENGINES)
KINDS = (
    "plain", "near copy", "nearer copy", "copy", "few rows", "too few rows", "constant in a fold", "far away", "wide",
    "all dummies", "two factors",
)  # fmt: skip
ADJUSTED_KINDS = (
    "plain", "near copy", "copy", "of features", "binary", "constant in a fold", "far away", "of adjusted",
)  # fmt: skip
NEARLY = 1e-9  # least eigenvalue of a correlation matrix, above which nothing is refused


@dataclass(frozen=True)
class Problem:
    """Rows and their folds, the kind of their columns, and which of these are adjusted for; none at gamma 0."""

    data: sc.Dataset
    plan: FoldPlan
    kind: str
    adjusted: list[int]


def draw_adjusted(seed: int) -> Problem:
    """Return rows, a third of them with weights, their folds, and one or two columns that are adjusted for."""
    rng = np.random.default_rng([7, seed])
    kind, p, k = ADJUSTED_KINDS[seed % len(ADJUSTED_KINDS)], int(rng.integers(3, 6)), int(rng.integers(3, 6))
    n, adjusted = int(rng.integers(10, 16)), [1] if seed % 2 else [0, 2]
    labels = np.arange(n) if seed % 5 == 0 else rng.permutation(np.arange(n) % k)
    X, last = rng.normal(size=(n, p)) + rng.normal(size=p), adjusted[-1]
    chosen = [j for j in range(p) if j not in adjusted]
    if kind == "near copy":  # a feature of a column that is adjusted for
        X[:, chosen[0]] = X[:, last] + 10.0 ** -rng.integers(2, 8) * rng.normal(size=n)
    if kind == "copy":
        X[:, chosen[0]] = rng.choice([-2.0, 1.0]) * X[:, last] + rng.choice([0.0, 3.0])
    if kind == "of features":  # what is adjusted for is a combination of features
        X[:, last] = X[:, chosen] @ np.ones(len(chosen))
    if kind == "binary":
        X[:, last] = rng.random(n) < 0.4
        X[:2, last] = 0.0, 1.0
    if kind == "constant in a fold":
        X[:, last] = np.where(labels == 0, X[:, last], 1.0)
    if kind == "far away":
        X += rng.choice([1e6, -1e4, 0.0], size=p)
    if kind == "of adjusted" and len(adjusted) > 1:
        X[:, last] = 2.0 * X[:, 0] - 1.0 + rng.choice([0.0, 1e-3]) * rng.normal(size=n)
    data = sc.Dataset.from_arrays(X, X @ rng.normal(size=p) + rng.choice([0.1, 1.0]) * rng.normal(size=n))
    plan = folds_from_labels(np.unique(labels, return_inverse=True)[1])
    if seed % 3 == 0:
        data, plan = weighted(data, rng.choice([0.5, 1.0, 3.7], size=n), lambda _: plan, name="w", by_row=True)
    return Problem(data, plan, kind, adjusted)


def draw_without_ridge(seed: int) -> Problem:
    """Return rows of one of the kinds, a third of them with weights, and their folds."""
    rng = np.random.default_rng(seed)
    kind, p, k = KINDS[seed % len(KINDS)], int(rng.integers(2, 5)), int(rng.integers(3, 6))
    p = {"wide": 9, "all dummies": 6, "two factors": 8}.get(kind, p)
    n = {"few rows": p + 3, "too few rows": p + 1}.get(kind, int(rng.integers(10, 16)))
    n = {"wide": int(rng.integers(7, 10)), "two factors": 24}.get(kind, n)
    labels = np.arange(n) if kind == "few rows" else rng.permutation(np.arange(n) % k)
    X = rng.normal(size=(n, p)) + rng.normal(size=p)
    near = {"near copy": 1e-3, "nearer copy": 1e-5, "copy": 0.0}
    if kind in near:
        X[:, -1] = rng.choice([-2.0, 1.0]) * X[:, 0] + near[kind] * rng.normal(size=n)
    for number, first in enumerate({"all dummies": (0,), "two factors": (0, 3)}.get(kind, ())):
        levels = 3 + number
        X[:, first : first + levels] = rng.permutation(np.arange(n) % levels)[:, None] == np.arange(levels)
    if kind == "constant in a fold":
        X[:, -1] = np.where(labels == 0, X[:, -1], 1.0)
    if kind == "far away":
        X += rng.choice([1e6, -1e4], size=p)
    data = sc.Dataset.from_arrays(X, X @ rng.normal(size=p) + rng.choice([0.1, 1.0]) * rng.normal(size=n))
    plan = folds_from_labels(labels)
    if seed % 3 == 0:
        data, plan = weighted(data, rng.choice([0.5, 1.0, 3.7], size=n), lambda _: plan, name="w", by_row=True)
    return Problem(data, plan, kind, [])


def least_eigenvalue(gram: list[list[Fraction]]) -> float:
    """Of columns of length 1; 0 where one is constant."""
    length = [float(gram[j][j]) ** 0.5 for j in range(len(gram))]
    if min(length) == 0.0:
        return 0.0
    rows = [[float(value) / a / b for value, b in zip(row, length, strict=True)]
            for row, a in zip(gram, length, strict=True)]  # fmt: skip
    return float(np.linalg.eigvalsh(np.array(rows))[0])


def least_of_adjusted(truth: ExactProblem) -> list[float]:
    """By fold, of the columns that are adjusted for."""
    return [least_eigenvalue([[fold.gram[a][b] for b in truth.forced] for a in truth.forced]) for fold in truth.folds]


def largest_size(kind: str, p: int, rng: np.random.Generator) -> int:
    """Return the largest tau that is asked for: often below p where all columns together are dependent."""
    return int(rng.integers(1, 5)) if kind in ("wide", "all dummies", "two factors") else p


def least_of_subsets(truth: ExactProblem, size: int) -> list[float]:
    """Return by fold the least eigenvalue of any so many columns of length 1."""
    return [
        min(least_eigenvalue([[fold.gram[a][b] for b in S] for a in S]) for S in combinations(truth.columns, size))
        for fold in truth.folds
    ]


def holds(low: float, truth: Fraction, high: float) -> bool:
    return Fraction(low * (1.0 - END_RTOL)) <= truth <= Fraction(high * (1.0 + END_RTOL))


def check(seed: int, adjusts: bool) -> str:
    """Solve a drawn problem; return its kind where it is refused, rightly, and `solved` where it holds."""
    problem = draw_adjusted(seed) if adjusts else draw_without_ridge(seed)
    data, plan, kind, adjusted = problem.data, problem.plan, problem.kind, problem.adjusted
    rng, free, method = np.random.default_rng([seed, 1]), len(adjusted), METHODS[seed % len(METHODS)]
    how = str(rng.choice(["length", "variance", "none"])), str(rng.choice(["fold", "fold", "global", "none"]))
    truth = ExactProblem.from_data(data, plan, how, range(data.p), adjusted, adjusted)
    given: dict[str, Any] = {"gammas": [0.0, 0.1] if seed % 2 else [0.0]}
    if adjusts:
        largest, least = data.p - free, least_of_adjusted(truth)
        given = {"gammas": [0.01, 1.0] if seed % 2 else [0.1], "adjust": adjusted}
        given["model"] = "average" if seed % 7 == 0 and method != "bounds" else "pair"
    else:
        largest = largest_size(kind, data.p, rng)
        least = least_of_subsets(truth, largest)
    with pytest.MonkeyPatch.context() as patch:
        patch_all(patch, ENGINES.get(method, []))
        try:
            record = sc.cross_validate(
                data, plan, taus=range(largest + 1), gap=float(rng.choice([0.0, 1e-2])),
                method="rounds" if method in ENGINES else method, scale=how[0], intercept=how[1], threads=1, **given,
            )  # fmt: skip
        except BadInput as refusal:
            said = str(refusal)
            assert said.startswith("adjust: " if adjusts else "gamma 0: ") and "\n" not in said, (seed, said)
            named = re.search(r"fold (\d+) of", said)
            if "fit the target exactly" in said and not adjusts:
                trained = data.n if named is None else len(plan.train_rows(int(named[1]) - 1))
                assert trained == largest + (how[1] == "fold") < data.p + (how[1] == "fold"), (seed, said)
                return kind
            assert (least[int(named[1]) - 1] if named else min(least)) < NEARLY, (seed, kind, said, least)
            return kind
    assert min(least) > 0.0, (seed, kind)
    limits = record.request.restrictions
    assert not adjusts or not any(set(limits.adjust) & set(fold.support) for fold in record.chosen_folds)
    for row in record.table:
        low, high = truth.cv_error(row.gamma, row.tau + free)
        ends = row.lower * (1.0 - END_RTOL), row.upper * (1.0 + END_RTOL)
        excluded = row.upper == np.inf and not adjusts  # a pair that is excluded by bound has no upper one
        assert Fraction(ends[0]) <= low and (excluded or Fraction(ends[1]) >= high), (seed, kind, method, row)
    report = sc.verify(record, data, plan)
    assert report.ok, (seed, kind, method, report.failures)
    assert type(record).from_json(record.to_json()) == record, seed
    return "solved"


def check_lists_and_fits(seed: int, adjusts: bool) -> bool:
    """Best subsets of all rows, one of them as a single MIO, and the near-best of a size by CV error."""
    problem = draw_adjusted(seed) if adjusts else draw_without_ridge(seed)
    data, plan, kind, adjusted = problem.data, problem.plan, problem.kind, problem.adjusted
    how = {"scale": ("length", "variance", "none")[seed % 3], "intercept": ("fold", "none")[seed // 3 % 2]}
    units, free, names = (how["scale"], how["intercept"]), len(adjusted), data.names
    truth, whole = (
        ExactProblem.from_data(data, folds, units, range(data.p), adjusted, adjusted) for folds in (plan, None)
    )
    largest, gamma = data.p - free, 0.0 if not adjusts or kind == "plain" and seed % 7 else 0.05
    if not adjusts:
        largest = largest_size(kind, data.p, np.random.default_rng([seed, 2]))
    tau = 1 + seed % max(min(largest, data.p - free - 1), 1)
    given, near = how | ({"adjust": adjusted} if adjusts else {}), None
    try:
        near = sc.near_optimal(data, plan, gamma=gamma, taus=[tau], by="cv", within=0.5, **given)
        path = sc.best_subsets(data, gammas=[gamma, 0.1], taus=range(largest + 1), **given)
    except BadInput as refusal:
        assert near is None or not adjusts, (seed, kind)
        assert str(refusal).startswith(("adjust: ", "gamma 0: ") if adjusts else "gamma 0: "), (seed, kind)
        return False
    listed = {model.support: model.value for model in near.models}
    values = {
        tuple(names[j] for j in S if j not in adjusted): truth.of_support(gamma, S)[1]
        for S in truth.supports(tau + free)
    }
    assert all(holds(value, values[support], value) for support, value in listed.items()), (seed, kind)
    reached = Fraction(near.sizes[0].complete_to * (1.0 - END_RTOL))
    assert all(support in listed for support, value in values.items() if value < reached), (seed, kind)
    least = {row.tau: min(whole.of_support(gamma, S)[0] for S in whole.supports(row.tau + free)) for row in path.path}
    rows = [row for row in path.path if row.gamma == gamma]
    assert all(holds(row.lower, least[row.tau], row.upper) for row in rows), (seed, kind)
    side = SideOptions(adjust=[names[j] for j in adjusted]) if adjusts else None
    fit = fit_one(data, tau=tau, gamma=gamma, side=side, **how)
    assert holds(fit.lower, least[tau], fit.objective), (seed, kind)
    for record, folds in ((near, plan), (path, None), (fit, None)):
        report = sc.verify(record, data, folds)
        assert report.ok, (seed, kind, report.failures)
        assert type(record).from_json(record.to_json()) == record, seed
    return True


PROBLEMS = [(seed, adjusts) for adjusts in (True, False) for seed in range(4)]


@pytest.mark.parametrize(("seed", "adjusts"), PROBLEMS)
def test_every_interval_holds_the_truth(seed: int, adjusts: bool) -> None:
    check(seed, adjusts)


@pytest.mark.parametrize(("seed", "adjusts"), PROBLEMS)
def test_lists_and_fits_hold_the_truth(seed: int, adjusts: bool) -> None:
    check_lists_and_fits(seed, adjusts)


@pytest.mark.slow
@pytest.mark.parametrize(("adjusts", "least"), [(True, 700), (False, 500)])
def test_every_interval_holds_the_truth_at_length(adjusts: bool, least: int) -> None:
    ends = [check(seed, adjusts) for seed in range(1000)]
    assert ends.count("solved") > least
    assert sum(check_lists_and_fits(seed, adjusts) for seed in range(1000)) > least
