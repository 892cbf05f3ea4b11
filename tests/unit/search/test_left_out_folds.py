"""Fits on the full data, and the list that speaks for every fold: bounds hold, and no winner is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from engines import ENGINES, patch_all
from runs import new_context

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.search.api import solve
from sparsecv_mio.search.problems.left_out_folds import (
    LARGEST_LEVERAGE,
    WIDEST_LEVERAGE,
    FullFit,
    LeftOutFolds,
    clear_of_ties,
    enclose_held_out_errors,
    is_best_untied,
    is_well_known,
    largest_decrease,
    objective_threshold,
)
from sparsecv_mio.search.problems.one_tree_for_folds import (
    EVERY_FOLD,
    RequestedFolds,
    grow_alive_folds,
    is_usable,
    list_below_thresholds,
    solve_folds,
)
from sparsecv_mio.search.problems.squared import SquaredProblem, SquaredProblems
from sparsecv_mio.search.state.context import BestOnAllRows
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import NodeCount, SubproblemBounds
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.subsets import is_never_expired
from sparsecv_mio.units import ACCURATE_RTOL

Table = dict[tuple[int, ...], Any]


def drawn(seed: int, n: int, p: int) -> Dataset:
    """Two of the columns are correlated; every column counts, some little."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, -1] += 0.7 * X[:, 0]
    return Dataset.from_arrays(X, X @ np.linspace(2.0, -0.5, p) + rng.normal(size=n))


@cache
def enumerated(seed: int, n: int, p: int, spec: str, intercept: str, gamma: float) -> tuple[Table, Table, Table]:
    """Every support of 1 to p columns: its objective on all rows, and by fold without it, and its held-out error."""
    dataset = drawn(seed, n, p)
    folds, unit = make_folds(spec, dataset), standardize(dataset, "length", intercept).y_unit ** 2
    X, y, how = dataset.X, dataset.y, {"scale": "length", "intercept": intercept}
    whole, inside, error = {}, {}, {}
    for s in (s for size in range(1, p + 1) for s in combinations(range(p), size)):
        whole[s] = fit(X, y, s, gamma, **how).objective / unit
        models = [fit(X, y, s, gamma, rows=folds.train_rows(fold), **how) for fold in range(folds.k)]
        inside[s] = np.array([model.objective for model in models]) / unit
        rows = [folds.scored_rows(fold) for fold in range(folds.k)]
        error[s] = np.array([held_out_error(model, X, y, N) for model, N in zip(models, rows, strict=True)]) / unit
    return whole, inside, error


