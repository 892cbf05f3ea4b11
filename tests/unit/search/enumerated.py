"""A small data set with every support of every size fitted in every fold, by the definition in plain numpy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import numpy as np

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.problems.left_out_folds import FullFit, LeftOutFolds
from sparsecv_mio.search.problems.one_tree_for_folds import RequestedFolds
from sparsecv_mio.search.problems.squared import SquaredProblem, SquaredProblems
from sparsecv_mio.search.state.context import BestOnAllRows, Context
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.search.steps import NodeCount, SubproblemBounds
from sparsecv_mio.trees.every_size import solve_path
from sparsecv_mio.trees.subsets import is_never_expired

GAMMA = 0.3
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
    gamma: float = GAMMA
    threads: int = 1

    def __post_init__(self) -> None:
        self.dataset = drawn(self.seed, self.n, self.p)
        self.folds = make_folds(self.spec, self.dataset)
        self.data = standardize(self.dataset, "length", self.intercept)
        self.taus = np.arange(1, self.p)
        grid = Grid.of([self.gamma], self.taus.tolist(), self.p)
        self.context = Context(
            self.data, self.folds, grid, SearchOptions(gap=0.0).request(grid), Deadline(None, None), self.threads
        )  # fmt: skip
        self.all_rows = BestOnAllRows(self.data, grid)
        self.all_rows.best = [solve_path(self.all_rows.problem(0), self.taus.tolist())]
        self.left_out = LeftOutFolds(self.all_rows, self.folds, self.threads)
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
