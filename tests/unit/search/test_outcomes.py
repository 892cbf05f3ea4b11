"""Problems of a search, by moments, by a solver of a vendor and by rows: what they state is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from every_support import brute_force_cell
from plain_ridge import ridge
from runs import drawn, new_context, new_run

from sparsecv_mio import thresholds
from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.formulation.near_ties import MioSettings, VendorListing
from sparsecv_mio.problem import objective
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.training_moments import TrainingMoments, training_moments
from sparsecv_mio.search.problems import many_columns
from sparsecv_mio.search.problems.fold_fits import FoldData, enclose_held_out
from sparsecv_mio.search.problems.many_columns import RowBasedProblems
from sparsecv_mio.search.problems.outcomes import bound_subproblems, show_fits
from sparsecv_mio.search.problems.protocol import Capability, Fits
from sparsecv_mio.search.problems.restricted import RestrictedProblem, VendorProblem
from sparsecv_mio.search.problems.squared import SquaredProblem, SquaredProblems
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.search.state.context import BestOnAllRows, Context
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import SubproblemBounds
from sparsecv_mio.trees.subsets import UNLIMITED, BestSubset, is_never_expired

GAMMAS, TAUS = (0.1, 2.0), (0, 1, 2, 3)


def context_of(seed: int = 0) -> Context:
    """Correlated columns in four folds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 6)) + 0.5 * rng.normal(size=(30, 1))
    data = Dataset.from_arrays(X, 2.0 * X[:, 1] - X[:, 5] + 0.4 * X[:, 0] + rng.normal(size=30))
    return new_context(standardize(data), make_folds("4", data, seed), Grid.of(GAMMAS, TAUS, 6))


def moments_of(context: Context, fold: int) -> TrainingMoments:
    return next(training_moments(context.data, context.folds, [fold]))[1]


def fold_of(context: Context, fold: int, g: int) -> FoldData:
    here = FoldData.from_moments(context.data, context.folds, fold, moments_of(context, fold))
    return here.with_gamma(float(context.grid.gammas[g]))


def best_support(context: Context, where: tuple[int, int, int]) -> tuple[int, ...]:
    """The best of all supports of a cell."""
    g, t, fold = where
    problem = fold_of(context, fold, g).problem
    return min(combinations(range(problem.q), int(context.grid.taus[t])), key=lambda s: ridge(problem, s)[1])


def held_out_error(context: Context, where: tuple[int, int, int], support: tuple[int, ...]) -> float:
    """Held-out sum of squares of a support, in standard units, from the rows."""
    g, _, fold = where
    dataset, folds = context.data.dataset, context.folds
    columns = context.data.columns[np.array(support, dtype=np.int64)].tolist()
    fit = objective.fit(dataset.X, dataset.y, columns, float(context.grid.gammas[g]), rows=folds.train_rows(fold))
    return float(objective.held_out_error(fit, dataset.X, dataset.y, folds.scored_rows(fold)) / context.data.y_unit**2)


EVERY = tuple(range(len(TAUS)))


@dataclass(frozen=True, eq=False)
class OtherFits(SquaredProblem):
    """A problem whose fits a test makes worse."""

    tied: bool = False
    vague: float = 0.0

    def fit(self, supports: Sequence[IntArray]) -> Fits:
        fits = super().fit(supports)
        slack = self.vague * fits.held_out
        value = np.full_like(fits.objective, fits.objective[0]) if self.tied else fits.objective
        return replace(
            fits, objective=value, objective_lower=value if self.tied else fits.objective_lower,
            objective_upper=value if self.tied else fits.objective_upper, held_out_lower=fits.held_out_lower - slack,
            held_out_upper=fits.held_out_upper + slack, is_accurate=fits.is_accurate & (self.vague == 0.0),
        )  # fmt: skip


def problems_of(context: Context, make: Any = SquaredProblem) -> SquaredProblems:
    return SquaredProblems(context, BestOnAllRows(context.data, context.grid), make)


def incumbent(support: tuple[int, ...]) -> BestSubset:
    """What a tree says that found a support and proved nothing."""
    return BestSubset(len(support), np.array(support, dtype=np.int64), 0.0, np.inf, (), (), 0.0, False, False)


