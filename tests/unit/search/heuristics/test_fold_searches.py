"""Passes over the searches of all folds: none makes a fold worse, and the folds learn from each other."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.problem.accumulate import training_moments
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics.fold_search import FoldSearch
from sparsecv_mio.search.heuristics.fold_searches import FoldSearches, pooled, seeds_of

from .drawn import FOLDS, random_data


def begun(late: bool = False) -> FoldSearches:
    data = random_data(1, p=12)
    searches = FoldSearches(data, FOLDS, Grid.of([0.1, 1.0, 5.0], [0, 1, 3], 12), 1, lambda: late)
    for fold, moments in training_moments(data, FOLDS):
        problem = moments.problem(data, 1.0)
        searches.begin(FoldSearch(fold, problem, searches.lams, searches.top), seeds_of([], searches.top))
    return searches


def test_every_pass_is_as_good_as_the_one_before() -> None:
    searches = begun()
    for one_pass in (searches.walk(), searches.exchange(thorough=True), searches.exchange(thorough=False)):
        before = {fold: search.last.objective for fold, search in searches.by_fold.items() if search.last is not None}
        found = list(one_pass)
        assert sorted(paths.fold for paths in found) == [0, 1, 2]
        assert all(np.all(paths.objective <= before[paths.fold] * (1.0 + 1e-12)) for paths in found)
    assert not searches.improved


def test_a_pass_ends_with_the_time() -> None:
    searches = begun(late=True)
    assert len(searches.by_fold) == 3 and list(searches.walk()) == []


def test_gammas_are_walked_from_the_middle() -> None:
    searches = begun()
    assert searches.middle == 1 and searches.gamma_order() == [1, 2, 1, 0, 1]


def test_seeds_are_of_the_sizes_that_are_searched() -> None:
    assert seeds_of([np.array([4]), np.array([], dtype=int), np.arange(3), np.array([1, 2])], 2).tolist() == [
        [4, -1], [1, 2]
    ]  # fmt: skip
    assert seeds_of([], 3).shape == (0, 3)


def test_every_support_comes_once_and_those_of_most_folds_first() -> None:
    data = random_data(0, p=8)
    searches = [
        FoldSearch(fold, moments.problem(data, 1.0), np.array([0.1, 1.0]), 2)
        for fold, moments in training_moments(data, FOLDS)
    ]
    for search, pair in zip(searches, ([1, 2], [0, 3], [0, 3]), strict=True):
        search.learn(np.array([pair, [4, -1]]), np.array([0, -1]))
    supports, gammas = pooled(searches, data.q)
    assert supports.tolist() == [[0, 3], [1, 2]] and gammas.tolist() == [0, 0]
    supports, gammas = pooled(searches, data.q, most=1)
    assert supports.tolist() == [[0, 3]]
    assert pooled(searches[:1], data.q)[0].shape == (0, 2)
