"""A small data set with every support of every size fitted in every fold, by the definition in plain numpy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import numpy as np

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.search.cells import CellTable
from sparsecv_mio.search.context import BestOnAllRows, Context, SearchState, WorkCounts
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.leave_fold_out import LeaveOut
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.trees.every_size import solve_path

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
        self.cells = CellTable.empty(1, len(self.taus), self.folds.k)
        self.state = SearchState(self.context, self.cells, self.all_rows, WorkCounts())
        self.leave_out = LeaveOut(self.state)

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

    def check_cells(self) -> None:
        """Assert that every interval holds the truth and every decided cell its optimal support."""
        cells, truth = self.cells, self.truth()
        slip = 1e-9 * truth
        assert np.all(cells.lower[0] <= truth + slip) and np.all(cells.upper[0] >= truth - slip)
        for t, size in enumerate(self.taus.tolist()):
            for fold, s in enumerate(self.best(size)):
                if cells.decided[0, t, fold]:
                    assert tuple(cells.pool.supports[cells.support[0, t, fold]]) == s


VARIANTS = [("loo", "fold"), ("loo", "none"), ("blocks:3", "fold"), ("blocks:2", "global")]
