"""First supports of logistic regression with many columns: which of them a quadratic sees; estimates of folds."""

from __future__ import annotations

import numpy as np
import pytest
from runs import through_earlier_orders
from scipy.special import expit

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.two_classes import as_two_classes
from sparsecv_mio.problem.glm import GlmProblem
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.grid_search import GridSearch
from sparsecv_mio.search.observers import Signals
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees import glm_tree
from sparsecv_mio.trees.glm_fits import GlmFits


def drawn(n: int, p: int, seed: int, intercept: bool = True) -> GlmProblem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1))
    y = np.where(X[:, 0] - X[:, 1] + rng.logistic(size=n) > 0.0, 1.0, -1.0)
    return GlmProblem(X, y, rng.uniform(0.5, 2.0, size=n), np.ones(p), 0.5, intercept)


def least(moments: tuple[np.ndarray, np.ndarray], support: list[int]) -> float:
    """The least value of a quadratic on some columns, the first of which are those of no choice; up to a constant."""
    H, c = moments[0][np.ix_(support, support)], moments[1][support]
    return -float(c @ np.linalg.solve(H, c)) / 2.0 if support else 0.0


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("size", [0, 1, 3])
def test_what_a_column_is_worth_to_the_quadratic_about_a_fit(size: int, intercept: bool) -> None:
    fits = GlmFits.from_problem(drawn(50, 7, size, intercept), np.array([6]) if size == 3 else None)
    problem, rows, first = fits.problem, fits.rows, fits.problem.first_coefficient
    forced = list(fits.forced)
    support = [*forced, *range(size)]
    point = fits.fit(support)[0]
    margins = problem.y * (point @ rows.W)
    share, pull = expit(-margins), problem.y * problem.v * expit(-margins)
    weight = problem.v * share * (1.0 - share)
    inner, chosen = np.array([*range(first), *(j + first for j in forced)]), np.arange(size)
    worth = glm_tree._worth(fits, weight, pull, inner.astype(int), chosen, point)
    H = (rows.W * weight) @ rows.W.T + np.diag(2.0 * rows.penalty)
    quadratic = H, rows.W @ (pull + weight * (point @ rows.W))
    inside = [*range(first), *(j + first for j in support)]
    now = least(quadratic, inside)
    for j in set(range(7)) - set(support):
        others = [[*inside, j + first]]
        others += [[*(i for i in inside if i != out + first), j + first] for out in chosen.tolist()]
        assert worth[j] / 2.0 == pytest.approx(now - min(least(quadratic, other) for other in others), rel=1e-6)


def test_few_of_many_columns_do_as_well_as_all(monkeypatch: pytest.MonkeyPatch) -> None:
    fits, found = GlmFits.from_problem(drawn(80, 200, 3), None), {}
    for seen in (40, 1_000):
        monkeypatch.setattr(glm_tree, "MAX_QUADRATIC_COLUMNS", seen)
        support, _, upper = glm_tree.exchange_columns(fits, frozenset(), 4, lambda: False)
        assert len(support) == 4
        found[seen] = upper
    assert found[40] <= found[1_000] * 1.02


def test_estimates_of_many_columns_are_by_supports_that_do_not_know_the_rows_left_out() -> None:
    """Of noise alone nothing predicts; supports of all rows would seem to."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 80)), rng.integers(0, 2, size=60).astype(float)
    data = as_two_classes(Dataset.from_arrays(X, y))
    plan, grid = make_folds("5", data), Grid.of((0.01, 0.1), tuple(range(1, 11)), 80)
    context = Context(
        standardize(data, loss=Loss.LOGISTIC), plan, grid, SearchOptions(loss="logistic").request(grid),
        Deadline(None, None), 1,
    )  # fmt: skip
    search = GridSearch(context, Signals())
    through_earlier_orders(search)
    estimates = search.state.cells.nominal.sum(axis=2) / 60.0
    assert search.plan.searches_folds and np.isfinite(estimates).sum() >= 8
    assert estimates.min() > 0.64
    known = search.problems.full(0).hold_out(search.state.all_rows.best[0].by_size[8].support, lambda: False)[1]
    assert known.sum() / 60.0 < 0.58