def complete(problem: SparseProblem, supports: Sequence[tuple[int, ...]]) -> BestSubset:
    """What a tree says that listed these supports as all that can be optimal."""
    values = tuple(ridge(problem, support)[1] for support in supports)
    listed = tuple(np.array(support, dtype=np.int64) for support in supports)
    return BestSubset(len(supports[0]), listed[0], min(values), max(values), listed, values, 1e9, True, True)


def held(bounds: SubproblemBounds, place: int) -> list[int]:
    """The support that a subproblem shows."""
    return sorted(bounds.supports[int(bounds.best[place, 0])].tolist())


def test_relaxations_narrow_what_the_ridge_ball_leaves() -> None:
    context = context_of(1)
    problem = problems_of(context).fold(0, 1)
    known = [incumbent(best_support(context, (1, t, 0))) for t in EVERY]
    ball, relaxed = (
        bound_subproblems(problem, 1, EVERY, 0, known, False, lambda late=late: late) for late in (True, False)
    )  # fmt: skip
    widths = [(bounds.upper - bounds.lower)[1:, 0] for bounds in (ball, relaxed)]
    assert np.all(widths[1] <= widths[0] * (1.0 + 1e-9)) and widths[1].sum() < 0.9 * widths[0].sum()


def test_values_that_the_fits_do_not_confirm_solve_nothing() -> None:
    problem = problems_of(context_of()).fold(0, 0)
    found = problem.solve([2], [], 1 << 40, is_never_expired)
    wrong = replace(found.by_size[2], values=tuple(1.01 * value for value in found.by_size[2].values))
    bounds = bound_subproblems(problem, 0, (2,), 0, [wrong], True, is_never_expired)
    assert not bounds.is_solved.any() and bounds.lower[0, 0] <= bounds.upper[0, 0] < np.inf


def test_ties_widen_a_solved_subproblem() -> None:
    """Two supports of the same training objective: the interval holds the losses of both."""
    problem = problems_of(context_of(), OtherFits).fold(0, 0)
    supports = [(1, 5), (0, 1)]
    fits = problem.fit([np.array(support) for support in supports])
    assert isinstance(problem, OtherFits)
    tied = replace(problem, tied=True)
    bounds = bound_subproblems(tied, 0, (2,), 0, [complete(problem.problem, supports)], True, is_never_expired)
    assert bounds.is_solved.all() and bounds.is_branched.all() and bounds.tied == {(0, 0): [0, 1]}
    assert bounds.lower[0, 0] <= fits.held_out.min() and fits.held_out.max() <= bounds.upper[0, 0]
    assert bounds.tie[0, 0] == pytest.approx(np.ptp(fits.held_out))
    assert held(bounds, 0) == [0, 1]  # the first in the order of columns


@dataclass(frozen=True, eq=False)
class BlurredFits(SquaredProblem):
    """A problem whose objectives a test makes uncertain by a number."""

    blur: float = 0.0

    def fit(self, supports: Sequence[IntArray]) -> Fits:
        fits = super().fit(supports)
        return replace(
            fits, objective_lower=fits.objective - self.blur, objective_upper=fits.objective + self.blur
        )  # fmt: skip


@pytest.mark.parametrize(("share", "is_tied"), [(0.4, False), (0.6, True)])
def test_supports_are_tied_where_the_bounds_on_their_objectives_overlap(share: float, is_tied: bool) -> None:
    problem = problems_of(context_of(), BlurredFits).fold(0, 0)
    supports = [(1, 5), (0, 1)]
    fits = problem.fit([np.array(support) for support in supports])
    assert isinstance(problem, BlurredFits)
    blurred = replace(problem, blur=share * float(np.ptp(fits.objective)))
    bounds = bound_subproblems(blurred, 0, (2,), 0, [complete(problem.problem, supports)], True, is_never_expired)
    assert bounds.is_solved.all() and bool(bounds.tied) == is_tied
    best, other = fits.held_out[np.argsort(fits.objective)]
    assert bounds.lower[0, 0] <= best <= bounds.upper[0, 0]
    assert (bounds.lower[0, 0] <= other <= bounds.upper[0, 0]) == is_tied


