"""The one loop searches a problem class that nobody wrote for it, whatever the class says that it can do.

The class enumerates supports. Its loss is invented: squares with a weight of its own for every row. The pair and all
bounds are compared with the enumeration of all supports in all folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial, reduce
from itertools import combinations
from operator import or_
from typing import Any

import numpy as np
import pytest
from engines import patch_all, planned
from runs import new_run, to_end

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search import grid_search
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.problems.protocol import (
    Capability,
    Enclosed,
    Fits,
    FoldProblem,
    IsExpired,
    SupportsFound,
    SupportsOfPass,
)
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import SubproblemBounds
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets

N, P, GAMMAS, MARGIN = 18, 4, [0.1, 2.0], 1e-9
ROW_WEIGHT = 1.0 + (np.arange(N) % 3) / 4.0
CAPABILITIES = (
    Capability.SHARED_TREE, Capability.LEFT_OUT_FITS, Capability.WEIGHTED_RELAXATIONS, Capability.WEIGHTED_TREES,
    Capability.HOLD_OUT, Capability.FULL_DATA_RELAXATIONS, Capability.FOLD_SEARCHES,
)  # fmt: skip
SUBSETS = [
    reduce(or_, (capability for i, capability in enumerate(CAPABILITIES) if bits >> i & 1), Capability.NONE)
    for bits in range(1 << len(CAPABILITIES))
]


@dataclass(frozen=True)
class Case:
    """Data of a seed, their folds and gammas."""

    seed: int
    spec: str


@cache
def data_of(case: Case) -> tuple[Dataset, FoldPlan]:
    rng = np.random.default_rng(case.seed)
    X = rng.normal(size=(N, P))
    dataset = Dataset.from_arrays(X, X[:, 0] - 0.7 * X[:, 2] + rng.normal(size=N))
    return dataset, make_folds(case.spec, dataset)


@cache
def fitted(case: Case, fold: int, gamma: int, support: tuple[int, ...]) -> tuple[float, float, tuple[int, ...]]:
    """Training objective and held-out loss of a support, by one solve."""
    (dataset, folds), lam = data_of(case), GAMMAS[gamma] / 2.0
    rows = np.arange(N) if fold == ALL_ROWS else folds.train_rows(fold)
    A, y, w = dataset.X[np.ix_(rows, support)], dataset.y[rows], ROW_WEIGHT[rows]
    b = np.linalg.solve(A.T * w @ A + lam * np.eye(len(support)), A.T * w @ y)
    objective = float(w @ (y - A @ b) ** 2 + lam * b @ b)
    if fold == ALL_ROWS:
        return objective, 0.0, support
    out = folds.scored_rows(fold)
    loss = ROW_WEIGHT[out] @ (dataset.y[out] - dataset.X[np.ix_(out, support)] @ b) ** 2
    return objective, float(loss), support


@dataclass(frozen=True, eq=False)
class EnumeratedProblem(FoldProblem):
    """The training rows of a fold, or the full data, with every support fitted."""

    store: EnumeratedProblems
    fold: int
    gamma: int

    @property
    def capabilities(self) -> Capability:
        return self.store.can

    def fits_of(self, size: int) -> list[tuple[float, float, tuple[int, ...]]]:
        """Training objective and held-out loss of every support of a size, the smallest objective first."""
        return sorted(self.store.fitted(self.fold, self.gamma, one) for one in combinations(range(P), size))

    def solve(
        self, sizes: Sequence[int], warm_starts: Sequence[np.ndarray], node_limit: int, is_expired: IsExpired,
        cutoffs: Mapping[int, float] | None = None, n_threads: int = 1, exchanges: bool = True,
    ) -> BestSubsets:  # fmt: skip
        found = {}
        for size in sizes:
            objective, _, support = self.fits_of(size)[0]
            columns, lower = np.array(support, dtype=np.int64), objective * (1.0 - MARGIN)
            listed = ((columns,), (objective,)) if node_limit > 2 else ((), ())
            found[size] = BestSubset(
                size, columns, lower if node_limit else 0.0, objective * (1.0 + MARGIN), *listed,
                2.0 * MARGIN * objective, node_limit > 2, node_limit > 0,
            )  # fmt: skip
        return BestSubsets(found, min(node_limit, 3) * len(found), node_limit > 2)

    def relax(self, sizes: Sequence[int], supports: Sequence[np.ndarray], is_expired: IsExpired) -> BestSubsets:
        return self.solve(sizes, supports, 1, is_expired)

    def fit(self, supports: Sequence[np.ndarray]) -> Fits:
        fitted = [self.store.fitted(self.fold, self.gamma, tuple(np.sort(one).tolist())) for one in supports]
        objective, loss = np.array([one[:2] for one in fitted]).T
        ends = [values * factor for values in (objective, loss) for factor in (1.0 - MARGIN, 1.0 + MARGIN)]
        return Fits(supports, *ends, loss, objective, np.ones(len(loss), dtype=bool))

    def score(self, supports: Sequence[np.ndarray]) -> Fits:
        return self.fit(supports)

    def enclose(
        self, sizes: Sequence[int], objective_upper: np.ndarray, supports: Sequence[np.ndarray],
        is_expired: IsExpired, relaxes: bool = True,
    ) -> Enclosed:  # fmt: skip
        losses = [
            [loss for objective, loss, _ in self.fits_of(size) if objective <= upper * (1.0 + MARGIN)]
            for size, upper in zip(sizes, objective_upper, strict=True)
        ]
        lower, upper = ([choose(some) for some in losses] for choose in (min, max))
        return Enclosed(np.array(lower) * (1.0 - MARGIN), np.array(upper) * (1.0 + MARGIN), np.zeros(len(sizes)))

    def has_one_support(self, size: int) -> bool:
        return size == P

    def hold_out(self, support: np.ndarray, is_expired: IsExpired) -> tuple[np.ndarray, np.ndarray]:
        columns = tuple(np.sort(support).tolist())
        fitted = [self.store.fitted(fold, self.gamma, columns) for fold in range(self.store.context.folds.k)]
        objective, loss = np.array([one[:2] for one in fitted]).T
        return objective * (1.0 + MARGIN), loss

    def bound_left_out(self, supports: Sequence[np.ndarray], taus: Sequence[int], full_lower: np.ndarray) -> Any:
        return None

    def solve_left_out(
        self, supports: Sequence[np.ndarray], taus: Sequence[int], is_open: np.ndarray, n_nodes: int,
        is_expired: IsExpired,
    ) -> Any:  # fmt: skip
        every = slice(0, self.store.context.folds.k)
        for t in sorted(set(taus)):
            size = int(self.store.context.grid.taus[t])
            for fold in np.flatnonzero(is_open[t]).tolist():
                problem = self.store.fold(fold, self.gamma)
                objective, loss, support = problem.fits_of(size)[0]
                bounds = SubproblemBounds.unknown(
                    self.gamma, (t,), every, every.stop, [np.array(support, dtype=np.int64)]
                )
                bounds.best[0, fold], bounds.held_out[0, fold] = 0, loss
                bounds.objective[0, fold] = bounds.objective_upper[0, fold] = objective * (1.0 + MARGIN)
                bounds.lower[0, fold], bounds.upper[0, fold] = loss * (1.0 - MARGIN), loss * (1.0 + MARGIN)
                bounds.is_solved[0, fold] = True
                yield bounds

    def relax_weighted(
        self, wanted: np.ndarray, objective_upper: np.ndarray, held_out: np.ndarray, is_expired: IsExpired
    ) -> np.ndarray:
        return np.zeros(wanted.shape)

    def branch_weighted(
        self, targets: Mapping[Any, Any], node_limit: int, objective_upper: np.ndarray, held_out: np.ndarray,
        is_full_solved: np.ndarray, is_expired: IsExpired,
    ) -> tuple[np.ndarray, int]:  # fmt: skip
        return np.zeros(objective_upper.shape), node_limit

    def bound_weighted(self, is_expired: IsExpired) -> np.ndarray:
        assert Capability.WEIGHTED_RELAXATIONS in self.store.can
        from sparsecv_mio.bounds.closed_form import LEFT_OUT_WEIGHTS

        return np.zeros((len(LEFT_OUT_WEIGHTS), *self.store.context.shape[:2]))


class EnumeratedProblems:
    """Makes problems of one context."""

    name, engine, slip = "invented", "enumeration", 0.0

    def __init__(self, context: Context, can: Capability, case: Case) -> None:
        self.context, self.can = context, can
        self.fitted = partial(fitted, case)

    def full(self, gamma: int) -> EnumeratedProblem:
        return EnumeratedProblem(self, ALL_ROWS, gamma)

    def fold(self, fold: int, gamma: int) -> EnumeratedProblem:
        return EnumeratedProblem(self, fold, gamma)

    def search_folds(
        self, gammas: Sequence[int], taus: Sequence[int], n_passes: int, n_threads: int, until: Any,
        are_estimates: bool = False,
    ) -> SupportsOfPass:  # fmt: skip
        found = []
        for fold in (*range(self.context.folds.k), ALL_ROWS):
            fits = [[self.fitted(fold, g, tuple(range(int(self.context.grid.taus[t])))) for t in taus] for g in gammas]
            supports = [[np.array(one[2], dtype=np.int64) for one in row] for row in fits]
            objective, loss = (np.array([[one[i] for one in row] for row in fits]) for i in (0, 1))
            found.append(SupportsFound(fold, supports, objective, objective * (1.0 + MARGIN), loss))
        return SupportsOfPass(tuple(found), True, len(found))

    def sample_folds(self, *given: Any) -> Any:
        return iter(())

    def clear(self) -> None:
        pass


def truth(problems: EnumeratedProblems) -> np.ndarray:
    """(G, T): the sum of the held-out losses of the optima of all folds."""
    context = problems.context
    return np.array([
        [sum(problems.fold(fold, g).fits_of(size)[0][1] for fold in range(context.folds.k))
         for size in context.grid.taus.tolist()]
        for g in range(len(context.grid.gammas))
    ])  # fmt: skip


SPECS = ("3", "loo")
CASES = [  # each subset with folds of one kind; the slow suite takes both
    pytest.param(can, spec, marks=[pytest.mark.slow] if (i + s) % 2 else [], id=f"{can.value:03d}-{spec}")
    for i, can in enumerate(SUBSETS) for s, spec in enumerate(SPECS)
]  # fmt: skip


@pytest.mark.parametrize(("can", "spec"), CASES)
def test_the_loop_solves_an_invented_problem(can: Capability, spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weighs_held_out = Capability.WEIGHTED_RELAXATIONS in can and Capability.SHARED_TREE not in can
    assert check_search(can, spec, monkeypatch).plan.weighs_held_out == weighs_held_out


@pytest.mark.parametrize("orders", [("together",), ("first_supports", "together"), ("first_supports", "by_size")])
@pytest.mark.parametrize("can", [can for can in SUBSETS if Capability.SHARED_TREE | Capability.HOLD_OUT in can][::3])
def test_the_orders_of_shared_trees_solve_it_too(
    orders: tuple[str, ...], can: Capability, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_trees = {"first_full_nodes": 2, "first_node_limit": 2, "look_nodes": 2, "cheap_nodes": 0}
    looks = {"bounds_before_trees": True, "looks_first": True, "searches_all_folds": Capability.FOLD_SEARCHES in can}
    patch_all(monkeypatch, [planned(orders=orders, **short_trees, **looks)])
    assert check_search(can, "3", monkeypatch).plan.orders == orders


def check_search(can: Capability, spec: str, monkeypatch: pytest.MonkeyPatch) -> GridSearch:
    """Compare the answer and all bounds of a search with enumeration; return the search."""
    case = Case(can.value % 8, spec)
    dataset, folds = data_of(case)
    data = standardize(dataset, "none", "none")
    made = list[EnumeratedProblems]()

    def make(context: Context, full_data: Any) -> EnumeratedProblems:
        made.append(EnumeratedProblems(context, can, case))
        return made[-1]

    monkeypatch.setattr(grid_search, "make_problems", make)
    search = to_end(new_run(data, folds, Grid.of(GAMMAS, [1, 2, 3], P), gap=1e-6))
    sums, bounds = truth(made[-1]), search.state.bounds()
    assert search.state.is_certified(), can
    assert sums[search.state.reported_pair()] == pytest.approx(sums.min(), rel=1e-6)
    assert (bounds.lower <= sums * (1.0 + 1e-8)).all() and (sums <= bounds.upper * (1.0 + 1e-8)).all()
    return search
