"""First supports of every fold: objective and held-out errors against plain refits, optima against all subsets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from every_support import brute_force_cell

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.problem import objective
from sparsecv_mio.search.problems.local_search import FoldPaths, search_all_passes
from sparsecv_mio.search.state.pairs import Grid


def random_data(seed: int, n: int = 24, p: int = 8) -> Dataset:
    """Correlated columns, one twice, one constant."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.4 * rng.standard_normal((p, p)))
    X[:, 5], X[:, 6] = X[:, 1], 3.0
    return Dataset.from_arrays(X, X[:, 0] + X[:, 2] - X[:, 3] + rng.standard_normal(n))


def last_paths(
    data: StandardData, folds: FoldPlan, gammas: Sequence[float], taus: Sequence[int], **more: object
) -> dict[int, FoldPaths]:
    """The last answer of every fold; none is worse than the one before, all are supports of tau columns."""
    grid = Grid.of(list(gammas), list(taus), data.dataset.p)
    found: dict[int, FoldPaths] = {}
    for paths in search_all_passes(data, folds, grid, **more):  # type: ignore[arg-type]
        before = found.get(paths.fold)
        assert before is None or np.all(paths.objective <= before.objective)
        assert np.all(np.isfinite(paths.objective)) and np.all(np.isfinite(paths.held_out))
        for g in range(len(grid.gammas)):
            for t, tau in enumerate(grid.taus.tolist()):
                assert len(set(paths.support(g, t).tolist())) == min(tau, data.q)
        found[paths.fold] = paths
    assert sorted(found) == list(range(folds.k))
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", ["length", "variance", "none"])
@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_values_are_plain_refits_and_optima_are_found(seed: int, scale: str, intercept: str) -> None:
    dataset = random_data(seed)
    data = standardize(dataset, scale, intercept)
    labels = np.arange(24) % 3
    gammas, taus = [0.01, 1.0], [0, 2, 3, 8]
    found = last_paths(data, folds_from_labels(labels), gammas, taus, threads=1 + seed % 2)
    missed = 0
    for fold, paths in found.items():
        train, test = np.flatnonzero(labels != fold), np.flatnonzero(labels == fold)
        for g, gamma in enumerate(gammas):
            for t, tau in enumerate(taus):
                support = data.columns[paths.support(g, t)].tolist()
                plain = objective.fit(
                    dataset.X, dataset.y, support, gamma, scale=scale, intercept=intercept, rows=train
                )
                error = objective.held_out_error(plain, dataset.X, dataset.y, test)
                assert paths.objective[g, t] * data.y_unit**2 == pytest.approx(plain.objective, rel=1e-7)
                assert paths.held_out[g, t] * data.y_unit**2 == pytest.approx(error, rel=1e-5)
                best = brute_force_cell(dataset.X, dataset.y, tau, gamma, scale=scale, intercept=intercept, rows=train)
                missed += plain.objective > best.objective * (1.0 + 1e-7)
    assert missed == 0


def test_odd_data_have_an_answer() -> None:
    """More columns than training rows, tau beyond these, a column and a target that are constant in training."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((9, 14))
    X[:, 3] = np.arange(9) < 3
    y = np.where(np.arange(9) < 3, rng.standard_normal(9), 2.0)
    data = standardize(Dataset.from_arrays(X, y))
    folds = folds_from_labels(np.arange(9) // 3)
    found = last_paths(data, folds, [1e-300, 1e-9, 1e300], [1, 5, 13, 14])
    assert np.all(found[0].objective == 0.0)


@pytest.mark.parametrize("taus", [[1, 2, 38], [38]])
def test_all_columns_are_an_answer_that_needs_no_search(taus: list[int]) -> None:
    """Of many columns, whatever the largest size below them is."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 38))
    X[:, 7] = 1.0
    dataset = Dataset.from_arrays(X, X[:, :4].sum(axis=1) + rng.standard_normal(60))
    data, labels = standardize(dataset), np.arange(60) % 3
    for fold, paths in last_paths(data, folds_from_labels(labels), [0.01, 1.0], taus).items():
        train, test = np.flatnonzero(labels != fold), np.flatnonzero(labels == fold)
        for g, gamma in enumerate([0.01, 1.0]):
            plain = objective.fit(dataset.X, dataset.y, list(range(38)), gamma, rows=train)
            error = objective.held_out_error(plain, dataset.X, dataset.y, test)
            assert paths.support(g, -1).tolist() == list(range(data.q))
            assert paths.objective[g, -1] * data.y_unit**2 == pytest.approx(plain.objective, rel=1e-7)
            assert paths.held_out[g, -1] * data.y_unit**2 == pytest.approx(error, rel=1e-5)
