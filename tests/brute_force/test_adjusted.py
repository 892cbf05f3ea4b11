"""Columns that are adjusted for: every interval holds the CV error in exact fractions, and refusals are true."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from engines import ENGINES
from exact import ExactProblem
from test_without_ridge import holds, least_eigenvalue
from thin_columns import END_RTOL

import sparsecv_mio as sc
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.data.weights import weighted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one

METHODS = ("auto", "joint", "rounds", "grid", "algorithm1", "bounds", *ENGINES)
KINDS = ("plain", "near copy", "copy", "of features", "binary", "constant in a fold", "far away", "of adjusted")
NEARLY = 1e-9  # least eigenvalue of a correlation matrix, above which nothing is refused


def drawn(seed: int) -> tuple[sc.Dataset, FoldPlan, list[int], str]:
    """Return rows, a third of them with weights, their folds, and one or two columns that are adjusted for."""
    rng = np.random.default_rng([7, seed])
    kind, p, k = KINDS[seed % len(KINDS)], int(rng.integers(3, 6)), int(rng.integers(3, 6))
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
    return data, plan, adjusted, kind


def exact_problem(data: sc.Dataset, plan: FoldPlan | None, how: tuple[str, str], adjusted: list[int]) -> ExactProblem:
    """Return the folds in fractions, or one that trains on all rows."""
    folds: list[tuple[list[int], list[int]]] = [(list(range(data.n)), [])]
    if plan is not None:
        folds = [(plan.train_rows(j).tolist(), plan.scored_rows(j).tolist()) for j in range(plan.k)]
    weights = None if data.row_weights is None else data.row_weights.tolist()
    return ExactProblem.of(
        data.X.tolist(), data.y.tolist(), weights, folds, how, range(data.p), adjusted, free=adjusted
    )


def least_of_adjusted(truth: ExactProblem) -> list[float]:
    """By fold, of the columns that are adjusted for."""
    return [least_eigenvalue([[fold.gram[a][b] for b in truth.forced] for a in truth.forced]) for fold in truth.folds]


def check(seed: int) -> str:
    """Solve a drawn problem; return its kind where it is refused, rightly, and `solved` where it holds."""
    data, plan, adjusted, kind = drawn(seed)
    rng = np.random.default_rng([seed, 1])
    how = str(rng.choice(["length", "variance", "none"])), str(rng.choice(["fold", "fold", "global", "none"]))
    method, gammas = METHODS[seed % len(METHODS)], [0.01, 1.0] if seed % 2 else [0.1]
    truth, free = exact_problem(data, plan, how, adjusted), len(adjusted)
    least = least_of_adjusted(truth)
    with pytest.MonkeyPatch.context() as patch:
        for place in ENGINES.get(method, []):
            patch.setattr(*place)
        try:
            record = sc.cross_validate(
                data, plan, gammas=gammas, taus=range(data.p - free + 1), gap=float(rng.choice([0.0, 1e-2])),
                method="rounds" if method in ENGINES else method, scale=how[0], intercept=how[1], threads=1,
                adjust=adjusted, model="average" if seed % 7 == 0 and method != "bounds" else "pair",
            )  # fmt: skip
        except BadInput as refusal:
            said = str(refusal)
            assert said.startswith("adjust: ") and "\n" not in said, (seed, said)
            named = re.search(r"fold (\d+) of", said)
            assert (least[int(named[1]) - 1] if named else min(least)) < NEARLY, (seed, kind, said, least)
            return kind
    assert min(least) > 0.0, (seed, kind)
    assert not any(set(record.request.restrictions.adjust) & set(fold.support) for fold in record.chosen_folds)
    for row in record.table:
        low, high = truth.cv_error(row.gamma, row.tau + free)
        ends = row.lower * (1.0 - END_RTOL), row.upper * (1.0 + END_RTOL)
        assert Fraction(ends[0]) <= low and Fraction(ends[1]) >= high, (seed, kind, method, row, float(low))
    report = sc.verify(record, data, plan)
    assert report.ok, (seed, kind, method, report.failures)
    assert type(record).from_json(record.to_json()) == record, seed
    return "solved"


def check_lists_and_fits(seed: int) -> bool:
    """Best subsets of all rows, one of them as a single MIO, and the near-best of a size by CV error."""
    data, plan, adjusted, kind = drawn(seed)
    how = {"scale": ("length", "variance", "none")[seed % 3], "intercept": ("fold", "none")[seed // 3 % 2]}
    units, free, names = (how["scale"], how["intercept"]), len(adjusted), data.names
    tau, gamma = 1 + seed % (data.p - free - 1) if data.p > free + 1 else 1, (0.0, 0.05)[seed % 7 == 0]
    truth, whole = exact_problem(data, plan, units, adjusted), exact_problem(data, None, units, adjusted)
    gamma = 0.05 if gamma == 0.0 and kind != "plain" else gamma
    try:
        near = sc.near_optimal(data, plan, gamma=gamma, taus=[tau], by="cv", within=0.5, adjust=adjusted, **how)
    except BadInput as refusal:
        assert str(refusal).startswith(("adjust: ", "gamma 0: ")), (seed, kind)
        return False
    listed = {model.support: model.value for model in near.models}
    values = {
        tuple(names[j] for j in S if j not in adjusted): truth.of_support(gamma, S)[1]
        for S in truth.supports(tau + free)
    }
    assert all(holds(value, values[support], value) for support, value in listed.items()), (seed, kind)
    reached = Fraction(near.sizes[0].complete_to * (1.0 - END_RTOL))
    assert all(support in listed for support, value in values.items() if value < reached), (seed, kind)
    path = sc.best_subsets(data, gammas=[gamma, 0.1], taus=range(data.p - free + 1), adjust=adjusted, **how)
    least = {row.tau: min(whole.of_support(gamma, S)[0] for S in whole.supports(row.tau + free)) for row in path.path}
    rows = [row for row in path.path if row.gamma == gamma]
    assert all(holds(row.lower, least[row.tau], row.upper) for row in rows), (seed, kind)
    side = SideOptions(adjust=[names[j] for j in adjusted])
    fit = fit_one(data, tau=tau, gamma=gamma, side=side, **how)
    assert holds(fit.lower, least[tau], fit.objective), (seed, kind)
    for record, folds in ((near, plan), (path, None), (fit, None)):
        report = sc.verify(record, data, folds)
        assert report.ok, (seed, kind, report.failures)
        assert type(record).from_json(record.to_json()) == record, seed
    return True


@pytest.mark.parametrize("seed", range(16))
def test_every_interval_holds_the_truth(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(16))
def test_lists_and_fits_hold_the_truth(seed: int) -> None:
    check_lists_and_fits(seed)


@pytest.mark.slow
def test_every_interval_holds_the_truth_at_length() -> None:
    ends = [check(seed) for seed in range(1000)]
    assert ends.count("solved") > 700
    assert sum(check_lists_and_fits(seed) for seed in range(1000)) > 700
