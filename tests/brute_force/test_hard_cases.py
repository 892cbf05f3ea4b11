"""Inputs on which an earlier engine was wrong or fell over, each against brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from engines import planned
from exact import ExactProblem
from judge import wrong, wrong_cells, wrong_rows
from numpy.typing import NDArray
from plain_ridge import ridge
from runs import record_of, to_end
from slow import slow
from truth import Truth
from zoo import RandomProblem, random_problem

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.errors import BadInput, Inconsistent
from sparsecv_mio.formulation.backends import get_backend
from sparsecv_mio.kernels import path_tree
from sparsecv_mio.kernels.nodes import Margin
from sparsecv_mio.kernels.path_tree import new_levels
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.state.pairs import PairBounds
from sparsecv_mio.trees.normal_form import normal_form

Matrix = NDArray[np.float64]


def case(
    X: Matrix,
    y: Matrix,
    folds: str = "loo",
    gammas: tuple[float, ...] = (0.1,),
    scale: str = "length",
    intercept: str = "fold",
    taus: list[int] | None = None,
) -> RandomProblem:
    data = Dataset.from_arrays(X, y)
    sizes = list(range(data.p + 1)) if taus is None else taus
    return RandomProblem(data, make_folds(folds, data), list(gammas), sizes, scale, intercept)


def prepared(problem: RandomProblem, together: bool = True, **settings: Any) -> Any:
    """A run that has not begun; `together`: one tree for all folds first, where usable."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*planned(**settings | ({} if together else {"leaves_folds_out": False})))
        return problem.new_run()


def confirmed(run: Any, problem: RandomProblem) -> Any:
    """The cells of a run, which enumeration confirms with the record that is made of them."""
    truth, snapshot = Truth(problem), run.snapshot(over=True)
    assert [*wrong_cells(truth, snapshot), *wrong_rows(truth, record_of(run))] == []
    return snapshot.cells


def check(problem: RandomProblem, decided: bool = True) -> None:
    """Both ways through the search agree with the enumeration."""
    for together in (False, True):
        assert confirmed(to_end(prepared(problem, together)), problem).decided.all() or not decided


def test_ill_conditioned_trees_keep_their_digits() -> None:
    # rows without centring, fewer than columns, next to no penalty: the condition is 1e7 and more
    rng = np.random.default_rng(228)
    for offset in (3.0, 100.0):
        X = rng.normal(size=(10, 8)) + offset * rng.normal(size=8)
        check(case(X, rng.normal(size=10) + 5.0, "3", (1e-4, 2e-4), "none", "none"))


def test_the_tree_drifts_by_the_condition_not_by_its_square() -> None:
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(60):
        n, q = int(rng.integers(4, 20)), int(rng.integers(3, 9))
        X = rng.normal(size=(n, q)) + 10.0 ** rng.uniform(0, 4) * rng.normal(size=q)
        X /= np.linalg.norm(X, axis=0)
        y = rng.normal(size=n)
        problem = SparseProblem(X.T @ X, X.T @ y, float(y @ y), np.ones(q), 1e-6, n, np.zeros(q), 0.0)
        form = normal_form(problem)
        V, beta, value = form.solve_all_columns()
        best = np.full(q + 1, -np.inf)
        best[1:q] = 1e9
        state = path_tree.new_state(new_levels(V, beta, value, 1, q - 1), best, Margin(0.0, 0.0), 1024)
        path_tree.process_nodes(state, form.copies, form.w, Margin(1e9, 0.0), 10**6)
        for r in range(int(state.ctrl[path_tree.KEPT])):
            exact = ridge(problem, np.flatnonzero(state.kept.mask[r]))[1]
            worst = max(worst, abs(exact - state.kept.value[r]) / form.slack)
    assert worst < 0.5


