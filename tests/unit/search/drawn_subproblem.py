"""A small search and the truth about its cells, by all subsets and plain fits from the rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from plain_ridge import ridge

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem import objective
from sparsecv_mio.problem.training_moments import TrainingMoments, training_moments
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.problems.fold_fits import FoldData
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.pairs import Grid

GAMMAS, TAUS = (0.1, 2.0), (0, 1, 2, 3)


def context_of(seed: int = 0, n: int = 30, p: int = 6, late: bool = False) -> Context:
    """Four folds; `late` has the limit passed already."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1))
    data = Dataset.from_arrays(X, 2.0 * X[:, 1] - X[:, p - 1] + 0.4 * X[:, 0] + rng.normal(size=n))
    grid = Grid.of(GAMMAS, TAUS, p)
    asked, deadline = SearchOptions(gap=0.0).request(grid), Deadline(-1.0 if late else None, None)
    return Context(standardize(data), make_folds("4", data, seed), grid, asked, deadline, 1)


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