def test_a_held_out_loss_that_is_not_known_well_solves_nothing() -> None:
    problem = problems_of(context_of(), OtherFits).fold(0, 0)
    exact = problem.fit([np.array([1, 5])]).held_out[0]
    assert isinstance(problem, OtherFits)
    vague = replace(problem, vague=0.1)
    bounds = bound_subproblems(vague, 0, (2,), 0, [complete(problem.problem, [(1, 5)])], True, is_never_expired)
    assert not bounds.is_solved.any() and bounds.is_final.all() and bounds.held_out[0, 0] == exact
    assert bounds.lower[0, 0] == pytest.approx(0.9 * exact) and bounds.upper[0, 0] == pytest.approx(1.1 * exact)


def test_without_relaxations_every_support_below_the_value_is_inside() -> None:
    """The ridge ball knows nothing of tau: what it says holds for every b with f(b) <= upper."""
    here = fold_of(context_of(1), 0, 0)
    supports = [np.array(support) for size in (1, 2, 3) for support in combinations(range(6), size)]
    fits = here.fit(supports)
    upper = float(np.median(fits.objective))
    found = enclose_held_out(here, [3], np.array([upper]), supports[-1:], False)
    assert 0.0 < found.objective_lower[0] <= fits.objective.min()
    inside = fits.held_out[fits.objective <= upper]
    assert len(inside) > 5 and found.lower[0] <= inside.min() and inside.max() <= found.upper[0]


HIGHS = MioSettings("highs")


def refused(*given: Any, **how: Any) -> None:
    raise AssertionError("the solver was asked")


def test_steps_with_a_limit_on_nodes_are_trees_of_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VendorListing, "solve", refused)
    problems = problems_of(context_of(), partial(VendorProblem, mio=HIGHS))
    assert problems.fold(1, 0).solve([2], [], 0, is_never_expired).by_size[2].support.size == 2
    assert problems.full(0).solve([2], [], UNLIMITED, is_never_expired).by_size[2].complete, (
        "the model of the full data"
    )


def test_a_cutoff_of_the_full_data_is_one_mio_that_bounds_its_optimum() -> None:
    pytest.importorskip("highspy", reason="HiGHS is not installed")
    problem = problems_of(context_of(), partial(VendorProblem, mio=HIGHS)).full(1)
    subset = problem.solve([2], [np.array([0, 2])], UNLIMITED, is_never_expired, {2: 1e9}).by_size[2]
    best = min(ridge(problem.problem, support)[1] for support in combinations(range(problem.problem.q), 2))
    assert not subset.complete and len(subset.support) == 2
    assert 0.999 * best <= subset.lower <= best <= subset.upper * (1 + 1e-12) <= 1.001 * best


def test_restricted_problems_enclose_by_the_ball_and_claim_no_capability() -> None:
    context, constraints = context_of(), SideConstraints(at_most=((1, (1, 5)),))
    problem = problems_of(context, partial(RestrictedProblem, constraints=constraints)).fold(2, 0)
    support = np.array([0, 1])
    ends = problem.enclose([2], np.array([ridge(problem.problem, (0, 1))[1]]), [support], is_never_expired)
    error = held_out_error(context, (0, 2, 2), (0, 1))
    assert problem.capabilities == Capability.NONE and ends.lower[0] <= error <= ends.upper[0]
    assert problem.has_one_support(0) and not problem.has_one_support(6)


DRAW: dict[str, Any] = {"p": 18, "n": 16, "folds": "4"}
FEW = pytest.mark.parametrize("few", [False, True])  # whether a matrix of what screening leaves is too large


def row_problems(few: bool, monkeypatch: pytest.MonkeyPatch, **words: Any) -> RowBasedProblems:
    """Problems of a small draw; every call makes them again."""
    monkeypatch.setattr(thresholds, "PRODUCT_BYTES", 1)
    if few:
        monkeypatch.setattr(many_columns, "EXACT_COLUMNS", 2)
        monkeypatch.setattr(many_columns, "PRODUCT_BYTES", 0)
    problems = new_run(*drawn(**DRAW), **words).problems
    assert isinstance(problems, RowBasedProblems)
    return problems