def test_columns_constant_in_training_pad_smaller_supports() -> None:
    # without the indicator's rows there are columns of zeros, and one that varies by 1e-6 only: a tie across sizes
    rng = np.random.default_rng(7)
    n = 12
    x = np.ones(n)
    x[[3, 10]] = 0.7
    noisy = x + 1e-6 * rng.normal(size=n)
    X = np.column_stack([np.eye(1, n)[0], noisy, x, (x < 1.0).astype(float), -(x < 1.0).astype(float)])
    labels = np.array([0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 1])
    labels[10] = 0
    problem = case(X, 40.0 + 12.0 * rng.normal(size=n), gammas=(0.0018, 0.0237), scale="none")
    check(RandomProblem(problem.data, folds_from_labels(labels), problem.gammas, problem.taus, "none", "fold"))
    check(RandomProblem(problem.data, folds_from_labels(labels), problem.gammas, [4], "none", "fold"))


@pytest.mark.parametrize("shift", [0.0, 1e3, *slow([0.1])])
def test_a_target_that_is_constant_in_training(shift: float) -> None:
    rng = np.random.default_rng(3)
    y = np.eye(1, 26, 4)[0] + shift
    check(case(rng.normal(size=(26, 8)), y, "loo", (0.01, 10.0)))
    check(case(np.round(rng.normal(size=(12, 6))), np.eye(1, 12, 4)[0] + shift, "4", (0.01,)))


def test_global_centre_far_from_a_small_spread() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(25, 5)) + 1e5
    y = X @ np.array([1.0, 0.0, -2.0, 0.0, 0.5]) + 0.1 * rng.normal(size=25) + 1e7
    check(case(X, y, "loo", (1e-3, 1.0), intercept="global"))
    check(case(X, y, "4", (1e-3, 1.0), "variance", "global"))


def test_units_that_differ_by_many_orders() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30, 6)) * np.array([1e-6, 1e6, 1.0, 1e3, 1e-3, 1e9])
    check(case(X, X @ (1.0 / X.std(axis=0)) + rng.normal(size=30), "5", (0.1, 10.0), "none"))
    check(case(X * 1e140, rng.normal(size=30), "5", (0.1,), "none"))


def test_more_ties_than_a_tree_keeps() -> None:
    signs = np.array([[1.0]])
    for _ in range(4):
        signs = np.block([[signs, signs], [signs, -signs]])
    X = signs[:, 1:10]
    check(case(X, X.sum(axis=1), "4", (0.1,)))
    check(case(np.vstack([X, -X]), np.append(X.sum(axis=1), -X.sum(axis=1)), "loo", (0.1,), taus=[0, 4]))


@pytest.mark.parametrize("n", [6, *slow([8, 9])])
def test_no_penalty_to_speak_of(n: int) -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, {6: 4, 8: 5, 9: 7}[n]))
    X = np.column_stack([X, X[:, 0], X[:, 1] - X[:, 2]])
    check(case(X, X[:, 0] - X[:, 3], "3", (1e-12, 1e-200)), decided=False)
    check(case(1e150 * X, rng.normal(size=n), "loo", (0.1,), "none"), decided=False)


def test_undecided_cells_reach_tied_optima() -> None:
    signs = np.array([[1.0]])
    for _ in range(3):
        signs = np.block([[signs, signs], [signs, -signs]])
    X = np.vstack([signs[:, 1:7], 0.5 * signs[:, 1:7] + 0.01])
    problem = case(X, X.sum(axis=1), "2", (0.01, 1.0))
    for node_limit in range(4):
        confirmed(to_end(prepared(problem, False, first_node_limit=node_limit, max_tries=1)), problem)


