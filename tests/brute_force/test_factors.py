"""Whole factors: every interval holds what an enumeration over terms finds, and `verify` agrees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest
from exact import ExactProblem
from slow import slow
from thin_columns import END_RTOL

import sparsecv_mio as sc
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.data.weights import weighted
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.near import collecting
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.search.deadline import Deadline

KINDS = ("plain", "near copy", "copy of a factor", "rare level", "wide", "numbers", "of levels", "far away")
ALIKE, APART = 1e-11, 1e-8  # relative: objectives that floats do not tell apart, and what an end may be off


@dataclass(frozen=True)
class Case:
    """Data, folds, the columns of every term and what is asked."""

    data: sc.Dataset
    plan: FoldPlan
    terms: list[list[int]]
    asked: dict[str, Any]
    how: tuple[str, str]
    kind: str

    def allowed(self, tau: int) -> list[list[int]]:
        """Columns of every model of up to tau terms."""
        names, asked = self.data.names, Restrictions(**self.asked).resolve_names(self.data.names)
        adjusted = [names.index(name) for name in asked.adjust]
        terms = [[j for j in term if names[j] not in (*asked.force_out, *asked.adjust)] for term in self.terms]
        made = []
        for size in range(tau + 1):
            for some in combinations([term for term in terms if term], size):
                columns = {names[j] for term in some for j in term}
                kept = columns.issuperset(asked.force_in) and all(
                    len(columns.intersection(limit.features)) <= limit.count for limit in asked.at_most
                )
                kept &= all(columns.issuperset(rule.parents) for rule in asked.hierarchy if rule.feature in columns)
                if kept:
                    made.append(sorted(adjusted + [j for term in some for j in term]))
        return made


def factor(rng: np.random.Generator, n: int, levels: int) -> np.ndarray:
    """Zeros and ones of every level, each of which some row has."""
    codes = rng.permutation(np.concatenate([np.arange(levels), rng.integers(0, levels, n - levels)]))
    return np.eye(levels)[codes]


def drawn(seed: int) -> Case:
    """Return a case with one to three factors of two to five levels."""
    rng = np.random.default_rng([42, seed])
    kind, k = KINDS[seed % len(KINDS)], int(rng.integers(3, 6))
    n = int(rng.integers(8, 12)) if kind == "wide" else int(rng.integers(14, 26))
    sizes = rng.integers(2, 6, size=rng.integers(1, 4)).tolist()
    blocks = [factor(rng, n, levels) for levels in sizes]
    if kind == "copy of a factor" and len(blocks) > 1:
        blocks[1] = blocks[0][:, rng.permutation(sizes[0])].copy()
        if seed % 16 < 8:
            blocks[1][:2] = blocks[1][1::-1]
    if kind == "rare level":
        blocks[0][:] = np.eye(sizes[0])[np.minimum(np.arange(n) * 0, 0)]
        blocks[0][0], blocks[0][1] = np.eye(sizes[0])[1], np.eye(sizes[0])[-1]
    if kind == "numbers":
        blocks[0] = rng.normal(size=(n, sizes[0]))
    singles = [rng.normal(size=(n, 1)) for _ in range(rng.integers(1, 4))]
    if kind == "near copy":
        singles.append(singles[0] + 10.0 ** -rng.integers(2, 9) * rng.normal(size=(n, 1)))
    if kind == "of levels":
        singles.append(blocks[0][:, :1] + rng.choice([0.0, 1e-3]) * rng.normal(size=(n, 1)))
    names = [f"f{i}={'abcde'[level]}" for i, block in enumerate(blocks) for level in range(block.shape[1])]
    X = np.hstack([*blocks, *singles])
    if kind == "far away":
        X = X + rng.choice([0.0, 1e5, -30.0], size=X.shape[1])
    names += [f"x{i}" for i in range(len(singles))]
    y = X @ (rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.6)) + rng.choice([0.1, 1.0]) * rng.normal(size=n)
    data = sc.Dataset.from_arrays(X, y, names=names)
    labels = rng.permutation(np.arange(n) % k)
    plan = folds_from_labels(np.unique(labels, return_inverse=True)[1])
    if seed % 3 == 0:
        data, plan = weighted(data, rng.choice([0.5, 1.0, 3.7], size=n), lambda _: plan, name="w", by_row=True)
    ends = np.cumsum([0, *(block.shape[1] for block in (*blocks, *singles))]).tolist()
    terms = [list(range(low, high)) for low, high in zip(ends, ends[1:], strict=False)]
    how = str(rng.choice(["length", "variance", "none"])), str(rng.choice(["fold", "fold", "global", "none"]))
    return Case(data, plan, terms, asked_of(seed, rng, names), how, kind)


def asked_of(seed: int, rng: np.random.Generator, names: list[str]) -> dict[str, Any]:
    """Return what is asked of the terms beside that they are whole."""
    asked: dict[str, Any] = {"count": "factors"}
    others = [name for name in names if name.startswith("x")]
    if seed % 5 == 1:
        asked["force_in"] = ["f0"]
    if seed % 5 == 2:
        asked["at_most"] = [(1, ["f0", others[0]])]
    if seed % 5 == 3:
        asked["hierarchy"] = [f"{others[0]}=f0"] if rng.random() < 0.5 else {"f0": [others[0]]}
    if seed % 10 == 4:
        asked["force_out"] = ["f0=a"]
    if seed % 10 == 9:
        asked["adjust"] = [others[0]]
    return asked


class Fits(NamedTuple):
    """Objectives and held-out sums of squares of some models, in the order in which they were asked for."""

    value: np.ndarray
    error: np.ndarray


def fits(case: Case, models: list[list[int]], gamma: float, train: np.ndarray, test: np.ndarray) -> Fits:
    """Fit by an orthogonal factorisation of rows and penalties: nothing of the package."""
    X, y, n = case.data.X, case.data.y, case.data.n
    w = np.ones(n) if case.data.row_weights is None else np.asarray(case.data.row_weights)
    about = np.average(X, axis=0, weights=w)
    length = np.sqrt(w @ (X - about) ** 2)
    per = {"length": length, "variance": length / np.sqrt(w.sum()), "none": np.ones(X.shape[1])}[case.how[0]]
    per = np.where([name in case.asked.get("adjust", ()) for name in case.data.names], 0.0, per)
    if case.how[1] == "global":
        X, y = X - about, y - np.average(y, weights=w)
    centred, root = case.how[1] == "fold", np.sqrt(w[train])
    mean = np.average(X[train], axis=0, weights=w[train]) if centred else np.zeros(X.shape[1])
    middle = np.average(y[train], weights=w[train]) if centred else 0.0
    value, error = [], []
    for S in models:
        A = np.vstack([(X[train][:, S] - mean[S]) * root[:, None], np.diag(np.sqrt(gamma / 2.0) * per[S])])
        b = np.concatenate([(y[train] - middle) * root, np.zeros(len(S))])
        size = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
        beta = np.linalg.lstsq(A / size, b, rcond=None)[0] / size if S else np.zeros(0)
        value.append(float(np.sum((b - A @ beta) ** 2)))
        error.append(float(w[test] @ (y[test] - middle - (X[test][:, S] - mean[S]) @ beta) ** 2))
    return Fits(np.array(value), np.array(error))


def cv_error(case: Case, gamma: float, tau: int) -> tuple[float, float]:
    """Least and largest CV error over the optima of the folds, as far as floats tell these."""
    models, low, high, total = case.allowed(tau), 0.0, 0.0, 0.0
    w = np.ones(case.data.n) if case.data.row_weights is None else np.asarray(case.data.row_weights)
    for fold in range(case.plan.k):
        train, test = case.plan.train_rows(fold), case.plan.scored_rows(fold)
        made = fits(case, models, gamma, train, test)
        tied = made.error[made.value <= made.value.min() * (1.0 + ALIKE)]
        low, high, total = low + tied.min(), high + tied.max(), total + w[test].sum()
    return low / total, high / total


def exact_cv_error(case: Case, gamma: float, tau: int) -> tuple[float, float]:
    """Do the same in fractions, where floats lose the digits: the largest models alone, none of which is worse."""
    models = case.allowed(tau)
    largest = [tuple(S) for S in models if not any(set(S) < set(other) for other in models)]

    class Terms(ExactProblem):
        def supports(self, tau: int) -> list[tuple[int, ...]]:
            return largest

    free = [case.data.names.index(name) for name in case.asked.get("adjust", ())]
    made = Terms.from_data(case.data, case.plan, case.how, range(case.data.p), free, free)
    low, high = made.cv_error(gamma, tau)
    return float(low), float(high)


def held(low: float, high: float, row: Any, room: float) -> bool:
    """Whether an interval holds a CV error, or of several optima that floats do not tell apart one."""
    if high - low <= room:
        return bool(row.lower - room <= low and high <= row.upper + room)
    return bool(row.lower - room <= high and low <= row.upper + room)


def check(seed: int) -> str:
    """Solve a drawn case; return its kind where it is refused, and `solved` where every interval holds."""
    case = drawn(seed)
    rng = np.random.default_rng([seed, 1])
    within = Restrictions(**case.asked).resolve_names(case.data.names)
    taus = range(within.features(within.force_in), within.n_selectable_features(case.data.p) + 1)
    gammas = [[0.01, 1.0], [0.1], [1e-4, 0.3]][seed % 3]
    try:
        record = sc.cross_validate(
            case.data, case.plan, gammas=gammas, taus=taus, gap=float(rng.choice([0.0, 1e-2])), threads=1,
            method=str(rng.choice(["auto", "grid"])), scale=case.how[0], intercept=case.how[1],
            stability=0.5 if seed % 7 == 0 else None, one_se=seed % 7 == 1, **case.asked,
        )  # fmt: skip
    except BadInput as refusal:
        return str(refusal)
    for row in record.table:
        low, high = cv_error(case, row.gamma, row.tau)
        room = APART * max(high, 1e-6 * float(np.var(case.data.y)))
        where = (seed, case.kind, row.gamma, row.tau, row.lower, low, high, row.upper)
        if not held(low, high, row, room):
            assert held(*exact_cv_error(case, row.gamma, row.tau), row, END_RTOL * row.upper), where
    report = sc.verify(record, case.data, case.plan)
    assert report.ok, (seed, case.kind, report.failures)
    assert type(record).from_json(record.to_json()) == record, seed
    return "solved"


def check_on_all_rows(seed: int) -> str:
    """Best subsets of every size, and one MIO, against all models."""
    case = drawn(seed)
    within = Restrictions(**case.asked).resolve_names(case.data.names)
    taus = range(within.features(within.force_in), within.n_selectable_features(case.data.p) + 1)
    gamma, rows = (0.01, 0.5)[seed % 2], np.arange(case.data.n)
    how = {"scale": case.how[0], "intercept": case.how[1]}
    try:
        path = sc.best_subsets(case.data, gammas=[gamma], taus=taus, **how, **case.asked)
    except BadInput as refusal:
        return str(refusal)
    assert sc.verify(path, case.data).ok, seed
    best = {tau: fits(case, case.allowed(tau), gamma, rows, rows).value.min() for tau in taus}
    for row in path.path:
        room = APART * (best[row.tau] + 1e-6 * float(case.data.y @ case.data.y))
        assert row.lower - room <= best[row.tau] <= row.upper + room, (seed, case.kind, row, best[row.tau])
        assert row.proved or not np.isfinite(row.upper) or case.kind != "plain", seed
    tau = taus[len(taus) // 2]
    found = fit_one(case.data, tau=tau, gamma=gamma, side=SideOptions(**case.asked), **how)
    room = APART * (best[tau] + 1e-6 * float(case.data.y @ case.data.y))
    assert found.lower - room <= best[tau] <= found.objective + room, (seed, case.kind, found, best[tau])
    report = sc.verify(found, case.data)
    assert report.ok, (seed, report.failures)
    return "solved"


def values_of(case: Case, models: list[list[int]], gamma: float, by: str) -> np.ndarray:
    """Return the training objectives, or the CV errors where every fold has the model, of some models."""
    rows = np.arange(case.data.n)
    if by == "objective":
        return fits(case, models, gamma, rows, rows).value
    w = np.ones(case.data.n) if case.data.row_weights is None else np.asarray(case.data.row_weights)
    dealt = [(case.plan.train_rows(j), case.plan.scored_rows(j)) for j in range(case.plan.k)]
    errors = sum(fits(case, models, gamma, *rows_of_fold).error for rows_of_fold in dealt)
    return np.asarray(errors / sum(w[test].sum() for _, test in dealt))


def check_list(seed: int) -> str:
    """List what is near the best of every number of terms: none is missing, none too many."""
    case = drawn(seed)
    case = replace(case, asked={word: case.asked[word] for word in case.asked if word not in ("at_most", "hierarchy")})
    rng, names = np.random.default_rng([seed, 2]), case.data.names
    within = Restrictions(**case.asked).resolve_names(names)
    share, gamma, by = (0.0, 0.02, 0.3)[seed % 3], (1e-3, 0.1, 1.0)[int(rng.integers(3))], ("cv", "objective")[seed % 2]
    taus = range(max(within.features(within.force_in), 1), within.n_selectable_features(case.data.p) + 1)
    try:
        record = sc.near_optimal(
            case.data, case.plan, gamma=gamma, taus=taus, within=share, by=by, most=None, scale=case.how[0],
            intercept=case.how[1], **case.asked,
        )  # fmt: skip
    except BadInput as refusal:
        return str(refusal)
    free = {names.index(name) for name in within.adjust}
    varying = np.flatnonzero(np.ptp(case.data.X, axis=0) > 0.0)
    for size in record.sizes:
        models = exactly(case, size.tau)
        truth = values_of(case, models, gamma, by)
        room = 1e-7 * (truth.min() + 1e-6 * float(np.var(case.data.y)) * (case.data.n if by == "objective" else 1))
        said = {tuple(sorted(map(names.index, model.support))): model.value
                for model in record.models if model.tau == size.tau}  # fmt: skip
        where = (seed, case.kind, by, size)
        assert size.lower <= truth.min() + room and size.best >= truth.min() - room, where
        assert size.best <= truth.min() + room or record.status == "limit", where
        for S, value in zip(models, truth.tolist(), strict=True):
            columns = tuple(sorted({*S}.intersection(varying.tolist()) - free))
            if columns in said:
                assert abs(said.pop(columns) - value) <= room + 1e-7 * value, (where, S, value)
                assert value <= (1.0 + share) * size.best + 2.0 * room, (where, S, value)
            else:
                assert value >= size.complete_to - 2.0 * room, (where, S, value)
        assert not said, (where, said)
    report = sc.verify(record, case.data, case.plan)
    assert report.ok, (seed, case.kind, report.failures)
    return record.status


def exactly(case: Case, tau: int) -> list[list[int]]:
    """Columns of every model of exactly tau terms."""
    names = case.data.names
    free = {names.index(name) for name in Restrictions(**case.asked).resolve_names(names).adjust}
    chosen = [term for term in case.terms if not free.issuperset(term)]
    models = case.allowed(tau)
    return [S for S in models if sum(not set(term).isdisjoint(S) for term in chosen) == tau]


def check_common(seed: int) -> str:
    """Find the subset of whole terms that is best for all folds: its certified interval holds the least error."""
    case = drawn(seed)
    case = replace(case, asked={word: case.asked[word] for word in case.asked if word not in ("at_most", "hierarchy")})
    within = Restrictions(**case.asked).resolve_names(case.data.names)
    taus = range(max(within.features(within.force_in), 1), within.n_selectable_features(case.data.p) + 1)
    gammas = [[0.01, 1.0], [0.1], [1e-3, 0.3]][seed % 3]
    try:
        record = best_common_subset(
            case.data, case.plan, gammas=gammas, taus=taus, gap=(0.0, 1e-2)[seed % 2], scale=case.how[0],
            intercept=case.how[1], **case.asked,
        )  # fmt: skip
    except BadInput as refusal:
        return str(refusal)
    models = {tau: exactly(case, tau) for tau in taus}
    truth = {(gamma, tau): values_of(case, models[tau], gamma, "cv").min() for gamma in gammas for tau in taus}
    room = 1e-7 * (min(truth.values()) + 1e-6 * float(np.var(case.data.y)))
    where = (seed, case.kind, record.lower, min(truth.values()), record.upper)
    assert record.lower - room <= min(truth.values()) <= record.upper + room, where
    for row in record.table:
        least = truth[row.gamma, row.tau]
        assert row.lower - room <= least <= row.cv_error * (1.0 + 1e-7) + room, (where, row, least)
    report = sc.verify(record, case.data, case.plan)
    assert report.ok, (seed, case.kind, report.failures)
    assert type(record).from_json(record.to_json()) == record, seed
    return record.status


@pytest.mark.parametrize("seed", [*range(400, 408), *slow([*range(408, 412), *range(6000, 6300)])])
def test_common_subsets(seed: int) -> None:
    assert check_common(seed) == "proved" or seed % 8 == 3 or seed >= 6000


@pytest.mark.parametrize("seed", [*range(200, 208), *slow([*range(208, 216), *range(3000, 3400)])])
def test_lists_of_models_near_the_best(seed: int) -> None:
    assert check_list(seed) == "proved" or seed >= 3000


@pytest.mark.parametrize(("seed", "checks"), [(5089, 6), (5106, 0), (5109, 3), (5129, 0), (5159, 7), (5177, 2)])
def test_lists_that_a_limit_cuts(seed: int, checks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is known when the time is over holds."""
    asked = iter(range(checks))
    monkeypatch.setattr(Deadline, "has_expired", lambda _: next(asked, None) is None)
    assert check_list(seed) == "limit"


