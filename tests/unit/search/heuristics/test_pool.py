"""What the folds found, collected without repeats."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.problem.accumulate import training_moments
from sparsecv_mio.search.heuristics.fold_search import FoldSearch
from sparsecv_mio.search.heuristics.pool import pooled, seeds_of

from .drawn import FOLDS, random_data


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