@cache
def truth(g: int, tau: int, fold: int) -> tuple[float, float, float]:
    """The smallest objective of a fold, or of the full data, and the ends of the held-out losses of its optima."""
    standard, folds, grid = drawn(**DRAW)
    data, unit = standard.dataset, standard.y_unit**2
    rows = np.arange(data.n) if fold == ALL_ROWS else folds.train_rows(fold)
    best = brute_force_cell(data.X, data.y, tau, float(grid.gammas[g]), rows=rows)
    low, high = best.held_out(data.X, data.y, folds.scored_rows(fold)) if fold != ALL_ROWS else (0.0, np.inf)
    return best.objective / unit, low / unit, high / unit


@FEW
@pytest.mark.parametrize("node_limit", [0, 1, 1 << 13])
def test_outcomes_hold_the_truth(few: bool, node_limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = row_problems(few, monkeypatch)
    starts, n_complete = [np.arange(size) for size in (1, 2, 3)], 0
    for g, fold in product(range(2), (0, 3, ALL_ROWS)):
        problem = problems.full(g) if fold == ALL_ROWS else problems.fold(fold, g)
        solved = problem.solve([1, 2, 3], starts, node_limit, is_never_expired)
        subsets = [solved.by_size[size] for size in (1, 2, 3)]
        known = (
            None
            if fold == ALL_ROWS
            else bound_subproblems(problem, g, (0, 1, 2), fold, subsets, False, is_never_expired)
        )
        for t, subset in enumerate(subsets):
            least, low, high = truth(g, t + 1, fold)
            assert subset.lower <= least * (1.0 + 1e-9) and subset.upper >= least * (1.0 - 1e-9)
            assert len(subset.support) == t + 1
            n_complete += subset.complete
            if known is not None:
                assert known.lower[t, 0] <= low * (1.0 + 1e-7) and known.upper[t, 0] >= high * (1.0 - 1e-7)
                assert known.objective_lower[t, 0] <= least * (1.0 + 1e-9)
    assert node_limit == 1 or n_complete == (18 if node_limit else 0)


@FEW
def test_a_search_that_stops_at_any_turn_goes_on_from_a_checkpoint(few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    row_problems(few, monkeypatch)

    def made() -> Any:
        return new_run(*drawn(p=24, n=20, folds="4", noise=2.0))

    whole = made()
    n_turns = sum(1 for _ in whole.turns())
    exact = whole.state.cells
    assert exact.decided.all() and n_turns > 5
    for turn in np.linspace(0, n_turns - 1, 4).astype(int).tolist():
        first, again = made(), made()
        for _, _ in zip(range(turn + 1), first.turns(), strict=False):
            pass
        cells = first.state.cells
        assert np.all(cells.lower <= exact.upper * (1.0 + 1e-9)) and np.all(exact.lower <= cells.upper * (1.0 + 1e-9))
        again.resume(first.checkpoint())
        assert np.array_equal(again.state.cells.lower, cells.lower)
        assert sum(1 for _ in again.turns()) <= n_turns + 1
        assert again.state.cells.decided.all()
        assert np.allclose(again.state.cells.nominal, exact.nominal, rtol=1e-9)


def test_without_branching_sizes_are_bounded_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = row_problems(False, monkeypatch, method="bounds", gap=1e-4)
    for fold in range(4):
        solved = problems.fold(fold, 1).solve([2], [], 1 << 13, is_never_expired)
        least, _, _ = truth(1, 2, fold)
        assert solved.finished and 0.0 < solved.by_size[2].lower <= least * (1.0 + 1e-9)


def test_sizes_without_a_support_have_no_fits() -> None:
    """A limit may end the relaxations of a fold before any support is known."""
    nothing = np.zeros(0)
    fits = Fits([], *[nothing] * 6, np.zeros(0, dtype=bool))
    assert show_fits(0, (), slice(3, 4), fits).objective_upper[:, 0].shape == (0,)
