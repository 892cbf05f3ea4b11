"""Columns without a penalty, adjusted for or at gamma 0: every interval holds the CV error in exact fractions.

What is refused is refused rightly: a singular subset of columns at gamma 0, also where all columns together are
dependent (more columns than rows, the dummies of all levels of a factor), and columns that are adjusted for and depend
on one another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from engines import ENGINES
from exact import ExactProblem
from thin_columns import END_RTOL

import sparsecv_mio as sc
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.data.weights import weighted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one

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
        for place in ENGINES.get(method, []):
            patch.setattr(*place)
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


PROBLEMS = [*((seed, True) for seed in range(16)), *((seed, False) for seed in range(22))]


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
