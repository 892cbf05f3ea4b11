"""Forward selection of several folds at once, against the kernel that works on one Gram matrix."""

from __future__ import annotations

import time

import numpy as np
import pytest

import sparsecv_mio as sc
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import StandardData, standardize
from sparsecv_mio.data.two_classes import as_two_classes
from sparsecv_mio.errors import BadInput
from sparsecv_mio.kernels import starts
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.search import fallback
from sparsecv_mio.search.fallback import (
    ForwardSelection,
    WeightedRows,
    fallback_supports,
    supports_on_all_rows,
)
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.words import Loss

from .drawn import FOLDS, TOP, random_data


def selected(data: StandardData, late: bool = False) -> ForwardSelection:
    rows = WeightedRows(data, FOLDS)
    forward = ForwardSelection(rows, [0, 1, 2], rows.squares([0, 1, 2]), 0.05, TOP)
    forward.run(lambda: late)
    return forward


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_it_picks_what_a_fold_alone_would_pick(seed: int, intercept: str) -> None:
    data = random_data(seed, intercept=intercept)
    for fold, picked in enumerate(selected(data).picked):
        problem = row_moments(data, FOLDS.train_rows(fold)).problem(data, 0.1)
        best, masks = np.full(data.q + 1, np.inf), np.zeros((data.q + 1, data.q), dtype=bool)
        starts.forward_selection(problem.M, problem.c, problem.yy, TOP, best, masks)
        for size in range(1, TOP + 1):
            assert sorted(picked[:size]) == np.flatnonzero(masks[size]).tolist()


def test_one_column_is_picked_even_where_the_time_is_over() -> None:
    assert [len(picked) for picked in selected(random_data(0), late=True).picked] == [1, 1, 1]


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
def test_squares_and_products_are_those_of_the_training_rows(intercept: str) -> None:
    data = random_data(0, p=7, intercept=intercept)
    rows, (V, r) = WeightedRows(data, FOLDS), data.rows(slice(0, data.n))
    assert np.array_equal(data.targets(slice(None)), r)
    inside = rows.inside([2, 0])
    centred = rows.centre(np.vstack([r, r]), inside)
    squares, products = rows.squares([2, 0]), rows.products(centred)
    for line, fold in enumerate([2, 0]):
        train = FOLDS.train_rows(fold)
        assert np.flatnonzero(inside[line]).tolist() == train.tolist()
        A, b = V[train], r[train]
        if intercept == "fold":
            A, b = A - A.mean(axis=0), b - b.mean()
        np.testing.assert_allclose(squares[line], (A**2).sum(axis=0), rtol=1e-10)
        np.testing.assert_allclose(products[line], b @ A, rtol=1e-9, atol=1e-12)
        assert np.all(centred[line, FOLDS.scored_rows(fold)] == 0.0)