@dataclass(eq=False)
class Enumerated:
    """One gamma, every tau from 1 to p - 1; numbers in squared standard units.

    `f`, `inside` and `error` are tables by support.
    """

    seed: int = 0
    n: int = 30
    p: int = 4
    spec: str = "loo"
    intercept: str = "fold"
    gamma: float = 0.3

    def __post_init__(self) -> None:
        self.dataset = drawn(self.seed, self.n, self.p)
        self.folds = make_folds(self.spec, self.dataset)
        self.data = standardize(self.dataset, "length", self.intercept)
        self.taus = np.arange(1, self.p)
        grid = Grid.of([self.gamma], self.taus.tolist(), self.p)
        self.context = new_context(self.data, self.folds, grid)
        self.all_rows = BestOnAllRows(self.data, grid)
        self.all_rows.best = [solve_path(self.all_rows.problem(0), self.taus.tolist())]
        self.left_out = LeftOutFolds(self.all_rows, self.folds, 1)
        self.is_open = np.ones((len(self.taus), self.folds.k), dtype=bool)

    def incumbents(self, taus: Sequence[int]) -> tuple[list[np.ndarray], list[int]]:
        """Best subsets of the full data of some sizes, and the index of the size of each."""
        by_size = self.all_rows.best[0].by_size
        pairs = [(support, t) for t in taus for support in by_size[int(self.taus[t])].candidates]
        return [support for support, _ in pairs], [t for _, t in pairs]

    def full_fit(self, taus: Sequence[int]) -> FullFit:
        """The fit of all columns on the full data, with the best subsets of some sizes as incumbents."""
        return FullFit(self.left_out, 0, *self.incumbents(taus))

    def wanted(self, taus: Sequence[int]) -> RequestedFolds:
        """The open subproblems of some sizes."""
        return RequestedFolds(list(taus), self.is_open, is_never_expired)

    @cached_property
    def problem(self) -> SquaredProblem:
        """The full data as the search has it."""
        return SquaredProblems(self.context, self.all_rows).full(0)

    @cached_property
    def f(self) -> Table:
        """Objective on all rows."""
        return self._fits[0]

    @cached_property
    def inside(self) -> Table:
        """(K,) objective on the training rows of every fold."""
        return self._fits[1]

    @cached_property
    def error(self) -> Table:
        """(K,) held-out error of every fold."""
        return self._fits[2]

    @property
    def _fits(self) -> tuple[Table, Table, Table]:
        return enumerated(self.seed, self.n, self.p, self.spec, self.intercept, self.gamma)

    def of_size(self, size: int) -> list[tuple[int, ...]]:
        """Every support of a size."""
        return [s for s in self.f if len(s) == size]

    def best(self, size: int) -> list[tuple[int, ...]]:
        """The optimal support of every fold."""
        return [min(self.of_size(size), key=lambda s: self.inside[s][fold]) for fold in range(self.folds.k)]

    def truth(self) -> np.ndarray:
        """(T, K): held-out errors of the optimal supports."""
        return np.array([[self.error[s][fold] for fold, s in enumerate(self.best(t))] for t in self.taus.tolist()])

    def supports(self, size: int) -> list[np.ndarray]:
        """Every support of a size, as arrays."""
        return [np.array(s) for s in self.of_size(size)]

    def check(self, statements: Iterable[SubproblemBounds | NodeCount]) -> Checked:
        """Assert that every interval holds the truth, and every solved subproblem shows its optimal support."""
        found = Checked(np.zeros((len(self.taus), self.folds.k), dtype=bool), np.zeros(self.is_open.shape, dtype=bool))
        for known in statements:
            if isinstance(known, NodeCount):
                found.n_nodes += known.n_nodes
            else:
                self._check_bounds(known, found)
        return found

    def _check_bounds(self, known: SubproblemBounds, found: Checked) -> None:
        truth, folds = self.truth(), list(range(self.folds.k))[known.folds]
        for at in np.ndindex(known.best.shape):
            t, fold = known.taus[at[0]], folds[at[1]]
            best, h = self.best(int(self.taus[t]))[fold], truth[t, fold]
            assert known.lower[at] <= h * (1.0 + 1e-9) and known.upper[at] >= h * (1.0 - 1e-9)
            assert known.objective_upper[at] >= self.inside[best][fold] * (1.0 - 1e-12)
            if known.best[at] >= 0:
                shown = tuple(np.sort(known.supports[known.best[at]]).tolist())
                assert abs(known.objective[at] - self.inside[shown][fold]) <= 1e-9 * self.inside[shown][fold]
                assert abs(known.held_out[at] - self.error[shown][fold]) <= 1e-7 * self.error[shown][fold] + 1e-12
                assert shown == best or not known.is_solved[at]
            found.is_solved[t, fold] |= bool(known.is_solved[at])
            found.is_branched[t, fold] |= bool(known.is_branched[at])


@dataclass(eq=False)
class Checked:
    """What some statements solved, (T, K), and the nodes that they counted."""

    is_solved: np.ndarray
    is_branched: np.ndarray
    n_nodes: int = 0


VARIANTS = [("loo", "fold"), ("loo", "none"), ("blocks:3", "fold"), ("blocks:2", "global")]


def test_near_ties_are_not_clear() -> None:
    best = np.ones(4)
    second = 1.0 + np.array([0.0, 1e-10, 1e-6, 1.0])
    assert is_best_untied(best, second, 1e-12).tolist() == [False, False, True, True]
    assert is_best_untied(best, second, 1e-3).tolist() == [False, False, False, True]
    form = Enumerated().all_rows.normal_form(0)
    assert clear_of_ties(best, np.append(second[:3], np.inf), form).tolist()[0] is False
    assert bool(clear_of_ties(np.ones(1), np.array([np.inf]), form)[0])