def test_refit_bounds_its_error() -> None:
    # against the same refit of columns that are better conditioned by an exact change of basis
    rng = np.random.default_rng(9)
    for offset in (0.0, 1e3, 1e5):
        X = rng.integers(-50, 50, size=(12, 3)).astype(float) + offset
        y = rng.integers(-9, 9, size=12).astype(float)
        problem = case(X, y, "3", (1e-3,), "none", "none")
        data = prepared(problem).context.data
        fit = refit_rows(data, np.arange(12), np.arange(3), 1e-3)
        whole = ExactProblem.from_data(data.dataset, None, ("none", "none"), range(3))
        exact = float(whole.of_support(1e-3, range(3))[0]) / data.y_unit**2
        assert abs(fit.objective - exact) <= fit.objective_error + 1e-15 * exact
        assert fit.objective_error <= 1e-10 * exact


def test_an_answer_comes_with_any_limit() -> None:
    rng = np.random.default_rng(10)
    data = Dataset.from_arrays(rng.normal(size=(30, 5)), rng.normal(size=30))
    for spec in ("loo", "5", "holdout:0.3"):
        plan = make_folds(spec, data)
        record = cross_validate(data, plan, gammas=[0.01, 1.0], taus=range(4), gap=0.0, time_limit=1e-9)
        again = Record.from_json(record.to_json())
        assert again.status == "limit" and np.isfinite(again.cv_error)
        assert again.lower <= again.cv_error <= again.upper


def test_many_small_folds_are_scored_however_short_the_limit() -> None:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(60, 4))
    data, rows = Dataset.from_arrays(X, X[:, 0] + rng.normal(size=60)), np.arange(60)
    record = cross_validate(data, make_folds("loo", data), gammas=[0.1], taus=[1, 2], time_limit=1e-9, threads=1)
    assert record.status == "limit" and len(record.chosen_folds) == 60
    for fold in record.chosen_folds:
        support = [data.names.index(name) for name in fold.support]
        refit = fit(data.X, data.y, support, record.gamma, rows=rows[rows != fold.fold])
        true = held_out_error(refit, data.X, data.y, rows[fold.fold : fold.fold + 1])
        assert fold.error == pytest.approx(true, rel=1e-9)


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf, 5e-324, 1e301])
def test_gammas_out_of_range_are_refused(gamma: float) -> None:
    data = Dataset.from_arrays(np.eye(4)[:, :2], [1.0, 2.0, 3.0, 5.0])
    with pytest.raises(BadInput, match="gamma"):
        cross_validate(data, make_folds("2", data), gammas=[gamma], taus=[1])


def test_constant_training_target_has_no_moments_left() -> None:
    data = prepared(case(np.arange(16.0).reshape(8, 2) ** 1.5, np.eye(1, 8)[0] + 0.1)).context.data
    problem = row_moments(data, np.arange(1, 8)).problem(data, 1.0)
    assert problem.yy == 0.0 and not problem.c.any()


