"""Folds that are no partition, by their definition: every support tried in every fold's own training rows.

h is the sum over folds of the squared errors of the scored rows, over the number of scored rows, each counted as often
as a fold scores it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import weighted_problems
from random_problems import RandomProblem, random_problem
from reference import FloatArray, IntArray, intervals_of_pairs
from sklearn.model_selection import LeavePOut, RepeatedKFold, ShuffleSplit, TimeSeriesSplit

from sparsecv_mio import thresholds
from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import folds_of, make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.search import estimates
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.one_by_one import ORDERS
from sparsecv_mio.words import Engine, Method

INSIDE = 0.9e-9  # ties, a little inside of the engine's tolerance
METHODS = (Method.ROUNDS, Method.JOINT, *ORDERS, Method.ROUNDS, Method.DESCENT)
KINDS = ("repeated", "forward", "pairs", "strata", "holdouts", "many", "splitter", "growing")
Pair = tuple[IntArray, IntArray]


def drawn_pairs(rng: np.random.Generator, n: int, growing: bool) -> list[Pair]:
    """Draw scored rows, and training rows among the others; if `growing`, each trains on what the one before does."""
    pairs: list[Pair] = []
    while len(pairs) < int(rng.integers(2, 7)):
        scored = rng.permutation(n)[: int(rng.integers(1, max(2, n // 3)))]
        others = np.setdiff1d(np.arange(n), scored)
        train = others[rng.random(len(others)) < rng.choice([0.6, 1.0])]
        if growing and pairs:
            train = np.union1d(train, pairs[-1][0])
            scored = np.setdiff1d(scored, train)
        if len(train) >= 2 and len(scored):
            pairs.append((train, scored))
    return pairs


def drawn_folds(rng: np.random.Generator, data: Dataset, kind: str, seed: int) -> FoldPlan:
    """Draw folds of a kind."""
    n, repeats = data.n, int(rng.integers(2, 5))
    k = int(rng.integers(2, min(n - 2, 7) + 1))
    if kind == "repeated":
        return make_folds(f"{repeats}x{k}", data, seed)
    if kind == "forward":
        return make_folds(f"forward:{min(k, n // 2 - 1)}", data)
    if kind == "strata":
        return make_folds(f"{repeats if seed % 2 else 1}xstratified:{k}", data, seed)
    if kind == "holdouts":
        return make_folds(f"{2 * repeats}xholdout:{rng.uniform(0.1, 0.6):.2f}", data, seed)
    if kind == "many":  # as trees that all folds share are made for
        return folds_of(LeavePOut(2), data) if n < 12 else make_folds(f"{-(-26 // k)}x{k}", data, seed)
    if kind == "splitter":
        splitters = (
            RepeatedKFold(n_splits=k, n_repeats=2, random_state=seed), ShuffleSplit(k, random_state=seed),
            TimeSeriesSplit(2, gap=int(n > 8), max_train_size=max(2, n // 2)),
        )  # fmt: skip
        return folds_of(splitters[seed % 3], data)
    return folds_of(drawn_pairs(rng, n, kind == "growing"), data)


def drawn(seed: int, rows: int = 30, columns: int = 9) -> RandomProblem:
    """Draw a problem with folds that are no partition, or at least not a plain one."""
    case, rng = random_problem(seed, rows, columns), np.random.default_rng([15, seed])
    return replace(case, folds=drawn_folds(rng, case.data, KINDS[seed % len(KINDS)], seed))


def truth(case: RandomProblem) -> tuple[FloatArray, FloatArray]:
    """Optimistic and pessimistic h over ties, by (gamma, tau)."""
    pairs = [(case.folds.train_rows(j), case.folds.scored_rows(j)) for j in range(case.folds.k)]
    rows, how = (case.data.X, case.data.y), (case.scale, case.intercept)
    return intervals_of_pairs(rows, pairs, case.gammas, case.taus, how, INSIDE)


def altered(plan: FoldPlan) -> FoldPlan:
    """Return the same folds but that one trains on a row less, of three or more, or scores a row less."""
    pairs = [(plan.train_rows(j), plan.scored_rows(j)) for j in range(plan.k)]
    at = next(j for j, (train, scored) in enumerate(pairs) if len(train) > 2 or len(scored) > 1)
    train, scored = pairs[at]
    pairs[at] = (train[1:], scored) if len(train) > 2 else (train, scored[1:])
    return replace(folds_of(pairs, Dataset.from_arrays(np.zeros((plan.n, 1)), np.zeros(plan.n))), spec=plan.spec,
                   seed=plan.seed, repeats=plan.repeats)  # fmt: skip


def check(seed: int) -> None:
    """Check the table and the claim of one method on one problem against the enumeration, and `verify`."""
    case = drawn(seed)
    method = METHODS[seed // len(KINDS) % len(METHODS)]
    gap = 0.0 if method is Method.DESCENT else (0.0, 1e-4, 5e-2)[seed % 3]
    options: dict[str, object] = {"one_se": seed % 5 == 0 and case.folds.has_standard_error and method != "bounds"}
    if method is Method.ROUNDS:
        options |= {"engine": list(Engine)[seed % len(Engine)], "oracles": (None, "glru,treecv", "none")[seed % 3]}
    if method is Method.DESCENT:
        options["gammas"] = case.gammas[:1]
    record = cross_validate(
        case.data, case.folds, taus=case.taus, scale=case.scale, intercept=case.intercept, gap=gap, threads=1,
        method=method, **{"gammas": case.gammas, **options},  # type: ignore[arg-type]
    )  # fmt: skip
    if method is Method.DESCENT:
        case = replace(case, gammas=[record.gamma])
    low, high = truth(case)
    best, rounding = record.certificate, 1e-9 * record.upper
    at = {(gamma, tau): (g, t) for g, gamma in enumerate(case.gammas) for t, tau in enumerate(case.taus)}
    for row in record.table:
        if row.gamma not in case.gammas:  # a step of a descent
            continue
        where, slip = at[row.gamma, row.tau], 1e-9 * row.upper
        assert row.lower <= low[where] + slip and row.upper >= high[where] - slip, (seed, row, low[where], high[where])
    reported, least = high[at[record.gamma, record.tau]], high[at[best.gamma, best.tau]]
    assert record.own_row is not None and record.own_row.upper >= reported - rounding, seed
    if method is not Method.DESCENT:
        assert best.lower <= low.min() + rounding and high.min() <= best.upper + rounding, seed
        if record.status == "proved":
            room = gap * best.upper + best.tie_width + best.allowance
            assert least <= low.min() + room * (1.0 + 1e-9) + rounding, seed
    assert record.folds.k == case.folds.k and record.folds.repeats == case.folds.repeats
    found = verify(record, case.data, case.folds)
    assert found.ok, (seed, found.failures)
    other = verify(record, case.data, altered(case.folds))
    assert [failure.field for failure in other.failures] == ["folds.digest"], seed


def check_bounds(seed: int) -> None:
    """Check the table of bounds without branching on one problem against the enumeration."""
    case = drawn(seed)
    data = standardize(case.data, case.scale, case.intercept)
    table = compute_bounds(data, case.folds, case.gammas, case.taus)
    (low, high), slip = truth(case), 1e-9 * float(case.data.y @ case.data.y)
    for g, t in np.ndindex(low.shape):
        found = table.cv_interval(g, t)
        assert found.lower <= low[g, t] * (1 + 1e-9) + slip and found.upper >= high[g, t] * (1 - 1e-9) - slip, seed


def test_bounds_without_branching_against_enumeration() -> None:
    for seed in (*range(3000, 3009), 3124):  # the last: training means of which no digit is known
        check_bounds(seed)


@pytest.mark.parametrize("backend", ["gurobi", "highs"])
def test_a_backend_gives_the_same_answer(backend: str) -> None:
    usable = get_backend(backend).available()
    if not usable.usable:
        pytest.skip(usable.why)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 4))
    data = Dataset.from_arrays(X, X @ [1.0, 0.0, 2.0, 0.0] + rng.normal(size=14))
    for spec in ("2x3", "forward:2"):
        ask = {"gammas": [0.1], "taus": [1, 2], "threads": 1, "gap": 0.0, "method": "joint"}
        ours, theirs = (cross_validate(data, make_folds(spec, data), backend=b, **ask) for b in ("native", backend))  # type: ignore[arg-type]
        assert (theirs.status, theirs.tau, theirs.support) == ("proved", ours.tau, ours.support)
        assert theirs.cv_error == pytest.approx(ours.cv_error, rel=1e-9)


def check_weights(seed: int) -> None:
    """Check the table of one problem with weighted rows against the weighted definition, and `verify`."""
    problem, rng = weighted_problems.drawn(seed), np.random.default_rng([16, seed])
    weight, method = problem.weight, METHODS[seed // len(KINDS) % 5]
    rows = Dataset.from_arrays(problem.X, problem.y, aux={"w": weight})
    folds = drawn_folds(rng, rows, KINDS[seed % len(KINDS)], seed)
    pairs = [(folds.train_rows(j), folds.scored_rows(j)) for j in range(folds.k)]
    if min(np.count_nonzero(weight[train]) for train, _ in pairs) < 2 or not weight[folds.all_scored].any():
        return
    data, plan = weighted(rows, weight, lambda _: folds, name="w", by_row=True)
    record = cross_validate(
        data, plan, gammas=[0.5], taus=range(data.p + 1), scale=problem.scale, intercept=problem.intercept, gap=0.0,
        threads=1, method=method,
    )  # fmt: skip
    total = np.zeros(data.p + 1)
    for train, scored in pairs:
        for tau, (support, beta, intercept) in enumerate(problem.best(train, 0.5) if weight[scored].any() else []):
            miss = problem.y[scored] - intercept - problem.X[scored][:, support] @ beta
            total[tau] += float(weight[scored] @ miss**2)
    truth = total / sum(float(weight[scored].sum()) for _, scored in pairs)
    for row in record.table:
        right = truth[row.tau]
        assert row.lower <= right * (1 + 1e-8) and right <= row.upper * (1 + 1e-8), (seed, method, row, right)
    assert method == "bounds" or record.cv_error == pytest.approx(truth.min(), rel=1e-8), (seed, method)
    found = verify(record, rows, folds)
    assert found.ok, (seed, found.failures)


def test_rows_with_weights() -> None:
    for seed in range(4000, 4040, 3):
        check_weights(seed)


@pytest.mark.slow
def test_rows_with_weights_at_length() -> None:
    for seed in range(4000, 4300):
        check_weights(seed)


@pytest.mark.parametrize("block", range(4))
def test_folds_of_any_kind_against_enumeration(block: int) -> None:
    for seed in range(5000 + 63 * block, 5063 + 63 * block, 9):
        check(seed)


@pytest.fixture(params=["by products", "by rows"])
def search_first(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds and all rows search before anything else, as they do with more columns than can be enumerated."""
    monkeypatch.setattr(estimates, "SMALL", 0)
    if request.param == "by rows":
        monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1)


def test_folds_of_any_kind_where_folds_search_first(search_first: None) -> None:
    for seed in range(1000, 1036, 9):
        check(seed)


@pytest.mark.slow
def test_bounds_without_branching_at_length() -> None:
    for seed in range(3000, 3500):
        check_bounds(seed)


@pytest.mark.slow
def test_five_hundred_problems() -> None:
    for seed in range(500):
        check(seed)


@pytest.mark.slow
def test_five_hundred_problems_where_folds_search_first(search_first: None) -> None:
    for seed in range(2000, 2250):
        check(seed)