CASES = [(seed, *variant) for seed in range(3) for variant in VARIANTS]


def raised_by(case: Enumerated) -> float:
    """What leverages are raised by."""
    return ACCURATE_RTOL + case.all_rows.normal_form(0).keep


def measured(case: Enumerated) -> tuple[float, np.ndarray, np.ndarray]:
    """The objective of all columns on all rows, and residual and leverage of every fold."""
    everything = tuple(range(case.p))
    leverage, residual = case.left_out.leverages(0)
    return case.f[everything], residual, leverage


@pytest.mark.parametrize(("seed", "spec", "intercept"), CASES)
def test_largest_decrease(seed: int, spec: str, intercept: str) -> None:
    case = Enumerated(seed, spec=spec, intercept=intercept)
    value, residual, leverage = measured(case)
    decrease = value - case.inside[tuple(range(case.p))]
    bound = largest_decrease(residual, leverage)
    rounding = 1e-13 * value
    assert np.all(decrease <= bound * (1.0 + 1e-9) + rounding)
    if spec == "loo":  # one row: the leverage is all there is
        exact = largest_decrease(residual, (leverage - raised_by(case)) / (1.0 + raised_by(case)))
        np.testing.assert_allclose(decrease, exact, rtol=1e-9, atol=rounding)


@pytest.mark.parametrize(("seed", "spec", "intercept"), CASES)
def test_no_winner_lies_above_its_threshold(seed: int, spec: str, intercept: str) -> None:
    case = Enumerated(seed, spec=spec, intercept=intercept)
    value, residual, leverage = measured(case)
    rng = np.random.default_rng(seed)
    winners = 0
    for size in case.taus.tolist():
        inside = np.array([case.inside[s] for s in case.of_size(size)])
        cutoff = inside.min(axis=0) + rng.uniform(0.0, 2.0, case.folds.k) * np.ptp(inside, axis=0)
        threshold = value + objective_threshold(cutoff - value, residual, leverage) * (1.0 + 1e-9)
        f = np.array([case.f[s] for s in case.of_size(size)])[:, None]
        below = inside <= cutoff
        assert np.all(f <= np.where(below, threshold, np.inf))
        winners += int((below & np.isfinite(threshold)).sum())
    assert winners > 0


@pytest.mark.parametrize(("seed", "spec", "intercept"), CASES)
def test_held_out_errors_stay_within_their_bounds(seed: int, spec: str, intercept: str) -> None:
    case = Enumerated(seed, spec=spec, intercept=intercept)
    value, residual, leverage = measured(case)
    rng, raised = np.random.default_rng(seed), False
    for size in case.taus.tolist():
        inside, error = (np.array([table[s] for s in case.of_size(size)]) for table in (case.inside, case.error))
        cutoff = inside.min(axis=0) + rng.uniform(0.0, 1.0, case.folds.k) * np.ptp(inside, axis=0)
        ends = residual * (1.0 - 1e-9), residual
        least, most = enclose_held_out_errors(cutoff, value, ends, leverage)
        is_inside, low, high = inside <= cutoff, *(np.broadcast_to(end, error.shape) for end in (least, most))
        assert np.all(low[is_inside] <= error[is_inside]) and np.all(error[is_inside] <= high[is_inside])
        assert np.isfinite(most).any()
        raised |= bool((least > 0.0).any())
    assert raised


def test_leverages_beyond_which_nothing_is_said() -> None:
    one = np.ones(2)
    assert np.isinf(largest_decrease(0.0 * one, np.array([1.0, 1.5]))).all()
    assert np.isinf(objective_threshold(one, one, np.array([WIDEST_LEVERAGE, 1.0]))).all()
    least, most = enclose_held_out_errors(one, 0.0, (one, one), np.array([LARGEST_LEVERAGE, 1.0]))
    assert np.isinf(most).all() and not least.any()


def test_a_support_whose_error_is_not_known_is_not_shown() -> None:
    case = Enumerated()
    root = case.full_fit([0, 1])
    scores = root.scores(0, case.folds.k).copy()
    scores.error[0, 3] = scores.held_out[0, 3] + 1.0
    known = is_well_known(root, scores, (0, scores.which.shape[1]))
    assert not known[0, 3] and known[0, :3].all() and not known[2].any()  # nothing was asked of the last row