def test_a_number_outside_of_its_interval_is_never_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check is on what is built, whoever made the mistake."""
    rng = np.random.default_rng(12)
    problem = case(rng.normal(size=(15, 3)), rng.normal(size=15), "3")
    monkeypatch.setattr(PairBounds, "clipped_estimates", property(lambda self: 2.0 * self.upper + 1.0))
    with pytest.raises(Inconsistent, match="cv_error.*outside"):
        problem.solve(method="rounds")


def test_a_fold_of_leverage_one_is_verified_by_refits() -> None:
    problem = random_problem(3020, rows=30, columns=9)  # I - H of a fold is singular to the last bit
    record = problem.solve(method="algorithm1", gap=0.0)
    assert [*wrong(problem, record)] == [] and verify(record, problem.data, problem.folds).ok


@pytest.mark.parametrize("backend", ["native", "highs"])
@pytest.mark.parametrize("method", ["algorithm1", "joint"])
def test_cells_that_bounds_close(backend: str, method: str) -> None:
    """Bounds close cells whose heuristic support is not the optimal one."""
    if not get_backend(backend).available().usable:
        pytest.skip(f"no {backend}")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 6))
        problem = case(X, X[:, 0] + rng.normal(size=20), "3", (10.0,), taus=[1, 2, 3])
        assert [*wrong(problem, problem.solve(backend=backend, method=method))] == []


def test_rounds_of_cuts_that_move_nothing_end() -> None:
    """The tolerances of HiGHS are wider than the requested gap here: each round once added the same four rows again."""
    if not get_backend("highs").available().usable:
        pytest.skip("no highs")
    rng = np.random.default_rng(218)
    rows, p = int(rng.integers(12, 60)), int(rng.integers(5, 9))
    X = rng.normal(size=(rows, p)) * 10.0 ** rng.uniform(-2, 2, p)
    y = X @ (rng.normal(size=p) * (rng.random(p) < 0.7) / 10.0 ** rng.uniform(-2, 2, p)) + rng.normal(size=rows)
    problem = case(X, y, "3", (0.0096,), taus=[2])
    record = problem.solve(backend="highs", method="grid", time_limit=60)
    assert record.status == "proved" and [*wrong(problem, record)] == []


@pytest.mark.parametrize("intercept", ["none", "global", "fold"])
@pytest.mark.parametrize("spread", [1e-14, 1e-13, 1e-12])
def test_a_column_that_rounding_alone_moves_leaves_the_others_as_they_are(spread: float, intercept: str) -> None:
    """Without an intercept it is very long: the others were once taken for constant, and `proved` was wrong."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 4)), rng.standard_normal(40)
    y = X[:, 0] + X[:, 1] + 0.1 * y
    data = Dataset.from_arrays(np.column_stack([X, 5.0 * (1.0 + spread * rng.standard_normal(40))]), y)
    record = cross_validate(data, make_folds("5", data), gammas=[1e-3], taus=range(6), intercept=intercept)
    assert record.status == "proved" and {"x0", "x1"} <= set(record.support) and record.cv_error < 0.02
    verify(record, data).raise_if_failed()


def test_what_rounding_leaves_negative_is_not_trusted() -> None:
    """An elimination of offsets of 1e5 without an intercept leaves rounding alone on the diagonal."""
    Q = np.array([[1.0, 0.1], [0.1, -7.6e-6]])
    problem = SparseProblem(Q, np.array([0.3, 0.0]), 1.0, np.ones(2), 1e-25, 10, np.zeros(2), 0.0)
    form = normal_form(replace(problem, own_squares=np.array([2.0, 1e11])))
    assert not form.is_trusted and not form.curved


@pytest.mark.parametrize("seed", range(6))
def test_signs_of_copied_columns_with_hardly_any_ridge(seed: int) -> None:
    """Moments tell neither the copies nor the signs of their coefficients apart; the rows do."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 3))
    X = np.column_stack([X, X[:, seed % 3] * rng.choice([1.0, -2.0])])
    y, labels = X[:, :3] @ rng.normal(size=3) + 0.5 * rng.normal(size=15), np.arange(15) % 3
    signs, gamma = {seed % 3: 1.0, 3: rng.choice([-1.0, 1.0])}, (0.0, 1e-12)[seed % 2]
    tau, loss = 1 if gamma == 0.0 else 2, 0.0
    for fold in range(3):
        rows, models = np.flatnonzero(labels != fold), []
        for support in (S for size in range(tau + 1) for S in combinations(range(4), size)):
            model = fit(X, y, support, gamma, rows=rows)
            if all(signs.get(j, b) * b > 0.0 for j, b in zip(support, model.beta.tolist(), strict=True)):
                models.append(model)
        best = min(models, key=lambda model: round(model.objective, 9))
        loss += held_out_error(best, X, y, np.flatnonzero(labels == fold))
    limits = {sign: [f"x{j}" for j in signs if signs[j] == s] for sign, s in (("nonnegative", 1), ("nonpositive", -1))}
    record = cross_validate(
        Dataset.from_arrays(X, y), folds_from_labels(labels), gammas=[gamma], taus=[tau], scale="length", **limits
    )
    assert record.status == "proved" and record.cv_error == pytest.approx(loss / 15, rel=1e-9)