def made(n: int, p: int, seed: int = 0, offset: float = 0.0) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + offset
    return Dataset.from_arrays(X, X[:, 0] - 2.0 * X[:, p // 2] + 0.3 * rng.normal(size=n))


@pytest.mark.parametrize("intercept", ["fold", "global", "none"])
@pytest.mark.parametrize("late", [True, False])
def test_fits_are_what_they_say(intercept: str, late: bool) -> None:
    """Every value and held-out error is that of the support beside it, fitted without the rows it is scored on."""
    for seed in range(5):
        data = made(30, 12, seed, offset=3.0)
        folds = make_folds(("6", "6", "forward:3", "2x4", "holdout:0.3")[seed], data, seed)
        std, grid = standardize(data, "length", intercept), Grid.of([0.5], [0, 1, 3, 12], 12)
        until = time.monotonic() + (0.0 if late else 60.0)
        found = fallback_supports(std, folds, grid, until)
        V, r = std.rows(slice(0, std.n))
        for fold in range(folds.k):
            train, test = folds.train_rows(fold), folds.scored_rows(fold)
            for t, tau in enumerate(grid.taus.tolist()):
                S = found.supports[t][fold]
                assert len(S) == min(tau, 1 if late else len(train) if tau < 12 else 12)  # all columns need no rows
                A, b, H, u = V[train][:, S], r[train], V[test][:, S], r[test]
                if intercept == "fold":
                    A, b, H, u = A - A.mean(axis=0), b - b.mean(), H - A.mean(axis=0), u - b.mean()
                beta = np.linalg.solve(A.T @ A + 0.25 * np.eye(len(S)), A.T @ b)
                assert found.value[t, fold] == pytest.approx(b @ b - b @ A @ beta, rel=1e-9)
                assert found.nominal[t, fold] == pytest.approx(np.sum((u - H @ beta) ** 2), rel=1e-7)


def test_supports_fall_in_value() -> None:
    low, high = supports_on_all_rows(standardize(made(30, 12)), [0.5, 2.0], [1, 2, 5], np.inf)
    assert list(low) == [1, 2, 5] and low[1][1] > low[2][1] > low[5][1]
    assert all(high[tau][1] > low[tau][1] for tau in low)


@pytest.mark.parametrize("spec", ["loo", "forward:19"])
def test_many_folds_get_supports_whatever_the_time(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallback, "QUICK_WORK", 40 * 50)
    data = made(40, 12)
    folds = make_folds(spec, data)
    std = standardize(data)
    found = fallback_supports(std, folds, Grid.of([0.5], [1, 2], 12), 0.0)
    r = std.rows(slice(0, 40))[1]
    for fold in range(folds.k):
        rest, test = r[folds.train_rows(fold)], r[folds.scored_rows(fold)]
        if len(found.supports[0][fold]) == 0:
            assert found.nominal[0, fold] == pytest.approx(float(np.sum((test - rest.mean()) ** 2)), rel=1e-9)
            assert found.value[0, fold] == pytest.approx(float(np.sum((rest - rest.mean()) ** 2)), rel=1e-9)
    assert any(len(support) for support in found.supports[0]) and any(not len(s) for s in found.supports[0])


@pytest.mark.parametrize("spec", ["3", "loo", "forward:4"])
@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_every_support_keeps_to_the_restrictions(seconds: float, spec: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 5))
    data = sc.Dataset.from_arrays(X, X @ [1.0, -1.0, 0.5, 0.2, 0.0] + rng.normal(size=30))
    asked = Restrictions(at_most="1:x0,x2", hierarchy="x1=x3", nonnegative=["x0", "x1", "x2"]).within(data.names)
    ready, folds = standardize(data, "length", "fold", asked), sc.make_folds(spec, data)
    found = fallback_supports(ready, folds, Grid.of([0.1], [1, 3], 5, asked), time.monotonic() + seconds)
    for t in range(2):
        for fold in range(folds.k):
            support = found.supports[t][fold].tolist()
            model = fit(data.X, data.y, support, 0.1, rows=folds.train_rows(fold))
            names = {data.names[j] for j in support}
            assert len(names & {"x0", "x2"}) <= 1 and ("x1" not in names or "x3" in names)
            assert all(b >= 0 for j, b in zip(support, model.beta, strict=True) if j < 3)
            unit = ready.y_unit**2
            assert found.value[t, fold] * unit == pytest.approx(model.objective)
            error = held_out_error(model, data.X, data.y, folds.scored_rows(fold))
            assert found.nominal[t, fold] * unit == pytest.approx(error)
    on_all = supports_on_all_rows(ready, [0.1], [3], np.inf)[0][3]
    assert on_all[1] * ready.y_unit**2 == pytest.approx(fit(data.X, data.y, on_all[0].tolist(), 0.1).objective)


def test_within_restrictions_no_fold_is_fitted_alone_before_the_clock_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = made(60, 6)
    asked = Restrictions(at_most="1:x0,x3").within(data.names)
    ready, folds = standardize(data, "length", "fold", asked), make_folds("loo", data)
    monkeypatch.setattr(fallback, "QUICK_WORK", 10 * 60 * 6)
    monkeypatch.setattr(FoldPlan, "train_rows", None)  # all folds together: O(n^2)
    ordered = []
    order = fallback._Folds.order
    monkeypatch.setattr(fallback._Folds, "order", lambda self, fold: ordered.append(fold) or order(self, fold))
    found = fallback_supports(ready, folds, Grid.of([0.5], [1, 2], 6, asked), 0.0)
    assert len(ordered) <= 10 and np.isfinite(found.nominal).all() and np.isfinite(found.value).all()


def test_a_size_without_a_model_is_refused() -> None:
    rng = np.random.default_rng(2)
    data = sc.Dataset.from_arrays(rng.normal(size=(12, 3)), rng.normal(size=12))
    message = "^tau 1: no model of at most 1 features keeps to the restrictions"
    for call in (lambda **how: sc.cross_validate(data, "2", gammas=[1.0], taus=[1], **how),
                 lambda **how: sc.best_subsets(data, gammas=[1.0], taus=[1], **how)):  # fmt: skip
        with pytest.raises(BadInput, match=message):
            call(force_in="x0", hierarchy="x0=x1")


@pytest.mark.parametrize("most", ["QUICK_WORK", "MOST_ROWS_BY_FOLD"])
def test_of_many_folds_all_rows_choose_and_a_step_leaves_each_row_out(
    most: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 4))
    data = as_two_classes(Dataset.from_arrays(X, (X[:, 0] + rng.logistic(size=80) > 0.0).astype(float)))
    ready, folds, grid = standardize(data, loss=Loss.LOGISTIC), make_folds("loo", data), Grid.of([0.5], [1, 2], 4)
    by_fold = fallback_supports(ready, folds, grid, float("inf"))
    monkeypatch.setattr(f"sparsecv_mio.search.fallback.{most}", 0)
    found = fallback_supports(ready, folds, grid, float("inf"))
    assert not np.array_equal(found.nominal, by_fold.nominal)
    for t in range(2):
        same = [fold for fold in range(80) if np.array_equal(found.supports[t][fold], by_fold.supports[t][fold])]
        assert len(same) > 70
        np.testing.assert_allclose(found.nominal[t, same], by_fold.nominal[t, same], rtol=5e-3)
        assert np.all(found.value[t, same] >= by_fold.value[t, same] * (1.0 - 1e-12))
        np.testing.assert_allclose(found.value[t, same], by_fold.value[t, same], rtol=2e-2)
    assert found.value_on_all_rows.tolist() == by_fold.value_on_all_rows.tolist()