def test_a_budget_that_does_not_suffice() -> None:
    case = Enumerated(p=6)
    found = case.check(list_below_thresholds(case.full_fit([2]), case.wanted([2]), 1, EVERY_FOLD))
    assert found.n_nodes >= 1 and not found.is_solved.any()


def test_nothing_is_decided_by_a_tree_that_did_not_end() -> None:
    case = Enumerated(p=6)
    found = case.check(grow_alive_folds(case.full_fit([1, 2]), case.wanted([1, 2]), 0))
    assert found.n_nodes == 0 and not found.is_solved.any()


def only(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_all(monkeypatch, ENGINES[engine])


@pytest.mark.parametrize("engine", ["", "enumerate", "shared"])
@pytest.mark.parametrize(("spec", "intercept"), VARIANTS)
def test_every_engine_solves_subproblems_as_enumeration_does(
    spec: str, intercept: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine:
        only(engine, monkeypatch)
    for seed in range(3):
        case = Enumerated(seed, n=48, spec=spec, intercept=intercept)
        found = case.check(solve_folds(case.full_fit([0, 1, 2]), case.wanted([0, 1, 2]), 100))
        assert (found.n_nodes > 0) >= bool(found.is_solved.any())
        if spec == "loo":
            assert found.is_solved.mean() > 0.9


def test_high_leverages_are_left_to_the_folds() -> None:
    assert is_usable(Enumerated().full_fit([0]))
    case = Enumerated(n=25, p=24, gamma=1e-6)
    supports, taus = case.incumbents([0])
    assert not is_usable(case.full_fit([0])) and case.problem.fit_all_columns(supports, taus) is None
    full_lower = np.zeros(len(case.taus))
    assert case.problem.bound_left_out(supports, taus, full_lower) is None
    assert list(case.problem.solve_left_out(supports, taus, case.is_open, 100, is_never_expired)) == []


def test_only_sizes_that_are_wanted() -> None:
    case = Enumerated(n=40)
    found = case.check(case.problem.solve_left_out(*case.incumbents([1]), case.is_open, 100, is_never_expired))
    assert found.n_nodes > 0 and found.is_solved[1].any() and not found.is_solved[[0, 2]].any()


def test_a_tree_that_the_clock_stops_solves_nothing() -> None:
    case = Enumerated(n=40)
    stopped = case.problem.solve_left_out(*case.incumbents([1]), case.is_open, 100, lambda: True)
    assert all(isinstance(known, NodeCount) or not known.is_solved.any() for known in stopped)


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_a_row_that_alone_determines_a_coefficient_excludes_no_pair(seed: int) -> None:
    """Without its fold, the first column is smaller by a factor of 2e8: the leverage of the fold is 1 to rounding."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=116)
    spike = 5e-9 * (x + 0.05 * rng.normal(size=116))
    X = np.column_stack([spike, x, rng.normal(size=(116, 36))])
    X[0, :2], y = (1.0, 2.0), 0.9 * x + 0.7 * rng.normal(size=116)
    y[0], labels, gammas = 17.0, np.repeat(np.arange(58), 2), [1e-18, 1000.0]
    record = solve(Dataset.from_arrays(X, y), folds=labels, gammas=gammas, taus=1, intercept="none", threads=1)
    penalty, errors = np.square(X - X.mean(axis=0)).sum(axis=0) / 2.0, []
    for gamma in gammas:
        total = 0.0
        for fold in range(58):
            A, b = X[labels != fold].astype(np.longdouble), y[labels != fold]
            beta = b @ A / (np.square(A).sum(axis=0) + gamma * penalty)
            best = int(np.argmin(np.square(b[:, None] - A * beta).sum(axis=0) + gamma * penalty * beta**2))
            total += float(np.square(y[labels == fold] - X[labels == fold, best] * beta[best]).sum())
        errors.append(total / 116)
    assert record.status == "proved" and record.cv_error == pytest.approx(min(errors), rel=1e-6)
