"""The search of one fold, against all subsets and plain ridge fits."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from plain_ridge import ridge

from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.heuristics.fold_search import FoldSearch

from .drawn import FOLDS, random_data

LAMS = np.array([0.01, 0.5])


def problem_of(seed: int, p: int = 8) -> SparseProblem:
    data = random_data(seed, p=p)
    return row_moments(data, FOLDS.train_rows(0)).problem(data, 1.0)


def least(problem: SparseProblem, lam: float, size: int) -> float:
    here = problem.with_gamma(2.0 * lam)
    return min(ridge(here, s)[1] for s in combinations(range(problem.q), size))


@pytest.mark.parametrize("seed", range(4))
def test_a_sweep_finds_what_all_subsets_find(seed: int) -> None:
    problem = problem_of(seed)
    search = FoldSearch(0, problem, LAMS, 3)
    search.sweep([0, 1, 0], lambda: False)
    for g, size in np.ndindex(2, 3):
        value = search.value[g, size + 1]
        assert value >= least(problem, LAMS[g], size + 1) * (1.0 - 1e-9)
        columns = np.sort(search.columns[g, size + 1, : size + 1])
        assert value == pytest.approx(ridge(problem.with_gamma(2.0 * LAMS[g]), columns)[1], rel=1e-9)
        assert search.known(g, size + 1)
    assert search.value[0, 1] == pytest.approx(least(problem, LAMS[0], 1), rel=1e-9)


def test_it_learns_what_is_better_and_nothing_else() -> None:
    problem = problem_of(1)
    search = FoldSearch(0, problem, LAMS, 2)
    values = {s: ridge(problem.with_gamma(2.0 * LAMS[0]), s)[1] for s in combinations(range(8), 2)}
    worst, best = max(values, key=values.__getitem__), min(values, key=values.__getitem__)
    for seed in (worst, best, worst):
        search.learn(np.array([seed]), np.array([0]))
    assert search.found()[0, 2].tolist() == list(best) and not search.known(1, 2)
    search.learn(np.array([worst]), np.array([-1]))
    assert search.known(1, 2)


def test_columns_that_are_not_searched_are_not_learned() -> None:
    problem = problem_of(2, p=6)
    search = FoldSearch(0, problem, LAMS, 2, among=np.array([3, 5, 6, 7, 9, 12]))
    search.learn(np.array([[3, 4], [5, 9]]), np.array([-1, -1]))
    assert search.found()[0, 2].tolist() == [5, 9] and search.columns[0, 2].tolist() == [1, 4]


def test_keeping_columns_out_is_no_loss() -> None:
    for seed in range(4):
        problem = problem_of(seed)
        search = FoldSearch(0, problem, LAMS, 3)
        search.sweep([0], lambda: False)
        before = search.value[0].copy()
        search.keep_columns_out(0, lambda: False)
        assert np.all(search.value[0] <= before) and search.value[0, 3] >= least(problem, LAMS[0], 3) * (1 - 1e-9)


def test_paths_have_full_supports_even_where_none_is_known() -> None:
    data = random_data(0, p=8)
    problem = row_moments(data, FOLDS.train_rows(0)).problem(data, 1.0)
    search = FoldSearch(0, problem, LAMS, 4)
    search.learn(np.array([[6, 7, -1, -1]]), np.array([0]))
    paths = search.paths(np.array([0, 2, 4]), *data.about(FOLDS.scored_rows(0), problem.v_mean, problem.r_mean))
    assert paths.support(0, 1).tolist() == [6, 7] and paths.support(0, 2).tolist() == [0, 1, 6, 7]
    assert [len(paths.support(1, t)) for t in range(3)] == [0, 2, 4] and search.last is paths
    for g, t in np.ndindex(2, 3):
        fit = ridge(problem.with_gamma(2.0 * LAMS[g]), paths.support(g, t))
        assert paths.objective[g, t] == pytest.approx(fit[1], rel=1e-9)


def test_a_search_on_more_columns_takes_over_what_was_found() -> None:
    data = random_data(3, p=8)
    rows = FOLDS.train_rows(0)
    few = np.array([0, 2, 5, 7])
    part = data.only(few)
    small = FoldSearch(0, row_moments(part, rows).problem(part, 1.0), LAMS, 2, few)
    small.sweep([0, 1], lambda: False)
    large = FoldSearch(0, row_moments(data, rows).problem(data, 1.0), LAMS, 2)
    large.take_over(small)
    np.testing.assert_allclose(large.value, small.value, rtol=1e-9)