@pytest.mark.parametrize("seed", range(220, 228))
def test_lists_of_branches_that_are_split(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "PATH_SLICE", 3)
    monkeypatch.setattr(collecting, "NODES_A_SUPPORT", 0)
    monkeypatch.setattr(collecting, "STEP_NODES", 2)
    monkeypatch.setattr(collecting, "LEAST_SPLIT", 1)
    assert check_list(seed) == "proved"


BLOCKS = slow(range(first, first + 50) for first in range(1000, 1400, 50))


@pytest.mark.parametrize("seeds", [range(8), *slow([range(8, 24)]), *BLOCKS])
def test_intervals_of_searches(seeds: range) -> None:
    for seed in seeds:
        assert check(seed) == "solved" or seed % 8 == 3 or seed >= 1000


@pytest.mark.parametrize("seeds", [range(100, 108), *slow([range(108, 116)]), *BLOCKS])
def test_best_subsets_and_one_mio(seeds: range) -> None:
    for seed in seeds:
        assert check_on_all_rows(seed) == "solved" or seed % 8 == 3 or seed >= 1000


def test_a_factor_has_one_degree_of_freedom_less_than_levels() -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([factor(rng, 40, 4), rng.normal(size=40)])
    data = sc.Dataset.from_arrays(
        X, X @ [1.0, -1.0, 0.5, 0.0, 1.0] + rng.normal(size=40), names=["f=a", "f=b", "f=c", "f=d", "x"]
    )
    table = sc.best_subsets(data, gammas=[1e-9], taus=[2], count="factors").to_frame(data)
    A = np.column_stack([np.ones(40), X[:, 1:]])
    rss = float(np.linalg.lstsq(A, data.y, rcond=None)[1][0])
    total = float(np.sum((data.y - data.y.mean()) ** 2))
    assert table["adjusted"][0] == pytest.approx(1.0 - (rss / (40 - 5)) / (total / 39), rel=1e-6)
    assert table["bic"][0] == pytest.approx(40 * np.log(rss / total) + 5 * np.log(40), rel=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": "factor"}, "^count: 'factor' is neither columns nor factors"),
        ({"count": [["x0", "f0=a"], ["f0=a", "f0=b"]]}, "^count: column 'f0=a' is in two factors"),
        (
            {"count": "factors", "nonnegative": ["f0=a"]},
            "^nonnegative, count: column 'f0=a' is a level of a factor; .*; give count=.columns.$",
        ),
        ({"count": "factors", "model": "average"}, "^count: requires model pair, not average"),
        ({"count": "factors", "method": "rounds"}, "^count: requires method auto, algorithm1 or grid, not rounds"),
        ({"count": "factors", "backend": "highs"}, "^count: requires backend native, not highs"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    case = drawn(0)
    with pytest.raises(BadInput, match=message):
        sc.cross_validate(case.data, case.plan, gammas=[0.1], taus=[1], **given)


def test_estimators_take_columns_that_count_as_one() -> None:
    case = drawn(0)
    record = sc.cross_validate(case.data, case.plan, gammas=[0.1], taus=[1, 2], threads=1, count="factors")
    cv = [(case.plan.train_rows(j), case.plan.scored_rows(j)) for j in range(case.plan.k)]
    terms = [term for term in case.terms if len(term) > 1]
    model = sc.BestSubsetRidgeCV(cv=cv, gammas=[0.1], taus=[1, 2], count=terms)
    weights = case.data.row_weights
    model.fit(case.data.X, case.data.y, sample_weight=weights)
    chosen = tuple(name for name, inside in zip(case.data.names, model.support_, strict=True) if inside)
    assert chosen == record.support and model.tau_ == record.tau
    one = sc.BestSubsetRidge(tau=2, gamma=0.1, count=terms).fit(case.data.X, case.data.y)
    assert one.tau_ == 2 and all(len({bool(one.support_[j]) for j in term}) == 1 for term in terms)


@pytest.mark.parametrize("change", ["partial", "too many", "not whole"])
def test_verify_refuses_models_of_other_terms(change: str) -> None:
    case = drawn(0)
    record = sc.cross_validate(case.data, case.plan, gammas=[0.1], taus=[1, 2], threads=1, count="factors", gap=0.0)
    assert sc.verify(record, case.data, case.plan).ok
    if change == "partial":
        changed = replace(record, support=record.support[1:])
    elif change == "too many":
        changed = replace(record, tau=record.tau - 1, refit=replace(record.refit, tau=record.tau - 1))
    else:
        changed = replace(record, request=replace(record.request, restrictions=None))
    assert not sc.verify(changed, case.data, case.plan).ok
