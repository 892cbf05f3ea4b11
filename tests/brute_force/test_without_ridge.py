"""Gamma 0: every interval holds the CV error in exact fractions, and what is refused has a singular subset of columns.

Also where all columns together are dependent: more columns than rows, and the dummies of all levels of a factor.
"""

from __future__ import annotations

import re
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
from sparsecv_mio.fits.one import fit_one

METHODS = ("auto", "joint", "rounds", "grid", "algorithm1", "bounds", *ENGINES)
KINDS = (
    "plain", "near copy", "nearer copy", "copy", "few rows", "too few rows", "constant in a fold", "far away", "wide",
    "all dummies", "two factors",
)  # fmt: skip
NEARLY = 1e-9  # least eigenvalue of a correlation matrix, above which nothing is refused


def drawn(seed: int) -> tuple[sc.Dataset, FoldPlan, str]:
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
    return data, plan, kind


def exact_problem(data: sc.Dataset, plan: FoldPlan | None, how: tuple[str, str]) -> ExactProblem:
    """Return the folds in fractions, or one that trains on all rows."""
    folds: list[tuple[list[int], list[int]]] = [(list(range(data.n)), [])]
    if plan is not None:
        folds = [(plan.train_rows(j).tolist(), plan.scored_rows(j).tolist()) for j in range(plan.k)]
    weights = None if data.row_weights is None else data.row_weights.tolist()
    return ExactProblem.of(data.X.tolist(), data.y.tolist(), weights, folds, how, range(data.p))


def least_eigenvalue(gram: list[list[Fraction]]) -> float:
    """Of columns of length 1; 0 where one is constant."""
    length = [float(gram[j][j]) ** 0.5 for j in range(len(gram))]
    if min(length) == 0.0:
        return 0.0
    rows = [[float(value) / a / b for value, b in zip(row, length, strict=True)]
            for row, a in zip(gram, length, strict=True)]  # fmt: skip
    return float(np.linalg.eigvalsh(np.array(rows))[0])


def largest_size(kind: str, p: int, rng: np.random.Generator) -> int:
    """Return the largest tau that is asked for: often below p where all columns together are dependent."""
    return int(rng.integers(1, 5)) if kind in ("wide", "all dummies", "two factors") else p


def least_of_subsets(truth: ExactProblem, size: int) -> list[float]:
    """Return by fold the least eigenvalue of any so many columns of length 1."""
    return [
        min(least_eigenvalue([[fold.gram[a][b] for b in S] for a in S]) for S in combinations(truth.columns, size))
        for fold in truth.folds
    ]


def check(seed: int) -> str:
    """Solve a drawn problem; return its kind where it is refused, rightly, and `solved` where it holds."""
    data, plan, kind = drawn(seed)
    rng = np.random.default_rng([seed, 1])
    how = str(rng.choice(["length", "variance", "none"])), str(rng.choice(["fold", "fold", "global", "none"]))
    method, gammas = METHODS[seed % len(METHODS)], [0.0, 0.1] if seed % 2 else [0.0]
    truth = exact_problem(data, plan, how)
    largest = largest_size(kind, data.p, rng)
    least = least_of_subsets(truth, largest)
    given: dict[str, Any] = {"scale": how[0], "intercept": how[1], "threads": 1}
    with pytest.MonkeyPatch.context() as patch:
        for place in ENGINES.get(method, []):
            patch.setattr(*place)
        try:
            record = sc.cross_validate(
                data, plan, gammas=gammas, taus=range(largest + 1), gap=float(rng.choice([0.0, 1e-2])),
                method="rounds" if method in ENGINES else method, **given,
            )  # fmt: skip
        except BadInput as refusal:
            said = str(refusal)
            assert said.startswith("gamma 0: ") and "\n" not in said, (seed, said)
            named = re.search(r"fold (\d+) of", said)
            if "fit the target exactly" in said:
                trained = data.n if named is None else len(plan.train_rows(int(named[1]) - 1))
                assert trained == largest + (how[1] == "fold") < data.p + (how[1] == "fold"), (seed, said)
                return kind
            assert (least[int(named[1]) - 1] if named else min(least)) < NEARLY, (seed, kind, said, least)
            return kind
    assert min(least) > 0.0, (seed, kind)
    for row in record.table:
        low, high = truth.cv_error(row.gamma, row.tau)
        ends = row.lower * (1.0 - END_RTOL), row.upper * (1.0 + END_RTOL)
        below = row.upper == np.inf or Fraction(ends[1]) >= high  # a pair that is excluded by bound has no upper one
        assert Fraction(ends[0]) <= low and below, (seed, kind, method, row, float(low))
    assert sc.verify(record, data, plan).ok, (seed, kind, method, sc.verify(record, data, plan).failures)
    return "solved"


def holds(low: float, truth: Fraction, high: float) -> bool:
    return Fraction(low * (1.0 - END_RTOL)) <= truth <= Fraction(high * (1.0 + END_RTOL))


def check_lists_and_fits(seed: int) -> bool:
    """Best subsets of all rows, one of them as a single MIO, and the near-best of a size by CV error and objective."""
    data, plan, kind = drawn(seed)
    how = {"scale": ("length", "variance", "none")[seed % 3], "intercept": ("fold", "none")[seed // 3 % 2]}
    largest, names = largest_size(kind, data.p, np.random.default_rng([seed, 2])), data.names
    tau = 1 + seed % min(largest, data.p - 1)
    truth = exact_problem(data, plan, (how["scale"], how["intercept"]))
    whole = exact_problem(data, None, (how["scale"], how["intercept"]))
    try:
        near = sc.near_optimal(data, plan, gamma=0.0, taus=[tau], by="cv", within=0.5, **how)
        path = sc.best_subsets(data, gammas=[0.0, 0.1], taus=range(largest + 1), **how)
    except BadInput as refusal:
        assert str(refusal).startswith("gamma 0: "), (seed, kind)
        return False
    listed = {model.support: model.value for model in near.models}
    values = {tuple(names[j] for j in S): truth.of_support(0.0, S)[1] for S in truth.supports(tau)}
    assert all(holds(value, values[support], value) for support, value in listed.items()), (seed, kind)
    reached = Fraction(near.sizes[0].complete_to * (1.0 - END_RTOL))
    assert all(support in listed for support, value in values.items() if value < reached), (seed, kind)
    least = {row.tau: min(whole.of_support(0.0, S)[0] for S in whole.supports(row.tau)) for row in path.path}
    rows = [row for row in path.path if row.gamma == 0.0]
    assert all(holds(row.lower, least[row.tau], row.upper) for row in rows), (seed, kind)
    fit = fit_one(data, tau=tau, gamma=0.0, **how)
    assert holds(fit.lower, least[tau], fit.objective), (seed, kind)
    assert sc.verify(near, data, plan).ok and sc.verify(path, data).ok and sc.verify(fit, data).ok, (seed, kind)
    return True


@pytest.mark.parametrize("seed", range(22))
def test_every_interval_holds_the_truth(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(22))
def test_lists_and_fits_hold_the_truth(seed: int) -> None:
    check_lists_and_fits(seed)


@pytest.mark.slow
def test_every_interval_holds_the_truth_at_length() -> None:
    ends = [check(seed) for seed in range(1000)]
    assert ends.count("solved") > 500
    assert sum(check_lists_and_fits(seed) for seed in range(1000)) > 500
